//! Rules as an nftables table, sent as one atomic batch of messages.
//!
//! The socket that creates a table owns it. Other processes cannot change the table, and the kernel removes it with the
//! socket, however the process ends. Kernels before 5.12 do not support owners. There, a rule on the destination
//! applies only while that address is local.
//!
//! Accept rules are left out, because another table may still drop what this one has accepted.

use core::net::IpAddr;

use crate::net::netlink::{MessageBuffer, PayloadWriter};
use crate::net::rules::{Hook, Protocol, Rule, Side, Verdict};
use crate::net::uapi::*;

/// Netlink protocol (`NETLINK_NETFILTER`).
pub const PROTOCOL: i32 = libc::NETLINK_NETFILTER;
/// Comment of the rules, the same as node-cache's.
const COMMENT: &str = "NodeLocal DNS Cache: skip conntrack";
/// Length of the comment with its terminating zero.
const COMMENT_LENGTH: u8 = 36;
const _: () = assert!(COMMENT.len() + 1 == COMMENT_LENGTH as usize);

/// `struct nfgenmsg` of a request for a table of both IPv4 and IPv6: family, version, resource ID.
const NFGENMSG: [u8; 4] = [NFPROTO_INET, NFNETLINK_V0, 0, 0];

/// Returns the message type of an nftables message.
const fn message_type(message: u16) -> u16 {
    NFNL_SUBSYS_NFTABLES << 8 | message
}

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
pub fn create_table(table: &Table, rules: &[Rule]) -> MessageBuffer {
    let mut batch = Batch::begin();
    let flags = if table.is_owned { NFT_TABLE_F_OWNER } else { 0 };
    if !table.is_owned {
        // Deleting a missing table would fail, so create it first.
        batch.request(NFT_MSG_NEWTABLE, NLM_F_CREATE, |body| {
            body.string(NFTA_TABLE_NAME, &table.name);
        });
        batch.request(NFT_MSG_DELTABLE, 0, |body| {
            body.string(NFTA_TABLE_NAME, &table.name);
        });
    }
    batch.request(NFT_MSG_NEWTABLE, NLM_F_CREATE, |body| {
        body.string(NFTA_TABLE_NAME, &table.name).attribute(NFTA_TABLE_FLAGS, &flags.to_be_bytes());
    });
    for (name, hook) in [("prerouting", Hook::RawPrerouting), ("output", Hook::RawOutput)] {
        batch.request(NFT_MSG_NEWCHAIN, NLM_F_CREATE, |body| write_chain(body, &table.name, name, hook));
        for rule in rules.iter().filter(|rule| rule.hook == hook && rule.verdict == Verdict::NoTrack) {
            batch.request(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, |body| write_rule(body, table, name, rule));
        }
    }
    batch.end()
}

/// Removes a table.
#[must_use]
pub fn delete_table(table: &Table) -> MessageBuffer {
    let mut batch = Batch::begin();
    batch.request(NFT_MSG_DELTABLE, 0, |body| {
        body.string(NFTA_TABLE_NAME, &table.name);
    });
    batch.end()
}

/// Requests information on a table.
#[must_use]
pub fn get_table(table: &Table) -> MessageBuffer {
    let mut messages = MessageBuffer::default();
    messages.push(message_type(NFT_MSG_GETTABLE), NLM_F_REQUEST | NLM_F_ACK, 1, |body| {
        body.bytes(&NFGENMSG).string(NFTA_TABLE_NAME, &table.name);
    });
    messages
}

struct Batch {
    requests: Vec<(u16, u16, MessageBuffer)>,
}

impl Batch {
    fn begin() -> Batch {
        Batch { requests: Vec::new() }
    }

    fn request(&mut self, message: u16, flags: u16, write: impl FnOnce(&mut PayloadWriter<'_>)) {
        let kind = message_type(message);
        let mut body = MessageBuffer::default();
        body.push(kind, NLM_F_REQUEST | flags, 1, |body| {
            body.bytes(&NFGENMSG);
            write(body);
        });
        self.requests.push((kind, flags, body));
    }

    /// Encloses the requests in batch markers, and requests an acknowledgement for the last one.
    fn end(self) -> MessageBuffer {
        let [high, low] = NFNL_SUBSYS_NFTABLES.to_be_bytes();
        let mark = [AF_UNSPEC, NFNETLINK_V0, high, low];
        let mut messages = MessageBuffer::default();
        messages.push(NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, 0, |body| {
            body.bytes(&mark);
        });
        let last = self.requests.len().saturating_sub(1);
        for (at, (kind, flags, written)) in self.requests.into_iter().enumerate() {
            let answered = if at == last { NLM_F_ACK } else { 0 };
            messages.push(kind, NLM_F_REQUEST | flags | answered, 1, |body| {
                body.bytes(written.as_bytes().get(NLMSG_HDRLEN..).unwrap_or_default());
            });
        }
        messages.push(NFNL_MSG_BATCH_END, NLM_F_REQUEST, 0, |body| {
            body.bytes(&mark);
        });
        messages
    }
}

fn write_chain(body: &mut PayloadWriter<'_>, table: &str, name: &str, hook: Hook) {
    let number = if hook == Hook::RawPrerouting { NF_INET_PRE_ROUTING } else { NF_INET_LOCAL_OUT };
    body.string(NFTA_CHAIN_TABLE, table).string(NFTA_CHAIN_NAME, name).nested(NFTA_CHAIN_HOOK, |body| {
        body.attribute(NFTA_HOOK_HOOKNUM, &number.to_be_bytes());
        // Before connection tracking.
        body.attribute(NFTA_HOOK_PRIORITY, &NF_IP_PRI_RAW.to_be_bytes());
    });
    body.string(NFTA_CHAIN_TYPE, "filter");
}

fn write_rule(body: &mut PayloadWriter<'_>, table: &Table, chain: &str, rule: &Rule) {
    body.string(NFTA_RULE_TABLE, &table.name).string(NFTA_RULE_CHAIN, chain);
    body.nested(NFTA_RULE_EXPRESSIONS, |body| expressions(body, table, rule));
    // Type, length and zero-terminated text.
    let comment = [&[NFTNL_UDATA_RULE_COMMENT, COMMENT_LENGTH], COMMENT.as_bytes(), &[0]].concat();
    body.attribute(NFTA_RULE_USERDATA, &comment);
}

/// Writes the expressions of a rule: the conditions in order, then the verdict.
fn expressions(body: &mut PayloadWriter<'_>, table: &Table, rule: &Rule) {
    let is_source = rule.side == Side::Source;
    let protocol = match rule.protocol {
        Protocol::Tcp => IPPROTO_TCP,
        Protocol::Udp => IPPROTO_UDP,
    };
    // Offsets of the source and destination addresses in the header (RFC 791 §3.1, RFC 8200 §3).
    let (family, source, destination, length, bytes) = match rule.ip {
        IpAddr::V4(ip) => (NFPROTO_IPV4, 12, 16, 4, ip.octets().to_vec()),
        IpAddr::V6(ip) => (NFPROTO_IPV6, 8, 24, 16, ip.octets().to_vec()),
    };
    meta(body, NFT_META_NFPROTO);
    equals(body, &[family]);
    payload(body, NFT_PAYLOAD_NETWORK_HEADER, if is_source { source } else { destination }, length);
    equals(body, &bytes);
    meta(body, NFT_META_L4PROTO);
    equals(body, &[protocol]);
    payload(body, NFT_PAYLOAD_TRANSPORT_HEADER, if is_source { 0 } else { 2 }, 2);
    equals(body, &rule.port.to_be_bytes());
    if !table.is_owned && !is_source {
        destination_is_local(body);
    }
    expression(body, "notrack", |_| {});
}

fn expression(body: &mut PayloadWriter<'_>, name: &str, write: impl FnOnce(&mut PayloadWriter<'_>)) {
    body.nested(NFTA_LIST_ELEM, |body| {
        body.string(NFTA_EXPR_NAME, name).nested(NFTA_EXPR_DATA, write);
    });
}

fn numbers(body: &mut PayloadWriter<'_>, attributes: &[(u16, u32)]) {
    for (kind, value) in attributes {
        body.attribute(*kind, &value.to_be_bytes());
    }
}

fn meta(body: &mut PayloadWriter<'_>, key: u32) {
    expression(body, "meta", |body| numbers(body, &[(NFTA_META_DREG, NFT_REG_1), (NFTA_META_KEY, key)]));
}

fn payload(body: &mut PayloadWriter<'_>, base: u32, offset: u32, length: u32) {
    let attributes = [
        (NFTA_PAYLOAD_DREG, NFT_REG_1),
        (NFTA_PAYLOAD_BASE, base),
        (NFTA_PAYLOAD_OFFSET, offset),
        (NFTA_PAYLOAD_LEN, length),
    ];
    expression(body, "payload", |body| numbers(body, &attributes));
}

fn equals(body: &mut PayloadWriter<'_>, bytes: &[u8]) {
    expression(body, "cmp", |body| {
        numbers(body, &[(NFTA_CMP_SREG, NFT_REG_1), (NFTA_CMP_OP, NFT_CMP_EQ)]);
        body.nested(NFTA_CMP_DATA, |body| {
            body.attribute(NFTA_DATA_VALUE, bytes);
        });
    });
}

fn destination_is_local(body: &mut PayloadWriter<'_>) {
    let attributes =
        [(NFTA_FIB_DREG, NFT_REG_1), (NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE), (NFTA_FIB_FLAGS, NFTA_FIB_F_DADDR)];
    expression(body, "fib", |body| numbers(body, &attributes));
    equals(body, &RTN_LOCAL.to_ne_bytes());
}
