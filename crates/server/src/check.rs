//! `portolan check`: what is wrong with a Corefile, without starting anything.
//!
//! It ends with 0 if the Corefile can be used, with warnings or without; with 1 if it has errors; with 2 if it could not
//! be read, like any command that could not do what it is there for.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its user")]

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cluster::Request;
use corefile::{Diagnostic, Style};

use crate::configuration::{self, Configuration, Origin};
use crate::dry::{self, Found};
use crate::{diagnostics, rbac, report};

/// The port of keys without one.
const DNS_PORT: u16 = 53;
/// How it ends when nothing could be checked.
const NOT_CHECKED: u8 = 2;

/// What to check, and how to say it.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// The file, if one was named; `stdin` for standard input.
    pub file: Option<PathBuf>,
    /// The form of what is wrong.
    pub form: Form,
    /// Read the files that it names too, as the start would.
    pub files: bool,
    /// Print the rights that it needs of the API server.
    pub rbac: bool,
    /// Say what this code means, and check nothing.
    pub explain: Option<String>,
}

/// How what is wrong is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// With the lines of the file, for people.
    #[default]
    Text,
    /// As one JSON document of our own.
    Json,
    /// As SARIF 2.1.0, which code hosts and editors read.
    Sarif,
}

/// Says what is wrong with a Corefile; fails if something is. With `rbac`, what is right is printed as the rights that it
/// needs of the API server, and what is wrong goes to standard error.
#[must_use]
pub fn check(options: &CheckOptions) -> ExitCode {
    if let Some(code) = &options.explain {
        return explain(code);
    }
    let name = options.file.as_deref().unwrap_or(Path::new("Corefile"));
    let read = Origin::find(Some(name)).and_then(|origin| Configuration::read(&origin, DNS_PORT));
    match read {
        Ok(mut configuration) => {
            let found =
                (options.files || options.rbac).then(|| look_at_files(&mut configuration, options.files)).flatten();
            say(&configuration, options);
            match configuration.problems.iter().any(Diagnostic::is_error) {
                true => return ExitCode::FAILURE,
                false if options.rbac => print_rules(&found.unwrap_or_default()),
                false => {}
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", name.display());
            ExitCode::from(NOT_CHECKED)
        }
    }
}

/// Notes what the world has against it; gives what it asks of clusters, if nothing would end the start. Where clusters are is
/// not looked at for rights alone: the machine may be another one.
fn look_at_files(configuration: &mut Configuration, looks_at_clusters: bool) -> Option<Vec<Request>> {
    let requests = match dry::build(configuration.plan.take()?, looks_at_clusters) {
        Ok(Found { requests, warnings }) => {
            configuration.problems.extend(warnings);
            Some(requests)
        }
        Err(problem) => {
            // What was a warning as long as nothing was to be started.
            configuration.problems.retain(|known| (known.span, known.code) != (problem.span, problem.code));
            configuration.problems.push(*problem);
            None
        }
    };
    configuration::sort(&mut configuration.problems);
    requests
}

fn say(configuration: &Configuration, options: &CheckOptions) {
    let style = if std::io::stdout().is_terminal() { Style::Color } else { Style::Plain };
    let text = match options.form {
        Form::Text => configuration.render_problems(style),
        Form::Json => format!("{:#}", report::json(configuration)),
        Form::Sarif => format!("{:#}", report::sarif(configuration)),
    };
    match (text.trim_end(), options.rbac) {
        ("", _) => {}
        (text, true) => eprintln!("{text}"),
        // Who reads only the beginning has closed the pipe by the end.
        (text, false) => drop(writeln!(std::io::stdout(), "{text}")),
    }
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
            ExitCode::from(NOT_CHECKED)
        }
    }
}

fn print_rules(requests: &[Request]) {
    match rbac::rules(requests) {
        Some(rules) => print!("{rules}"),
        None => eprintln!("No API server is asked, so no rights are needed."),
    }
}
