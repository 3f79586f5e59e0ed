use super::*;
use wire::{Header, Message};

/// Lines in the format of golden files.
const LINES: &[&str] = &[
    "web.prod.svc.cluster.local. 5 IN A 10.96.1.1",
    "dual.prod.svc.cluster.local. 30 IN AAAA fd00:10:96::6",
    "ext.prod.svc.cluster.local. 30 IN CNAME www.example.org.",
    "old.example.org. 60 IN DNAME new.example.org.",
    "cluster.local. 30 IN NS ns.dns.cluster.local.",
    "1.0.96.10.in-addr.arpa. 30 IN PTR kubernetes.default.svc.cluster.local.",
    "example.org. 3600 IN MX 10 mail.example.org.",
    "_http._tcp.web.prod.svc.cluster.local. 30 IN SRV 0 100 80 web.prod.svc.cluster.local.",
    "example.org. 30 IN SOA ns1.example.org. hostmaster.example.org. 2026010101 7200 3600 1209600 300",
    "example.org. 30 IN TXT \"v=spf1 -all\" \"second string\"",
    "odd.example.org. 30 IN TXT \"a \\\"quote\\\" and a \\\\\" \"\\000\\255;\" \"\"",
    "any.example.org. 8482 IN HINFO \"ANY obsoleted\" \"See RFC 8482\"",
    "caa.example.org. 3600 IN CAA 0 issue \"ca.example.net\"",
    "naptr.example.org. 3600 IN NAPTR 100 10 \"U\" \"E2U+sip\" \"!^.*$!sip:info@example.org!\" .",
    "svcb.example.org. 3600 IN HTTPS 1 . alpn=\"h2,h3\" ipv4hint=\"192.0.2.44\"",
    "svcb.example.org. 3600 IN SVCB 16 s.example.org. no-default-alpn port=\"8443\" ipv6hint=\"2001:db8::1,::1\" key9=\"x\"",
    "alias.example.org. 3600 IN HTTPS 0 s.example.org.",
    "unknown.example.org. 3600 IN TYPE65400 \\# 4 0a000001",
    "none.example.org. 3600 IN TYPE65401 \\# 0",
    "example.org. 60 IN DS 4660 8 2 00ff",
    "example.org. 60 IN DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=",
    "example.org. 60 IN RRSIG TYPE65400 15 2 3600 1767916800 1767214800 3613 example.org. AAECAw==",
    "example.org. 60 IN NSEC a.example.org. A NS RRSIG NSEC CAA TYPE65400",
    "example.org. 60 IN NSEC3 1 1 10 aabb 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A RRSIG",
    "example.org. 60 IN NSEC3PARAM 1 0 0 -",
    "version.bind. 0 CH TXT \"1\"",
    "a\\.b.\\000\\@.Example.ORG. 1 IN A 192.0.2.1",
    ". 518400 IN NS a.root-servers.net.",
];

#[test]
fn records_round_trip_through_text() {
    for line in LINES {
        let record: Record = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(record.to_string(), *line);
    }
}

#[test]
fn records_round_trip_through_a_message() {
    let mut message = MessageBuf::new();
    let name = Name::from_text("example.org.").unwrap();
    message.start(Header::default(), Some((name.as_ref(), Type::ANY, Class::IN)));
    for line in LINES {
        line.parse::<Record>().unwrap().push_to(&mut message, Section::Answer);
    }
    let bytes = message.finish(None, core::iter::empty()).to_vec();
    let message = Message::parse(&bytes).unwrap();
    let read: Vec<_> = message.records().map(|record| Record::read(&record).unwrap().to_string()).collect();
    assert_eq!(read, LINES);
    let plain: usize = LINES.iter().map(|line| line.parse::<Record>().unwrap().rdata.len() + 10).sum();
    assert!(bytes.len() < plain + LINES.len() * 20, "{} bytes: names are not compressed", bytes.len());
}

#[test]
fn parses_the_generic_form_for_every_type() {
    let record: Record = "x. 1 IN A \\# 4 C0 00 0201".parse().unwrap();
    assert_eq!(record.to_string(), "x. 1 IN A 192.0.2.1");
    // Data of the wrong length is printed in the generic form.
    let record: Record = "x. 1 IN A \\# 3 c00002".parse().unwrap();
    assert_eq!(record.to_string(), "x. 1 IN A \\# 3 c00002");
}

#[test]
fn refuses_malformed_records() {
    for (line, message) in [
        ("", "the record ends before its owner"),
        ("x.", "the record ends before its TTL"),
        ("x. IN A 192.0.2.1", "invalid TTL: `IN`"),
        ("x. 1 IN B 192.0.2.1", "invalid type: `B`"),
        ("x. 1 IN A 192.0.2", "invalid IPv4 address: `192.0.2`"),
        ("x. 1 IN A", "the record ends before its IPv4 address"),
        ("x. 1 IN A 192.0.2.1 2", "unexpected `2` after the data of the record"),
        ("x. 1 IN MX 65536 m.", "invalid number: `65536`"),
        ("x. 1 IN TXT \"a", "a quote is not closed"),
        ("x. 1 IN TYPE7000 abc", "invalid start of generic data, expected `\\#`: `abc`"),
        ("x. 1 IN TYPE7000 \\# 2 abc", "invalid hexadecimal data: `abc`"),
        ("x. 1 IN TYPE7000 \\# 2 ab", "invalid length of the data: `2`"),
        ("x. 1 IN HTTPS 1 . colour=\"red\"", "invalid service parameter: `colour=\"red\"`"),
    ] {
        assert_eq!(line.parse::<Record>().unwrap_err().to_string(), message, "{line}");
    }
}
