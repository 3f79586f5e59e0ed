//! Patterns of names: `www.example.org.` is that name, `*.example.org.` all names below.

use wire::{Name, NameError, NameRef};

/// Pattern of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamePattern {
    name: Name,
    scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Exact,
    Below,
    AtOrBelow,
}

impl NamePattern {
    /// Parses a name, or `*.` and a name.
    pub(super) fn parse(text: &str) -> Result<NamePattern, NameError> {
        let (name, scope) = match text.strip_prefix("*.") {
            Some("") => (".", Scope::Below),
            Some(zone) => (zone, Scope::Below),
            None => (text, Scope::Exact),
        };
        Ok(NamePattern { name: Name::from_text(name)?, scope })
    }

    /// Parses the name of a zone: that name and all names below.
    pub(super) fn zone(text: &str) -> Result<NamePattern, NameError> {
        Ok(NamePattern { name: Name::from_text(text)?, scope: Scope::AtOrBelow })
    }

    pub(super) fn matches(&self, name: NameRef<'_>) -> bool {
        let pattern = self.name.as_ref();
        match self.scope {
            Scope::Exact => name.same(pattern),
            Scope::Below => name.len() > pattern.len() && name.is_within(pattern),
            Scope::AtOrBelow => name.is_within(pattern),
        }
    }
}
