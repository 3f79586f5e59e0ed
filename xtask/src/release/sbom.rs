//! Bill of materials in the format CycloneDX 1.6 (ECMA-424): the crates that are compiled into the binary, from
//! `cargo metadata` and Cargo.lock.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::dependencies::{Linked, linked, metadata};
use crate::{Failed, read_bytes};

/// Package of the binary.
const BINARY: &str = "portolan";
/// Returns the document for a version of the binary.
pub(crate) fn document(version: &str) -> Result<Vec<u8>, Failed> {
    let metadata = metadata()?;
    let lock = String::from_utf8_lossy(&read_bytes(Path::new("Cargo.lock"))?).into_owned();
    let checksums = checksums(&lock);
    let Linked { start, packages, used } = linked(&metadata, BINARY)?;
    let components = used.keys().filter(|id| **id != start).map(|id| component(packages[id], &checksums));
    let dependencies = used.iter().map(|(id, direct)| {
        let direct: Vec<String> = direct.iter().map(|id| purl(packages[id])).collect();
        json!({ "ref": purl(packages[id]), "dependsOn": direct })
    });
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "bom-ref": purl(packages[start]),
            "name": BINARY,
            "version": version,
            "licenses": [{ "expression": "Apache-2.0" }],
        } },
        "components": components.collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    });
    Ok(format!("{document:#}\n").into_bytes())
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": text("name"),
        "version": text("version"),
        "purl": purl(package),
    });
    if let Some(licence) = package["license"].as_str() {
        // Older crates separate alternatives with a slash.
        component["licenses"] = json!([{ "expression": licence.replace(" / ", " OR ").replace('/', " OR ") }]);
    }
    if let Some(checksum) = checksums.get(&(text("name"), text("version"))) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

/// Returns the package URL of a crate.
fn purl(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    // `+` begins the metadata of a version and has to be escaped.
    format!("pkg:cargo/{}@{}", text("name"), text("version").replace('+', "%2B"))
}

/// Returns the checksums in a Cargo.lock by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let package = |block: &str| {
        let value = |key: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_prefix('='))?;
            Some(line.trim().trim_matches('"').to_owned())
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    lock.split("[[package]]").filter_map(package).collect()
}
