//! What plugins say about a query to each other: values by label, such as `geoip/country/code`.
//!
//! A value is made when somebody asks for it and at no other time: a label that nobody reads costs nothing. Who publishes
//! a label and who reads it are built in any order, and need not know each other. As in CoreDNS there are values only in
//! the zones for which the directive `metadata` switches them on.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::{Query, Zones};

/// Makes the value of a label for a query; `None` if there is none.
pub type LabelSource = Box<dyn Fn(&Query) -> Option<String> + Send + Sync>;

/// The labels of one server block.
#[derive(Default)]
pub struct Labels {
    sources: Mutex<BTreeMap<String, Arc<OnceLock<LabelSource>>>>,
    zones: Arc<OnceLock<Zones>>,
}

impl Labels {
    /// Says what makes the values of a label; the first to say so does.
    pub fn publish(&self, label: &str, source: impl Fn(&Query) -> Option<String> + Send + Sync + 'static) {
        let _ = self.source(label).set(Box::new(source));
    }

    /// A label to read, whether or not somebody publishes it.
    #[must_use]
    pub fn label(&self, label: &str) -> Label {
        Label { source: self.source(label), zones: Arc::clone(&self.zones) }
    }

    /// A label to read, if somebody publishes or reads it already: for names that are known no sooner than they are asked
    /// for.
    #[must_use]
    pub fn find(&self, label: &str) -> Option<Label> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.get(label).map(|source| Label { source: Arc::clone(source), zones: Arc::clone(&self.zones) })
    }

    /// Labels have values for the names in these zones.
    pub fn switch_on(&self, zones: Zones) {
        let _ = self.zones.set(zones);
    }

    fn source(&self, label: &str) -> Arc<OnceLock<LabelSource>> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(sources.entry(label.to_owned()).or_default())
    }
}

/// A label that can be read.
#[derive(Clone)]
pub struct Label {
    source: Arc<OnceLock<LabelSource>>,
    zones: Arc<OnceLock<Zones>>,
}

impl Label {
    /// Its value for a query; `None` if nobody publishes it, if it has none, or if labels are not switched on for the name
    /// that the client asked.
    #[must_use]
    pub fn value(&self, query: &Query) -> Option<String> {
        let zones = self.zones.get()?;
        let asked = || query.request.name.clone().into_lowercase();
        let switched_on = zones.is_everything() || zones.contain(asked().as_ref());
        if switched_on { self.source.get()?(query) } else { None }
    }
}

impl PartialEq for Label {
    /// Whether it is the same label of the same server block.
    fn eq(&self, other: &Label) -> bool {
        Arc::ptr_eq(&self.source, &other.source)
    }
}

impl Eq for Label {}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Label")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Name;

    #[test]
    fn a_label_has_a_value_where_it_is_switched_on_and_published() {
        let labels = Labels::default();
        let (read, nobody) = (labels.label("who/asks"), labels.label("who/not"));
        let mut query = Query::default();
        query.request.name = Name::from_text("Www.Example.").unwrap();
        labels.publish("who/asks", |query| Some(query.request.name.to_string()));
        assert_eq!(read.value(&query), None);
        labels.switch_on([Name::from_text("example.").unwrap()].into_iter().collect());
        assert_eq!(read.value(&query).as_deref(), Some("Www.Example."));
        assert_eq!(nobody.value(&query), None);
        query.request.name = Name::root();
        assert_eq!(read.value(&query), None);
    }
}
