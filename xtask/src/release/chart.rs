//! Package of the Helm chart, as `helm package --version --app-version` makes it: a compressed tar archive with one
//! directory.

use std::path::Path;

use super::files_in;
use crate::Failed;
use crate::archive::{self, Entry, gzip};

/// Directory of the chart in the project, and its name in the package.
const CHART: &str = "deploy/helm/portolan";
const NAME: &str = "portolan";
const IGNORE: &str = ".helmignore";

/// Packs the chart with a version.
pub(crate) fn package(version: &str, seconds: u64) -> Result<Vec<u8>, Failed> {
    let files = files_in(Path::new(CHART))?;
    let ignored = files.iter().find(|(name, _)| name == IGNORE).map(|(_, bytes)| String::from_utf8_lossy(bytes));
    let ignored = ignored_directories(&ignored.unwrap_or_default())?;
    let is_packed =
        |name: &str| name != IGNORE && !ignored.iter().any(|directory| name.starts_with(directory.as_str()));
    let mut entries = Vec::new();
    for (name, bytes) in files.into_iter().filter(|(name, _)| is_packed(name)) {
        let bytes = if name == "Chart.yaml" { with_version(&bytes, version)? } else { bytes };
        entries.push(Entry::file(format!("{NAME}/{name}"), bytes));
    }
    gzip(&archive::tar(entries, seconds)?)
}

/// Returns the directories that the package leaves out. Of the patterns of Helm, only `/NAME/` is used.
fn ignored_directories(text: &str) -> Result<Vec<String>, Failed> {
    let patterns = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let directory = |pattern: &str| {
        let name = pattern.strip_prefix('/').filter(|name| name.ends_with('/') && !name.contains(['*', '?', '[', '!']));
        name.map(str::to_owned)
            .ok_or_else(|| format!("{CHART}/{IGNORE}: pattern `{pattern}` is not of the form /NAME/"))
    };
    patterns.map(directory).collect()
}

/// Replaces the versions of the chart and of the program in it.
fn with_version(chart: &[u8], version: &str) -> Result<Vec<u8>, Failed> {
    let mut replaced = 0;
    let mut text = String::new();
    for line in String::from_utf8_lossy(chart).lines() {
        match line.split_once(':') {
            Some((key @ ("version" | "appVersion"), _)) => {
                replaced += 1;
                text += &format!("{key}: {version}\n");
            }
            _ => text += &format!("{line}\n"),
        }
    }
    if replaced == 2 {
        Ok(text.into_bytes())
    } else {
        Err("Chart.yaml needs one `version` and one `appVersion`".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_both_versions() {
        let chart = b"name: x\nversion: 0.1.0\nappVersion: 0.1.0\nkeywords:\n  - version\n";
        let expected = "name: x\nversion: 1.2.3\nappVersion: 1.2.3\nkeywords:\n  - version\n";
        assert_eq!(with_version(chart, "1.2.3").unwrap(), expected.as_bytes());
        assert!(with_version(b"name: x\n", "1.2.3").is_err());
    }

    #[test]
    fn refuses_patterns_that_it_does_not_apply() {
        assert_eq!(ignored_directories("# x\n\n/tests/\n").unwrap(), ["tests/"]);
        assert!(ignored_directories("*.md").is_err());
    }
}
