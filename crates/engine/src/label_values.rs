//! Label values that plugins set while they answer one query.

/// Label values of one query, at most one for each label.
#[derive(Clone, Default)]
pub(crate) struct LabelValues(Vec<(&'static str, String)>);

impl LabelValues {
    pub(crate) fn get(&self, label: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == label).map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, label: &'static str, value: String) {
        self.0.retain(|(known, _)| *known != label);
        self.0.push((label, value));
    }

    /// Merges `later`, whose values win.
    pub(crate) fn extend(&mut self, later: LabelValues) {
        later.0.into_iter().for_each(|(label, value)| self.set(label, value));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
