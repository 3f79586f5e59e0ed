//! `portolan check`: what is wrong with a Corefile, without starting anything.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its user")]

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use corefile::Style;

use crate::configuration::{Configuration, Origin};
use crate::rbac;

/// The port of keys without one.
const DNS_PORT: u16 = 53;

/// Prints what is wrong with a Corefile; fails if something is. With `rbac`, what is right is printed as the rights that it
/// needs of the API server, and what is wrong goes to standard error.
#[must_use]
pub fn check(file: Option<&Path>, rbac: bool) -> ExitCode {
    let name = file.unwrap_or(Path::new("Corefile"));
    let read = Origin::find(Some(name)).and_then(|origin| Configuration::read(&origin, DNS_PORT));
    match read {
        Ok(configuration) => {
            let style = if std::io::stdout().is_terminal() { Style::Color } else { Style::Plain };
            let text = configuration.render_problems(style);
            match (text.trim_end(), rbac) {
                ("", _) => {}
                (text, true) => eprintln!("{text}"),
                (text, false) => println!("{text}"),
            }
            match configuration.plan.is_some() {
                true if rbac => print_rules(configuration),
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Err(error) => {
            eprintln!("{}: {error}", name.display());
            ExitCode::FAILURE
        }
    }
}

fn print_rules(configuration: Configuration) -> ExitCode {
    match rbac::rules(configuration) {
        Ok(Some(rules)) => print!("{rules}"),
        Ok(None) => eprintln!("No API server is asked, so no rights are needed."),
        Err(problem) => {
            eprintln!("{}", problem.trim_end());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
