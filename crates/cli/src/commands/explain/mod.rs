//! `portolan explain`.

mod fresh;

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use config::Directives;
use control::explain::{Code, Explained, Step};
use control::{Endpoint, exit};

use super::{as_json, command, json, print_text, service};
use crate::client::{ControlError, Socket};
use inspect::explain::Asked;
use inspect::explain::offline;

pub(super) const NAME: &str = "explain";
/// Code of *kubernetes* for an answer with an address that nothing listens at.
const NOTHING_BEHIND: &str = "PE-K14";

/// Arguments.
#[derive(Debug)]
pub(super) struct Options {
    name: String,
    qtype: Option<String>,
    from: Option<String>,
    server: Option<String>,
    /// True to ask the server what an explanation does not ask.
    fresh: bool,
    format: Format,
    /// Files to explain from, in place of a running server.
    files: Option<offline::Files>,
}

/// Format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Mermaid,
}

impl Format {
    /// Names on the command line, in the order of the help.
    const NAMES: [(&'static str, Format); 3] =
        [("text", Format::Text), ("json", Format::Json), ("mermaid", Format::Mermaid)];

    /// Returns the format that the command line names. `--json` is short for `--format json`.
    fn read(matches: &ArgMatches) -> Format {
        let name = matches.get_one::<String>("format").map_or("text", String::as_str);
        let name = if matches.get_flag("json") { "json" } else { name };
        Format::NAMES.into_iter().find(|(known, _)| *known == name).map_or(Format::Text, |(_, format)| format)
    }
}

pub(super) fn definition() -> clap::Command {
    let path = |name: &'static str| Arg::new(name).long(name).value_parser(value_parser!(PathBuf));
    command(NAME, "Explain the answer to a query: which names a pod asks for, and which plugin answers why")
        .long_about(
            "Explain the answer to a query: which names a client asks for, which server block and plugin answers \
             each of them, from what data, and why. Nothing is sent to upstreams, except with --fresh. Exits with 0 \
             if the name has records, or if the answer is that of an upstream that may work, with 1 if not or if the \
             name is that of a Service with an address and no ready endpoint (PE-K14), with 2 if the server could not \
             be asked, and with 3 if the answer depends on an address of the client that is not known, or if the \
             client asks other servers than the cluster DNS first.",
        )
        .arg(
            Arg::new("name")
                .value_name("NAME")
                .required(true)
                .help("Domain name; a final dot excludes the search path"),
        )
        .arg(Arg::new("type").value_name("TYPE").help("Record type [default: A, or PTR for an IP address]"))
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("CLIENT")
                .help("Client: NAMESPACE/POD or an IP address; names are looked up with its search path"),
        )
        .arg(
            Arg::new("server")
                .long("server")
                .value_name("LISTENER")
                .help("Listener such as dns://:53 [default: the one on port 53, else the first one over UDP and TCP]"),
        )
        .arg(
            Arg::new("fresh")
                .long("fresh")
                .action(ArgAction::SetTrue)
                .help("Query the server where the answer is that of an upstream, and explain again"),
        )
        .arg(
            path("conf")
                .value_name("FILE")
                .conflicts_with("socket")
                .help("Corefile to explain from, without a running server"),
        )
        .arg(
            path("manifests")
                .value_name("PATH")
                .num_args(1)
                .action(ArgAction::Append)
                .requires("conf")
                .help("Manifests of the cluster, for --conf: a file or a directory"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(Format::NAMES.map(|(name, _)| name))
                .conflicts_with("json")
                .help("Format of the output; mermaid makes a flowchart [default: text]"),
        )
        .args(service::options())
        .arg(json().help("Short for --format json"))
}

impl Options {
    /// Returns `None` without a name, which clap requires.
    pub(super) fn read(matches: &ArgMatches) -> Option<Options> {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let manifests = matches.get_many("manifests").into_iter().flatten().cloned().collect();
        let conf = matches.get_one::<PathBuf>("conf").cloned();
        Some(Options {
            name: text("name")?,
            qtype: text("type"),
            from: text("from"),
            server: text("server"),
            fresh: matches.get_flag("fresh"),
            format: Format::read(matches),
            files: conf.map(|conf| offline::Files { conf, manifests }),
        })
    }

    /// Returns the command for one replica.
    pub(super) fn words(&self) -> Vec<String> {
        let option = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("--{name}={value}"));
        let format =
            Format::NAMES.iter().find(|(_, format)| *format == self.format).map(|(name, _)| format!("--format={name}"));
        let fresh = self.fresh.then(|| "--fresh".to_owned());
        let options = [option("from", &self.from), option("server", &self.server), format, fresh];
        let words = ["--".to_owned(), self.name.clone()].into_iter().chain(self.qtype.clone());
        std::iter::once(NAME.to_owned()).chain(options.into_iter().flatten()).chain(words).collect()
    }

    pub(super) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Returns the parameters of a request. `denied` are the names that the server was asked for and denied.
    fn parameters<'a>(&'a self, denied: &'a str) -> Vec<(&'static str, &'a str)> {
        let denied = Some(denied).filter(|denied| !denied.is_empty());
        let [qtype, from, server] = [&self.qtype, &self.from, &self.server].map(Option::as_deref);
        let optional = [("type", qtype), ("from", from), ("server", server), ("denied", denied)];
        let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        std::iter::once(("name", self.name.as_str())).chain(optional).collect()
    }

    /// Explains from files, if the command line names some.
    pub(super) fn run_offline(&self, directives: Directives) -> Option<Result<u8, ControlError>> {
        let files = self.files.as_ref()?;
        if self.fresh {
            let reason = "`--fresh` asks a running server, and `--conf` explains without one; leave out either";
            return Some(Err(ControlError::Refused(reason.to_owned())));
        }
        let asked = Asked {
            name: &self.name,
            qtype: self.qtype.as_deref(),
            from: self.from.as_deref(),
            server: self.server.as_deref(),
            ..Asked::default()
        };
        let explained = offline::explain(files, &asked, directives).map_err(ControlError::Offline);
        Some(explained.and_then(|explained| show(&explained, self.format)))
    }
}

pub(super) fn run(own: &Options, socket: &Socket) -> Result<u8, ControlError> {
    let explained =
        if own.fresh { fresh::explain(own, socket)? } else { socket.get(Endpoint::Explain, &own.parameters(""))? };
    show(&explained, own.format)
}

fn show(explained: &Explained, format: Format) -> Result<u8, ControlError> {
    let text = match format {
        Format::Text => explained.to_string(),
        Format::Json => as_json(explained)?,
        Format::Mermaid => explained.mermaid().to_string(),
    };
    print_text(&text)?;
    let is_open = |step: &Step| step.rcode.is_none() && !step.dropped && step.asked.is_none();
    let is_asked = explained.steps.last().is_some_and(is_open);
    let is_lost = explained.steps.last().is_some_and(|step| step.upstreams.iter().all(|one| one.state == "down"));
    // The reason may be that of an earlier name, which should have an answer.
    let is_about_last = explained.steps.last().is_some_and(|step| step.why.as_ref() == Some(&explained.why));
    let is_external = is_about_last || explained.why.code == Code::Waste.name();
    let is_empty = explained.why.code == NOTHING_BEHIND;
    let fine = !is_empty && explained.answered.is_some() || (is_asked && is_external && !is_lost);
    // Rules that could not be judged may give an answer, or refuse one.
    Ok(match fine {
        _ if !explained.is_complete() => exit::INCOMPLETE,
        true => exit::FINE,
        false => exit::TROUBLE,
    })
}
