//! `portolan check`: what is wrong with a Corefile, without starting anything.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its user")]

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use corefile::Style;

use crate::configuration::{Configuration, Origin};

/// The port of keys without one.
const DNS_PORT: u16 = 53;

/// Prints what is wrong with a Corefile; fails if something is.
#[must_use]
pub fn check(file: Option<&Path>) -> ExitCode {
    let name = file.unwrap_or(Path::new("Corefile"));
    let read = Origin::find(Some(name)).and_then(|origin| Configuration::read(&origin, DNS_PORT));
    match read {
        Ok(configuration) => {
            let style = if std::io::stdout().is_terminal() { Style::Color } else { Style::Plain };
            let text = configuration.render_problems(style);
            if !text.is_empty() {
                println!("{}", text.trim_end());
            }
            if configuration.plan.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{}: {error}", name.display());
            ExitCode::FAILURE
        }
    }
}
