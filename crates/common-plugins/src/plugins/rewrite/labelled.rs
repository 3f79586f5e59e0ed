//! Replacement text with metadata labels and groups of a regular expression: `{1}.{view/name}.local.`. Values are
//! inserted as they are, and never parsed again.

use engine::{Label, Labels, Query};
use gotext::regexp::Regexp;
use wire::NameRef;

use super::pattern::NameText;

/// Replacement of a `name regex FROM TO metadata` rule.
#[derive(Debug)]
pub(super) struct Labelled(Vec<Part>);

#[derive(Debug)]
enum Part {
    Literal(String),
    /// Group of the expression; 0 for the whole match.
    Group(usize),
    /// Metadata label, which [`Labelled::bind`] finds.
    Label(String, Option<Label>),
}

impl Labelled {
    /// Parses the text of a replacement for an expression with this number of groups.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub(super) fn parse(text: &str, groups: usize) -> Result<Labelled, LabelledError> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let (before, after) = rest.split_once('{').map_or((rest, None), |(before, after)| (before, Some(after)));
            if before.contains('}') {
                return Err(LabelledError::Unopened);
            }
            if !before.is_empty() {
                parts.push(Part::Literal(before.to_owned()));
            }
            let Some(after) = after else { break };
            let (inner, after) = after.split_once('}').ok_or(LabelledError::Unclosed)?;
            parts.push(Part::parse(inner, groups)?);
            rest = after;
        }
        Ok(Labelled(parts))
    }

    /// Finds the metadata labels.
    pub(super) fn bind(&mut self, labels: &Labels) {
        for part in &mut self.0 {
            if let Part::Label(name, label) = part {
                *label = Some(labels.label(name));
            }
        }
    }

    /// Returns the replacement for a lowercase name. `None` if the name does not match, or if a label has no value.
    pub(super) fn fill(&self, regex: &Regexp, key: NameRef<'_>, query: &Query) -> Option<String> {
        let text = NameText::of(key);
        let found = regex.captures(text.as_str())?;
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(literal) => filled.push_str(literal),
                Part::Group(group) => filled.push_str(found.get(*group).map_or("", |part| part.as_str())),
                Part::Label(_, label) => {
                    filled.push_str(&label.as_ref()?.value(query).filter(|value| !value.is_empty())?);
                }
            }
        }
        Some(filled)
    }
}

/// Reason why a text is not a replacement.
#[derive(Debug, thiserror::Error)]
pub(super) enum LabelledError {
    /// A `}` without its `{`.
    #[error("it has a `}}` without its `{{`")]
    Unopened,
    /// A `{` without its `}`.
    #[error("it has a `{{` without its `}}`")]
    Unclosed,
    /// Reference to a group that the expression does not have, and the number of its groups.
    #[error("the regular expression has no group `{{{0}}}`; its last one is `{{{1}}}`")]
    NoGroup(String, usize),
    /// Neither a group nor a label.
    #[error("`{{{0}}}` is neither a group, such as `{{1}}`, nor a label, such as `{{view/name}}`")]
    NotALabel(String),
}

impl Part {
    fn parse(inner: &str, groups: usize) -> Result<Part, LabelledError> {
        if let Ok(group) = inner.parse::<i64>() {
            let group = usize::try_from(group).ok().filter(|group| *group <= groups);
            return group.map(Part::Group).ok_or_else(|| LabelledError::NoGroup(inner.to_owned(), groups));
        }
        match inner.split_once('/') {
            Some((plugin, key)) if !plugin.is_empty() && !key.is_empty() && !inner.contains('{') => {
                Ok(Part::Label(inner.to_owned(), None))
            }
            _ => Err(LabelledError::NotALabel(inner.to_owned())),
        }
    }
}
