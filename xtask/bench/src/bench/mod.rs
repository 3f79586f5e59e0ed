//! Benchmarks: load on the server, compared with a bare UDP echo in the same run.
//!
//! The server has one processor, and the load generator another. The result is the server's CPU time per answered query
//! as a ratio to that of the echo, because absolute values differ between machines, and even between hours.
//!
//! `bench cluster` measures the cost of a large cluster, see [`scale`]. `bench costs` measures single plugins, see
//! [`costs`]. `bench transports` measures the encrypted transports beside CoreDNS, see [`transports`].

mod asker;
mod certificates;
mod cluster;
mod costs;
mod findings;
mod frames;
mod load;
mod processes;
mod queries;
mod report;
mod responders;
mod scale;
pub(crate) mod swarm;
mod tls;
mod transports;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command};

use self::cluster::{Cluster, Shape};
use self::load::Load;
use self::processes::Pinned;
use self::queries::{MIXES, Mix};
use self::report::{Report, Row};
pub(crate) use self::transports::{client_command, clients};
use xtask::{Failed, server};

/// Default number of Services. Each has ten endpoints.
const SERVICES: &str = "10000";
/// Default duration per mix in seconds.
const SECONDS: &str = "3";

/// Returns the command line of `bench`.
pub(crate) fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).default_value(default).value_parser(clap::value_parser!(usize)).help(help)
    };
    Command::new("bench")
        .about("Measure the server under load, as a ratio to a bare UDP echo")
        .arg(
            Arg::new("suite").value_parser(["queries", "cluster", "costs", "transports"]).default_value("queries").help(
                "queries: CPU time under load; cluster: cost of size, changes and lists; costs: CPU time of plugins; \
                 transports: encrypted transports beside CoreDNS",
            ),
        )
        .arg(number("services", SERVICES, "Number of Services, with ten endpoints each"))
        .arg(number("pods", "0", "Number of Pods; if not 0, the Corefile has `pods verified`"))
        .arg(number("seconds", SECONDS, "Seconds per mix of queries, and per turn of `transports`; a turn of `costs` takes a tenth"))
        .arg(
            Arg::new("only")
                .long("only")
                .alias("mix")
                .help("Run only this mix of queries, this plugin or this row of `transports`; with `cluster`: size, relist or churn"),
        )
        .arg(
            Arg::new("corefile")
                .long("corefile")
                .help("Use this Corefile instead of kubeadm's; `{PORT}`, `{API}` and `{UPSTREAM}` are filled in"),
        )
        .arg(
            Arg::new("server")
                .long("server")
                .alias("portolan")
                .help("Measure this binary instead; it must accept `-conf`"),
        )
        .arg(
            Arg::new("coredns")
                .long("coredns")
                .default_value("coredns")
                .help("CoreDNS, with which `transports` compares; skipped if it is missing"),
        )
        .arg(Arg::new("save").long("save").action(clap::ArgAction::SetTrue).help("Save the result in benches/results"))
}

/// Runs the selected suite.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let number = |name: &str| options.get_one::<usize>(name).copied().unwrap_or(0);
    let server = match options.get_one::<String>("server") {
        Some(path) => PathBuf::from(path),
        None => server::build("release")?,
    };
    let only = options.get_one::<String>("only").cloned();
    let time = Duration::from_secs(number("seconds") as u64);
    let save = options.get_flag("save");
    match options.get_one::<String>("suite").map(String::as_str) {
        Some("cluster") => return scale::run(&server, time, only.as_deref(), save),
        Some("costs") => return costs::run(&server, time, only.as_deref(), save),
        Some("transports") => {
            let coredns = options.get_one::<String>("coredns").map_or("", String::as_str);
            return transports::run(&server, Path::new(coredns), time, only.as_deref(), save);
        }
        _ => {}
    }
    let shape = Shape { services: number("services"), endpoints: 10, pods: number("pods") };
    let cluster = Cluster::start(shape, shape.pods > 0);
    let upstream = Pinned::start(processes::LOAD_CPU, &["respond", "upstream"])?;
    let corefile = match options.get_one::<String>("corefile") {
        Some(path) => std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?,
        None => cluster::kubeadm_corefile(number("pods") > 0),
    };
    let bench = Bench { server, corefile, cluster, upstream, seconds: time, only };
    let report = bench.run()?;
    println!("{report}");
    if save {
        println!("saved as {}", report.save()?.display());
    }
    Ok(())
}

struct Bench {
    server: PathBuf,
    corefile: String,
    cluster: Cluster,
    upstream: Pinned,
    seconds: Duration,
    only: Option<String>,
}

impl Bench {
    fn run(&self) -> Result<Report, Failed> {
        let mut report = Report::new(&self.cluster);
        report.echo.push(self.echo()?);
        report.sent = Some(self.cluster.time_to_send()?);
        let corefile = self.write_corefile(&self.corefile)?;
        let (started, seen) = (Instant::now(), self.cluster.api.seen().len());
        let server = Pinned::serve(&self.server, &corefile)?;
        report.first_answer = Some(started.elapsed());
        report.ready = Some(self.cluster.wait_until_known(server.port, seen, 0, started)?);
        for mix in MIXES.iter().filter(|mix| self.wants(mix)) {
            report.rows.push(self.measure(mix, &server)?);
        }
        report.memory = server.memory();
        if self.wants_name("update") {
            report.updates = Some(self.cluster.time_updates(server.port)?);
        }
        drop(server);
        if self.wants_name("forward-miss") {
            report.rows.push(self.forward_miss()?);
        }
        report.echo.push(self.echo()?);
        Ok(report)
    }

    fn wants(&self, mix: &Mix) -> bool {
        self.wants_name(mix.name)
    }

    fn wants_name(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == name)
    }

    fn echo(&self) -> Result<Load, Failed> {
        let echo = Pinned::start(processes::SERVER_CPU, &["respond", "echo"])?;
        load::run(&echo, &(queries::MIX.make)(self.cluster.shape.services), self.seconds)
    }

    fn measure(&self, mix: &Mix, server: &Pinned) -> Result<Row, Failed> {
        let queries = (mix.make)(self.cluster.shape.services);
        // Fill the caches before counting.
        load::run(server, &queries, Duration::from_millis(300))?;
        let load = load::run(server, &queries, self.seconds)?;
        Ok(Row { name: mix.name, what: mix.what, load })
    }

    /// Measures forwarding without a cache, with a new name in each query.
    fn forward_miss(&self) -> Result<Row, Failed> {
        let corefile = self.write_corefile(".:{PORT} {\n    forward . 127.0.0.1:{UPSTREAM}\n}\n")?;
        let server = Pinned::serve(&self.server, &corefile)?;
        let load = load::run(&server, &queries::unique_names(), self.seconds)?;
        Ok(Row { name: "forward-miss", what: "external names, not cached", load })
    }

    fn write_corefile(&self, text: &str) -> Result<Corefile, Failed> {
        Corefile::write(text, self.cluster.api.url(), self.upstream.port)
    }
}

/// Corefile on disk, deleted on drop.
struct Corefile {
    path: PathBuf,
    port: u16,
}

impl Corefile {
    /// Writes a Corefile with a free port, the API server and the upstream filled in.
    fn write(text: &str, api: &str, upstream: u16) -> Result<Corefile, Failed> {
        let port = server::free_port()?;
        let text = text
            .replace("{PORT}", &port.to_string())
            .replace("{API}", api)
            .replace("{UPSTREAM}", &upstream.to_string());
        let path = std::env::temp_dir().join(format!("portolan-bench-{port}.corefile"));
        std::fs::write(&path, text).map_err(|error| error.to_string())?;
        Ok(Corefile { path, port })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Corefile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Folder that is deleted on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn make(name: &str) -> Result<Folder, Failed> {
        let path = std::env::temp_dir().join(format!("portolan-bench-{}-{name}", std::process::id()));
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

/// Runs a responder. The benchmark starts this program again for it.
pub(crate) fn respond(options: &ArgMatches) -> Result<(), Failed> {
    let name = options.get_one::<String>("kind").map(String::as_str);
    responders::run(name.unwrap_or_default())
}

/// Runs the load generator. The benchmark starts this program again for it.
pub(crate) fn load(options: &ArgMatches) -> Result<(), Failed> {
    load::main(options)
}
