//! JSON: watch events on one line each, and lists as one object.

mod istio;
mod items;
mod labelled;
pub(crate) mod lines;
mod objects;
mod pod;
mod text;

use cluster::Kind;
use items::Part;
use lines::Line;
use objects::{Common, Event, ListMetadata, Metadata, Read};
use serde::Deserialize;
use serde_json::error::Category;

use super::{Decoded, ListItem, OBJECT_MAX, Status, Unreadable, UnreadableReason, WatchEvent, decoded};

pub(super) use items::Items;
pub(super) use lines::Lines;

/// Processes more bytes of the response to a watch.
pub(super) fn feed_events(kind: Kind, lines: &mut Lines, bytes: &[u8], each: &mut dyn FnMut(WatchEvent<'_>)) {
    lines.feed(bytes, OBJECT_MAX, |line| match line {
        Line::Whole(line) if line.trim_ascii().is_empty() => {}
        Line::Whole(line) => event(kind, line, each),
        Line::TooLong => each(WatchEvent::unreadable(Unreadable::too_long())),
    });
}

/// Processes more bytes of the response to a list.
pub(super) fn feed_list(kind: Kind, items: &mut Items, bytes: &[u8], each: &mut dyn FnMut(ListItem<'_>)) {
    items.feed(bytes, OBJECT_MAX, |part| match part {
        Part::Item(bytes) => item(kind, bytes, &mut |decoded| each(decoded.into())),
        Part::Metadata(bytes) => list_metadata(bytes, each),
        Part::TooLong => each(ListItem::Unreadable(Unreadable::too_long())),
    });
}

/// Decodes a Status.
pub(super) fn status(bytes: &[u8]) -> Option<Status> {
    let status: Common<'_> = serde_json::from_slice(bytes).ok()?;
    let message = (*status.message).to_owned();
    Some(Status { code: status.code.unwrap_or_default(), message }).filter(|status| !status.message.is_empty())
}

fn event(kind: Kind, line: &[u8], each: &mut dyn FnMut(WatchEvent<'_>)) {
    match kind {
        Kind::Namespace => event_of::<objects::Namespace<'_>>(line, each),
        Kind::Service => event_of::<objects::Service<'_>>(line, each),
        Kind::EndpointSlice => event_of::<objects::EndpointSlice<'_>>(line, each),
        Kind::Pod => event_of::<pod::Pod<'_>>(line, each),
        Kind::ServiceImport => event_of::<objects::ServiceImport<'_>>(line, each),
        Kind::ImportedSlice => event_of::<objects::ImportedSlice<'_>>(line, each),
        Kind::ServiceEntry => event_of::<istio::ServiceEntry<'_>>(line, each),
        Kind::WorkloadEntry => event_of::<istio::WorkloadEntry<'_>>(line, each),
        Kind::WorkloadPod => event_of::<istio::WorkloadPod<'_>>(line, each),
        Kind::Node => event_of::<objects::Node<'_>>(line, each),
    }
}

fn event_of<'a, O: Read + Deserialize<'a>>(line: &'a [u8], each: &mut dyn FnMut(WatchEvent<'_>)) {
    let event: Event<'_, O> = match serde_json::from_slice(line) {
        Ok(event) => event,
        Err(error) => return event_without_object(line, Some(&error), each),
    };
    match &*event.what {
        what @ ("ADDED" | "MODIFIED") => each(WatchEvent::applied(what, decoded_of(&event.object))),
        "DELETED" | "BOOKMARK" => without_object(&event.what, event.object.metadata(), each),
        _ => event_without_object(line, None, each),
    }
}

/// Handles an event whose object was not decoded, because it is invalid or a Status.
fn event_without_object(line: &[u8], error: Option<&serde_json::Error>, each: &mut dyn FnMut(WatchEvent<'_>)) {
    let event: Event<'_, Common<'_>> = match serde_json::from_slice(line) {
        Ok(event) => event,
        Err(again) => return each(WatchEvent::unreadable(nameless(error.unwrap_or(&again)))),
    };
    let meta = event.object.metadata.meta();
    match (&*event.what, error) {
        ("ERROR", _) => {
            each(WatchEvent::Refused { code: event.object.code.unwrap_or_default(), message: &event.object.message });
        }
        ("DELETED" | "BOOKMARK", _) => without_object(&event.what, &event.object.metadata, each),
        (what, Some(error)) => {
            each(WatchEvent::applied(what, Err(Unreadable::new(meta, reason(error), error.to_string()))));
        }
        (what, None) => each(WatchEvent::unknown(meta, what)),
    }
}

fn without_object(what: &str, metadata: &Metadata<'_>, each: &mut dyn FnMut(WatchEvent<'_>)) {
    let meta = metadata.meta();
    each(if what == "DELETED" { WatchEvent::deleted(meta) } else { WatchEvent::bookmark(meta, metadata.ends_list()) });
}

/// Decodes a single object.
pub(crate) fn item(kind: Kind, bytes: &[u8], each: &mut dyn FnMut(Decoded<'_>)) {
    match kind {
        Kind::Namespace => item_of::<objects::Namespace<'_>>(bytes, each),
        Kind::Service => item_of::<objects::Service<'_>>(bytes, each),
        Kind::EndpointSlice => item_of::<objects::EndpointSlice<'_>>(bytes, each),
        Kind::Pod => item_of::<pod::Pod<'_>>(bytes, each),
        Kind::ServiceImport => item_of::<objects::ServiceImport<'_>>(bytes, each),
        Kind::ImportedSlice => item_of::<objects::ImportedSlice<'_>>(bytes, each),
        Kind::ServiceEntry => item_of::<istio::ServiceEntry<'_>>(bytes, each),
        Kind::WorkloadEntry => item_of::<istio::WorkloadEntry<'_>>(bytes, each),
        Kind::WorkloadPod => item_of::<istio::WorkloadPod<'_>>(bytes, each),
        Kind::Node => item_of::<objects::Node<'_>>(bytes, each),
    }
}

fn item_of<'a, O: Read + Deserialize<'a>>(bytes: &'a [u8], each: &mut dyn FnMut(Decoded<'_>)) {
    let error = match serde_json::from_slice::<O>(bytes) {
        Ok(object) => return each(decoded_of(&object)),
        Err(error) => error,
    };
    match serde_json::from_slice::<Common<'_>>(bytes) {
        Ok(common) => each(Err(Unreadable::new(common.metadata.meta(), reason(&error), error.to_string()))),
        Err(_) => each(Err(nameless(&error))),
    }
}

fn decoded_of(object: &impl Read) -> Decoded<'_> {
    let metadata = object.metadata();
    match object.object() {
        Ok(object) => decoded(object, metadata.trigger()),
        Err(message) => Err(Unreadable::new(metadata.meta(), UnreadableReason::Shape, message.to_owned())),
    }
}

fn list_metadata(bytes: &[u8], each: &mut dyn FnMut(ListItem<'_>)) {
    match serde_json::from_slice::<ListMetadata<'_>>(bytes) {
        Ok(ListMetadata { resource_version: version, token, left }) => {
            each(ListItem::Metadata { version: &version, token: &token, left });
        }
        Err(error) => each(ListItem::Unreadable(nameless(&error))),
    }
}

fn nameless(error: &serde_json::Error) -> Unreadable<'static> {
    Unreadable::nameless(reason(error), error.to_string())
}

fn reason(error: &serde_json::Error) -> UnreadableReason {
    if error.classify() == Category::Data { UnreadableReason::Shape } else { UnreadableReason::Syntax }
}
