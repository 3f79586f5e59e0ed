//! Response changes of rewrite rules: restored names, TTLs and response codes.

use config::options::{Args, Problem};
use wire::{Name, NameRef};

use super::pattern::{Pattern, Template, name_of};

/// Change to a name in a response.
#[derive(Debug)]
pub(super) enum Change {
    /// Replaces the rewritten query name by the client's, also at the end of longer names.
    Back,
    /// Replaces a suffix.
    Suffix { from: String, to: String },
    /// Replaces matches of a regular expression.
    Matching(Pattern, Template),
}

impl Change {
    /// Returns the changed name. `rewritten` and `original` are the query name after and before the rule. Returns
    /// `name` unchanged if the change does not apply or its result is not a valid name.
    pub(super) fn apply(&self, name: Name, rewritten: NameRef<'_>, original: NameRef<'_>) -> Name {
        match self {
            Change::Back => moved(name.as_ref(), rewritten, original).unwrap_or(name),
            Change::Suffix { from, to } => {
                let text = name.to_string();
                let lower = text.to_ascii_lowercase();
                let head = lower.strip_suffix(from.as_str()).and_then(|head| text.get(..head.len()));
                head.and_then(|head| Name::from_text(&format!("{head}{to}")).ok()).unwrap_or(name)
            }
            Change::Matching(pattern, to) => {
                let changed = pattern.replace(name.clone().into_lowercase().as_ref(), to);
                changed.and_then(|text| name_of(&text).ok()).unwrap_or(name)
            }
        }
    }
}

/// Returns a name at or below `from` with `to` in its place. Returns `None` for other names, for the root as `from`,
/// and if the result would be too long.
fn moved(name: NameRef<'_>, from: NameRef<'_>, to: NameRef<'_>) -> Option<Name> {
    let is_part = !from.is_root() || name.is_root();
    let mut rest = name.prefix_len(from).filter(|_| is_part)?;
    let mut moved = Name::root();
    for label in name.labels() {
        if rest == 0 {
            break;
        }
        moved.push_label(label).ok()?;
        rest -= label.len() + 1;
    }
    moved.append(to).ok()?;
    Some(moved)
}

/// Range of TTLs that a rule clamps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    least: u32,
    most: u32,
}

impl Times {
    /// Parses `SECONDS`, `MIN-MAX`, `-MAX` or `MIN-`.
    pub(super) fn read(args: &mut Args<'_>) -> Result<Times, Problem> {
        let word = args.word()?;
        Times::of(&word.text)
            .ok_or_else(|| args.bad(word, "a time in seconds or a range of them: `30`, `30-60`, `30-`, `-60`"))
    }

    fn of(text: &str) -> Option<Times> {
        let number = |text: &str, absent| if text.is_empty() { Some(absent) } else { text.parse().ok() };
        let times = match text.split_once('-') {
            None => text.parse().ok().map(|seconds| Times { least: seconds, most: seconds })?,
            Some(("", "")) => return None,
            Some((least, most)) => Times { least: number(least, 0)?, most: number(most, u32::MAX)? },
        };
        (times.least <= times.most).then_some(times)
    }

    pub(super) fn apply(self, ttl: u32) -> u32 {
        ttl.clamp(self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ttls_and_ranges() {
        let cases = [("30", 30, 30), ("30-60", 30, 60), ("-60", 0, 60), ("30-", 30, u32::MAX), ("0", 0, 0)];
        for (text, least, most) in cases {
            assert_eq!(Times::of(text), Some(Times { least, most }), "{text}");
        }
        for bad in ["", "-", "60-30", "x", "1-x", "-1-2", "99999999999", "1-2-3"] {
            assert_eq!(Times::of(bad), None, "{bad}");
        }
        assert_eq!([5, 40, 70].map(|ttl| Times { least: 30, most: 60 }.apply(ttl)), [30, 40, 60]);
    }

    #[test]
    fn restores_the_name_and_names_below_it() {
        let name = |text: &str| Name::from_text(text).unwrap();
        let long = format!("{0}.{0}.{0}.new.test.", "a".repeat(63));
        let cases = [
            ("new.test.", "new.test.", "Old.test.", "Old.test."),
            ("x.Y.NEW.test.", "new.test.", "old.test.", "x.Y.old.test."),
            ("xnew.test.", "new.test.", "old.test.", "xnew.test."),
            ("test.", "new.test.", "old.test.", "test."),
            (".", ".", "old.test.", "old.test."),
            ("x.test.", ".", "old.test.", "x.test."),
            (&long, "new.test.", "much.longer.name.of.the.client.that.does.not.fit.in.the.place.test.", &long),
        ];
        for (before, rewritten, original, after) in cases {
            let changed = Change::Back.apply(name(before), name(rewritten).as_ref(), name(original).as_ref());
            assert_eq!(changed.to_string(), after, "{before} with {rewritten} -> {original}");
        }
    }

    #[test]
    fn restores_suffixes() {
        let name = |text: &str| Name::from_text(text).unwrap();
        let change = Change::Suffix { from: ".b.test.".to_owned(), to: ".a.test.".to_owned() };
        for (before, after) in [("X.B.Test.", "X.a.test."), ("b.test.", "b.test."), ("x.c.test.", "x.c.test.")] {
            assert_eq!(change.apply(name(before), NameRef::ROOT, NameRef::ROOT).to_string(), after);
        }
    }
}
