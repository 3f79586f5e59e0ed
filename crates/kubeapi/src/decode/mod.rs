//! From the octets of a response, as they come, to pieces that a world understands. The encoding is chosen by what the
//! server says that it sent: protobuf for the kinds that it has built in, JSON for those that were defined later and
//! from servers that know nothing else.
//!
//! Both encodings give the same pieces of the same objects. An object that cannot be read is a piece too, and those
//! behind it are read.

pub(crate) mod json;
mod protobuf;

use cluster::Kind;
use cluster::object::{AddressType, Meta, Object};
use json::{Items, Lines};
use protobuf::{Frames, List};

pub(crate) use json::item;

/// Octets of the longest object: etcd takes 1.5 MiB, the API server requests of 3 MiB, and JSON may write an octet as
/// six (`\u003c`), which names and addresses never need.
pub const OBJECT_MAX: usize = 8 << 20;

/// How a response is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Events one a line; lists in one object.
    Json,
    /// The protobuf of Kubernetes: a list in an envelope, events in frames with their length before them.
    Protobuf,
}

/// `Content-Type` of the two.
pub(crate) const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// Either, protobuf rather.
const EITHER: &str = "application/vnd.kubernetes.protobuf, application/json";

impl Encoding {
    /// The encoding by `Content-Type`.
    #[must_use]
    pub fn of(content_type: &str) -> Option<Encoding> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let is = |known: &str| media_type.eq_ignore_ascii_case(known);
        if is(JSON) { Some(Encoding::Json) } else { is(PROTOBUF).then_some(Encoding::Protobuf) }
    }

    /// What to ask for with `Accept`: a resource that was defined in the cluster has no protobuf.
    pub(crate) const fn accepted(kind: Kind) -> &'static str {
        match kind {
            Kind::ServiceImport | Kind::ServiceEntry | Kind::WorkloadEntry | Kind::WorkloadPod => JSON,
            _ => EITHER,
        }
    }
}

/// What a response says, piece by piece.
#[derive(Debug)]
pub enum Piece<'a> {
    /// An object exists in this state.
    Applied {
        /// The object.
        object: Object<'a>,
        /// When that happened which it shows, if somebody wrote it down.
        trigger: &'a str,
    },
    /// An object is gone.
    Deleted {
        /// Its namespace; empty for a namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
        /// The version in which it is gone.
        version: &'a str,
    },
    /// Nothing happened until this version.
    Bookmark {
        /// The version.
        version: &'a str,
        /// Whether a streaming list is complete by it.
        ends_list: bool,
    },
    /// The server ends the watch: a Status.
    Refused {
        /// As in HTTP.
        code: u16,
        /// For people.
        message: &'a str,
    },
    /// Something cannot be read; its names are empty if they cannot be read either.
    Unreadable {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
        /// Its version.
        version: &'a str,
        /// Why, for metrics.
        reason: Unreadable,
        /// Why, for people.
        problem: String,
    },
    /// What a list says of itself.
    List {
        /// The version that it shows.
        version: &'a str,
        /// With which token it goes on; empty if this is its end.
        token: &'a str,
    },
}

impl<'a> Piece<'a> {
    fn applied(object: Object<'a>, trigger: &'a str) -> Piece<'a> {
        let meta = object.meta();
        if meta.name.is_empty() {
            return Piece::unreadable(meta, Unreadable::Unnamed, "it has no name".to_owned());
        }
        Piece::Applied { object, trigger }
    }

    fn deleted(meta: Meta<'a>) -> Piece<'a> {
        Piece::Deleted { namespace: meta.namespace, name: meta.name, version: meta.version }
    }

    fn bookmark(meta: Meta<'a>, ends_list: bool) -> Piece<'a> {
        Piece::Bookmark { version: meta.version, ends_list }
    }

    fn unreadable(meta: Meta<'a>, reason: Unreadable, problem: String) -> Piece<'a> {
        Piece::Unreadable { namespace: meta.namespace, name: meta.name, version: meta.version, reason, problem }
    }

    fn no_event(meta: Meta<'a>, what: &str) -> Piece<'a> {
        Piece::unreadable(meta, Unreadable::Event, format!("'{what}' is no event"))
    }

    fn nameless(reason: Unreadable, problem: String) -> Piece<'static> {
        Piece::unreadable(Meta::default(), reason, problem)
    }

    fn too_long() -> Piece<'static> {
        Piece::nameless(Unreadable::TooLong, format!("it is longer than {OBJECT_MAX} octets"))
    }
}

/// Why an object cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unreadable {
    /// It is not even JSON, or protobuf.
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
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Unreadable::Syntax => "syntax",
            Unreadable::Shape => "shape",
            Unreadable::TooLong => "too_long",
            Unreadable::Unnamed => "unnamed",
            Unreadable::Event => "event",
        }
    }
}

/// Where one object ends and the next one begins cannot be told any more: the response is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// The response to a watch.
pub struct EventDecoder {
    kind: Kind,
    events: Events,
}

enum Events {
    Json(Lines),
    Protobuf(Frames),
}

impl EventDecoder {
    /// For a response of which nothing has come yet.
    #[must_use]
    pub fn new(encoding: Encoding, kind: Kind) -> EventDecoder {
        let events = match encoding {
            Encoding::Json => Events::Json(Lines::default()),
            Encoding::Protobuf => Events::Protobuf(Frames::default()),
        };
        EventDecoder { kind, events }
    }

    /// Takes more of the response and hands out what it says.
    ///
    /// # Errors
    /// If nothing more can be read of this response.
    pub fn feed(&mut self, octets: &[u8], each: &mut dyn FnMut(Piece<'_>)) -> Result<(), Lost> {
        match &mut self.events {
            Events::Json(lines) => {
                json::feed_events(self.kind, lines, octets, each);
                Ok(())
            }
            Events::Protobuf(frames) => frames.feed(self.kind, octets, each),
        }
    }

    /// Whether the response ended within an event.
    #[must_use]
    pub fn is_within_an_event(&self) -> bool {
        match &self.events {
            Events::Json(lines) => lines.is_within_a_line(),
            Events::Protobuf(frames) => frames.is_within_a_frame(),
        }
    }
}

/// The response to a list.
pub struct ListDecoder {
    kind: Kind,
    list: Lists,
}

enum Lists {
    Json(Items),
    Protobuf(List),
}

impl ListDecoder {
    /// For a response of which nothing has come yet.
    #[must_use]
    pub fn new(encoding: Encoding, kind: Kind) -> ListDecoder {
        let list = match encoding {
            Encoding::Json => Lists::Json(Items::default()),
            Encoding::Protobuf => Lists::Protobuf(List::default()),
        };
        ListDecoder { kind, list }
    }

    /// Takes more of the response and hands out what it says.
    ///
    /// # Errors
    /// If nothing more can be read of this response.
    pub fn feed(&mut self, octets: &[u8], each: &mut dyn FnMut(Piece<'_>)) -> Result<(), Lost> {
        match &mut self.list {
            Lists::Json(items) => {
                json::feed_list(self.kind, items, octets, each);
                Ok(())
            }
            Lists::Protobuf(list) => list.feed(self.kind, octets, each),
        }
    }

    /// Whether a whole list was there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &self.list {
            Lists::Json(items) => items.is_complete(),
            Lists::Protobuf(list) => list.is_complete(),
        }
    }
}

/// `addressType` of an EndpointSlice; `Err` says what is wrong.
fn address_type(text: &str) -> Result<AddressType, &'static str> {
    match text {
        "IPv4" => Ok(AddressType::Ipv4),
        "IPv6" => Ok(AddressType::Ipv6),
        "FQDN" => Ok(AddressType::Fqdn),
        _ => Err("the address type is none of IPv4, IPv6 and FQDN"),
    }
}

/// What the server says instead of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Status {
    /// As in HTTP; 0 if it does not say.
    pub code: u16,
    /// For people.
    pub message: String,
}

impl Status {
    /// Reads one; `None` if there is none.
    #[must_use]
    pub fn read(encoding: Encoding, octets: &[u8]) -> Option<Status> {
        match encoding {
            Encoding::Json => json::status(octets),
            Encoding::Protobuf => protobuf::status(octets),
        }
    }
}

#[cfg(test)]
mod malformed_tests;
#[cfg(test)]
mod tests;
