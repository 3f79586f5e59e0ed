//! Label and field selectors. A relay evaluates them on full objects, as the API server does.

use crate::object::Stored;
use crate::table::Kind;

/// Selector that a relay does not support or cannot parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The label selector cannot be parsed.
    #[error("unable to parse requirement: the label selector `{0}` is invalid")]
    Label(String),
    /// The relay does not evaluate this field.
    #[error(
        "field selector `{0}` is not supported by a relay; use metadata.name, metadata.namespace, or for pods \
         spec.nodeName and status.phase"
    )]
    Field(String),
    /// More requirements than any client sends.
    #[error("a selector has more than {REQUIREMENTS_MAX} requirements")]
    TooMany,
}

/// Maximum number of requirements of a selector, and of values of one of them.
pub const REQUIREMENTS_MAX: usize = 64;

/// Selection of objects of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Namespace, or empty for all.
    pub(crate) namespace: String,
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
    /// Text by which equal filters share what is encoded for them.
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LabelRequirement {
    key: String,
    test: LabelTest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LabelTest {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    path: Path,
    value: String,
    is_equal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Name,
    Namespace,
    NodeName,
    Phase,
}

impl Filter {
    /// Parses the selectors of a request.
    ///
    /// # Errors
    /// A selector that cannot be parsed or is not supported.
    pub fn parse(kind: Kind, namespace: &str, labels: &str, fields: &str) -> Result<Filter, SelectorError> {
        let text = [namespace, labels, fields].join("\n");
        let text = if text == "\n\n" { String::new() } else { text };
        let (labels, fields) = (parse_labels(labels)?, parse_fields(kind, fields)?);
        if labels.len() > REQUIREMENTS_MAX || fields.len() > REQUIREMENTS_MAX {
            return Err(SelectorError::TooMany);
        }
        Ok(Filter { namespace: namespace.to_owned(), labels, fields, text })
    }

    /// Returns true if the filter selects everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns true if the filter selects at most one object, by its name.
    pub(crate) fn is_of_one(&self) -> bool {
        self.fields.iter().any(|field| field.path == Path::Name && field.is_equal)
    }

    pub(crate) fn selects(&self, object: &Stored) -> bool {
        let (namespace, name) = &object.key;
        (self.namespace.is_empty() || *self.namespace == **namespace)
            && self.fields.iter().all(|field| {
                let value = match field.path {
                    Path::Name => name,
                    Path::Namespace => namespace,
                    Path::NodeName => object.text_in(2, 10),
                    Path::Phase => object.text_in(3, 1),
                };
                (value == field.value) == field.is_equal
            })
            && self.labels.iter().all(|label| label.holds(object.label(&label.key)))
    }
}

impl LabelRequirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
        match &self.test {
            LabelTest::Exists => value.is_some(),
            LabelTest::Missing => value.is_none(),
            LabelTest::In(values) => among(values),
            LabelTest::NotIn(values) => !among(values),
        }
    }
}

fn parse_fields(kind: Kind, text: &str) -> Result<Vec<FieldRequirement>, SelectorError> {
    text.split(',').filter(|part| !part.trim().is_empty()).map(|part| field(kind, part.trim())).collect()
}

fn field(kind: Kind, text: &str) -> Result<FieldRequirement, SelectorError> {
    let unknown = || SelectorError::Field(text.chars().take(100).collect());
    let (path, value, is_equal) = if let Some((path, value)) = text.split_once("!=") {
        (path, value, false)
    } else {
        let (path, value) = text.split_once('=').ok_or_else(unknown)?;
        (path, value.trim_start_matches('='), true)
    };
    let path = match path.trim() {
        "metadata.name" => Path::Name,
        "metadata.namespace" if kind.is_namespaced() => Path::Namespace,
        "spec.nodeName" if kind == Kind::Pod => Path::NodeName,
        "status.phase" if kind == Kind::Pod => Path::Phase,
        _ => return Err(unknown()),
    };
    Ok(FieldRequirement { path, value: value.trim().to_owned(), is_equal })
}

fn parse_labels(text: &str) -> Result<Vec<LabelRequirement>, SelectorError> {
    let invalid = || SelectorError::Label(text.chars().take(100).collect());
    let mut requirements = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // A comma within parentheses separates values.
        let open = rest.find('(').unwrap_or(rest.len());
        let end = match rest.find(',') {
            Some(comma) if comma < open => comma,
            None if open == rest.len() => rest.len(),
            _ if open < rest.len() => open + rest[open..].find(')').ok_or_else(invalid)? + 1,
            _ => rest.len(),
        };
        let (part, after) = rest.split_at(end);
        requirements.push(label(part.trim()).ok_or_else(invalid)?);
        rest = after.trim_start();
        if !rest.is_empty() {
            rest = rest.strip_prefix(',').ok_or_else(invalid)?.trim_start();
            if rest.is_empty() {
                return Err(invalid());
            }
        }
        if requirements.len() > REQUIREMENTS_MAX {
            return Err(SelectorError::TooMany);
        }
    }
    Ok(requirements)
}

fn label(text: &str) -> Option<LabelRequirement> {
    let requirement = |key: &str, test| {
        let key = key.trim();
        is_key(key).then(|| LabelRequirement { key: key.to_owned(), test })
    };
    let one = |value: &str| {
        let value = value.trim();
        (!value.contains(|character: char| "=!(), \t".contains(character))).then(|| vec![value.to_owned()])
    };
    if let Some(inside) = text.strip_suffix(')') {
        let (head, values) = inside.split_once('(')?;
        let (key, operator) = head.trim_end().rsplit_once(char::is_whitespace)?;
        let values: Vec<String> = values.split(',').map(|value| Some(one(value)?.remove(0))).collect::<Option<_>>()?;
        if values.len() > REQUIREMENTS_MAX {
            return None;
        }
        return match operator {
            "in" => requirement(key, LabelTest::In(values)),
            "notin" => requirement(key, LabelTest::NotIn(values)),
            _ => None,
        };
    }
    if let Some(key) = text.strip_prefix('!') {
        return requirement(key, LabelTest::Missing);
    }
    if let Some((key, value)) = text.split_once("!=") {
        return requirement(key, LabelTest::NotIn(one(value)?));
    }
    match text.split_once('=') {
        Some((key, value)) => requirement(key, LabelTest::In(one(value.strip_prefix('=').unwrap_or(value))?)),
        None => requirement(text, LabelTest::Exists),
    }
}

/// Returns true for a possible key of a label.
fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|character| character.is_ascii_alphanumeric() || "-_./".contains(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(labels: &str, phase: &str) -> Stored {
        use crate::wire::put_bytes;
        let mut metadata = Vec::new();
        put_bytes(&mut metadata, 1, b"a");
        put_bytes(&mut metadata, 3, b"shop");
        put_bytes(&mut metadata, 6, b"7");
        for (key, value) in labels.split(',').filter_map(|pair| pair.split_once('=')) {
            let mut entry = Vec::new();
            put_bytes(&mut entry, 1, key.as_bytes());
            put_bytes(&mut entry, 2, value.as_bytes());
            put_bytes(&mut metadata, 11, &entry);
        }
        let (mut object, mut status) = (Vec::new(), Vec::new());
        put_bytes(&mut object, 1, &metadata);
        put_bytes(&mut status, 1, phase.as_bytes());
        put_bytes(&mut object, 3, &status);
        Stored::new(Kind::Pod, &object).unwrap()
    }

    #[test]
    fn selects_by_labels_and_fields() {
        let pod = pod("app=web,tier=a", "Running");
        let live = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown";
        for (labels, fields, expected) in [
            ("", "", true),
            ("app=web", "", true),
            ("app==web,tier in (a, b)", "", true),
            ("app in (x,y),tier", "", false),
            ("!app", "", false),
            ("!other,app", "", true),
            ("app!=web", "", false),
            ("other!=x", "", true),
            ("tier notin (b), app=web", "", true),
            ("", "metadata.name=a,metadata.namespace=shop", true),
            ("", "metadata.name!=a", false),
            ("", live, true),
            ("", "status.phase=Failed", false),
            ("", "spec.nodeName=", true),
        ] {
            let filter = Filter::parse(Kind::Pod, "", labels, fields).unwrap();
            assert_eq!(filter.selects(&pod), expected, "{labels} {fields}");
        }
        assert!(!Filter::parse(Kind::Pod, "other", "", "").unwrap().selects(&pod));
        assert!(Filter::parse(Kind::Pod, "", "", "").unwrap().is_everything());
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for labels in ["a in (b", "a b", "a=b c", "(", "a in", ",a", "a,", "a=(b)", "a nor (b)", "=b"] {
            assert!(matches!(Filter::parse(Kind::Pod, "", labels, ""), Err(SelectorError::Label(_))), "{labels}");
        }
        for (kind, fields) in [
            (Kind::Pod, "status.podIP=1"),
            (Kind::Service, "status.phase=Failed"),
            (Kind::Node, "metadata.namespace=a"),
            (Kind::Pod, "a"),
        ] {
            assert!(matches!(Filter::parse(kind, "", "", fields), Err(SelectorError::Field(_))), "{fields}");
        }
        let many = vec!["a"; REQUIREMENTS_MAX + 1].join(",");
        assert_eq!(Filter::parse(Kind::Pod, "", &many, ""), Err(SelectorError::TooMany));
    }
}
