//! Client for dynamic updates: UPDATE messages with TSIG signatures (RFC 2136, RFC 8945), over TCP.

use std::net::{SocketAddr, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use wire::{Class, Flags, Header, Message, MessageBuf, Name, Opcode, Opt, Owner, Rcode, Section, Type};

use super::{Answer, PATIENCE, exchange_framed};

/// Secret of all keys in the tests.
pub(crate) const SECRET: &str = "i9M+00yrECfVZG2qCjr4mPpaGim/Bq+IWMiNrLjUO4Y=";
const FUDGE: u16 = 300;

/// Client that signs with a key.
pub(crate) struct Updater {
    pub(crate) server: SocketAddr,
    pub(crate) zone: Name,
    /// Type in the zone section: SOA, unless a test sends a wrong one.
    pub(crate) qtype: Type,
    /// True to send an OPT record, so that responses have reasons.
    pub(crate) uses_edns: bool,
    pub(crate) key: Option<(Name, hmac::Key)>,
}

impl Updater {
    /// Signs with this key, or not at all.
    pub(crate) fn new(server: SocketAddr, zone: &str, key: Option<&str>) -> Updater {
        let secret = zone::text::base64(SECRET).expect("a secret");
        let key = key.map(|name| (name_of(name), hmac::Key::new(hmac::HMAC_SHA256, &secret)));
        Updater { server, zone: name_of(zone), qtype: Type::SOA, uses_edns: false, key }
    }

    /// Sends an update. Each line of both sections is `NAME TTL CLASS TYPE [DATA]`, with names relative to the zone.
    /// Checks that the response is one to an UPDATE, and that it is signed if the update is.
    pub(crate) fn send(&self, prerequisites: &str, updates: &str) -> Rcode {
        let answer = self.exchange(&self.message(prerequisites, updates));
        let flags = answer.header().flags;
        assert!(flags.is_response() && flags.opcode() == Opcode::UPDATE, "{flags:?}");
        assert!(!flags.recursion_desired(), "{flags:?}");
        answer.rcode()
    }

    /// Update as it is sent.
    pub(crate) fn message(&self, prerequisites: &str, updates: &str) -> Vec<u8> {
        let flags = Flags::default().with_opcode(Opcode::UPDATE);
        let mut message = MessageBuf::new();
        let header = Header { id: 0x1234, flags, ..Header::default() };
        message.start(header, Some((self.zone.as_ref(), self.qtype, Class::IN)));
        self.push_all(&mut message, Section::Answer, prerequisites);
        self.push_all(&mut message, Section::Authority, updates);
        let opt = Opt { udp_size: 1232, extended_rcode: 0, version: 0, dnssec_ok: false };
        let bytes = message.finish(self.uses_edns.then_some(opt), core::iter::empty()).to_vec();
        self.signed(bytes, &[])
    }

    fn push_all(&self, message: &mut MessageBuf, section: Section, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.splitn(5, ' ').collect();
            let ttl: u32 = words[1].parse().expect("a TTL");
            let (class, rtype): (Class, Type) = (words[2].parse().expect("a class"), words[3].parse().expect("a type"));
            let parse = |line: &str| zone::text::record(line, self.zone.as_ref(), 0).expect(line);
            let owner = parse(&format!("{} 0 A 192.0.2.1", words[0])).owner;
            let data = words.get(4).map(|data| parse(&format!("x 0 {rtype} {data}")).rdata).unwrap_or_default();
            message.push_data(section, Owner::Name(owner.as_ref()), (rtype, class, ttl), &data).expect("a record");
        }
    }

    /// Sends a message over TCP and returns the response, whose signature is checked if the client signs.
    pub(crate) fn exchange(&self, message: &[u8]) -> Answer {
        let answer = self.exchange_unverified(message);
        self.verify(&answer.0, message);
        answer
    }

    /// Sends a message over TCP and returns the response, signed or not.
    pub(crate) fn exchange_unverified(&self, message: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.server).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        exchange_framed(&mut stream, message)
    }

    /// Checks the signature of a response, if there must be one.
    fn verify(&self, answer: &[u8], request: &[u8]) {
        let Some(signature) = signature_of(answer) else {
            return assert!(self.key.is_none(), "the response is unsigned");
        };
        let Some((key, secret)) = &self.key else { panic!("a signed response to an unsigned request") };
        let request_mac = signature_of(request).expect("a signed request").mac;
        let mut text = u16::try_from(request_mac.len()).expect("a length").to_be_bytes().to_vec();
        text.extend(&request_mac);
        text.extend(&signature.message);
        text.extend(variables(key, signature.time, signature.error));
        hmac::verify(secret, &text, &signature.mac).expect("a valid signature");
    }

    /// Appends a signature (RFC 8945 §4.3).
    fn signed(&self, mut message: Vec<u8>, before: &[u8]) -> Vec<u8> {
        let Some((key, secret)) = &self.key else { return message };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
        let text = [before, &message, &variables(key, now, 0)].concat();
        let mac = hmac::sign(secret, &text);
        let algorithm = name_of("hmac-sha256.");
        let mut rdata = algorithm.as_bytes().to_vec();
        rdata.extend(&now.to_be_bytes()[2..]);
        rdata.extend(FUDGE.to_be_bytes());
        rdata.extend(u16::try_from(mac.as_ref().len()).expect("a length").to_be_bytes());
        rdata.extend(mac.as_ref());
        rdata.extend(&message[..2]);
        rdata.extend([0; 4]);
        message.extend(key.as_bytes());
        message.extend([0, 250, 0, 255, 0, 0, 0, 0]);
        message.extend(u16::try_from(rdata.len()).expect("a length").to_be_bytes());
        message.extend(rdata);
        message[11] += 1;
        message
    }
}

fn name_of(text: &str) -> Name {
    Name::from_text(text).expect("a name")
}

fn variables(key: &Name, time: u64, error: u16) -> Vec<u8> {
    let mut text = key.as_bytes().to_vec();
    text.extend([0, 255, 0, 0, 0, 0]);
    text.extend(name_of("hmac-sha256.").as_bytes());
    text.extend(&time.to_be_bytes()[2..]);
    text.extend(FUDGE.to_be_bytes());
    text.extend(error.to_be_bytes());
    text.extend([0, 0]);
    text
}

/// Signature of a message, and the message without it.
struct Signature {
    mac: Vec<u8>,
    time: u64,
    error: u16,
    message: Vec<u8>,
}

fn signature_of(packet: &[u8]) -> Option<Signature> {
    let record = Message::parse(packet).expect("a message").records().last()?;
    if record.rtype() != Type::TSIG {
        return None;
    }
    let rdata = record.rdata();
    let (_, at) = Name::read(rdata, 0).expect("an algorithm");
    let word = |at: usize| u16::from_be_bytes([rdata[at], rdata[at + 1]]);
    let time = rdata[at..at + 6].iter().fold(0, |time, byte| time << 8 | u64::from(*byte));
    let end = at + 10 + usize::from(word(at + 8));
    let mut message = packet[..record.start()].to_vec();
    message[11] -= 1;
    Some(Signature { mac: rdata[at + 10..end].to_vec(), time, error: word(end + 2), message })
}
