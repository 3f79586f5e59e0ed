//! Offline syntax check of label selectors (Kubernetes, "Labels and selectors").

/// Checks that a text is a comma-separated list of equality or set-based requirements.
///
/// # Errors
/// The first invalid requirement.
pub(super) fn check(text: &str) -> Result<(), String> {
    requirements(text).into_iter().try_for_each(|requirement| check_one(requirement.trim()))
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

fn check_one(requirement: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("`{requirement}` {what}"));
    if requirement.contains(['<', '>']) {
        return wrong("compares numbers, which label selectors do not support");
    }
    let operator = requirement.find(['!', '=']).filter(|at| *at > 0);
    let (key, values) = if let Some(at) = operator {
        let (key, rest) = requirement.split_at(at);
        let value = rest.strip_prefix("!=").or_else(|| rest.strip_prefix("==")).or_else(|| rest.strip_prefix('='));
        let Some(value) = value else { return wrong("has an operator that does not exist") };
        (key.trim(), vec![value.trim()])
    } else {
        let mut words = requirement.trim_start_matches('!').trim().splitn(2, char::is_whitespace);
        let key = words.next().unwrap_or_default();
        match words.next().map(str::trim) {
            None => (key, Vec::new()),
            Some(set) => match set_values(set) {
                Some(values) => (key, values),
                None => return wrong("is neither `KEY=VALUE`, `KEY in (…)` nor `KEY`"),
            },
        }
    };
    if !is_key(key) {
        return wrong("has no valid key");
    }
    if values.iter().all(|value| is_value(value)) { Ok(()) } else { wrong("has a value that no label can have") }
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
            && prefix.bytes().all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.'))
    };
    !name.is_empty() && is_value(name) && prefix.is_none_or(is_prefix)
}

/// Returns true for a label value: at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends;
/// or empty.
fn is_value(value: &str) -> bool {
    let outer = |octet: Option<u8>| octet.is_none_or(|octet| octet.is_ascii_alphanumeric());
    value.len() <= 63
        && value.bytes().all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.'))
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
