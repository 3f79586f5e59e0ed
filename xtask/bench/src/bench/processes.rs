//! Starts programs on one processor each, and reads their resource usage.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Corefile;
use xtask::Failed;

/// Processor of the measured program.
pub(crate) const SERVER_CPU: &str = "0";
/// Processor of the load generator.
pub(crate) const LOAD_CPU: &str = "1";
/// Timeout for the first answer of a server.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Program that is pinned to one processor and killed on drop.
pub(crate) struct Pinned {
    child: Child,
    /// Port that the program serves.
    pub(crate) port: u16,
}

impl Pinned {
    /// Starts this program with other arguments. It must print its port.
    pub(crate) fn start(cpu: &str, arguments: &[&str]) -> Result<Pinned, Failed> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child =
            pinned(cpu, &own).args(arguments).stdout(Stdio::piped()).spawn().map_err(|error| no_taskset(&error))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let port = line.trim().parse().map_err(|_| format!("`{}` did not print a port", arguments.join(" ")))?;
        Ok(Pinned { child, port })
    }

    /// Starts a server and waits until it answers queries.
    pub(crate) fn serve(binary: &Path, corefile: &Corefile) -> Result<Pinned, Failed> {
        Pinned::serve_on(SERVER_CPU, binary, corefile, Stdio::null())
    }

    /// Starts a server like [`serve`](Pinned::serve), with its output going to `output`.
    pub(crate) fn serve_into(binary: &Path, corefile: &Corefile, output: Stdio) -> Result<Pinned, Failed> {
        Pinned::serve_on(SERVER_CPU, binary, corefile, output)
    }

    /// Starts a server like [`serve`](Pinned::serve), on a processor and with its output going to `output`.
    pub(crate) fn serve_on(cpu: &str, binary: &Path, corefile: &Corefile, output: Stdio) -> Result<Pinned, Failed> {
        let mut command = pinned(cpu, binary);
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
        Err(format!("the server does not answer after {START_TIMEOUT:?}"))
    }

    /// Returns the CPU time of all current threads.
    pub(crate) fn cpu(&self) -> Duration {
        cpu_of(self.id())
    }

    /// Returns the ID of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resets the peak that [`memory`](Pinned::memory) returns.
    pub(crate) fn forget_peak(&self) -> Result<(), Failed> {
        let path = format!("/proc/{}/clear_refs", self.child.id());
        std::fs::write(&path, "5").map_err(|error| format!("{path}: {error}"))
    }

    /// Returns the current and the peak resident memory in bytes.
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

/// Returns the CPU time of all current threads of a process.
pub(crate) fn cpu_of(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    // The first number is the time on the CPU in ns (Linux: Documentation/scheduler/sched-stats.rst). `stat` only
    // has 10 ms resolution.
    let nanos = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

fn pinned(cpu: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cpu]).arg(program);
    command
}

/// Moves all current and future threads of this program away from the processor of the measured program.
pub(crate) fn stay_away() -> Result<(), Failed> {
    let own = std::process::id().to_string();
    let status = Command::new("taskset").args(["-a", "-p", "-c", LOAD_CPU, &own]).stdout(Stdio::null()).status();
    status.map(|_| ()).map_err(|error| no_taskset(&error))
}

fn no_taskset(error: &std::io::Error) -> Failed {
    format!("cannot run `taskset` (package util-linux), which pins each program to a processor: {error}")
}
