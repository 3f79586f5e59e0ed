//! Programs that a cluster needs, and where each comes from.

use std::path::{Path, PathBuf};

use xtask::Failed;

/// Programs that `up` runs, with the Debian package that has them.
const PACKAGED: [(&str, &str); 10] = [
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("ipset", "ipset"),
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("busybox", "busybox-static"),
];
/// Programs of Kubernetes, and etcd.
const BUILT: [&str; 7] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"];
/// Folders in which distributions and others install CNI plugins.
const CNI_FOLDERS: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];

/// Returns the path of a program that `PATH` has.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    // Debian's `PATH` of other users lacks the folders with programs of the administrator.
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders).chain(more).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Returns the folder with the CNI plugins.
pub(crate) fn cni_folder() -> Option<&'static Path> {
    CNI_FOLDERS.iter().map(Path::new).find(|folder| folder.join("bridge").is_file())
}

/// Checks that everything is there, or says what is missing and where to get it.
pub(crate) fn check() -> Result<(), Failed> {
    let missing: Vec<_> = PACKAGED.iter().filter(|(name, _)| find(name).is_none()).collect();
    let mut wrong: Vec<String> =
        missing.iter().map(|(name, package)| format!("`{name}` (package {package})")).collect();
    wrong.extend(BUILT.iter().filter(|name| find(name).is_none()).map(|name| format!("`{name}`")));
    if cni_folder().is_none() {
        wrong.push("the CNI plugins (package containernetworking-plugins)".to_owned());
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("not on the PATH: {}; docs/real-cluster.md says how to get them", wrong.join(", ")))
}

/// Returns true if a version of etcd has the progress notifications without which the API server cannot stream lists
/// (etcd 3.4.31, 3.5.13 and later). `text` is the output of `etcd --version`.
pub(crate) fn etcd_streams_lists(text: &str) -> bool {
    let version = text.lines().find_map(|line| line.strip_prefix("etcd Version: ")).unwrap_or_default();
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let [major, minor, patch] = [(); 3].map(|()| numbers.next().unwrap_or(0));
    (major, minor) > (3, 5) || (major, minor) == (3, 5) && patch >= 13 || (major, minor) == (3, 4) && patch >= 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_which_etcd_streams_lists() {
        for (version, expected) in
            [("3.4.23", false), ("3.4.31", true), ("3.5.12", false), ("3.5.13", true), ("3.6.0", true)]
        {
            let text = format!("etcd Version: {version}\nGit SHA: Not provided\n");
            assert_eq!(etcd_streams_lists(&text), expected, "{version}");
        }
        assert!(!etcd_streams_lists(""));
    }
}
