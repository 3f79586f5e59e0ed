//! Streaming decoder from the bytes of a response to events and items for a [`cluster::Reducer`].
//!
//! The `Content-Type` of the response selects the encoding: protobuf for built-in kinds, and JSON for custom resources
//! and for servers without protobuf. Both encodings yield the same [`WatchEvent`]s and [`ListItem`]s for the same
//! objects. An object that cannot be decoded yields [`Unreadable`], and decoding continues with the next one.

pub(crate) mod json;
mod protobuf;

use cluster::Kind;
use cluster::object::{AddressType, Meta, Object};
use json::{Items, Lines};
use protobuf::{Frames, List};

pub(crate) use json::item;
pub use protobuf::{RawEvent, RawEvents, RawItem, RawList};

/// Maximum size of an object in bytes. etcd stores objects up to 1.5 MiB, and the API server accepts requests up to 3
/// MiB. JSON may escape a byte as six (`\u003c`), but names and addresses never need that.
pub(crate) const OBJECT_MAX: usize = 8 << 20;

/// Kind of the target of an endpoint that is a pod.
const POD: &str = "Pod";

/// Encoding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// One event per line. A list is one object.
    Json,
    /// Kubernetes protobuf. A list is in an envelope. Events are in length-prefixed frames.
    Protobuf,
}

/// `Content-Type` of the encodings.
pub(crate) const JSON: &str = "application/json";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// `Accept` header for either, protobuf preferred.
const EITHER: &str = "application/vnd.kubernetes.protobuf, application/json";

impl Encoding {
    /// Returns the encoding for a `Content-Type`.
    #[must_use]
    pub fn of(content_type: &str) -> Option<Encoding> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let is = |known: &str| media_type.eq_ignore_ascii_case(known);
        if is(JSON) { Some(Encoding::Json) } else { is(PROTOBUF).then_some(Encoding::Protobuf) }
    }

    /// Returns the value for the `Accept` header. Custom resources have no protobuf encoding.
    pub(crate) const fn accepted(kind: Kind) -> &'static str {
        match kind {
            Kind::ServiceImport | Kind::ServiceEntry | Kind::WorkloadEntry | Kind::WorkloadPod => JSON,
            _ => EITHER,
        }
    }
}

/// Event of a watch.
#[derive(Debug)]
pub enum WatchEvent<'a> {
    /// Object in its current state.
    Applied {
        /// Decoded object.
        object: Object<'a>,
        /// Time of the change that triggered this slice (`endpoints.kubernetes.io/last-change-trigger-time`), or empty.
        trigger: &'a str,
        /// True if the object was added, false if it has changed.
        is_new: bool,
    },
    /// Deletion of an object.
    Deleted {
        /// Namespace of the object, empty for a Namespace.
        namespace: &'a str,
        /// Name of the object.
        name: &'a str,
        /// Resource version of the deletion.
        version: &'a str,
    },
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
    /// Object or event that cannot be decoded.
    Unreadable {
        /// Object, as far as it could be decoded.
        unreadable: Unreadable<'a>,
        /// True if the object was added.
        is_new: bool,
    },
}

/// Part of a list.
#[derive(Debug)]
pub enum ListItem<'a> {
    /// Object of the list.
    Object(Object<'a>),
    /// Item that cannot be decoded.
    Unreadable(Unreadable<'a>),
    /// Metadata of the list.
    Metadata {
        /// Resource version of the list.
        version: &'a str,
        /// Continue token of the next page, empty on the last page.
        token: &'a str,
        /// Number of objects on the pages after this one (`remainingItemCount`), if the server says it.
        left: Option<u64>,
    },
}

/// Number of objects as of a version, from a list that begins with at most one of them.
#[derive(Debug, Default)]
pub struct ListCount {
    items: u64,
    left: Option<u64>,
}

impl ListCount {
    /// Adds an object of the list.
    pub const fn item(&mut self) {
        self.items += 1;
    }

    /// Reads the metadata of the list. `is_of_version` is false if the list is that of another version than the one
    /// asked for: what stands in for an API server, such as a relay, may answer with its latest one.
    pub const fn metadata(&mut self, is_of_version: bool, token: &str, left: Option<u64>) {
        self.left = match (is_of_version, token.is_empty()) {
            (false, _) => None,
            (true, true) => Some(0),
            (true, false) => left,
        };
    }

    /// Returns the number, if the source has said it.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.left.map(|left| left.saturating_add(self.items))
    }
}

/// Object that cannot be decoded. The strings are empty if they cannot be decoded either.
#[derive(Debug)]
pub struct Unreadable<'a> {
    /// Namespace of the object.
    pub namespace: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// Resource version of the object.
    pub version: &'a str,
    /// Reason for metrics.
    pub reason: UnreadableReason,
    /// Reason for people.
    pub message: String,
}

/// Decoded object, with the time of the change that triggered it (`endpoints.kubernetes.io/last-change-trigger-time`)
/// or an empty text.
pub(crate) type Decoded<'a> = Result<(Object<'a>, &'a str), Unreadable<'a>>;

/// Checks a decoded object.
fn decoded<'a>(object: Object<'a>, trigger: &'a str) -> Decoded<'a> {
    let meta = object.meta();
    if meta.name.is_empty() {
        return Err(Unreadable::new(meta, UnreadableReason::Unnamed, "it has no name".to_owned()));
    }
    Ok((object, trigger))
}

impl<'a> From<Decoded<'a>> for ListItem<'a> {
    fn from(decoded: Decoded<'a>) -> ListItem<'a> {
        match decoded {
            Ok((object, _)) => ListItem::Object(object),
            Err(unreadable) => ListItem::Unreadable(unreadable),
        }
    }
}

impl<'a> WatchEvent<'a> {
    /// Event of type `ADDED` or `MODIFIED`.
    fn applied(what: &str, decoded: Decoded<'a>) -> WatchEvent<'a> {
        let is_new = what == "ADDED";
        match decoded {
            Ok((object, trigger)) => WatchEvent::Applied { object, trigger, is_new },
            Err(unreadable) => WatchEvent::Unreadable { unreadable, is_new },
        }
    }

    fn deleted(meta: Meta<'a>) -> WatchEvent<'a> {
        WatchEvent::Deleted { namespace: meta.namespace, name: meta.name, version: meta.version }
    }

    fn bookmark(meta: Meta<'a>, ends_list: bool) -> WatchEvent<'a> {
        WatchEvent::Bookmark { version: meta.version, ends_list }
    }

    /// Event of an unknown type.
    fn unknown(meta: Meta<'a>, what: &str) -> WatchEvent<'a> {
        let unreadable = Unreadable::new(meta, UnreadableReason::Event, format!("'{what}' is no event"));
        WatchEvent::unreadable(unreadable)
    }

    /// Event of which not even the type is known.
    fn unreadable(unreadable: Unreadable<'a>) -> WatchEvent<'a> {
        WatchEvent::Unreadable { unreadable, is_new: false }
    }
}

impl<'a> Unreadable<'a> {
    fn new(meta: Meta<'a>, reason: UnreadableReason, message: String) -> Unreadable<'a> {
        Unreadable { namespace: meta.namespace, name: meta.name, version: meta.version, reason, message }
    }

    fn nameless(reason: UnreadableReason, message: String) -> Unreadable<'static> {
        Unreadable::new(Meta::default(), reason, message)
    }

    fn too_long() -> Unreadable<'static> {
        Unreadable::nameless(UnreadableReason::TooLong, format!("it is longer than {OBJECT_MAX} bytes"))
    }
}

/// Reason why an object cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnreadableReason {
    /// Not valid JSON or protobuf.
    Syntax,
    /// Valid JSON or protobuf, but a field has the wrong type.
    Shape,
    /// Longer than [`OBJECT_MAX`].
    TooLong,
    /// Object without a name.
    Unnamed,
    /// Unknown type of watch event.
    Event,
}

impl UnreadableReason {
    /// Returns the value of the metric label `reason`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            UnreadableReason::Syntax => "syntax",
            UnreadableReason::Shape => "shape",
            UnreadableReason::TooLong => "too_long",
            UnreadableReason::Unnamed => "unnamed",
            UnreadableReason::Event => "event",
        }
    }
}

/// Error: the start of the next object cannot be found, so the rest of the response is useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the start of its next object cannot be found")]
pub struct OutOfSyncError;

/// Decoder for the response to a watch.
pub struct EventDecoder {
    kind: Kind,
    events: Events,
}

enum Events {
    Json(Lines),
    Protobuf(Frames),
}

impl EventDecoder {
    /// Creates a decoder for a new response.
    #[must_use]
    pub fn new(encoding: Encoding, kind: Kind) -> EventDecoder {
        let events = match encoding {
            Encoding::Json => Events::Json(Lines::default()),
            Encoding::Protobuf => Events::Protobuf(Frames::default()),
        };
        EventDecoder { kind, events }
    }

    /// Decodes more bytes of the response, and calls `each` for each complete event.
    ///
    /// # Errors
    /// [`OutOfSyncError`] if the rest of this response cannot be decoded.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(WatchEvent<'_>)) -> Result<(), OutOfSyncError> {
        match &mut self.events {
            Events::Json(lines) => {
                json::feed_events(self.kind, lines, bytes, each);
                Ok(())
            }
            Events::Protobuf(frames) => frames.feed(self.kind, bytes, each),
        }
    }

    /// Returns true if the response ended within an event.
    #[must_use]
    pub fn is_within_an_event(&self) -> bool {
        match &self.events {
            Events::Json(lines) => lines.is_within_a_line(),
            Events::Protobuf(frames) => frames.is_within_a_frame(),
        }
    }
}

/// Decoder for the response to a list.
pub struct ListDecoder {
    kind: Kind,
    list: Lists,
}

enum Lists {
    Json(Items),
    Protobuf(List),
}

impl ListDecoder {
    /// Creates a decoder for a new response.
    #[must_use]
    pub fn new(encoding: Encoding, kind: Kind) -> ListDecoder {
        let list = match encoding {
            Encoding::Json => Lists::Json(Items::default()),
            Encoding::Protobuf => Lists::Protobuf(List::default()),
        };
        ListDecoder { kind, list }
    }

    /// Decodes more bytes of the response, and calls `each` for each complete item and for the metadata.
    ///
    /// # Errors
    /// [`OutOfSyncError`] if the rest of this response cannot be decoded.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(ListItem<'_>)) -> Result<(), OutOfSyncError> {
        match &mut self.list {
            Lists::Json(items) => {
                json::feed_list(self.kind, items, bytes, each);
                Ok(())
            }
            Lists::Protobuf(list) => list.feed(self.kind, bytes, each),
        }
    }

    /// Returns true if the response contained a complete list.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &self.list {
            Lists::Json(items) => items.is_complete(),
            Lists::Protobuf(list) => list.is_complete(),
        }
    }
}

/// Parses `addressType` of an EndpointSlice. `Err` has the description of the error.
fn address_type(text: &str) -> Result<AddressType, &'static str> {
    match text {
        "IPv4" => Ok(AddressType::Ipv4),
        "IPv6" => Ok(AddressType::Ipv6),
        "FQDN" => Ok(AddressType::Fqdn),
        _ => Err("the address type is not IPv4, IPv6 or FQDN"),
    }
}

/// `Status` object that the server sends instead of a result.
#[derive(Debug, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code, or 0 if absent.
    pub code: u16,
    /// Message for people.
    pub message: String,
}

impl Status {
    /// Decodes a Status. Returns `None` if the body is not one.
    #[must_use]
    pub fn read(encoding: Encoding, bytes: &[u8]) -> Option<Status> {
        match encoding {
            Encoding::Json => json::status(bytes),
            Encoding::Protobuf => protobuf::status(bytes),
        }
    }
}

#[cfg(test)]
mod malformed_tests;
#[cfg(test)]
mod tests;
