//! Release of CoreDNS: its number, and how users write it.

use core::fmt;
use core::str::FromStr;

/// Release of CoreDNS, such as 1.15.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    major: u16,
    minor: u16,
    patch: u16,
}

impl Release {
    /// The newest release whose words are known.
    pub const NEWEST: Release = Release::new(1, 15, 0);
    /// The oldest release whose words are known.
    pub const OLDEST: Release = Release::new(1, 11, 0);

    /// Creates a release from its three numbers.
    #[must_use]
    pub const fn new(major: u16, minor: u16, patch: u16) -> Release {
        Release { major, minor, patch }
    }

    /// Reads `coredns`, which is the newest release, or `coredns@VERSION`.
    ///
    /// # Errors
    /// The text is neither, or the words of the version are not known.
    pub fn of_server(text: &str) -> Result<Release, ReleaseError> {
        match text.split_once('@') {
            Some(("coredns", version)) => version.parse(),
            None if text == "coredns" => Ok(Release::NEWEST),
            _ => Err(ReleaseError::NotCoreDns),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Release {
    type Err = ReleaseError;

    /// Reads `1.14.7`, `v1.14.7`, or `1.14`, which is 1.14.0.
    fn from_str(text: &str) -> Result<Release, ReleaseError> {
        let numbers: Option<Vec<u16>> =
            text.strip_prefix('v').unwrap_or(text).split('.').map(|number| number.parse().ok()).collect();
        let release = match numbers.as_deref() {
            Some([major, minor]) => Release::new(*major, *minor, 0),
            Some([major, minor, patch]) => Release::new(*major, *minor, *patch),
            _ => return Err(ReleaseError::NotARelease),
        };
        // Patches of the newest minor release may come after this program. They add no words.
        let is_known = Release::OLDEST <= release
            && (release.major, release.minor) <= (Release::NEWEST.major, Release::NEWEST.minor);
        if is_known { Ok(release) } else { Err(ReleaseError::Unknown) }
    }
}

/// Text that names no release with known words. It is the user's, so only another text helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// It does not start with `coredns`.
    #[error("expected `coredns` or `coredns@VERSION`, such as coredns@{}", Release::NEWEST)]
    NotCoreDns,
    /// It is not a version.
    #[error("not a version of CoreDNS, such as {}", Release::NEWEST)]
    NotARelease,
    /// The words of this release are not known.
    #[error("unknown version; this program knows CoreDNS {} to {}", Release::OLDEST, Release::NEWEST)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::{Release, ReleaseError};

    #[test]
    fn reads_releases_with_known_words() {
        for (text, release) in [
            ("1.15.0", Ok(Release::NEWEST)),
            ("v1.14.7", Ok(Release::new(1, 14, 7))),
            ("1.12", Ok(Release::new(1, 12, 0))),
            ("1.15.3", Ok(Release::new(1, 15, 3))),
            ("1.10.1", Err(ReleaseError::Unknown)),
            ("1.16.0", Err(ReleaseError::Unknown)),
            ("2", Err(ReleaseError::NotARelease)),
            ("1.x", Err(ReleaseError::NotARelease)),
            ("", Err(ReleaseError::NotARelease)),
        ] {
            assert_eq!(text.parse(), release, "{text}");
        }
        assert!(Release::new(1, 9, 9) < Release::OLDEST);
        assert_eq!(Release::new(1, 14, 7).to_string(), "1.14.7");
    }
}
