//! The binary.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its user")]

use std::process::ExitCode;

use portolan::cli::{self, Command};

/// Gives memory back to the system within a second after a burst, also that of idle threads; how it is set is in
/// `.cargo/config.toml`, and why it is this one in `docs/decisions/0006-allocator.md`.
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
        Command::KubeDns { program, words } => portolan::kube_dns(program, words),
        Command::Node { words } => portolan::node(words),
        Command::Version => {
            println!("{}", portolan::version_text());
            ExitCode::SUCCESS
        }
        Command::Plugins => {
            cli::plugin_names().for_each(|name| println!("{name}"));
            ExitCode::SUCCESS
        }
    }
}
