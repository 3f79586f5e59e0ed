//! Files of a release, made from a tiny binary.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::OnceLock;

use flate2::read::{GzDecoder, ZlibDecoder};
use serde_json::Value;

use super::*;
use crate::archive::sha256;
use crate::image::tests::kept;

const VERSION: &str = "0.1.0-test";

fn artifacts() -> BTreeMap<String, Vec<u8>> {
    let binary = kept(62);
    let program = |platform: &str| Program {
        platform: platform.to_owned(),
        bytes: binary.bytes.clone(),
        keeper: binary.keeper.clone(),
        debug: (platform == "linux-amd64").then(|| b"debug".to_vec()),
    };
    let programs = ["linux-amd64", "linux-amd64-musl"].map(program);
    let release = Release { version: VERSION, repository: "registry.test", seconds: 1_700_000_000 };
    let made = make(&release, core::slice::from_ref(&binary), &programs, texts()).unwrap();
    made.into_iter().map(|artifact| (artifact.name, artifact.bytes)).collect()
}

/// Returns a directory with texts as `xtask-text` writes them.
fn texts() -> &'static Path {
    static TEXTS: OnceLock<PathBuf> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let texts = std::env::temp_dir().join(format!("portolan-release-texts-{}", std::process::id()));
        for name in ["dashboards.yaml", "manual/completions/_portolan", "manual/man/portolan.1"] {
            let path = texts.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        texts
    })
}

/// Returns the files of a compressed archive by name.
fn unpacked(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(GzDecoder::new(bytes));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), bytes)
    });
    entries.collect()
}

#[test]
fn release_has_all_files_with_their_checksums() {
    let made = artifacts();
    let names: Vec<&str> = made.keys().map(String::as_str).collect();
    let expected = [
        "CHANGES.md",
        "SHA256SUMS",
        "dashboards.yaml",
        "portolan-0.1.0-test-linux-amd64-musl.tar.gz",
        "portolan-0.1.0-test-linux-amd64.debug.gz",
        "portolan-0.1.0-test-linux-amd64.tar.gz",
        "portolan-0.1.0-test.cdx.json",
        "portolan-0.1.0-test.tgz",
        "portolan-image-0.1.0-test.tar",
        "portolan-node-image-0.1.0-test.tar",
    ];
    assert_eq!(names, expected);
    let sums = String::from_utf8(made["SHA256SUMS"].clone()).unwrap();
    assert_eq!(sums.lines().count(), made.len() - 1);
    for line in sums.lines() {
        let (digest, name) = line.split_once("  ").unwrap();
        assert_eq!(sha256(&made[name]), digest, "{name}");
    }
    assert_eq!(made, artifacts(), "a second run gives other bytes");
}

#[test]
fn binary_archive_has_man_pages_and_completions() {
    let files = unpacked(&artifacts()["portolan-0.1.0-test-linux-amd64.tar.gz"]);
    let folder = "portolan-0.1.0-test-linux-amd64";
    for name in ["portolan", "portolan-keeper", "LICENSE", "man/portolan.1", "completions/_portolan"] {
        assert!(files.contains_key(&format!("{folder}/{name}")), "{name}");
    }
}

#[test]
fn chart_has_the_version_and_no_tests() {
    let files = unpacked(&artifacts()["portolan-0.1.0-test.tgz"]);
    let chart = String::from_utf8(files["portolan/Chart.yaml"].clone()).unwrap();
    assert!(chart.contains("\nversion: 0.1.0-test\nappVersion: 0.1.0-test\n"), "{chart}");
    assert!(files.contains_key("portolan/values.yaml") && files.contains_key("portolan/values.schema.json"));
    assert!(files.keys().all(|name| !name.starts_with("portolan/tests/")));
}

#[test]
fn chart_package_is_one_that_helm_reads() {
    let folder = std::env::temp_dir().join(format!("portolan-chart-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let package = folder.join("portolan.tgz");
    std::fs::write(&package, &artifacts()["portolan-0.1.0-test.tgz"]).unwrap();
    let output = std::process::Command::new("helm")
        .args(["template", "x", "--set", "image.repository=registry.test/coredns"])
        .arg(&package)
        .output();
    std::fs::remove_dir_all(&folder).unwrap();
    match output {
        Ok(output) => {
            let (manifests, errors) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success() && manifests.contains("helm.sh/chart: portolan-0.1.0-test"), "{errors}");
        }
        Err(error) => println!("SKIPPED: chart package with helm: {error}"),
    }
}

#[test]
fn bill_of_materials_lists_what_is_linked() {
    let document: Value = serde_json::from_slice(&artifacts()["portolan-0.1.0-test.cdx.json"]).unwrap();
    let components = document["components"].as_array().unwrap();
    let named = |name: &str| components.iter().find(|component| component["name"] == name);
    let rustls = named("rustls").unwrap();
    assert_eq!(rustls["licenses"][0]["expression"], "Apache-2.0 OR ISC OR MIT");
    assert_eq!(rustls["hashes"][0]["content"].as_str().unwrap().len(), 64);
    assert!(named("portolan-wire").is_some() && named("tikv-jemalloc-sys").is_some());
    // A procedural macro, a build tool, a test server and this program.
    for absent in ["serde_derive", "cc", "portolan-fakeapi", "xtask"] {
        assert!(named(absent).is_none(), "{absent}");
    }
    let references =
        components.iter().chain([&document["metadata"]["component"]]).map(|it| it["bom-ref"].as_str().unwrap());
    let references: BTreeSet<&str> = references.collect();
    for dependency in document["dependencies"].as_array().unwrap() {
        assert!(references.contains(dependency["ref"].as_str().unwrap()), "{dependency}");
        let used = dependency["dependsOn"].as_array().unwrap();
        assert!(used.iter().all(|used| references.contains(used.as_str().unwrap())), "{dependency}");
    }
}

#[test]
fn binary_lists_the_crates_of_the_bill_of_materials() {
    let section = crate::auditable::section("portolan").unwrap();
    let list: Value = serde_json::from_reader(ZlibDecoder::new(section.as_slice())).unwrap();
    let named = |item: &Value| ["name", "version"].map(|key| item[key].as_str().unwrap().to_owned());
    let listed = list["packages"].as_array().unwrap().iter().filter(|package| package["root"] != true);
    let listed: BTreeSet<[String; 2]> = listed.map(named).collect();
    let document: Value = serde_json::from_slice(&artifacts()["portolan-0.1.0-test.cdx.json"]).unwrap();
    let components: BTreeSet<[String; 2]> = document["components"].as_array().unwrap().iter().map(named).collect();
    assert!(components.len() > 100, "{} components", components.len());
    assert_eq!(listed, components);
}

#[test]
fn refuses_a_version_that_the_source_does_not_have() {
    assert_eq!(check_version("1.2.3-rc.1", "1.2.3"), Ok(()));
    assert!(check_version("1.2.4", "1.2.3").unwrap_err().contains("change `version` in Cargo.toml"));
    let name = "linux-amd64-musl".to_owned();
    assert!(read_programs(&[], &[&name]).unwrap_err().contains("NAME=FILE"));
}
