use super::*;

fn read(value: &str) -> Result<Record, RecordError> {
    Record::read(value.as_bytes(), None)
}

fn name(text: &str) -> Host {
    Host::Name(Name::from_text(text).unwrap().as_bytes().into())
}

#[test]
fn parses_values_like_skydns() {
    let plain = Record { priority: 10, weight: 100, ..Record::default() };
    let address = |text: &str| Host::Address(text.parse().unwrap());
    let cases = [
        ("{}", plain.clone()),
        ("null", plain.clone()),
        (r#"{"host":null,"port":null,"other":[{"a":1}]}"#, plain.clone()),
        (r#"{"host":"","text":"","group":""}"#, plain.clone()),
        (r#"{"host":"10.0.0.1"}"#, Record { host: address("10.0.0.1"), ..plain.clone() }),
        (r#"{"host":"::ffff:10.0.0.1"}"#, Record { host: address("10.0.0.1"), ..plain.clone() }),
        (r#"{"host":"2001:db8::1"}"#, Record { host: address("2001:db8::1"), ..plain.clone() }),
        (r#"{"host":"a.Example."}"#, Record { host: name("a.Example"), ..plain.clone() }),
        (r#"{"host":"a.example"}"#, Record { host: name("a.example"), ..plain.clone() }),
        (r#" {"HOST":"x","Host":"10.0.0.1"} "#, Record { host: address("10.0.0.1"), ..plain.clone() }),
        (r#"{"priority":0,"weight":0,"ttl":0}"#, plain.clone()),
        (
            r#"{"port":80,"priority":5,"weight":7,"mail":true,"ttl":60,"targetstrip":1,"group":"g","text":"t\u00e9"}"#,
            Record {
                text: Some("té".into()),
                group: Some("g".into()),
                port: 80,
                priority: 5,
                weight: 7,
                target_strip: 1,
                mail: true,
                ttl: 60,
                ..Record::default()
            },
        ),
        (r#"{"targetstrip":1000,"ttl":4294967295}"#, Record { target_strip: 255, ttl: TTL_MAX, ..plain.clone() }),
    ];
    for (value, record) in cases {
        assert_eq!(read(value), Ok(record), "{value}");
    }
}

#[test]
fn refuses_invalid_values_with_a_reason() {
    let cases = [
        ("", "json", "EOF while parsing"),
        ("not json", "json", "line 1 column 2"),
        ("[1]", "json", "expected an object"),
        ("7", "json", "expected an object"),
        (r#"{"host":"10.0.0.1"} x"#, "json", "trailing characters"),
        (r#"{"host":7}"#, "json", "`host`: invalid type: integer `7`, expected a string"),
        (r#"{"port":"80"}"#, "json", "`port`: invalid type: string"),
        (r#"{"port":1.0}"#, "json", "`port`: invalid type: floating point"),
        (r#"{"port":70000}"#, "json", "`port`: invalid value: integer `70000`"),
        (r#"{"ttl":-1}"#, "json", "`ttl`: invalid value: integer `-1`"),
        (r#"{"mail":"yes"}"#, "json", "`mail`"),
        (r#"{"host":"a..b"}"#, "host", "the host \"a..b\" is neither an address nor a name"),
    ];
    for (value, label, error) in cases {
        let failure = read(value).unwrap_err();
        assert_eq!(failure.label(), label, "{value}");
        assert!(failure.to_string().contains(error), "{value}: {failure}");
    }
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(VALUE_MAX));
    assert_eq!(read(&long), Err(RecordError::TooLong(long.len())));
    assert!(read(&"[".repeat(10_000)).is_err());
}

#[test]
fn lease_limits_the_ttl() {
    const SECOND: u64 = 1_000_000_000;
    let bounds = LeaseBounds { min: 30, max: 86_400 };
    // TTL of the record, remaining seconds of its lease (if any), and expected TTL.
    let cases = [
        (0, None, 300),
        (60, None, 60),
        (0, Some(0), 30),
        (0, Some(91), 91),
        (20, Some(91), 20),
        (200, Some(91), 91),
        (200, Some(3), 30),
        (0, Some(200_000), 86_400),
    ];
    for (said, left, ttl) in cases {
        let lease = left.map(|left| {
            let lease = Lease::new(7);
            lease.set_end(5 * SECOND + left * SECOND);
            Arc::new(lease)
        });
        let record = Record::read(format!(r#"{{"ttl":{said}}}"#).as_bytes(), lease).unwrap();
        assert_eq!(record.ttl(5 * SECOND, bounds), ttl, "{said} {left:?}");
    }
    let known = Record::read(b"{}", Some(Arc::new(Lease::new(7)))).unwrap();
    assert_eq!(known.ttl(0, LeaseBounds { min: 60, max: 10 }), 60);
}

#[test]
fn shows_a_text_beside_a_host_only_to_those_who_ask_for_texts() {
    use RecordFilter::{Hosts, Texts};
    let record = |value: &str| read(value).unwrap();
    let address = record(r#"{"host":"10.0.0.1","text":"t"}"#);
    assert_eq!(address.role(Hosts), RecordRole::Address("10.0.0.1".parse().unwrap()));
    assert_eq!(address.role(Texts), RecordRole::Text("t"));
    let alias = record(r#"{"host":"a","text":"t"}"#);
    assert!(matches!(alias.role(Hosts), RecordRole::Alias(_)));
    assert_eq!(alias.role(Texts), RecordRole::Text("t"));
    assert!(matches!(record(r#"{"host":"a"}"#).role(Texts), RecordRole::Alias(_)));
    assert_eq!(record(r#"{"text":"t"}"#).role(Hosts), RecordRole::Nothing);
    assert_eq!(record("{}").role(Texts), RecordRole::Nothing);
}
