//! `portolan doctor`.

use std::path::PathBuf;
use std::sync::Arc;

use ::doctor::{Area, Check, Need, Report, Unknown, select};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use cluster::Source;
use config::Directives;
use control::doctor::ServerFacts;
use control::requests::Requests;
use control::{Endpoint, exit};

use super::{CommonOptions, command, print_text};
use crate::client::{ControlError, ServerOptions, Socket};
use crate::doctor::{AskWaiting, Gathered, Options as GatherOptions, Server, gather};

pub(super) const NAME: &str = "doctor";

/// Options of the command.
#[derive(Debug)]
pub(super) struct Options {
    checks: Vec<&'static Check>,
    format: Format,
    source: Option<Source>,
    conf: Option<PathBuf>,
    service: Option<(String, String)>,
}

/// Output format.
#[derive(Clone, Copy, Debug)]
enum Format {
    /// One line per check, with findings and fixes.
    Text,
    /// Findings in full, with the meaning of their checks.
    FixText,
    Json,
    Sarif,
}

pub(super) fn definition() -> clap::Command {
    let option = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    command(NAME, "Find what is wrong with the DNS of the cluster, and what to do about it")
        .long_about(
            "Find what is wrong with the DNS of the cluster, and what to do about it: Corefile, permissions, Service, \
             Deployment, kubelets, Pods, network, node cache, server on every node, upstreams, Services and this \
             machine. Takes 5 s at most and changes nothing. Reads the API server of this Pod or of a kubeconfig, asks \
             the server that runs here over its control socket, and sends queries. A check that could not look says \
             why. docs/doctor.md lists the checks. Exits with 0 if everything that applies was looked at and is fine, \
             with 1 if something was found, with 2 if no check could look, or if an option names something that cannot \
             be used, and with 3 if nothing was found, but something could not be looked at.",
        )
        .arg(
            option("only", "AREA|CODE")
                .value_parser(|word: &str| select(Some(word)).map(|_| word.to_owned()))
                .help("Run the checks of an area, such as `network`, or the one with a code, such as PD-N04"),
        )
        .arg(flag("fix-text").help("Print the findings in full, with the meaning of their checks and the fixes"))
        .arg(flag("json").conflicts_with("fix-text").help("Print the report as JSON"))
        .arg(flag("sarif").conflicts_with_all(["json", "fix-text"]).help("Print the findings as SARIF 2.1.0"))
        .arg(
            flag("in-cluster")
                .conflicts_with("kubeconfig")
                .help("Use the API server and the service account of this Pod"),
        )
        .arg(
            option("kubeconfig", "FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Use the API server of this kubeconfig [default: that of this Pod, or of $KUBECONFIG]"),
        )
        .arg(
            option("context", "NAME")
                .requires("kubeconfig")
                .help("Context of the kubeconfig [default: its current context]"),
        )
        .arg(
            option("conf", "FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Corefile [default: that of the server that runs here, or that in the ConfigMap]"),
        )
        .arg(
            option("service", "NAMESPACE/NAME")
                .value_parser(service)
                .help("DNS Service [default: the one with the usual names and labels]"),
        )
}

/// Asks the server that runs here.
async fn server(options: ServerOptions) -> Server {
    let is_local = !options.socket.as_deref().is_some_and(|socket| socket.contains("://"));
    let ask = move || Socket::find(&options)?.get(Endpoint::Doctor, &[]);
    let answer: Result<ServerFacts, ControlError> = match tokio::task::spawn_blocking(ask).await {
        Ok(answer) => answer,
        Err(error) => return Server { facts: Err(Unknown::new(error.to_string())), is_here: false },
    };
    let is_here = match &answer {
        Ok(_) => true,
        Err(ControlError::Refused(_) | ControlError::Several(_) | ControlError::Late(..)) => is_local,
        Err(_) => false,
    };
    let facts = answer.map_err(|error| match error {
        ControlError::NoServer => Unknown::new(
            "no server with a control socket was found here; run this in its Pod, or name its socket with `--socket`",
        ),
        error => Unknown::new(error.to_string()),
    });
    Server { facts, is_here }
}

/// Returns the function that asks the server that runs here for queries that wait.
fn ask_waiting(options: ServerOptions) -> AskWaiting {
    Arc::new(move |name| {
        let ask = || Socket::find(&options)?.get::<Requests>(Endpoint::Requests, &[("name", name)]);
        ask().map(|requests| requests.exchanges).map_err(|error| Unknown::new(error.to_string()))
    })
}

/// Error: a word has no slash.
#[derive(Debug, thiserror::Error)]
#[error("expected NAMESPACE/NAME, such as kube-system/kube-dns")]
struct ServiceError;

fn service(text: &str) -> Result<(String, String), ServiceError> {
    let (namespace, name) = text.split_once('/').ok_or(ServiceError)?;
    if namespace.is_empty() || name.is_empty() {
        Err(ServiceError)
    } else {
        Ok((namespace.to_owned(), name.to_owned()))
    }
}

impl Options {
    pub(super) fn read(matches: &ArgMatches) -> Options {
        let kubeconfig = matches.get_one::<PathBuf>("kubeconfig").cloned();
        let context = matches.get_one::<String>("context").cloned();
        Options {
            // The parser has checked the word.
            checks: select(matches.get_one("only").map(String::as_str)).unwrap_or_default(),
            format: match (matches.get_flag("json"), matches.get_flag("sarif"), matches.get_flag("fix-text")) {
                (true, ..) => Format::Json,
                (_, true, _) => Format::Sarif,
                (.., true) => Format::FixText,
                _ => Format::Text,
            },
            source: match kubeconfig {
                Some(file) => Some(Source::Kubeconfig { file, context }),
                None => matches.get_flag("in-cluster").then_some(Source::InCluster),
            },
            conf: matches.get_one("conf").cloned(),
            service: matches.get_one("service").cloned(),
        }
    }

    /// Gathers the facts, runs the checks and prints the report. Needs no server.
    #[allow(clippy::print_stderr, reason = "a command prints to its user")]
    pub(super) fn run(&self, options: &CommonOptions, directives: Directives) -> Result<u8, ControlError> {
        let wanted = GatherOptions {
            names_socket: options.server.socket.is_some(),
            source: self.source.clone(),
            conf: self.conf.clone(),
            directives,
            service: self.service.clone(),
            plans_every_node: self.checks.iter().all(|check| check.area == Area::EveryNode),
            packets: self.checks.iter().any(|check| check.needs.contains(&Need::Network)),
            waiting: ask_waiting(options.server.clone()),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ControlError::Io)?;
        let Gathered { facts, unusable } = runtime.block_on(gather(wanted, server(options.server.clone())));
        // A thread that waits for a program or a socket must not delay the report.
        runtime.shutdown_background();
        unusable.iter().for_each(|reason| eprintln!("{reason}"));
        let report = Report::of(&facts, &self.checks, process::version::VERSION);
        print_text(&self.text(&report)?)?;
        Ok(match () {
            () if !unusable.is_empty() => exit::NOT_ASKED,
            () if report.has_findings() => exit::TROUBLE,
            () if report.is_blind() => exit::NOT_ASKED,
            () if report.is_incomplete() => exit::INCOMPLETE,
            () => exit::FINE,
        })
    }

    fn text(&self, report: &Report) -> Result<String, ControlError> {
        let pretty = |value: &serde_json::Value| format!("{value:#}\n");
        Ok(match self.format {
            Format::Text => report.to_string(),
            Format::FixText => report.fix_text(),
            Format::Json => {
                let json = serde_json::to_value(report).map_err(|error| ControlError::Response(error.to_string()))?;
                pretty(&json)
            }
            Format::Sarif => pretty(&report.sarif()),
        })
    }
}
