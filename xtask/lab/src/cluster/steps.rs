//! Single steps: run a program, or write a file, with an error that says which.

use std::process::{Command, Stdio};

use super::programs;
use xtask::Failed;

/// Runs a command line whose words are separated by spaces. Fails with what the program printed.
pub(crate) fn run(line: &str) -> Result<(), Failed> {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    let path = programs::find(program).ok_or_else(|| format!("`{program}` is not on the PATH"))?;
    output_of(Command::new(path).args(words)).map(drop).map_err(|error| format!("{line}: {error}"))
}

/// Runs a command and returns its standard output. Fails with what it printed.
pub(crate) fn output_of(command: &mut Command) -> Result<String, Failed> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let said = [text(&output.stderr), text(&output.stdout)].join("\n");
    Err(format!("{}: {}", output.status, said.trim()))
}

/// Writes a file that exists.
pub(crate) fn write(path: &str, text: &str) -> Result<(), Failed> {
    std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
