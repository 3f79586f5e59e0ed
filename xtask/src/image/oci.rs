//! OCI image layout 1.1 in a tar archive: blobs, a configuration and a manifest per architecture, an image index of all
//! architectures, and `index.json`, which names that index once per tag.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Binary, Flavor};
use crate::Failed;
use crate::archive::{self, Entry, gzip, sha256};
use crate::binary::KEEPER;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const PLAIN_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// Extended attribute `security.capability`, version 2 (capabilities(7)): `CAP_NET_BIND_SERVICE`, number 10, is
/// permitted. It is not effective: the kernel would not start the program in a container that drops the capability.
/// `portolan` raises it itself.
pub const CAP_NET_BIND_SERVICE: [u8; 20] = [0, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Properties of an image, besides its files.
#[derive(Clone, Copy, Debug)]
pub struct ImageOptions<'a> {
    /// Program that the image is for.
    pub flavor: Flavor,
    /// Repository before the name of the image.
    pub repository: &'a str,
    /// Version of the project.
    pub version: &'a str,
    /// Time of all files in seconds since 1970.
    pub seconds: u64,
}

/// Returns the full names of an image, one per tag.
pub fn names(options: &ImageOptions<'_>) -> Vec<String> {
    let name = format!("{}/{}", options.repository, options.flavor.name());
    options.flavor.tags(options.version).iter().map(|tag| format!("{name}:{tag}")).collect()
}

/// Blobs by the digest of their content.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Adds a blob and returns its descriptor.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = sha256(&bytes);
        let descriptor = json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len() });
        self.0.insert(digest, bytes);
        descriptor
    }
}

/// Layer in the form of a configuration and of a manifest.
struct Layer {
    /// Digest without compression.
    diff_id: String,
    descriptor: Value,
}

/// Packs an image for all binaries. `base` has the files that are the same for all architectures.
pub fn archive(options: &ImageOptions<'_>, base: &[Entry], binaries: &[Binary]) -> Result<Vec<u8>, Failed> {
    let mut blobs = Blobs::default();
    let mut manifests = Vec::new();
    for binary in binaries {
        let twice = manifests.iter().any(|known: &Value| known["platform"]["architecture"] == binary.architecture);
        if twice {
            return Err(format!("two binaries for {}; give one per architecture", binary.architecture));
        }
        let layers = [
            add_layer(&mut blobs, base.to_vec(), options.seconds)?,
            add_layer(&mut blobs, programs(options, binary)?, options.seconds)?,
        ];
        let config = blobs.add(CONFIG, text(&config(options, binary, &layers)));
        let layers: Vec<&Value> = layers.iter().map(|layer| &layer.descriptor).collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": layers,
            "annotations": labels(options),
        });
        let mut descriptor = blobs.add(MANIFEST, text(&manifest));
        descriptor["platform"] = json!({ "architecture": binary.architecture, "os": "linux" });
        manifests.push(descriptor);
    }
    let index =
        json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": labels(options) });
    let index = blobs.add(INDEX, text(&index));
    layout(names(options), &index, blobs, options.seconds)
}

/// Packs an image of one layer, for one architecture and with one name. `config` is the field of the same name in the
/// configuration of the image. The layer is a tar archive, which stays uncompressed: the image does not leave this
/// machine.
pub fn single(name: &str, architecture: &str, config: &Value, layer: Vec<u8>, seconds: u64) -> Result<Vec<u8>, Failed> {
    let mut blobs = Blobs::default();
    let diff_id = format!("sha256:{}", sha256(&layer));
    let layer = Layer { diff_id, descriptor: blobs.add(PLAIN_LAYER, layer) };
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "config": config,
        "rootfs": { "type": "layers", "diff_ids": [layer.diff_id] },
    });
    let config = blobs.add(CONFIG, text(&config));
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer.descriptor] });
    let manifest = blobs.add(MANIFEST, text(&manifest));
    layout(vec![name.to_owned()], &manifest, blobs, seconds)
}

/// Packs the blobs with the files that make them a layout, in which every name means `image`.
fn layout(names: Vec<String>, image: &Value, blobs: Blobs, seconds: u64) -> Result<Vec<u8>, Failed> {
    let named = |name: String| {
        let tag = name.rsplit(':').next().unwrap_or_default();
        let mut descriptor = image.clone();
        // The first is for containerd, the second for all others.
        descriptor["annotations"] =
            json!({ "io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag });
        descriptor
    };
    let tagged: Vec<Value> = names.into_iter().map(named).collect();
    let mut entries = vec![
        Entry::directory("blobs"),
        Entry::directory("blobs/sha256"),
        Entry::file("oci-layout", text(&json!({ "imageLayoutVersion": "1.0.0" }))),
        Entry::file("index.json", text(&json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": tagged }))),
    ];
    entries.extend(blobs.0.into_iter().map(|(digest, bytes)| Entry::file(format!("blobs/sha256/{digest}"), bytes)));
    archive::tar(entries, seconds)
}

/// Returns the files of the layer with the programs.
fn programs(options: &ImageOptions<'_>, binary: &Binary) -> Result<Vec<Entry>, Failed> {
    let program = Entry::program("portolan", binary.bytes.as_slice());
    let link = Entry::hard_link(options.flavor.link(), "portolan");
    let keeper = binary.keeper.as_deref().ok_or_else(|| format!("no {KEEPER} for {}", binary.architecture))?;
    let keeper = Entry::program(KEEPER, keeper);
    Ok(match options.flavor {
        // containerd sets the owner of the link too, by which the file loses its capabilities. So the link repeats
        // them. The keeper binds no port, but with `allowPrivilegeEscalation: false` the server gets only capabilities
        // that the keeper has.
        Flavor::Server => {
            [program, link, keeper].map(|entry| entry.with_capability(CAP_NET_BIND_SERVICE.to_vec())).into()
        }
        // Root has the capabilities of its container. The official manifest can have a PID file in /tmp.
        Flavor::Node => vec![program, link, keeper, Entry::directory("tmp")],
    })
}

fn add_layer(blobs: &mut Blobs, entries: Vec<Entry>, seconds: u64) -> Result<Layer, Failed> {
    let layer = archive::tar(entries, seconds)?;
    let diff_id = format!("sha256:{}", sha256(&layer));
    Ok(Layer { diff_id, descriptor: blobs.add(LAYER, gzip(&layer)?) })
}

fn config(options: &ImageOptions<'_>, binary: &Binary, layers: &[Layer]) -> Value {
    let ids: Vec<&str> = layers.iter().map(|layer| layer.diff_id.as_str()).collect();
    let history = ["certificate authorities and licences", "portolan"].map(|content| json!({ "created_by": content }));
    json!({
        "architecture": binary.architecture,
        "os": "linux",
        "config": {
            "User": options.flavor.user(),
            "Entrypoint": [format!("/{KEEPER}"), format!("/{}", options.flavor.link())],
            "WorkingDir": "/",
            // So that `kubectl exec POD -- portolan status` finds the program.
            "Env": ["PATH=/"],
            "ExposedPorts": { "53/tcp": {}, "53/udp": {} },
            "Labels": labels(options),
        },
        "rootfs": { "type": "layers", "diff_ids": ids },
        "history": history,
    })
}

fn labels(options: &ImageOptions<'_>) -> Value {
    json!({
        "org.opencontainers.image.title": "Portolan",
        "org.opencontainers.image.description": "DNS server for Kubernetes clusters",
        "org.opencontainers.image.version": options.version,
        "org.opencontainers.image.licenses": "Apache-2.0 AND CDLA-Permissive-2.0",
    })
}

fn text(document: &Value) -> Vec<u8> {
    document.to_string().into_bytes()
}
