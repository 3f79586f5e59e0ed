//! Builds a small database in MaxMind's format (version 2.0) with the networks 192.0.2.0/24 and 2001:db8::/32.

/// Zero bytes between the search tree and the data section.
const SEPARATOR: [u8; 16] = [0; 16];
const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";

/// Value in the encoding of the data section.
type Value = Vec<u8>;

fn head(kind: u8, size: usize) -> Value {
    let size = u8::try_from(size).unwrap();
    // Sizes from 29 and types from 8 need one more byte.
    let (size, extra) = if size < 29 { (size, vec![]) } else { (29, vec![size - 29]) };
    if kind < 8 { [vec![kind << 5 | size], extra].concat() } else { [vec![size, kind - 7], extra].concat() }
}

fn text(text: &str) -> Value {
    [head(2, text.len()), text.as_bytes().to_vec()].concat()
}

fn double(number: f64) -> Value {
    [head(3, 8), number.to_be_bytes().to_vec()].concat()
}

fn number(kind: u8, bytes: &[u8]) -> Value {
    [head(kind, bytes.len()), bytes.to_vec()].concat()
}

fn map(entries: &[(&str, Value)]) -> Value {
    let pairs = entries.iter().flat_map(|(key, value)| [text(key), value.clone()].concat());
    head(7, entries.len()).into_iter().chain(pairs).collect()
}

fn names(name: &str) -> (&'static str, Value) {
    ("names", map(&[("en", text(name))]))
}

fn record(kind: &str) -> Value {
    let network = match kind {
        "Wide-ASN" => number(9, &(64_500u64 << 32).to_be_bytes()),
        _ => number(6, &64_500u32.to_be_bytes()),
    };
    let subdivision = |code: &str| map(&[("iso_code", text(code))]);
    map(&[
        ("city", map(&[names("Oslo")])),
        ("country", map(&[("iso_code", text("NO")), names("Norway")])),
        ("continent", map(&[("code", text("EU")), names("Europe")])),
        (
            "location",
            map(&[("latitude", double(59.5)), ("longitude", double(-10.25)), ("time_zone", text("Europe/Oslo"))]),
        ),
        ("postal", map(&[("code", text("0150"))])),
        ("subdivisions", [head(11, 2), subdivision("03"), subdivision("X")].concat()),
        ("autonomous_system_number", network),
        ("autonomous_system_organization", text("Example")),
    ])
}

/// Binary search tree that leads each network to the single record.
fn tree(networks: &[(u128, u32)]) -> Vec<[Option<usize>; 2]> {
    /// Marks a node's branch that leads to the record.
    const RECORD: usize = usize::MAX;
    let mut nodes = vec![[None; 2]];
    for (address, length) in networks {
        let mut at = 0;
        for depth in 0..*length {
            let bit = usize::from(address >> (127 - depth) & 1 == 1);
            if depth + 1 == *length {
                nodes[at][bit] = Some(RECORD);
            } else if let Some(next) = nodes[at][bit] {
                at = next;
            } else {
                nodes.push([None; 2]);
                let next = nodes.len() - 1;
                nodes[at][bit] = Some(next);
                at = next;
            }
        }
    }
    nodes
}

/// Returns a database of type `kind`. The AS number of a `Wide-ASN` database needs 64 bits.
pub(super) fn database(kind: &str) -> Vec<u8> {
    let networks = [(0xc000_0200, 120), (0x2001_0db8 << 96, 32)];
    let nodes = tree(&networks);
    let count = nodes.len();
    let pointer = |to: Option<usize>| match to {
        None => count,
        Some(usize::MAX) => count + SEPARATOR.len(),
        Some(node) => node,
    };
    let sides = nodes.iter().flatten().flat_map(|to| u32::try_from(pointer(*to)).unwrap().to_be_bytes()[1..].to_vec());
    let metadata = map(&[
        ("binary_format_major_version", number(5, &2u16.to_be_bytes())),
        ("binary_format_minor_version", number(5, &[])),
        ("build_epoch", number(9, &[1])),
        ("database_type", text(kind)),
        ("description", map(&[])),
        ("ip_version", number(5, &6u16.to_be_bytes())),
        ("languages", head(11, 0)),
        ("node_count", number(6, &u32::try_from(count).unwrap().to_be_bytes())),
        ("record_size", number(5, &24u16.to_be_bytes())),
    ]);
    sides.chain(SEPARATOR).chain(record(kind)).chain(MARKER.iter().copied()).chain(metadata).collect()
}
