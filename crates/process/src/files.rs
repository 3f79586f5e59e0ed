//! File system access: reading, glob patterns and polling for changes.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use config::setup::{FileCheck, FileStamp, FileWatch, Files, LISTED_MAX, MemoryUse};
use engine::Io;
use host::errors::plain;

use crate::process_metrics::memory_use;

/// Maximum length of a file that a directive reads, in bytes: zones and address databases are the longest. With a
/// memory limit, it is also what the process may use until a quarter of that is left.
const FILE_MAX: u64 = 1 << 30;

/// File system of this machine, for directives that read files while a configuration is built.
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let free = |memory: MemoryUse| (memory.limit / 4 * 3).saturating_sub(memory.used);
        let most = memory_use().map_or(FILE_MAX, free).min(FILE_MAX);
        transport::files::read_file(path, most).map_err(plain)
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn stamp(&self, path: &Path) -> io::Result<FileStamp> {
        let metadata = std::fs::metadata(path).map_err(plain)?;
        let since_1970 = metadata.modified().map_err(plain)?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(FileStamp { modified: since_1970.as_nanos(), len: metadata.len() })
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut directories = VecDeque::from([std::fs::read_dir(directory).map_err(plain)?]);
        while let Some(entries) = directories.pop_front() {
            for entry in entries.flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                // Symbolic links to directories are not followed, because they could form a loop.
                if kind.is_dir() {
                    directories.extend(std::fs::read_dir(entry.path()));
                } else if entry.path().is_file() && found.len() < LISTED_MAX {
                    found.push(entry.path());
                }
            }
        }
        host::sorting::sort_by(&mut found, Ord::cmp);
        Ok(found)
    }

    fn replace(&self, path: &Path, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let beside = path.with_file_name(format!("portolan-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)));
        let written = std::fs::File::create_new(&beside).and_then(|file| {
            let mut buffer = BufWriter::new(file);
            write(&mut buffer)?;
            buffer.into_inner()?.sync_all()?;
            std::fs::rename(&beside, path)
        });
        if written.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        written.map_err(plain)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(bytes)).map_err(plain)
    }
}

/// Sequence number for the names of temporary files.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns the paths that match a pattern, sorted. `*` matches any part of a file name and `?` any single byte of it.
pub fn glob(pattern: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let name = name.to_string_lossy();
        found = if name.contains(['*', '?']) {
            found.iter().flat_map(|path| matching_entries(path, &name)).collect()
        } else {
            found.into_iter().map(|path| path.join(&*name)).filter(|path| path.symlink_metadata().is_ok()).collect()
        };
    }
    host::sorting::sort_by(&mut found, Ord::cmp);
    Ok(found)
}

fn matching_entries(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let listed = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let Ok(entries) = std::fs::read_dir(listed) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    let matching = names.filter(|name| matches(pattern.as_bytes(), name.to_string_lossy().as_bytes()));
    matching.map(|name| directory.join(name)).collect()
}

/// Returns true if a name matches a pattern. Backtracks to the last `*` only, so the time is at most the product of
/// both lengths.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name, mut star) = (0, 0, None);
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => {
                let Some((star_at, from)) = star else { return false };
                star = Some((star_at, from + 1));
                at = star_at + 1;
                in_name = from + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Calls a directive's function that reads its files at a fixed interval, for as long as this is polled. Uses a
/// blocking thread, because large files may be read.
pub async fn inspect(watch: FileWatch, io: Rc<dyn Io>) {
    let FileWatch { every, mut at_once, mut check } = watch;
    while !every.is_zero() {
        if !core::mem::take(&mut at_once) {
            tokio::time::sleep(every).await;
        }
        let looked = tokio::task::spawn_blocking(move || {
            let mut notices = Vec::new();
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            check(FileCheck { files: &Disk, since_1970, notices: &mut notices });
            (check, notices)
        });
        // A panic ends this watch. Earlier results stay in use.
        let Ok((again, notices)) = looked.await else { return };
        check = again;
        notices.iter().for_each(|notice| io.log(notice.level, notice.source(), format_args!("{}", notice.message)));
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn matches_wildcards() {
        for (pattern, name, expected) in [
            ("*.override", "a.override", true),
            ("*.override", ".override", true),
            ("*.override", "a.overrid", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("a*b", "aXbXb", true),
            ("a*b", "aXbX", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
