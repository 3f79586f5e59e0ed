//! List of the crates in a binary, in the section `.dep-v0` that `cargo auditable` also writes: `cargo audit bin`,
//! Trivy, Syft and other scanners find advisories with it, without the source.
//!
//! The section has JSON, compressed with zlib: the packages, each with its direct dependencies by their position
//! (<https://github.com/rust-secure-code/cargo-auditable/blob/master/PARSING.md>). The bill of materials of a release
//! has the same crates.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use crate::Failed;
use crate::dependencies::{Linked, linked, metadata};

/// Name of the section.
pub(crate) const SECTION: &str = ".dep-v0";

/// Returns the content of the section for the binary of a package.
pub(crate) fn section(package: &str) -> Result<Vec<u8>, Failed> {
    let list = list(&metadata()?, package)?.to_string();
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(list.as_bytes()).and_then(|()| encoder.finish()).map_err(|error| error.to_string())
}

/// Returns the list of the crates that are linked into a package.
fn list(metadata: &Value, name: &str) -> Result<Value, Failed> {
    let Linked { start, packages, used } = linked(metadata, name)?;
    let places: BTreeMap<&str, usize> = used.keys().copied().zip(0..).collect();
    let list = used.iter().map(|(id, direct)| {
        let package = packages[id];
        let mut entry = json!({
            "name": package["name"],
            "version": package["version"],
            "source": source(package["source"].as_str()),
        });
        if !direct.is_empty() {
            entry["dependencies"] = direct.iter().map(|id| places[id]).collect();
        }
        if *id == start {
            entry["root"] = true.into();
        }
        entry
    });
    Ok(json!({ "packages": list.collect::<Vec<_>>() }))
}

/// Returns the word of the format for the source of a package.
fn source(source: Option<&str>) -> &'static str {
    match source {
        None => "local",
        Some(source) if source.contains("crates.io-index") => "crates.io",
        Some(source) if source.starts_with("git+") => "git",
        Some(_) => "registry",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;

    use super::*;

    fn read(package: &str) -> Vec<Value> {
        let section = section(package).unwrap();
        assert_eq!(section, super::section(package).unwrap(), "a second run gives other bytes");
        let mut text = String::new();
        ZlibDecoder::new(section.as_slice()).read_to_string(&mut text).unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        list["packages"].as_array().unwrap().clone()
    }

    fn used(package: &Value) -> Vec<usize> {
        let list = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        list.iter().map(|place| usize::try_from(place.as_u64().unwrap()).unwrap()).collect()
    }

    #[test]
    fn each_crate_is_reached_from_the_one_root() {
        for name in ["portolan", "portolan-keeper"] {
            let packages = read(name);
            let roots: Vec<usize> = (0..packages.len()).filter(|place| packages[*place]["root"] == true).collect();
            assert_eq!(roots.len(), 1);
            assert_eq!(packages[roots[0]]["name"], name);
            let (mut reached, mut left) = (BTreeSet::new(), roots);
            while let Some(place) = left.pop() {
                if reached.insert(place) {
                    left.extend(used(&packages[place]));
                }
            }
            assert_eq!(reached.len(), packages.len());
        }
    }

    #[test]
    fn names_versions_and_sources_are_those_of_the_lock_file() {
        let packages = read("portolan");
        let lock = std::fs::read_to_string(crate::root().join("Cargo.lock")).unwrap();
        for package in &packages {
            let (name, version) = (package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            let rest = lock.split_once(&entry).unwrap_or_else(|| panic!("{name} {version}")).1;
            let is_local = !rest.starts_with("source");
            assert_eq!(package["source"], if is_local { "local" } else { "crates.io" }, "{name}");
        }
        let named = |name: &str| packages.iter().any(|package| package["name"] == name);
        assert!(named("rustls") && named("portolan-wire") && !named("serde_derive") && !named("portolan-fakeapi"));
    }
}
