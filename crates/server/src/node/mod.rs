//! `portolan node`: the cache on each node, by node-cache's flags, its template and the ConfigMap of kube-dns.
//!
//! Flags, template and ConfigMap become a Corefile (crate `node`), which is served like any other. `interface` and `packets`
//! set the node up, `keeper` sees to it that it stays so, `peers` are other instances on the node: one that starts takes the
//! sockets over from the one that ends. `kernel` is how the first two ask the kernel.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its user")]

mod interface;
mod keeper;
mod kernel;
mod packets;
mod peers;
mod recipe;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::metrics::{Metric, Registry};
use kubedns::{Dynamic, Hosts, Words};
use net::Opened;
use node::{FLAGS, Settings};
use tokio::time::Instant;

use crate::admin::{Admin, IfTaken};
use crate::companion::{Companion, Ending};
use crate::instance::Refused;
use crate::kube_dns::recipe::Recipe;
use crate::kube_dns::{argument, control, source, usage_error};
use crate::log::Format;
use crate::run::{ServeOptions, block_on, serve};
use crate::version::version_text;
use keeper::{Errors, Keeper};
use peers::Peers;
use recipe::NodeRecipe;

/// Where lines of the log say that they come from.
const LOG: &str = "portolan";

/// What is counted here.
pub static METRICS: [&Metric; 1] = [&keeper::ERRORS];

/// Serves as the cache of this node until it is told to end.
#[must_use]
pub fn node(words: Vec<String>) -> ExitCode {
    let has_directory = |path: &str| Path::new(path).is_dir();
    let words = match Words::read_by(FLAGS, words, &[]) {
        Ok(words) if words.is_on("version") => {
            println!("{}", version_text());
            return ExitCode::SUCCESS;
        }
        Ok(words) => words,
        Err(problem) => return usage_error(&problem),
    };
    match Settings::read(&words, &has_directory) {
        Ok(settings) if words.is_on("print-corefile") => block_on(Format::default(), print(settings, words.warnings())),
        Ok(settings) => block_on(Format::default(), run(settings, words.warnings())),
        Err(problem) => usage_error(&problem),
    }
}

/// Prints the Corefile for what template and ConfigMap say at this moment.
async fn print(settings: Settings, said: Vec<String>) -> Result<ExitCode, Refused> {
    said.iter().for_each(|line| eprintln!("{line}"));
    let registry = Registry::new();
    let recipe = NodeRecipe::find(&settings, Errors::default()).map_err(Refused)?;
    let data = source::read_once(&*recipe, &registry).await.map_err(Refused)?;
    let dynamic = Dynamic::read(&data).map_err(|refused| Refused(format!("the ConfigMap is refused: {refused}")))?;
    print!("{}", recipe.corefile(&dynamic, Hosts::AsWritten));
    Ok(ExitCode::SUCCESS)
}

async fn run(settings: Settings, said: Vec<String>) -> Result<ExitCode, Refused> {
    said.iter().for_each(|line| tracing::warn!(target: LOG, "{line}"));
    let refuse = |error: std::io::Error| Refused(error.to_string());
    let registry: Arc<Registry> = Registry::new();
    let errors = Errors::new(&registry);
    let recipe = NodeRecipe::find(&settings, errors.clone()).map_err(Refused)?;
    let follow = |news| drop(tokio::task::spawn_local(Rc::clone(&recipe).follow(news)));
    let (origin, changes) =
        control::start(Rc::clone(&recipe) as Rc<dyn Recipe>, &registry, follow).await.map_err(Refused)?;
    let _admin = serve_metrics(&settings, &registry)?;

    let keeper = Keeper::start(&settings, errors).map_err(refuse)?;
    let peers = Peers::new(settings.interface.as_deref().unwrap_or_default()).map_err(refuse)?;
    join(&peers, &keeper).await;
    let companion = Rc::new(NodeCompanion { keeper, peers });
    let options = ServeOptions {
        conf: None,
        port: settings.port,
        pidfile: settings.pidfile.clone().map(Into::into),
        quiet: settings.is_quiet,
        log_format: Format::default(),
    };
    let outcome = serve(&options, origin, &registry, Some(changes), Rc::clone(&companion) as Rc<dyn Companion>).await;
    let others_serve = companion.peers.are_there();
    if let Some(companion) = Rc::into_inner(companion) {
        companion.keeper.end(others_serve);
    }
    outcome
}

/// How long an instance that is there may take until it can be taken over from: one that serves since another has ended
/// needs a moment to be found.
const FIND_PATIENCE: Duration = Duration::from_millis(500);
/// How soon it is looked for again.
const FIND_AGAIN: Duration = Duration::from_millis(5);

/// Takes the sockets over from the instance that serves, if there is one. The rules come before that: should the other one
/// end at this moment, they are in place.
async fn join(peers: &Rc<Peers>, keeper: &Keeper) {
    let patience = if keeper.found_interface() { FIND_PATIENCE } else { Duration::ZERO };
    let end = Instant::now() + patience;
    let stream = loop {
        let found = peers.find().map(|stream| {
            keeper.set_rules();
            peers.take_over(&stream).map(|()| stream)
        });
        match found {
            Some(Ok(stream)) => break Some(stream),
            Some(Err(error)) if Instant::now() >= end => {
                tracing::warn!(target: LOG, "The instance that serves does not share its sockets: {error}");
                break None;
            }
            None if Instant::now() >= end => break None,
            _ => tokio::time::sleep(FIND_AGAIN).await,
        }
    };
    tokio::task::spawn_local(Rc::clone(peers).meet(stream));
}

/// The page with all metrics, where node-cache has it beside the one that the Corefile names.
fn serve_metrics(settings: &Settings, registry: &Arc<Registry>) -> Result<Admin, Refused> {
    let page = plugins::metrics_page(registry, settings.metrics.clone(), "/metrics".to_owned());
    let mut admin = Admin::new(registry);
    let prepared = admin.prepare(core::slice::from_ref(&page), IfTaken::TryAgain).map_err(Refused)?;
    admin.serve(prepared, vec![page]).map_err(|error| Refused(error.to_string()))?;
    Ok(admin)
}

/// What goes with the server of a node: the node's set-up, and other instances.
struct NodeCompanion {
    keeper: Keeper,
    peers: Rc<Peers>,
}

impl Companion for NodeCompanion {
    fn adopted(&self, label: &str) -> Option<Opened> {
        self.peers.given(label)
    }

    fn opened(&self, opened: &Opened) {
        self.peers.keep(opened);
    }

    fn closed(&self, label: &str) {
        self.peers.forget(label);
    }

    fn started(&self) {
        self.keeper.set_rules();
        self.peers.close_others();
    }

    fn ending(&self) -> Ending {
        if self.peers.are_there() {
            return Ending::OthersServe;
        }
        // Without them the cluster's own DNS gets what comes, while this process still answers what has come.
        self.keeper.drop_rules();
        Ending::Alone
    }
}

/// The flags, if a command line calls this command: by the name that it was started by, or by `node` behind it.
pub(crate) fn called(words: &[OsString]) -> Option<Vec<String>> {
    let name = words.first().and_then(|word| Path::new(word).file_name()?.to_str());
    let behind = if name == Some("node-cache") {
        words.get(1..)
    } else {
        words.get(2..).filter(|_| words.get(1).is_some_and(|word| word == "node"))
    };
    Some(behind?.iter().map(|word| word.to_string_lossy().into_owned()).collect())
}

/// The command as clap knows it: help, man page and completions come from it. Its flags are read by the crate `node`.
pub(crate) fn command() -> clap::Command {
    clap::Command::new("node")
        .about("Is the cache of a node, NodeLocal DNSCache: takes the flags and the template of node-cache")
        .long_about(
            "Is the cache of a node, NodeLocal DNSCache: takes the flags and the template of node-cache, sets up the \
             interface and the rules, and takes over from an instance that runs. Started by the name `node-cache` it is \
             this command. What has no meaning here is said at the start.",
        )
        .args(FLAGS.iter().map(argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_by_its_name_or_its_command() {
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
    fn clap_knows_each_flag() {
        command().debug_assert();
    }
}
