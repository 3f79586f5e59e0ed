//! Random questions about the names of a scene.

use std::collections::VecDeque;

use testkit::Question;
use wire::{Class, Flags, Name, Opcode, Opt, OptionCode, Type};

use super::compare::Asked;
use crate::random::Random;

/// Number of questions without both responses. More could overflow the socket buffer of a server.
pub(crate) const WINDOW: usize = 64;
/// Query types; the frequent ones several times.
const TYPES: &[&str] = &[
    "A",
    "A",
    "A",
    "A",
    "A",
    "A",
    "A",
    "A",
    "A",
    "A",
    "AAAA",
    "AAAA",
    "AAAA",
    "AAAA",
    "AAAA",
    "MX",
    "TXT",
    "TXT",
    "SRV",
    "SRV",
    "PTR",
    "PTR",
    "NS",
    "NS",
    "SOA",
    "SOA",
    "CNAME",
    "CNAME",
    "DNAME",
    "ANY",
    "ANY",
    "HTTPS",
    "HTTPS",
    "SVCB",
    "CAA",
    "NAPTR",
    "TLSA",
    "SSHFP",
    "HINFO",
    "DS",
    "DS",
    "DNSKEY",
    "RRSIG",
    "NSEC",
    "NSEC3",
    "NSEC3PARAM",
    "LOC",
    "URI",
    "RP",
    "TYPE65280",
    "TYPE65535",
    "TYPE0",
    "TYPE41",
    "TYPE250",
    "TYPE249",
    "TYPE253",
    "TYPE254",
    "IXFR",
    "AXFR",
    "NULL",
    "TYPE11",
    "CDS",
    "ZONEMD",
    "TYPE300",
    "TYPE3",
    "TYPE18",
    "TYPE35",
    "TYPE37",
    "TYPE38",
    "TYPE42",
    "TYPE53",
    "TYPE60",
    "TYPE61",
    "TYPE62",
    "TYPE99",
    "TYPE104",
    "TYPE108",
    "TYPE128",
    "TYPE32768",
    "TYPE32769",
];
/// UDP payload sizes.
const SIZES: [u16; 8] = [4096, 1232, 1232, 512, 0, 100, 700, 65535];
/// Names of the ways to damage a message.
const DAMAGES: [&str; 13] = ["trail", "qd0", "qd2", "qr", "rcode", "z", "tc", "ra", "cut", "an1", "ns1", "ar9", "aa"];
/// Length of a header in bytes.
const HEADER: usize = 12;
/// Maximum number of draws for a question that is not on its way yet.
const DRAWS_MAX: usize = 50;

/// Question as a message.
#[derive(Clone)]
pub(crate) struct Query {
    /// The question as text: name, type, and what is unusual.
    pub(crate) text: String,
    /// Message with any ID.
    pub(crate) packet: Vec<u8>,
    pub(crate) tcp: bool,
    /// Name in lower case.
    pub(crate) name: String,
    pub(crate) qtype: Type,
}

impl Query {
    /// Returns what a response repeats.
    pub(crate) fn asked(&self) -> Asked<'_> {
        let flags = self.packet.get(2..4).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        Asked { name: self.text.split(' ').next().unwrap_or_default(), flags: Flags(flags) }
    }
}

/// Returns random questions. None is asked again while it can still be on its way, because then a cache may answer
/// either of both.
pub(crate) fn random(random: &mut Random, names: &[String], count: usize) -> Vec<Query> {
    let mut recent: VecDeque<(String, Type)> = VecDeque::new();
    let mut queries = Vec::with_capacity(count);
    for _ in 0..count {
        let mut query = one(random, names);
        for _ in 0..DRAWS_MAX {
            if !recent.iter().any(|(name, qtype)| *name == query.name && *qtype == query.qtype) {
                break;
            }
            query = one(random, names);
        }
        recent.push_back((query.name.clone(), query.qtype));
        if recent.len() > WINDOW {
            recent.pop_front();
        }
        queries.push(query);
    }
    queries
}

fn one(random: &mut Random, names: &[String]) -> Query {
    let name = name(random, &names[random.clone().below(names.len())]);
    let is_chaos = name.ends_with("bind.") || name.ends_with(".server.");
    let mut qtype = random.pick(TYPES);
    if name.ends_with("arpa.") && random.percent(60) {
        qtype = "PTR";
    }
    let mut class = if random.permille(965) { "IN" } else { random.pick(&["CH", "HS", "ANY", "NONE", "CLASS5"]) };
    if is_chaos && random.percent(80) {
        (class, qtype) = ("CH", random.pick(&["TXT", "TXT", "A"]));
    }
    let name = Name::from_text(&name).unwrap_or_default();
    let mut question = Question::new(name.clone(), qtype.parse().unwrap_or(Type::A));
    question.qclass = class.parse().unwrap_or(Class::IN);
    let mut words = vec![name.to_string(), qtype.to_owned()];
    if class != "IN" {
        words.push(class.to_owned());
    }
    if qtype == "IXFR" && random.percent(70) {
        question.serial = Some(1);
    }
    flags(random, &mut question, &mut words);
    edns(random, &mut question, &mut words);
    let tcp = random.percent(8);
    if tcp {
        words.push("tcp".to_owned());
    }
    let mut packet = question.packet();
    damage(random, &question, &mut packet, &mut words);
    Query { text: words.join(" "), packet, tcp, name: name.to_string().to_lowercase(), qtype: question.qtype }
}

/// Returns a name, its parent, a neighbour, or the name with other letters.
fn name(random: &mut Random, name: &str) -> String {
    let prefixed = |first: &str| format!("{first}.{}", name.trim_start_matches('.'));
    match random.below(1000) {
        0..60 => prefixed(random.pick(&["nope", "a", "www", "zz.zz", "_x", "*", "xn--a"])),
        60..100 => match name.split_once('.') {
            Some((_, parent)) if !parent.is_empty() => parent.to_owned(),
            _ => ".".to_owned(),
        },
        100..180 => {
            name.chars().map(|letter| if random.percent(50) { letter.to_ascii_uppercase() } else { letter }).collect()
        }
        180..190 => prefixed(&"l".repeat(63)),
        190..195 => name.replacen('a', "\\000", 1),
        195..200 => {
            let end = random.pick(&[".test.", ".local.", ".com.", ".svc.cluster.local."]);
            format!("{}{end}", name.trim_end_matches('.'))
        }
        _ => name.to_owned(),
    }
}

fn flags(random: &mut Random, question: &mut Question, words: &mut Vec<String>) {
    let mut flags = question.header.flags;
    if random.percent(10) {
        flags = flags.with_recursion_desired(false);
        words.push("nord".to_owned());
    }
    if random.percent(8) {
        flags = flags.with_checking_disabled(true);
        words.push("cd".to_owned());
    }
    if random.percent(8) {
        flags = flags.with_authentic_data(true);
        words.push("ad".to_owned());
    }
    if random.permille(12) {
        let opcode = random.pick(&[1, 2, 4, 5, 6, 15]);
        flags = flags.with_opcode(Opcode(opcode));
        words.push(format!("opcode{opcode}"));
    }
    question.header.flags = flags;
}

fn edns(random: &mut Random, question: &mut Question, words: &mut Vec<String>) {
    if random.percent(35) {
        question.opt = None;
        words.push("noedns".to_owned());
        return;
    }
    let udp_size = random.pick(&SIZES);
    let version = u8::from(random.permille(10));
    let dnssec_ok = random.percent(30);
    question.opt = Some(Opt { udp_size, extended_rcode: 0, version, dnssec_ok });
    words.push(format!("buf{udp_size}"));
    words.extend(dnssec_ok.then(|| "do".to_owned()));
    words.extend((version > 0).then(|| "v1".to_owned()));
    for _ in 0..random.pick(&[0, 0, 0, 0, 0, 0, 0, 1, 2]) {
        let (code, length) = random.pick(&[
            (3, 0),
            (10, 8),
            (10, 24),
            (12, 9),
            (65001, 2),
            (11, 0),
            (9, 0),
            (8, 0),
            (5, 3),
            (6, 1),
            (13, 4),
            (14, 4),
            (15, 6),
            (18, 7),
            (20292, 4),
        ]);
        // A client subnet is 192.0.2.0/24 (RFC 7871 §6).
        let data = if code == 8 { vec![0, 1, 24, 0, 192, 0, 2] } else { (0..length).collect() };
        question.options.push((OptionCode(code), data));
        words.push(format!("option{code}"));
    }
}

/// Damages the header or the end of a few messages.
fn damage(random: &mut Random, question: &Question, packet: &mut Vec<u8>, words: &mut Vec<String>) {
    if !random.permille(12) {
        return;
    }
    let damage = random.pick(&DAMAGES);
    words.push(damage.to_owned());
    match damage {
        "trail" => packet.extend((0..=random.below(20)).map(|_| 0xa5)),
        "qd0" => packet[4..6].fill(0),
        "qd2" => {
            let mut plain = question.clone();
            plain.opt = None;
            plain.serial = None;
            plain.options.clear();
            *packet = plain.packet();
            packet.extend_from_within(HEADER..);
            packet[5] = 2;
        }
        "qr" => packet[2] |= 0x80,
        "rcode" => packet[3] |= 5,
        "z" => packet[3] |= 0x40,
        "tc" => packet[2] |= 2,
        "ra" => packet[3] |= 0x80,
        "aa" => packet[2] |= 4,
        "an1" => packet[7] += 1,
        "ns1" => packet[9] += 1,
        "ar9" => packet[11] = 9,
        _ => packet.truncate(HEADER + random.below(packet.len() - HEADER)),
    }
}
