//! Entry point of the `portolan` binary.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a command prints to its user"
)]

use std::io::Write;
use std::process::ExitCode;

use portolan::cli::{self, Command};
use portolan::manual;
use rustix::process::{Resource, getrlimit};

/// Exit code for a command line that cannot be used.
const USAGE_ERROR: u8 = 2;

/// Allocator that returns memory to the system within a second after a burst, including that of idle threads. It is
/// configured in `.cargo/config.toml`; `docs/decisions/0006-allocator.md` has the reasons for the choice.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Stack that the main thread needs. The default of Linux is 8 MiB.
const STACK_MIN: usize = 2 << 20;

fn main() -> ExitCode {
    let stack = getrlimit(Resource::Stack).current;
    if stack.is_none_or(|stack| stack >= STACK_MIN as u64) {
        return run();
    }
    // The limit is that of the main thread. The stack of another thread has the size that its creator wants.
    match std::thread::Builder::new().stack_size(STACK_MIN).spawn(run).map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!(
                "the stack limit is too low ({} KiB), and a thread cannot start: {error}",
                stack.unwrap_or(0) / 1024
            );
            ExitCode::FAILURE
        }
    }
}

/// Runs the command that the arguments name.
fn run() -> ExitCode {
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
        Command::Completions(shell) => print(&manual::completions(shell)),
        Command::Man(words) => match manual::man_page(&words) {
            Ok(page) => print(&page),
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(USAGE_ERROR)
            }
        },
        Command::Version => print(&(portolan::version_text() + "\n")),
        Command::Plugins => {
            portolan::plugin_names().for_each(|name| println!("{name}"));
            ExitCode::SUCCESS
        }
    }
}

/// Prints a text. A reader that stops early, such as `head`, is not an error.
fn print(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
