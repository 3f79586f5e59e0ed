//! Fake upstreams on ports of loopback, over UDP and TCP. Each reacts to a query by its own way and the first label of
//! the name: `nx1` does not exist, `cn1` is an alias, `sf1` fails, and so on.

use std::sync::Arc;

use testkit::{Parsed, Record};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use wire::{Flags, Header, MessageBuf, Opt, Rcode, Section, Type};

use xtask::Failed;
use xtask::server::free_port;

/// Maximum number of TCP connections to all upstreams: both servers keep some open.
const CONNECTIONS_MAX: usize = 256;
/// UDP payload size in bytes of a client without EDNS (RFC 1035 §4.2.1).
const UDP_SIZE_MIN: u16 = 512;
/// Length in bytes of the longest query that is read.
const QUERY_MAX: usize = 4096;
/// Number of records of a `big` answer, which does not fit into a datagram.
const BIG_COUNT: usize = 40;

/// Way of an upstream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Answers by the first label.
    Good,
    Failing,
    Refusing,
    Denying,
    /// Truncates all answers over UDP.
    Truncating,
    /// Has every zone, and transfers it.
    Primary,
}

/// Environment variables of the ports, and the ways of the upstreams.
const WAYS: [(&str, Way); 7] = [
    ("UP", Way::Good),
    ("UP2", Way::Good),
    ("UPFAIL", Way::Failing),
    ("UPREFUSE", Way::Refusing),
    ("UPNX", Way::Denying),
    ("UPTC", Way::Truncating),
    ("UPXFR", Way::Primary),
];

/// Running upstreams, until the end of the program.
pub(crate) struct Upstreams {
    /// Environment variables and ports.
    pub(crate) ports: Vec<(&'static str, u16)>,
}

impl Upstreams {
    /// Starts all upstreams in a thread.
    pub(crate) fn start() -> Result<Upstreams, Failed> {
        let mut ports = Vec::new();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        for (variable, way) in WAYS {
            let port = free_port()?;
            let sockets = runtime.block_on(async {
                std::io::Result::Ok((
                    UdpSocket::bind(("127.0.0.1", port)).await?,
                    TcpListener::bind(("127.0.0.1", port)).await?,
                ))
            });
            let (udp, tcp) = sockets.map_err(|error| format!("upstream on port {port}: {error}"))?;
            runtime.spawn(over_udp(udp, way));
            runtime.spawn(over_tcp(tcp, way, Arc::clone(&connections)));
            ports.push((variable, port));
        }
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        Ok(Upstreams { ports })
    }
}

async fn over_udp(socket: UdpSocket, way: Way) {
    let mut packet = [0; QUERY_MAX];
    loop {
        let Ok((length, client)) = socket.recv_from(&mut packet).await else { continue };
        if let Some(response) = respond(&packet[..length], way, false) {
            let _ = socket.send_to(&response, client).await;
        }
    }
}

async fn over_tcp(listener: TcpListener, way: Way, connections: Arc<Semaphore>) {
    loop {
        let (Ok((stream, _)), Ok(permit)) = (listener.accept().await, Arc::clone(&connections).acquire_owned().await)
        else {
            continue;
        };
        tokio::spawn(async move {
            let _ = serve(stream, way).await;
            drop(permit);
        });
    }
}

async fn serve(mut stream: TcpStream, way: Way) -> std::io::Result<()> {
    loop {
        let length = usize::from(stream.read_u16().await?);
        let mut packet = vec![0; length];
        stream.read_exact(&mut packet).await?;
        let Some(response) = respond(&packet, way, true) else { continue };
        let length = u16::try_from(response.len()).unwrap_or_default().to_be_bytes();
        stream.write_all(&[&length[..], &response].concat()).await?;
    }
}

/// Answer in the making.
#[derive(Default)]
struct Reply {
    rcode: Rcode,
    flags: Flags,
    sections: [Vec<Record>; 3],
}

impl Reply {
    fn denied(rcode: Rcode, soa: &str) -> Reply {
        let mut reply = Reply { rcode, ..Reply::default() };
        reply.add(Section::Authority, soa);
        reply
    }

    /// Adds a record, whose text is a constant but for names that were asked.
    fn add(&mut self, section: Section, text: &str) {
        self.sections[section as usize].extend(text.parse::<Record>());
    }
}

/// Returns the response to a query; `None` if it is not a query.
fn respond(packet: &[u8], way: Way, is_stream: bool) -> Option<Vec<u8>> {
    let query = Parsed::read(packet).ok()?;
    let (name, qtype, _) = query.question.as_ref()?;
    let reply = match way {
        Way::Primary => transferred(&name.to_string(), *qtype),
        Way::Failing => Reply { rcode: Rcode::SERVFAIL, ..Reply::default() },
        Way::Refusing => Reply { rcode: Rcode::REFUSED, ..Reply::default() },
        Way::Denying => Reply::denied(Rcode::NXDOMAIN, &soa(&parent(&name.to_string()), 300)),
        Way::Good | Way::Truncating => by_label(&name.to_string(), *qtype, query.opt.is_some_and(|opt| opt.dnssec_ok)),
    };
    let whole = written(&query, &reply, false);
    let size = query.opt.map_or(UDP_SIZE_MIN, |opt| opt.udp_size.max(UDP_SIZE_MIN));
    let fits = is_stream || (way != Way::Truncating && whole.len() <= usize::from(size));
    Some(if fits { whole } else { written(&query, &reply, true) })
}

/// Writes a response, or one without records that is truncated.
fn written(query: &Parsed, reply: &Reply, cut: bool) -> Vec<u8> {
    let asked = query.header.flags;
    let flags = reply.flags.with_response(true).with_rcode(reply.rcode).with_truncated(cut);
    let flags = flags.with_opcode(asked.opcode()).with_recursion_desired(asked.recursion_desired());
    let flags = flags.with_checking_disabled(flags.checking_disabled() || asked.checking_disabled());
    let mut message = MessageBuf::new();
    let question = query.question.as_ref().map(|(name, qtype, qclass)| (name.as_ref(), *qtype, *qclass));
    message.start(Header { flags, ..query.header }, question);
    for (records, section) in reply.sections.iter().zip([Section::Answer, Section::Authority, Section::Additional]) {
        records.iter().filter(|_| !cut).for_each(|record| record.push_to(&mut message, section));
    }
    let opt = query.opt.map(|opt| Opt { udp_size: 1232, extended_rcode: 0, version: 0, dnssec_ok: opt.dnssec_ok });
    let mut bytes = message.finish(opt, std::iter::empty()).to_vec();
    bytes[2..4].copy_from_slice(&flags.0.to_be_bytes());
    bytes
}

/// Returns the records of the zone that the primary has for any name.
pub(crate) fn zone_lines(apex: &str) -> Vec<String> {
    let records = [
        "@ 300 IN SOA ns.@ host.@ 7 3600 600 86400 60",
        "@ 300 IN NS ns.@",
        "@ 300 IN NS ns.example.org.",
        "@ 60 IN MX 10 mail.@",
        "ns.@ 300 IN A 192.0.2.53",
        "marker.@ 300 IN A 192.0.2.54",
        "mail.@ 30 IN A 192.0.2.55",
        "mail.@ 30 IN AAAA 2001:db8::55",
        "www.@ 60 IN CNAME mail.@",
        "out.@ 60 IN CNAME www.example.org.",
        "gone.@ 60 IN CNAME nope.@",
        "far.@ 60 IN CNAME www.z1.test.",
        "txt.@ 60 IN TXT \"a text\"",
        "_http._tcp.@ 60 IN SRV 1 2 80 mail.@",
        "*.w.@ 60 IN A 192.0.2.56",
        "x.y.w.@ 60 IN A 192.0.2.57",
        "*.v.@ 60 IN CNAME mail.@",
        "dn.@ 60 IN DNAME mail.@",
        "sub.@ 60 IN NS ns.sub.@",
        "ns.sub.@ 60 IN A 192.0.2.58",
        "other.@ 60 IN NS ns1.example.net.",
    ];
    records.iter().map(|record| record.replace('@', apex)).collect()
}

/// Answers a secondary.
fn transferred(apex: &str, qtype: Type) -> Reply {
    let lines = zone_lines(apex);
    let mut reply = Reply { flags: Flags::default().with_authoritative(true), ..Reply::default() };
    let whole = matches!(qtype, Type::AXFR | Type::IXFR);
    match qtype {
        Type::SOA => reply.add(Section::Answer, &lines[0]),
        _ if whole => lines.iter().chain(lines.first()).for_each(|line| reply.add(Section::Answer, line)),
        _ => reply.rcode = Rcode::REFUSED,
    }
    reply
}

fn soa(zone: &str, ttl: u32) -> String {
    format!("{zone} {ttl} IN SOA ns.up.test. host.up.test. 7 3600 600 86400 300")
}

fn parent(name: &str) -> String {
    match name.split_once('.') {
        Some((_, rest)) if !rest.is_empty() => rest.to_owned(),
        _ => ".".to_owned(),
    }
}

/// Returns the reaction to the first label of a name.
fn by_label(name: &str, qtype: Type, dnssec: bool) -> Reply {
    let zone = parent(name);
    let label = name.split('.').next().unwrap_or_default().to_lowercase();
    let in_zone = |first: &str| if zone == "." { format!("{first}.up.test.") } else { format!("{first}.{zone}") };
    let fails = |rcode| Reply { rcode, ..Reply::default() };
    match label.get(..2).unwrap_or(&label) {
        "nx" => return Reply::denied(Rcode::NXDOMAIN, &soa(&zone, 300)),
        "n0" => return Reply::denied(Rcode::NXDOMAIN, &soa(&zone, 0)),
        "nd" => return Reply::denied(Rcode::NOERROR, &soa(&zone, 300)),
        "ne" => return Reply::default(),
        "ny" => return fails(Rcode::NXDOMAIN),
        "sf" => return fails(Rcode::SERVFAIL),
        "rf" => return fails(Rcode::REFUSED),
        "ni" => return fails(Rcode::NOTIMP),
        "fe" => return fails(Rcode::FORMERR),
        "xr" => return fails(Rcode(9)),
        "dl" => return referral(&zone, &in_zone("ns1")),
        _ => {}
    }
    let mut reply = Reply { flags: flags_of(&label), ..Reply::default() };
    let ttl = match label.get(..2) {
        Some("tz") => 0,
        Some("t1") => 1,
        Some("t7") => 700_000,
        _ => 300,
    };
    let owner = match alias(name, &label, &in_zone("tgt"), qtype, &mut reply) {
        Some(owner) => owner,
        None => return reply,
    };
    data(&owner, (&label, &zone), qtype, ttl, &mut reply);
    if dnssec && label.starts_with("sg") && !reply.sections[0].is_empty() {
        let signature = "13 3 300 20300101000000 20250101000000 2371 up.test. AAAA";
        reply.add(Section::Answer, &format!("{owner} {ttl} IN RRSIG {qtype} {signature}"));
    }
    reply
}

fn flags_of(label: &str) -> Flags {
    let flags = Flags::default().with_recursion_available(!label.starts_with("nra"));
    match label.get(..2) {
        Some("ad") => flags.with_authentic_data(true),
        Some("aa") => flags.with_authoritative(true),
        Some("cd") => flags.with_checking_disabled(true),
        _ => flags,
    }
}

fn referral(zone: &str, server: &str) -> Reply {
    let mut reply = Reply::default();
    reply.add(Section::Authority, &format!("{zone} 400 IN NS {server}"));
    reply.add(Section::Additional, &format!("{server} 400 IN A 192.0.2.1"));
    reply
}

/// Adds the aliases of a name. Returns the owner of the data, or `None` if the chain ends without data.
fn alias(name: &str, label: &str, target: &str, qtype: Type, reply: &mut Reply) -> Option<String> {
    if qtype == Type::CNAME {
        return Some(name.to_owned());
    }
    let mut push = |owner: &str, ttl: u32, target: &str| {
        reply.add(Section::Answer, &format!("{owner} {ttl} IN CNAME {target}"));
    };
    match label.get(..2) {
        Some("cn") => {
            push(name, 60, target);
            Some(target.to_owned())
        }
        Some("cx") => {
            push(name, 60, "www.example.net.");
            push("www.example.net.", 120, "www.example.edu.");
            Some("www.example.edu.".to_owned())
        }
        Some("co") => {
            push(name, 60, "gone.example.net.");
            reply.rcode = Rcode::NXDOMAIN;
            reply.add(Section::Authority, &soa("example.net.", 300));
            None
        }
        Some("cy") => {
            push(name, 60, "mid.example.net.");
            None
        }
        _ => Some(name.to_owned()),
    }
}

/// Adds the records of a type, or the SOA record that denies them.
fn data(owner: &str, (label, zone): (&str, &str), qtype: Type, ttl: u32, reply: &mut Reply) {
    let sum: usize = owner.to_lowercase().bytes().map(usize::from).sum();
    let texts: Vec<String> = match qtype.to_string().as_str() {
        "A" => (0..=sum % 3).map(|number| format!("A 192.0.2.{}", (sum + number * 7) % 256)).collect(),
        "AAAA" if sum.is_multiple_of(2) => vec![format!("AAAA 2001:db8::{sum:x}")],
        "MX" => vec!["MX 10 mail.up.test.".to_owned()],
        "TXT" => {
            let count = if label.starts_with("big") { BIG_COUNT } else { 1 };
            (0..count).map(|number| format!("TXT \"text {number} of {}\"", &label[..label.len().min(40)])).collect()
        }
        "SRV" => vec!["SRV 1 2 3 srv.up.test.".to_owned()],
        "NS" => vec!["NS ns1.up.test.".to_owned(), "NS ns2.up.test.".to_owned()],
        "SOA" => vec!["SOA ns.up.test. host.up.test. 7 3600 600 86400 300".to_owned()],
        "PTR" => vec!["PTR ptr.up.test.".to_owned()],
        "HTTPS" => vec!["HTTPS \\# 3 000100".to_owned()],
        "CNAME" if matches!(label.get(..2), Some("cn" | "cx" | "co" | "cy")) => vec![format!("CNAME tgt.{zone}")],
        "TYPE65280" => vec!["TYPE65280 \\# 4 01020304".to_owned()],
        "ANY" => vec!["A 192.0.2.1".to_owned(), "TXT \"any\"".to_owned()],
        _ => Vec::new(),
    };
    if texts.is_empty() {
        return reply.add(Section::Authority, &soa(zone, 300));
    }
    texts.iter().for_each(|text| reply.add(Section::Answer, &format!("{owner} {ttl} IN {text}")));
    match qtype.to_string().as_str() {
        "MX" => reply.add(Section::Additional, "mail.up.test. 90 IN A 192.0.2.9"),
        "SRV" => reply.add(Section::Additional, "srv.up.test. 80 IN A 192.0.2.19"),
        _ => {}
    }
}
