//! Knot DNS as the upstream.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use specification::record::{Question, Type};

use super::client::probe;
use super::zone;
use crate::replay::programs::Program;
use xtask::Failed;
use xtask::server::free_port;

/// Timeout for the answer to a question that shows whether Knot serves.
const PROBE_TIMEOUT: Duration = Duration::from_millis(100);
/// Places of the program.
const PROGRAMS: [&str; 2] = ["/usr/sbin/knotd", "/usr/local/sbin/knotd"];

/// Running server.
pub(crate) struct Knot {
    program: Program,
    config: PathBuf,
}

impl Knot {
    /// Starts Knot with the zone of the upstream. Returns `None` if it is not installed.
    pub(crate) fn start(folder: &Path) -> Result<Option<Knot>, Failed> {
        if !PROGRAMS.into_iter().any(|program| Path::new(program).exists()) {
            return Ok(None);
        }
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
                "server:
  rundir: \"{shown}\"
  listen: 127.0.0.1@{port}
database:
  storage: \"{shown}\"
log:
  - target: stderr
    any: error
zone:
  - domain: {origin}
    storage: \"{shown}\"
    file: torture.zone
    zonefile-sync: -1
    journal-content: none
"
            ),
        )?;
        Ok(Some(Knot { program: start(&config, port)?, config }))
    }

    /// Kills the process and starts it again.
    pub(crate) fn restart(&mut self) -> Result<(), Failed> {
        self.program.kill();
        self.program = start(&self.config, self.program.port)?;
        Ok(())
    }

    pub(crate) fn id(&self) -> u32 {
        self.program.id()
    }

    pub(crate) const fn port(&self) -> u16 {
        self.program.port
    }
}

/// Starts the program, and waits until it answers from the zone.
fn start(config: &Path, port: u16) -> Result<Program, Failed> {
    let mut command = Command::new("knotd");
    command.arg("-c").arg(config).stdout(Stdio::null()).stderr(Stdio::null());
    let question = Question { name: zone::ORIGIN.to_owned(), qtype: Type::Soa };
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    let answers = || probe(server, &question, PROBE_TIMEOUT).is_some_and(|it| !it.sections[0].is_empty());
    Program::start(&mut command, port)?.wait("knotd", answers)
}
