//! Results of measurements, which are kept in `benches/results`.

use core::fmt;
use std::path::PathBuf;
use std::process::Command;

use crate::{Failed, root};

/// Saves a result under the date and commit.
pub fn save(suffix: &str, measured: &impl fmt::Display) -> Result<PathBuf, Failed> {
    let (date, commit) = (output("date", &["+%Y-%m-%d"]), output("git", &["rev-parse", "--short", "HEAD"]));
    let path = root().join("benches/results").join(format!("{date}-{commit}{suffix}.md"));
    let text = format!("# {date}, commit {commit}\n\n{measured}");
    std::fs::create_dir_all(root().join("benches/results"))
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| error.to_string())?;
    Ok(path)
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
