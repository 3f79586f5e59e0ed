//! What one watch is about: where the API server has it, and by which selectors.

use std::collections::VecDeque;
use std::fmt::Write;

use cluster::{Kind, Request, Watch};

/// Where the API server has the kinds, in versions that they are served in.
const CORE: &[&str] = &["/api/v1"];
const DISCOVERY: &[&str] = &["/apis/discovery.k8s.io/v1"];
const MULTICLUSTER: &[&str] = &["/apis/multicluster.x-k8s.io/v1beta1", "/apis/multicluster.x-k8s.io/v1alpha1"];
const ISTIO: &[&str] =
    &["/apis/networking.istio.io/v1", "/apis/networking.istio.io/v1beta1", "/apis/networking.istio.io/v1alpha3"];
/// Slices that belong to a ServiceImport have this label.
const IMPORTED: &str = "multicluster.kubernetes.io/service-name";

/// The Pods that can be asked for: those that run, or will.
const LIVE_PODS: &str = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown";

/// What one watch is about.
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// The plural name of the kind.
    pub(crate) resource: &'static str,
    /// In which namespace; for Namespaces, which one.
    pub(crate) namespace: Option<Box<str>>,
    /// The versions of the API to try, one after the other; the first one is asked.
    versions: VecDeque<&'static str>,
    /// How many of them the server was found not to know, one after the other.
    unknown: usize,
    selectors: String,
}

impl Target {
    pub(crate) fn new(watch: &Watch, request: &Request) -> Target {
        let (versions, resource) = match watch.kind {
            Kind::Namespace => (CORE, "namespaces"),
            Kind::Service => (CORE, "services"),
            Kind::EndpointSlice | Kind::ImportedSlice => (DISCOVERY, "endpointslices"),
            Kind::Pod | Kind::WorkloadPod => (CORE, "pods"),
            Kind::ServiceImport => (MULTICLUSTER, "serviceimports"),
            Kind::ServiceEntry => (ISTIO, "serviceentries"),
            Kind::WorkloadEntry => (ISTIO, "workloadentries"),
            Kind::Node => (CORE, "nodes"),
        };
        let mut selectors = String::new();
        parameter(&mut selectors, "labelSelector", &labels(watch.kind, request));
        if let (Some(name), Kind::Namespace) = (&watch.namespace, watch.kind) {
            parameter(&mut selectors, "fieldSelector", &format!("metadata.name={name}"));
        }
        if matches!(watch.kind, Kind::Pod | Kind::WorkloadPod) {
            parameter(&mut selectors, "fieldSelector", LIVE_PODS);
        }
        let versions = versions.iter().copied().collect();
        Target { kind: watch.kind, resource, namespace: watch.namespace.clone(), versions, unknown: 0, selectors }
    }

    /// The server does not know this version of the API: the next one is asked from here on. Says whether there is one
    /// that was not asked yet; if not, the server has no such objects in any.
    pub(crate) fn try_next_version(&mut self) -> bool {
        self.versions.rotate_left(1);
        self.unknown = (self.unknown + 1) % self.versions.len().max(1);
        self.unknown > 0
    }

    /// The server knows the version that was asked.
    pub(crate) fn keep_version(&mut self) {
        self.unknown = 0;
    }

    fn path(&self) -> String {
        let mut path = self.versions.front().copied().unwrap_or_default().to_owned();
        if let Some(namespace) = self.namespace.as_deref().filter(|_| self.kind != Kind::Namespace) {
            path.push_str("/namespaces/");
            encode(&mut path, namespace);
        }
        path.push('/');
        path.push_str(self.resource);
        path
    }

    /// Path and query for a request with these parameters too.
    pub(crate) fn url(&self, parameters: &[(&str, &str)]) -> String {
        let mut query = String::new();
        for (name, value) in parameters {
            parameter(&mut query, name, value);
        }
        query.push_str(&self.selectors);
        format!("{}?{}", self.path(), query.trim_start_matches('&'))
    }

    /// As the log says it: `services in namespace shop`.
    pub(crate) fn describe(&self) -> String {
        match (&self.namespace, self.kind) {
            (None, _) => self.resource.to_owned(),
            (Some(name), Kind::Namespace) => format!("namespace {name}"),
            (Some(namespace), _) => format!("{} in namespace {namespace}", self.resource),
        }
    }
}

/// The selector of a kind. ServiceImports are made by machines, and have no labels to select them by; CoreDNS applies
/// `namespace_labels` to them, which then selects none.
fn labels(kind: Kind, request: &Request) -> String {
    match kind {
        Kind::Namespace => request.namespace_labels.clone(),
        Kind::ServiceImport | Kind::Node => String::new(),
        Kind::ImportedSlice if request.labels.is_empty() => IMPORTED.to_owned(),
        Kind::ImportedSlice => format!("{},{IMPORTED}", request.labels),
        _ => request.labels.clone(),
    }
}

/// Adds a parameter to a query, unless it is empty.
fn parameter(query: &mut String, name: &str, value: &str) {
    if !value.is_empty() {
        query.push('&');
        query.push_str(name);
        query.push('=');
        encode(query, value);
    }
}

/// Percent-encodes all but the unreserved characters (RFC 3986 §2.3).
pub(crate) fn encode(out: &mut String, text: &str) {
    for octet in text.bytes() {
        match octet {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(octet)),
            _ => {
                let _ = write!(out, "%{octet:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::Source;

    #[test]
    fn each_watch_has_its_place_and_its_selectors() {
        let request = Request {
            labels: "app in (a, b)".to_owned(),
            namespace_labels: "dns=yes".to_owned(),
            ..Request::new(Source::InCluster)
        };
        for (kind, namespace, url) in [
            (Kind::Namespace, None, "/api/v1/namespaces?watch=1&labelSelector=dns%3Dyes"),
            (
                Kind::Namespace,
                Some("a"),
                "/api/v1/namespaces?watch=1&labelSelector=dns%3Dyes&fieldSelector=metadata.name%3Da",
            ),
            (Kind::Service, None, "/api/v1/services?watch=1&labelSelector=app%20in%20%28a%2C%20b%29"),
            (
                Kind::EndpointSlice,
                Some("a/../b"),
                "/apis/discovery.k8s.io/v1/namespaces/a%2F..%2Fb/endpointslices?watch=1\
                 &labelSelector=app%20in%20%28a%2C%20b%29",
            ),
            (
                Kind::Pod,
                Some("a"),
                "/api/v1/namespaces/a/pods?watch=1&labelSelector=app%20in%20%28a%2C%20b%29\
                 &fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed%2Cstatus.phase%21%3DUnknown",
            ),
        ] {
            let target = Target::new(&Watch { kind, namespace: namespace.map(Into::into) }, &request);
            assert_eq!(target.url(&[("watch", "1"), ("resourceVersion", "")]), url);
        }
        let plain = Target::new(&Watch { kind: Kind::Service, namespace: None }, &Request::new(Source::InCluster));
        assert_eq!(plain.url(&[]), "/api/v1/services?");
    }
}
