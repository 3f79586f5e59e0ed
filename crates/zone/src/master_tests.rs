use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use wire::{Name, Type};

use super::{Loaded, load};
use crate::Lookup;

/// Loads the zone `example.org` from the first of these files.
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
    let Lookup::Name(node) = loaded.zone.find(Name::from_text(name).unwrap().as_ref(), rtype)? else { return None };
    loaded.zone.set(node.0, rtype).map(|set| (set.ttl, set.first().to_vec()))
}

#[test]
fn applies_origin_and_ttl_directives() {
    let loaded =
        zone("a A 192.0.2.1\n$ORIGIN sub\n$TTL 5\nb A 192.0.2.2\n  TXT x\n$ORIGIN example.org.\nc 7 A 192.0.2.3\n");
    assert_eq!(find(&loaded, "a.example.org.", Type::A), Some((60, vec![192, 0, 2, 1])));
    assert_eq!(find(&loaded, "B.sub.EXAMPLE.org.", Type::A), Some((5, vec![192, 0, 2, 2])));
    assert_eq!(find(&loaded, "b.sub.example.org.", Type::TXT), Some((5, b"\x01x".to_vec())));
    assert_eq!(find(&loaded, "c.example.org.", Type::A), Some((7, vec![192, 0, 2, 3])));
    assert_eq!((loaded.zone.len(), loaded.warnings.len(), loaded.zone.soa().unwrap().expire), (5, 0, 1_209_600));
}

#[test]
fn expands_generate_directives() {
    let loaded = zone("$GENERATE 8-12/2 h${-8,3,x} A 192.0.2.$ ; three\n$GENERATE 1-2 t$ 9 IN TXT \"\\$ \\\" $\"\n");
    assert_eq!(find(&loaded, "h000.example.org.", Type::A), Some((60, vec![192, 0, 2, 8])));
    assert_eq!(find(&loaded, "h004.example.org.", Type::A), Some((60, vec![192, 0, 2, 12])));
    assert_eq!(find(&loaded, "t2.example.org.", Type::TXT), Some((9, b"\x05$ \" 2".to_vec())));
    assert_eq!(loaded.zone.len(), 6);
}

#[test]
fn reads_included_files() {
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
fn warns_about_ignored_records() {
    let loaded = zone("other.test. A 192.0.2.1\nx CH TXT a\na A 192.0.2.1\na 30 A 192.0.2.1\nA A 192.0.2.2\n");
    let told = |loaded: &Loaded| loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(loaded.zone.len(), 3);
    let first = "z:3:1: 2 records ignored, starting here: their owner is outside the zone or their class is not IN";
    assert_eq!(told(&loaded), [first]);
    assert_eq!(find(&loaded, "a.example.org.", Type::A), Some((30, vec![192, 0, 2, 1])));

    // The last SOA record wins, as in CoreDNS. SOA records of other names are ignored.
    let loaded = zone("@ SOA ns1 host 8 1 1 1 1\n@ SOA ns1 host 9 1 1 1 1\nexample.net. SOA ns1 host 10 1 1 1 1\n");
    let stranger = "z:5:1: record ignored: its owner is outside the zone or its class is not IN";
    let earlier = "z:2:1: SOA record ignored: a later one replaces it";
    assert_eq!(
        (loaded.zone.soa().unwrap().serial, loaded.zone.len(), told(&loaded)),
        (9, 1, vec![stranger.to_owned(), earlier.to_owned()])
    );
}

/// The SOA record of another name is used if the zone has none, but has other records.
#[test]
fn uses_the_soa_of_another_name_if_the_zone_has_none() {
    let text = "$TTL 60\nother.test. SOA ns1 host 8 1 1 1 1\na A 192.0.2.1\n";
    let taken = "z:2:1: the zone has no SOA record; using the one of `other.test.`";
    let left_out = "z:4:1: record ignored: its owner is outside the zone or its class is not IN";
    for (more, expected) in [("", &[taken][..]), ("b.test. A 192.0.2.2\n", &[taken, left_out])] {
        let loaded = read(&[("z", &format!("{text}{more}"))]).unwrap();
        let told: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert_eq!((loaded.zone.soa().unwrap().serial, loaded.zone.len()), (8, 2));
        assert_eq!(told, expected);
    }
    // An SOA record inside the zone, below its apex, does not count as ignored.
    let text = "$TTL 60\nsub SOA ns1 host 8 1 1 1 1\na A 192.0.2.1\nb.test. A 192.0.2.2\n";
    let loaded = read(&[("z", text)]).unwrap();
    assert_eq!(loaded.warnings.last().unwrap().to_string(), left_out);
}

#[test]
fn reports_errors_with_file_and_position() {
    let chain: Vec<(String, String)> = (0..9).map(|at| (format!("f{at}"), format!("$INCLUDE f{}\n", at + 1))).collect();
    let chain: Vec<(&str, &str)> = chain.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    for (files, wanted) in [
        (&[("db", "")][..], "db: the zone has no SOA record"),
        (
            &[("d/db", "\n@ SOA a b 1 1 1 1 1\n x 60 A 192.0.2\n")],
            "d/db:3:2: expected a TTL, a class or a type, found `x`",
        ),
        (
            &[("db", "$TTL 1\n$INCLUDE x\n"), ("x", "a.test. A 192.0.2.1\nexample.net. SOA a b 1 1 1 1 1\n")],
            "x:2:1: the file is for another zone: its SOA record belongs to `example.net.`",
        ),
        (&[("db", "a A 192.0.2.1\n")], "db:1:3: expected a TTL (no `$TTL` before this record), found `A`"),
        (
            &[("db", "$TTL 1\na NSEC3PARAM 1 0 0 -\n")],
            "db:2:1: the zone is signed with NSEC3, which is not supported; sign it with NSEC",
        ),
        (&[("db", "$FOO\n")], "db:1:1: expected $ORIGIN, $TTL, $INCLUDE or $GENERATE, found `$FOO`"),
        (&[("db", "\n$INCLUDE x\n")], "db:2:1: cannot read included file `x`: entity not found"),
        (
            &[("db", "$INCLUDE x\n"), ("x", "\n\n a\n")],
            "x:3:2: expected an owner name (no previous record to inherit it from), found `a`",
        ),
        (&[("db", "$INCLUDE\n")], "db:1:9: expected a file name, found the end of the record"),
        (&chain, "f7:1:1: `$INCLUDE` is nested more than 7 levels deep"),
        (
            &[("db", "$GENERATE 1-x a A 192.0.2.1\n")],
            "db:1:11: expected a range START-STOP or START-STOP/STEP of at most 65536 numbers, found `1-x`",
        ),
        (
            &[("db", "$GENERATE 0-70000 a A 192.0.2.1\n")],
            "db:1:11: expected a range START-STOP or START-STOP/STEP of at most 65536 numbers, found `0-70000`",
        ),
        (
            &[("db", "$TTL 1\n$GENERATE 1-2 a${0,1,z} A 192.0.2.1\n")],
            "db:2:11: expected a record with `$` or `${OFFSET,WIDTH,BASE}` for the number, with base d, o, x or X, found `a${0,1,z} A 192.0.2.1`",
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

/// A record takes at most 100 bytes, including its name and the lookup table.
#[test]
fn stores_records_compactly() {
    let lines: String =
        (0..50_000).map(|at| format!("host-{at:06} A 10.0.{}.{}\n", at / 256 % 256, at % 256)).collect();
    let loaded = zone(&lines);
    let each = loaded.zone.size() / loaded.zone.len();
    assert!(each <= 100, "{each} bytes per record");
}

#[test]
fn reports_mistakes_that_zone_checkers_refuse() {
    for (text, expected) in [
        (
            "@ NS ns\nns A 192.0.2.1\na CNAME b\nb A 192.0.2.1\na TXT x",
            "z:5:1: `a.example.org.` has a CNAME record and other data",
        ),
        ("@ CNAME b.example.net.", "z:3:1: `example.org.` has a CNAME record and other data"),
        ("a CNAME b\na RRSIG CNAME 13 2 60 0 0 1 @ AA==\na NSEC b CNAME\na KEY 0 3 13 AA==", ""),
        (
            "a CNAME b.test.\na CNAME c.test.\na CNAME b.test.",
            "z:3:1: `a.example.org.` has multiple CNAME records; the first one is used",
        ),
        ("a CNAME b.test.\na CNAME b.test.", ""),
        (
            "a DNAME b.test.\na DNAME c.test.\nx.b DNAME b.test.\nx.b DNAME c.test.",
            "z:3:1: `a.example.org.` has multiple DNAME records; the first one is used (and 1 more names)",
        ),
        ("a NS ns.test.\na DNAME b.test.", "z:4:1: `a.example.org.` has NS records and a DNAME record"),
        ("@ NS ns.test.\n@ DNAME b.test.", ""),
        ("a DNAME b.test.\na A 192.0.2.1", ""),
        (
            "a DNAME b.test.\n\nx.y.a A 192.0.2.1",
            "z:5:1: `x.y.a.example.org.` is below a DNAME record, which hides its records",
        ),
        (
            "a NS ns.a",
            "z:3:1: the name server `ns.a.example.org.` of `a.example.org.` has no address (A or AAAA): missing glue",
        ),
        (
            "a NS ns.b",
            "z:3:1: the name server `ns.b.example.org.` of `a.example.org.` has no address (A or AAAA): missing glue",
        ),
        (
            "@ NS ns\nns TXT x",
            "z:3:1: the name server `ns.example.org.` of `example.org.` has no address (A or AAAA): missing glue",
        ),
        ("@ NS ns\n@ NS ns2\nns AAAA ::1\n*.w A 192.0.2.1\nns2 A 192.0.2.1", ""),
        ("@ NS a.w\n*.w A 192.0.2.1\na NS ns.a\nns.a A 192.0.2.1\nb NS ns.a\nb NS x.a\nx.a NS y.x.a", ""),
        (
            "a NS ns.test.\nx.a CNAME b.test.\nx.a NS gone.x.a",
            "z:4:1: `x.a.example.org.` has a CNAME record and other data",
        ),
    ] {
        let loaded = zone(text);
        let found: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" | "), expected, "{text}");
    }
    // A record in an included file has no position.
    let files =
        [("z", "$TTL 60\n@ SOA ns1.test. host 7 2h 1h 2w 5m\n$INCLUDE y\n"), ("y", "a CNAME b\na A 192.0.2.1\n")];
    let loaded = read(&files).unwrap();
    assert_eq!(loaded.warnings[0].to_string(), "z: `a.example.org.` has a CNAME record and other data");
}
