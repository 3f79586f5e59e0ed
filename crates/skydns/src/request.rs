//! What is asked of those who bring records: from which store, and which of them. Equal requests can share what is brought.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use wire::Name;

use crate::Index;
use crate::key::Key;

/// Which records of which store are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The members of the store, as URLs, in the order in which they are tried.
    pub endpoints: Vec<String>,
    /// Where the keys begin.
    pub path: String,
    /// The zones whose names are wanted; only their keys are read, so that a right to them is enough.
    pub zones: Vec<Name>,
    /// Who we are, if the store wants to know.
    pub credentials: Option<Credentials>,
    /// How to be trusted and whom to trust, where that is said.
    pub tls: Option<Tls>,
}

/// A user of the store.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub user: String,
    /// The password; it is shown to nobody.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Files for TLS, PEM; they are read again for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Our certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The authorities that are believed; those of the system if there is no such file.
    pub authorities: Option<PathBuf>,
}

/// Keys of the store, from one up to another that is not among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub from: Vec<u8>,
    /// The one behind the last.
    pub to: Vec<u8>,
    /// Whether there is only one: the name of a zone itself.
    pub is_single: bool,
}

impl Request {
    /// The same request as everyone would write it who means it: the order of zones does not matter, nor does a zone within
    /// another one, nor do slashes around the path.
    #[must_use]
    pub fn canonical(&self) -> Request {
        let mut request = self.clone();
        request.path = String::from_utf8_lossy(&self.root()).into_owned();
        let mut zones: Vec<Name> = self.zones.iter().cloned().map(Name::into_lowercase).collect();
        zones.sort_by(|one, other| one.octets().cmp(other.octets()));
        zones.dedup();
        let is_within = |zone: &Name, other: &Name| zone != other && zone.as_ref().is_within(other.as_ref());
        request.zones =
            zones.iter().filter(|zone| !zones.iter().any(|other| is_within(zone, other))).cloned().collect();
        request
    }

    /// What all keys begin with: the path between two slashes, or one slash.
    #[must_use]
    pub fn root(&self) -> Vec<u8> {
        let segments = self.path.split('/').filter(|segment| !segment.is_empty());
        segments.fold(b"/".to_vec(), |root, segment| [&root, segment.as_bytes(), b"/"].concat())
    }

    /// The keys of the zones: for each what is below it, and its own name.
    #[must_use]
    pub fn ranges(&self) -> Vec<Range> {
        let root = self.root();
        let keys = self.zones.iter().filter_map(|zone| Key::of(zone.as_ref()));
        keys.flat_map(|key| {
            let below = [&root, key.prefix()].concat();
            let single = (!key.whole().is_empty()).then(|| Range {
                from: [&root, key.whole()].concat(),
                to: [&root, key.whole(), b"\0"].concat(),
                is_single: true,
            });
            // The octet behind a slash is a zero.
            let end = [&below[..below.len() - 1], b"0"].concat();
            [Some(Range { from: below, to: end, is_single: false }), single].into_iter().flatten()
        })
        .collect()
    }
}

/// Follows stores: what a process offers to those who answer from them.
pub trait Stores {
    /// Begins to follow a store; comes back at once.
    ///
    /// Equal requests share what is followed for as long as anybody holds it: two stanzas that ask for the same, and a
    /// reload that asks for it again.
    ///
    /// # Errors
    /// In words, if it cannot even begin: an endpoint that is none, a certificate that cannot be read.
    fn follow(&self, request: &Request) -> Result<Arc<dyn Following>, String>;
}

/// A store that is being followed; when the last holder lets go, that ends.
pub trait Following: Send + Sync {
    /// The records as answers see them.
    fn index(&self) -> &Arc<Index>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, zones: &[&str]) -> Request {
        let zones = zones.iter().map(|zone| Name::from_text(zone).unwrap()).collect();
        Request { endpoints: Vec::new(), path: path.to_owned(), zones, credentials: None, tls: None }
    }

    #[test]
    fn zones_have_ranges() {
        let cases: [(&str, &[&str], &[&str]); 4] = [
            ("/skydns", &["x.Test"], &["/skydns/test/x/ /skydns/test/x0", "/skydns/test/x /skydns/test/x\0"]),
            ("a//b/", &["test"], &["/a/b/test/ /a/b/test0", "/a/b/test /a/b/test\0"]),
            ("/", &["."], &["/ 0"]),
            ("/skydns", &["b.test", ".", "test"], &["/skydns/ /skydns0"]),
        ];
        for (path, zones, expected) in cases {
            let ranges = request(path, zones).canonical().ranges();
            let text = |range: &Range| [range.from.as_slice(), b" ", &range.to].concat();
            let texts: Vec<_> = ranges.iter().map(|range| String::from_utf8(text(range)).unwrap()).collect();
            assert_eq!(texts, expected, "{path} {zones:?}");
        }
    }

    #[test]
    fn requests_that_mean_the_same_are_equal() {
        let same = request("/skydns", &["b.test", "a.test"]).canonical();
        assert_eq!(same, request("skydns/", &["A.test", "b.test", "x.b.test"]).canonical());
        assert_ne!(same, request("/sky", &["a.test", "b.test"]).canonical());
    }
}
