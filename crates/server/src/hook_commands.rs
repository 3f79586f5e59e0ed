//! Programs that the directive *on* runs at startup and shutdown.

use std::process;

use config::setup::{Command, LifecycleEvent};

/// Runs the programs for an event in order. Waits for each one that does not run in the background.
pub(crate) fn run(commands: &[Command], moment: LifecycleEvent) {
    for command in commands.iter().filter(|command| command.when == moment) {
        if let Err(trouble) = run_one(command) {
            tracing::error!(target: "plugin/on", "{}: {trouble}", command.program);
        }
    }
}

fn run_one(command: &Command) -> Result<(), String> {
    let mut child = process::Command::new(&command.program)
        .args(&command.arguments)
        .spawn()
        .map_err(|error| io_text::describe(&error))?;
    if command.in_background {
        // A child that nothing waits for would remain as a zombie.
        std::thread::spawn(move || child.wait());
        return Ok(());
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(io_text::describe(&error)),
    }
}
