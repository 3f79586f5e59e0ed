use wire::{Class, Name, Type};

use super::data::{fields, lowercase_names};
use super::{Data, Record, is_well_formed, record};

fn read(text: &str) -> Result<Record, String> {
    let origin = Name::from_text("example.org.").unwrap();
    record(text, origin.as_ref(), 3600).map_err(|error| error.to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Each line is `TYPE RDATA = HEX`. Another implementation produced the hex.
#[test]
fn parses_and_prints_rdata_of_each_type() {
    for line in include_str!("data.txt").lines() {
        let (text, wanted) = line.rsplit_once(" = ").unwrap_or((line.trim_end_matches(" ="), ""));
        let record = read(&format!("x {text}")).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(hex(&record.rdata), wanted, "{text}");
        assert!(is_well_formed(record.rtype, &record.rdata), "{text}");
        let generic = format!("x {} \\# {} {wanted}", record.rtype, record.rdata.len());
        assert_eq!(read(&generic).as_ref(), Ok(&record), "{generic}");
        let printed = format!("x {} {}", record.rtype, Data { rtype: record.rtype, rdata: &record.rdata });
        assert_eq!(read(&printed), Ok(record), "{printed}");
    }
}

#[test]
fn refuses_invalid_rdata_of_each_type() {
    for text in include_str!("invalid.txt").lines() {
        let read = read(&format!("x {text}"));
        assert!(read.is_err(), "{text}: {read:?}");
    }
}

#[test]
fn each_type_with_a_format_has_examples() {
    let count = |lines: &str, rtype: Type| {
        let mnemonic = rtype.mnemonic().expect("a mnemonic");
        lines.lines().filter(|line| line.split(' ').next() == Some(mnemonic)).count()
    };
    for rtype in (0..=u16::MAX).map(Type).filter(|rtype| fields(*rtype).is_some()) {
        assert!(count(include_str!("data.txt"), rtype) >= 1, "{rtype} in data.txt");
        assert!(count(include_str!("invalid.txt"), rtype) >= 2, "{rtype} in invalid.txt");
    }
}

/// The types that CoreDNS 1.15.0 reads in text form, except TKEY, which is not for zones (RFC 2930 §2).
#[test]
fn has_a_format_for_each_type_of_coredns() {
    let types = "A AAAA AFSDB AMTRELAY APL AVC CAA CDNSKEY CDS CERT CNAME CSYNC DHCID DLV DNAME DNSKEY DS EID EUI48 \
        EUI64 GID GPOS HINFO HIP HTTPS IPSECKEY ISDN KEY KX L32 L64 LOC LP MB MD MF MG MINFO MR MX NAPTR NID NIMLOC \
        NINFO NS NSAP-PTR NSEC NSEC3 NSEC3PARAM NXT OPENPGPKEY PTR PX RESINFO RKEY RP RRSIG RT SIG SMIMEA SOA SPF \
        SRV SSHFP SVCB TA TALINK TLSA TXT UID UINFO URI X25 ZONEMD";
    for text in types.split_whitespace() {
        assert!(text.parse().ok().and_then(fields).is_some(), "{text}");
    }
    for text in "ANY ATMA AXFR IXFR MAILA MAILB NULL NXNAME OPT TKEY TSIG UNSPEC".split(' ') {
        assert!(text.parse::<Type>().is_ok(), "{text}");
    }
}

/// Data that only a transfer or the generic form can have: valid, but without a text form of their own.
#[test]
fn prints_unusual_data_in_the_generic_form() {
    for text in [
        "APL \\# 4 00030000",
        "APL \\# 5 0001080100",
        "APL \\# 8 00010804c0000201",
        "APL \\# 6 00012102c000",
        "HIP \\# 6 00020002aabb",
        "HIP \\# 6 02020000aabb",
        "IPSECKEY \\# 6 0a0402aabbcc",
        "AMTRELAY \\# 4 0a84aabb",
    ] {
        let record = read(&format!("x {text}")).unwrap_or_else(|error| panic!("{text}: {error}"));
        let printed = format!("{} {}", record.rtype, Data { rtype: record.rtype, rdata: &record.rdata });
        assert_eq!(printed, text);
    }
    for text in [
        "APL \\# 3 000108",
        "APL \\# 5 0001080201",
        "HIP \\# 4 10020000",
        "HIP \\# 8 01020001aabb0161",
        "IPSECKEY \\# 3 0a0102",
        "IPSECKEY \\# 5 0a0302c00c",
        "AMTRELAY \\# 3 0a0000",
        "AMTRELAY \\# 5 0a01c00002",
        "UID \\# 3 000001",
        "UINFO \\# 3 0161ff",
        "HINFO \\# 2 0161",
        "RESINFO \\# 0",
    ] {
        assert!(read(&format!("x {text}")).is_err(), "{text}");
    }
}

#[test]
fn parses_owner_ttl_and_class() {
    for (text, owner, ttl, class) in [
        ("x A 192.0.2.1", "x.example.org.", 3600, Class::IN),
        ("x. 60 A 192.0.2.1", "x.", 60, Class::IN),
        ("@ IN 1h30m A 192.0.2.1 ; comment", "example.org.", 5400, Class::IN),
        ("*.A 2W3d CH A 192.0.2.1", "*.A.example.org.", 1_468_800, Class::CH),
        ("a\\.b\\032c (IN\n\tA ; one (\n 192.0.2.1 )", "a\\.b\\032c.example.org.", 3600, Class::IN),
        ("\r\n  \n; nothing\nin IN A 192.0.2.1\n\n", "in.example.org.", 3600, Class::IN),
    ] {
        let record = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((record.owner.to_string().as_str(), record.ttl, record.class), (owner, ttl, class), "{text}");
        assert_eq!((record.rtype, record.rdata.as_slice()), (Type::A, &[192, 0, 2, 1][..]), "{text}");
    }
}

#[test]
fn reports_errors_with_their_position() {
    for (text, wanted) in [
        ("", "1:1: expected a record, found the end of the record"),
        ("$ORIGIN a.\n", "2:1: expected a record, found the end of the record"),
        (" A 192.0.2.1", "1:2: expected an owner name (no previous record to inherit it from), found `A`"),
        ("x A 192.0.2.1\ny A 192.0.2.1", "2:14: expected only one record"),
        ("x", "1:2: expected a type, found the end of the record"),
        ("x A", "1:4: expected an IPv4 address, found the end of the record"),
        ("x A 192.0.2", "1:5: expected an IPv4 address, found `192.0.2`"),
        ("x A (\n  192.0.2.1\n  6 )", "3:3: expected the end of the line, found `6`"),
        ("x A ( 192.0.2.1", "1:5: `(` is never closed"),
        ("x A 192.0.2.1 )", "1:15: `)` has no matching `(`"),
        ("x 1x A 192.0.2.1", "1:3: expected a TTL, found `1x`"),
        ("x FOO 192.0.2.1", "1:3: expected a TTL, a class or a type, found `FOO`"),
        ("x TXT \"a\nb", "1:7: `\"` is never closed"),
        ("x TXT a\\300", "1:7: expected an escape `\\X` or `\\DDD` (at most 255), found `a\\300`"),
        ("a..b A 192.0.2.1", "1:1: expected a name, found `a..b`: a label is empty or longer than 63 bytes"),
        ("x MX 70000 m", "1:6: expected a number from 0 to 65535, found `70000`"),
        ("x AAAA 1.2.3.4", "1:8: expected an IPv6 address, found `1.2.3.4`"),
        ("x TYPE65400 abc", "1:13: expected RDATA in the form `\\# LENGTH HEX`, found `abc`"),
        ("x TYPE65400 \\# 3 aabb", "1:16: expected the number of bytes that follow, found `3`"),
        ("x NS \\# 2 0161", "1:11: expected RDATA in the format of its type, found `0161`"),
        ("x DS 1 8 2 abc", "1:12: expected hexadecimal digits, two per byte, found `abc`"),
        ("x HTTPS 1 . port=1 port=2", "1:20: expected each key only once, found `port=2`"),
        ("x HTTPS 1 . alpn", "1:13: expected a comma-separated list of protocols, found ``"),
        (
            "x RRSIG A 13 3 3600 20261301000000 0 1 @ AA==",
            "1:21: expected a time as YYYYMMDDHHmmSS or in seconds, found `20261301000000`",
        ),
        ("x LOC 1 60 N 0 E 0m", "1:9: expected minutes or seconds below 60, found `60`"),
        ("x LOC 1 2 60 N 0 E 0m", "1:11: expected minutes or seconds below 60, found `60`"),
        ("x LOC 1 2 3 4 N 0 E 0m", "1:13: expected minutes or seconds below 60, found `4`"),
        (
            "x LOC 90 0 0.001 N 0 E 0m",
            "1:7: expected at most 90 degrees of latitude or 180 degrees of longitude, found `90`",
        ),
        ("x NULL abc", "1:8: expected RDATA in the form `\\# LENGTH HEX`, found `abc`"),
        (
            "x APL 1:192.0.2.1/24",
            "1:7: expected an address prefix as `[!]1:IPV4/LENGTH` or `[!]2:IPV6/LENGTH`, with zeros after the prefix, \
             found `1:192.0.2.1/24`",
        ),
        (
            "x IPSECKEY 10 4 2 . AQ==",
            "1:15: expected 0 (none), 1 (IPv4 address), 2 (IPv6 address) or 3 (name), found `4`",
        ),
        ("x IPSECKEY 10 0 2 x", "1:19: expected `.`, as the type before it is 0, found `x`"),
        ("x AMTRELAY 10 2 1 ::1", "1:15: expected the discovery bit, 0 or 1, found `2`"),
        ("x AMTRELAY 10 0 1 ::1", "1:19: expected an IPv4 address, found `::1`"),
        ("x HIP 2 2001", "1:13: expected a public key in base64, found the end of the record"),
        ("x LOC 91 N 0 E 0m", "1:7: expected at most 90 degrees of latitude or 180 degrees of longitude, found `91`"),
    ] {
        assert_eq!(read(text).map(|record| record.owner), Err(wanted.to_owned()), "{text}");
    }
}

#[test]
fn splits_a_long_text_into_several_strings() {
    let record = read(&format!("x TXT {}", "a".repeat(300))).unwrap();
    assert_eq!((record.rdata.len(), record.rdata[0], record.rdata[256]), (302, 255, 45));
}

/// Checks that mutated and truncated records never cause a panic, and that everything parsed is valid for its type.
#[test]
fn survives_mutated_records() {
    for line in include_str!("data.txt").lines() {
        let text = format!("x {}", line.rsplit_once(" = ").map_or(line, |(text, _)| text));
        for (at, byte) in text.bytes().enumerate() {
            for other in [b' ', b'"', b'\\', b'(', b'9', b'.', b'=', b',', byte ^ 1, byte ^ 32] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = other;
                let Ok(text) = String::from_utf8(bytes) else { continue };
                if let Ok(record) = read(&text) {
                    assert!(is_well_formed(record.rtype, &record.rdata), "{text}");
                }
            }
            let _ = read(&text[..at]);
        }
    }
}

#[test]
fn prints_rdata_in_presentation_format() {
    let cases = [
        ("SOA", "ns1.example.org. host.example.org. 1 7200 3600 1209600 300"),
        ("TXT", "\"a \\\"b\\\" \\009\" \"\""),
        ("RRSIG", "A 15 3 3600 20260109000000 20251231210000 3613 example.org. AAEC"),
        ("RRSIG", "TYPE65400 15 3 3600 20240229235959 20240301000000 3613 . AAECAw=="),
        ("RRSIG", "A 15 3 3600 19700101000000 21060207062815 3613 . AA=="),
        ("NSEC", "\\000.example.org. A RRSIG NSEC CAA TYPE65400"),
        ("NSEC3", "1 1 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A RRSIG"),
        ("NSEC3PARAM", "1 0 5 aabb"),
        ("DS", "3613 15 2 00ff"),
        ("CAA", "0 \"issue\" \"ca.test\""),
        ("APL", "1:192.168.32.0/21 !1:192.168.38.0/28 2:ff00::/8"),
        ("APL", ""),
        ("HIP", "2 20010010 AwEAAbdx Rvs1.example.org. rvs2.example.com."),
        ("IPSECKEY", "10 3 2 Gateway.example.org. AQNRU3mG"),
        ("IPSECKEY", "10 0 0 ."),
        ("AMTRELAY", "128 1 3 relay.example.org."),
        ("AMTRELAY", "10 0 2 2001:db8::15"),
        ("RESINFO", "\"qnamemin\" \"exterr=15-17\""),
        ("UINFO", "\"Miek Gieben\""),
        ("NXT", "host.example.org. A MX"),
        ("KEY", "49152 3 0"),
        ("SVCB", "\\# 3 000100"),
        ("TYPE65400", "\\# 1 00"),
    ];
    for (rtype, text) in cases {
        let record = read(&format!("x {rtype} {text}")).unwrap();
        assert_eq!(Data { rtype: record.rtype, rdata: &record.rdata }.to_string(), text);
    }
}

#[test]
fn quotes_begin_and_end_strings_of_texts() {
    for (text, strings) in [
        (r#""a "z" b""#, vec!["a ", "z", " b"]),
        (r#"a"z"b c"d" "e"f """g""#, vec!["a", "z", "b", "c", "d", "e", "f", "", "g"]),
        (r#"a\"b"#, vec!["a\"b"]),
        (r#"a"b\"c""#, vec!["a", "b\"c"]),
        (r#"a"""#, vec!["a", ""]),
    ] {
        let record = read(&format!("x TXT {text}")).unwrap();
        let mut data = Vec::new();
        for string in strings {
            data.push(u8::try_from(string.len()).unwrap());
            data.extend(string.bytes());
        }
        assert_eq!(*record.rdata, *data, "{text}");
    }
}

#[test]
fn accepts_angles_up_to_the_poles_and_the_date_line() {
    for (text, latitude, longitude) in [
        ("x LOC 90 N 180 W 0m", (1 << 31) + 324_000_000, (1 << 31) - 648_000_000),
        ("x LOC 89 59 59.999 S 179 59 59.999 E 0m", (1 << 31) - 323_999_999, (1 << 31) + 647_999_999),
    ] {
        let rdata = read(text).unwrap().rdata;
        let number = |at: usize| u32::from_be_bytes(rdata[at..at + 4].try_into().unwrap());
        assert_eq!((number(4), number(8)), (latitude, longitude), "{text}");
    }
}

/// RFC 1035 §3.3.14: one or more strings.
#[test]
fn a_text_has_at_least_one_string() {
    for (rdata, expected) in [(&b""[..], false), (b"\0", true), (b"\x01a", true), (b"\x01a\0", true), (b"\x02a", false)]
    {
        assert_eq!(is_well_formed(Type::TXT, rdata), expected, "{rdata:?}");
    }
}

/// RFC 4034 §6.2 lists the types whose names are in lower case for a signature. Data of the others is left alone.
#[test]
fn lowercases_only_the_names_of_the_listed_types() {
    for (text, is_listed) in [
        ("NXT HOST.test. A", true),
        ("RT 10 RELAY.test.", true),
        ("PX 10 A.test. B.test.", true),
        ("HIP 2 4142 QUJD RVS.test.", false),
        ("IPSECKEY 10 3 2 GATEWAY.test. QUJD", false),
        ("AMTRELAY 10 0 3 RELAY.test.", false),
        ("TALINK A.test. B.test.", false),
        ("LP 10 L64.test.", false),
        ("RESINFO QNAMEMIN", false),
        ("UINFO Miek", false),
        ("EID 4142", false),
    ] {
        let record = read(&format!("x {text}")).unwrap();
        let mut data = record.rdata.clone();
        lowercase_names(record.rtype, &mut data);
        assert_eq!(data != record.rdata, is_listed, "{text}");
    }
}
