//! `portolan conformance`: tests any DNS server against the Kubernetes DNS specification.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints to its user")]

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use cluster::Source;
use conformance::{Objects, Options, Progress, Report, RunError, SPECIFICATION};

use crate::command_error::ServerAddressError;

/// Default DNS port (RFC 1035 §4.2).
const DNS_PORT: u16 = 53;
/// File with the name server to test if the command line names none.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Exit code if the checks could not run.
const COULD_NOT_RUN: u8 = 2;

/// Options of `portolan conformance`.
#[derive(Clone, Debug)]
pub struct ConformanceOptions {
    /// Server to test; `None` is the first name server in `/etc/resolv.conf`.
    pub server: Option<SocketAddr>,
    /// Cluster domain.
    pub zone: String,
    /// Kubeconfig of the cluster in which to create the objects.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; `None` is its current context.
    pub context: Option<String>,
    /// File to write the objects to, which the server reads.
    pub manifests: Option<PathBuf>,
    /// True to create no objects.
    pub no_create: bool,
    /// True to print the objects and exit.
    pub print_manifests: bool,
    /// Namespace of the objects, or the prefix of the temporary namespace's name.
    pub namespace: String,
    /// True to print the results as JSON.
    pub json: bool,
    /// Substring of the name or description of the checks to run.
    pub filter: String,
}

impl ConformanceOptions {
    fn objects(&self) -> Objects {
        match (&self.manifests, &self.kubeconfig) {
            (Some(path), _) => Objects::File(path.clone()),
            _ if self.no_create => Objects::Given,
            (None, Some(file)) => {
                Objects::Cluster(Source::Kubeconfig { file: file.clone(), context: self.context.clone() })
            }
            _ if process::local::is_pod() => Objects::Cluster(Source::InCluster),
            _ => Objects::Given,
        }
    }
}

/// Parses `HOST` or `HOST:PORT`, with an IP address or a name as the host.
///
/// # Errors
/// Fails if the text has another form or the name has no address.
pub fn read_server(text: &str) -> Result<SocketAddr, ServerAddressError> {
    let plain = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let address = plain.map(|address| SocketAddr::new(address, DNS_PORT)).or_else(|_| text.parse());
    address.or_else(|_| look_up(text))
}

/// Resolves the host in `HOST[:PORT]` with the system resolver. Prefers the first IPv4 address.
fn look_up(text: &str) -> Result<SocketAddr, ServerAddressError> {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let port = if port.is_empty() { Some(DNS_PORT) } else { port.parse().ok() };
    let port = port.filter(|_| !host.is_empty() && !host.contains([':', '/', ' '])).ok_or(ServerAddressError::Form)?;
    let found = stub_resolver::look_up(host).map_err(|error| ServerAddressError::Lookup(host.to_owned(), error))?;
    let found = found.into_iter().min_by_key(IpAddr::is_ipv6);
    let ip = found.ok_or_else(|| ServerAddressError::NoAddress(host.to_owned()))?;
    Ok(SocketAddr::new(ip, port))
}

/// Runs the checks and prints their results. Succeeds if no applicable check fails.
#[must_use]
pub fn conform(options: &ConformanceOptions) -> ExitCode {
    if options.print_manifests {
        return match conformance::manifests(&options.zone, &options.namespace) {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(error) => could_not_run(&[error]),
        };
    }
    let Some(server) = options.server.or_else(own_server) else {
        eprintln!("{RESOLV_CONF} has no `nameserver` line; name the server to test with --server");
        return ExitCode::from(COULD_NOT_RUN);
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return could_not_run(&[RunError::System(error)]),
    };
    let checked = conformance::Options {
        server,
        zone: options.zone.clone(),
        objects: options.objects(),
        namespace: options.namespace.clone(),
        filter: options.filter.clone(),
    };
    let json = options.json;
    match runtime.block_on(conformance::run(&checked, &mut |progress| say(&progress, &checked, json))) {
        Ok(report) => conclude(&report, json),
        Err(errors) => could_not_run(&errors),
    }
}

fn say(progress: &Progress<'_>, options: &Options, json: bool) {
    match progress {
        Progress::Warning(warning) => eprintln!("{warning}"),
        _ if json => {}
        Progress::Begin(namespace) => {
            let (server, zone) = (options.server, options.zone.trim_end_matches('.'));
            println!("{server}, zone {zone}, namespace {namespace}, Kubernetes DNS specification {SPECIFICATION}\n");
        }
        Progress::Waiting(limit) => {
            println!("waiting up to {} s until the server has the objects", limit.as_secs());
        }
        Progress::Checked(checked) => println!("{checked}"),
    }
}

fn conclude(report: &Report, json: bool) -> ExitCode {
    if json {
        println!("{:#}", report.to_json());
    } else {
        println!("\n{}", report.summary());
    }
    let (_, failed, _) = report.counts();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn could_not_run(errors: &[RunError]) -> ExitCode {
    errors.iter().for_each(|error| eprintln!("{error}"));
    ExitCode::from(COULD_NOT_RUN)
}

/// Returns the first name server of the system.
fn own_server() -> Option<SocketAddr> {
    let text = std::fs::read_to_string(RESOLV_CONF).ok()?;
    let addresses =
        text.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse::<IpAddr>().ok());
    addresses.map(|address| SocketAddr::new(address, DNS_PORT)).next()
}
