//! Response of the API server that is being read: decodes its parts and applies the objects.

use std::time::Duration;

use cluster::object::{Event, Object};
use cluster::{Change, Kind};
use host::invariant::{broken, holds};
use host::planted::{Bug, is_planted};
use hyper::body::Bytes;
use listwatch::{Page, Received};

use crate::api::{RESTORED, Response};
use crate::body::ResponseBody;
use crate::decode::{EventDecoder, ListDecoder, ListItem, WatchEvent};
use crate::failure::ApiError;
use crate::rate_limit::Permit;
use crate::watch::sink::Sink;

/// Response that is being read.
pub(super) struct Reading {
    body: ResponseBody,
    content: Content,
    /// Counts the request as in flight, until a list is complete.
    permit: Permit,
    /// Number of bytes that have been read since the last call of [`Reading::new_bytes`].
    bytes: u64,
    /// Number of objects that were added, less those that were removed, since the last call of
    /// [`Reading::new_objects`].
    objects: i64,
}

enum Content {
    Events(Events),
    /// Page of a list, and what its metadata says about the next one.
    Items(Items),
    /// Any list. Only its success matters.
    Check,
    /// Consistent list, which must not be older than this version.
    Confirmation(ListDecoder, String),
}

/// Page of a list.
struct Items {
    decoder: ListDecoder,
    /// Continuation token, version and number of the objects left, from the metadata of this page.
    page: Option<Page<String, String>>,
    /// Version that the list must have reached, for the first page.
    floor: Option<String>,
}

/// Watch, or list as a stream.
struct Events {
    decoder: EventDecoder,
    /// True until the end of the list.
    is_listing: bool,
    /// Version that a list must have reached, and then that of the last event, if there are several servers.
    floor: Option<String>,
    /// Error with which the server ends the watch, found together with other events.
    failure: Option<ApiError>,
}

/// Effect of some events of a watch.
#[derive(Default)]
struct Progress {
    events: u64,
    position: Option<String>,
    ends_list: bool,
    /// Number of objects that were added, less those that were removed.
    objects: i64,
}

impl Reading {
    /// Starts to read a list as a stream, which continues as a watch. With several servers, the list must have reached
    /// the version `floor`, and each event after it that of the one before.
    pub(super) fn list_as_stream(kind: Kind, response: Response, floor: Option<String>) -> Reading {
        Reading::events(kind, response, floor, true)
    }

    /// Starts to read a watch. With several servers, each event must have reached the version of the one before, and
    /// the first one `floor`.
    pub(super) fn watch(kind: Kind, response: Response, floor: Option<String>) -> Reading {
        Reading::events(kind, response, floor, false)
    }

    fn events(kind: Kind, response: Response, floor: Option<String>, is_listing: bool) -> Reading {
        let Response { body, encoding, permit } = response;
        let decoder = EventDecoder::new(encoding, kind);
        let events = Events { decoder, is_listing, floor, failure: None };
        Reading::of(body, Content::Events(events), permit)
    }

    /// Starts to read a page of a list, which must have reached a version.
    pub(super) fn page(kind: Kind, response: Response, floor: Option<String>) -> Reading {
        let Response { body, encoding, permit } = response;
        let items = Items { decoder: ListDecoder::new(encoding, kind), page: None, floor };
        Reading::of(body, Content::Items(items), permit)
    }

    /// Starts to read a consistent list, to compare its version.
    pub(super) fn confirmation(kind: Kind, response: Response, known: String) -> Reading {
        let Response { body, encoding, permit } = response;
        Reading::of(body, Content::Confirmation(ListDecoder::new(encoding, kind), known), permit)
    }

    /// Starts to read a list without looking at it.
    pub(super) fn check(Response { body, permit, .. }: Response) -> Reading {
        Reading::of(body, Content::Check, permit)
    }

    const fn of(body: ResponseBody, content: Content, permit: Permit) -> Reading {
        Reading { body, content, permit, bytes: 0, objects: 0 }
    }

    /// Reads and applies the next part.
    pub(super) async fn read(&mut self, sink: &Sink, silence: Duration) -> Result<Received<String, String>, ApiError> {
        if let Content::Events(events) = &mut self.content {
            if let Some(failure) = events.failure.take() {
                return Err(failure);
            }
            self.permit = self.permit.take().filter(|_| events.is_listing);
        }
        let Some(bytes) = self.body.next(silence).await? else { return self.end() };
        self.bytes += bytes.len() as u64;
        match &mut self.content {
            Content::Events(events) => events.take(&bytes, sink, &mut self.objects),
            Content::Items(items) => items.take(&bytes, sink, &mut self.objects),
            Content::Check => Ok(NOTHING),
            Content::Confirmation(decoder, known) => confirm(decoder, known, &bytes),
        }
    }

    /// Returns the number of bytes that have been read since the last call.
    pub(super) const fn new_bytes(&mut self) -> u64 {
        core::mem::replace(&mut self.bytes, 0)
    }

    /// Returns the number of objects that were added, less those that were removed, since the last call.
    pub(super) const fn new_objects(&mut self) -> i64 {
        core::mem::replace(&mut self.objects, 0)
    }

    /// Handles the end of the response.
    fn end(&mut self) -> Result<Received<String, String>, ApiError> {
        match &mut self.content {
            Content::Events(events) if events.decoder.is_within_an_event() => Err(ApiError::Cut),
            Content::Items(Items { decoder, .. }) | Content::Confirmation(decoder, _) if !decoder.is_complete() => {
                Err(ApiError::Cut)
            }
            Content::Items(items) => {
                let page =
                    items.page.take().ok_or_else(|| ApiError::Unexpected("the list has no metadata".to_owned()))?;
                Ok(Received::PageEnd(page))
            }
            Content::Events(_) | Content::Check | Content::Confirmation(..) => Ok(Received::End),
        }
    }
}

/// Part of a response without events.
const NOTHING: Received<String, String> = Received::Data { events: 0, position: None, ends_list: false };

impl Events {
    fn take(&mut self, bytes: &Bytes, sink: &Sink, objects: &mut i64) -> Result<Received<String, String>, ApiError> {
        let Events { decoder, is_listing, floor, failure } = self;
        let mut progress = Progress::default();
        let decoded = decoder.feed(bytes, &mut |event| {
            // Events after an older event belong to another history.
            if matches!(failure, Some(ApiError::Older)) {
                return;
            }
            let taken = check_order(&event, *is_listing, floor);
            match taken.and_then(|()| progress.take(event, is_listing, sink)) {
                Ok(()) => progress.events += 1,
                Err(error) => *failure = Some(error),
            }
        });
        *objects += progress.objects;
        if failure.is_none() {
            *failure = decoded.err().map(ApiError::from);
        }
        match failure.take_if(|_| progress.events == 0) {
            Some(failure) => Err(failure),
            None => Ok(progress.into()),
        }
    }
}

/// Compares the version of an event with that of the one before, and keeps it, if there are several servers.
fn check_order(event: &WatchEvent<'_>, is_listing: bool, floor: &mut Option<String>) -> Result<(), ApiError> {
    let Some(floor) = floor else { return Ok(()) };
    let version = match event {
        WatchEvent::Refused { code: 410, message } if message.contains(RESTORED) => return Err(ApiError::Restored),
        WatchEvent::Refused { .. } => return Ok(()),
        WatchEvent::Bookmark { version, ends_list: true } => version,
        // Objects of a list are as old as their last change.
        _ if is_listing => return Ok(()),
        WatchEvent::Applied { object, .. } => object.meta().version,
        WatchEvent::Deleted { version, .. } | WatchEvent::Bookmark { version, .. } => version,
        WatchEvent::Unreadable { unreadable, .. } => unreadable.version,
    };
    if is_older(version, floor) {
        return Err(ApiError::Older);
    }
    floor.clear();
    floor.push_str(version);
    Ok(())
}

/// Returns true if a version is older than another one. Versions are decimal numbers (KEP-5504). Others are not
/// compared.
fn is_older(version: &str, other: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !number(version) || !number(other) {
        return false;
    }
    let (version, other) = (version.trim_start_matches('0'), other.trim_start_matches('0'));
    (version.len(), version) < (other.len(), other)
}

impl Progress {
    /// Applies one event of a watch.
    fn take(&mut self, event: WatchEvent<'_>, is_listing: &mut bool, sink: &Sink) -> Result<(), ApiError> {
        match event {
            WatchEvent::Applied { object, trigger, is_new } => {
                self.objects += i64::from(is_new);
                self.advance(object.meta().version, *is_listing);
                applied(object, trigger, *is_listing, sink);
            }
            WatchEvent::Deleted { namespace, name, version } => {
                self.objects -= 1;
                sink.apply_at(&Event::Deleted { namespace, name }, (!*is_listing).then_some(version));
                self.advance(version, *is_listing);
            }
            WatchEvent::Unreadable { unreadable, is_new } => {
                // One of a list whose type cannot be read is in it, too.
                self.objects += i64::from(is_new || *is_listing);
                sink.unreadable(&unreadable, (!*is_listing).then_some(unreadable.version));
                self.advance(unreadable.version, *is_listing);
            }
            WatchEvent::Bookmark { version, ends_list: true } if *is_listing => {
                holds(!self.ends_list, "a list ends once");
                (*is_listing, self.ends_list, self.position) = (false, true, Some(version.to_owned()));
            }
            WatchEvent::Bookmark { version, .. } => {
                if !*is_listing {
                    sink.position(version);
                }
                self.advance(version, *is_listing);
            }
            WatchEvent::Refused { code: 410, .. } if !is_planted(Bug::IgnoresExpiry) => return Err(ApiError::Gone),
            WatchEvent::Refused { code, message } => {
                return Err(ApiError::Status { code, message: message.to_owned(), retry_after: None });
            }
        }
        Ok(())
    }

    /// Stores the version up to which everything is known. Those within a list say nothing.
    fn advance(&mut self, version: &str, is_listing: bool) {
        if !is_listing && !version.is_empty() {
            let known = self.position.get_or_insert_default();
            known.clear();
            known.push_str(version);
        }
    }
}

impl From<Progress> for Received<String, String> {
    fn from(Progress { events, position, ends_list, .. }: Progress) -> Received<String, String> {
        Received::Data { events, position, ends_list }
    }
}

/// Applies an object, and records how long its change took if it is live.
fn applied(object: Object<'_>, trigger: &str, is_listing: bool, sink: &Sink) {
    let version = (!is_listing).then_some(object.meta().version);
    let event = Event::Applied(object);
    let change = sink.apply_at(&event, version);
    let Event::Applied(object) = event else { return broken("an event is what it was made as") };
    if !is_listing && !trigger.is_empty() && matches!(change, Change::Added | Change::Updated) {
        sink.observe(&object, trigger);
    }
}

impl Items {
    /// Applies the items of a page. Its metadata, with the version, come before them.
    fn take(&mut self, bytes: &Bytes, sink: &Sink, objects: &mut i64) -> Result<Received<String, String>, ApiError> {
        let Items { decoder, page, floor } = self;
        let mut is_old = false;
        decoder.feed(bytes, &mut |item| match item {
            ListItem::Metadata { version, .. } if floor.as_ref().is_some_and(|floor| is_older(version, floor)) => {
                is_old = true;
            }
            _ if is_old => {}
            ListItem::Object(object) => {
                *objects += 1;
                sink.apply(&Event::Applied(object));
            }
            ListItem::Unreadable(unreadable) => {
                *objects += 1;
                sink.unreadable(&unreadable, None);
            }
            ListItem::Metadata { version, token: "", .. } => *page = Some(Page::Last(version.to_owned())),
            ListItem::Metadata { token, .. } => *page = Some(Page::Next(token.to_owned())),
        })?;
        if is_old { Err(ApiError::Older) } else { Ok(NOTHING) }
    }
}

/// Compares the version of a consistent list with the known one.
pub(super) fn confirm(
    decoder: &mut ListDecoder,
    known: &str,
    bytes: &Bytes,
) -> Result<Received<String, String>, ApiError> {
    let mut is_old = false;
    decoder.feed(bytes, &mut |item| {
        if let ListItem::Metadata { version, .. } = item {
            is_old |= is_older(version, known) && !is_planted(Bug::TrustsPosition);
        }
    })?;
    if is_old { Err(ApiError::Restored) } else { Ok(NOTHING) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_versions_as_numbers() {
        for (version, other) in
            [("9", "10"), ("009", "10"), ("99", "0100"), ("18446744073709551616", "18446744073709551617")]
        {
            assert!(is_older(version, other) && !is_older(other, version), "{version} {other}");
        }
        for (version, other) in [("", "1"), ("1", ""), ("a", "1"), ("1", "b"), ("7", "07"), ("-1", "1")] {
            assert!(!is_older(version, other), "{version} {other}");
        }
    }

    #[test]
    fn accepts_events_in_their_order_only() {
        let bookmark = |version| WatchEvent::Bookmark { version, ends_list: false };
        let mut floor = Some("7".to_owned());
        for (version, is_accepted) in [("7", true), ("9", true), ("8", false), ("10", true), ("9", false)] {
            assert_eq!(check_order(&bookmark(version), false, &mut floor).is_ok(), is_accepted, "{version}");
        }
        assert!(check_order(&bookmark("1"), false, &mut None).is_ok());
    }
}
