//! The two servers as processes.

use std::fs::File;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::{Parsed, Question};
use wire::{Name, Opcode, Type};

use clap::ArgMatches;
use xtask::Failed;
use xtask::server::free_port;

/// Timeout for the start of a server. CoreDNS waits up to 5 s for the API server.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between attempts to reach a server.
const PAUSE: Duration = Duration::from_millis(10);
/// Timeout for the response to a probe.
const PROBE_TIMEOUT: Duration = Duration::from_millis(200);
/// Opcode that both servers refuse, whatever the Corefile says (RFC 1035 §4.1.1: reserved).
const PROBE_OPCODE: Opcode = Opcode(14);

/// Name of a server, and its binary.
pub(crate) type Binary<'b> = (&'static str, &'b Path);

/// Running server, which is killed on drop and ends with this process.
pub(crate) struct Server {
    name: &'static str,
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a server for the Corefile in a folder.
    pub(crate) fn start(
        (name, binary): Binary,
        folder: &Path,
        variables: &[(&'static str, String)],
    ) -> Result<Server, Failed> {
        let port = free_port()?;
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(own);
        command.arg("guarded").arg(binary).args(["-conf", "Corefile"]).current_dir(folder).stdin(Stdio::null());
        command.env("P", port.to_string()).envs(variables.iter().map(|(name, value)| (name, value)));
        command.stderr(output.try_clone().map_err(|error| error.to_string())?).stdout(output);
        let child = command.spawn().map_err(|error| format!("`{name}` cannot be started: {error}"))?;
        Ok(Server { name, child, port, log })
    }

    /// Waits until the server answers. Returns its last log line if it ends.
    pub(crate) fn wait(&mut self) -> Result<(), Failed> {
        let mut probe = Question::new(Name::default(), Type::A);
        probe.header.flags = probe.header.flags.with_opcode(PROBE_OPCODE);
        let started = Instant::now();
        while self.ask(&probe.packet()).is_none() {
            if self.has_ended() {
                return Err(self.last_line());
            }
            if started.elapsed() > START_TIMEOUT {
                return Err(format!("no answer after {START_TIMEOUT:?}: {}", self.last_line()));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Waits until a name has an address.
    pub(crate) fn wait_for(&self, name: &str) -> Result<(), Failed> {
        let name = Name::from_text(name).map_err(|error| error.to_string())?;
        let packet = Question::new(name.clone(), Type::A).packet();
        let started = Instant::now();
        while self.ask(&packet).is_none_or(|response| response.sections[0].is_empty()) {
            if started.elapsed() > START_TIMEOUT {
                return Err(format!("{}: no address of {name} after {START_TIMEOUT:?}", self.name));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn ask(&self, packet: &[u8]) -> Option<Parsed> {
        let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
        socket.connect(self.address()).ok()?;
        socket.set_read_timeout(Some(PROBE_TIMEOUT)).ok()?;
        socket.send(packet).ok()?;
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).ok()?;
        Parsed::read(&buffer[..length]).ok()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Returns the last line of the log.
    pub(crate) fn last_line(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().rev().find(|line| !line.is_empty()).unwrap_or_default().to_owned()
    }
}

/// Becomes another program, which the system kills when the parent of this process ends.
pub(crate) fn guarded(options: &ArgMatches) -> Result<(), Failed> {
    linux::process::end_with_parent().map_err(|error| error.to_string())?;
    let words: Vec<&String> = options.get_many("command").into_iter().flatten().collect();
    let [program, arguments @ ..] = words.as_slice() else { return Err("no command".to_owned()) };
    let error = Command::new(program).args(arguments).exec();
    Err(format!("{program}: {error}"))
}
