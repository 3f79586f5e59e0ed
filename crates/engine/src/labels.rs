//! What plugins say about a query to each other: values by label, such as `geoip/country/code`.
//!
//! A value is made when somebody asks for it and at no other time, or, where it comes to be with the answer, kept with the
//! query once it is known: a label that nobody reads costs nothing. Who publishes a label and who reads it are built in any
//! order, and need not know each other. As in CoreDNS there are values only in the zones for which the directive `metadata`
//! switches them on.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::{Query, Zones};

/// Makes the value of a label for a query; `None` if there is none.
pub type LabelSource = Box<dyn Fn(&Query) -> Option<String> + Send + Sync>;

/// The labels of one server block.
#[derive(Default)]
pub struct Labels {
    known: Mutex<BTreeMap<String, Arc<Known>>>,
    zones: Arc<OnceLock<Zones>>,
}

/// A label that somebody publishes or reads.
#[derive(Default)]
struct Known {
    source: OnceLock<LabelSource>,
    is_read: AtomicBool,
}

impl Labels {
    /// Says what makes the values of a label; the first to say so does.
    pub fn publish(&self, label: &str, source: impl Fn(&Query) -> Option<String> + Send + Sync + 'static) {
        let _ = self.known(label).source.set(Box::new(source));
    }

    /// Publishes a label whose values come to be with the answer: who finds one out tells it.
    #[must_use]
    pub fn publish_told(&self, label: &'static str) -> Teller {
        self.publish(label, move |query| query.told(label));
        Teller { label, known: self.known(label), zones: Arc::clone(&self.zones) }
    }

    /// A label to read, whether or not somebody publishes it.
    #[must_use]
    pub fn label(&self, label: &str) -> Label {
        let known = self.known(label);
        known.is_read.store(true, Ordering::Relaxed);
        Label { known, zones: Arc::clone(&self.zones) }
    }

    /// A label to read, if somebody publishes or reads it already: for names that are known no sooner than they are asked
    /// for. It is no reason to keep what is told.
    #[must_use]
    pub fn find(&self, label: &str) -> Option<Label> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(label).map(|known| Label { known: Arc::clone(known), zones: Arc::clone(&self.zones) })
    }

    /// Labels have values for the names in these zones.
    pub fn switch_on(&self, zones: Zones) {
        let _ = self.zones.set(zones);
    }

    fn known(&self, label: &str) -> Arc<Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(label.to_owned()).or_default())
    }
}

/// A label that can be read.
#[derive(Clone)]
pub struct Label {
    known: Arc<Known>,
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
        if switched_on { self.known.source.get()?(query) } else { None }
    }
}

impl PartialEq for Label {
    /// Whether it is the same label of the same server block.
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

/// Tells the values of a label as they come to be.
pub struct Teller {
    label: &'static str,
    known: Arc<Known>,
    zones: Arc<OnceLock<Zones>>,
}

impl Teller {
    /// Tells the value for a query, in the place of what was told of it before; `value` is called only if somebody reads
    /// the label. What is told in [`Plugin::resolve`](crate::Plugin::resolve) holds for all who wait for the same answer,
    /// and what the steps below a step tell of its question holds for the one that it asked for.
    pub fn tell(&self, query: &Query, value: impl FnOnce() -> String) {
        if self.known.is_read.load(Ordering::Relaxed) && self.zones.get().is_some() {
            query.tell(self.label, value());
        }
    }
}

/// What was told of one query: a value at most for each label.
#[derive(Clone, Default)]
pub(crate) struct Told(Vec<(&'static str, String)>);

impl Told {
    pub(crate) fn get(&self, label: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == label).map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, label: &'static str, value: String) {
        self.0.retain(|(known, _)| *known != label);
        self.0.push((label, value));
    }

    /// Adds what was told elsewhere, later than what is here.
    pub(crate) fn extend(&mut self, later: Told) {
        later.0.into_iter().for_each(|(label, value)| self.set(label, value));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
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

    #[test]
    fn a_value_is_kept_if_somebody_reads_it() {
        let labels = Labels::default();
        let (read, unread) = (labels.publish_told("who/is-read"), labels.publish_told("who/is-not"));
        let query = Query::default();
        let label = labels.label("who/is-read");
        read.tell(&query, || unreachable!("labels are not switched on"));
        labels.switch_on(Zones::all());
        unread.tell(&query, || unreachable!("nobody reads it"));
        read.tell(&query, || "one".to_owned());
        read.tell(&query, || "two".to_owned());
        assert_eq!(label.value(&query).as_deref(), Some("two"));
        assert_eq!(labels.find("who/is-not").and_then(|label| label.value(&query)), None);
    }
}
