//! Cases as they are on disk: a Corefile, and recorded answers.

use std::path::{Path, PathBuf};

use super::answer::Recorded;
use xtask::Failed;

/// A configuration and what was answered with it.
pub(crate) struct Case {
    /// Name of the folder.
    pub(crate) name: String,
    /// The folder.
    pub(crate) path: PathBuf,
    /// Text of the Corefile; `None` for kube-dns, which has flags instead.
    pub(crate) corefile: Option<String>,
    pub(crate) answers: Vec<Recorded>,
}

impl Case {
    /// Reads all cases of a folder, in the order of their names.
    pub(crate) fn read_all(folder: &Path) -> Result<Vec<Case>, Failed> {
        let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.join("answers.jsonl").is_file());
        paths.sort();
        paths.into_iter().map(Case::read).collect()
    }

    fn read(path: PathBuf) -> Result<Case, Failed> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = read_text(&path.join("answers.jsonl"))?;
        let answers = text.lines().map(|line| Recorded::parse(line).ok_or_else(|| format!("{name}: invalid: {line}")));
        let answers = answers.collect::<Result<_, _>>()?;
        let corefile = std::fs::read_to_string(path.join("Corefile")).ok();
        Ok(Case { name, path: std::path::absolute(&path).unwrap_or(path), corefile, answers })
    }

    /// Returns true if the Corefile uses an environment variable.
    pub(crate) fn needs(&self, variable: &str) -> bool {
        self.corefile.as_ref().is_some_and(|text| text.contains(&format!("{{${variable}}}")))
    }
}

/// Reads a file. The error has its path.
pub(crate) fn read_text(path: &Path) -> Result<String, Failed> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
