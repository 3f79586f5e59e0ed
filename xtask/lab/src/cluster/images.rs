//! Images of a cluster. None is fetched: busybox of the machine is the image that keeps a pod's namespaces and the
//! image of clients, and images of DNS servers are made from their binaries. Users can add images that they pack from
//! a root file system.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::inside::Inside;
use super::programs;
use xtask::Failed;
use xtask::archive::{self, Entry};
use xtask::image::{self, Binary, CAP_NET_BIND_SERVICE, Flavor, ImageOptions};

/// Image that keeps the namespaces of a pod.
pub(crate) const PAUSE: &str = "localhost/pause:1";
/// Image for pods of clients: a shell and tools.
pub(crate) const CLIENT: &str = "localhost/client:1";
/// Image of CoreDNS, made from its binary. It has a tag that kubeadm knows.
pub(crate) const COREDNS: &str = "localhost/original/coredns:v1.14.7";
/// Repository of Portolan's images.
const REPOSITORY: &str = "localhost/portolan";

/// Longest time of a pod; busybox's `sleep` takes no `infinity` in all versions.
const YEAR: &str = "31536000";

/// Returns the name of Portolan's image for a part of the cluster.
pub(crate) fn portolan(flavor: Flavor) -> String {
    format!("{REPOSITORY}/{}:{}", flavor.name(), xtask::VERSION)
}

/// Makes the images that pods need besides those of DNS servers.
pub(crate) fn base() -> Result<Vec<Vec<u8>>, Failed> {
    let busybox = programs::find("busybox").ok_or("`busybox` is not on the PATH")?;
    let busybox = Binary::read(&busybox).map_err(|error| format!("{error}; install the package busybox-static"))?;
    let pause = json!({ "Entrypoint": ["/bin/busybox", "sleep", YEAR] });
    let client = json!({ "Entrypoint": ["/bin/busybox", "sleep", YEAR], "Env": ["PATH=/bin"] });
    let tools = ["sh", "cat", "nslookup", "sleep", "wget", "ls"];
    let mut entries = vec![Entry::directory("bin"), Entry::program("bin/busybox", busybox.bytes.as_slice())];
    entries.extend(tools.map(|tool| Entry::hard_link(&format!("bin/{tool}"), "bin/busybox")));
    let seconds = archive::source_date()?;
    let layer = archive::tar(entries, seconds)?;
    let make = |name: &str, config: &Value| image::single(name, busybox.architecture, config, layer.clone(), seconds);
    Ok(vec![make(PAUSE, &pause)?, make(CLIENT, &client)?])
}

/// Makes both images of Portolan.
pub(crate) fn of_portolan(binary: &Binary) -> Result<Vec<Vec<u8>>, Failed> {
    let seconds = archive::source_date()?;
    let make = |flavor| {
        let options = ImageOptions { flavor, repository: REPOSITORY, version: xtask::VERSION, seconds };
        image::make(&options, std::slice::from_ref(binary))
    };
    Ok(vec![make(Flavor::Server)?, make(Flavor::Node)?])
}

/// Makes an image of CoreDNS with the user and the file capability of the official one.
pub(crate) fn of_coredns(binary: Binary) -> Result<Vec<u8>, Failed> {
    let config = json!({ "Entrypoint": ["/coredns"], "User": "65532:65532", "WorkingDir": "/" });
    let mut capability = CAP_NET_BIND_SERVICE;
    // CoreDNS does not raise the capability itself, so it must be effective.
    capability[0] = 1;
    let entry = Entry::program("coredns", binary.bytes).with_capability(capability.to_vec());
    let seconds = archive::source_date()?;
    image::single(COREDNS, binary.architecture, &config, archive::tar(vec![entry], seconds)?, seconds)
}

/// Makes an image for this machine of the archive of a root file system.
pub(crate) fn of_file_system(name: &str, entrypoint: Option<&String>, archive: &Path) -> Result<Vec<u8>, Failed> {
    let layer = std::fs::read(archive).map_err(|error| format!("{}: {error}", archive.display()))?;
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let mut config = json!({ "WorkingDir": "/" });
    if let Some(program) = entrypoint {
        config["Entrypoint"] = json!([program]);
    }
    image::single(name, architecture, &config, layer, archive::source_date()?)
}

/// Imports an archive into the containerd of each node. Returns what the first one says.
pub(crate) fn import(inside: &Inside<'_>, archive: &Path) -> Result<String, Failed> {
    let archive = std::path::absolute(archive).map_err(|error| format!("{}: {error}", archive.display()))?;
    let words = ["--namespace", "k8s.io", "images", "import", &archive.display().to_string()];
    let nodes = inside.home.nodes().iter();
    let said: Result<Vec<String>, Failed> = nodes.map(|node| inside.on(*node).output("ctr", &words)).collect();
    said.map(|said| said.into_iter().next().unwrap_or_default())
}

/// Writes archives to the folder of the cluster and imports them.
pub(crate) fn import_all(inside: &Inside<'_>, archives: &[Vec<u8>]) -> Result<(), Failed> {
    for archive in archives {
        let name = format!("images/{}.tar", archive::sha256(archive));
        let path: PathBuf = inside.home.write(&name, archive)?;
        import(inside, &path)?;
    }
    Ok(())
}
