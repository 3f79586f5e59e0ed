//! Programs that the directive *on* runs at startup and shutdown.

use std::io;
use std::process;

use config::setup::{Command, LifecycleEvent};

/// Runs the programs for an event in order. Waits for each one that does not run in the background.
pub(crate) fn run(commands: &[Command], moment: LifecycleEvent) {
    for command in commands.iter().filter(|command| command.when == moment) {
        if let Err(error) = run_one(command) {
            tracing::error!(target: "plugin/on", "{}: {error}", command.program);
        }
    }
}

fn run_one(command: &Command) -> Result<(), HookCommandError> {
    let mut child = process::Command::new(&command.program).args(&command.arguments).spawn()?;
    if command.in_background {
        // A child that nothing waits for would remain as a zombie.
        std::thread::spawn(move || child.wait());
        return Ok(());
    }
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(HookCommandError::Status(status)) }
}

/// Reason why a program failed. The server continues.
#[derive(Debug, thiserror::Error)]
enum HookCommandError {
    /// The program did not start, or waiting for it failed.
    #[error("{}", host::errors::describe(.0))]
    Io(#[source] io::Error),
    /// The program ended with an error.
    #[error("{0}")]
    Status(process::ExitStatus),
}

impl From<io::Error> for HookCommandError {
    fn from(error: io::Error) -> HookCommandError {
        HookCommandError::Io(error)
    }
}
