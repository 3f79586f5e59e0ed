use super::*;
use crate::text;

fn name(text: &str) -> Name {
    Name::from_text(text).unwrap()
}

fn rdata(line: &str) -> Vec<u8> {
    text::record(line, NameRef::ROOT, 0).unwrap().rdata
}

/// Test vectors from RFC 4034 §5.4, RFC 8080 §6.1 and RFC 6605 §6.1.
#[test]
fn computes_the_key_tags_of_the_rfc_examples() {
    let keys = [
        (
            "dskey. DNSKEY 256 3 5 ( AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BMzNXxeYCmZDRD99WYwYqUSdjMmmAphXdvxegXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG9DMBmADjFDc2w/rljwvFw== )",
            60485,
        ),
        ("example. DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=", 3613),
        (
            "example. DNSKEY 257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==",
            55648,
        ),
    ];
    for (line, tag) in keys {
        let data = rdata(line);
        let key = Dnskey::read(&data).unwrap();
        assert_eq!(key.tag(), tag, "{line}");
        assert_eq!(key.is_entry_point(), key.flags == 257);
    }
    assert_eq!(Dnskey::read(&rdata("x. DNSKEY 0 3 13 AAAA")), None);
    assert_eq!(Dnskey::read(&rdata("x. DNSKEY 256 2 13 AAAA")), None);
    assert_eq!(Dnskey::read(&[1, 1, 3]), None);
}

#[test]
fn writes_canonical_rrsets_sorted_and_in_lower_case() {
    let mut bytes = Vec::new();
    let mut rdatas = vec![rdata("x. MX 20 B.Test."), rdata("x. MX 10 a.test."), rdata("x. MX 20 b.test.")];
    write_canonical(name("X.Test.").as_ref(), (Type::MX, 60), &mut rdatas, &mut bytes);
    let head = b"\x01x\x04test\0\x00\x0f\x00\x01\x00\x00\x00\x3c\x00\x0a";
    let wanted = [&head[..], b"\x00\x0a\x01a\x04test\0", head, b"\x00\x14\x01b\x04test\0"].concat();
    assert_eq!(bytes, wanted);
    // Names in the RDATA of newer types keep their case (RFC 6840 §5.1).
    for (line, lower) in [("x. NSEC A.Test. A", false), ("x. SVCB 1 A.Test.", false), ("x. DNAME A.Test.", true)] {
        let (mut data, before) = (rdata(line), rdata(line));
        let rtype = text::record(line, NameRef::ROOT, 0).unwrap().rtype;
        lowercase_names(rtype, &mut data);
        assert_eq!(data != before, lower, "{line}");
    }
}

#[test]
fn counts_labels_without_the_asterisk() {
    for (owner, labels) in [(".", 0), ("*.", 0), ("test.", 1), ("*.a.test.", 2), ("a.*.test.", 3)] {
        assert_eq!(signed_labels(name(owner).as_ref()), labels, "{owner}");
    }
}

#[test]
fn returns_the_next_name_in_canonical_order() {
    let long = [&[b'a'; 63][..]; 3].map(|label| String::from_utf8(label.to_vec()).unwrap()).join(".");
    let cases = [
        ("a.test.".to_owned(), Some(r"\000.a.test."), Some(r"a\000.test.")),
        (".".to_owned(), Some(r"\000."), None),
        (format!("{}.{long}.", "b".repeat(60)), None, Some("")),
        (format!("{}.test.", "a".repeat(63)), Some(""), None),
    ];
    for (text, next, beside) in cases {
        let of = name(&text);
        for (found, wanted) in [(next_name(of.as_ref()), next), (next_beside(of.as_ref()), beside)] {
            assert_eq!(found.is_some(), wanted.is_some(), "{text}");
            let Some((found, wanted)) = found.zip(wanted) else { continue };
            assert!(wanted.is_empty() || found.to_string() == wanted, "{found}");
            let labels = |name: NameRef<'_>| name.as_bytes()[..name.len() - 1].to_vec();
            assert!(crate::canonical::compare(&labels(of.as_ref()), &labels(found.as_ref())).is_lt());
        }
    }
}

#[test]
fn writes_an_nsec_bit_for_each_type() {
    let types = [Type::NSEC, Type::A, Type::MX, Type::RRSIG, Type(1234)];
    assert_eq!(
        nsec(name("host.example.com.").as_ref(), &types),
        rdata("x. NSEC host.example.com. A MX RRSIG NSEC TYPE1234")
    );
}
