//! `portolan node`: drop-in replacement for NodeLocal DNSCache, with node-cache's flags and template and the ConfigMap
//! of kube-dns.
//!
//! The crate `compat` turns flags, template and ConfigMap into a Corefile, which the server runs like any other.
//!
//! - `interface` and `packet_filter`: the network interface and the packet filter rules of the node.
//! - `reconciler`: the thread that creates both and restores them if they disappear.
//! - `netlink_socket`: netlink requests.
//! - `handover`: other instances on the node; a new instance takes the sockets over from the old one.
//! - `generator`: the Corefile and its inputs.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints to its user")]

mod generator;
mod handover;
mod interface;
mod netlink_socket;
mod packet_filter;
mod reconciler;

use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use compat::kube_dns::{CommandLine, ConfigMapSettings, HostNames, Warning};
use compat::node_cache::{FLAGS, Settings};
use config::Directives;
use host::boxed;
use metrics::{Metric, Registry};
use net::{Address, AddressKind, Opened};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::admin::{Admin, IfTaken};
use crate::command_line::{argument, log_format, usage_error};
use crate::generated_corefile::{self, CorefileGenerator};
use crate::lifecycle::{LifecycleHooks, ShutdownKind};
use crate::run::{ServeOptions, ShutdownSignals, block_on, serve};
use crate::serve_error::ServeError;
use generator::NodeCacheGenerator;
use handover::Handover;
use process::log::Format;
use process::version::version_text;
use reconciler::{ErrorCounters, Reconciler};

/// Log target.
const LOG: &str = "portolan";

/// Metrics of this command, for the documentation.
pub static METRICS: [&Metric; 1] = [&reconciler::ERRORS];

/// Serves as the DNS cache of this node until a signal ends the process.
#[must_use]
pub fn node(words: Vec<String>, directives: Directives) -> ExitCode {
    let has_directory = |path: &str| Path::new(path).is_dir();
    let words = match CommandLine::parse_with(FLAGS, words, &[]) {
        Ok(words) if words.is_on("version") => {
            println!("{}", version_text());
            return ExitCode::SUCCESS;
        }
        Ok(words) => words,
        Err(problem) => return usage_error(&problem),
    };
    let read = Settings::read(&words, &has_directory).and_then(|settings| Ok((settings, log_format(&words)?)));
    match read {
        Ok((settings, format)) if words.is_on("print-corefile") => block_on(format, print(settings, words.warnings())),
        Ok((settings, format)) => block_on(format, run(settings, words.warnings(), format, directives)),
        Err(problem) => usage_error(&problem),
    }
}

/// Prints the Corefile for the current template and ConfigMap.
async fn print(settings: Settings, said: Vec<Warning>) -> Result<ExitCode, ServeError> {
    said.iter().for_each(|line| eprintln!("{line}"));
    let registry = Registry::new();
    let generator = NodeCacheGenerator::find(&settings, ErrorCounters::default(), false)?;
    let data = generated_corefile::read_once(&*generator, &registry).await?;
    let config_map = ConfigMapSettings::parse(&data)?;
    print!("{}", generator.corefile(&config_map, HostNames::Unresolved));
    Ok(ExitCode::SUCCESS)
}

async fn run(
    settings: Settings,
    said: Vec<Warning>,
    log_format: Format,
    directives: Directives,
) -> Result<ExitCode, ServeError> {
    let mut signals = ShutdownSignals::new()?;
    said.iter().for_each(|line| tracing::warn!(target: LOG, "{line}"));
    let registry: Arc<Registry> = Registry::new();
    let errors = ErrorCounters::new(&registry);
    let generator = NodeCacheGenerator::find(&settings, errors.clone(), process::local::is_pod())?;
    let follow = |changes| drop(tokio::task::spawn_local(boxed(Rc::clone(&generator).follow(changes))));
    let startup = async {
        let started =
            generated_corefile::start(Rc::clone(&generator) as Rc<dyn CorefileGenerator>, &registry, follow).await?;
        let admin = serve_metrics(&settings, &registry)?;
        wait_for_upstream(&generator).await;
        Ok::<_, ServeError>((started, admin))
    };
    let ((origin, changes), _admin) = match signals.or_exit(startup).await {
        Ok(started) => started?,
        Err(code) => return Ok(code),
    };
    let reconciler = Reconciler::start(&settings, errors)?;
    let handover = Handover::new(settings.interface.as_deref().unwrap_or_default())?;
    join(&handover, &reconciler, &settings).await;
    let hooks = Rc::new(NodeHooks { reconciler, handover });
    let options = ServeOptions {
        conf: None,
        port: settings.port,
        pidfile: settings.pidfile.clone().map(Into::into),
        quiet: settings.is_quiet,
        log_format,
        directives,
    };
    let lifecycle = Rc::clone(&hooks) as Rc<dyn LifecycleHooks>;
    let outcome = serve(&options, origin, &registry, Some(changes), lifecycle, signals).await;
    let others_serve = hooks.handover.has_peers();
    if let Some(hooks) = Rc::into_inner(hooks) {
        hooks.reconciler.end(others_serve);
    }
    outcome
}

/// Limit for a connection to the upstream Service before the addresses are taken over. kube-proxy sets the rules of a
/// new Service within a second or two.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between attempts to connect to it.
const UPSTREAM_RETRY: Duration = Duration::from_millis(100);

/// Waits until the upstream Service accepts connections. Until this cache takes its addresses over, others serve them,
/// and the first failures would be cached.
async fn wait_for_upstream(generator: &NodeCacheGenerator) {
    let Some(address) = generator.upstream() else { return };
    let connect = async {
        while TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(UPSTREAM_RETRY).await;
        }
    };
    if tokio::time::timeout(UPSTREAM_TIMEOUT, connect).await.is_err() {
        tracing::warn!(target: LOG, "The upstream Service at {address} does not accept connections");
    }
}

/// Limit for finding the running instance. An instance that has just become the only one needs a moment to bind the
/// name of the meeting point.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// The same while another process has the addresses of this one: a busy instance binds the name late, or does not
/// respond in time, and sockets of both would get each other's queries. Bounded, because a process of another kind may
/// have the addresses.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between attempts while it breaks off or does not prove in time that it is an instance.
const BUSY_RETRY: Duration = Duration::from_millis(100);
/// Interval between attempts to find it.
const CONNECT_RETRY: Duration = Duration::from_millis(5);

/// Takes the sockets over from the running instance, if there is one. Sets the rules first, so that they are in place
/// even if the other instance ends at this moment.
async fn join(handover: &Rc<Handover>, reconciler: &Reconciler, settings: &Settings) {
    let begin = Instant::now();
    let end = begin + if reconciler.found_interface() { CONNECT_TIMEOUT } else { Duration::ZERO };
    let may_follow =
        || reconciler.found_interface() && Instant::now() < begin + BUSY_TIMEOUT && others_listen(settings);
    let stream = loop {
        let found = handover.connect().await.and_then(|stream| {
            let Some(stream) = stream else { return Ok(None) };
            reconciler.set_rules();
            handover.receive(&stream).map(|()| Some(stream))
        });
        match found {
            Ok(Some(stream)) => break Some(stream),
            Err(error) if Instant::now() >= end && (is_refusal(&error) || !may_follow()) => {
                let holder = handover.holder();
                tracing::warn!(
                    target: LOG,
                    "Taking over no sockets from {holder}: {}. This instance opens its own",
                    host::errors::describe(&error)
                );
                break None;
            }
            Ok(None) if Instant::now() >= end && !may_follow() => break None,
            Err(_) if Instant::now() >= end => tokio::time::sleep(BUSY_RETRY).await,
            _ => tokio::time::sleep(CONNECT_RETRY).await,
        }
    };
    tokio::task::spawn_local(boxed(Rc::clone(handover).run(stream)));
}

/// Returns true for the error of a process that is no instance of this server, which waiting does not change. Other
/// errors, such as a proof that takes too long, are those of a busy instance.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidData)
}

/// Returns true if another process has a socket at an address that this one will serve.
fn others_listen(settings: &Settings) -> bool {
    let (port, kind) = (settings.port, AddressKind::Dns);
    let address = |ip: &IpAddr| Address { label: String::new(), ip: Some(*ip), port, kind };
    settings.local.iter().any(|ip| net::is_taken(&address(ip)))
}

/// Serves all metrics at node-cache's own address, in addition to the address that the Corefile names.
fn serve_metrics(settings: &Settings, registry: &Arc<Registry>) -> Result<Admin, ServeError> {
    let page = plugins::metrics_page(registry, settings.metrics.clone(), "/metrics".to_owned());
    let mut admin = Admin::new(registry);
    let prepared = admin.prepare(core::slice::from_ref(&page), IfTaken::TryAgain)?;
    admin.serve(prepared, vec![page]);
    Ok(admin)
}

/// Setup of the node and connection to other instances, for the lifetime of the server.
struct NodeHooks {
    reconciler: Reconciler,
    handover: Rc<Handover>,
}

impl LifecycleHooks for NodeHooks {
    fn adopted(&self, label: &str) -> Option<Opened> {
        self.handover.take_received(label)
    }

    fn opened(&self, opened: &Opened) {
        self.handover.share(opened);
    }

    fn closed(&self, label: &str) {
        self.handover.unshare(label);
    }

    fn started(&self) {
        self.reconciler.set_rules();
        self.handover.close_unused();
    }

    fn shutdown_kind(&self) -> ShutdownKind {
        if self.handover.has_peers() {
            return ShutdownKind::Leave;
        }
        // Without the rules for queries, new ones go to the cluster DNS while this process answers those it has
        // received.
        self.reconciler.stop_queries();
        ShutdownKind::Drain
    }
}

/// Returns the arguments if a command line selects this command, by the name of the executable or the subcommand
/// `node`.
pub fn called(words: &[OsString]) -> Option<Vec<String>> {
    let name = words.first().and_then(|word| Path::new(word).file_name()?.to_str());
    let behind = if name == Some("node-cache") {
        words.get(1..)
    } else {
        words.get(2..).filter(|_| words.get(1).is_some_and(|word| word == "node"))
    };
    Some(behind?.iter().map(|word| word.to_string_lossy().into_owned()).collect())
}

/// Returns the clap definition of the command, for help, man page and completions. The crate `compat` parses the flags.
pub fn command() -> clap::Command {
    clap::Command::new("node")
        .about("Replace NodeLocal DNSCache on a node, with the flags and the template of node-cache")
        .long_about(
            "Replace NodeLocal DNSCache on a node: accept the flags and the template of node-cache, create the \
             interface and the packet filter rules, and take over from a running instance. An executable with the \
             name `node-cache` runs this command. Flags without an effect are logged at startup.",
        )
        .args(FLAGS.iter().map(argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_selected_by_executable_name_or_subcommand() {
        let called = |text: &str| {
            let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            called(&words).map(|words| words.join(" "))
        };
        assert_eq!(called("/node-cache -localip 1.1.1.1").as_deref(), Some("-localip 1.1.1.1"));
        assert_eq!(called("/portolan node --quiet").as_deref(), Some("--quiet"));
        assert_eq!(called("portolan -conf node"), None);
        assert_eq!(called("portolan"), None);
    }

    #[test]
    fn clap_accepts_all_flags() {
        command().debug_assert();
    }
}
