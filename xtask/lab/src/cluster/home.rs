//! Folder with all files of a cluster, and their names in it.

use std::path::{Path, PathBuf};

use super::network::{ALL, Node};
use xtask::Failed;

/// Configuration for kubectl and all components but the kubelet.
pub(crate) const KUBECONFIG: &str = "kubeconfig";
/// Socket of containerd in the mount namespace of the node.
pub(crate) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// Folder of a cluster. Its path is absolute, because programs with other working folders use it.
#[derive(Clone, Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(folder: &Path) -> Result<Home, Failed> {
        std::path::absolute(folder).map(Home).map_err(|error| format!("{}: {error}", folder.display()))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns a path as text, for command lines and configurations.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Creates a folder with its parents.
    pub(crate) fn make_folder(&self, name: &str) -> Result<PathBuf, Failed> {
        let path = self.path(name);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Writes a file, after its folder.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, Failed> {
        let path = self.path(name);
        let parent = path.parent().unwrap_or(Path::new("/"));
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, content));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    pub(crate) fn read(&self, name: &str) -> Result<String, Failed> {
        let path = self.path(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns the nodes that the cluster was started with.
    pub(crate) fn nodes(&self) -> &'static [Node] {
        let number = self.read(NODES).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1);
        ALL.get(..number).unwrap_or(&ALL)
    }

    /// Returns the process ID of the first process in the node's PID namespace, if the cluster runs.
    pub(crate) fn node_process(&self) -> Option<u32> {
        let process = self.read(PROCESS).ok()?.trim().parse().ok()?;
        // The process of another program may have the number now.
        let words = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
        let own = self.0.as_os_str().as_encoded_bytes();
        words.split(|byte| *byte == 0).any(|word| word == own).then_some(process)
    }
}

/// File with the number of nodes.
pub(crate) const NODES: &str = "nodes";
/// File with the process ID of the node.
pub(crate) const PROCESS: &str = "node.pid";
/// Folder with the log of each component.
pub(crate) const LOGS: &str = "log";
/// Folder with the process ID of each component, in the node's PID namespace.
pub(crate) const PROCESSES: &str = "processes";
/// Folder with a file for each component that must not be started again.
pub(crate) const HOLDS: &str = "hold";
