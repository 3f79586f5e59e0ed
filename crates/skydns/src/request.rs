//! Description of the records that a zone needs and of their store. Equal requests can share one set of watches.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use host::FollowError;
use wire::Name;

use crate::Index;
use crate::key::Key;

/// Set of records in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// URLs of the store's members, in the order in which they are tried.
    pub endpoints: Vec<String>,
    /// Path that all keys start with.
    pub path: String,
    /// Zones to follow. Only their keys are read, so read permission for these is sufficient.
    pub zones: Vec<Name>,
    /// Credentials, if the store requires authentication.
    pub credentials: Option<Credentials>,
    /// Client certificate and trusted CAs, if configured.
    pub tls: Option<Tls>,
}

/// User of the store.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User name.
    pub user: String,
    /// Password. `Debug` does not print it.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// TLS files (PEM). Read again for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Client certificate and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Trusted CA certificates. If `None`, those of the system are used.
    pub authorities: Option<PathBuf>,
}

/// Half-open range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// First key.
    pub from: Vec<u8>,
    /// End of the range, exclusive.
    pub to: Vec<u8>,
    /// True if the range contains a single key: the name of a zone itself.
    pub is_single: bool,
}

impl Request {
    /// Returns the request in canonical form, so that equivalent ones compare equal: sorted zones without duplicates
    /// and subzones, and a path with exactly one slash between segments.
    #[must_use]
    pub fn canonical(&self) -> Request {
        let mut request = self.clone();
        request.path = String::from_utf8_lossy(&self.root()).into_owned();
        let mut zones: Vec<Name> = self.zones.iter().cloned().map(Name::into_lowercase).collect();
        host::sorting::sort_by(&mut zones, |one, other| one.as_bytes().cmp(other.as_bytes()));
        zones.dedup();
        let is_within = |zone: &Name, other: &Name| zone != other && zone.as_ref().is_within(other.as_ref());
        request.zones =
            zones.iter().filter(|zone| !zones.iter().any(|other| is_within(zone, other))).cloned().collect();
        request
    }

    /// Returns the common prefix of all keys: the path between two slashes, or a single slash.
    #[must_use]
    pub fn root(&self) -> Vec<u8> {
        let segments = self.path.split('/').filter(|segment| !segment.is_empty());
        segments.fold(b"/".to_vec(), |root, segment| [&root, segment.as_bytes(), b"/"].concat())
    }

    /// Returns the key ranges of the zones: for each zone, the keys below it and its own key.
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
            // `0` is the byte after `/`.
            let end = [&below[..below.len() - 1], b"0"].concat();
            [Some(Range { from: below, to: end, is_single: false }), single].into_iter().flatten()
        })
        .collect()
    }
}

/// Provides stores to the plugins that serve zones from them.
pub trait Stores {
    /// Starts to follow a store. Returns immediately.
    ///
    /// Equal requests share their watches for as long as anyone holds the result: two server blocks with the same
    /// options, or a reload with unchanged ones.
    ///
    /// # Errors
    /// Returns an error if it cannot start, for example if an endpoint is invalid or a certificate is unreadable.
    fn follow(&self, request: &Request) -> Result<Arc<dyn StoreHandle>, FollowError>;
}

/// Handle of a followed store. The watches end when the last reference is dropped.
pub trait StoreHandle: Send + Sync {
    /// Returns the index of the store.
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
    fn computes_the_key_ranges_of_zones() {
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
    fn ignores_order_subzones_and_slashes_around_the_path() {
        let same = request("/skydns", &["b.test", "a.test"]).canonical();
        assert_eq!(same, request("skydns/", &["A.test", "b.test", "x.b.test"]).canonical());
        assert_ne!(same, request("/sky", &["a.test", "b.test"]).canonical());
    }
}
