//! Zone of the upstream, which never changes.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use specification::record::{Data, Record};
use specification::zone::Zone;

/// Name of the zone.
pub(crate) const ORIGIN: &str = "torture.test.";
/// Number of names with addresses.
pub(crate) const NAMES: usize = 24;
/// Number of addresses of the name whose answer does not fit into a datagram.
const MANY: u8 = 120;

/// Returns a name with addresses.
pub(crate) fn name(number: usize) -> String {
    format!("n{number}.{ORIGIN}")
}

/// Returns the zone.
pub(crate) fn zone() -> Zone {
    let mut records = vec![Record::new(ORIGIN, Data::Soa), Record::new(ORIGIN, Data::Ns(name(0)))];
    for number in 0..NAMES {
        let last = u8::try_from(number).unwrap_or_default();
        records.push(Record::new(name(number), Data::A(Ipv4Addr::new(192, 0, 2, last))));
        if number % 2 == 0 {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last));
            records.push(Record::new(name(number), Data::Aaaa(address)));
        }
    }
    records.extend(
        (0..MANY).map(|last| Record::new(format!("many.{ORIGIN}"), Data::A(Ipv4Addr::new(198, 51, 100, last)))),
    );
    records.push(Record::new(format!("alias.{ORIGIN}"), Data::Cname(name(1))));
    records.push(Record::new(format!("chain.{ORIGIN}"), Data::Cname(format!("alias.{ORIGIN}"))));
    records.push(Record::new(format!("text.{ORIGIN}"), Data::Txt("torture".to_owned())));
    records.push(Record::new(format!("*.wild.{ORIGIN}"), Data::A(Ipv4Addr::new(192, 0, 2, 200))));
    Zone { origin: ORIGIN.to_owned(), records }
}

/// Returns the names that are asked for.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = (0..NAMES).map(name).collect();
    let others = ["many", "alias", "chain", "text", "x.wild", "y.wild", "wild", "none", "a.none"];
    names.extend(others.map(|label| format!("{label}.{ORIGIN}")));
    names
}

/// Returns the zone file.
pub(crate) fn file() -> String {
    let mut text = String::from("$TTL 20\n");
    for record in zone().records {
        let _ = match &record.data {
            Data::Soa => writeln!(text, "{} SOA ns.{ORIGIN} host.{ORIGIN} 1 3600 600 86400 15", record.owner),
            _ => writeln!(text, "{record}"),
        };
    }
    text
}
