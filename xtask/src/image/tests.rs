//! Structure of the archives, made from tiny binaries.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::*;
use crate::archive::sha256;

/// Returns an ELF file with one program header of a type.
pub(crate) fn elf(machine: u8, header_type: u8) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(64 + 56, 0);
    bytes[18] = machine;
    bytes[32] = 64;
    bytes[56] = 1;
    bytes[64] = header_type;
    bytes
}

/// Returns a server with a keeper.
pub(crate) fn kept(machine: u8) -> Binary {
    Binary { keeper: Some(b"keeper".to_vec()), ..Binary::new(elf(machine, 1)).unwrap() }
}

fn options(flavor: Flavor) -> ImageOptions<'static> {
    ImageOptions { flavor, repository: "registry.test/dns", version: "1.2.3", seconds: 1_700_000_000 }
}

fn both() -> [Binary; 2] {
    [62, 183].map(kept)
}

/// Returns the files of a tar archive by name.
fn files(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(tar);
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), bytes)
    });
    entries.collect()
}

/// Layout of an archive, which checks size and digest of each blob that is read.
struct Layout(BTreeMap<String, Vec<u8>>);

impl Layout {
    fn blob(&self, descriptor: &Value) -> &[u8] {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let blob = &self.0[&format!("blobs/sha256/{digest}")];
        assert_eq!((sha256(blob).as_str(), Some(blob.len() as u64)), (digest, descriptor["size"].as_u64()));
        blob
    }

    fn document(&self, descriptor: &Value) -> Value {
        let document: Value = serde_json::from_slice(self.blob(descriptor)).unwrap();
        if document.get("mediaType").is_some() {
            assert_eq!(document["mediaType"], descriptor["mediaType"]);
        }
        document
    }

    /// Returns the manifest and the configuration for each architecture.
    fn images(&self) -> Vec<(Value, Value)> {
        let index: Value = serde_json::from_slice(&self.0["index.json"]).unwrap();
        let inner = self.document(&index["manifests"][0]);
        let manifests = inner["manifests"].as_array().unwrap().clone();
        let image = |descriptor: &Value| {
            let manifest = self.document(descriptor);
            let config = self.document(&manifest["config"]);
            assert_eq!(config["architecture"], descriptor["platform"]["architecture"]);
            (manifest, config)
        };
        manifests.iter().map(image).collect()
    }

    /// Returns the layers of an image without compression, after a check of their digests.
    fn layers(&self, (manifest, config): &(Value, Value)) -> Vec<Vec<u8>> {
        let ids = config["rootfs"]["diff_ids"].as_array().unwrap();
        let layers = manifest["layers"].as_array().unwrap();
        assert_eq!(ids.len(), layers.len());
        let layer = |(descriptor, id): (&Value, &Value)| {
            let mut bytes = Vec::new();
            GzDecoder::new(self.blob(descriptor)).read_to_end(&mut bytes).unwrap();
            assert_eq!(*id, format!("sha256:{}", sha256(&bytes)));
            bytes
        };
        layers.iter().zip(ids).map(layer).collect()
    }
}

#[test]
fn image_runs_as_an_unprivileged_user_that_may_bind_port_53() {
    let layout = Layout(files(&make(&options(Flavor::Server), &both()).unwrap()));
    assert_eq!(layout.0["oci-layout"], br#"{"imageLayoutVersion":"1.0.0"}"#);
    let images = layout.images();
    let architectures: Vec<&str> = images.iter().map(|(_, config)| config["architecture"].as_str().unwrap()).collect();
    assert_eq!(architectures, ["amd64", "arm64"]);
    for image in &images {
        assert_eq!(image.1["config"]["User"], "65532:65532");
        assert_eq!(image.1["config"]["Entrypoint"], serde_json::json!(["/portolan-keeper", "/coredns"]));
        let layers = layout.layers(image);
        let mut archive = tar::Archive::new(layers[1].as_slice());
        let mut entries = archive.entries().unwrap();
        let mut program = entries.next().unwrap().unwrap();
        assert_eq!((program.path_bytes().as_ref(), program.header().mode().unwrap()), (&b"portolan"[..], 0o755));
        let mut keeper = entries.next().unwrap().unwrap();
        let mut link = entries.next().unwrap().unwrap();
        assert_eq!(keeper.path_bytes().as_ref(), b"portolan-keeper");
        for entry in [&mut program, &mut link, &mut keeper] {
            let pax = entry.pax_extensions().unwrap().unwrap().next().unwrap().unwrap();
            assert_eq!(pax.key().unwrap(), "SCHILY.xattr.security.capability");
            // Permitted (1 << 10 in the second word), not inheritable, not effective.
            assert_eq!(pax.value_bytes(), [0, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
        assert!(link.header().entry_type().is_hard_link());
        assert_eq!(link.path_bytes().as_ref(), b"coredns");
        assert_eq!(link.link_name_bytes().unwrap().as_ref(), b"portolan");
    }
}

#[test]
fn image_has_certificate_authorities_and_licences() {
    let layout = Layout(files(&make(&options(Flavor::Server), &both()[..1]).unwrap()));
    let base = files(&layout.layers(&layout.images()[0])[0]);
    let bundle = String::from_utf8(base["etc/ssl/certs/ca-certificates.crt"].clone()).unwrap();
    assert_eq!(bundle.matches("-----BEGIN CERTIFICATE-----\n").count(), webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
    assert!(bundle.lines().all(|line| line.len() <= 64));
    assert!(base.contains_key("licenses/LICENSE") && base["licenses/ca-certificates"].len() > 100);
}

#[test]
fn image_has_the_tags_that_kubeadm_knows() {
    let archive = make(&options(Flavor::Server), &both()).unwrap();
    let index: Value = serde_json::from_slice(&files(&archive)["index.json"]).unwrap();
    let tags: Vec<(&str, &str)> = index["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|descriptor| {
            assert_eq!(descriptor["digest"], index["manifests"][0]["digest"]);
            let annotation = |name: &str| descriptor["annotations"][name].as_str().unwrap();
            (annotation("io.containerd.image.name"), annotation("org.opencontainers.image.ref.name"))
        })
        .collect();
    assert_eq!(tags[0], ("registry.test/dns/coredns:1.2.3", "1.2.3"));
    assert!(tags.contains(&("registry.test/dns/coredns:v1.12.1", "v1.12.1")));
}

#[test]
fn docs_name_tags_that_the_image_has() {
    let prefix = "localhost/portolan/coredns:";
    let options = ImageOptions { repository: "localhost/portolan", version: crate::VERSION, ..options(Flavor::Server) };
    let (names, mut found) = (oci::names(&options), 0);
    for page in ["docs/real-cluster.md", "docs/deploy.md", "docs/tutorial.md"] {
        let text = String::from_utf8(crate::read_bytes(Path::new(page)).unwrap()).unwrap();
        let is_end = |c: char| c.is_whitespace() || "`'\")".contains(c);
        for tag in text.split(prefix).skip(1).map(|rest| rest.split(is_end).next().unwrap()) {
            assert!(names.contains(&format!("{prefix}{tag}")), "{page}: {prefix}{tag}");
            found += 1;
        }
    }
    assert!(found > 0);
}

#[test]
fn image_of_the_node_cache_runs_as_root() {
    let layout = Layout(files(&make(&options(Flavor::Node), &both()).unwrap()));
    let images = layout.images();
    assert_eq!(images[0].1["config"]["User"], "0:0");
    assert_eq!(images[0].1["config"]["Entrypoint"], serde_json::json!(["/portolan-keeper", "/node-cache"]));
    let program = files(&layout.layers(&images[0])[1]);
    assert!(program.contains_key("node-cache") && program.contains_key("portolan-keeper"));
    let index: Value = serde_json::from_slice(&layout.0["index.json"]).unwrap();
    let name = &index["manifests"][0]["annotations"]["io.containerd.image.name"];
    assert_eq!(name, "registry.test/dns/k8s-dns-node-cache:1.2.3");
    assert_eq!(index["manifests"].as_array().unwrap().len(), 1);
}

#[test]
fn equal_inputs_give_equal_archives() {
    let made = make(&options(Flavor::Server), &both()).unwrap();
    assert_eq!(made, make(&options(Flavor::Server), &both()).unwrap());
}

#[test]
fn a_root_file_system_becomes_an_image_with_this_layer() {
    let layer = archive::tar(vec![Entry::program("agnhost", *b"x")], 7).unwrap();
    let config = serde_json::json!({ "Entrypoint": ["/agnhost"] });
    let made = single("registry.test/tests/agnhost:2.56", "amd64", &config, layer.clone(), 7).unwrap();
    let layout = Layout(files(&made));
    let index: Value = serde_json::from_slice(&layout.0["index.json"]).unwrap();
    assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], "registry.test/tests/agnhost:2.56");
    let manifest = layout.document(&index["manifests"][0]);
    let found = layout.document(&manifest["config"]);
    assert_eq!(found["config"], config);
    assert_eq!(found["rootfs"]["diff_ids"], serde_json::json!([format!("sha256:{}", sha256(&layer))]));
    assert_eq!(manifest["layers"][0]["mediaType"], "application/vnd.oci.image.layer.v1.tar");
    assert_eq!(layout.blob(&manifest["layers"][0]), layer);
}

#[test]
fn refuses_binaries_that_could_not_run() {
    let message = |bytes: Vec<u8>| Binary::new(bytes).unwrap_err();
    assert!(message(elf(62, 3)).contains("linked dynamically"));
    assert!(message(elf(40, 1)).contains("x86_64 and aarch64"));
    assert!(message(b"#!/bin/sh\n".to_vec()).contains("not an ELF binary"));
    assert!(message(elf(62, 1)[..64].to_vec()).contains("ends within"));
    let twice = [both()[0].clone(), both()[0].clone()];
    assert!(make(&options(Flavor::Server), &twice).unwrap_err().contains("two binaries for amd64"));
}
