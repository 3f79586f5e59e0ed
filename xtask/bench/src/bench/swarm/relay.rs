//! Relays as processes: start, stop, and the resources that they use.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::super::certificates::{CERTIFICATE, Certificates, KEY};
use super::super::processes::SERVER_CPU;
use xtask::{Failed, server};

/// Time for a relay to list everything and to serve, and for one to end.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const END_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for a page. A process that has not started to serve does not accept connections.
const PAGE_TIMEOUT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);
/// Unit of CPU times in `/proc/PID/stat` (proc_pid_stat(5)), which is the same on all architectures.
const TICKS_PER_SECOND: u64 = 100;

/// Relay, which is killed on drop.
pub(crate) struct Relay {
    command: Command,
    child: Child,
    /// Port for subscribers.
    pub(crate) port: u16,
    pages: u16,
}

/// Memory of a process in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Peak of the resident memory.
    pub(crate) peak: u64,
    pub(crate) resident: u64,
    /// Resident memory without pages of files.
    pub(crate) anonymous: u64,
}

impl Relay {
    /// Starts a relay of an API server, and waits until it serves.
    pub(crate) fn start(binary: &Path, api: &str, certificates: &Certificates) -> Result<Relay, Failed> {
        let (port, pages) = (server::free_port()?, server::free_port()?);
        let mut command = Command::new("taskset");
        command.args(["-c", SERVER_CPU]).arg(binary).args(["relay", "--api-server", api]);
        command.arg("--certificate").arg(certificates.path(CERTIFICATE)).arg("--key").arg(certificates.path(KEY));
        command.args(["--listen", &format!("127.0.0.1:{port}"), "--metrics", &format!("127.0.0.1:{pages}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = spawn(&mut command)?;
        let relay = Relay { command, child, port, pages };
        relay.wait_ready()?;
        Ok(relay)
    }

    /// Asks the relay to end, and waits until it has.
    pub(crate) fn stop(&mut self) -> Result<(), Failed> {
        let process = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &process]).status();
        status.map_err(|error| format!("kill: {error}"))?;
        let start = Instant::now();
        while start.elapsed() < END_TIMEOUT {
            if self.child.try_wait().map_err(|error| error.to_string())?.is_some() {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        Err(format!("a relay does not end within {END_TIMEOUT:?}"))
    }

    /// Starts the relay again, on the same ports. It may not serve yet.
    pub(crate) fn start_again(&mut self) -> Result<(), Failed> {
        self.child = spawn(&mut self.command)?;
        Ok(())
    }

    /// Waits until the relay serves.
    pub(crate) fn wait_ready(&self) -> Result<(), Failed> {
        let start = Instant::now();
        while start.elapsed() < START_TIMEOUT {
            if page(self.pages, "/ready").is_some_and(|page| page.starts_with("HTTP/1.1 200")) {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        Err(format!("a relay is not ready after {START_TIMEOUT:?}"))
    }

    /// Returns the value of a metric, as the sum over its labels.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        metric(self.pages, name)
    }

    /// Returns the CPU time of the process.
    pub(crate) fn cpu(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The name of the program, which is in parentheses, may contain spaces. User and system time are the fields 14
        // and 15, and the first field after the name has the number 3.
        let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(14 - 3);
        let ticks: u64 = fields.take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
    }

    /// Returns the memory of the process.
    pub(crate) fn memory(&self) -> Memory {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) * 1024
        };
        Memory { peak: field("VmHWM:"), resident: field("VmRSS:"), anonymous: field("RssAnon:") }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(command: &mut Command) -> Result<Child, Failed> {
    command.spawn().map_err(|error| format!("cannot run `taskset` (package util-linux): {error}"))
}

/// Returns the value of a metric on the page of a port, as the sum over its labels.
pub(crate) fn metric(port: u16, name: &str) -> Option<f64> {
    let page = page(port, "/metrics")?;
    let samples = page.lines().filter_map(|line| line.strip_prefix(name)).filter(|rest| rest.starts_with([' ', '{']));
    let values: Vec<f64> = samples.filter_map(|rest| rest.rsplit_once(' ')?.1.trim().parse().ok()).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

/// Returns a page with its head.
fn page(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PAGE_TIMEOUT)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    Some(page)
}
