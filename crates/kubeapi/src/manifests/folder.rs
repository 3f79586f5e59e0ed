//! The files on disk: found, read when they change, and kept as they were while they cannot be read.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::parse::{self, Manifest, Problem};
use crate::SetupProblem;

/// Folders within folders: enough for people, and links that go round end.
const DEPTH_MAX: usize = 16;
/// Files: each is looked at every second.
const FILES_MAX: usize = 10_000;
/// Octets of a file: ten thousand Services with a hundred thousand endpoints are 40 MiB.
const FILE_MAX: u64 = 128 << 20;

/// Files and folders that are looked at.
pub(crate) struct Folder {
    roots: Vec<PathBuf>,
    files: BTreeMap<PathBuf, File>,
    /// What is wrong with folders, so that it is said once.
    told: BTreeMap<PathBuf, String>,
}

struct File {
    stamp: Stamp,
    manifests: Vec<Manifest>,
}

/// By what a file is known to have changed. A link counts as what it leads to: a mounted ConfigMap changes by its links.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    length: u64,
    file: (u64, u64),
}

impl Stamp {
    fn new(metadata: &Metadata) -> Stamp {
        Stamp {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            length: metadata.len(),
            file: (metadata.dev(), metadata.ino()),
        }
    }
}

/// Something that the log and the metrics are to know.
pub(crate) struct Report {
    pub(crate) reason: &'static str,
    pub(crate) text: String,
}

impl Folder {
    /// # Errors
    /// A path where nothing is.
    pub(crate) fn new(roots: &[PathBuf]) -> Result<Folder, SetupProblem> {
        for path in roots {
            let problem = |error: io::Error| SetupProblem::Manifests { path: path.clone(), reason: error.to_string() };
            fs::metadata(path).map_err(problem)?;
        }
        Ok(Folder { roots: roots.to_vec(), files: BTreeMap::new(), told: BTreeMap::new() })
    }

    /// All manifests, in the order of the names of their files.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.files.values().flat_map(|file| &file.manifests)
    }

    /// Looks at all files again; tells whether the manifests may be others now, and what is wrong that was not before.
    pub(crate) fn look(&mut self) -> (bool, Vec<Report>) {
        let mut found = Found::default();
        for root in &self.roots {
            found.visit(root, 0);
        }
        let known = self.files.len();
        // What cannot be looked into stays as it was; what is gone goes.
        self.files.retain(|path, _| found.files.contains_key(path) || found.is_below_a_problem(path));
        let mut changed = self.files.len() < known;
        let mut reports = self.news(found.problems);
        for (path, stamp) in found.files {
            if self.files.get(&path).is_none_or(|file| file.stamp != stamp) {
                match self.read(&path, stamp) {
                    Ok(()) => changed = true,
                    Err(report) => reports.push(report),
                }
            }
        }
        (changed, reports)
    }

    /// Reads a file. If that fails, it stays what it was, and is read again when it has changed again.
    fn read(&mut self, path: &Path, stamp: Stamp) -> Result<(), Report> {
        let (manifests, outcome) = match read(path, stamp.length) {
            Ok(manifests) => (Some(manifests), Ok(())),
            Err(report) => (None, Err(report)),
        };
        let before = self.files.remove(path).map(|file| file.manifests);
        // A file that is written while it is read is read again.
        let is_settled = fs::metadata(path).is_ok_and(|metadata| Stamp::new(&metadata) == stamp);
        let stamp = if is_settled { stamp } else { Stamp { length: u64::MAX, ..stamp } };
        let manifests = manifests.or(before).unwrap_or_default();
        self.files.insert(path.to_owned(), File { stamp, manifests });
        outcome
    }

    /// The problems that were not told yet. What is no problem any more is forgotten.
    fn news(&mut self, problems: BTreeMap<PathBuf, Report>) -> Vec<Report> {
        let told = std::mem::take(&mut self.told);
        self.told = problems.iter().map(|(path, report)| (path.clone(), report.text.clone())).collect();
        problems.into_iter().filter(|(path, report)| told.get(path) != Some(&report.text)).map(|(_, new)| new).collect()
    }
}

/// Files that are there.
#[derive(Default)]
struct Found {
    files: BTreeMap<PathBuf, Stamp>,
    problems: BTreeMap<PathBuf, Report>,
}

impl Found {
    fn visit(&mut self, path: &Path, depth: usize) {
        let outcome = fs::metadata(path).and_then(|metadata| {
            if metadata.is_dir() {
                return self.visit_folder(path, depth);
            }
            if depth == 0 || is_manifest(path) {
                self.add(path, Stamp::new(&metadata));
            }
            Ok(())
        });
        match outcome {
            // A name that is gone since its folder was read, or a link to nothing.
            Err(error) if depth > 0 && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.problem(path, "unreadable", &error.to_string()),
            Ok(()) => {}
        }
    }

    fn visit_folder(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        if depth == DEPTH_MAX {
            self.problem(path, "too_deep", &format!("more than {DEPTH_MAX} folders within each other"));
            return Ok(());
        }
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // Names with a dot are for programs: `..data` of a mounted ConfigMap, what editors leave, `.git`.
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                self.visit(&entry.path(), depth + 1);
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, stamp: Stamp) {
        if self.files.len() < FILES_MAX {
            self.files.insert(path.to_owned(), stamp);
        } else {
            let parent = path.parent().unwrap_or(path).to_owned();
            self.problem(&parent, "too_many", &format!("more than {FILES_MAX} files, the others are left out"));
        }
    }

    fn problem(&mut self, path: &Path, reason: &'static str, text: &str) {
        let report = Report { reason, text: format!("{}: {text}", path.display()) };
        self.problems.insert(path.to_owned(), report);
    }

    fn is_below_a_problem(&self, path: &Path) -> bool {
        let unreadable = self.problems.iter().filter(|(_, report)| report.reason == "unreadable");
        unreadable.map(|(problem, _)| problem).any(|problem| path.starts_with(problem))
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

fn read(path: &Path, length: u64) -> Result<Vec<Manifest>, Report> {
    let place = path.display();
    if length > FILE_MAX {
        return Err(Report { reason: "too_long", text: format!("{place}: more than {FILE_MAX} octets") });
    }
    let text =
        fs::read_to_string(path).map_err(|error| Report { reason: "unreadable", text: format!("{place}: {error}") })?;
    let text = text.trim_start_matches('\u{feff}');
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let parsed = if is_json { parse::json(text) } else { parse::yaml(text) };
    parsed.map_err(|Problem { line, text }| Report { reason: "syntax", text: format!("{place}:{line}: {text}") })
}
