//! `portolan kube-dns`: drop-in replacement for the kube-dns pod or one of its containers, with their flags.
//!
//! The crate `compat` turns the flags and the ConfigMap into a Corefile, which the server runs like any other. A
//! change to the ConfigMap changes the Corefile, and the server reloads it without losing its cache.
//!
//! `generator` has the inputs of that Corefile.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints to its user")]

mod generator;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use clap::Arg;
use compat::kube_dns::{CommandLine, ConfigMapSettings, FLAGS, HostNames, Program, Settings, Warning};
use config::Directives;
use metrics::Registry;

use crate::command_line::{argument, log_format, usage_error};
use crate::generated_corefile::{self, LOG};
use crate::lifecycle::NoHooks;
use crate::run::{ServeOptions, ShutdownSignals, block_on, serve};
use crate::serve_error::ServeError;
use process::log::Format;
use process::version::version_text;

/// Serves as the kube-dns pod, or as one of its containers, until a signal ends the process.
#[must_use]
pub fn kube_dns(program: Program, words: Vec<String>, directives: Directives) -> ExitCode {
    let variable = |name: &str| std::env::var(name).ok();
    let read = CommandLine::parse(words, program.flags()).and_then(|words| {
        if words.is_on("version") {
            return Ok(None);
        }
        let (prints, format) = (words.is_on("print-corefile"), log_format(&words)?);
        Settings::read(program, &words, &variable).map(|(settings, said)| Some((settings, said, prints, format)))
    });
    match read {
        Ok(None) => {
            println!("{}", version_text());
            ExitCode::SUCCESS
        }
        Ok(Some((settings, said, true, _))) => print(&settings, &said),
        Ok(Some((settings, said, false, format))) => block_on(format, run(settings, said, format, directives)),
        Err(problem) => usage_error(&problem),
    }
}

/// Prints the Corefile for the current ConfigMap. Host names of name servers are not resolved.
fn print(settings: &Settings, said: &[Warning]) -> ExitCode {
    said.iter().for_each(|line| eprintln!("{line}"));
    block_on(Format::default(), async {
        let registry = Registry::new();
        let data = generated_corefile::read_once(settings, &registry).await?;
        let config_map = ConfigMapSettings::parse(&data)?;
        print!("{}", compat::kube_dns::corefile(settings, &config_map, HostNames::Unresolved));
        Ok(ExitCode::SUCCESS)
    })
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
    let startup = generated_corefile::start(Rc::new(settings), &registry, drop);
    let (origin, changes) = match signals.or_exit(startup).await {
        Ok(started) => started?,
        Err(code) => return Ok(code),
    };
    let options = ServeOptions {
        conf: None,
        port: compat::kube_dns::DNS_PORT,
        pidfile: None,
        quiet: false,
        log_format,
        directives,
    };
    serve(&options, origin, &registry, Some(changes), Rc::new(NoHooks), signals).await
}

/// Returns the program of the pod that a command line selects, and its arguments: by the name of the executable, or by
/// the subcommand `kube-dns`.
pub fn called(words: &[OsString]) -> Option<(Program, Vec<String>)> {
    let name = words.first().and_then(|word| Path::new(word).file_name()?.to_str());
    let text = |words: &[OsString]| words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = name.and_then(Program::by_name) {
        return Some((program, text(words.get(1..)?)));
    }
    (words.get(1)? == "kube-dns").then(|| (Program::Pod, text(words.get(2..).unwrap_or_default())))
}

/// Returns the clap definition of the command, for help, man page and completions. The crate `compat` parses the
/// flags.
pub fn command() -> clap::Command {
    clap::Command::new("kube-dns")
        .about("Replace the kube-dns pod, with the flags of its containers and its ConfigMap")
        .long_about(
            "Replace the kube-dns pod: accept the flags of its three containers and follow its ConfigMap. The arguments of \
             dnsmasq come after `--`. If the executable has the name of one of the containers (`kube-dns`, `dnsmasq-nanny`, \
             `sidecar`), replace only that container. Flags without an effect are logged at startup.",
        )
        .args(FLAGS.iter().map(argument))
        .arg(
            Arg::new("dnsmasq")
                .value_name("DNSMASQ-ARGUMENT")
                .last(true)
                .num_args(0..)
                .help("Arguments for dnsmasq, such as --cache-size=1000 or --server=/example.org/10.0.0.1#5353"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_the_program_by_executable_name_or_subcommand() {
        let called = |text: &str| {
            let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            called(&words).map(|(program, words)| (program, words.join(" ")))
        };
        assert_eq!(called("/kube-dns --domain=x"), Some((Program::KubeDns, "--domain=x".to_owned())));
        assert_eq!(called("dnsmasq-nanny -- -k"), Some((Program::Nanny, "-- -k".to_owned())));
        assert_eq!(called("/usr/bin/sidecar"), Some((Program::Sidecar, String::new())));
        assert_eq!(called("/portolan kube-dns --v=2"), Some((Program::Pod, "--v=2".to_owned())));
        assert_eq!(called("/portolan -conf kube-dns"), None);
        assert_eq!(called("/portolan"), None);
    }

    #[test]
    fn clap_accepts_all_flags() {
        command().debug_assert();
    }
}
