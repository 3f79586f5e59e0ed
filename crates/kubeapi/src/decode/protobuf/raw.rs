//! Objects as bytes, for programs that pass them on.

use super::frames::Frames;
use super::list::{List, ListPart};
use super::{ListItem, Metadata, ProtobufError, envelope, list_metadata, objects, what_and_object};
use crate::decode::OutOfSyncError;

/// Event of a watch whose object is bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawEvent<'a> {
    /// Object that is new, without envelope.
    Added(&'a [u8]),
    /// Object that has changed, without envelope.
    Modified(&'a [u8]),
    /// Object that has been deleted, without envelope.
    Deleted(&'a [u8]),
    /// Bookmark: there are no more events up to this version.
    Bookmark {
        /// Resource version.
        version: &'a str,
        /// True if it marks the end of a streaming list.
        ends_list: bool,
    },
    /// Status with which the server ends the watch.
    Refused {
        /// HTTP status code.
        code: u16,
        /// Message for people.
        message: &'a str,
    },
    /// Event that cannot be decoded, with the reason.
    Unreadable(&'a str),
}

/// Part of a list whose objects are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawItem<'a> {
    /// Object, without envelope.
    Object(&'a [u8]),
    /// Metadata of the list.
    Metadata {
        /// Resource version of the list.
        version: &'a str,
        /// Continue token of the next page, empty on the last page.
        token: &'a str,
        /// Number of objects on the pages after this one, if the server says it.
        left: Option<u64>,
    },
    /// Item that cannot be decoded, with the reason.
    Unreadable(&'a str),
}

/// Decoder of a watch.
#[derive(Default)]
pub struct RawEvents(Frames);

impl RawEvents {
    /// Decodes more bytes of the response.
    ///
    /// # Errors
    /// Fails if the position of the next event is unknown.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(RawEvent<'_>)) -> Result<(), OutOfSyncError> {
        self.0.feed_raw(bytes, &mut |frame| match frame {
            Ok(frame) => match event(frame) {
                Ok(event) => each(event),
                Err(error) => each(RawEvent::Unreadable(&error.to_string())),
            },
            Err(unreadable) => each(RawEvent::Unreadable(&unreadable.message)),
        })
    }

    /// Returns true if the response ended within an event.
    #[must_use]
    pub const fn is_within_an_event(&self) -> bool {
        self.0.is_within_a_frame()
    }
}

/// Decoder of a page of a list.
#[derive(Default)]
pub struct RawList(List);

impl RawList {
    /// Decodes more bytes of the response.
    ///
    /// # Errors
    /// Fails if the response is not a list.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(RawItem<'_>)) -> Result<(), OutOfSyncError> {
        self.0.feed_raw(bytes, &mut |part| match part {
            ListPart::Item(item) => each(RawItem::Object(item)),
            ListPart::Metadata(bytes) => match list_metadata(bytes) {
                ListItem::Metadata { version, token, left } => each(RawItem::Metadata { version, token, left }),
                _ => each(RawItem::Unreadable("the metadata of the list cannot be decoded")),
            },
            ListPart::Unreadable(unreadable) => each(RawItem::Unreadable(&unreadable.message)),
        })
    }

    /// Returns true if the list is complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.is_complete()
    }
}

fn event(frame: &[u8]) -> Result<RawEvent<'_>, ProtobufError> {
    let (what, enveloped) = what_and_object(frame)?;
    let bytes = enveloped.ok_or(ProtobufError::Shape("the event has no object")).and_then(envelope);
    Ok(match what {
        "ERROR" => {
            let (code, message) = bytes.and_then(objects::status).unwrap_or_default();
            RawEvent::Refused { code, message }
        }
        "ADDED" => RawEvent::Added(bytes?),
        "MODIFIED" => RawEvent::Modified(bytes?),
        "DELETED" => RawEvent::Deleted(bytes?),
        "BOOKMARK" => {
            let metadata = Metadata::of(bytes?)?;
            RawEvent::Bookmark { version: metadata.meta.version, ends_list: metadata.ends_list }
        }
        _ => RawEvent::Unreadable("the type of an event is unknown"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fakeapi::protobuf;
    use serde_json::json;

    #[test]
    fn hands_out_objects_as_bytes() {
        let namespace = json!({ "kind": "Namespace", "metadata": { "name": "a", "resourceVersion": "7" } });
        let end = json!({
            "kind": "Namespace",
            "metadata": { "resourceVersion": "9", "annotations": { "k8s.io/initial-events-end": "true" } },
        });
        let gone = json!({ "kind": "Status", "message": "too old", "code": 410 });
        let body = [
            protobuf::event("Namespace", "ADDED", &namespace),
            protobuf::event("Namespace", "MODIFIED", &namespace),
            protobuf::event("Namespace", "DELETED", &namespace),
            protobuf::event("Namespace", "BOOKMARK", &end),
            protobuf::event("Namespace", "OTHER", &namespace),
            protobuf::event("Namespace", "ERROR", &gone),
        ]
        .concat();
        let object = protobuf::object("", &namespace);
        for size in [1, 7, body.len()] {
            let (mut decoder, mut found) = (RawEvents::default(), Vec::new());
            for chunk in body.chunks(size) {
                decoder.feed(chunk, &mut |event| found.push(describe(event, &object))).unwrap();
            }
            let expected =
                ["added true", "modified true", "deleted true", "bookmark 9 true", "unreadable", "refused 410 too old"];
            assert_eq!((found, decoder.is_within_an_event()), (expected.map(str::to_owned).to_vec(), false));
        }
    }

    fn describe(event: RawEvent<'_>, enveloped: &[u8]) -> String {
        let is_in = |bytes: &[u8]| enveloped.windows(bytes.len()).any(|window| window == bytes);
        match event {
            RawEvent::Added(bytes) => format!("added {}", is_in(bytes)),
            RawEvent::Modified(bytes) => format!("modified {}", is_in(bytes)),
            RawEvent::Deleted(bytes) => format!("deleted {}", is_in(bytes)),
            RawEvent::Bookmark { version, ends_list } => format!("bookmark {version} {ends_list}"),
            RawEvent::Refused { code, message } => format!("refused {code} {message}"),
            RawEvent::Unreadable(_) => "unreadable".to_owned(),
        }
    }

    #[test]
    fn hands_out_the_items_of_a_list() {
        let namespace = json!({ "kind": "Namespace", "metadata": { "name": "a" } });
        let metadata = json!({ "resourceVersion": "7", "continue": "more", "remainingItemCount": 5 });
        let body = protobuf::list("Namespace", "v1", &metadata, &[&namespace, &namespace]);
        let (mut list, mut objects, mut found) = (RawList::default(), 0, None);
        list.feed(&body, &mut |item| match item {
            RawItem::Object(_) => objects += 1,
            RawItem::Metadata { version, token, left } => found = Some((version.to_owned(), token.to_owned(), left)),
            RawItem::Unreadable(reason) => panic!("{reason}"),
        })
        .unwrap();
        assert_eq!((objects, found, list.is_complete()), (2, Some(("7".into(), "more".into(), Some(5))), true));
        assert!(RawList::default().feed(b"{\"kind\"", &mut |_| {}).is_err());
    }
}
