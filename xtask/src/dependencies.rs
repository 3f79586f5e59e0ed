//! Crates that this project depends on, from `cargo metadata`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

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
