//! Usage line: the syntax shown to users, which also defines how many words are allowed.

use core::fmt;

/// Usage line, such as `success CAPACITY [TTL] [MINTTL]` or `except NAME...`.
///
/// Words in capitals are placeholders, `[…]` is optional, `...` may be repeated, and `a|b` is a choice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Usage(pub &'static str);

impl Usage {
    /// Returns the first word.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// Returns the words after the first.
    #[must_use]
    pub fn arguments(self) -> &'static str {
        self.0.split_once(' ').map_or("", |(_, arguments)| arguments)
    }

    /// Returns the minimum and maximum number of words after the name; `None` if there is no maximum.
    #[must_use]
    pub(crate) fn arity(self) -> (usize, Option<usize>) {
        let (mut least, mut most, mut depth) = (0, Some(0), 0usize);
        for word in self.arguments().split(' ').filter(|word| !word.is_empty()) {
            depth += word.matches('[').count();
            let repeated = word.trim_end_matches(']').ends_with("...");
            least += usize::from(depth == 0);
            most = if repeated { None } else { most.map(|most| most + 1) };
            depth = depth.saturating_sub(word.matches(']').count());
        }
        (least, most)
    }

    /// Returns true if this number of words may follow the name.
    #[must_use]
    pub fn takes(self, words: usize) -> bool {
        let (least, most) = self.arity();
        words >= least && most.is_none_or(|most| words <= most)
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_the_number_of_words_from_a_usage_line() {
        let cases = [
            ("loop", (0, Some(0))),
            ("ttl SECONDS", (1, Some(1))),
            ("success CAPACITY [TTL] [MINTTL]", (1, Some(3))),
            ("except NAME...", (1, None)),
            ("fallthrough [ZONES...]", (0, None)),
            ("disable success|denial [ZONES...]", (1, None)),
            ("serve_stale [DURATION [REFRESH [RESPONSE_TTL]]]", (0, Some(3))),
        ];
        for (text, arity) in cases {
            assert_eq!(Usage(text).arity(), arity, "{text}");
        }
        assert!(Usage("ttl SECONDS").takes(1) && !Usage("ttl SECONDS").takes(2));
        assert_eq!(Usage("ttl SECONDS").name(), "ttl");
    }
}
