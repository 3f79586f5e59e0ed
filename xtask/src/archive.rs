//! Archives with the same bytes for the same content: sorted entries, one time for all of them, root as the owner, and
//! compression without a time stamp.

use std::io::Write as _;
use std::process::Command;

use aws_lc_rs::digest::{SHA256, digest};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::{Failed, root};

/// PAX keyword for the file capabilities of an entry, as GNU tar and container runtimes write it.
const CAPABILITY: &str = "SCHILY.xattr.security.capability";

/// Entry of an archive.
#[derive(Clone, Debug)]
pub struct Entry {
    path: String,
    content: Content,
    mode: u32,
    /// Extended attribute `security.capability`.
    capability: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Content {
    Directory,
    File(Vec<u8>),
    /// Name of another file in the archive.
    HardLink(String),
}

impl Entry {
    /// Creates a directory.
    pub fn directory(path: &str) -> Entry {
        Entry { path: format!("{path}/"), content: Content::Directory, mode: 0o755, capability: None }
    }

    /// Creates a file that all may read.
    pub fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { path: path.into(), content: Content::File(bytes.into()), mode: 0o644, capability: None }
    }

    /// Creates a file that all may run.
    pub fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { mode: 0o755, ..Entry::file(path, bytes) }
    }

    /// Creates a hard link to another entry.
    pub fn hard_link(path: &str, target: &str) -> Entry {
        let content = Content::HardLink(target.to_owned());
        Entry { path: path.to_owned(), content, mode: 0o755, capability: None }
    }

    /// Sets the extended attribute `security.capability`.
    pub fn with_capability(self, capability: Vec<u8>) -> Entry {
        Entry { capability: Some(capability), ..self }
    }
}

/// Packs entries with `seconds` since 1970 as their time. Hard links come last, because their targets must exist.
pub fn tar(mut entries: Vec<Entry>, seconds: u64) -> Result<Vec<u8>, Failed> {
    let is_link = |entry: &Entry| matches!(entry.content, Content::HardLink(_));
    entries.sort_by(|one, other| (is_link(one), &one.path).cmp(&(is_link(other), &other.path)));
    let mut archive = Builder::new(Vec::new());
    for entry in &entries {
        append(&mut archive, entry, seconds).map_err(|error| format!("{}: {error}", entry.path))?;
    }
    archive.into_inner().map_err(|error| error.to_string())
}

fn append(archive: &mut Builder<Vec<u8>>, entry: &Entry, seconds: u64) -> std::io::Result<()> {
    if let Some(capability) = &entry.capability {
        archive.append_pax_extensions([(CAPABILITY, capability.as_slice())])?;
    }
    let mut header = Header::new_ustar();
    header.set_mode(entry.mode);
    header.set_mtime(seconds);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    match &entry.content {
        Content::Directory => {
            header.set_entry_type(EntryType::Directory);
            archive.append_data(&mut header, &entry.path, std::io::empty())
        }
        Content::File(bytes) => {
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, &entry.path, bytes.as_slice())
        }
        Content::HardLink(target) => {
            header.set_entry_type(EntryType::Link);
            archive.append_link(&mut header, &entry.path, target)
        }
    }
}

/// Compresses with gzip.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, Failed> {
    let mut compressed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    compressed.write_all(bytes).and_then(|()| compressed.finish()).map_err(|error| error.to_string())
}

/// Returns the SHA-256 digest in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the time of a reproducible build in seconds since 1970: `SOURCE_DATE_EPOCH`, else the time of the commit.
pub fn source_date() -> Result<u64, Failed> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return given.parse().map_err(|_| format!("SOURCE_DATE_EPOCH=`{given}` is not a number of seconds"));
    }
    let output = Command::new("git").args(["show", "-s", "--format=%ct", "HEAD"]).current_dir(root()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
        "the date of the source is not known without git; set SOURCE_DATE_EPOCH to seconds since 1970".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_the_same_bytes_in_any_order() {
        let entries = [
            Entry::hard_link("a", "b"),
            Entry::program("b", *b"x"),
            Entry::file("etc/c", *b"y"),
            Entry::directory("etc"),
        ];
        let packed = tar(entries.to_vec(), 7).unwrap();
        assert_eq!(packed, tar(entries.into_iter().rev().collect(), 7).unwrap());
        let mut archive = tar::Archive::new(packed.as_slice());
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                assert_eq!((entry.header().mtime().unwrap(), entry.header().uid().unwrap()), (7, 0));
                entry.path().unwrap().display().to_string()
            })
            .collect();
        assert_eq!(names, ["b", "etc/", "etc/c", "a"]);
        assert_eq!(gzip(&packed).unwrap(), gzip(&packed).unwrap());
    }
}
