//! Label selectors of objects.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::or_default;

/// Label selector (`metav1.LabelSelector`). An empty one selects everything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Selector {
    /// Labels that must have these values.
    #[serde(deserialize_with = "or_default")]
    pub match_labels: BTreeMap<String, String>,
    /// Further conditions.
    #[serde(deserialize_with = "or_default")]
    pub match_expressions: Vec<Expression>,
}

/// Condition on a label.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Expression {
    /// Key of the label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Values for `In` and `NotIn`.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<String>,
}

impl Selector {
    /// Returns true if it selects an object with these labels.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        contains(labels, &self.match_labels) && self.match_expressions.iter().all(|one| one.matches(labels))
    }

    /// Returns true if it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}

impl Expression {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let is_listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator.as_str() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

/// Returns true if `labels` has all of `wanted`.
pub(crate) fn contains(labels: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}
