//! Publishes the client's location as metadata labels, from a database in MaxMind's format.

#[cfg(test)]
mod test_database;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use config::options::{Manifest, Property, Usage};
use config::setup::{Files, Part, Setup, SetupError};
use engine::Query;
use maxminddb::{LookupResult, PathElement, Reader};
use wire::OptionCode;

use PathElement::{Index, Key};
use common_plugins::shared::{last_good, open_error};

pub static MANIFEST: Manifest<Config> =
    Manifest::new("geoip", "look up clients in a GeoIP database", Config::default, build)
        .arguments("geoip DBFILE", |config, args| {
            config.file.clone_from(&args.word()?.text);
            Ok(())
        })
        .sets_labels()
        .properties(&[Property {
            usage: Usage("edns-subnet"),
            default: "off",
            doc: "Look up the address in the query's EDNS Client Subnet option (RFC 7871), if it has one.",
            set: |config, _| {
                config.by_subnet = true;
                Ok(())
            },
        }]);

#[derive(Default)]
pub struct Config {
    file: String,
    by_subnet: bool,
}

type Database = Reader<Vec<u8>>;
type Found<'d> = LookupResult<'d, Vec<u8>>;

/// Maximum number of a country's subdivisions that a label lists. MaxMind has two levels of them.
const SUBDIVISIONS_MAX: usize = 8;

/// Function that computes a label's value from a lookup result. `None` if the database has no data of this kind.
type LabelValue = fn(&Found<'_>) -> Option<String>;

/// Labels of city and country databases.
const PLACES: [(&str, LabelValue); 11] = [
    ("geoip/city/name", |found| text(found, &[Key("city"), Key("names"), Key("en")])),
    ("geoip/country/code", |found| text(found, &[Key("country"), Key("iso_code")])),
    ("geoip/country/name", |found| text(found, &[Key("country"), Key("names"), Key("en")])),
    ("geoip/country/is_in_european_union", |found| {
        let path = [Key("country"), Key("is_in_european_union")];
        Some(found.decode_path(&path).ok().flatten().unwrap_or(false).to_string())
    }),
    ("geoip/continent/code", |found| text(found, &[Key("continent"), Key("code")])),
    ("geoip/continent/name", |found| text(found, &[Key("continent"), Key("names"), Key("en")])),
    ("geoip/latitude", |found| degrees(found, "latitude")),
    ("geoip/longitude", |found| degrees(found, "longitude")),
    ("geoip/timezone", |found| text(found, &[Key("location"), Key("time_zone")])),
    ("geoip/postalcode", |found| text(found, &[Key("postal"), Key("code")])),
    ("geoip/subdivisions/code", |found| Some(subdivisions(found))),
];

/// Labels of ASN databases.
const NETWORKS: [(&str, LabelValue); 2] = [
    ("geoip/asn/number", |found| {
        let number = whole_number(found, &[Key("autonomous_system_number")]);
        Some(number.unwrap_or_default().to_string())
    }),
    ("geoip/asn/org", |found| text(found, &[Key("autonomous_system_organization")])),
];

/// Text field of a record; empty if the record does not have it.
fn text(found: &Found<'_>, path: &[PathElement<'_>]) -> Option<String> {
    Some(found.decode_path(path).ok().flatten().unwrap_or_default())
}

/// Integer field of a record, stored as 32 or 64 bits.
fn whole_number(found: &Found<'_>, path: &[PathElement<'_>]) -> Option<u64> {
    let of_32_bits: Option<u32> = found.decode_path(path).ok().flatten();
    of_32_bits.map(u64::from).or_else(|| found.decode_path(path).ok().flatten())
}

fn degrees(found: &Found<'_>, name: &str) -> Option<String> {
    let degrees: Option<f64> = found.decode_path(&[Key("location"), Key(name)]).ok().flatten();
    Some(degrees.map_or_else(String::new, |degrees| degrees.to_string()))
}

fn subdivisions(found: &Found<'_>) -> String {
    let code =
        |at| -> Option<String> { found.decode_path(&[Key("subdivisions"), Index(at), Key("iso_code")]).ok().flatten() };
    (0..SUBDIVISIONS_MAX).map_while(code).collect::<Vec<_>>().join(",")
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    for Config { file, by_subnet } in configs {
        let path = setup.path(&file);
        let database = last_good::load(format!("geoip/{}", path.display()), setup, |files| open(files, &path))?;
        let labels = setup.labels();
        for (label, value) in labels_of(&database).unwrap_or_default() {
            let database = Arc::clone(&database);
            labels.publish(label, move |query| {
                // If the database does not have the address, labels get the values of absent fields, as in CoreDNS.
                value(&database.lookup(address(query, by_subnet)).ok()?)
            });
        }
    }
    Ok(None)
}

/// Opens a database of a type that provides labels.
fn open(files: &dyn Files, path: &Path) -> Result<Database, SetupError> {
    let problem = |error: String| SetupError::new(format!("{}: {error}", path.display()));
    let bytes = open_error::read(files, path).map_err(SetupError::from_error)?;
    let database = Reader::from_source(bytes).map_err(|error| problem(error.to_string()))?;
    if labels_of(&database).is_some() {
        return Ok(database);
    }
    let message = format!("unsupported database type `{}`", database.metadata().database_type);
    Err(problem(message).with_help("use a City, Country, Enterprise or ASN database"))
}

/// Returns the labels that a database of this type provides.
fn labels_of(database: &Database) -> Option<&'static [(&'static str, LabelValue)]> {
    let kind = &database.metadata().database_type;
    if ["City", "Country", "Enterprise"].iter().any(|part| kind.contains(part)) {
        return Some(&PLACES);
    }
    kind.contains("ASN").then_some(&NETWORKS)
}

/// Address to look up: the client's, or its subnet from the query.
fn address(query: &Query, by_subnet: bool) -> IpAddr {
    let peer = query.peer.address.ip().to_canonical();
    let subnet = || query.options().find(|(code, _)| *code == OptionCode::CLIENT_SUBNET);
    let subnet = if by_subnet { subnet() } else { None };
    subnet.and_then(|(_, data)| subnet_address(data)).unwrap_or(peer)
}

/// Parses the address of a client-subnet option (RFC 7871 §6). Trailing zero bytes may be omitted.
fn subnet_address(data: &[u8]) -> Option<IpAddr> {
    let ([0, family, _, _], network) = data.split_first_chunk::<4>()? else { return None };
    let mut bytes = [0; 16];
    bytes.get_mut(..network.len())?.copy_from_slice(network);
    match (family, bytes.first_chunk::<4>()) {
        (1, Some(v4)) if network.len() <= v4.len() => Some(Ipv4Addr::from(*v4).into()),
        (2, _) => Some(Ipv6Addr::from(bytes).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(kind: &str, address: &str) -> Option<Vec<String>> {
        let database = Reader::from_source(test_database::database(kind)).unwrap();
        let found = database.lookup(address.parse().unwrap()).unwrap();
        let labels = labels_of(&database)?;
        Some(labels.iter().map(|(_, value)| value(&found).unwrap()).collect())
    }

    #[test]
    fn maps_a_database_record_to_label_values() {
        let place = ["Oslo", "NO", "Norway", "false", "EU", "Europe", "59.5", "-10.25", "Europe/Oslo", "0150", "03,X"];
        assert_eq!(labels("Test-City", "192.0.2.7"), Some(place.map(str::to_owned).to_vec()));
        assert_eq!(labels("Test-City", "2001:db8::1"), Some(place.map(str::to_owned).to_vec()));
        let nowhere = ["", "", "", "false", "", "", "", "", "", "", ""];
        assert_eq!(labels("Test-City", "198.51.100.1"), Some(nowhere.map(str::to_owned).to_vec()));
        assert_eq!(labels("GeoLite2-ASN", "198.51.100.1"), Some(vec!["0".to_owned(), String::new()]));
        assert_eq!(labels("Wide-ASN", "192.0.2.7"), Some(vec![(64_500u64 << 32).to_string(), "Example".to_owned()]));
        assert_eq!(labels("GeoLite2-ASN", "192.0.2.7"), Some(vec!["64500".to_owned(), "Example".to_owned()]));
        assert_eq!(labels("Anonymous-IP", "192.0.2.7"), None);
    }

    #[test]
    fn survives_damaged_databases() {
        let whole = test_database::database("Test-City");
        assert!(Reader::from_source(b"nothing".to_vec()).is_err());
        // A truncated or corrupted database either fails to open or returns fewer fields. It never panics.
        for length in 0..whole.len() {
            if let Ok(database) = Reader::from_source(whole[..length].to_vec()) {
                let _ = database.lookup([192, 0, 2, 7].into()).map(|found| PLACES.map(|(_, value)| value(&found)));
            }
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            if let Ok(database) = Reader::from_source(changed) {
                let _ = database.lookup([192, 0, 2, 7].into()).map(|found| PLACES.map(|(_, value)| value(&found)));
            }
        }
    }

    #[test]
    fn reads_the_address_of_a_client_subnet() {
        assert_eq!(subnet_address(&[0, 1, 24, 0, 192, 0, 2]), Some([192, 0, 2, 0].into()));
        assert_eq!(subnet_address(&[0, 2, 32, 0, 0x20, 1, 0xd, 0xb8]), "2001:db8::".parse().ok());
        assert_eq!(subnet_address(&[0, 1, 0, 0]), Some([0, 0, 0, 0].into()));
        for bad in [
            &[0, 1, 40, 0, 1, 2, 3, 4, 5][..],
            &[0, 3, 0, 0],
            &[0, 1],
            &[0, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        ] {
            assert_eq!(subnet_address(bad), None);
        }
    }
}
