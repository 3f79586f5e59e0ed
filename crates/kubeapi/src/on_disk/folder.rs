//! Manifest files: finds them, reads them again when they change, and keeps the last readable content.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::SetupError;
use manifests::{Findings, Manifest, Parsed};

/// Maximum depth of nested folders. It also ends cycles of symbolic links.
const DEPTH_MAX: usize = 16;
/// Maximum number of files, since each is checked every second.
const FILES_MAX: usize = 10_000;
/// Maximum size of a file in bytes. Ten thousand Services with a hundred thousand endpoints take 40 MiB.
const FILE_MAX: u64 = 128 << 20;

/// Value of the metric label `reason` for a file or folder that cannot be opened.
const UNREADABLE: &str = "unreadable";

/// Files and folders to poll.
pub(crate) struct Folder {
    roots: Vec<PathBuf>,
    files: BTreeMap<PathBuf, File>,
    /// Problems with folders that have been reported, to report each only once.
    reported: BTreeMap<PathBuf, String>,
}

struct File {
    stamp: FileStamp,
    manifests: Vec<Manifest>,
}

/// Metadata that shows whether a file has changed. Symbolic links are followed, because a mounted ConfigMap changes by
/// them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    modified: (i64, i64),
    length: u64,
    file: (u64, u64),
}

impl FileStamp {
    fn new(metadata: &Metadata) -> FileStamp {
        FileStamp {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            length: metadata.len(),
            file: (metadata.dev(), metadata.ino()),
        }
    }
}

/// Report for the log and the metrics.
pub(crate) struct Report {
    /// Value of the metric label `reason`, or `None` for a warning about a file that could be read.
    pub(crate) reason: Option<&'static str>,
    pub(crate) text: String,
}

impl Report {
    /// Report of an error that keeps a file or folder from being read.
    fn error(reason: &'static str, text: String) -> Report {
        Report { reason: Some(reason), text }
    }

    /// Adds what is served of a file or folder that cannot be read.
    fn with_consequence(self, is_known: bool) -> Report {
        let consequence = if is_known { "its last known content is still served" } else { "nothing of it is served" };
        Report { text: format!("{}; {consequence}", self.text), ..self }
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
            let setup_error = |error: io::Error| SetupError::Manifests(host::errors::cannot_open(path, &error));
            fs::metadata(path).map_err(setup_error)?;
        }
        Ok(Folder { roots: roots.to_vec(), files: BTreeMap::new(), reported: BTreeMap::new() })
    }

    /// Returns all manifests, ordered by file name.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.files.values().flat_map(|file| &file.manifests)
    }

    /// Checks all files. Returns true if the manifests may have changed, and the new reports.
    pub(crate) fn check(&mut self) -> (bool, Vec<Report>) {
        let mut scan = Scan::default();
        for root in &self.roots {
            scan.visit(root, 0);
        }
        let known = self.files.len();
        // Files below an unreadable folder keep their content. Files that are gone are dropped.
        self.files.retain(|path, _| scan.files.contains_key(path) || scan.is_below_unreadable(path));
        let mut changed = self.files.len() < known;
        let unread = scan.reports.into_iter().map(|(path, report)| {
            let is_known = self.files.keys().any(|file| file.starts_with(&path));
            let report = if report.reason == Some(UNREADABLE) { report.with_consequence(is_known) } else { report };
            (path, report)
        });
        let unread = host::sorting::map(unread);
        let mut reports = self.new_reports(unread);
        for (path, stamp) in scan.files {
            if self.files.get(&path).is_none_or(|file| file.stamp != stamp) {
                changed |= self.read(&path, stamp, &mut reports);
            }
        }
        (changed, reports)
    }

    /// Reads a file and returns true if its manifests may have changed. A file that cannot be read keeps its last
    /// content and is read again after its next change.
    fn read(&mut self, path: &Path, stamp: FileStamp, reports: &mut Vec<Report>) -> bool {
        let before = self.files.remove(path).map(|file| file.manifests).unwrap_or_default();
        let (manifests, is_read) = match read(path, stamp.length) {
            Ok(parsed) => (merged(path, parsed, before, reports), true),
            Err(report) => {
                reports.push(report.with_consequence(!before.is_empty()));
                (before, false)
            }
        };
        // A file that changed while it was read has to be read again.
        let is_settled = fs::metadata(path).is_ok_and(|metadata| FileStamp::new(&metadata) == stamp);
        let stamp = if is_settled { stamp } else { FileStamp { length: u64::MAX, ..stamp } };
        self.files.insert(path.to_owned(), File { stamp, manifests });
        is_read
    }

    /// Returns the reports that are new, and forgets those whose cause is gone.
    fn new_reports(&mut self, reports: BTreeMap<PathBuf, Report>) -> Vec<Report> {
        let reported = std::mem::take(&mut self.reported);
        self.reported = host::sorting::map(reports.iter().map(|(path, report)| (path.clone(), report.text.clone())));
        reports
            .into_iter()
            .filter(|(path, report)| reported.get(path) != Some(&report.text))
            .map(|(_, new)| new)
            .collect()
    }
}

/// Files and reports of one check.
#[derive(Default)]
struct Scan {
    files: BTreeMap<PathBuf, FileStamp>,
    reports: BTreeMap<PathBuf, Report>,
}

impl Scan {
    fn visit(&mut self, path: &Path, depth: usize) {
        let outcome = fs::metadata(path).and_then(|metadata| {
            if metadata.is_dir() {
                return self.visit_folder(path, depth);
            }
            if depth == 0 || is_manifest(path) {
                self.add(path, FileStamp::new(&metadata));
            }
            Ok(())
        });
        match outcome {
            // The entry was deleted after its folder was read, or it is a dangling link.
            Err(error) if depth > 0 && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let report = Report::error(UNREADABLE, host::errors::cannot_open(path, &error));
                self.reports.insert(path.to_owned(), report);
            }
            Ok(()) => {}
        }
    }

    fn visit_folder(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        if depth == DEPTH_MAX {
            self.report(path, "too_deep", &format!("more than {DEPTH_MAX} folders within each other; it is left out"));
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

    fn add(&mut self, path: &Path, stamp: FileStamp) {
        if self.files.len() < FILES_MAX {
            self.files.insert(path.to_owned(), stamp);
        } else {
            let parent = path.parent().unwrap_or(path).to_owned();
            self.report(&parent, "too_many", &format!("more than {FILES_MAX} files, the others are left out"));
        }
    }

    fn report(&mut self, path: &Path, reason: &'static str, text: &str) {
        let report = Report::error(reason, format!("{}: {text}", path.display()));
        self.reports.insert(path.to_owned(), report);
    }

    fn is_below_unreadable(&self, path: &Path) -> bool {
        let unreadable = self.reports.iter().filter(|(_, report)| report.reason == Some(UNREADABLE));
        unreadable.map(|(folder, _)| folder).any(|folder| path.starts_with(folder))
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

fn read(path: &Path, length: u64) -> Result<Parsed, Report> {
    if length > FILE_MAX {
        return Err(Report::error("too_long", format!("{}: more than {FILE_MAX} bytes", path.display())));
    }
    let text =
        fs::read_to_string(path).map_err(|error| Report::error(UNREADABLE, host::errors::cannot_open(path, &error)))?;
    let text = text.trim_start_matches('\u{feff}');
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    Ok(if is_json { manifests::json(text) } else { manifests::yaml(text) })
}

/// Returns the manifests of a file and reports its mistakes. If the file has errors, objects that it had `before` and
/// lacks now remain, since they may be those that cannot be read.
fn merged(path: &Path, parsed: Parsed, before: Vec<Manifest>, reports: &mut Vec<Report>) -> Vec<Manifest> {
    let Parsed { manifests, errors, warnings } = parsed;
    let mut kept = Vec::new();
    if !errors.shown.is_empty() {
        let present: BTreeSet<_> = host::sorting::set(manifests.iter().map(identity));
        kept = before.into_iter().filter(|manifest| !present.contains(&identity(manifest))).collect();
    }
    let consequence = if kept.is_empty() { "it is ignored" } else { "its last known state is still served" };
    let first = reports.len();
    report(path, &errors, "error", &format!("; {consequence}"), reports);
    // The metric counts files.
    if let Some(first) = reports.get_mut(first) {
        first.reason = (!errors.shown.is_empty()).then_some("syntax");
    }
    report(path, &warnings, "warning", "", reports);
    kept.extend(manifests);
    kept
}

/// Returns kind, namespace and name of an object.
fn identity(manifest: &Manifest) -> (&'static str, String, String) {
    let (kind, metadata) = manifest.identity();
    (kind, metadata.namespace.clone(), metadata.name.clone())
}

/// Reports mistakes in a file. `what` names them.
fn report(path: &Path, findings: &Findings, what: &str, consequence: &str, reports: &mut Vec<Report>) {
    let shown = path.display();
    let each = findings.shown.iter();
    reports.extend(each.map(|finding| Report::warning(format!("{shown}:{finding}{consequence}"))));
    match findings.more {
        0 => {}
        1 => reports.push(Report::warning(format!("{shown}: 1 more {what} is not shown"))),
        more => reports.push(Report::warning(format!("{shown}: {more} more {what}s are not shown"))),
    }
}
