//! `portolan check`: reports the errors and likely mistakes of a Corefile without starting anything.
//!
//! The Corefile is a file, standard input, or a key of a ConfigMap. With `--for coredns`, the errors are those that
//! CoreDNS would have, with few exceptions. Exits with 0 if it can be served, with 1 if it has
//! errors (or, with `--strict`, warnings), and with 2 if it could not be read.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command writes to its user")]

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cluster::Request;
use compat::coredns::Release;
use compat::node_cache::with_examples;
use config::Directives;
use corefile::{Diagnostic, Directive, Severity, Style, Token};

use crate::command_error::CommandError;
use crate::migrate::input::{Input, is_manifest};
use crate::{coredns, diagnostics, rbac, report};
use process::configuration::{Configuration, Origin};
use process::dry::{self, DryRun};

/// Default port of keys.
const DNS_PORT: u16 = 53;
/// Exit code if the Corefile could not be read.
const COULD_NOT_RUN: u8 = 2;

/// What managed clusters have around the parts of their users.
const MANAGED: &str = "\
.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    import custom/*.override
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
import custom/*.server
";

/// Options of the command.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// File to check, `stdin` for standard input; `None` for `Corefile` in the working directory.
    pub file: Option<PathBuf>,
    /// Output format.
    pub format: OutputFormat,
    /// Reads the files that the Corefile names too, like at the start of the server.
    pub files: bool,
    /// Treats warnings as errors.
    pub strict: bool,
    /// Prints the permissions that the Corefile needs on the API server.
    pub rbac: bool,
    /// Release of CoreDNS for which to check the Corefile; `None` for this server.
    pub coredns: Option<Release>,
    /// Explains this diagnostic code instead of checking a file.
    pub explain: Option<String>,
}

/// Output format of the diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text with the lines of the file.
    #[default]
    Text,
    /// One JSON document in the format of this command.
    Json,
    /// SARIF 2.1.0, which code hosts and editors read.
    Sarif,
}

/// Reports the problems of all Corefiles in a file, and returns the exit code that the module describes. With `rbac`,
/// prints the permissions of a valid Corefile, and writes the diagnostics to standard error.
#[must_use]
pub fn check(options: &CheckOptions, directives: Directives) -> ExitCode {
    if let Some(code) = &options.explain {
        return explain(code);
    }
    let name = options.file.as_deref().unwrap_or(Path::new("Corefile"));
    let outcome = corefiles(name).and_then(|origins| {
        let each: Result<Vec<bool>, CommandError> =
            origins.iter().map(|origin| check_one(origin, options, directives)).collect();
        Ok(each?.into_iter().all(|passed| passed))
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

/// Returns the Corefile of a file, or those of the ConfigMaps in it.
fn corefiles(name: &Path) -> Result<Vec<Origin>, CommandError> {
    let origin = Origin::find(Some(name)).map_err(CommandError::Io)?;
    let (name, text) = origin.read(DNS_PORT).map_err(|error| CommandError::Read(name.to_owned(), error))?;
    // The beginning of a manifest cannot be parsed.
    if Origin::is_cut(&text) || !is_manifest(&text) {
        // Keep the text, because standard input and pipes can be read only once.
        return Ok(vec![Origin::Text { name, text }]);
    }
    let mut input = Input::default();
    input.add(&name, text)?;
    let Input { mut corefiles, parts, notes, .. } = input;
    if !parts.is_empty() {
        notes.iter().for_each(|note| eprintln!("{note}"));
    }
    if corefiles.is_empty() && !parts.is_empty() {
        let name = name.display().to_string();
        eprintln!("{name}: only parts of a Corefile, checked with a server block like that of AKS and K3s");
        corefiles.push(("managed Corefile".to_owned(), MANAGED.to_owned()));
    }
    if corefiles.is_empty() {
        return Err(CommandError::NoCorefile(name.display().to_string()));
    }
    let origin = |(name, text): (String, String)| {
        let text = filled_template(&name, &text).unwrap_or(text);
        Origin::Manifest { name: name.into(), text, parts: parts.clone() }
    };
    Ok(corefiles.into_iter().map(origin).collect())
}

/// Fills in example values if a Corefile of a manifest is a template of node-cache, and says so. Returns `None` for any
/// other Corefile.
fn filled_template(name: &str, text: &str) -> Option<String> {
    let (text, used) = with_examples(text)?;
    let values: Vec<String> = used.iter().map(|(placeholder, value)| format!("{placeholder} = {value}")).collect();
    eprintln!("{name}: template of NodeLocal DNSCache, checked with example values: {}", values.join(", "));
    Some(text)
}

/// Reports the problems of a Corefile, and returns true if it passes.
fn check_one(origin: &Origin, options: &CheckOptions, directives: Directives) -> Result<bool, CommandError> {
    let mut configuration = Configuration::read(origin, DNS_PORT, directives).map_err(CommandError::Io)?;
    let further = options.files || options.rbac;
    let requests = if further { dry_run(&mut configuration, options) } else { Vec::new() };
    match options.coredns {
        Some(release) => coredns::judge(&mut configuration, release),
        None => coredns::add_releases(&mut configuration),
    }
    // The server does not start without a server block, and CoreDNS does.
    let is_refused = configuration.written.blocks.is_empty() && options.coredns.is_none();
    if options.strict || is_refused {
        configuration.problems.iter_mut().for_each(|problem| problem.severity = Severity::Error);
    }
    say(&configuration, options);
    let passed = !configuration.problems.iter().any(Diagnostic::is_error);
    if passed && !options.files && options.coredns.is_none() && options.format == OutputFormat::Text {
        hint_at_files(&configuration);
    }
    if passed && options.rbac {
        print_rules(&requests);
    }
    Ok(passed)
}

/// Builds the configuration without serving it. With `files`, adds the problems of the files that it names. Returns its
/// requests to clusters.
fn dry_run(configuration: &mut Configuration, options: &CheckOptions) -> Vec<Request> {
    let Some(plan) = configuration.plan.take() else { return Vec::new() };
    if !options.files {
        return dry::requests(plan);
    }
    let DryRun { requests, problems } = dry::with_files(plan);
    configuration.add_problems(&problems);
    requests
}

/// Says that a check without `--files` has not read the files that the Corefile names, and which lines name them.
fn hint_at_files(configuration: &Configuration) {
    let directives = configuration.written.blocks.iter().flat_map(|block| &block.directives);
    let mut names: Vec<&str> =
        directives.filter(|line| names_files(line)).map(|line| line.name.text.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        eprintln!("not read: the files that these directives name: {}; `--files` reads them", names.join(", "));
    }
}

/// Directives whose arguments are files.
const WITH_FILES: [&str; 6] = ["auto", "file", "geoip", "hosts", "sign", "tls"];
/// Properties whose values are files.
const FILE_PROPERTIES: [&str; 12] = [
    "cookies",
    "database",
    "directory",
    "key",
    "keylog",
    "kubeconfig",
    "manifests",
    "relay_tls",
    "relay_token",
    "secrets",
    "snapshot",
    "tls",
];
/// File with name servers that nearly every Corefile names. That of the machine with the server counts, which is seldom
/// the one where the check runs.
const RESOLV_CONF: &str = "/etc/resolv.conf";

fn names_files(line: &Directive) -> bool {
    let has_argument = match line.name.text.as_str() {
        "forward" | "grpc" => line.args.iter().skip(1).any(is_file_of_servers),
        "loadbalance" => line.args.len() > 1,
        name => WITH_FILES.contains(&name) && !line.args.is_empty(),
    };
    let is_file = |word: &Token| FILE_PROPERTIES.contains(&word.text.as_str());
    has_argument || line.lines().iter().any(|line| line.words.len() > 1 && is_file(&line.words[0]))
}

/// Returns true if an upstream is a file with name servers.
fn is_file_of_servers(word: &Token) -> bool {
    word.text.contains('/') && !word.text.contains("://") && word.text != RESOLV_CONF
}

fn say(configuration: &Configuration, options: &CheckOptions) {
    let style = if has_color() { Style::Color } else { Style::Plain };
    let text = match options.format {
        OutputFormat::Text => configuration.render_problems(style),
        OutputFormat::Json => format!("{:#}", report::json(configuration, options.coredns)),
        OutputFormat::Sarif => format!("{:#}", report::sarif(configuration)),
    };
    match (text.trim_end(), options.rbac) {
        ("", _) => {}
        (text, true) => eprintln!("{text}"),
        // Ignore write errors: a reader such as `head` may have closed the pipe.
        (text, false) => drop(writeln!(std::io::stdout(), "{text}")),
    }
}

/// Returns true if standard output is a terminal with colours, and nothing asks for plain text
/// (<https://no-color.org>).
fn has_color() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

fn explain(code: &str) -> ExitCode {
    match diagnostics::page(code) {
        Some(page) => {
            println!("{page}");
            ExitCode::SUCCESS
        }
        None => {
            let names = diagnostics::codes().map(corefile::Code::name);
            let near =
                corefile::did_you_mean(code, names).map_or(String::new(), |near| format!(": did you mean `{near}`?"));
            eprintln!("there is no code `{code}`{near}");
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

fn print_rules(requests: &[Request]) {
    match rbac::rules(requests) {
        Some(rules) => print!("{rules}"),
        None => eprintln!("No API server is asked, so no rights are needed."),
    }
}
