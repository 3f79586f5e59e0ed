//! SkyDNS record: the parsed value of a key.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use wire::{Name, NameRef};

use crate::Lease;

/// Maximum length of a value in bytes. No answer can hold a longer text.
pub const VALUE_MAX: usize = 64 * 1024;
/// TTL in seconds of a record without one.
const TTL_DEFAULT: u32 = 300;
/// Maximum TTL (RFC 2181 §8).
const TTL_MAX: u32 = i32::MAX.cast_unsigned();
/// Priority of a record without one.
const PRIORITY_DEFAULT: u16 = 10;
/// Weight of a record without one.
const WEIGHT_DEFAULT: u32 = 100;

/// Value of a key: a record, or `None` if the value is invalid.
pub(crate) type Entry = Option<Arc<Record>>;

/// Parsed value of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Target.
    pub host: Host,
    /// Text of a TXT record.
    pub text: Option<Box<str>>,
    /// Group. A selection usually returns the records of one group, and those without a group.
    pub group: Option<Box<str>>,
    /// Port of an SRV record.
    pub port: u16,
    /// Priority of an SRV record, preference of an MX record.
    pub priority: u16,
    /// Weight of an SRV record, relative to those of the same priority.
    pub weight: u32,
    /// Number of leftmost labels to remove from the key's name when it is used as a target.
    pub target_strip: u8,
    /// True if it also yields an MX record.
    pub mail: bool,
    /// TTL in seconds; 0 if not set.
    ttl: u32,
    lease: Option<Arc<Lease>>,
}

/// Target of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Host {
    /// No target.
    #[default]
    None,
    /// An IP address.
    Address(IpAddr),
    /// A name, in wire format.
    Name(Box<[u8]>),
}

/// Role of a record among the records of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordRole<'r> {
    /// Address.
    Address(IpAddr),
    /// Text.
    Text(&'r str),
    /// Alias of another name, which keeps its case.
    Alias(NameRef<'r>),
    /// Neither.
    Nothing,
}

/// Kind of records to select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFilter {
    /// Records with a host.
    Hosts,
    /// Records with a host or a text.
    Texts,
}

impl RecordFilter {
    pub(crate) fn sees(self, record: &Record) -> bool {
        record.host != Host::None || (self == RecordFilter::Texts && record.text.is_some())
    }
}

/// Bounds in seconds for the TTL derived from the remaining time of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBounds {
    /// Lower bound.
    pub min: u32,
    /// Upper bound. If it is less than `min`, `min` is used.
    pub max: u32,
}

/// Error that keeps a value from being served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Not JSON, or not a SkyDNS record.
    #[error("the value is not a record: {0}")]
    Json(String),
    /// `host` is neither an address nor a name.
    #[error("the host {0:?} is neither an address nor a name")]
    Host(String),
    /// The key is not a valid name.
    #[error("the key is not a domain name")]
    Key,
    /// The value is too long; its length in bytes.
    #[error("the value has {} bytes; at most {} are read", .0, VALUE_MAX)]
    TooLong(usize),
    /// The limit on the number of records is reached.
    #[error("the maximum number of records is reached")]
    TooMany,
}

impl RecordError {
    /// Returns the value of the metric label for this reason.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            RecordError::Json(_) => "json",
            RecordError::Host(_) => "host",
            RecordError::Key => "key",
            RecordError::TooLong(_) => "size",
            RecordError::TooMany => "number",
        }
    }
}

impl Record {
    /// Parses the value of a key, with the lease that it is tied to.
    ///
    /// # Errors
    /// Fails if the value is not a record.
    pub fn read(value: &[u8], lease: Option<Arc<Lease>>) -> Result<Record, RecordError> {
        if value.len() > VALUE_MAX {
            return Err(RecordError::TooLong(value.len()));
        }
        let fields: Option<RecordFields> =
            serde_json::from_slice(value).map_err(|error| RecordError::Json(error.to_string()))?;
        let fields = fields.unwrap_or_default();
        Ok(Record {
            host: Host::read(fields.host.unwrap_or_default())?,
            text: said(fields.text),
            group: said(fields.group),
            port: fields.port.unwrap_or_default(),
            priority: fields.priority.filter(|&priority| priority != 0).unwrap_or(PRIORITY_DEFAULT),
            weight: fields.weight.filter(|&weight| weight != 0).unwrap_or(WEIGHT_DEFAULT),
            target_strip: u8::try_from(fields.target_strip.unwrap_or_default()).unwrap_or(u8::MAX),
            mail: fields.mail.unwrap_or_default(),
            ttl: fields.ttl.unwrap_or_default().min(TTL_MAX),
            lease,
        })
    }

    /// Returns the role of the record among those that `filter` selects. Of a host and a text, texts are for those who
    /// ask for them: external-dns adds a text with the owner to each record, alias or address.
    #[must_use]
    pub fn role(&self, filter: RecordFilter) -> RecordRole<'_> {
        match (&self.host, &self.text) {
            (_, Some(text)) if filter == RecordFilter::Texts => RecordRole::Text(text),
            (Host::Address(address), _) => RecordRole::Address(*address),
            (host, _) => host.name().map_or(RecordRole::Nothing, RecordRole::Alias),
        }
    }

    /// Returns the TTL in seconds: the record's own, limited by the remaining time of its lease. `now_nanos` uses the
    /// same arbitrary epoch as the lease.
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
    /// Returns the name, if the target is one.
    #[must_use]
    pub fn name(&self) -> Option<NameRef<'_>> {
        match self {
            Host::Name(bytes) => NameRef::from_bytes(bytes).ok(),
            Host::None | Host::Address(_) => None,
        }
    }

    fn read(text: String) -> Result<Host, RecordError> {
        if text.is_empty() {
            return Ok(Host::None);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Host::Address(address.to_canonical()));
        }
        match Name::from_text(&text) {
            Ok(name) => Ok(Host::Name(name.as_bytes().into())),
            Err(_) => Err(RecordError::Host(text)),
        }
    }
}

/// Fields of the JSON object. Decoded like Go's `encoding/json` does, for which they were designed: names are
/// case-insensitive, the last duplicate wins, and unknown fields are ignored.
#[derive(Default)]
struct RecordFields {
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

impl<'de> Deserialize<'de> for RecordFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RecordFields, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = RecordFields;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with a host or a text")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RecordFields, A::Error> {
        let mut fields = RecordFields::default();
        while let Some(name) = map.next_key::<String>()? {
            let named = |error: A::Error| A::Error::custom(format!("`{name}`: {error}"));
            match name.to_ascii_lowercase().as_str() {
                "host" => fields.host = map.next_value().map_err(named)?,
                "port" => fields.port = map.next_value().map_err(named)?,
                "priority" => fields.priority = map.next_value().map_err(named)?,
                "weight" => fields.weight = map.next_value().map_err(named)?,
                "text" => fields.text = map.next_value().map_err(named)?,
                "mail" => fields.mail = map.next_value().map_err(named)?,
                "ttl" => fields.ttl = map.next_value().map_err(named)?,
                "targetstrip" => fields.target_strip = map.next_value().map_err(named)?,
                "group" => fields.group = map.next_value().map_err(named)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(fields)
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
