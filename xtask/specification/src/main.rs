//! `cargo xtask specification`: asks servers all cases of the executable specification, and counts who agrees.
//!
//! Each server has all zones at once, so each zone gets an origin of its own: `z17.test.`.
#![allow(clippy::disallowed_methods, reason = "this program reads files and runs other programs")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result")]

mod ask;
mod programs;
mod report;
mod zones;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use programs::{Folder, Kind};
use xtask::Failed;

fn main() -> ExitCode {
    let done = match command().get_matches().subcommand() {
        Some(("specification", options)) => run(options),
        _ => Ok(()),
    };
    xtask::exit_code(done)
}

/// Returns the definition of the command line.
fn command() -> Command {
    let specification = Command::new("specification")
        .about("Ask servers all small cases of the executable specification")
        .arg(
            Arg::new("records")
                .long("records")
                .value_name("COUNT")
                .default_value("4")
                .value_parser(value_parser!(usize))
                .help("Maximum number of records of a zone besides SOA and NS"),
        )
        .arg(
            Arg::new("server")
                .long("server")
                .value_name("KIND=PATH")
                .action(ArgAction::Append)
                .value_parser(parse_server)
                .help("Server to test: `portolan`, `coredns`, `knotd` or `nsd`, and its binary [default: Portolan]"),
        )
        .arg(
            Arg::new("write")
                .long("write")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write the cases as text, for other servers, and ask none"),
        )
        .arg(
            Arg::new("show")
                .long("show")
                .value_name("COUNT")
                .default_value("1")
                .value_parser(value_parser!(usize))
                .help("Number of examples of each difference"),
        );
    Command::new("cargo xtask").bin_name("cargo xtask").subcommand_required(true).subcommand(specification)
}

/// Server on the command line: its kind and its binary.
#[derive(Clone, Debug)]
struct Server {
    kind: Kind,
    binary: PathBuf,
}

fn parse_server(text: &str) -> Result<Server, String> {
    let (kind, path) = text.split_once('=').ok_or("write it as KIND=PATH")?;
    let kind = Kind::named(kind).ok_or_else(|| format!("`{kind}` is unknown; use portolan, coredns, knotd or nsd"))?;
    Ok(Server { kind, binary: path.into() })
}

fn run(options: &ArgMatches) -> Result<(), Failed> {
    let records = options.get_one("records").copied().unwrap_or_default();
    let examples = options.get_one("show").copied().unwrap_or_default();
    let blocks = specification::scope::zones(records);
    if let Some(path) = options.get_one::<PathBuf>("write") {
        let text: String = blocks.iter().map(specification::text::block).collect();
        return std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()));
    }
    let mut servers: Vec<Server> = options.get_many("server").into_iter().flatten().cloned().collect();
    if servers.is_empty() {
        servers.push(Server { kind: Kind::Portolan, binary: xtask::server::build("release")? });
    }
    let folder = Folder::new()?;
    let blocks = zones::with_origins(&blocks);
    zones::write_all(&blocks, folder.path())?;
    for server in &servers {
        let verdicts = zones::test(server.kind, &server.binary, &blocks, folder.path())?;
        report::print(server.kind.name(), &verdicts, examples);
    }
    Ok(())
}

/// Writes a file, with its path in the error.
fn write(path: &Path, text: &str) -> Result<(), Failed> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
