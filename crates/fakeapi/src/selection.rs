//! Selection of objects by namespace, labels and fields.

use core::fmt;

use cluster::{Selector, SelectorError};
use serde_json::Value;

/// Selection of objects of a resource.
pub(crate) struct Selection {
    namespace: String,
    labels: Selector,
    fields: Vec<FieldTest>,
}

impl Selection {
    /// Parses label and field selectors. An empty namespace selects all.
    pub(crate) fn parse(namespace: &str, labels: &str, fields: &str) -> Result<Selection, SelectionError> {
        let labels = Selector::parse(labels).map_err(SelectionError::Labels)?;
        let tests = fields.split(',').filter(|field| !field.is_empty()).map(FieldTest::parse);
        let tests: Option<Vec<_>> = tests.collect();
        let fields = tests.ok_or_else(|| SelectionError::Fields(fields.to_owned()))?;
        Ok(Selection { namespace: namespace.to_owned(), labels, fields })
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        (self.namespace.is_empty() || metadata["namespace"] == *self.namespace)
            && self.labels.matches(|key| metadata["labels"][key].as_str())
            && self.fields.iter().all(|field| field.matches(object))
    }
}

/// Error in a selector of a request.
#[derive(Debug)]
pub(crate) enum SelectionError {
    /// Invalid label selector.
    Labels(SelectorError),
    /// Field selector without `=` or `!=`.
    Fields(String),
}

impl fmt::Display for SelectionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectionError::Labels(error) => error.fmt(out),
            SelectionError::Fields(text) => write!(out, "field selector `{text}` has no `=` or `!=`"),
        }
    }
}

impl core::error::Error for SelectionError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        if let SelectionError::Labels(error) = self { Some(error) } else { None }
    }
}

struct FieldTest {
    pointer: String,
    value: String,
    equal: bool,
}

impl FieldTest {
    fn parse(text: &str) -> Option<FieldTest> {
        let (path, value, equal) = match text.split_once("!=") {
            Some((path, value)) => (path, value, false),
            None => text.split_once('=').map(|(path, value)| (path, value.trim_start_matches('='), true))?,
        };
        Some(FieldTest { pointer: format!("/{}", path.replace('.', "/")), value: value.to_owned(), equal })
    }

    fn matches(&self, object: &Value) -> bool {
        let found = object.pointer(&self.pointer).and_then(Value::as_str).unwrap_or_default();
        (found == self.value) == self.equal
    }
}
