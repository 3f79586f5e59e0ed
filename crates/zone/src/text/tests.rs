use wire::{Class, Name, Type};

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
