//! `cargo xtask specification`: asks servers all cases of the executable specification, and counts who agrees.
//!
//! With `--objects` and `--address`, it asks a server about the objects of a cluster that exists.
//!
//! Each server has all zones at once, so each zone gets an origin of its own: `z17.test.`.
#![allow(clippy::disallowed_methods, reason = "this program reads files and runs other programs")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result")]

mod ask;
mod clusters;
mod live;
mod programs;
mod report;
mod zones;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use clusters::Numbered;
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
                .help("Server to test (portolan, coredns, kube-dns, knotd, nsd) and its binary [default: Portolan]"),
        )
        .arg(
            Arg::new("write")
                .long("write")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write the cases as text, for other servers, and ask none"),
        )
        .arg(
            Arg::new("objects")
                .long("objects")
                .value_name("FILE")
                .requires("address")
                .value_parser(value_parser!(PathBuf))
                .help("Ask about the objects that `kubectl get namespaces,services,endpointslices -A -o json` printed"),
        )
        .arg(
            Arg::new("address")
                .long("address")
                .value_name("ADDR:PORT")
                .requires("objects")
                .value_parser(value_parser!(SocketAddr))
                .help("Server to ask about the objects of a cluster"),
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
    let kind = Kind::named(kind).ok_or_else(|| {
        let known = Kind::ALL.map(Kind::name).join(", ");
        format!("`{kind}` is unknown; use one of {known}")
    })?;
    Ok(Server { kind, binary: path.into() })
}

fn run(options: &ArgMatches) -> Result<(), Failed> {
    let records = options.get_one("records").copied().unwrap_or_default();
    let examples = options.get_one("show").copied().unwrap_or_default();
    let live = (options.get_one::<PathBuf>("objects"), options.get_one::<SocketAddr>("address"));
    if let (Some(file), Some(server)) = live {
        return live::run(*server, file, examples);
    }
    let blocks = zones::with_origins(&specification::scope::zones(records));
    let clusters = clusters::all();
    if let Some(path) = options.get_one::<PathBuf>("write") {
        return write_cases(path, records, &clusters);
    }
    let mut servers: Vec<Server> = options.get_many("server").into_iter().flatten().cloned().collect();
    if servers.is_empty() {
        servers.push(Server { kind: Kind::Portolan, binary: xtask::server::build("release")? });
    }
    let folder = Folder::new()?;
    zones::write_all(&blocks, folder.path())?;
    let api = clusters::start_api(&clusters, folder.path())?;
    let (zones, in_clusters) = (zones::subjects(&blocks), clusters::subjects(&clusters));
    for server in &servers {
        let (name, started) = (server.kind.name(), (server.kind, server.binary.as_path()));
        if server.kind.has_zones() {
            let program = zones::start(started, &blocks, folder.path())?;
            report::print(name, "zones", &report::verdicts(program.address(), &zones)?, examples);
        }
        if server.kind.has_clusters() {
            let program = clusters::start(started, &in_clusters, folder.path())?;
            report::print(name, "clusters", &report::verdicts(program.address(), &in_clusters)?, examples);
        }
    }
    drop(api);
    Ok(())
}

/// Writes all cases as text.
fn write_cases(path: &Path, records: usize, clusters: &[Numbered]) -> Result<(), Failed> {
    let zones = specification::scope::zones(records);
    let mut text: String = zones.iter().map(specification::text::block).collect();
    for (cluster, cases) in clusters {
        text.push_str(&specification::text::cluster(cluster));
        text.extend(cases.iter().map(specification::text::case));
    }
    write(path, &text)
}

/// Writes a file, with its path in the error.
fn write(path: &Path, text: &str) -> Result<(), Failed> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guides_have_commands_that_this_program_takes() {
        let mut count = 0;
        for page in ["docs/conformance.md", "docs/proof.md"] {
            let text = std::fs::read_to_string(xtask::root().join(page)).unwrap();
            for line in text.lines().filter(|line| line.starts_with("cargo xtask specification")) {
                let words = line.split('#').next().unwrap_or_default().split_whitespace().skip(1);
                let parsed = command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{page}: {line}: {}", parsed.unwrap_err());
                count += 1;
            }
        }
        assert!(count >= 7, "{count} commands");
    }
}
