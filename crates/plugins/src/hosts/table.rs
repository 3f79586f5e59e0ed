//! Hosts, by name and by address.

use std::collections::HashMap;
use std::net::IpAddr;

use foldhash::fast::RandomState;
use wire::{Name, NameRef};

/// Octets of the longest hosts file: some two hundred thousand lines.
pub(super) const FILE_MAX: usize = 16 << 20;

/// Hosts as lines list them.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    by_name: HashMap<Box<[u8]>, Vec<IpAddr>, RandomState>,
    by_address: HashMap<IpAddr, Vec<Name>, RandomState>,
}

impl Table {
    /// Reads a hosts file: `#` begins a comment, lines without an address mean nothing.
    pub(super) fn read(&mut self, octets: &[u8], reverse: bool) {
        for line in String::from_utf8_lossy(&octets[..octets.len().min(FILE_MAX)]).lines() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            if let Some(address) = words.next() {
                self.add(address, words, reverse);
            }
        }
    }

    /// Adds the names of an address; what is no address, or no name, means nothing.
    pub(super) fn add<'a>(&mut self, address: &str, names: impl Iterator<Item = &'a str>, reverse: bool) {
        let Some(address) = self::address(address) else { return };
        for name in names.filter_map(|name| Name::from_text(name).ok()) {
            let name = name.into_lowercase();
            let addresses = self.by_name.entry(name.octets().into()).or_default();
            // A pair that was there before is no second record (RFC 2181 §5.2).
            if addresses.contains(&address) {
                continue;
            }
            addresses.push(address);
            if reverse {
                self.by_address.entry(address).or_default().push(name);
            }
        }
    }

    /// The addresses of a name (in lower case), or of the wildcard that it falls under.
    pub(super) fn addresses(&self, name: NameRef<'_>) -> Option<&[IpAddr]> {
        if let Some(addresses) = self.by_name.get(name.octets()) {
            return Some(addresses);
        }
        let mut wildcard = Name::root();
        wildcard.push_label(b"*").ok()?;
        wildcard.append(name.parent()?).ok()?;
        self.by_name.get(wildcard.octets()).map(Vec::as_slice)
    }

    /// The names of an address.
    pub(super) fn names(&self, address: IpAddr) -> &[Name] {
        self.by_address.get(&address).map_or(&[], Vec::as_slice)
    }

    /// Records that it answers with: addresses of all names, and names of all addresses.
    pub(super) fn len(&self) -> usize {
        let addresses: usize = self.by_name.values().map(Vec::len).sum();
        addresses + self.by_address.values().map(Vec::len).sum::<usize>()
    }
}

/// The address that a word is; an interface may be named behind one of IPv6.
pub(super) fn address(word: &str) -> Option<IpAddr> {
    word.split('%').next()?.parse().ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_what_they_mean() {
        let mut table = Table::default();
        table.read(b"127.0.0.1 localhost LocalHost # c\n#x\n10.0.0.1\tweb.test a..b\n\nnonsense x.test\n::1%lo six.test\n10.0.0.2 *.w.test\n", true);
        let look = |name: &str| table.addresses(Name::from_text(name).unwrap().as_ref()).map(<[IpAddr]>::to_vec);
        assert_eq!(look("localhost."), Some(vec!["127.0.0.1".parse().unwrap()]));
        assert_eq!(look("web.test."), Some(vec!["10.0.0.1".parse().unwrap()]));
        assert_eq!(look("six.test."), Some(vec!["::1".parse().unwrap()]));
        assert_eq!(look("a.w.test."), Some(vec!["10.0.0.2".parse().unwrap()]));
        assert_eq!((look("b.a.w.test."), look("w.test."), look("x.test."), look(".")), (None, None, None, None));
        assert_eq!(table.names("10.0.0.1".parse().unwrap()).len(), 1);
    }
}
