//! `portolan cache get` and `portolan cache flush`.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches};
use control::cache::{Cached, FlushRequest, Flushed, Scope};
use control::{Endpoint, exit};

use super::{CommonOptions, command, json, print, service};
use crate::client::{ControlError, Socket};

pub(super) const NAME: &str = "cache";

/// Subcommand with its arguments.
#[derive(Debug)]
pub(super) enum Options {
    Get { name: String, qtype: Option<String> },
    Flush(FlushRequest),
}

pub(super) fn definition() -> clap::Command {
    let name = || Arg::new("name").value_name("NAME").help("Domain name");
    let get = command("get", "Show the cached responses for a name")
        .long_about(
            "Show the cached responses for a name, with the time that is left. Exits with 0 if there are some, with 1 \
             if there are none, and with 2 if the server could not be asked.",
        )
        .arg(name().required(true))
        .arg(Arg::new("type").value_name("TYPE").help("Record type [default: all]"))
        .args(service::options_beside_all())
        .arg(json());
    let flush = command("flush", "Remove cached responses")
        .long_about(
            "Remove cached responses: those for NAME, with --below those for a name and all names below it, or with \
             --all those for all names. A query that is waiting for an upstream at this moment stores its answer \
             afterwards.",
        )
        .arg(name())
        .arg(Arg::new("below").long("below").value_name("NAME").help("Domain name, with all names below it"))
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("All responses"))
        .group(ArgGroup::new("scope").args(["name", "below", "all"]).required(true))
        .args(service::options_beside_all())
        .arg(json());
    command(NAME, "Look into the cache of the running server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(get)
        .subcommand(flush)
}

impl Options {
    /// Returns `None` for a subcommand that does not exist.
    pub(super) fn read(matches: &ArgMatches) -> Option<Options> {
        let text = |matches: &ArgMatches, name: &str| matches.get_one::<String>(name).cloned();
        match matches.subcommand()? {
            ("get", get) => Some(Options::Get { name: text(get, "name")?, qtype: text(get, "type") }),
            ("flush", flush) => Some(Options::Flush(match (text(flush, "name"), text(flush, "below")) {
                (Some(name), _) => FlushRequest { scope: Scope::Name, name: Some(name) },
                (None, Some(name)) => FlushRequest { scope: Scope::Below, name: Some(name) },
                (None, None) => FlushRequest { scope: Scope::All, name: None },
            })),
            _ => None,
        }
    }

    /// Returns the command for one replica.
    pub(super) fn words(&self, json: bool) -> Vec<String> {
        let json = json.then(|| "--json".to_owned());
        let (subcommand, rest): (&str, Vec<String>) = match self {
            Options::Get { name, qtype } => (
                "get",
                std::iter::once("--").chain([name.as_str()]).chain(qtype.as_deref()).map(str::to_owned).collect(),
            ),
            Options::Flush(FlushRequest { scope, name }) => {
                let name = name.clone().unwrap_or_default();
                let scope = match scope {
                    Scope::All => vec!["--all".to_owned()],
                    Scope::Below => vec![format!("--below={name}")],
                    Scope::Name => vec!["--".to_owned(), name],
                };
                ("flush", scope)
            }
        };
        [NAME, subcommand].map(str::to_owned).into_iter().chain(json).chain(rest).collect()
    }
}

pub(super) fn run(own: &Options, options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    match own {
        Options::Get { name, qtype } => {
            let mut parameters = vec![("name", name.as_str())];
            parameters.extend(qtype.as_deref().map(|qtype| ("type", qtype)));
            let cached: Cached = socket.get(Endpoint::CacheGet, &parameters)?;
            print(options, &cached)?;
            Ok(if cached.entries.is_empty() { exit::TROUBLE } else { exit::FINE })
        }
        Options::Flush(request) => {
            if request.scope == Scope::Below && request.name.as_ref().is_none_or(String::is_empty) {
                return Err(ControlError::NoName("--below"));
            }
            let flushed: Flushed = socket.post(Endpoint::CacheFlush, request)?;
            print(options, &flushed)?;
            Ok(exit::FINE)
        }
    }
}
