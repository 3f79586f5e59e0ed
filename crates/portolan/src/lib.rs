//! The program `portolan`: its command line, its manual, and the way to the daemon or a command.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a command prints to its user"
)]

mod arguments;
pub mod manual;
mod manual_sections;
#[cfg(feature = "planted")]
mod planted;

use std::io::Write;
use std::process::ExitCode;

use config::Directives;
use rustix::process::{Resource, getrlimit};

use arguments::Command;

pub use cli::diagnostics;
pub use etcd::METRICS as ETCD_METRICS;
pub use kubeapi::METRICS as CLUSTER_METRICS;
pub use net::{LIMIT_METRICS, LOG_METRICS, RESPONSE_METRICS};
pub use plugins::DIRECTIVES;
pub use process::internal_errors::INTERNAL_ERROR_METRICS;
pub use process::process_metrics::PROCESS_METRICS;
pub use server::modes::node::METRICS as NODE_METRICS;
pub use server::modes::relay::METRICS as RELAY_METRICS;
pub use server::{BUILD_METRICS, KEEPER_METRICS, KUBE_DNS_METRICS};
#[cfg(not(system_allocator))]
pub use tikv_jemallocator::Jemalloc;

/// Exit code for a command line that cannot be used.
const USAGE_ERROR: u8 = 2;

/// Stack that the main thread needs. The default of Linux is 8 MiB.
const STACK_MIN: usize = 2 << 20;

/// Runs the command that the arguments of the process name, and returns its exit code. `directives` are those of the
/// program: [`DIRECTIVES`], or with further ones.
#[must_use]
pub fn main(directives: Directives) -> ExitCode {
    let stack = getrlimit(Resource::Stack).current;
    if stack.is_none_or(|stack| stack >= STACK_MIN as u64) {
        return run(directives);
    }
    // The limit is that of the main thread. The stack of another thread has the size that its creator wants.
    match std::thread::Builder::new()
        .stack_size(STACK_MIN)
        .spawn(move || run(directives))
        .map(std::thread::JoinHandle::join)
    {
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
fn run(directives: Directives) -> ExitCode {
    #[cfg(feature = "planted")]
    planted::make_mistakes();
    let command = match arguments::read(std::env::args_os(), directives) {
        Ok(command) => command,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
        }
    };
    match command {
        Command::Serve(options) => server::run(&options),
        Command::Check(options) => cli::check::check(&options, directives),
        Command::Conformance(options) => cli::conform::conform(&options),
        Command::Migrate(options) => cli::migrate::migrate(&options, directives),
        Command::Control(command) => cli::commands::control(&command, directives),
        Command::KubeDns { program, words } => server::modes::kube_dns::kube_dns(program, words, directives),
        Command::Node { words } => server::modes::node::node(words, directives),
        Command::Relay(options) => server::modes::relay::relay(*options),
        Command::Completions(shell) => print(&manual::completions(shell)),
        Command::Man(words) => match manual::man_page(&words) {
            Ok(page) => print(&page),
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(USAGE_ERROR)
            }
        },
        Command::Version => print(&(process::version::version_text() + "\n")),
        Command::Plugins => {
            directives.names().for_each(|name| println!("{name}"));
            ExitCode::SUCCESS
        }
    }
}

/// Prints a text. A reader that stops early, such as `head`, is not an error.
fn print(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
