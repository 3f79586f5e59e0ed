//! The Helm chart and the Kustomize overlays in `deploy`, and the manifests that they render.

use std::path::{Path, PathBuf};

use serde_json::Value;

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn chart() -> PathBuf {
    repository().join("deploy/helm/portolan")
}

pub(crate) fn kustomize() -> PathBuf {
    repository().join("deploy/kustomize")
}

/// The files of a folder in order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The manifests that the chart and the overlays render in tests.
pub(crate) fn golden() -> Vec<PathBuf> {
    [files(&chart().join("tests/golden")), files(&kustomize().join("tests"))].concat()
}

/// The objects of a YAML text.
pub(crate) fn parse(text: &str) -> Vec<Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    objects.into_iter().filter(|object| !object.is_null()).collect()
}

/// The objects of a file.
pub(crate) fn read(file: &Path) -> Vec<Value> {
    parse(&std::fs::read_to_string(file).expect("a file"))
}
