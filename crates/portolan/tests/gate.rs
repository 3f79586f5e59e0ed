//! The same rules on all transports: a message gets the same response code, or none, over each of them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::http::{Http, HttpClient, base64url, get, post, request, server_name, tls_client};
use crate::support::quic::QuicClient;
use crate::support::{Client, Folder, PATIENCE, Server, certify, query};
use aws_lc_rs::hmac;
use wire::{Rcode, Type};

/// Secret of the key `key.`.
const SECRET: &[u8] = b"a secret of thirty-two bytes ...";

/// Way to ask a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Udp,
    Tcp,
    Tls,
    Http1Get,
    Http2Post,
    Http3,
    Quic,
    Grpc,
}

impl Way {
    /// Returns true if the transport encrypts.
    const fn is_encrypted(self) -> bool {
        !matches!(self, Way::Udp | Way::Tcp)
    }
}

const WAYS: [Way; 8] = [Way::Udp, Way::Tcp, Way::Tls, Way::Http1Get, Way::Http2Post, Way::Http3, Way::Quic, Way::Grpc];

/// Server on all transports.
struct Running {
    _server: Server,
    ca: PathBuf,
    addresses: Vec<(&'static str, SocketAddr)>,
    _folder: Folder,
}

impl Running {
    /// Starts a server with these properties of *tls*.
    fn start(name: &str, properties: &str) -> Running {
        let folder = Folder::new(name);
        certify(&folder, &["dns.example.org"]);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let secret = base64(SECRET);
        let plugins = format!(
            "acl refused.example.org {{\nblock\n}}\nacl dropped.example.org {{\ndrop\n}}\n\
             tsig {{\nsecret key. {secret}\nrequire TXT\n}}\nhosts /dev/null {{\n192.0.2.1 www.example.org\n}}"
        );
        let keys = "dns://.:0 tls://.:0 https://.:0 https3://.:0 quic://.:0 grpc://.:0";
        let tls = format!("tls {} {} {{\n{properties}\n}}", path("cert.pem"), path("key.pem"));
        let text = format!("{keys} {{\nbind 127.0.0.1\n{tls}\n{plugins}\n}}\n");
        let mut server = Server::start(&folder.write("Corefile", &text));
        let schemes = ["dns", "tls", "https", "https3", "quic", "grpc"];
        let addresses = schemes.map(|scheme| (scheme, server.address_of(&format!("{scheme}://127.0.0.1:0")))).to_vec();
        Running { _server: server, ca: path("ca.pem").into(), addresses, _folder: folder }
    }

    fn address(&self, scheme: &str) -> SocketAddr {
        self.addresses.iter().find(|(known, _)| *known == scheme).unwrap().1
    }

    /// Sends a message over a new connection. Returns the answer, or `None` if there is no answer.
    fn ask(&self, way: Way, message: &[u8]) -> Option<Vec<u8>> {
        self.ask_within(way, message, PATIENCE)
    }

    /// Sends a message. Over UDP, TCP and TLS it waits this long for an answer.
    fn ask_within(&self, way: Way, message: &[u8], patience: Duration) -> Option<Vec<u8>> {
        match way {
            Way::Udp => {
                let client = Client::new(self.address("dns")).waiting(patience);
                client.send_bytes(message);
                client.receive_any().map(|answer| answer.0)
            }
            Way::Tcp => {
                let tcp = TcpStream::connect(self.address("dns")).unwrap();
                tcp.set_read_timeout(Some(patience)).unwrap();
                exchange_framed(tcp, message)
            }
            Way::Tls => {
                let config = Arc::new(tls_client(&self.ca, &[]));
                let tls = rustls::ClientConnection::new(config, server_name()).unwrap();
                let tcp = TcpStream::connect(self.address("tls")).unwrap();
                tcp.set_read_timeout(Some(patience)).unwrap();
                exchange_framed(rustls::StreamOwned::new(tls, tcp), message)
            }
            Way::Http1Get => self.ask_http(Http::One, get(message)),
            Way::Http2Post => self.ask_http(Http::Two, post(message.to_vec())),
            Way::Http3 => self.ask_http3(message),
            Way::Quic => {
                let mut client = QuicClient::connect(self.address("quic"), b"doq", &self.ca);
                client.ask(message).and_then(|mut messages| messages.pop())
            }
            Way::Grpc => self.ask_grpc(message),
        }
    }

    fn ask_http(
        &self,
        http: Http,
        request: hyper::Request<http_body_util::Full<hyper::body::Bytes>>,
    ) -> Option<Vec<u8>> {
        let response = HttpClient::connect(self.address("https"), http, &self.ca).send(request)?;
        (response.status() == 200).then(|| response.into_body().to_vec())
    }

    fn ask_http3(&self, message: &[u8]) -> Option<Vec<u8>> {
        let mut client = QuicClient::connect(self.address("https3"), b"h3", &self.ca);
        // HEADERS: GET (index 17), https (23), the authority and the path as literals.
        let target = format!("/dns-query?dns={}", base64url(message));
        let mut section = b"\0\0\xd1\xd7\x50\x03dns\x51".to_vec();
        let length = target.len();
        if length < 127 {
            section.push(u8::try_from(length).unwrap());
        } else {
            // A prefix of seven bits, then seven bits at a time.
            let rest = length - 127;
            section.extend([0x7f, u8::try_from(rest & 0x7f).unwrap() | 0x80, u8::try_from(rest >> 7).unwrap()]);
        }
        section.extend_from_slice(target.as_bytes());
        let length = u16::try_from(section.len()).unwrap() | 0x4000;
        let stream = client.send(&[&[1][..], &length.to_be_bytes(), &section].concat());
        let response = client.read(stream)?;
        // The index of `:status: 200`. The DATA frame follows the header section.
        (response.get(4) == Some(&0xd9)).then(|| {
            let rest = &response[usize::from(response[1]) + 2..];
            let prefix = if rest[1] & 0xc0 == 0 { 2 } else { 3 };
            rest[prefix..].to_vec()
        })
    }

    fn ask_grpc(&self, message: &[u8]) -> Option<Vec<u8>> {
        let mut packet = vec![0x0a];
        let length = message.len();
        if length < 128 {
            packet.push(u8::try_from(length).unwrap());
        } else {
            packet.extend([u8::try_from(length & 0x7f).unwrap() | 0x80, u8::try_from(length >> 7).unwrap()]);
        }
        packet.extend_from_slice(message);
        let prefix = [&[0][..], &u32::try_from(packet.len()).unwrap().to_be_bytes()].concat();
        let mut request = request("POST", "/coredns.dns.DnsService/Query", [prefix, packet].concat());
        request.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
        let response = HttpClient::connect(self.address("grpc"), Http::Two, &self.ca).send(request)?;
        let body = response.into_body();
        let packet = body.get(6..)?;
        let prefix = if packet[0] & 0x80 == 0 { 1 } else { 2 };
        Some(packet[prefix..].to_vec())
    }
}

fn exchange_framed(mut stream: impl Read + Write, message: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(message.len()).unwrap().to_be_bytes();
    stream.write_all(&[&length[..], message].concat()).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer).ok()?;
    Some(answer)
}

fn base64(bytes: &[u8]) -> String {
    let text = base64url(bytes).replace('-', "+").replace('_', "/");
    let padding = "=".repeat((4 - text.len() % 4) % 4);
    text + &padding
}

/// Returns a query with ID 0, which DNS over QUIC requires.
fn asked(name: &str, qtype: Type) -> Vec<u8> {
    query(0, name, qtype)
}

/// Returns a query of which some bytes are replaced.
fn changed(changes: &[(usize, u8)]) -> Vec<u8> {
    let mut message = asked("www.example.org.", Type::A);
    for (at, byte) in changes {
        message[*at] = *byte;
    }
    message
}

/// Returns a query with an empty padding option (RFC 7830 §3).
fn padded(name: &str, qtype: Type) -> Vec<u8> {
    let mut message = asked(name, qtype);
    let options_len = message.len() - 1;
    message[options_len] = 4;
    message.extend([0, 12, 0, 0]);
    message
}

/// Signs a query (RFC 8945 §4.3.3).
fn signed(key_name: &[u8], secret: &[u8]) -> Vec<u8> {
    sign(asked("www.example.org.", Type::A), key_name, secret)
}

fn sign(message: Vec<u8>, key_name: &[u8], secret: &[u8]) -> Vec<u8> {
    sign_at(SystemTime::now(), message, key_name, secret)
}

/// Signs a query as a client whose clock shows this time.
fn sign_at(now: SystemTime, mut message: Vec<u8>, key_name: &[u8], secret: &[u8]) -> Vec<u8> {
    let algorithm = b"\x0bhmac-sha256\0";
    let seconds = now.duration_since(UNIX_EPOCH).unwrap().as_secs().to_be_bytes();
    let (time, fudge) = (&seconds[2..], 300u16.to_be_bytes());
    let variables = [key_name, &[0, 255, 0, 0, 0, 0], algorithm, time, &fudge, &[0, 0, 0, 0]].concat();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mac = hmac::sign(&key, &[message.as_slice(), &variables].concat());
    let data = [algorithm, time, &fudge, &[0, 32], mac.as_ref(), &message[..2], &[0, 0, 0, 0]].concat();
    let length = u16::try_from(data.len()).unwrap().to_be_bytes();
    message.extend([key_name, &[0, 250, 0, 255, 0, 0, 0, 0], &length, &data].concat());
    message[11] += 1;
    message
}

/// Offset of the class in the question, and of the EDNS version.
const CLASS: usize = 12 + 17 + 2 + 1;
const EDNS_VERSION: usize = CLASS + 1 + 6;

#[test]
fn a_message_has_the_same_outcome_on_all_transports() {
    let running = Running::start("gate", "");
    let hour = Duration::from_secs(3600);
    let at = |time| sign_at(time, asked("www.example.org.", Type::A), b"\x03key\0", SECRET);
    let rows: [(&str, Vec<u8>, Option<Rcode>); 21] = [
        ("query", asked("www.example.org.", Type::A), Some(Rcode::NOERROR)),
        ("no name", asked("example.net.", Type::A), Some(Rcode::SERVFAIL)),
        ("opcode STATUS", changed(&[(2, 0x10)]), Some(Rcode::NOTIMP)),
        ("opcode UPDATE", changed(&[(2, 0x28)]), Some(Rcode::NOTIMP)),
        ("opcode 15", changed(&[(2, 0x78)]), Some(Rcode::NOTIMP)),
        ("response", changed(&[(2, 0x80)]), None),
        ("no question", changed(&[(5, 0)]), Some(Rcode::FORMERR)),
        ("two questions", changed(&[(5, 2)]), Some(Rcode::FORMERR)),
        ("missing records", changed(&[(7, 1)]), Some(Rcode::FORMERR)),
        ("missing authority", changed(&[(9, 1)]), Some(Rcode::FORMERR)),
        ("missing additional", changed(&[(11, 9)]), Some(Rcode::FORMERR)),
        ("class CH", changed(&[(CLASS, 3)]), Some(Rcode::REFUSED)),
        ("EDNS version 1", changed(&[(EDNS_VERSION, 1)]), Some(Rcode(16))),
        ("refused by acl", asked("refused.example.org.", Type::A), Some(Rcode::REFUSED)),
        ("dropped by acl", asked("dropped.example.org.", Type::A), None),
        ("unsigned", asked("www.example.org.", Type::TXT), Some(Rcode::REFUSED)),
        ("signed", signed(b"\x03key\0", SECRET), Some(Rcode::NOERROR)),
        ("bad signature", signed(b"\x03key\0", b"another secret of 32 bytes ....."), Some(Rcode::NOTAUTH)),
        ("unknown key", signed(b"\x05other\0", SECRET), Some(Rcode::NOTAUTH)),
        ("signed too early", at(SystemTime::now() - hour), Some(Rcode::NOTAUTH)),
        ("signed too late", at(SystemTime::now() + hour), Some(Rcode::NOTAUTH)),
    ];
    for (rule, message, expected) in rows {
        for way in WAYS {
            // Silence has no end, so it is taken for granted after a while.
            let patience = if expected.is_some() { PATIENCE } else { Duration::from_millis(500) };
            let answer = running.ask_within(way, &message, patience);
            let rcode = answer.as_deref().map(rcode);
            assert_eq!(rcode, expected, "{rule} over {way:?}: {answer:?}");
            let is_signed = answer.is_some_and(|answer| answer.windows(13).any(|part| part == b"\x0bhmac-sha256\0"));
            let has_signature = rule.starts_with("signed") || ["bad signature", "unknown key"].contains(&rule);
            assert_eq!(is_signed, has_signature, "{rule} over {way:?}");
        }
    }
}

/// Returns the length of the padding in an answer, if it has the option.
fn padding(answer: &[u8]) -> Option<usize> {
    let message = wire::Message::parse(answer).expect("a message");
    let opt = message.records().find(|record| record.rtype() == Type::OPT)?;
    let (_, data) = wire::options(opt.rdata()).last().filter(|(code, _)| *code == wire::OptionCode::PADDING)?;
    assert!(data.iter().all(|byte| *byte == 0), "the padding is zero");
    Some(data.len())
}

#[test]
fn pads_answers_over_encrypted_transports_for_clients_that_ask_for_it() {
    let running = Running::start("gate-padded", "pad_responses");
    let signed = sign(padded("www.example.org.", Type::A), b"\x03key\0", SECRET);
    let rows = [
        ("an answer", padded("www.example.org.", Type::A), Rcode::NOERROR),
        ("a failure", padded("example.net.", Type::A), Rcode::SERVFAIL),
        ("a refusal", padded("refused.example.org.", Type::A), Rcode::REFUSED),
        ("a signed answer", signed, Rcode::NOERROR),
    ];
    for (rule, message, expected) in rows {
        for way in WAYS {
            let answer = running.ask(way, &message).expect("an answer");
            assert_eq!(rcode(&answer), expected, "{rule} over {way:?}");
            let is_padded = padding(&answer).is_some() && answer.len() == 468;
            assert_eq!(is_padded, way.is_encrypted(), "{rule} over {way:?}: {} bytes", answer.len());
        }
    }
    // Without the option, no answer is padded.
    for way in WAYS {
        let answer = running.ask(way, &asked("www.example.org.", Type::A)).expect("an answer");
        assert!(padding(&answer).is_none() && answer.len() < 100, "{way:?}");
    }
}

#[test]
fn pads_nothing_by_default() {
    let running = Running::start("gate-unpadded", "");
    for way in WAYS {
        let answer = running.ask(way, &padded("www.example.org.", Type::A)).expect("an answer");
        assert!(padding(&answer).is_none() && answer.len() < 100, "{way:?}");
    }
}

/// Returns the response code, with the upper bits of the OPT record.
fn rcode(answer: &[u8]) -> Rcode {
    let message = wire::Message::parse(answer).expect("a message");
    let opt = message.records().find(|record| record.rtype() == Type::OPT);
    let upper = opt.map_or(0, |opt| opt.ttl() >> 24);
    Rcode(message.header().flags.rcode().0 | u16::try_from(upper << 4).unwrap())
}
