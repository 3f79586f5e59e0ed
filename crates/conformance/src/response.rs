//! Parsed response, as the checks compare it: the data of each record is a text, in lower case and without trailing
//! dots.

use core::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use wire::{Message, Opt, Rcode, Section, Type};

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// Response code, including the upper bits from EDNS.
    pub(crate) rcode: Rcode,
    /// True if the response was truncated and the query has to be repeated over TCP.
    pub(crate) is_truncated: bool,
    /// True if the name in the question has the same letter case as in the query.
    pub(crate) question_kept: bool,
    pub(crate) has_opt: bool,
    pub(crate) answers: Vec<Record>,
    pub(crate) authorities: Vec<Record>,
}

/// A resource record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) owner: String,
    pub(crate) rtype: Type,
    /// TTL in seconds.
    pub(crate) ttl: u32,
    /// Data by type: an address; a name; `PORT/TARGET` for SRV, as the specification does not define priority and
    /// weight; quoted strings for TXT; the MINIMUM field in seconds for SOA; the length for other types.
    pub(crate) data: String,
}

impl Response {
    /// Parses a response. Returns `None` if a name in it is malformed.
    pub(crate) fn read(message: &Message<'_>, question_kept: bool) -> Option<Response> {
        let flags = message.header().flags;
        let mut response = Response {
            rcode: flags.rcode(),
            is_truncated: flags.truncated(),
            question_kept,
            has_opt: false,
            answers: Vec::new(),
            authorities: Vec::new(),
        };
        for record in message.records() {
            if record.rtype() == Type::OPT {
                let opt = Opt::from_fields(record.class().0, record.raw_ttl());
                response.has_opt = true;
                response.rcode = Rcode(response.rcode.0 | u16::from(opt.extended_rcode) << 4);
                continue;
            }
            let read = Record::read(&record)?;
            match record.section() {
                Section::Answer => response.answers.push(read),
                Section::Authority => response.authorities.push(read),
                Section::Additional => {}
            }
        }
        Some(response)
    }

    /// Returns the SOA record in the authority section, which determines the negative TTL.
    pub(crate) fn soa(&self) -> Option<&Record> {
        self.authorities.iter().find(|record| record.rtype == Type::SOA)
    }
}

impl fmt::Display for Response {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = if self.is_truncated { ", truncated" } else { "" };
        write!(out, "{}{cut}", self.rcode)?;
        for (at, record) in self.answers.iter().enumerate() {
            let mark = if at == 0 { ": " } else { ", " };
            write!(out, "{mark}{} {}", record.rtype, record.data)?;
        }
        match (self.answers.is_empty(), self.soa()) {
            (true, None) => out.write_str(", no records, no SOA"),
            (true, Some(_)) => out.write_str(", no records"),
            _ => Ok(()),
        }
    }
}

impl Record {
    fn read(record: &wire::Record<'_>) -> Option<Record> {
        let owner = plain(&record.owner().ok()?);
        Some(Record { owner, rtype: record.rtype(), ttl: record.ttl(), data: data(record)? })
    }
}

fn data(record: &wire::Record<'_>) -> Option<String> {
    let bytes = record.rdata();
    Some(match record.rtype() {
        Type::A => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).to_string(),
        Type::AAAA => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_string(),
        Type::CNAME | Type::PTR | Type::NS => plain(&record.name_at(0).ok()?.0),
        Type::SRV => {
            let port = u16::from_be_bytes([*bytes.get(4)?, *bytes.get(5)?]);
            format!("{port}/{}", plain(&record.name_at(6).ok()?.0))
        }
        Type::TXT => strings(bytes)?,
        Type::SOA => u32::from_be_bytes(*bytes.last_chunk()?).to_string(),
        _ => format!("{} bytes", bytes.len()),
    })
}

/// Returns a name in the form used for comparison.
pub(crate) fn plain(name: &wire::Name) -> String {
    name.to_string().trim_end_matches('.').to_ascii_lowercase()
}

fn strings(mut bytes: &[u8]) -> Option<String> {
    let mut strings = Vec::new();
    while let [length, rest @ ..] = bytes {
        let (string, rest) = rest.split_at_checked(usize::from(*length))?;
        strings.push(format!("\"{}\"", String::from_utf8_lossy(string)));
        bytes = rest;
    }
    Some(strings.join(" "))
}
