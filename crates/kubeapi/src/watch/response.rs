//! Response of the API server that is being read: decodes its parts and applies the objects.

use std::time::Duration;

use cluster::object::{Event, Object};
use cluster::{Change, Kind};
use hyper::body::Bytes;
use kube::client::Body;
use listwatch::{Page, Received};

use crate::api::Response;
use crate::decode::{EventDecoder, ListDecoder, ListItem, WatchEvent};
use crate::failure::ApiError;
use crate::rate_limit::Permit;
use crate::watch::next;
use crate::watch::sink::Sink;

/// Response that is being read.
pub(super) struct Reading {
    body: Body,
    content: Content,
    /// Counts the request as in flight, until a list is complete.
    permit: Permit,
    /// Number of bytes that have been read since the last call of [`Reading::new_bytes`].
    bytes: u64,
}

enum Content {
    Events(Events),
    /// Page of a list, and what its metadata says about the next one.
    Items(ListDecoder, Option<Page<String, String>>),
    /// Any list. Only its success matters.
    Check,
}

/// Watch, or list as a stream.
struct Events {
    decoder: EventDecoder,
    /// True until the end of the list.
    is_listing: bool,
    /// Error with which the server ends the watch, found together with other events.
    failure: Option<ApiError>,
}

/// Effect of some events of a watch.
#[derive(Default)]
struct Progress {
    events: u64,
    position: Option<String>,
    ends_list: bool,
}

impl Reading {
    /// Starts to read a list as a stream, which continues as a watch.
    pub(super) fn list_as_stream(kind: Kind, response: Response) -> Reading {
        Reading::events(kind, response, true)
    }

    /// Starts to read a watch.
    pub(super) fn watch(kind: Kind, response: Response) -> Reading {
        Reading::events(kind, response, false)
    }

    fn events(kind: Kind, Response { body, encoding, permit }: Response, is_listing: bool) -> Reading {
        let decoder = EventDecoder::new(encoding, kind);
        Reading { body, content: Content::Events(Events { decoder, is_listing, failure: None }), permit, bytes: 0 }
    }

    /// Starts to read a page of a list.
    pub(super) fn page(kind: Kind, Response { body, encoding, permit }: Response) -> Reading {
        Reading { body, content: Content::Items(ListDecoder::new(encoding, kind), None), permit, bytes: 0 }
    }

    /// Starts to read a list without looking at it.
    pub(super) fn check(Response { body, permit, .. }: Response) -> Reading {
        Reading { body, content: Content::Check, permit, bytes: 0 }
    }

    /// Reads and applies the next part.
    pub(super) async fn read(&mut self, sink: &Sink, silence: Duration) -> Result<Received<String, String>, ApiError> {
        if let Content::Events(events) = &mut self.content {
            if let Some(failure) = events.failure.take() {
                return Err(failure);
            }
            self.permit = self.permit.take().filter(|_| events.is_listing);
        }
        let Some(bytes) = next(&mut self.body, silence).await? else { return self.end() };
        self.bytes += bytes.len() as u64;
        match &mut self.content {
            Content::Events(events) => events.take(&bytes, sink),
            Content::Items(decoder, page) => take_items(decoder, page, &bytes, sink),
            Content::Check => Ok(NOTHING),
        }
    }

    /// Returns the number of bytes that have been read since the last call.
    pub(super) const fn new_bytes(&mut self) -> u64 {
        core::mem::replace(&mut self.bytes, 0)
    }

    /// Handles the end of the response.
    fn end(&mut self) -> Result<Received<String, String>, ApiError> {
        match &mut self.content {
            Content::Events(events) if events.decoder.is_within_an_event() => Err(ApiError::Cut),
            Content::Items(decoder, _) if !decoder.is_complete() => Err(ApiError::Cut),
            Content::Items(_, page) => {
                let page = page.take().ok_or_else(|| ApiError::Unexpected("the list has no metadata".to_owned()))?;
                Ok(Received::PageEnd(page))
            }
            Content::Events(_) | Content::Check => Ok(Received::End),
        }
    }
}

/// Part of a response without events.
const NOTHING: Received<String, String> = Received::Data { events: 0, position: None, ends_list: false };

impl Events {
    fn take(&mut self, bytes: &Bytes, sink: &Sink) -> Result<Received<String, String>, ApiError> {
        let Events { decoder, is_listing, failure } = self;
        let mut progress = Progress::default();
        let decoded = decoder.feed(bytes, &mut |event| match progress.take(event, is_listing, sink) {
            Ok(()) => progress.events += 1,
            Err(error) => *failure = Some(error),
        });
        if failure.is_none() {
            *failure = decoded.err().map(ApiError::from);
        }
        match failure.take_if(|_| progress.events == 0) {
            Some(failure) => Err(failure),
            None => Ok(progress.into()),
        }
    }
}

impl Progress {
    /// Applies one event of a watch.
    fn take(&mut self, event: WatchEvent<'_>, is_listing: &mut bool, sink: &Sink) -> Result<(), ApiError> {
        match event {
            WatchEvent::Applied { object, trigger } => {
                self.advance(object.meta().version, *is_listing);
                applied(object, trigger, *is_listing, sink);
            }
            WatchEvent::Deleted { namespace, name, version } => {
                sink.apply_at(&Event::Deleted { namespace, name }, (!*is_listing).then_some(version));
                self.advance(version, *is_listing);
            }
            WatchEvent::Unreadable(unreadable) => {
                sink.unreadable(&unreadable, (!*is_listing).then_some(unreadable.version));
                self.advance(unreadable.version, *is_listing);
            }
            WatchEvent::Bookmark { version, ends_list: true } if *is_listing => {
                (*is_listing, self.ends_list, self.position) = (false, true, Some(version.to_owned()));
            }
            WatchEvent::Bookmark { version, .. } => {
                if !*is_listing {
                    sink.position(version);
                }
                self.advance(version, *is_listing);
            }
            WatchEvent::Refused { code: 410, .. } => return Err(ApiError::Gone),
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
    fn from(Progress { events, position, ends_list }: Progress) -> Received<String, String> {
        Received::Data { events, position, ends_list }
    }
}

/// Applies an object, and records how long its change took if it is live.
fn applied(object: Object<'_>, trigger: &str, is_listing: bool, sink: &Sink) {
    let version = (!is_listing).then_some(object.meta().version);
    let event = Event::Applied(object);
    let change = sink.apply_at(&event, version);
    let Event::Applied(object) = event else { return };
    if !is_listing && !trigger.is_empty() && matches!(change, Change::Added | Change::Updated) {
        sink.observe(&object, trigger);
    }
}

/// Applies the items of a page.
fn take_items(
    decoder: &mut ListDecoder,
    page: &mut Option<Page<String, String>>,
    bytes: &Bytes,
    sink: &Sink,
) -> Result<Received<String, String>, ApiError> {
    decoder.feed(bytes, &mut |item| match item {
        ListItem::Object(object) => drop(sink.apply(&Event::Applied(object))),
        ListItem::Unreadable(unreadable) => sink.unreadable(&unreadable, None),
        ListItem::Metadata { version, token: "" } => *page = Some(Page::Last(version.to_owned())),
        ListItem::Metadata { token, .. } => *page = Some(Page::Next(token.to_owned())),
    })?;
    Ok(NOTHING)
}
