//! Manifest files: finds them, reads them again when they change, and keeps the last readable content.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::parse::{self, Manifest, Parsed};
use crate::SetupError;

/// Maximum depth of nested folders. It also ends cycles of symbolic links.
const DEPTH_MAX: usize = 16;
/// Maximum number of files, since each is checked every second.
const FILES_MAX: usize = 10_000;
/// Maximum size of a file in bytes. Ten thousand Services with a hundred thousand endpoints take 40 MiB.
const FILE_MAX: u64 = 128 << 20;

/// Files and folders to poll.
pub(crate) struct Folder {
    roots: Vec<PathBuf>,
    files: BTreeMap<PathBuf, File>,
    /// Problems with folders that have been reported, to report each only once.
    told: BTreeMap<PathBuf, String>,
}

struct File {
    stamp: Stamp,
    manifests: Vec<Manifest>,
}

/// Metadata that shows whether a file has changed. Symbolic links are followed, because a mounted ConfigMap changes by
/// them.
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

/// Problem for the log and the metrics.
pub(crate) struct Report {
    /// Value of the metric label `reason`, or `None` for a warning about a file that could be read.
    pub(crate) reason: Option<&'static str>,
    pub(crate) text: String,
}

impl Report {
    /// Problem that keeps a file or folder from being read.
    fn unread(reason: &'static str, text: &str) -> Report {
        Report { reason: Some(reason), text: format!("{text}; its last known content is still served") }
    }

    fn warning(text: String) -> Report {
        Report { reason: None, text }
    }
}

impl Folder {
    /// # Errors
    /// A path that does not exist.
    pub(crate) fn new(roots: &[PathBuf]) -> Result<Folder, SetupError> {
        for path in roots {
            let problem = |error: io::Error| SetupError::Manifests(io_text::cannot_open(path, &error));
            fs::metadata(path).map_err(problem)?;
        }
        Ok(Folder { roots: roots.to_vec(), files: BTreeMap::new(), told: BTreeMap::new() })
    }

    /// Returns all manifests, ordered by file name.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.files.values().flat_map(|file| &file.manifests)
    }

    /// Checks all files. Returns true if the manifests may have changed, and the new problems.
    pub(crate) fn look(&mut self) -> (bool, Vec<Report>) {
        let mut found = Found::default();
        for root in &self.roots {
            found.visit(root, 0);
        }
        let known = self.files.len();
        // Files below an unreadable folder keep their content. Files that are gone are dropped.
        self.files.retain(|path, _| found.files.contains_key(path) || found.is_below_a_problem(path));
        let mut changed = self.files.len() < known;
        let mut reports = self.news(found.problems);
        for (path, stamp) in found.files {
            if self.files.get(&path).is_none_or(|file| file.stamp != stamp) {
                match self.read(&path, stamp) {
                    Ok(warnings) => {
                        changed = true;
                        reports.extend(warnings);
                    }
                    Err(report) => reports.push(report),
                }
            }
        }
        (changed, reports)
    }

    /// Reads a file and returns the warnings about it. If this fails, the file keeps its last content and is read again
    /// after its next change.
    fn read(&mut self, path: &Path, stamp: Stamp) -> Result<Vec<Report>, Report> {
        let (manifests, outcome) = match read(path, stamp.length) {
            Ok(parsed) => {
                let reports = warning_reports(path, &parsed);
                (Some(parsed.manifests), Ok(reports))
            }
            Err(report) => (None, Err(report)),
        };
        let before = self.files.remove(path).map(|file| file.manifests);
        // A file that changed while it was read has to be read again.
        let is_settled = fs::metadata(path).is_ok_and(|metadata| Stamp::new(&metadata) == stamp);
        let stamp = if is_settled { stamp } else { Stamp { length: u64::MAX, ..stamp } };
        let manifests = manifests.or(before).unwrap_or_default();
        self.files.insert(path.to_owned(), File { stamp, manifests });
        outcome
    }

    /// Returns the problems that have not been reported yet, and forgets those that are solved.
    fn news(&mut self, problems: BTreeMap<PathBuf, Report>) -> Vec<Report> {
        let told = std::mem::take(&mut self.told);
        self.told = problems.iter().map(|(path, report)| (path.clone(), report.text.clone())).collect();
        problems.into_iter().filter(|(path, report)| told.get(path) != Some(&report.text)).map(|(_, new)| new).collect()
    }
}

/// Files and problems of one check.
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
            // The entry was deleted after its folder was read, or it is a dangling link.
            Err(error) if depth > 0 && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let report = Report::unread("unreadable", &io_text::cannot_open(path, &error));
                self.problems.insert(path.to_owned(), report);
            }
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
            // Skip hidden files: `..data` of a mounted ConfigMap, temporary files of editors, `.git`.
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
        let report = Report::unread(reason, &format!("{}: {text}", path.display()));
        self.problems.insert(path.to_owned(), report);
    }

    fn is_below_a_problem(&self, path: &Path) -> bool {
        let unreadable = self.problems.iter().filter(|(_, report)| report.reason == Some("unreadable"));
        unreadable.map(|(problem, _)| problem).any(|problem| path.starts_with(problem))
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

fn read(path: &Path, length: u64) -> Result<Parsed, Report> {
    let place = path.display();
    if length > FILE_MAX {
        return Err(Report::unread("too_long", &format!("{place}: more than {FILE_MAX} bytes")));
    }
    let text =
        fs::read_to_string(path).map_err(|error| Report::unread("unreadable", &io_text::cannot_open(path, &error)))?;
    let text = text.trim_start_matches('\u{feff}');
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let parsed = if is_json { parse::json(text) } else { parse::yaml(text) };
    parsed.map_err(|error| Report::unread("syntax", &format!("{place}:{error}")))
}

fn warning_reports(path: &Path, parsed: &Parsed) -> Vec<Report> {
    let place = path.display();
    let each = parsed.warnings.iter();
    let mut reports: Vec<Report> = each.map(|warning| Report::warning(format!("{place}:{warning}"))).collect();
    match parsed.more_warnings {
        0 => {}
        1 => reports.push(Report::warning(format!("{place}: 1 more warning is not shown"))),
        more => reports.push(Report::warning(format!("{place}: {more} more warnings are not shown"))),
    }
    reports
}
