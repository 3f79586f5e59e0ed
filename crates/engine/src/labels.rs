//! Metadata labels: values such as `geoip/country/code` that one plugin publishes for a query and others read.
//!
//! A publisher registers a function that computes the value ([`Labels::publish`]), or sets the value once the answer
//! is known ([`Labels::publish_setter`]). A reader obtains a [`Label`] while it is built, and reads the value for each
//! query. The order in which both are built does not matter.
//!
//! A label without readers costs nothing: values are computed on demand, and a [`LabelSetter`] does not compute values
//! without readers. As in CoreDNS, labels have values only in the zones of the directive *metadata*.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::query::Query;
use crate::zones::Zones;

/// Computes the value of a label for a query; `None` if there is no value.
pub type LabelFunction = Box<dyn Fn(&Query) -> Option<String> + Send + Sync>;

/// The labels of one server block.
#[derive(Default)]
pub struct Labels {
    known: Mutex<BTreeMap<String, Arc<Known>>>,
    zones: Arc<OnceLock<Zones>>,
}

/// Label that a plugin publishes or reads.
#[derive(Default)]
struct Known {
    source: OnceLock<LabelFunction>,
    is_read: AtomicBool,
}

impl Labels {
    /// Registers the function that computes a label. If several plugins publish the same label, the first one wins.
    pub fn publish(&self, label: &str, source: impl Fn(&Query) -> Option<String> + Send + Sync + 'static) {
        let _ = self.known(label).source.set(Box::new(source));
    }

    /// Registers a label that the plugin sets with the returned [`LabelSetter`] while it answers a query.
    #[must_use]
    pub fn publish_setter(&self, label: &'static str) -> LabelSetter {
        self.publish(label, move |query| query.label_value(label));
        LabelSetter { label, known: self.known(label), zones: Arc::clone(&self.zones) }
    }

    /// Returns a label for reading, even if no plugin publishes it.
    #[must_use]
    pub fn label(&self, label: &str) -> Label {
        let known = self.known(label);
        known.is_read.store(true, Ordering::Relaxed);
        Label { known, zones: Arc::clone(&self.zones) }
    }

    /// Returns a label for reading if a plugin already publishes or reads it.
    ///
    /// Use this method for label names that are only known when a query arrives. Finding a label does
    /// not mark it as read: a [`LabelSetter`] sets values only of labels for which a plugin called [`Labels::label`].
    #[must_use]
    pub fn find(&self, label: &str) -> Option<Label> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(label).map(|known| Label { known: Arc::clone(known), zones: Arc::clone(&self.zones) })
    }

    /// Enables labels for names in these zones.
    pub fn switch_on(&self, zones: Zones) {
        let _ = self.zones.set(zones);
    }

    fn known(&self, label: &str) -> Arc<Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(label.to_owned()).or_default())
    }
}

/// Label that a plugin reads.
#[derive(Clone)]
pub struct Label {
    known: Arc<Known>,
    zones: Arc<OnceLock<Zones>>,
}

impl Label {
    /// Returns the value for a query.
    ///
    /// `None` if no plugin publishes the label, if the query has no value, or if labels are not enabled for the name
    /// in the client's request.
    #[must_use]
    pub fn value(&self, query: &Query) -> Option<String> {
        let zones = self.zones.get()?;
        let asked = || query.request.name.clone().into_lowercase();
        let switched_on = zones.is_everything() || zones.contain(asked().as_ref());
        if switched_on { self.known.source.get()?(query) } else { None }
    }
}

impl PartialEq for Label {
    /// Returns true for the same label of the same server block.
    fn eq(&self, other: &Label) -> bool {
        Arc::ptr_eq(&self.known, &other.known)
    }
}

impl Eq for Label {}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Label")
    }
}

/// Sets the values of a label while a query is answered.
pub struct LabelSetter {
    label: &'static str,
    known: Arc<Known>,
    zones: Arc<OnceLock<Zones>>,
}

impl LabelSetter {
    /// Sets the value for a query, in place of an earlier one. `value` runs only if a plugin reads the label.
    ///
    /// A value set in [`Plugin::resolve`](crate::Plugin::resolve) applies to all queries that share the exchange. A
    /// value set in a subquery below a step applies to the query that asked.
    pub fn set(&self, query: &Query, value: impl FnOnce() -> String) {
        if self.known.is_read.load(Ordering::Relaxed) && self.zones.get().is_some() {
            query.set_label(self.label, value());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Name;

    #[test]
    fn has_values_only_if_published_and_enabled() {
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

    #[test]
    fn keeps_a_value_only_if_a_plugin_reads_it() {
        let labels = Labels::default();
        let (read, unread) = (labels.publish_setter("who/is-read"), labels.publish_setter("who/is-not"));
        let query = Query::default();
        let label = labels.label("who/is-read");
        read.set(&query, || unreachable!("labels are not switched on"));
        labels.switch_on(Zones::all());
        unread.set(&query, || unreachable!("no plugin reads it"));
        read.set(&query, || "one".to_owned());
        read.set(&query, || "two".to_owned());
        assert_eq!(label.value(&query).as_deref(), Some("two"));
        assert_eq!(labels.find("who/is-not").and_then(|label| label.value(&query)), None);
    }
}
