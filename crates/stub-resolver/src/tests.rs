//! Lookups at a name server on loopback.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use wire::{Class, Flags, Header, MessageBuf, Owner, Rcode, Request, Section, Type};

use super::*;

/// Zone of the name server: `four.test` has an IPv4 address, `both.a.test` one of each family, `long.test` more than
/// fit into a datagram, `no-six.test` fails for AAAA, `broken.test` fails, and other names do not exist.
fn respond(packet: &[u8], over_tcp: bool) -> Vec<u8> {
    let mut request = Request::default();
    let header = Header::read(packet).unwrap();
    request.read(header, packet).unwrap();
    let name = request.name.to_string();
    let (rcode, addresses) = match (name.as_str(), request.qtype) {
        ("four.test.", Type::A) | ("no-six.test.", Type::A) => (Rcode::NOERROR, 1),
        ("both.a.test.", _) => (Rcode::NOERROR, 1),
        ("long.test.", Type::A) => (Rcode::NOERROR, if over_tcp { 60 } else { 0 }),
        ("four.test." | "long.test.", _) => (Rcode::NOERROR, 0),
        ("no-six.test." | "broken.test.", _) => (Rcode::SERVFAIL, 0),
        _ => (Rcode::NXDOMAIN, 0),
    };
    let is_cut = name == "long.test." && request.qtype == Type::A && !over_tcp;
    let flags = Flags::default().with_response(true).with_rcode(rcode);
    let mut message = MessageBuf::new();
    message.set_limit(u16::MAX.into());
    message.start(
        Header { id: header.id, flags, ..Header::default() },
        Some((request.name.as_ref(), request.qtype, Class::IN)),
    );
    for host in 1..=addresses {
        match request.qtype {
            Type::A => message.push_a(Section::Answer, Owner::Question, 5, Ipv4Addr::new(192, 0, 2, host)),
            _ => message.push_aaaa(
                Section::Answer,
                Owner::Question,
                5,
                Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into()),
            ),
        };
    }
    // An address beside the answer, as of a name server: it is not one of the host.
    message.push_a(Section::Additional, Owner::Question, 5, Ipv4Addr::new(198, 51, 100, 1));
    let mut response = message.finish(None, std::iter::empty()).to_vec();
    response[2] |= if is_cut { 0x02 } else { 0 };
    response
}

fn server() -> SocketAddr {
    let (udp, tcp) = testkit::ports::bind_pair();
    let address = udp.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((length, peer)) = udp.recv_from(&mut buffer) {
            let _ = udp.send_to(&respond(&buffer[..length], false), peer);
        }
    });
    std::thread::spawn(move || {
        for stream in tcp.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut packet = vec![0; u16::from_be_bytes(length).into()];
            stream.read_exact(&mut packet).unwrap();
            let response = respond(&packet, true);
            let length = u16::try_from(response.len()).unwrap().to_be_bytes();
            stream.write_all(&[&length, response.as_slice()].concat()).unwrap();
        }
    });
    address
}

/// Returns the configuration of a system that uses a name server on an unusual port.
fn conf(text: &str, servers: &[SocketAddr]) -> ResolvConf {
    let mut conf = ResolvConf::parse(text.as_bytes());
    conf.servers = servers.to_vec();
    conf
}

#[test]
fn looks_up_addresses_of_both_families() {
    let conf = conf("search b.test a.test", &[server()]);
    for (host, expected) in [
        ("four.test", "[192.0.2.1]"),
        ("both", "[192.0.2.1, 2001:db8::1]"),
        ("both.a.test.", "[192.0.2.1, 2001:db8::1]"),
        ("no-six.test", "[192.0.2.1]"),
    ] {
        assert_eq!(format!("{:?}", from_servers(host, &conf).unwrap()), expected, "{host}");
    }
    assert_eq!(from_servers("long.test", &conf).unwrap().len(), 60);
}

#[test]
fn appends_no_search_domain_to_a_complete_name() {
    let conf = conf("search a.test\noptions ndots:5", &[server()]);
    let found = |host: &str| from_servers(&complete(host), &conf).map_err(|error| error.to_string());
    assert!(from_servers("both", &conf).is_ok(), "a search list applies to other names");
    for host in ["both", "both."] {
        assert_eq!(found(host), Err("lookup both.: no such host".to_owned()));
    }
    assert_eq!(found("both.a.test").unwrap().len(), 2);
    assert_eq!(look_up_complete("192.0.2.1").unwrap(), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
    assert_eq!(look_up_complete("::1").unwrap(), ["::1".parse::<IpAddr>().unwrap()]);
    assert!(!look_up_complete("localhost").unwrap().is_empty(), "hosts(5) applies");
}

#[test]
fn says_why_a_lookup_fails() {
    let at = server();
    let conf = conf("", &[at]);
    let message = |host| from_servers(host, &conf).unwrap_err().to_string();
    assert_eq!(message("none.test"), "lookup none.test: no such host");
    assert_eq!(message("a..b"), "lookup a..b: not a valid host name");
    assert_eq!(message("broken.test"), format!("lookup broken.test. at {at}: the server answers SERVFAIL"));
}

#[test]
fn asks_the_next_server_if_one_is_silent_or_gone() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let gone = testkit::ports::free_address();
    let mut conf = conf("", &[silent.local_addr().unwrap(), gone, server()]);
    conf.timeout = Duration::from_millis(100);
    assert_eq!(format!("{:?}", from_servers("four.test", &conf).unwrap()), "[192.0.2.1]");
}

#[test]
fn times_out_despite_a_stream_of_wrong_responses() {
    let other_id = |message: &mut Vec<u8>| {
        message[0] ^= 1;
        message[2] |= 0x80;
    };
    for answer in [other_id, |message: &mut Vec<u8>| message.truncate(5)] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            let (length, peer) = socket.recv_from(&mut buffer).unwrap();
            let mut message = buffer[..length].to_vec();
            answer(&mut message);
            socket.connect(peer).unwrap();
            while socket.send(&message).is_ok() {
                std::thread::yield_now();
            }
        });
        let error = look_up_at("host.test", &[address]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error:?}");
    }
}

#[test]
fn resolves_addresses_and_localhost_without_a_name_server() {
    for (text, expected) in [("192.0.2.1:53", "192.0.2.1:53"), ("[::1]:53", "[::1]:53")] {
        assert_eq!(resolve(text).unwrap(), [expected.parse().unwrap()]);
    }
    assert!(resolve("localhost:1").unwrap().contains(&([127, 0, 0, 1], 1).into()));
    for text in ["localhost", "localhost:x", "192.0.2.1"] {
        assert_eq!(resolve(text).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{text}");
    }
}

#[tokio::test]
async fn resolves_on_a_blocking_thread() {
    assert!(resolve_async("localhost:1").await.unwrap().contains(&([127, 0, 0, 1], 1).into()));
}
