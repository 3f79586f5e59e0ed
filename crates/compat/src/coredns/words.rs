//! Words of CoreDNS, from the table `words.txt`.

use super::Release;

/// The table. Its head describes the format.
const TABLE: &str = include_str!("words.txt");

/// Directive of CoreDNS.
pub(super) struct Words {
    /// First release that has it.
    pub(super) since: Release,
    properties: &'static str,
}

impl Words {
    /// Returns the words of a directive; `None` if no release has it.
    pub(super) fn of(directive: &str) -> Option<Words> {
        lines().find_map(|line| {
            let (first, properties) = line.split_once(' ').unwrap_or((line, ""));
            let (name, since) = entry(first);
            (name == directive).then_some(Words { since: since.unwrap_or(Release::OLDEST), properties })
        })
    }

    /// Returns the first release that has a property in the block of the directive; `None` if no release has it.
    pub(super) fn since(&self, property: &str) -> Option<Release> {
        let mut entries = self.properties.split(' ').map(entry);
        let found = entries.clone().find(|(name, _)| *name == property).or(entries.find(|(name, _)| *name == "*"));
        found.map(|(_, since)| since.unwrap_or(self.since))
    }
}

fn lines() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

fn entry(word: &'static str) -> (&'static str, Option<Release>) {
    match word.split_once('@') {
        Some((name, release)) => (name, release.parse().ok()),
        None => (word, None),
    }
}

#[cfg(test)]
mod tests {
    use super::{Release, Words, lines};

    #[test]
    fn the_table_is_well_formed() {
        let mut names: Vec<&str> = Vec::new();
        for word in lines().flat_map(|line| line.split(' ')) {
            assert!(!word.is_empty(), "two spaces in a row");
            if let Some((_, release)) = word.split_once('@') {
                let release: Release = release.parse().expect(word);
                assert!(release > Release::OLDEST && release <= Release::NEWEST, "{word}");
            }
        }
        for line in lines() {
            let name = line.split([' ', '@']).next().expect("a name");
            assert!(!names.contains(&name), "{name} is listed twice");
            names.push(name);
        }
    }

    #[test]
    fn finds_the_release_of_a_word() {
        let of = |directive, property| Words::of(directive).and_then(|words| words.since(property));
        assert_eq!(of("forward", "expire"), Some(Release::OLDEST));
        assert_eq!(of("forward", "next"), Some(Release::new(1, 11, 4)));
        assert_eq!(of("https", "max_connections"), Some(Release::new(1, 14, 0)), "as old as the directive");
        assert_eq!(of("hosts", "192.0.2.1"), Some(Release::OLDEST), "a line without a property");
        assert_eq!(of("hosts", "fallthrough_unsupported"), Some(Release::new(1, 14, 7)));
        assert_eq!(of("forward", "http3"), None);
        assert!(Words::of("istio").is_none());
        assert_eq!(Words::of("siit").map(|words| words.since), Some(Release::NEWEST));
    }
}
