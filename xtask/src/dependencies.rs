//! Crates that this project depends on, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::{Failed, root};

/// Target whose dependencies are listed. The others have the same ones.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Returns the directory with the source of a crate that this project depends on.
pub(crate) fn source_of(name: &str) -> Result<PathBuf, Failed> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let manifest = packages.iter().find(|package| package["name"] == name);
    let manifest = manifest.and_then(|package| package["manifest_path"].as_str()).map(Path::new);
    let folder = manifest.and_then(Path::parent).map(Path::to_path_buf);
    folder.ok_or_else(|| format!("cargo metadata lists no package `{name}`"))
}

/// Returns what `cargo metadata` says about all packages, without network access.
pub(crate) fn metadata() -> Result<Value, Failed> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let arguments = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", TARGET];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output();
    let output = output.map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// Crates that are compiled into a package, without those that only run during the build (build scripts, procedural
/// macros) and without those for tests.
pub(crate) struct Linked<'m> {
    /// Identifier of the package.
    pub(crate) start: &'m str,
    /// Packages in the output of `cargo metadata`, by identifier.
    pub(crate) packages: BTreeMap<&'m str, &'m Value>,
    /// The package and its crates, each with those that it uses directly.
    pub(crate) used: BTreeMap<&'m str, BTreeSet<&'m str>>,
}

/// Finds the crates that are linked into the package of this name.
pub(crate) fn linked<'m>(metadata: &'m Value, name: &str) -> Result<Linked<'m>, Failed> {
    let packages = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let start = packages.values().find(|package| package["name"] == name).and_then(|package| package["id"].as_str());
    let start = start.ok_or_else(|| format!("cargo metadata lists no package `{name}`"))?;
    let used = reachable(start, &nodes, &packages);
    Ok(Linked { start, packages, used })
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
