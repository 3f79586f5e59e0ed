//! One record: what the value of a key says.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use wire::{Name, NameRef};

use crate::Lease;

/// Octets of the longest value that is read: no answer can hold a text that is longer.
pub const VALUE_MAX: usize = 64 * 1024;
/// The time to live of a record that does not say one, in seconds.
const TTL_DEFAULT: u32 = 300;
/// The longest time to live there is (RFC 2181 §8).
const TTL_MAX: u32 = i32::MAX.cast_unsigned();
/// The priority of a record that does not say one.
const PRIORITY_DEFAULT: u16 = 10;
/// The weight of a record that does not say one.
const WEIGHT_DEFAULT: u32 = 100;

/// What stands under a key: a record, or `None` for a value that is none.
pub(crate) type Entry = Option<Arc<Record>>;

/// What the value of a key says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Where it points to.
    pub host: Host,
    /// What a TXT record says.
    pub text: Option<Box<str>>,
    /// Which of the records around it it belongs with.
    pub group: Option<Box<str>>,
    /// The port of an SRV record.
    pub port: u16,
    /// The priority of an SRV record, and the preference of an MX record.
    pub priority: u16,
    /// The share of an SRV record, beside those of the same priority.
    pub weight: u32,
    /// Labels to take away from the left of the key's name where that is a target.
    pub target_strip: u8,
    /// Whether it is an MX record too.
    pub mail: bool,
    /// Seconds; 0 if it does not say.
    ttl: u32,
    lease: Option<Arc<Lease>>,
}

/// Where a record points to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Host {
    /// Nowhere.
    #[default]
    None,
    /// To an address.
    Address(IpAddr),
    /// To a name, in wire form.
    Name(Box<[u8]>),
}

/// What a record is to those who ask for the records of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<'r> {
    /// An address.
    Address(IpAddr),
    /// A text; a name beside it is only for those who ask for just that.
    Text(&'r str),
    /// Another name, in the case in which it was written.
    Alias(NameRef<'r>),
    /// None of these.
    Nothing,
}

/// Between which times to live the rest of a lease is answered, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBounds {
    /// The shortest.
    pub min: u32,
    /// The longest; what is below `min` is that.
    pub max: u32,
}

/// Why a record is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The value is not JSON, or not such as SkyDNS has it.
    Json(String),
    /// The host is neither an address nor a name.
    Host(String),
    /// The key cannot be a name.
    Key,
    /// The value has so many octets.
    TooLong(usize),
    /// There are too many others.
    TooMany,
}

impl Refusal {
    /// The reason in one word, as metrics write it.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Refusal::Json(_) => "json",
            Refusal::Host(_) => "host",
            Refusal::Key => "key",
            Refusal::TooLong(_) => "size",
            Refusal::TooMany => "number",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Json(fault) => write!(out, "the value is no record: {fault}"),
            Refusal::Host(host) => write!(out, "the host {host:?} is neither an address nor a name"),
            Refusal::Key => out.write_str("the key is no name"),
            Refusal::TooLong(octets) => write!(out, "the value has {octets} octets, and at most {VALUE_MAX} are read"),
            Refusal::TooMany => out.write_str("there are more records than are kept"),
        }
    }
}

impl Record {
    /// Reads the value of a key, which a lease may end.
    ///
    /// # Errors
    /// If it is no record.
    pub fn read(value: &[u8], lease: Option<Arc<Lease>>) -> Result<Record, Refusal> {
        if value.len() > VALUE_MAX {
            return Err(Refusal::TooLong(value.len()));
        }
        let written: Option<Written> =
            serde_json::from_slice(value).map_err(|error| Refusal::Json(error.to_string()))?;
        let written = written.unwrap_or_default();
        Ok(Record {
            host: Host::read(written.host.unwrap_or_default())?,
            text: said(written.text),
            group: said(written.group),
            port: written.port.unwrap_or_default(),
            priority: written.priority.filter(|&priority| priority != 0).unwrap_or(PRIORITY_DEFAULT),
            weight: written.weight.filter(|&weight| weight != 0).unwrap_or(WEIGHT_DEFAULT),
            target_strip: u8::try_from(written.target_strip.unwrap_or_default()).unwrap_or(u8::MAX),
            mail: written.mail.unwrap_or_default(),
            ttl: written.ttl.unwrap_or_default().min(TTL_MAX),
            lease,
        })
    }

    /// What it is.
    #[must_use]
    pub fn meaning(&self) -> Meaning<'_> {
        match (&self.host, &self.text) {
            (Host::Address(address), _) => Meaning::Address(*address),
            (_, Some(text)) => Meaning::Text(text),
            (host, None) => host.name().map_or(Meaning::Nothing, Meaning::Alias),
        }
    }

    /// The time to live in seconds, at a time in nanoseconds since whatever start: what the record says, but no more than
    /// is left of its lease.
    #[must_use]
    pub fn ttl(&self, now_nanos: u64, bounds: LeaseBounds) -> u32 {
        let left = self.lease.as_ref().map(|lease| lease.left(now_nanos).min(bounds.max).max(bounds.min));
        match (self.ttl, left) {
            (0, None) => TTL_DEFAULT,
            (0, Some(left)) => left,
            (said, None) => said,
            (said, Some(left)) => said.min(left),
        }
    }
}

fn said(text: Option<String>) -> Option<Box<str>> {
    text.filter(|text| !text.is_empty()).map(String::into_boxed_str)
}

impl Host {
    /// The name, if it is one.
    #[must_use]
    pub fn name(&self) -> Option<NameRef<'_>> {
        match self {
            Host::Name(octets) => NameRef::from_octets(octets).ok(),
            Host::None | Host::Address(_) => None,
        }
    }

    fn read(text: String) -> Result<Host, Refusal> {
        if text.is_empty() {
            return Ok(Host::None);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Host::Address(address.to_canonical()));
        }
        match Name::from_text(&text) {
            Ok(name) => Ok(Host::Name(name.octets().into())),
            Err(_) => Err(Refusal::Host(text)),
        }
    }
}

/// The fields as they are written. Their names may be in any case, the last of a name counts, and those that nobody knows
/// are passed over, as it is with Go's reader of JSON, for which they were made.
#[derive(Default)]
struct Written {
    host: Option<String>,
    port: Option<u16>,
    priority: Option<u16>,
    weight: Option<u32>,
    text: Option<String>,
    mail: Option<bool>,
    ttl: Option<u32>,
    target_strip: Option<u32>,
    group: Option<String>,
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Written, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Written;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with a host or a text")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
        let mut written = Written::default();
        while let Some(name) = map.next_key::<String>()? {
            let named = |error: A::Error| A::Error::custom(format!("`{name}`: {error}"));
            match name.to_ascii_lowercase().as_str() {
                "host" => written.host = map.next_value().map_err(named)?,
                "port" => written.port = map.next_value().map_err(named)?,
                "priority" => written.priority = map.next_value().map_err(named)?,
                "weight" => written.weight = map.next_value().map_err(named)?,
                "text" => written.text = map.next_value().map_err(named)?,
                "mail" => written.mail = map.next_value().map_err(named)?,
                "ttl" => written.ttl = map.next_value().map_err(named)?,
                "targetstrip" => written.target_strip = map.next_value().map_err(named)?,
                "group" => written.group = map.next_value().map_err(named)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(written)
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
