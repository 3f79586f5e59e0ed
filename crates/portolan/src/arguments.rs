//! Command line: CoreDNS's flags, with one dash or two, and Portolan's own subcommands.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use clap_complete::Shell;
use cli::check::{CheckOptions, OutputFormat};
use cli::commands::ControlCommand;
use cli::conform::{ConformanceOptions, read_server};
use cli::migrate::{MigrateOptions, read_version};
use compat::coredns::Release;
use compat::kube_dns::Program;
use config::Directives;
use process::log::Format;
use server::ServeOptions;
use server::modes::relay::RelayOptions;

/// Command selected by the command line.
#[derive(Debug)]
pub enum Command {
    /// Serve DNS.
    Serve(ServeOptions),
    /// Check a Corefile.
    Check(CheckOptions),
    /// Test a DNS server against the Kubernetes DNS specification.
    Conformance(ConformanceOptions),
    /// Convert an existing cluster DNS configuration to a Corefile, or compare two servers.
    Migrate(MigrateOptions),
    /// Look into or change the running server.
    Control(Box<ControlCommand>),
    /// Run as the kube-dns pod or as one of its containers.
    KubeDns {
        /// The pod or the container.
        program: Program,
        /// Arguments after the program name or the subcommand.
        words: Vec<String>,
    },
    /// Run as NodeLocal DNSCache.
    Node {
        /// Arguments after the program name or the subcommand.
        words: Vec<String>,
    },
    /// Serve lists and watches to other servers.
    Relay(Box<RelayOptions>),
    /// Print the completion script of a shell.
    Completions(Shell),
    /// Print the man page of the program, or of the subcommand with these words.
    Man(Vec<String>),
    /// Print the version.
    Version,
    /// Print the directives of this build.
    Plugins,
}

/// Default DNS port (RFC 1035 §4.2).
const DNS_PORT: &str = "53";
/// Name of the executable as a plugin of `kubectl`, and how users then call it.
const PLUGIN: &str = "kubectl-portolan";
const PLUGIN_USAGE: &str = "kubectl portolan";
/// Flags that may be written with a single dash, as in CoreDNS.
pub(crate) const SINGLE_DASH: [&str; 8] =
    ["conf", "dns.port", "log-format", "pidfile", "plugins", "quiet", "version", "help"];

/// Returns the clap definition of the command line, from which help, man pages and completions are generated.
#[must_use]
pub fn command() -> clap::Command {
    let path = || value_parser!(PathBuf);
    clap::Command::new("portolan")
        .about("DNS server for Kubernetes clusters; runs CoreDNS Corefiles without changes")
        .disable_version_flag(true)
        .args_conflicts_with_subcommands(true)
        .arg(
            Arg::new("conf")
                .long("conf")
                .value_name("FILE")
                .value_parser(path())
                .help("Corefile to load; `stdin` reads standard input [default: ./Corefile, or a built-in one]"),
        )
        .arg(
            Arg::new("port")
                .long("dns.port")
                .short('p')
                .value_name("PORT")
                .value_parser(read_port)
                .default_value(DNS_PORT)
                .help("Port for server blocks without one"),
        )
        .arg(
            Arg::new("pidfile")
                .long("pidfile")
                .value_name("FILE")
                .value_parser(path())
                .help("Write the process ID to this file and remove the file on exit"),
        )
        .arg(
            option("log-format", "FORM", "Log format: `text`, as CoreDNS writes it, or `json`, one object per line")
                .value_parser(["text", "json"])
                .default_value("text"),
        )
        .arg(flag("quiet", "Do not print zones and version at startup"))
        .arg(flag("plugins", "Print the directives of this build and exit"))
        .arg(flag("version", "Print the version and exit"))
        .subcommand(check_command())
        .subcommand(conformance_command())
        .subcommand(migrate_command())
        .subcommands(cli::commands::definitions())
        .subcommand(server::modes::kube_dns::command())
        .subcommand(server::modes::node::command())
        .subcommand(server::modes::relay::command())
        .subcommand(completions_command())
        .subcommand(man_command())
        .after_help(format!("As in CoreDNS, one dash is enough: -{}.", SINGLE_DASH.join(", -")))
}

/// Reads a port. The message of clap for a number does not say which numbers are possible.
fn read_port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "expected a port from 0 to 65535")
}

/// Returns true for a flag of the server that may be written with one dash.
pub(crate) fn takes_one_dash(name: &str) -> bool {
    SINGLE_DASH.contains(&name)
}

fn completions_command() -> clap::Command {
    clap::Command::new("completions")
        .about("Print the completion script of a shell")
        .after_help(
            "bash:  source <(portolan completions bash)\n\
             zsh:   portolan completions zsh > DIR/_portolan, with DIR in $fpath\n\
             fish:  portolan completions fish > ~/.config/fish/completions/portolan.fish",
        )
        .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(Shell)).help("Shell"))
}

fn man_command() -> clap::Command {
    clap::Command::new("man")
        .about("Print the man page of the program or of a subcommand, in roff")
        .after_help("portolan man check | man -l -")
        .arg(
            Arg::new("words").value_name("SUBCOMMAND").num_args(0..).help("Subcommand, such as `check` or `cache get`"),
        )
}

fn check_command() -> clap::Command {
    clap::Command::new("check")
        .about("Check a Corefile for errors and likely mistakes")
        .long_about(
            "Check a Corefile for errors, which prevent the server from starting, and for likely mistakes (warnings). \
             The command opens no socket and sends no query. Exits with 0 if there is no error, with 1 if there is \
             one (with --strict also for a warning), and with 2 if the Corefile could not be read. With --for \
             coredns, the errors are about words that CoreDNS does not have, and those of this server, most of which \
             prevent CoreDNS from starting, too: for the way back from this server.",
        )
        .arg(Arg::new("file").value_name("FILE").value_parser(value_parser!(PathBuf)).help(
            "Corefile, or manifests (YAML or JSON) with a Corefile in a ConfigMap; `-` is standard input \
                     [default: Corefile]",
        ))
        .arg(flag("json", "Print the diagnostics as one JSON document"))
        .arg(flag("sarif", "Print the diagnostics as SARIF 2.1.0").conflicts_with("json"))
        .arg(flag("files", "Also read the files that the Corefile names (zones, keys, certificates), as at startup"))
        .arg(flag("strict", "Treat warnings as errors"))
        .arg(flag("rbac", "Print the ClusterRole or Roles that the Corefile needs"))
        .arg(
            option(
                "for",
                "SERVER",
                "Check for `coredns` or `coredns@VERSION` instead of this server; CoreDNS 1.11 to \
                                     1.15",
            )
            .value_parser(Release::of_server)
            .conflicts_with_all(["files", "rbac"]),
        )
        .arg(option("explain", "CODE", "Explain a diagnostic code, such as chain/never-asked, and exit"))
}

fn check_options(matches: &ArgMatches) -> CheckOptions {
    CheckOptions {
        file: matches.get_one("file").cloned(),
        format: match (matches.get_flag("json"), matches.get_flag("sarif")) {
            (true, _) => OutputFormat::Json,
            (_, true) => OutputFormat::Sarif,
            _ => OutputFormat::Text,
        },
        files: matches.get_flag("files"),
        strict: matches.get_flag("strict"),
        rbac: matches.get_flag("rbac"),
        coredns: matches.get_one("for").copied(),
        explain: matches.get_one("explain").cloned(),
    }
}

fn conformance_command() -> clap::Command {
    clap::Command::new("conformance")
        .about("Test any DNS server against the Kubernetes DNS specification")
        .long_about(
            "Test any DNS server against the Kubernetes DNS specification and the queries of Kubernetes' end-to-end \
             tests. With --kubeconfig, or in a Pod, the command creates its objects in a temporary namespace and \
             deletes the namespace at the end. Exits with 0 if all checks pass, with 1 if one fails, and with 2 if \
             the checks could not run.",
        )
        .arg(
            option("server", "ADDR[:PORT]", "Server to test [default: the first name server in /etc/resolv.conf]")
                .value_parser(read_server),
        )
        .arg(option("zone", "ZONE", "Cluster domain").default_value("cluster.local"))
        .arg(
            option("kubeconfig", "FILE", "Create the objects in the cluster of this kubeconfig")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["manifests", "no-create"]),
        )
        .arg(
            option("context", "NAME", "Context of the kubeconfig [default: its current context]")
                .requires("kubeconfig"),
        )
        .arg(
            option("manifests", "FILE", "Write the objects to this file, which the server under test reads")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("no-create"),
        )
        .arg(flag("no-create", "Create no objects: the cluster already has those of --print-manifests"))
        .arg(flag("print-manifests", "Print the objects as manifests and exit"))
        .arg(
            option("namespace", "PREFIX", "Namespace of the objects, or name prefix of the temporary namespace")
                .default_value("dns-conformance"),
        )
        .arg(flag("json", "Print the results as JSON"))
        .arg(option("filter", "TEXT", "Run only checks with this text in their name or description").default_value(""))
}

fn migrate_command() -> clap::Command {
    clap::Command::new("migrate")
        .about("Convert an existing cluster DNS configuration to a Corefile")
        .long_about(
            "Convert an older Corefile, or the ConfigMap and Deployment of kube-dns, to a Corefile for this server \
             and print it. The changes and their reasons go to standard error. The command never writes to a cluster. \
             With --check it compares the answers of two servers instead; the queries come from lines `NAME TYPE`, \
             from a query log, or from the Services in manifests. Exits with 1 if a setting has no equivalent, the \
             result is not valid, or the answers differ, and with 2 if the input could not be used.",
        )
        .arg(
            Arg::new("files")
                .value_name("FILE")
                .num_args(0..)
                .value_parser(value_parser!(PathBuf))
                .help("Corefiles or manifests [default: `-`, standard input]"),
        )
        .arg(
            option("from", "VERSION", "Also list behaviour that changed since this version of CoreDNS")
                .value_parser(read_version),
        )
        .arg(flag("defaults", "Add the defaults of newer installations: ready, loop, lameduck, max_concurrent"))
        .arg(flag("json", "Print the Corefile and the notes, or the comparison, as one JSON object"))
        .arg(
            option("check", "OLD NEW", "Compare the answers of these two servers, given as addresses or host names")
                .num_args(2)
                .value_names(["OLD", "NEW"])
                .value_parser(read_server),
        )
        .arg(flag("ttl", "With --check, also compare TTLs; the TTLs of a cache count down").requires("check"))
        .arg(option("zone", "ZONE", "Cluster domain, for queries about Services").default_value("cluster.local"))
        .arg(
            Arg::new("dnsmasq")
                .value_name("DNSMASQ-ARGUMENT")
                .last(true)
                .num_args(0..)
                .help("Arguments for dnsmasq, such as --cache-size=1000"),
        )
}

fn migrate_options(matches: &ArgMatches) -> MigrateOptions {
    let check: Vec<_> = matches.get_many("check").into_iter().flatten().copied().collect();
    MigrateOptions {
        files: matches.get_many("files").into_iter().flatten().cloned().collect(),
        dnsmasq: matches.get_many("dnsmasq").into_iter().flatten().cloned().collect(),
        from: matches.get_one("from").copied(),
        defaults: matches.get_flag("defaults"),
        json: matches.get_flag("json"),
        check: check.try_into().ok(),
        ttl: matches.get_flag("ttl"),
        zone: matches.get_one::<String>("zone").cloned().unwrap_or_default(),
    }
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn conformance_options(matches: &ArgMatches) -> ConformanceOptions {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    ConformanceOptions {
        server: matches.get_one("server").copied(),
        zone: text("zone").unwrap_or_default(),
        kubeconfig: matches.get_one("kubeconfig").cloned(),
        context: text("context"),
        manifests: matches.get_one("manifests").cloned(),
        no_create: matches.get_flag("no-create"),
        print_manifests: matches.get_flag("print-manifests"),
        namespace: text("namespace").unwrap_or_default(),
        json: matches.get_flag("json"),
        filter: text("filter").unwrap_or_default(),
    }
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// Reads the command line.
///
/// # Errors
/// What is wrong with it, or the help that was asked for; both print themselves.
pub fn read(words: impl IntoIterator<Item = OsString>, directives: Directives) -> Result<Command, clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    if let Some((program, words)) = server::modes::kube_dns::called(&words) {
        let help = || help_of(server::modes::kube_dns::command(), "portolan kube-dns");
        return if wants_help(&words) { Err(help()) } else { Ok(Command::KubeDns { program, words }) };
    }
    if let Some(words) = server::modes::node::called(&words) {
        let help = || help_of(server::modes::node::command(), "portolan node");
        return if wants_help(&words) { Err(help()) } else { Ok(Command::Node { words }) };
    }
    if let Some(flag) = unknown_flag(&words) {
        return Err(clap::Error::raw(ErrorKind::UnknownArgument, flag));
    }
    let is_plugin = is_plugin(&words);
    let words: Vec<OsString> =
        words.into_iter().enumerate().map(|(at, word)| if at == 0 { word } else { two_dashes(word) }).collect();
    // Nobody serves DNS with `kubectl`.
    let plugin = || command().bin_name(PLUGIN_USAGE).arg_required_else_help(true);
    let command = if is_plugin { plugin() } else { command() };
    let read = command.try_get_matches_from(&words);
    read.map(|matches| from_matches(&matches, is_plugin, directives)).map_err(|error| explain(error, &words))
}

/// Returns true if `kubectl` runs the program as its plugin.
fn is_plugin(words: &[OsString]) -> bool {
    words.first().is_some_and(|program| Path::new(program).file_name() == Some(OsStr::new(PLUGIN)))
}

/// Returns the error for a flag of the server with one dash that does not exist. Without it, the parser would read
/// `-port` as `-p ort`.
fn unknown_flag(words: &[OsString]) -> Option<String> {
    let word = words.get(1)?.to_str()?;
    let name = word.strip_prefix('-')?.split('=').next()?;
    let is_short = name.len() == 1 || name.strip_prefix('p').is_some_and(|port| port.parse::<u16>().is_ok());
    if name.is_empty() || name.starts_with('-') || is_short || SINGLE_DASH.contains(&name) {
        return None;
    }
    let part_of = || SINGLE_DASH.into_iter().find(|known| known.ends_with(&format!(".{name}")));
    Some(match corefile::did_you_mean(name, SINGLE_DASH.into_iter()).or_else(part_of) {
        Some(near) => format!("unknown flag `-{name}`; did you mean `-{near}`?\n"),
        None => format!("unknown flag `-{name}`; `portolan --help` lists the flags\n"),
    })
}

/// Adds how to name a Corefile to the error for an unknown command, unless it resembles a command, and how to name a
/// Service to that for an argument after `--all`.
fn explain(error: clap::Error, words: &[OsString]) -> clap::Error {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && let Some(option) = option_before(word, words)
    {
        let message = format!("unexpected argument `{word}`; to name a Service, write `{option}={word}`\n");
        return clap::Error::raw(ErrorKind::UnknownArgument, message);
    }
    let is_unknown =
        error.kind() == ErrorKind::InvalidSubcommand && error.get(ContextKind::SuggestedSubcommand).is_none();
    match error.get(ContextKind::InvalidSubcommand).filter(|_| is_unknown) {
        Some(ContextValue::String(word)) => {
            let message = format!(
                "unknown command `{word}`; `portolan -conf {word}` serves this Corefile, `portolan --help` lists the \
                 commands\n"
            );
            clap::Error::raw(ErrorKind::InvalidSubcommand, message)
        }
        _ => error,
    }
}

/// Returns the option before a word, if it is one that names a Service.
fn option_before<'a>(word: &str, words: &'a [OsString]) -> Option<&'a str> {
    let at = words.iter().position(|known| known == word)?;
    let option = words.get(at.checked_sub(1)?)?.to_str()?;
    ["--all", "--replicas"].contains(&option).then_some(option)
}

fn wants_help(words: &[String]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| matches!(word.as_str(), "--help" | "-help" | "-h"))
}

/// Returns the help of a command whose flags clap does not parse, as the error that prints it.
fn help_of(command: clap::Command, name: &'static str) -> clap::Error {
    let kind = ErrorKind::DisplayHelp;
    // clap prints an `error:` prefix unless it created the error itself, so let it parse `--help`.
    let asked = command.bin_name(name).try_get_matches_from([name, "--help"]);
    asked.err().unwrap_or_else(|| clap::Error::new(kind))
}

fn from_matches(matches: &ArgMatches, is_plugin: bool, directives: Directives) -> Command {
    if let Some(check) = matches.subcommand_matches("check") {
        return Command::Check(check_options(check));
    }
    if let Some(conformance) = matches.subcommand_matches("conformance") {
        return Command::Conformance(conformance_options(conformance));
    }
    if let Some(relay) = matches.subcommand_matches("relay") {
        return Command::Relay(Box::new(server::modes::relay::options(relay)));
    }
    if let Some(migrate) = matches.subcommand_matches("migrate") {
        return Command::Migrate(migrate_options(migrate));
    }
    if let Some(control) = cli::commands::read(matches, is_plugin) {
        return Command::Control(Box::new(control));
    }
    if let Some(shell) = matches.subcommand_matches("completions").and_then(|completions| completions.get_one("shell"))
    {
        return Command::Completions(*shell);
    }
    if let Some(man) = matches.subcommand_matches("man") {
        return Command::Man(man.get_many("words").into_iter().flatten().cloned().collect());
    }
    if matches.get_flag("version") {
        return Command::Version;
    }
    if matches.get_flag("plugins") {
        return Command::Plugins;
    }
    Command::Serve(ServeOptions {
        conf: matches.get_one("conf").cloned(),
        port: matches.get_one("port").copied().unwrap_or(53),
        pidfile: matches.get_one("pidfile").cloned(),
        quiet: matches.get_flag("quiet"),
        log_format: matches.get_one("log-format").and_then(|name: &String| Format::by_name(name)).unwrap_or_default(),
        directives,
    })
}

/// `-conf` as `--conf`: Go's flags take one dash or two.
fn two_dashes(word: OsString) -> OsString {
    let Some(text) = word.to_str().and_then(|text| text.strip_prefix('-')) else { return word };
    let name = text.split('=').next().unwrap_or_default();
    if takes_one_dash(name) { format!("--{text}").into() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Command, clap::Error> {
        read(text.split(' ').map(OsString::from), plugins::DIRECTIVES)
    }

    #[test]
    fn accepts_flags_with_one_dash_or_two() {
        for text in [
            "portolan -conf Corefile -dns.port 1053",
            "portolan --conf=Corefile -p 1053",
            "coredns -conf=Corefile -dns.port=1053",
        ] {
            let Ok(Command::Serve(options)) = read_text(text) else { panic!("{text}") };
            assert_eq!((options.conf, options.port), (Some("Corefile".into()), 1053), "{text}");
        }
        assert!(matches!(read_text("portolan -version"), Ok(Command::Version)));
        assert!(matches!(read_text("portolan -plugins"), Ok(Command::Plugins)));
        assert!(matches!(read_text("portolan check x"), Ok(Command::Check(CheckOptions { file: Some(_), .. }))));
    }

    #[test]
    fn names_unknown_flags_and_commands() {
        let cases = [
            ("portolan -port 1", "unknown flag `-port`; did you mean `-dns.port`?"),
            ("portolan -cnf x", "unknown flag `-cnf`; did you mean `-conf`?"),
            ("portolan -zzz", "unknown flag `-zzz`; `portolan --help` lists the flags"),
            ("portolan Corefile", "`portolan -conf Corefile` serves this Corefile"),
            ("portolan chekc", "a similar subcommand exists: 'check'"),
        ];
        for (text, part) in cases {
            let error = read_text(text).expect_err(text);
            assert_eq!((error.exit_code(), error.to_string().contains(part)), (2, true), "{text}: {error}");
        }
        assert!(matches!(read_text("portolan -p53"), Ok(Command::Serve(ServeOptions { port: 53, .. }))));
    }

    #[test]
    fn conformance_server_is_an_address_with_an_optional_port() {
        for (text, address) in [
            ("10.96.0.10", "10.96.0.10:53"),
            ("127.0.0.1:1053", "127.0.0.1:1053"),
            ("::1", "[::1]:53"),
            ("[::1]:1", "[::1]:1"),
        ] {
            let Ok(Command::Conformance(options)) = read_text(&format!("portolan conformance --server {text}")) else {
                panic!("{text}")
            };
            assert_eq!(options.server, address.parse().ok(), "{text}");
        }
        for text in ["--context x", "--manifests a --no-create", "--manifests a --kubeconfig b"] {
            assert!(read_text(&format!("portolan conformance {text}")).is_err(), "{text}");
        }
    }

    #[test]
    fn refuses_unknown_or_incomplete_arguments() {
        for text in ["portolan extra", "portolan -logtostderr", "portolan -dns.port x", "portolan -conf"] {
            assert!(read_text(text).is_err(), "{text}");
        }
    }
}
