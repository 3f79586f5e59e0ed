use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use wire::{Name, Type};

use super::{Loaded, load};
use crate::Found;

/// Reads the zone `example.org` from the first of these files.
fn read(files: &[(&str, &str)]) -> Result<Loaded, String> {
    let by_name: BTreeMap<&Path, &str> = files.iter().map(|(name, text)| (Path::new(*name), *text)).collect();
    let mut read = |path: &Path| match by_name.get(path) {
        Some(text) => Ok(text.as_bytes().to_vec()),
        None => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let origin = Name::from_text("example.org.").unwrap();
    load(origin.as_ref(), Path::new(files[0].0), &mut read).map_err(|error| error.to_string())
}

const SOA: &str = "$TTL 60\n@ SOA ns1 host 7 2h 1h 2w 5m\n";

fn zone(text: &str) -> Loaded {
    read(&[("z", &format!("{SOA}{text}"))]).unwrap()
}

fn find(loaded: &Loaded, name: &str, rtype: Type) -> Option<(u32, Vec<u8>)> {
    let Found::Name(node) = loaded.zone.find(Name::from_text(name).unwrap().as_ref(), rtype)? else { return None };
    loaded.zone.set(node.0, rtype).map(|set| (set.ttl, set.first().to_vec()))
}

#[test]
fn directives() {
    let loaded =
        zone("a A 192.0.2.1\n$ORIGIN sub\n$TTL 5\nb A 192.0.2.2\n  TXT x\n$ORIGIN example.org.\nc 7 A 192.0.2.3\n");
    assert_eq!(find(&loaded, "a.example.org.", Type::A), Some((60, vec![192, 0, 2, 1])));
    assert_eq!(find(&loaded, "B.sub.EXAMPLE.org.", Type::A), Some((5, vec![192, 0, 2, 2])));
    assert_eq!(find(&loaded, "b.sub.example.org.", Type::TXT), Some((5, b"\x01x".to_vec())));
    assert_eq!(find(&loaded, "c.example.org.", Type::A), Some((7, vec![192, 0, 2, 3])));
    assert_eq!((loaded.zone.len(), loaded.remarks.len(), loaded.zone.soa().unwrap().expire), (5, 0, 1_209_600));
}

#[test]
fn generated_records() {
    let loaded = zone("$GENERATE 8-12/2 h${-8,3,x} A 192.0.2.$ ; three\n$GENERATE 1-2 t$ 9 IN TXT \"\\$ \\\" $\"\n");
    assert_eq!(find(&loaded, "h000.example.org.", Type::A), Some((60, vec![192, 0, 2, 8])));
    assert_eq!(find(&loaded, "h004.example.org.", Type::A), Some((60, vec![192, 0, 2, 12])));
    assert_eq!(find(&loaded, "t2.example.org.", Type::TXT), Some((9, b"\x05$ \" 2".to_vec())));
    assert_eq!(loaded.zone.len(), 6);
}

#[test]
fn included_files() {
    let main = format!("{SOA}a A 192.0.2.1\n$INCLUDE more/hosts sub ; c\n TXT behind\n$INCLUDE \"more/x y\"\n");
    let loaded = read(&[
        ("zones/db", &main),
        ("zones/more/hosts", "  TXT same-owner\nb A 192.0.2.2\n$TTL 1\n$INCLUDE deep\n"),
        ("zones/more/deep", "c A 192.0.2.3\n"),
        ("zones/more/x y", "d A 192.0.2.4\n"),
    ])
    .unwrap();
    assert_eq!(find(&loaded, "b.sub.example.org.", Type::A), Some((60, vec![192, 0, 2, 2])));
    assert_eq!(find(&loaded, "c.sub.example.org.", Type::A), Some((1, vec![192, 0, 2, 3])));
    assert_eq!(find(&loaded, "d.example.org.", Type::A), Some((60, vec![192, 0, 2, 4])));
    assert_eq!(find(&loaded, "a.example.org.", Type::TXT).map(|(ttl, data)| (ttl, data.len())), Some((60, 11)));
    assert_eq!(loaded.includes.len(), 3);
}

#[test]
fn what_is_left_out() {
    let loaded = zone("other.test. A 192.0.2.1\nx CH TXT a\na A 192.0.2.1\na 30 A 192.0.2.1\nA A 192.0.2.2\n");
    let told = |loaded: &Loaded| loaded.remarks.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(loaded.zone.len(), 3);
    let first = "z:3:1: 2 records are left out, of which this is the first: not in the zone, or not of class IN";
    assert_eq!(told(&loaded), [first]);
    assert_eq!(find(&loaded, "a.example.org.", Type::A), Some((30, vec![192, 0, 2, 1])));

    // The last SOA record counts, as in CoreDNS; those of other names do not.
    let loaded = zone("@ SOA ns1 host 8 1 1 1 1\n@ SOA ns1 host 9 1 1 1 1\nexample.net. SOA ns1 host 10 1 1 1 1\n");
    let stranger = "z:5:1: a record is left out: it is not in the zone, or not of class IN";
    let earlier = "z:2:1: this SOA record is left out: another one comes after it, which counts";
    assert_eq!(
        (loaded.zone.soa().unwrap().serial, loaded.zone.len(), told(&loaded)),
        (9, 1, vec![stranger.to_owned(), earlier.to_owned()])
    );
}

/// The SOA record of another name stands in for that of the zone, if anything else is in the zone.
#[test]
fn borrowed_soas() {
    let text = "$TTL 60\nother.test. SOA ns1 host 8 1 1 1 1\na A 192.0.2.1\n";
    let taken = "z:2:1: the SOA record of other.test. is taken for that of the zone, which has none";
    let left_out = "z:4:1: a record is left out: it is not in the zone, or not of class IN";
    for (more, expected) in [("", &[taken][..]), ("b.test. A 192.0.2.2\n", &[taken, left_out])] {
        let loaded = read(&[("z", &format!("{text}{more}"))]).unwrap();
        let told: Vec<_> = loaded.remarks.iter().map(ToString::to_string).collect();
        assert_eq!((loaded.zone.soa().unwrap().serial, loaded.zone.len()), (8, 2));
        assert_eq!(told, expected);
    }
    // One that is in the zone, below its apex, is not among those that are left out.
    let text = "$TTL 60\nsub SOA ns1 host 8 1 1 1 1\na A 192.0.2.1\nb.test. A 192.0.2.2\n";
    let loaded = read(&[("z", text)]).unwrap();
    assert_eq!(loaded.remarks.last().unwrap().to_string(), left_out);
}

#[test]
fn faults_with_file_and_place() {
    let chain: Vec<(String, String)> = (0..9).map(|at| (format!("f{at}"), format!("$INCLUDE f{}\n", at + 1))).collect();
    let chain: Vec<(&str, &str)> = chain.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    for (files, wanted) in [
        (&[("db", "")][..], "db: the zone has no SOA record"),
        (
            &[("d/db", "\n@ SOA a b 1 1 1 1 1\n x 60 A 192.0.2\n")],
            "d/db:3:2: expected a time to live, a class or a type, found `x`",
        ),
        (
            &[("db", "$TTL 1\n$INCLUDE x\n"), ("x", "a.test. A 192.0.2.1\nexample.net. SOA a b 1 1 1 1 1\n")],
            "x:2:1: the file is of another zone: its SOA record is that of example.net.",
        ),
        (&[("db", "a A 192.0.2.1\n")], "db:1:3: expected a time to live, since no `$TTL` stands before, found `A`"),
        (
            &[("db", "$TTL 1\na NSEC3PARAM 1 0 0 -\n")],
            "db:2:1: the zone is signed with NSEC3, which is not served: sign it with NSEC",
        ),
        (&[("db", "$FOO\n")], "db:1:1: expected $ORIGIN, $TTL, $INCLUDE or $GENERATE, found `$FOO`"),
        (&[("db", "\n$INCLUDE x\n")], "db:2:1: cannot include x: entity not found"),
        (
            &[("db", "$INCLUDE x\n"), ("x", "\n\n a\n")],
            "x:3:2: expected an owner, since no record stands before, found `a`",
        ),
        (&[("db", "$INCLUDE\n")], "db:1:9: expected a file, found the end of the record"),
        (&chain, "f7:1:1: files include each other more than 7 deep"),
        (
            &[("db", "$GENERATE 1-x a A 192.0.2.1\n")],
            "db:1:11: expected a range of at most 65536 numbers, START-STOP or START-STOP/STEP, found `1-x`",
        ),
        (
            &[("db", "$GENERATE 0-70000 a A 192.0.2.1\n")],
            "db:1:11: expected a range of at most 65536 numbers, START-STOP or START-STOP/STEP, found `0-70000`",
        ),
        (
            &[("db", "$TTL 1\n$GENERATE 1-2 a${0,1,z} A 192.0.2.1\n")],
            "db:2:11: expected a record with `$`, or `${OFFSET,WIDTH,BASE}` with base d, o, x or X, for the number, found `a${0,1,z} A 192.0.2.1`",
        ),
        (
            &[("db", "$TTL 1\n$GENERATE 255-256 a A 192.0.2.$\n")],
            "db:2:11: expected an IPv4 address, found `192.0.2.256`",
        ),
    ] {
        assert_eq!(read(files).map(|loaded| loaded.zone.len()), Err(wanted.to_owned()));
    }
    assert_eq!(read(&[("db", SOA), ("x", "")]).unwrap().zone.len(), 1);
}

/// Many records take at most 200 octets each, their names and what finds them included.
#[test]
fn the_store_is_compact() {
    let lines: String =
        (0..50_000).map(|at| format!("host-{at:06} A 10.0.{}.{}\n", at / 256 % 256, at % 256)).collect();
    let loaded = zone(&lines);
    let each = loaded.zone.octets() / loaded.zone.len();
    assert!(each <= 100, "{each} octets a record");
}
