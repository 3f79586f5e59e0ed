//! `portolan report --all`: an archive of each replica, in a file of its own.

use std::fmt::Write;
use std::path::Path;

use control::exit;
use control::text::harmless;

use super::super::print_text;
use super::super::report::Options;
use super::{Answer, Replicas, code, texts, unreached};
use crate::client::ControlError;

pub(super) fn run(own: &Options, replicas: &Replicas<'_>) -> Result<u8, ControlError> {
    let folder = own.folder()?;
    let answers = replicas.each(|pod| {
        let output = replicas.service.ask(pod, &texts(["report"]))?;
        match output.code() {
            Some(exit::FINE) => Ok(output.stdout),
            _ => Err(output.failure()),
        }
    })?;
    let text = write(folder, &answers)? + &unreached(&answers);
    print_text(&text)?;
    Ok(code(&answers, |_| true))
}

/// Writes the archives, and returns a line for each.
fn write(folder: &Path, answers: &[Answer<Vec<u8>>]) -> Result<String, ControlError> {
    let mut out = String::new();
    for (replica, archive) in answers.iter().filter_map(|one| Some((&one.replica, one.outcome.as_ref().ok()?))) {
        let file = folder.join(format!("portolan-report-{replica}.tar.gz"));
        std::fs::write(&file, archive).map_err(|error| ControlError::File(file.clone(), error))?;
        // A string takes everything.
        let _ = writeln!(out, "wrote {} bytes to {}", archive.len(), harmless(&file.display().to_string()));
    }
    Ok(out)
}
