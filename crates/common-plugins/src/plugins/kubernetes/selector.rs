//! Offline syntax check of label selectors (Kubernetes, "Labels and selectors").

use core::error::Error;
use core::fmt;

/// Requirement of a label selector that is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SelectorError {
    requirement: String,
    problem: SelectorProblem,
}

/// Problem with a requirement of a label selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SelectorProblem {
    /// It compares numbers.
    Comparison,
    /// Its operator does not exist.
    Operator,
    /// It has none of the forms of a requirement.
    Form,
    /// Its key is missing or invalid.
    Key,
    /// One of its values is invalid.
    Value,
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            SelectorProblem::Comparison => "compares numbers, which label selectors do not support",
            SelectorProblem::Operator => "has an operator that does not exist",
            SelectorProblem::Form => "is neither `KEY=VALUE`, `KEY in (…)` nor `KEY`",
            SelectorProblem::Key => "has no valid key",
            SelectorProblem::Value => "has a value that no label can have",
        };
        write!(f, "`{}` {problem}", self.requirement)
    }
}

impl Error for SelectorError {}

/// Checks that a text is a comma-separated list of equality or set-based requirements.
///
/// # Errors
/// The first invalid requirement.
pub(super) fn check(text: &str) -> Result<(), SelectorError> {
    requirements(text).into_iter().map(str::trim).try_for_each(|requirement| {
        check_one(requirement).map_err(|problem| SelectorError { requirement: requirement.to_owned(), problem })
    })
}

/// Splits the text at commas outside of parentheses.
fn requirements(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    text.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

fn check_one(requirement: &str) -> Result<(), SelectorProblem> {
    if requirement.contains(['<', '>']) {
        return Err(SelectorProblem::Comparison);
    }
    let operator = requirement.find(['!', '=']).filter(|at| *at > 0);
    let (key, values) = if let Some(at) = operator {
        let (key, rest) = requirement.split_at(at);
        let value = rest.strip_prefix("!=").or_else(|| rest.strip_prefix("==")).or_else(|| rest.strip_prefix('='));
        (key.trim(), vec![value.ok_or(SelectorProblem::Operator)?.trim()])
    } else {
        let mut words = requirement.trim_start_matches('!').trim().splitn(2, char::is_whitespace);
        let key = words.next().unwrap_or_default();
        match words.next().map(str::trim) {
            None => (key, Vec::new()),
            Some(set) => (key, set_values(set).ok_or(SelectorProblem::Form)?),
        }
    };
    if !is_key(key) {
        return Err(SelectorProblem::Key);
    }
    if values.iter().all(|value| is_value(value)) { Ok(()) } else { Err(SelectorProblem::Value) }
}

/// Values of `in (a, b)` or `notin (a, b)`.
fn set_values(text: &str) -> Option<Vec<&str>> {
    let rest = text.strip_prefix("notin").or_else(|| text.strip_prefix("in"))?.trim();
    let inside = rest.strip_prefix('(')?.strip_suffix(')')?;
    Some(inside.split(',').map(str::trim).collect())
}

/// Returns true for a label key: a name with an optional DNS prefix and a slash.
fn is_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_prefix = |prefix: &str| {
        !prefix.is_empty()
            && prefix.len() <= 253
            && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
    };
    !name.is_empty() && is_value(name) && prefix.is_none_or(is_prefix)
}

/// Returns true for a label value: at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends;
/// or empty.
fn is_value(value: &str) -> bool {
    let outer = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    value.len() <= 63
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && outer(value.bytes().next())
        && outer(value.bytes().next_back())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn accepts_valid_selectors_and_refuses_others() {
        for good in ["a=b", "a==b", "a!=b", "a", "!a", "a in (x, y)", "a notin (x)", "x.test/a=b,c", "a=", "a = b"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "a>1", "a lt 3", "a in x", "a=b c", "-a=b", "a,,b", "a=%", "a in (x"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
