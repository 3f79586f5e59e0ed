//! Hosts table: addresses by name, and names by address.

use core::fmt;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use engine::Zones;
use foldhash::fast::RandomState;
use wire::{Name, NameRef};

/// Maximum length of all hosts files of a line in bytes: about 200,000 lines.
pub(super) const FILE_MAX: usize = 16 << 20;

/// File with hosts.
#[derive(Debug, Hash)]
pub(super) struct HostsFile {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

/// Selection of the records that a table keeps.
pub(super) struct Selection {
    /// Zones of the names that are kept. PTR records point to these names only.
    pub(super) zones: Zones,
    /// True if PTR records are derived.
    pub(super) reverse: bool,
}

/// Records of a hosts file.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    by_name: HashMap<Box<[u8]>, Vec<IpAddr>, RandomState>,
    by_address: HashMap<IpAddr, Vec<Name>, RandomState>,
}

impl Table {
    /// Adds the lines of hosts files. Returns the ignored lines.
    pub(super) fn read(&mut self, files: &[HostsFile], selection: &Selection) -> Option<IgnoredLines> {
        let (mut ignored, mut left) = (None, FILE_MAX);
        for file in files {
            let part = whole_lines(&file.bytes, left);
            self.read_file(&file.path, part, selection, &mut ignored);
            if file.bytes.len() > left {
                let line = part.iter().filter(|byte| **byte == b'\n').count() + 1;
                ignored.get_or_insert_with(|| IgnoredLines::new(&file.path, line, IgnoredReason::Rest));
            }
            left = left.saturating_sub(file.bytes.len());
        }
        ignored
    }

    /// Adds the lines of a hosts file, in which `#` starts a comment.
    fn read_file(&mut self, path: &Path, bytes: &[u8], selection: &Selection, ignored: &mut Option<IgnoredLines>) {
        for (at, line) in String::from_utf8_lossy(bytes).lines().enumerate() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(address) = words.next() else { continue };
            if let Err(what) = self.add(address, words, selection) {
                ignored.get_or_insert_with(|| IgnoredLines::new(path, at + 1, what)).lines += 1;
            }
        }
    }

    /// Adds the names of an address.
    ///
    /// # Errors
    /// Returns the first word that is neither an address nor a name. The other names are added.
    pub(super) fn add<'a>(
        &mut self,
        address: &str,
        names: impl Iterator<Item = &'a str>,
        selection: &Selection,
    ) -> Result<(), IgnoredReason> {
        let Some(address) = self::address(address) else { return Err(IgnoredReason::Address(address.to_owned())) };
        let mut found = Ok(());
        for word in names {
            match Name::from_text(word) {
                Ok(name) => self.add_name(address, name.into_lowercase(), selection),
                Err(_) if found.is_ok() => found = Err(IgnoredReason::Name(word.to_owned())),
                Err(_) => {}
            }
        }
        found
    }

    fn add_name(&mut self, address: IpAddr, name: Name, selection: &Selection) {
        if !selection.zones.contain(name.as_ref()) {
            return;
        }
        let addresses = self.by_name.entry(name.as_bytes().into()).or_default();
        // A repeated pair is the same record (RFC 2181 §5.2).
        if addresses.contains(&address) {
            return;
        }
        addresses.push(address);
        // A wildcard is not the name of a host.
        if selection.reverse && !name.as_bytes().starts_with(b"\x01*") {
            self.by_address.entry(address).or_default().push(name);
        }
    }

    /// Returns the addresses of a name (in lower case), or of the wildcard that covers it.
    pub(super) fn addresses(&self, name: NameRef<'_>) -> Option<&[IpAddr]> {
        if let Some(addresses) = self.by_name.get(name.as_bytes()) {
            return Some(addresses);
        }
        let mut wildcard = Name::root();
        wildcard.push_label(b"*").ok()?;
        wildcard.append(name.parent()?).ok()?;
        self.by_name.get(wildcard.as_bytes()).map(Vec::as_slice)
    }

    /// Returns the names of an address.
    pub(super) fn names(&self, address: IpAddr) -> &[Name] {
        self.by_address.get(&address).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of records: addresses of all names, and names of all addresses.
    pub(super) fn len(&self) -> usize {
        let addresses: usize = self.by_name.values().map(Vec::len).sum();
        addresses + self.by_address.values().map(Vec::len).sum::<usize>()
    }
}

/// Ignored lines of hosts files: the first one with its reason, and their number. The other lines are in use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IgnoredLines {
    path: PathBuf,
    line: usize,
    what: IgnoredReason,
    lines: usize,
}

impl core::error::Error for IgnoredLines {}

/// Reason why a line is ignored.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum IgnoredReason {
    /// First word of the line, which is not an IP address.
    Address(String),
    /// Word after the address, which is not a domain name.
    Name(String),
    /// The line is beyond [`FILE_MAX`].
    Rest,
}

impl IgnoredLines {
    fn new(path: &Path, line: usize, what: IgnoredReason) -> IgnoredLines {
        IgnoredLines { path: path.to_owned(), line, what, lines: 0 }
    }
}

impl fmt::Display for IgnoredLines {
    /// Writes `FILE:LINE: REASON`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.path.display(), self.line)?;
        match &self.what {
            IgnoredReason::Address(word) => write!(f, "line ignored: `{word}` is not an IP address")?,
            IgnoredReason::Name(word) => write!(f, "name ignored: `{word}` is not a domain name")?,
            IgnoredReason::Rest => write!(f, "longer than {FILE_MAX} bytes; the rest is ignored")?,
        }
        match self.lines {
            0 | 1 => Ok(()),
            lines => write!(f, " ({lines} lines have such errors)"),
        }
    }
}

/// Returns the lines of a file that fit. A part of a line could be another name.
fn whole_lines(bytes: &[u8], length_max: usize) -> &[u8] {
    match bytes.get(..length_max) {
        Some(start) if start.len() < bytes.len() => {
            let end = start.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            &start[..end]
        }
        _ => bytes,
    }
}

/// Parses an address; an IPv6 address may have a zone after `%`.
pub(super) fn address(word: &str) -> Option<IpAddr> {
    word.split('%').next()?.parse().ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_and_counts_those_with_errors() {
        let mut table = Table::default();
        let zones = ["test.", "localhost."].map(|zone| Name::from_text(zone).unwrap()).into_iter().collect();
        let selection = Selection { zones, reverse: true };
        let file = |path: &str, bytes: &[u8]| HostsFile { path: path.into(), bytes: bytes.to_vec() };
        let lines = b"127.0.0.1 localhost LocalHost # c\n#x\n10.0.0.1\tweb.test a..b\n\nnonsense x.test\n\
            ::1%lo six.test\n10.0.0.2 *.w.test\n10.0.0.9 out.example\n";
        let files = [file("d/a", b"# no errors\n\n"), file("d/b", lines), file("d/c", b"x y\n")];
        let ignored = table.read(&files, &selection);
        let said = "d/b:3: name ignored: `a..b` is not a domain name (3 lines have such errors)";
        assert_eq!(ignored.map(|ignored| ignored.to_string()).as_deref(), Some(said));
        let look = |name: &str| table.addresses(Name::from_text(name).unwrap().as_ref()).map(<[IpAddr]>::to_vec);
        assert_eq!(look("localhost."), Some(vec!["127.0.0.1".parse().unwrap()]));
        assert_eq!(look("web.test."), Some(vec!["10.0.0.1".parse().unwrap()]));
        assert_eq!(look("six.test."), Some(vec!["::1".parse().unwrap()]));
        assert_eq!(look("a.w.test."), Some(vec!["10.0.0.2".parse().unwrap()]));
        assert_eq!((look("b.a.w.test."), look("w.test."), look("x.test."), look(".")), (None, None, None, None));
        let names = |address: &str| table.names(address.parse().unwrap()).len();
        assert_eq!((names("10.0.0.1"), names("10.0.0.2"), names("10.0.0.9")), (1, 0, 0));
        assert_eq!(look("out.example."), None);
    }

    #[test]
    fn ignores_what_is_after_the_maximum_length() {
        let mut long = b"10.0.0.1 first.test\n".to_vec();
        long.resize(FILE_MAX - 18, b'#');
        long.extend_from_slice(b"\n10.0.0.2 long.test\n10.0.0.3 last.test\n");
        let files = [("a", long), ("b", b"10.0.0.4 other.test\n".to_vec())];
        let files = files.map(|(path, bytes)| HostsFile { path: path.into(), bytes });
        let mut table = Table::default();
        let zones = core::iter::once(Name::root()).collect();
        let ignored = table.read(&files, &Selection { zones, reverse: true });
        let said = "a:3: longer than 16777216 bytes; the rest is ignored";
        assert_eq!(ignored.map(|ignored| ignored.to_string()).as_deref(), Some(said));
        assert_eq!(table.len(), 2, "the address and the name of the first line");
    }
}
