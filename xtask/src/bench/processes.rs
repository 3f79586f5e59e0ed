//! Starting programs on one processor each, and reading what they have used.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Corefile;
use crate::{Failed, root};

/// The processor of what is measured.
pub(crate) const SERVER_CPU: &str = "0";
/// The processor of what loads it.
pub(crate) const LOAD_CPU: &str = "1";
/// How long a server may take to answer for the first time.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A program that runs on one processor; it ends with this value.
pub(crate) struct Pinned {
    child: Child,
    /// The port it serves.
    pub(crate) port: u16,
}

impl Pinned {
    /// Starts a part of this program that prints its port.
    pub(crate) fn start(cpu: &str, arguments: &[&str]) -> Result<Pinned, Failed> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child =
            pinned(cpu, &own).args(arguments).stdout(Stdio::piped()).spawn().map_err(|error| no_taskset(&error))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let port = line.trim().parse().map_err(|_| format!("`{}` gave no port", arguments.join(" ")))?;
        Ok(Pinned { child, port })
    }

    /// Starts a server and waits until it answers at all.
    pub(crate) fn serve(binary: &Path, corefile: &Corefile) -> Result<Pinned, Failed> {
        Pinned::serve_into(binary, corefile, Stdio::null())
    }

    /// The same, with what it writes going there.
    pub(crate) fn serve_into(binary: &Path, corefile: &Corefile, output: Stdio) -> Result<Pinned, Failed> {
        let mut command = pinned(SERVER_CPU, binary);
        command.arg("-conf").arg(corefile.path()).stdout(output);
        let child = command.spawn().map_err(|error| no_taskset(&error))?;
        let server = Pinned { child, port: corefile.port };
        server.wait_for_answer()?;
        Ok(server)
    }

    fn wait_for_answer(&self) -> Result<(), Failed> {
        let socket = UdpSocket::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        socket.set_read_timeout(Some(Duration::from_millis(2))).map_err(|error| error.to_string())?;
        let query = b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\x07cluster\x05local\0\0\x06\0\x01";
        let start = Instant::now();
        while start.elapsed() < START_TIMEOUT {
            let _ = socket.send_to(query, ("127.0.0.1", self.port));
            if socket.recv(&mut [0; 512]).is_ok() {
                return Ok(());
            }
        }
        Err("the server does not answer".to_owned())
    }

    /// CPU time that it has used, all threads together that there are.
    pub(crate) fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten().flatten();
        // Nanoseconds on a processor come first (Documentation/scheduler/sched-stats.rst of Linux); `stat` has hundredths.
        let nanos = threads.filter_map(|thread| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// Lets [`memory`](Pinned::memory) count the most from now on.
    pub(crate) fn forget_peak(&self) -> Result<(), Failed> {
        let path = format!("/proc/{}/clear_refs", self.child.id());
        std::fs::write(&path, "5").map_err(|error| format!("{path}: {error}"))
    }

    /// Octets that it holds in memory now, and at most so far.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) * 1024
        };
        (field("VmRSS:"), field("VmHWM:"))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server, built for measuring.
pub(crate) fn build_server() -> Result<PathBuf, Failed> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "portolan"])
        .current_dir(root())
        .status()
        .map_err(|error| format!("cargo build: {error}"))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    if status.success() { Ok(target.join("release/portolan")) } else { Err("the server does not build".to_owned()) }
}

/// A port that is free on loopback just now, for UDP and TCP.
pub(crate) fn free_port() -> Result<u16, Failed> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

fn pinned(cpu: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cpu]).arg(program);
    command
}

/// Keeps this program, with all threads that it has and will have, away from the processor of what is measured.
pub(crate) fn stay_away() -> Result<(), Failed> {
    let own = std::process::id().to_string();
    let status = Command::new("taskset").args(["-a", "-p", "-c", LOAD_CPU, &own]).stdout(Stdio::null()).status();
    status.map(|_| ()).map_err(|error| no_taskset(&error))
}

fn no_taskset(error: &std::io::Error) -> Failed {
    format!("taskset (of util-linux) is needed to give each program its processor: {error}")
}
