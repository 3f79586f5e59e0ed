//! `cargo xtask image`: an OCI archive of the server, or of the cache for nodes, without Docker.
//!
//! The image has no distribution in it: the static binary, certificate authorities and licences. `--binary` may be
//! given once per architecture. The archive can be loaded by containerd (`ctr images import`), Docker, Podman, skopeo
//! and kind.

mod elf;
mod oci;
mod roots;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, value_parser};

use crate::archive::{self, Entry};
use crate::{Failed, binary, root};

pub use elf::Binary;
pub use oci::{CAP_NET_BIND_SERVICE, ImageOptions, single};

/// Tags of CoreDNS that kubeadm of Kubernetes 1.28 to 1.37 installs (`CoreDNSVersion` in its sources). kubeadm takes
/// the version of the installed server from its tag, and refuses to upgrade from a version that it does not know.
/// Therefore v1.14.7 is missing: kubeadm 1.37 knows versions up to 1.14.6.
const COREDNS_TAGS: [&str; 8] =
    ["v1.10.1", "v1.11.1", "v1.11.3", "v1.12.0", "v1.12.1", "v1.13.1", "v1.14.2", "v1.14.6"];

/// Image that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// Server of a cluster, in the place of CoreDNS's image.
    Server,
    /// Cache on a node, in the place of the image of NodeLocal DNSCache.
    Node,
}

impl Flavor {
    /// Returns the last part of the repository. kubeadm requires `coredns`.
    pub fn name(self) -> &'static str {
        match self {
            Flavor::Server => "coredns",
            Flavor::Node => "k8s-dns-node-cache",
        }
    }

    /// Name of the file with the archive, without its version.
    pub fn file(self) -> &'static str {
        match self {
            Flavor::Server => "portolan-image",
            Flavor::Node => "portolan-node-image",
        }
    }

    /// Name under which the manifests of the replaced program start the binary.
    fn link(self) -> &'static str {
        match self {
            Flavor::Server => "coredns",
            Flavor::Node => "node-cache",
        }
    }

    fn user(self) -> &'static str {
        match self {
            Flavor::Server => "65532:65532",
            // The cache creates an interface and packet filter rules.
            Flavor::Node => "0:0",
        }
    }

    fn tags(self, version: &str) -> Vec<String> {
        let aliases = if self == Flavor::Server { &COREDNS_TAGS[..] } else { &[] };
        core::iter::once(version.to_owned()).chain(aliases.iter().map(|tag| (*tag).to_owned())).collect()
    }
}

/// Returns the definition of the command line.
pub fn command() -> clap::Command {
    clap::Command::new("image")
        .about("Make an OCI archive of the server, which needs no Docker")
        .arg(binary::argument())
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Archive to write [default: target/portolan-image.tar, or portolan-node-image.tar]"),
        )
        .arg(
            Arg::new("node")
                .long("node")
                .action(ArgAction::SetTrue)
                .help("Make the image for `portolan node`: user root, started as /node-cache"),
        )
        .arg(repository_argument())
}

/// Returns the option for the repository of images.
pub fn repository_argument() -> Arg {
    Arg::new("repository")
        .long("repository")
        .value_name("PREFIX")
        .default_value("localhost/portolan")
        .help("Repository of the image, before `/coredns` or `/k8s-dns-node-cache`")
}

/// Writes an archive.
pub fn run(options: &ArgMatches) -> Result<(), Failed> {
    let flavor = if options.get_flag("node") { Flavor::Node } else { Flavor::Server };
    let paths: Vec<PathBuf> = options.get_many("binary").into_iter().flatten().cloned().collect();
    let paths = if paths.is_empty() { vec![binary::static_binary(None)?.program] } else { paths };
    let binaries = paths.iter().map(|path| Binary::read_with_keeper(path)).collect::<Result<Vec<_>, _>>()?;
    let repository = options.get_one::<String>("repository").map_or("", String::as_str);
    let image = ImageOptions { flavor, repository, version: crate::VERSION, seconds: archive::source_date()? };
    let made = make(&image, &binaries)?;
    let default = || root().join("target").join(format!("{}.tar", flavor.file()));
    let output: PathBuf = options.get_one("output").cloned().unwrap_or_else(default);
    write(&output, &made)?;
    println!("{}: {} bytes, sha256 {}", output.display(), made.len(), archive::sha256(&made));
    println!("{}", oci::names(&image).join("\n"));
    Ok(())
}

/// Returns the archive of an image for all given architectures.
pub fn make(options: &ImageOptions<'_>, binaries: &[Binary]) -> Result<Vec<u8>, Failed> {
    let mut base = roots::entries()?;
    base.push(Entry::file("licenses/LICENSE", crate::read_bytes(Path::new("LICENSE"))?));
    base.push(Entry::directory("licenses"));
    oci::archive(options, &base, binaries)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failed> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
