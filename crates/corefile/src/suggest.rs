//! Spelling suggestions for misspelled words.

use strsim::osa_distance;

/// Maximum number of characters in a word to compare: longer than any directive or option, and short enough to be
/// cheap.
const WORD_MAX: usize = 40;

/// Returns the word in `known` that is closest to `word`, if it is close enough: about one typo per three characters. A
/// typo is an inserted, missing, replaced or transposed character. Case does not matter. The first of equally close
/// words wins.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = folded(word)?;
    let slips_max = word.chars().count().div_ceil(3).min(3);
    known
        .filter_map(|candidate| Some((osa_distance(&word, &folded(candidate)?), candidate)))
        .filter(|&(slips, candidate)| slips <= slips_max && slips < candidate.chars().count())
        .min_by_key(|&(slips, _)| slips)
        .map(|(_, candidate)| candidate)
}

fn folded(word: &str) -> Option<String> {
    let word: String = word.chars().flat_map(char::to_lowercase).take(WORD_MAX + 1).collect();
    (1..=WORD_MAX).contains(&word.chars().count()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_known_words_for_typos_only() {
        let known = ["forward", "cache", "kubernetes", "log", "loop", "ttl", "health", "acl", "any", "errors"];
        for (word, expected) in [
            ("foward", Some("forward")),
            ("Forward", Some("forward")),
            ("kubernets", Some("kubernetes")),
            ("kuberentes", Some("kubernetes")),
            ("cahce", Some("cache")),
            ("chache", Some("cache")),
            ("lgo", Some("log")),
            ("logs", Some("log")),
            ("tll", Some("ttl")),
            ("error", Some("errors")),
            ("proxy", None),
            ("x", None),
            ("", None),
            ("upstream", None),
        ] {
            assert_eq!(did_you_mean(word, known.into_iter()), expected, "{word}");
        }
        assert_eq!(did_you_mean(&"a".repeat(100_000), known.into_iter()), None);
        assert_eq!(did_you_mean("loo", ["log", "loop"].into_iter()), Some("log"));
    }
}
