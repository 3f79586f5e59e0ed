//! Selection of objects by namespace, labels and fields.

use cluster::Selector;
use serde_json::Value;

/// Selection of objects of a resource.
pub(crate) struct Selection {
    namespace: String,
    labels: Selector,
    fields: Vec<FieldTest>,
}

impl Selection {
    /// Parses label and field selectors. An empty namespace selects all. The error describes an invalid selector.
    pub(crate) fn parse(namespace: &str, labels: &str, fields: &str) -> Result<Selection, String> {
        let labels = Selector::parse(labels).map_err(|error| error.to_string())?;
        let fields = fields.split(',').filter(|field| !field.is_empty());
        let fields = fields.map(FieldTest::parse).collect::<Option<Vec<_>>>().ok_or("bad field selector")?;
        Ok(Selection { namespace: namespace.to_owned(), labels, fields })
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        (self.namespace.is_empty() || metadata["namespace"] == *self.namespace)
            && self.labels.matches(|key| metadata["labels"][key].as_str())
            && self.fields.iter().all(|field| field.matches(object))
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
