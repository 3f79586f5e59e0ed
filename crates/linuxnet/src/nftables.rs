//! Rules as an nftables table, sent as one atomic batch of messages.
//!
//! The socket that creates a table owns it. Other processes cannot change the table, and the kernel removes it with the
//! socket, however the process ends. Kernels before 5.12 do not support owners. There, a rule on the destination
//! applies only while that address is local.
//!
//! Accept rules are left out, because another table may still drop what this one has accepted.

use core::net::IpAddr;

use crate::netlink::{ACK, Body, CREATE, Messages, REQUEST};
use crate::rules::{Hook, Protocol, Rule, Side, Verdict};

/// Netlink protocol (`NETLINK_NETFILTER`).
pub const PROTOCOL: i32 = 12;
/// Comment of the rules, the same as node-cache's.
const COMMENT: &str = "NodeLocal DNS Cache: skip conntrack";

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const GET_TABLE: u16 = SUBSYSTEM << 8 | 1;
const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
/// Table family for both IPv4 and IPv6.
const INET: u8 = 1;
/// Register that the expressions use.
const REGISTER: u32 = 1;

/// nftables table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name.
    pub name: String,
    /// True if the socket that creates the table owns it.
    pub is_owned: bool,
}

/// Creates a table with these rules and replaces one of the same name. If the batch succeeds, the kernel acknowledges
/// only the last message.
#[must_use]
pub fn make(table: &Table, rules: &[Rule]) -> Messages {
    const OWNED: u32 = 2;
    let mut batch = Batch::begin();
    let flags = if table.is_owned { OWNED } else { 0 };
    if !table.is_owned {
        // Deleting a missing table would fail, so create it first.
        batch.request(NEW_TABLE, CREATE, |body| {
            body.text(1, &table.name);
        });
        batch.request(DELETE_TABLE, 0, |body| {
            body.text(1, &table.name);
        });
    }
    batch.request(NEW_TABLE, CREATE, |body| {
        body.text(1, &table.name).attribute(2, &flags.to_be_bytes());
    });
    for (name, hook) in [("prerouting", Hook::RawPrerouting), ("output", Hook::RawOutput)] {
        batch.request(NEW_CHAIN, CREATE, |body| chain(body, &table.name, name, hook));
        for rule in rules.iter().filter(|rule| rule.hook == hook && rule.verdict == Verdict::NoTrack) {
            const APPEND: u16 = 0x800;
            batch.request(NEW_RULE, CREATE | APPEND, |body| write_rule(body, table, name, rule));
        }
    }
    batch.end()
}

/// Removes a table.
#[must_use]
pub fn remove(table: &Table) -> Messages {
    let mut batch = Batch::begin();
    batch.request(DELETE_TABLE, 0, |body| {
        body.text(1, &table.name);
    });
    batch.end()
}

/// Requests information on a table.
#[must_use]
pub fn look(table: &Table) -> Messages {
    let mut messages = Messages::default();
    messages.message(GET_TABLE, REQUEST | ACK, 1, |body| {
        body.raw(&[INET, 0, 0, 0]).text(1, &table.name);
    });
    messages
}

struct Batch {
    requests: Vec<(u16, u16, Messages)>,
}

impl Batch {
    fn begin() -> Batch {
        Batch { requests: Vec::new() }
    }

    fn request(&mut self, kind: u16, flags: u16, write: impl FnOnce(&mut Body<'_>)) {
        let mut body = Messages::default();
        body.message(kind, REQUEST | flags, 1, |body| {
            body.raw(&[INET, 0, 0, 0]);
            write(body);
        });
        self.requests.push((kind, flags, body));
    }

    /// Encloses the requests in batch markers, and requests an acknowledgement for the last one.
    fn end(self) -> Messages {
        const HEAD: usize = 16;
        let [_, subsystem] = SUBSYSTEM.to_be_bytes();
        let mark = [0, 0, 0, subsystem];
        let mut messages = Messages::default();
        messages.message(BATCH_BEGIN, REQUEST, 0, |body| {
            body.raw(&mark);
        });
        let last = self.requests.len().saturating_sub(1);
        for (at, (kind, flags, written)) in self.requests.into_iter().enumerate() {
            let answered = if at == last { ACK } else { 0 };
            messages.message(kind, REQUEST | flags | answered, 1, |body| {
                body.raw(written.octets().get(HEAD..).unwrap_or_default());
            });
        }
        messages.message(BATCH_END, REQUEST, 0, |body| {
            body.raw(&mark);
        });
        messages
    }
}

fn chain(body: &mut Body<'_>, table: &str, name: &str, hook: Hook) {
    /// Priority before connection tracking.
    const RAW: i32 = -300;
    const PREROUTING: u32 = 0;
    const OUTPUT: u32 = 3;
    let number = if hook == Hook::RawPrerouting { PREROUTING } else { OUTPUT };
    body.text(1, table).text(3, name).nested(4, |body| {
        body.attribute(1, &number.to_be_bytes()).attribute(2, &RAW.to_be_bytes());
    });
    body.text(7, "filter");
}

fn write_rule(body: &mut Body<'_>, table: &Table, chain: &str, rule: &Rule) {
    body.text(1, &table.name).text(2, chain).nested(4, |body| expressions(body, table, rule));
    let comment: Vec<u8> = [&[0, u8::try_from(COMMENT.len() + 1).unwrap_or(0)], COMMENT.as_bytes(), &[0]].concat();
    body.attribute(7, &comment);
}

/// Writes the expressions of a rule: the conditions in order, then the verdict.
fn expressions(body: &mut Body<'_>, table: &Table, rule: &Rule) {
    const NETWORK: u32 = 1;
    const TRANSPORT: u32 = 2;
    const META_FAMILY: u32 = 15;
    const META_PROTOCOL: u32 = 16;
    let is_source = rule.side == Side::Source;
    let protocol = match rule.protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
    };
    let (family, source, destination, bytes) = match rule.ip {
        IpAddr::V4(ip) => (2, 12, 16, ip.octets().to_vec()),
        IpAddr::V6(ip) => (10, 8, 24, ip.octets().to_vec()),
    };
    meta(body, META_FAMILY);
    equals(body, &[family]);
    payload(body, NETWORK, if is_source { source } else { destination }, bytes.len());
    equals(body, &bytes);
    meta(body, META_PROTOCOL);
    equals(body, &[protocol]);
    payload(body, TRANSPORT, if is_source { 0 } else { 2 }, 2);
    equals(body, &rule.port.to_be_bytes());
    if !table.is_owned && !is_source {
        destination_is_local(body);
    }
    expression(body, "notrack", |_| {});
}

fn expression(body: &mut Body<'_>, name: &str, write: impl FnOnce(&mut Body<'_>)) {
    body.nested(1, |body| {
        body.text(1, name).nested(2, write);
    });
}

fn meta(body: &mut Body<'_>, key: u32) {
    expression(body, "meta", |body| {
        body.attribute(1, &REGISTER.to_be_bytes()).attribute(2, &key.to_be_bytes());
    });
}

fn payload(body: &mut Body<'_>, base: u32, offset: u32, length: usize) {
    let length = u32::try_from(length).unwrap_or(0);
    expression(body, "payload", |body| {
        let values = [REGISTER, base, offset, length];
        for (kind, value) in (1..).zip(values) {
            body.attribute(kind, &value.to_be_bytes());
        }
    });
}

fn equals(body: &mut Body<'_>, bytes: &[u8]) {
    expression(body, "cmp", |body| {
        body.attribute(1, &REGISTER.to_be_bytes()).attribute(2, &0_u32.to_be_bytes()).nested(3, |body| {
            body.attribute(1, bytes);
        });
    });
}

fn destination_is_local(body: &mut Body<'_>) {
    const OF_TYPE: u32 = 3;
    const BY_DESTINATION: u32 = 2;
    const LOCAL: u32 = 2;
    expression(body, "fib", |body| {
        for (kind, value) in (1..).zip([REGISTER, OF_TYPE, BY_DESTINATION]) {
            body.attribute(kind, &value.to_be_bytes());
        }
    });
    equals(body, &LOCAL.to_ne_bytes());
}
