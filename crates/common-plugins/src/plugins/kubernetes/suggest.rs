//! Suggestions for names of the cluster that do not exist: a misspelled Service or namespace, a Service of another
//! namespace, and labels that are missing or in the wrong order.
//!
//! A suggestion is always a name that exists. It is looked for in one pass over the Services or namespaces, and only
//! names of about the same length are compared.

use corefile::did_you_mean;
use engine::Query;

use super::name::text;
use super::{Kubernetes, View};
use crate::shared::service_records::labels_of;

/// Maximum number of namespaces in an advice. More do not help to choose.
const NAMESPACES_MAX: usize = 3;
/// Maximum difference in length between a name and the one that was meant.
const LENGTH_SLIPS_MAX: usize = 2;
/// Maximum number of names that are compared with a misspelled one.
const COMPARED_MAX: usize = 20_000;

/// Where a suggestion is looked for.
pub(super) struct Suggestions<'a> {
    kubernetes: &'a Kubernetes,
    view: &'a View,
    zone: String,
}

impl<'a> Suggestions<'a> {
    pub(super) fn new(kubernetes: &'a Kubernetes, view: &'a View, query: &Query) -> Suggestions<'a> {
        Suggestions { kubernetes, view, zone: query.zone().to_string() }
    }

    /// Advises about a Service that does not exist in an existing namespace.
    pub(super) fn for_service(&self, namespace: &[u8], service: &[u8]) -> Option<String> {
        let near = self.near_service(namespace, service).map(|near| self.did_you_mean(&near, namespace));
        joined(self.elsewhere(service), near)
    }

    /// Advises about a Service whose namespace does not exist.
    pub(super) fn for_service_of(&self, namespace: &[u8], service: &[u8]) -> Option<String> {
        if self.has(service, namespace) {
            return Some(self.did_you_mean(&text(namespace), service));
        }
        let near = self.near_namespace(namespace);
        if let Some(near) = near.as_deref().filter(|near| self.has(near.as_bytes(), service)) {
            return Some(self.did_you_mean(&text(service), near.as_bytes()));
        }
        self.elsewhere(service).or_else(|| near.map(|near| format!("did you mean the namespace {near}?")))
    }

    /// Advises about a namespace that does not exist. Its place may have the name of a Service.
    pub(super) fn for_namespace(&self, namespace: &[u8]) -> Option<String> {
        joined(self.elsewhere(namespace), self.for_namespace_of_pods(namespace))
    }

    /// Advises about a namespace of pods that does not exist.
    pub(super) fn for_namespace_of_pods(&self, namespace: &[u8]) -> Option<String> {
        self.near_namespace(namespace).map(|near| format!("did you mean the namespace {near}?"))
    }

    /// Advises about a name that is not below `svc` or `pod`, if it has the labels of a Service. `prefix` are the
    /// labels before the zone in wire format.
    pub(super) fn for_labels(&self, prefix: &[u8]) -> Option<String> {
        let labels: Vec<&[u8]> = labels_of(prefix).collect();
        let (service, namespace) = match *labels.as_slice() {
            [service, namespace] => (service, namespace),
            [service, namespace, kind] if did_you_mean(&text(kind), ["svc"].into_iter()).is_some() => {
                (service, namespace)
            }
            _ => return None,
        };
        self.has(namespace, service).then(|| self.did_you_mean(&text(service), namespace))
    }

    fn did_you_mean(&self, service: &str, namespace: &[u8]) -> String {
        format!("did you mean {service}.{}.svc.{}?", text(namespace), self.zone)
    }

    fn has(&self, namespace: &[u8], service: &[u8]) -> bool {
        self.kubernetes.exposed.shows(namespace) && self.view.index.service(namespace, service, |_| ()).is_some()
    }

    /// Names the namespaces that have a Service.
    fn elsewhere(&self, service: &[u8]) -> Option<String> {
        let mut namespaces = Vec::new();
        self.view.index.for_each_service(|known| {
            if known.name.as_bytes() == service && self.kubernetes.exposed.shows(known.namespace.as_bytes()) {
                namespaces.push(known.namespace.to_string());
            }
        });
        namespaces.sort_unstable();
        let service = text(service);
        let first = namespaces.first()?;
        let shown = namespaces[..namespaces.len().min(NAMESPACES_MAX)].join(", ");
        Some(format!("a Service {service} is in {shown}: ask for {service}.{first}"))
    }

    /// Returns the Service of a namespace with the most similar name.
    fn near_service(&self, namespace: &[u8], service: &[u8]) -> Option<String> {
        let mut names = Similar::to(service);
        self.view.index.for_each_service(|known| {
            if known.namespace.as_bytes() == namespace {
                names.add(&known.name);
            }
        });
        names.nearest()
    }

    /// Returns the namespace with the most similar name.
    fn near_namespace(&self, namespace: &[u8]) -> Option<String> {
        let mut names = Similar::to(namespace);
        self.kubernetes.exposed.index.for_each_namespace(|known| {
            if self.kubernetes.exposed.shows(known.as_bytes()) {
                names.add(known);
            }
        });
        names.nearest()
    }
}

/// Names that may be similar to a misspelled one.
struct Similar {
    word: String,
    names: Vec<String>,
}

impl Similar {
    fn to(word: &[u8]) -> Similar {
        Similar { word: text(word), names: Vec::new() }
    }

    fn add(&mut self, name: &str) {
        if name.len().abs_diff(self.word.len()) <= LENGTH_SLIPS_MAX && self.names.len() < COMPARED_MAX {
            self.names.push(name.to_owned());
        }
    }

    /// Returns the nearest name, the first in alphabetical order of equally near ones.
    fn nearest(mut self) -> Option<String> {
        self.names.sort_unstable();
        did_you_mean(&self.word, self.names.iter().map(String::as_str)).map(str::to_owned)
    }
}

/// Joins two alternatives.
fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}; or {second}")),
        (first, second) => first.or(second),
    }
}
