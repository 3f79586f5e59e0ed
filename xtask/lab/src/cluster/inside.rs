//! Runs programs in the namespaces of the node.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::home::{CONTAINERD_SOCKET, Home, KUBECONFIG, PROCESSES};
use super::network::{self, Node};
use super::steps::output_of;
use xtask::Failed;

/// Interval between looks at something that is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Namespaces of a running node.
pub(crate) struct Inside<'a> {
    pub(crate) home: &'a Home,
    process: u32,
    node: Node,
}

impl<'a> Inside<'a> {
    /// Finds the node of a cluster.
    pub(crate) fn find(home: &'a Home) -> Result<Inside<'a>, Failed> {
        let process = home.node_process().ok_or_else(|| {
            format!("no cluster runs in {}; start one with `cargo xtask cluster up`", home.folder().display())
        })?;
        Ok(Inside { home, process, node: network::FIRST })
    }

    /// Returns the namespaces of another node of the cluster.
    pub(crate) fn on(&self, node: Node) -> Inside<'a> {
        Inside { node, ..*self }
    }

    /// Returns a command that runs in the namespaces of the node, with kubectl and Helm configured.
    pub(crate) fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.process.to_string(), "--mount", "--pid", "--net", "--uts"]);
        if let Ok(folder) = std::env::current_dir() {
            command.arg(format!("--wd={}", folder.display()));
        }
        if self.node != network::FIRST {
            // Its process ID is known in the PID namespace that the nodes share.
            let process = self.home.read(&format!("{PROCESSES}/{}", self.node.name)).unwrap_or_default();
            command.args(["--", "nsenter", "--target", process.trim(), "--mount", "--net", "--uts"]);
        }
        command.arg("--").arg(program).args(words);
        command.env("KUBECONFIG", self.home.path(&self.node.file(KUBECONFIG)));
        command.env("CONTAINERD_ADDRESS", CONTAINERD_SOCKET);
        command
    }

    /// Returns the standard output of a program, or an error with what it printed.
    pub(crate) fn output(&self, program: &str, words: &[&str]) -> Result<String, Failed> {
        let output = output_of(&mut self.command(program, words));
        output.map_err(|error| format!("{program} {}: {error}", words.join(" ")))
    }

    /// Runs kubectl and returns its output. `line` has the words, separated by spaces.
    pub(crate) fn kubectl(&self, line: &str) -> Result<String, Failed> {
        self.output("kubectl", &line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs kubectl with a document on standard input.
    pub(crate) fn kubectl_with(&self, line: &str, document: &str) -> Result<String, Failed> {
        use std::io::Write as _;
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = self.command("kubectl", &words);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("nsenter: {error}"))?;
        let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(document.as_bytes()));
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("kubectl {line}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        written.map_err(|error| format!("kubectl {line}: {error}"))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Returns true if the first process of the node still runs.
    pub(crate) fn is_alive(&self) -> bool {
        self.home.node_process() == Some(self.process)
    }
}

/// Waits until a condition is true. Fails after `limit` with the last reason.
pub(crate) fn wait_until(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> Result<(), Failed>,
) -> Result<(), Failed> {
    let end = Instant::now() + limit;
    loop {
        match condition() {
            Ok(()) => return Ok(()),
            Err(reason) if Instant::now() >= end => return Err(format!("{what}: not after {limit:?}: {reason}")),
            Err(_) => std::thread::sleep(LOOK_AGAIN),
        }
    }
}
