//! Patterns that select names, and their replacements. Both work on lowercase presentation format, the form that people
//! write.

use std::io::Write;

use gotext::regexp::Regexp;
use wire::{Name, NameRef};

/// Maximum length of a name in presentation format. Each byte may become an escape of four characters.
const TEXT_MAX: usize = 4 * wire::NAME_MAX;

/// Name in lowercase presentation format, on the stack.
pub(super) struct NameText {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl NameText {
    /// Text of a lowercase name.
    pub(super) fn of(key: NameRef<'_>) -> NameText {
        let mut bytes = [0; TEXT_MAX];
        let is_plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        if !key.is_root() && key.labels().all(|label| label.iter().all(is_plain)) {
            return NameText { len: write_plain(key, &mut bytes), bytes };
        }
        let mut free = &mut bytes[..];
        // The buffer is large enough for every name.
        let _ = write!(free, "{key}");
        let len = TEXT_MAX - free.len();
        NameText { bytes, len }
    }

    pub(super) fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

/// Writes a name that needs no escapes: the wire format with dots instead of length bytes. Returns the length.
fn write_plain(name: NameRef<'_>, text: &mut [u8; TEXT_MAX]) -> usize {
    let mut at = 0;
    for label in name.labels() {
        text[at..at + label.len()].copy_from_slice(label);
        at += label.len();
        text[at] = b'.';
        at += 1;
    }
    at
}

/// Pattern that selects names.
#[derive(Debug)]
pub(super) enum Pattern {
    /// Exactly this name, in lowercase.
    Exact(Box<Name>),
    /// Names whose text starts with this.
    Prefix(String),
    /// Names whose text ends with this.
    Suffix(String),
    /// Names whose text contains this.
    Substring(String),
    /// Names whose text matches anywhere.
    Regex(Regexp),
}

impl Pattern {
    /// Returns true if a lowercase name matches.
    pub(super) fn matches(&self, key: NameRef<'_>) -> bool {
        match self {
            Pattern::Exact(name) => *name.as_bytes() == *key.as_bytes(),
            _ => self.matches_text(NameText::of(key).as_str()),
        }
    }

    fn matches_text(&self, text: &str) -> bool {
        match self {
            Pattern::Exact(name) => name.to_string() == text,
            Pattern::Prefix(part) => text.starts_with(part.as_str()),
            Pattern::Suffix(part) => text.ends_with(part.as_str()),
            Pattern::Substring(part) => text.contains(part.as_str()),
            Pattern::Regex(regex) => regex.is_match(text),
        }
    }

    /// Returns the replacement for a lowercase name, if it matches. The result may not be a valid name.
    pub(super) fn replace(&self, key: NameRef<'_>, to: &Template) -> Option<String> {
        let text = NameText::of(key);
        let text = text.as_str();
        match self {
            Pattern::Exact(name) => (*name.as_bytes() == *key.as_bytes()).then(|| to.text.clone()),
            Pattern::Prefix(part) => text.strip_prefix(part.as_str()).map(|rest| format!("{}{rest}", to.text)),
            Pattern::Suffix(part) => text.strip_suffix(part.as_str()).map(|rest| format!("{rest}{}", to.text)),
            Pattern::Substring(part) => text.contains(part.as_str()).then(|| text.replace(part.as_str(), &to.text)),
            Pattern::Regex(regex) => to.fill(regex, text),
        }
    }
}

/// Replacement text with references to groups of a regular expression, such as `{1}`.
#[derive(Debug)]
pub(super) struct Template {
    text: String,
    /// Literal text before each reference, with the number of the group.
    parts: Vec<(String, usize)>,
    tail: String,
}

impl Template {
    /// Original text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Text without references.
    pub(super) fn plain(text: String) -> Template {
        Template { tail: text.clone(), text, parts: Vec::new() }
    }

    /// Text with references to the `groups` groups of an expression. Group 0 is the whole match.
    ///
    /// # Errors
    /// [`TooManyGroups`] if it refers to more groups than exist. As in CoreDNS, `{0}` counts as one.
    pub(super) fn with_groups(text: &str, groups: usize) -> Result<Template, TooManyGroups> {
        let mut template = Template { text: text.to_owned(), parts: Vec::new(), tail: String::new() };
        let mut named = Vec::new();
        let (mut rest, mut literal) = (text, String::new());
        while let Some((before, group, after)) = next_place(rest) {
            literal.push_str(before);
            if !named.contains(&group) {
                named.push(group);
            }
            template.parts.push((core::mem::take(&mut literal), group));
            rest = after;
        }
        template.tail = rest.to_owned();
        if named.len() > groups { Err(TooManyGroups) } else { Ok(template) }
    }

    fn fill(&self, regex: &Regexp, text: &str) -> Option<String> {
        let found = regex.captures(text)?;
        let mut filled = String::with_capacity(text.len() + self.text.len());
        for (before, group) in &self.parts {
            filled.push_str(before);
            match found.get(*group) {
                Some(part) => filled.push_str(part.as_str()),
                None if *group < found.len() => {}
                // A reference to a group that does not exist is literal text.
                None => filled.push_str(&format!("{{{group}}}")),
            }
        }
        filled.push_str(&self.tail);
        Some(filled)
    }
}

/// Text that refers to more groups than its expression has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyGroups;

/// First `{DIGITS}` of a text: the text before it, the number, and the text after it.
fn next_place(text: &str) -> Option<(&str, usize, &str)> {
    let opening = text.match_indices('{');
    opening.map(|(open, _)| open).find_map(|open| {
        let close = open + text[open..].find('}')?;
        let digits = &text[open + 1..close];
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let group = digits.parse().ok().filter(|_| is_number)?;
        Some((&text[..open], group, &text[close + 1..]))
    })
}

/// Normalises a name in a rule: lowercase and absolute. The result may not be a valid name.
pub(super) fn absolute(text: &str) -> String {
    let dot = if text.ends_with('.') { "" } else { "." };
    format!("{}{dot}", text.to_lowercase())
}

/// Parses a name that a rule produced.
///
/// # Errors
/// The reason why it is not a valid name.
pub(super) fn name_of(text: &str) -> Result<Name, wire::NameError> {
    Name::from_text(&absolute(text)).map(Name::into_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(pattern: &Pattern, to: &Template, name: &str) -> Option<String> {
        pattern.replace(Name::from_text(name).unwrap().as_ref(), to)
    }

    #[test]
    fn matches_and_replaces_text() {
        let part = |text: &str| text.to_owned();
        let cases = [
            (Pattern::Exact(Box::new(name_of("a.test").unwrap())), "a.test.", Some("b.")),
            (Pattern::Exact(Box::new(name_of("a.test").unwrap())), "x.a.test.", None),
            (Pattern::Prefix(part("foo.")), "foo.bar.", Some("b.bar.")),
            (Pattern::Prefix(part("foo.")), "foobar.", None),
            (Pattern::Suffix(part(".test.")), "x.test.", Some("xb.")),
            (Pattern::Suffix(part("test.")), "mytest.", Some("myb.")),
            (Pattern::Substring(part("x.")), "x.xx.foo.", Some("b.xb.foo.")),
            (Pattern::Regex(Regexp::compile("f.o").unwrap()), "www.foo.", Some("b.")),
            (Pattern::Regex(Regexp::compile("^f.o").unwrap()), "www.foo.", None),
        ];
        for (pattern, name, expected) in cases {
            let to = Template::plain("b.".to_owned());
            assert_eq!(replaced(&pattern, &to, name).as_deref(), expected, "{pattern:?} {name}");
            assert_eq!(pattern.matches(Name::from_text(name).unwrap().as_ref()), expected.is_some());
        }
    }

    #[test]
    fn fills_in_groups() {
        let regex = Regexp::compile(r"^(\w+)-(\w+)(x)?\.").unwrap();
        let pattern = Pattern::Regex(regex);
        for (to, expected) in
            [("{2}.{1}.test", "b.a.test"), ("{0}", "a-b."), ("{3}y.{}{x}{1", "y.{}{x}{1"), ("{1}{1}{9}", "aa{9}")]
        {
            let to = Template::with_groups(to, 3).unwrap();
            assert_eq!(replaced(&pattern, &to, "a-b.test.").as_deref(), Some(expected));
        }
        assert_eq!(Template::with_groups("{0}", 0).err(), Some(TooManyGroups));
        assert_eq!(Template::with_groups("{0}{1}", 1).err(), Some(TooManyGroups));
        assert!(Template::with_groups("{1}{1}", 1).is_ok());
        assert!(Template::with_groups("{99999999999999999999999}", 0).is_ok());
    }

    #[test]
    fn writes_the_longest_name() {
        let mut name = Name::root();
        for label in [63, 63, 63, 61] {
            name.push_label(&[b'('; 63][..label]).unwrap();
        }
        assert_eq!(NameText::of(name.as_ref()).as_str().len(), 250 * 2 + 4);
        for text in [".", "a.", "www.example.org.", "a\\.b.x-_9.", "a\\032b."] {
            assert_eq!(NameText::of(Name::from_text(text).unwrap().as_ref()).as_str(), text);
        }
    }
}
