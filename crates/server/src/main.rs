//! Entry point of the `portolan` binary.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints to its user")]

use std::process::ExitCode;

use portolan::cli::{self, Command};

/// Allocator that returns memory to the system within a second after a burst, including that of idle threads. It is
/// configured in `.cargo/config.toml`; `docs/decisions/0006-allocator.md` has the reasons for the choice.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let command = match cli::read(std::env::args_os()) {
        Ok(command) => command,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
        }
    };
    match command {
        Command::Serve(options) => portolan::run(&options),
        Command::Check(options) => portolan::check(&options),
        Command::Conformance(options) => portolan::conform(&options),
        Command::Migrate(options) => portolan::migrate(&options),
        Command::Control(command) => portolan::control(&command),
        Command::KubeDns { program, words } => portolan::kube_dns(program, words),
        Command::Node { words } => portolan::node(words),
        Command::Version => {
            println!("{}", portolan::version_text());
            ExitCode::SUCCESS
        }
        Command::Plugins => {
            portolan::plugin_names().for_each(|name| println!("{name}"));
            ExitCode::SUCCESS
        }
    }
}
