//! `portolan explain`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, value_parser};
use control::explain::Explained;
use control::{Endpoint, exit};

use super::{CommonOptions, command, json, print};
use crate::control::client::{ControlError, Socket};
use crate::explain::Asked;
use crate::explain::offline;

pub(super) const NAME: &str = "explain";

/// Arguments.
#[derive(Debug)]
pub(super) struct Options {
    name: String,
    qtype: Option<String>,
    from: Option<String>,
    server: Option<String>,
    /// Files to explain from, in place of a running server.
    files: Option<offline::Files>,
}

pub(super) fn definition() -> clap::Command {
    let path = |name: &'static str| Arg::new(name).long(name).value_parser(value_parser!(PathBuf));
    command(NAME, "Explain the answer to a query: which names a pod asks for, and which plugin answers why")
        .long_about(
            "Explain the answer to a query: which names a client asks for, which server block and plugin answers each of \
             them, from what data, and why. Nothing is sent to upstreams. Exits with 0 if the name has records or the \
             answer is that of an upstream, with 1 if not, and with 2 if the server could not be asked.",
        )
        .arg(Arg::new("name").value_name("NAME").required(true).help("Domain name; a final dot excludes the search path"))
        .arg(Arg::new("type").value_name("TYPE").help("Record type [default: A]"))
        .arg(Arg::new("from").long("from").value_name("CLIENT").help("Client: NAMESPACE/POD or an IP address"))
        .arg(Arg::new("server").long("server").value_name("LISTENER").help("Listener such as dns://:53 [default: the first one]"))
        .arg(path("conf").value_name("FILE").help("Corefile to explain from, without a running server"))
        .arg(
            path("manifests")
                .value_name("PATH")
                .num_args(1)
                .action(clap::ArgAction::Append)
                .requires("conf")
                .help("Manifests of the cluster, for --conf: a file or a directory"),
        )
        .arg(json())
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
            files: conf.map(|conf| offline::Files { conf, manifests }),
        })
    }

    /// Explains from files, if the command line names some.
    pub(super) fn run_offline(&self, options: &CommonOptions) -> Option<Result<u8, ControlError>> {
        let files = self.files.as_ref()?;
        let asked = Asked {
            name: &self.name,
            qtype: self.qtype.as_deref(),
            from: self.from.as_deref(),
            server: self.server.as_deref(),
        };
        let explained = offline::explain(files, &asked).map_err(ControlError::Offline);
        Some(explained.and_then(|explained| show(&explained, options)))
    }
}

pub(super) fn run(own: &Options, options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    let mut parameters = vec![("name", own.name.as_str())];
    let optional = [("type", &own.qtype), ("from", &own.from), ("server", &own.server)];
    parameters.extend(optional.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
    let explained: Explained = socket.get(Endpoint::Explain, &parameters)?;
    show(&explained, options)
}

fn show(explained: &Explained, options: &CommonOptions) -> Result<u8, ControlError> {
    print(options, explained)?;
    let is_asked = explained.steps.last().is_some_and(|step| step.rcode.is_none() && !step.dropped);
    let is_lost = explained.steps.last().is_some_and(|step| step.upstreams.iter().all(|one| one.state == "down"));
    let fine = explained.answered.is_some() || (is_asked && !is_lost);
    Ok(if fine { exit::FINE } else { exit::TROUBLE })
}
