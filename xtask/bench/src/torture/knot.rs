//! Knot DNS as the upstream.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use specification::record::{Question, Type};

use super::client::probe;
use super::zone;
use xtask::Failed;
use xtask::server::free_port;

/// Maximum time until Knot answers.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const PROBE_TIMEOUT: Duration = Duration::from_millis(100);
/// Program. Debian has it in a directory for administrators.
const PROGRAMS: [&str; 2] = ["/usr/sbin/knotd", "/usr/local/sbin/knotd"];

/// Running server, which is killed on drop.
#[derive(Debug)]
pub(crate) struct Knot {
    child: Child,
    config: PathBuf,
    pub(crate) port: u16,
}

impl Drop for Knot {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Knot {
    /// Starts Knot with the zone of the upstream. Returns `None` if it is not installed.
    pub(crate) fn start(folder: &Path) -> Result<Option<Knot>, Failed> {
        let Some(program) = PROGRAMS.into_iter().find(|program| Path::new(program).exists()) else { return Ok(None) };
        let (port, own) = (free_port()?, folder.join("knot"));
        let write = |name: &str, text: &str| {
            let path = own.join(name);
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display())).map(|()| path)
        };
        std::fs::create_dir_all(&own).map_err(|error| format!("{}: {error}", own.display()))?;
        write("torture.zone", &zone::file())?;
        let (origin, shown) = (zone::ORIGIN, own.display());
        let config = write(
            "knot.conf",
            &format!(
                "server:\n  rundir: \"{shown}\"\n  listen: 127.0.0.1@{port}\ndatabase:\n  storage: \"{shown}\"\nlog:\n  \
                 - target: stderr\n    any: error\nzone:\n  - domain: {origin}\n    storage: \"{shown}\"\n    file: \
                 torture.zone\n    zonefile-sync: -1\n    journal-content: none\n"
            ),
        )?;
        let knot = Knot { child: spawn(program, &config)?, config, port };
        knot.wait()?;
        Ok(Some(knot))
    }

    /// Kills the process and starts it again.
    pub(crate) fn restart(&mut self) -> Result<(), Failed> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let program = PROGRAMS.into_iter().find(|program| Path::new(program).exists()).unwrap_or_default();
        self.child = spawn(program, &self.config)?;
        self.wait()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn wait(&self) -> Result<(), Failed> {
        let question = Question { name: zone::ORIGIN.to_owned(), qtype: Type::Soa };
        let begin = Instant::now();
        let server = SocketAddr::from(([127, 0, 0, 1], self.port));
        while probe(server, &question, PROBE_TIMEOUT).is_none_or(|response| response.sections[0].is_empty()) {
            if begin.elapsed() > START_TIMEOUT {
                return Err(format!("`knotd` does not answer for {START_TIMEOUT:?}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

fn spawn(program: &str, config: &Path) -> Result<Child, Failed> {
    let mut command = Command::new(program);
    command.arg("-c").arg(config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| format!("{program}: {error}"))
}
