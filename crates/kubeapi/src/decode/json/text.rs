//! JSON strings, borrowed from the input unless they contain escapes. `null` and absent fields are empty strings.

use core::fmt;
use std::borrow::Cow;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// JSON string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_none<E: Error>(self) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text<'de>, D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

/// List of strings that usually has one element, which is stored without an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts<'a> {
    first: Option<Text<'a>>,
    more: Vec<Text<'a>>,
}

impl<'a> Texts<'a> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Text<'a>> {
        self.first.iter().chain(&self.more)
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Texts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of strings")
    }

    fn visit_none<E: Error>(self) -> Result<Texts<'de>, E> {
        Ok(Texts::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Texts<'de>, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts<'de>, A::Error> {
        let mut texts = Texts { first: list.next_element()?, more: Vec::new() };
        while let Some(text) = list.next_element()? {
            texts.more.push(text);
        }
        Ok(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borrows_strings_without_escapes() {
        let read = |json: &'static str| serde_json::from_str::<Text<'_>>(json).map(|text| text.0);
        assert!(matches!(read(r#""plain""#), Ok(Cow::Borrowed("plain"))));
        assert!(matches!(read(r#""\u0065scaped""#), Ok(Cow::Owned(text)) if text == "escaped"));
        assert!(matches!(read("null"), Ok(text) if text.is_empty()));
        assert!(read("1").is_err());
    }

    #[test]
    fn reads_lists_of_strings() {
        let read = |json: &'static str| {
            let texts = serde_json::from_str::<Texts<'_>>(json).ok()?;
            assert_eq!(texts.len(), texts.iter().count());
            Some(texts.iter().map(|text| text.to_string()).collect::<Vec<_>>())
        };
        for (json, expected) in [
            ("null", Some(&[][..])),
            ("[]", Some(&[])),
            (r#"["a"]"#, Some(&["a"])),
            (r#"["a",null,"c"]"#, Some(&["a", "", "c"])),
            (r#"["a",1]"#, None),
            (r#""a""#, None),
        ] {
            let expected = expected.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect());
            assert_eq!(read(json), expected, "{json}");
        }
    }
}
