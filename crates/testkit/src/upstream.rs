//! Fake upstreams that answer from a table, can misbehave, and record the queries that they receive.

use core::cell::RefCell;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::HashMap;

use engine::{Exchange, HttpMethod, Instant, Transport, Unwanted};
use wire::{
    EdeCode, Flags, HEADER_LEN, Header, MessageBuf, Name, OPT_FIXED_LEN, Opcode, Opt, OptionCode, Rcode, Section, Type,
};

use crate::{Parsed, Record};

/// UDP payload size in bytes of a client without EDNS (RFC 1035 §4.2.1).
const UDP_SIZE_MIN: u16 = 512;
/// UDP payload size in bytes that the upstreams advertise.
const UDP_SIZE: u16 = 1232;

/// Cookie of the upstreams that return one.
const SERVER_COOKIE: &[u8] = b"server cookie";

/// An upstream's response, without the question.
#[derive(Clone, Default, Debug)]
pub struct Answer {
    /// Response code.
    pub rcode: Rcode,
    /// Flags. QR is always set, and RD and CD are copied from the query.
    pub flags: Flags,
    /// Records of the three sections.
    pub sections: [Vec<Record>; 3],
    /// EDNS options, sent if the query has EDNS.
    pub options: Vec<(OptionCode, Vec<u8>)>,
}

/// Reaction to a query.
#[derive(Clone, Debug)]
pub enum Reaction {
    /// Responds. A response too long for UDP is truncated to nothing, with TC set.
    Answer(Answer),
    /// Sends a truncated response over UDP, whatever its length.
    Truncate(Answer),
    /// Responds with the question in lower case.
    LowerCase(Answer),
    /// Responds with a server cookie (RFC 7873).
    Cookie(Answer),
    /// Sends a response with a malformed record: an address of three bytes.
    Broken,
    /// Sends a response whose header counts a record that is missing.
    Overflow,
    /// Sends a response with the opcode STATUS.
    OtherOpcode,
    /// Sends these bytes after the id of the query.
    Bytes(Vec<u8>),
    /// Sends nothing, or nothing that a client accepts as a response.
    Silence,
    /// Refuses the connection, like a host without a listener.
    Refuse,
    /// Closes the connection.
    Close,
    /// Ends the gRPC call with this status code.
    Status(u32),
}

/// Names that an entry matches.
#[derive(Clone, Debug)]
pub enum Names {
    /// All names.
    Any,
    /// Exactly this name.
    Is(Name),
    /// Names below this one.
    Below(Name),
}

/// Entry of an upstream's table.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Names that it matches.
    pub names: Names,
    /// Type; `None` for all.
    pub qtype: Option<Type>,
    /// Transport; `None` for all.
    pub over: Option<Transport>,
    /// Delay of the reaction.
    pub delay: Duration,
    /// True if it is removed after one query.
    pub once: bool,
    /// Number of replies with other message IDs that come before the reaction.
    pub wrong_ids: u32,
    /// Reaction.
    pub reaction: Reaction,
}

/// A query that an upstream received.
#[derive(Clone)]
pub struct Asked {
    /// Time.
    pub at: Instant,
    /// Transport.
    pub over: Transport,
    /// The query.
    pub query: Parsed,
    /// True if it was sent over TLS.
    pub has_tls: bool,
    /// Method, over HTTPS.
    pub method: HttpMethod,
    /// True if it may be sent over HTTP/3.
    pub may_use_http3: bool,
}

/// All upstreams of a scenario. Other addresses refuse connections.
#[derive(Default)]
pub struct Upstreams {
    by_address: RefCell<HashMap<SocketAddr, Upstream>>,
}

#[derive(Default)]
struct Upstream {
    table: Vec<Entry>,
    asked: Vec<Asked>,
    /// Time at which a connection of each transport was last used.
    used: HashMap<Transport, Instant>,
}

/// Outcome of a query, and the delay until it is visible.
pub(crate) struct Outcome {
    pub(crate) delay: Duration,
    pub(crate) what: Came,
    pub(crate) reused: bool,
}

/// Outcome of a query.
pub(crate) enum Came {
    Reply(Vec<u8>),
    Nothing,
    Refused,
    Closed,
    Status(u32),
}

impl Upstreams {
    /// Sets the table of an upstream. Keeps its recorded queries.
    pub fn set(&self, address: SocketAddr, table: Vec<Entry>) {
        self.by_address.borrow_mut().entry(address).or_default().table = table;
    }

    /// Takes the queries that an upstream received since the last call.
    pub fn take_asked(&self, address: SocketAddr) -> Vec<Asked> {
        let mut by_address = self.by_address.borrow_mut();
        by_address.get_mut(&address).map(|upstream| core::mem::take(&mut upstream.asked)).unwrap_or_default()
    }

    /// Passes a query to an upstream.
    pub(crate) fn ask(&self, exchange: Exchange<'_>, now: Instant) -> Outcome {
        let Exchange { to, over, query, connections, tls, method, http3, unwanted, .. } = exchange;
        let refused = |what| Outcome { delay: Duration::ZERO, what, reused: false };
        let mut by_address = self.by_address.borrow_mut();
        let (Some(upstream), Ok(parsed)) = (by_address.get_mut(&to), Parsed::read(query)) else {
            return refused(Came::Refused);
        };
        let (delay, reaction, wrong_ids) = upstream.react(&parsed, over);
        for unwanted in unwanted.into_iter().cycle().take(wrong_ids as usize) {
            unwanted.add(Unwanted::Id);
        }
        let has_tls = tls.is_some();
        upstream.asked.push(Asked { at: now, over, query: parsed.clone(), has_tls, method, may_use_http3: http3 });
        let used = upstream.used.insert(over, now);
        let reused = used.is_some_and(|used| now.since(used) < connections.idle_max);
        Outcome { delay, what: carry_out(&reaction, &parsed, over), reused }
    }
}

impl Upstream {
    /// Returns the delay and the reaction of the first matching entry, and the number of replies with other IDs before
    /// it. Without a match, the upstream answers REFUSED.
    fn react(&mut self, query: &Parsed, over: Transport) -> (Duration, Reaction, u32) {
        let refused = Answer { rcode: Rcode::REFUSED, ..Answer::default() };
        let Some(at) = self.table.iter().position(|entry| entry.is_for(query, over)) else {
            return (Duration::ZERO, Reaction::Answer(refused), 0);
        };
        let entry = if self.table[at].once { self.table.remove(at) } else { self.table[at].clone() };
        (entry.delay, entry.reaction, entry.wrong_ids)
    }
}

impl Entry {
    fn is_for(&self, query: &Parsed, over: Transport) -> bool {
        let Some((name, qtype, _)) = &query.question else { return false };
        let named = match &self.names {
            Names::Any => true,
            Names::Is(wanted) => wanted == name,
            Names::Below(zone) => zone != name && name.as_ref().is_within(zone.as_ref()),
        };
        named && self.qtype.is_none_or(|wanted| wanted == *qtype) && self.over.is_none_or(|wanted| wanted == over)
    }
}

fn carry_out(reaction: &Reaction, query: &Parsed, over: Transport) -> Came {
    match reaction {
        Reaction::Truncate(answer) if !over.is_stream() => Came::Reply(answer.cut().write(query)),
        Reaction::Cookie(answer) => Came::Reply(answer.clone().with_cookie(query).to_bytes(query, over)),
        Reaction::LowerCase(answer) => Came::Reply(answer.to_bytes(&query.clone().in_lower_case(), over)),
        Reaction::Answer(answer) | Reaction::Truncate(answer) => Came::Reply(answer.to_bytes(query, over)),
        Reaction::Broken => {
            Came::Reply([&count_another_record(Answer::default().write(query))[..], SHORT_ADDRESS].concat())
        }
        Reaction::Overflow => Came::Reply(count_another_record(Answer::default().write(query))),
        Reaction::OtherOpcode => Came::Reply(with_opcode(Answer::default().write(query), Opcode::STATUS)),
        Reaction::Bytes(bytes) => Came::Reply([&query.header.id.to_be_bytes()[..], bytes].concat()),
        Reaction::Silence => Came::Nothing,
        Reaction::Refuse => Came::Refused,
        Reaction::Close => Came::Closed,
        Reaction::Status(code) => Came::Status(*code),
    }
}

/// A record for the root with an address of three bytes.
const SHORT_ADDRESS: &[u8] = b"\0\0\x01\0\x01\0\0\0\x3c\0\x03\xc0\0\x02";

/// Sets the opcode in the header.
fn with_opcode(mut bytes: Vec<u8>, opcode: Opcode) -> Vec<u8> {
    if let (Some(header), Some(start)) = (Header::read(&bytes), bytes.first_chunk_mut::<HEADER_LEN>()) {
        *start = Header { flags: header.flags.with_opcode(opcode), ..header }.to_bytes();
    }
    bytes
}

/// Increments the count of additional records in the header.
fn count_another_record(mut bytes: Vec<u8>) -> Vec<u8> {
    const ADDITIONALS_AT: usize = 11;
    if let Some(count) = bytes.get_mut(ADDITIONALS_AT) {
        *count += 1;
    }
    bytes
}

impl Answer {
    /// Adds an Extended DNS Error (RFC 8914 §2).
    pub(crate) fn push_ede(&mut self, code: EdeCode, text: &str) {
        let data = [&code.0.to_be_bytes()[..], text.as_bytes()].concat();
        self.options.push((OptionCode::EXTENDED_ERROR, data));
    }

    /// Returns the response to `query`, truncated if it is too long for the transport.
    fn to_bytes(&self, query: &Parsed, over: Transport) -> Vec<u8> {
        let bytes = self.write(query);
        let size = query.opt.map_or(UDP_SIZE_MIN, |opt| opt.udp_size.max(UDP_SIZE_MIN));
        if over.is_stream() || bytes.len() <= usize::from(size) { bytes } else { self.cut().write(query) }
    }

    /// Adds the client cookie of the query and [`SERVER_COOKIE`].
    fn with_cookie(mut self, query: &Parsed) -> Answer {
        let cookie = query.options.iter().find(|(code, _)| *code == OptionCode::COOKIE);
        let client = cookie.and_then(|(_, data)| data.first_chunk::<8>());
        self.options.extend(client.map(|client| (OptionCode::COOKIE, [&client[..], SERVER_COOKIE].concat())));
        self
    }

    /// Returns a truncated response: empty, with TC set.
    fn cut(&self) -> Answer {
        Answer { rcode: self.rcode, flags: self.flags.with_truncated(true), ..Answer::default() }
    }

    fn write(&self, query: &Parsed) -> Vec<u8> {
        let asked = query.header.flags;
        let flags = self
            .flags
            .with_response(true)
            .with_opcode(asked.opcode())
            .with_recursion_desired(asked.recursion_desired())
            .with_checking_disabled(asked.checking_disabled())
            .with_rcode(self.rcode);
        let mut message = MessageBuf::new();
        let header = Header { id: query.header.id, flags, ..Header::default() };
        let (name, qtype, qclass) = query.question.clone().unwrap_or_default();
        message.start(header, Some((name.as_ref(), qtype, qclass)));
        message.set_limit(usize::from(u16::MAX) - OPT_FIXED_LEN);
        for section in Section::ALL {
            self.sections[section as usize].iter().for_each(|record| record.push_to(&mut message, section));
        }
        // Set TC only now, because the writer adds no records to a truncated message.
        message.header.flags = flags;
        let upper = (self.rcode.0 >> 4).min(0xff) as u8;
        let opt = query.opt.map(|asked| Opt { udp_size: UDP_SIZE, extended_rcode: upper, ..asked });
        message.finish(opt, self.options.iter().map(|(code, data)| (*code, data.as_slice()))).to_vec()
    }
}
