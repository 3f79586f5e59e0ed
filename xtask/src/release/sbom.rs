//! Bill of materials in the format CycloneDX 1.6 (ECMA-424): the crates that are compiled into the binary, from
//! `cargo metadata` and Cargo.lock. Crates that only run during the build (build scripts, procedural macros) and crates
//! for tests are not in the binary.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::dependencies::metadata;
use crate::{Failed, read_bytes};

/// Package of the binary.
const BINARY: &str = "portolan";
/// Returns the document for a version of the binary.
pub(crate) fn document(version: &str) -> Result<Vec<u8>, Failed> {
    let metadata = metadata()?;
    let lock = String::from_utf8_lossy(&read_bytes(Path::new("Cargo.lock"))?).into_owned();
    let checksums = checksums(&lock);
    let packages = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let start = packages.values().find(|package| package["name"] == BINARY).and_then(|package| package["id"].as_str());
    let start = start.ok_or_else(|| format!("cargo metadata lists no package `{BINARY}`"))?;
    let used = reachable(start, &nodes, &packages);
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

fn by_id(list: &Value) -> BTreeMap<&str, &Value> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(|item| Some((item["id"].as_str()?, item))).collect()
}

/// Returns the packages that are linked into `start`, each with those that it uses directly.
fn reachable<'a>(
    start: &'a str,
    nodes: &BTreeMap<&'a str, &'a Value>,
    packages: &BTreeMap<&'a str, &'a Value>,
) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut used = BTreeMap::new();
    let mut left = vec![start];
    while let Some(id) = left.pop() {
        if used.contains_key(id) {
            continue;
        }
        let edges = nodes.get(id).and_then(|node| node["deps"].as_array()).map_or(&[][..], Vec::as_slice);
        let linked = edges.iter().filter(|edge| is_linked(edge)).filter_map(|edge| edge["pkg"].as_str());
        let linked: BTreeSet<&str> = linked.filter(|id| packages.get(id).is_some_and(|it| !is_macro(it))).collect();
        left.extend(&linked);
        used.insert(id, linked);
    }
    used
}

/// Returns true if a dependency is a usual one, not only one of a build script or of tests.
fn is_linked(edge: &Value) -> bool {
    edge["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().map_or(&[][..], Vec::as_slice);
    targets.iter().any(|target| target["kind"].as_array().is_some_and(|kinds| kinds.contains(&json!("proc-macro"))))
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
