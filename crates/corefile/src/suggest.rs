//! Spelling suggestions for misspelled words.

/// Maximum number of characters in a word to compare: longer than any directive or option, and short enough to be
/// cheap.
const WORD_MAX: usize = 40;

/// Returns the word in `known` that is closest to `word`, if it is close enough: about one typo per three characters. A
/// typo is an inserted, missing, replaced or transposed character. Case does not matter. The first of equally close
/// words wins.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = folded(word)?;
    let slips_max = word.len().div_ceil(3).min(3);
    known
        .filter_map(|candidate| Some((slips(&word, &folded(candidate)?), candidate)))
        .filter(|&(slips, candidate)| slips <= slips_max && slips < candidate.chars().count())
        .min_by_key(|&(slips, _)| slips)
        .map(|(_, candidate)| candidate)
}

fn folded(word: &str) -> Option<Vec<char>> {
    let word: Vec<char> = word.chars().flat_map(char::to_lowercase).take(WORD_MAX + 1).collect();
    (1..=WORD_MAX).contains(&word.len()).then_some(word)
}

/// Returns the optimal string alignment distance. The algorithm needs only three rows of the table.
fn slips(a: &[char], b: &[char]) -> usize {
    let mut earlier = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for row in 1..=a.len() {
        let mut current = vec![row; b.len() + 1];
        for column in 1..=b.len() {
            let replaced = above[column - 1] + usize::from(a[row - 1] != b[column - 1]);
            let mut best = replaced.min(above[column] + 1).min(current[column - 1] + 1);
            if row > 1 && column > 1 && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1] {
                best = best.min(earlier[column - 2] + 1);
            }
            current[column] = best;
        }
        earlier = std::mem::replace(&mut above, current);
    }
    above[b.len()]
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

    #[test]
    fn computes_edit_distances() {
        for (a, b, expected) in
            [("", "abc", 3), ("abc", "", 3), ("abc", "acb", 1), ("ca", "abc", 3), ("kitten", "sitting", 3)]
        {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(slips(&chars(a), &chars(b)), expected, "{a} {b}");
        }
    }
}
