//! From the octets of a response, as they come, to pieces that a world understands. The encoding is chosen by what the
//! server says that it sent; JSON is the only one so far.

mod items;
mod json;
pub(crate) mod lines;
mod text;

use cluster::Kind;
use cluster::object::Object;
use items::{Items, Part};
use json::{Common, Event, ListMetadata, Read};
use lines::{Line, Lines};
use serde::Deserialize;
use serde_json::error::Category;

/// Octets of the longest object: etcd takes 1.5 MiB, the API server requests of 3 MiB, and JSON may write an octet as
/// six (`\u003c`), which names and addresses never need.
pub(crate) const OBJECT_MAX: usize = 8 << 20;

/// How a response is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Events one a line; lists in one object.
    Json,
}

impl Encoding {
    /// The encoding by `Content-Type`.
    pub(crate) fn of(content_type: &str) -> Option<Encoding> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case("application/json").then_some(Encoding::Json)
    }
}

/// What a response says, piece by piece.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    /// An object exists in this state. `trigger` is when that happened which it shows, if somebody wrote it down.
    Applied { object: Object<'a>, trigger: &'a str },
    /// An object is gone.
    Deleted { namespace: &'a str, name: &'a str, version: &'a str },
    /// Nothing happened until this version; a streaming list may be complete by it.
    Bookmark { version: &'a str, ends_list: bool },
    /// The server ends the watch: a Status.
    Refused { code: u16, message: &'a str },
    /// Something cannot be read; its names are empty if they cannot be read either.
    Unreadable { namespace: &'a str, name: &'a str, version: &'a str, reason: Unreadable, problem: String },
    /// What a list says of itself.
    List { version: &'a str, token: &'a str },
}

/// Why an object cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unreadable {
    /// It is not even JSON.
    Syntax,
    /// Something in it is of another type than it must be.
    Shape,
    /// It is longer than [`OBJECT_MAX`].
    TooLong,
    /// It is of no use without a name.
    Unnamed,
    /// This is no event of a watch.
    Event,
}

impl Unreadable {
    /// As metrics say it.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Unreadable::Syntax => "syntax",
            Unreadable::Shape => "shape",
            Unreadable::TooLong => "too_long",
            Unreadable::Unnamed => "unnamed",
            Unreadable::Event => "event",
        }
    }
}

/// The response to a watch.
pub(crate) enum EventDecoder {
    Json(Kind, Lines),
}

impl EventDecoder {
    pub(crate) fn new(encoding: Encoding, kind: Kind) -> EventDecoder {
        match encoding {
            Encoding::Json => EventDecoder::Json(kind, Lines::default()),
        }
    }

    /// Takes more of the response and hands out what it says.
    pub(crate) fn feed(&mut self, octets: &[u8], each: &mut dyn FnMut(Piece<'_>)) {
        match self {
            EventDecoder::Json(kind, lines) => lines.feed(octets, OBJECT_MAX, |line| match line {
                Line::Whole(line) if line.trim_ascii().is_empty() => {}
                Line::Whole(line) => event(*kind, line, each),
                Line::TooLong => each(too_long()),
            }),
        }
    }

    /// Whether the response ended within an event.
    pub(crate) fn is_within_an_event(&self) -> bool {
        match self {
            EventDecoder::Json(_, lines) => lines.is_within_a_line(),
        }
    }
}

/// The response to a list.
pub(crate) enum ListDecoder {
    Json(Kind, Items),
}

impl ListDecoder {
    pub(crate) fn new(encoding: Encoding, kind: Kind) -> ListDecoder {
        match encoding {
            Encoding::Json => ListDecoder::Json(kind, Items::default()),
        }
    }

    /// Takes more of the response and hands out what it says.
    pub(crate) fn feed(&mut self, octets: &[u8], each: &mut dyn FnMut(Piece<'_>)) {
        match self {
            ListDecoder::Json(kind, items) => items.feed(octets, OBJECT_MAX, |part| match part {
                Part::Item(octets) => item(*kind, octets, each),
                Part::Metadata(octets) => list_metadata(octets, each),
                Part::TooLong => each(too_long()),
            }),
        }
    }

    /// Whether a whole list was there.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            ListDecoder::Json(_, items) => items.is_complete(),
        }
    }
}

fn event(kind: Kind, line: &[u8], each: &mut dyn FnMut(Piece<'_>)) {
    match kind {
        Kind::Namespace => event_of::<json::Namespace<'_>>(line, each),
        Kind::Service => event_of::<json::Service<'_>>(line, each),
        Kind::EndpointSlice => event_of::<json::EndpointSlice<'_>>(line, each),
        Kind::Pod => event_of::<json::Pod<'_>>(line, each),
        Kind::ServiceImport => event_of::<json::ServiceImport<'_>>(line, each),
        Kind::ImportedSlice => event_of::<json::ImportedSlice<'_>>(line, each),
        Kind::ServiceEntry => event_of::<json::ServiceEntry<'_>>(line, each),
        Kind::WorkloadEntry => event_of::<json::WorkloadEntry<'_>>(line, each),
        Kind::WorkloadPod => event_of::<json::WorkloadPod<'_>>(line, each),
        Kind::Node => event_of::<json::Node<'_>>(line, each),
    }
}

fn event_of<'a, O: Read + Deserialize<'a>>(line: &'a [u8], each: &mut dyn FnMut(Piece<'_>)) {
    let event: Event<'_, O> = match serde_json::from_slice(line) {
        Ok(event) => event,
        Err(error) => return event_without_object(line, Some(&error), each),
    };
    match &*event.what {
        "ADDED" | "MODIFIED" => applied(&event.object, each),
        "DELETED" | "BOOKMARK" => without_object(&event.what, event.object.metadata(), each),
        _ => event_without_object(line, None, each),
    }
}

/// An event whose object is not read, because it cannot be or because it is a Status.
fn event_without_object(line: &[u8], error: Option<&serde_json::Error>, each: &mut dyn FnMut(Piece<'_>)) {
    let event: Event<'_, Common<'_>> = match serde_json::from_slice(line) {
        Ok(event) => event,
        Err(again) => return each(nameless(error.unwrap_or(&again))),
    };
    let meta = event.object.metadata.meta();
    match (&*event.what, error) {
        ("ERROR", _) => {
            each(Piece::Refused { code: event.object.code.unwrap_or_default(), message: &event.object.message });
        }
        ("DELETED" | "BOOKMARK", _) => without_object(&event.what, &event.object.metadata, each),
        (_, Some(error)) => each(unreadable(&event.object.metadata, reason(error), error.to_string())),
        (what, None) => {
            let problem = format!("'{what}' is no event");
            each(Piece::Unreadable {
                namespace: meta.namespace,
                name: meta.name,
                version: meta.version,
                reason: Unreadable::Event,
                problem,
            });
        }
    }
}

fn without_object(what: &str, metadata: &json::Metadata<'_>, each: &mut dyn FnMut(Piece<'_>)) {
    let meta = metadata.meta();
    each(if what == "DELETED" {
        Piece::Deleted { namespace: meta.namespace, name: meta.name, version: meta.version }
    } else {
        Piece::Bookmark { version: meta.version, ends_list: metadata.ends_list() }
    });
}

/// Reads one object that stands alone.
pub(crate) fn item(kind: Kind, octets: &[u8], each: &mut dyn FnMut(Piece<'_>)) {
    match kind {
        Kind::Namespace => item_of::<json::Namespace<'_>>(octets, each),
        Kind::Service => item_of::<json::Service<'_>>(octets, each),
        Kind::EndpointSlice => item_of::<json::EndpointSlice<'_>>(octets, each),
        Kind::Pod => item_of::<json::Pod<'_>>(octets, each),
        Kind::ServiceImport => item_of::<json::ServiceImport<'_>>(octets, each),
        Kind::ImportedSlice => item_of::<json::ImportedSlice<'_>>(octets, each),
        Kind::ServiceEntry => item_of::<json::ServiceEntry<'_>>(octets, each),
        Kind::WorkloadEntry => item_of::<json::WorkloadEntry<'_>>(octets, each),
        Kind::WorkloadPod => item_of::<json::WorkloadPod<'_>>(octets, each),
        Kind::Node => item_of::<json::Node<'_>>(octets, each),
    }
}

fn item_of<'a, O: Read + Deserialize<'a>>(octets: &'a [u8], each: &mut dyn FnMut(Piece<'_>)) {
    let error = match serde_json::from_slice::<O>(octets) {
        Ok(object) => return applied(&object, each),
        Err(error) => error,
    };
    match serde_json::from_slice::<Common<'_>>(octets) {
        Ok(common) => each(unreadable(&common.metadata, reason(&error), error.to_string())),
        Err(_) => each(nameless(&error)),
    }
}

fn applied(object: &impl Read, each: &mut dyn FnMut(Piece<'_>)) {
    let metadata = object.metadata();
    if metadata.meta().name.is_empty() {
        return each(unreadable(metadata, Unreadable::Unnamed, "it has no name".to_owned()));
    }
    match object.object() {
        Ok(object) => each(Piece::Applied { object, trigger: metadata.trigger() }),
        Err(problem) => each(unreadable(metadata, Unreadable::Shape, problem.to_owned())),
    }
}

fn list_metadata(octets: &[u8], each: &mut dyn FnMut(Piece<'_>)) {
    match serde_json::from_slice::<ListMetadata<'_>>(octets) {
        Ok(metadata) => each(Piece::List { version: &metadata.resource_version, token: &metadata.token }),
        Err(error) => each(nameless(&error)),
    }
}

fn unreadable<'a>(metadata: &'a json::Metadata<'_>, reason: Unreadable, problem: String) -> Piece<'a> {
    let meta = metadata.meta();
    Piece::Unreadable { namespace: meta.namespace, name: meta.name, version: meta.version, reason, problem }
}

fn nameless(error: &serde_json::Error) -> Piece<'static> {
    let (reason, problem) = (reason(error), error.to_string());
    Piece::Unreadable { namespace: "", name: "", version: "", reason, problem }
}

fn too_long() -> Piece<'static> {
    let problem = format!("it is longer than {OBJECT_MAX} octets");
    Piece::Unreadable { namespace: "", name: "", version: "", reason: Unreadable::TooLong, problem }
}

fn reason(error: &serde_json::Error) -> Unreadable {
    if error.classify() == Category::Data { Unreadable::Shape } else { Unreadable::Syntax }
}

#[cfg(test)]
mod tests;
