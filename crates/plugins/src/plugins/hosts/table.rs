//! Hosts table: addresses by name, and names by address.

use core::fmt;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;

use engine::Zones;
use foldhash::fast::RandomState;
use wire::{Name, NameRef};

/// Maximum length of a hosts file in bytes: about 200,000 lines.
pub(super) const FILE_MAX: usize = 16 << 20;

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
    /// Adds the lines of a hosts file, in which `#` starts a comment. Returns the ignored lines.
    pub(super) fn read(&mut self, bytes: &[u8], selection: &Selection) -> Option<IgnoredLines> {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(FILE_MAX)]);
        let mut ignored =
            (bytes.len() > FILE_MAX).then(|| IgnoredLines::new(text.lines().count(), IgnoredReason::Rest));
        for (at, line) in text.lines().enumerate() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(address) = words.next() else { continue };
            if let Err(what) = self.add(address, words, selection) {
                ignored.get_or_insert_with(|| IgnoredLines::new(at + 1, what)).lines += 1;
            }
        }
        ignored
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

/// IgnoredLines lines of a hosts file: the first one with its reason, and their number.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IgnoredLines {
    line: usize,
    what: IgnoredReason,
    lines: usize,
}

/// Ignored lines of a watched hosts file. The other lines are in use.
#[derive(Debug)]
pub(super) struct IgnoredLinesError {
    pub(super) path: PathBuf,
    pub(super) ignored: IgnoredLines,
}

impl fmt::Display for IgnoredLinesError {
    /// Writes `FILE:LINE: REASON`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.ignored)
    }
}

impl core::error::Error for IgnoredLinesError {}

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
    fn new(line: usize, what: IgnoredReason) -> IgnoredLines {
        IgnoredLines { line, what, lines: 0 }
    }
}

impl fmt::Display for IgnoredLines {
    /// Writes `LINE: REASON`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            IgnoredReason::Address(word) => write!(f, "{}: line ignored: `{word}` is not an IP address", self.line)?,
            IgnoredReason::Name(word) => write!(f, "{}: name ignored: `{word}` is not a domain name", self.line)?,
            IgnoredReason::Rest => {
                write!(f, "{}: the file is longer than {FILE_MAX} bytes; the rest is ignored", self.line)?;
            }
        }
        match self.lines {
            0 | 1 => Ok(()),
            lines => write!(f, " ({lines} lines have such errors)"),
        }
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
        let ignored = table.read(b"127.0.0.1 localhost LocalHost # c\n#x\n10.0.0.1\tweb.test a..b\n\nnonsense x.test\n::1%lo six.test\n10.0.0.2 *.w.test\n10.0.0.9 out.example\n", &selection);
        let said = "3: name ignored: `a..b` is not a domain name (2 lines have such errors)";
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
}
