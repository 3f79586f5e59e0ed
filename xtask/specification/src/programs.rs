//! Servers as programs: their configurations for a folder of zone files, and their processes.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use specification::record::Question;

use crate::{ask, write};
use xtask::Failed;
use xtask::server::free_port;

/// Maximum time until a server answers for its last zone.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Name of the file with the access to the API server, beside the configurations.
pub(crate) const KUBECONFIG: &str = "kubeconfig";

/// Kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Portolan,
    CoreDns,
    KubeDns,
    Knot,
    Nsd,
}

impl Kind {
    pub(crate) const ALL: [Kind; 5] = [Kind::Portolan, Kind::CoreDns, Kind::KubeDns, Kind::Knot, Kind::Nsd];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Portolan => "portolan",
            Kind::CoreDns => "coredns",
            Kind::KubeDns => "kube-dns",
            Kind::Knot => "knotd",
            Kind::Nsd => "nsd",
        }
    }

    /// Returns true for servers that know clusters.
    pub(crate) const fn has_clusters(self) -> bool {
        matches!(self, Kind::Portolan | Kind::CoreDns | Kind::KubeDns)
    }

    /// Returns true for servers that read zone files.
    pub(crate) const fn has_zones(self) -> bool {
        !matches!(self, Kind::KubeDns)
    }

    /// Returns the arguments for a configuration file. kube-dns reads the kubeconfig file beside it.
    fn arguments(self, file: &Path, port: u16) -> Result<Vec<OsString>, Failed> {
        let before: &[&str] = match self {
            Kind::Portolan | Kind::CoreDns => &["-conf"],
            Kind::Knot => &["-c"],
            Kind::Nsd => &["-d", "-c"],
            Kind::KubeDns => {
                let (kubeconfig, health) = (file.with_file_name(KUBECONFIG), free_port()?);
                let mut access = OsString::from("--kubecfg-file=");
                access.push(kubeconfig);
                let rest = ["--dns-bind-address=127.0.0.1".to_owned(), format!("--dns-port={port}")];
                let rest = rest.into_iter().chain([format!("--healthz-port={health}")]).map(OsString::from);
                return Ok(core::iter::once(access).chain(rest).collect());
            }
        };
        Ok(before.iter().map(OsString::from).chain([file.into()]).collect())
    }

    /// Returns the configuration for the zone files of a folder.
    pub(crate) fn zones(self, origins: &[&str], folder: &Path, port: u16) -> String {
        match self {
            Kind::Portolan | Kind::CoreDns => corefile(folder, port),
            Kind::Knot => knot(origins, folder, port),
            Kind::Nsd => nsd(origins, folder, port),
            Kind::KubeDns => String::new(),
        }
    }

    pub(crate) fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Running server, which is killed on drop.
pub(crate) struct Program {
    child: Child,
    port: u16,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    /// Starts a server with this configuration, and waits until it has an answer with records to a question.
    pub(crate) fn start(
        (kind, binary): (Kind, &Path),
        configuration: impl FnOnce(u16) -> String,
        probe: &Question,
        folder: &Path,
    ) -> Result<Program, Failed> {
        let port = free_port()?;
        let file = folder.join(format!("{}.conf", kind.name()));
        write(&file, &configuration(port))?;
        let log = folder.join(format!("{}.log", kind.name()));
        let output = File::create(&log).map_err(|error| error.to_string())?;
        let mut command = Command::new(binary);
        command.args(kind.arguments(&file, port)?);
        command.stdin(Stdio::null()).stderr(output.try_clone().map_err(|error| error.to_string())?).stdout(output);
        let child = command.spawn().map_err(|error| format!("`{}` cannot be started: {error}", kind.name()))?;
        let program = Program { child, port };
        let start = Instant::now();
        while !program.serves(probe)? {
            if start.elapsed() > START_TIMEOUT {
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("`{}` does not serve its zones:\n{log}", kind.name()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(program)
    }

    fn serves(&self, question: &Question) -> Result<bool, Failed> {
        // Nothing listens at the start, which is an error of the socket.
        let Ok(outcomes) = ask::all(self.address(), std::iter::once(question)) else { return Ok(false) };
        Ok(outcomes.iter().flatten().any(|response| !response.sections[0].is_empty()))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }
}

/// Returns the name of a zone file, which has no dot at its end.
pub(crate) fn file_name(origin: &str) -> String {
    format!("db.{}", origin.trim_end_matches('.'))
}

fn corefile(folder: &Path, port: u16) -> String {
    let auto = format!("auto {{\n directory {} db\\.(.*) {{1}}\n reload 0s\n}}", folder.display());
    format!(".:{port} {{\nbind 127.0.0.1\n{auto}\n}}\n")
}

fn knot(origins: &[&str], folder: &Path, port: u16) -> String {
    let folder = folder.display();
    let mut text = format!(
        "server:\n  rundir: \"{folder}\"\n  listen: 127.0.0.1@{port}\ndatabase:\n  storage: \"{folder}\"\nlog:\n  - \
         target: stderr\n    any: error\nzone:\n"
    );
    for origin in origins {
        let _ = writeln!(
            text,
            "  - domain: {origin}\n    storage: \"{folder}\"\n    file: {}\n    zonefile-sync: -1\n    \
             journal-content: none",
            file_name(origin)
        );
    }
    text
}

fn nsd(origins: &[&str], folder: &Path, port: u16) -> String {
    let folder = folder.display();
    let files = format!("zonesdir: \"{folder}\"\n  xfrdir: \"{folder}\"\n  pidfile: \"{folder}/nsd.pid\"");
    let state = format!("xfrdfile: \"{folder}/xfrd.state\"\n  zonelistfile: \"{folder}/zone.list\"");
    let mut text = format!(
        "server:\n  ip-address: 127.0.0.1@{port}\n  {files}\n  {state}\n  username: \"\"\n  rrl-ratelimit: 0\n  \
         chroot: \"\"\n  database: \"\"\nremote-control:\n  control-enable: no\n"
    );
    for origin in origins {
        let _ = writeln!(text, "zone:\n  name: \"{origin}\"\n  zonefile: \"{}\"", file_name(origin));
    }
    text
}

/// Temporary folder that is deleted on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Folder, Failed> {
        let path = std::env::temp_dir().join(format!("portolan-specification-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
