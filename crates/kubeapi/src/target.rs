//! Resource that one watch follows: API path, namespace and selectors.

use std::fmt::Write;

use cluster::{Kind, Request, Watch};

/// API groups of the kinds, with the versions that servers may serve, preferred one first.
const CORE: &[&str] = &["/api/v1"];
const DISCOVERY: &[&str] = &["/apis/discovery.k8s.io/v1"];
const MULTICLUSTER: &[&str] = &["/apis/multicluster.x-k8s.io/v1beta1", "/apis/multicluster.x-k8s.io/v1alpha1"];
const ISTIO: &[&str] =
    &["/apis/networking.istio.io/v1", "/apis/networking.istio.io/v1beta1", "/apis/networking.istio.io/v1alpha3"];
/// Label of EndpointSlices that belong to a ServiceImport.
const IMPORTED: &str = "multicluster.kubernetes.io/service-name";

/// Field selector for Pods that run or may still run.
const LIVE_PODS: &str = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown";

/// Namespace and name of [`Target::url_of_one`].
const SOME_NAMESPACE: &str = "default";
const SOME_NAME: &str = "portolan";

/// Resource that one watch follows.
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// Plural name of the kind, as in the URL.
    pub(crate) resource: &'static str,
    /// Namespace to watch, or all if `None`. For kind Namespace: the name of the one to watch.
    pub(crate) namespace: Option<Box<str>>,
    /// API versions to try. There is at least one.
    versions: &'static [&'static str],
    /// Index of the version that requests use.
    current: usize,
    /// Number of consecutive versions that the server did not know.
    unknown: usize,
    selectors: String,
}

impl Target {
    /// Plural names of all kinds, as in the URL.
    pub(crate) const RESOURCES: [&'static str; 8] = [
        "namespaces",
        "services",
        "endpointslices",
        "pods",
        "serviceimports",
        "serviceentries",
        "workloadentries",
        "nodes",
    ];

    /// Returns the plural name of a kind, as in the URL.
    pub(crate) const fn resource_of(kind: Kind) -> &'static str {
        let [namespaces, services, slices, pods, imports, entries, workloads, nodes] = Target::RESOURCES;
        match kind {
            Kind::Namespace => namespaces,
            Kind::Service => services,
            Kind::EndpointSlice | Kind::ImportedSlice => slices,
            Kind::Pod | Kind::WorkloadPod => pods,
            Kind::ServiceImport => imports,
            Kind::ServiceEntry => entries,
            Kind::WorkloadEntry => workloads,
            Kind::Node => nodes,
        }
    }

    pub(crate) fn new(watch: &Watch, request: &Request) -> Target {
        let versions = match watch.kind {
            Kind::Namespace | Kind::Service | Kind::Pod | Kind::WorkloadPod | Kind::Node => CORE,
            Kind::EndpointSlice | Kind::ImportedSlice => DISCOVERY,
            Kind::ServiceImport => MULTICLUSTER,
            Kind::ServiceEntry | Kind::WorkloadEntry => ISTIO,
        };
        let mut selectors = String::new();
        parameter(&mut selectors, "labelSelector", &labels(watch.kind, request));
        if let (Some(name), Kind::Namespace) = (&watch.namespace, watch.kind) {
            parameter(&mut selectors, "fieldSelector", &format!("metadata.name={name}"));
        }
        if matches!(watch.kind, Kind::Pod | Kind::WorkloadPod) {
            parameter(&mut selectors, "fieldSelector", LIVE_PODS);
        }
        let namespace = watch.namespace.clone();
        Target {
            kind: watch.kind,
            resource: Target::resource_of(watch.kind),
            namespace,
            versions,
            current: 0,
            unknown: 0,
            selectors,
        }
    }

    /// Switches to the next API version after the server did not know the current one. Returns true if that version has
    /// not been tried yet. If it returns false, the server has none of the versions.
    pub(crate) fn try_next_version(&mut self) -> bool {
        self.current = (self.current + 1) % self.versions.len();
        self.unknown = (self.unknown + 1) % self.versions.len();
        self.unknown > 0
    }

    /// Records that the server knows the current API version.
    pub(crate) fn keep_version(&mut self) {
        self.unknown = 0;
    }

    fn path(&self) -> String {
        let mut path = self.versions[self.current].to_owned();
        if let Some(namespace) = self.namespace.as_deref().filter(|_| self.kind != Kind::Namespace) {
            path.push_str("/namespaces/");
            percent_encode(&mut path, namespace);
        }
        path.push('/');
        path.push_str(self.resource);
        path
    }

    /// Returns path and query of a request with these additional parameters.
    pub(crate) fn url(&self, parameters: &[(&str, &str)]) -> String {
        let mut query = String::new();
        for (name, value) in parameters {
            parameter(&mut query, name, value);
        }
        query.push_str(&self.selectors);
        format!("{}?{}", self.path(), query.trim_start_matches('&'))
    }

    /// Returns path and query of a list with these parameters that selects at most one object by its name, whether
    /// there is one or not. Without parameters, it is consistent. API servers look it up, and neither scan their cache
    /// nor ask the storage for it.
    pub(crate) fn url_of_one(&self, parameters: &[(&str, &str)]) -> String {
        let selector = match (&self.namespace, self.kind) {
            (Some(name), Kind::Namespace) => format!("metadata.name={name}"),
            (None, kind) if kind.is_namespaced() => {
                format!("metadata.namespace={SOME_NAMESPACE},metadata.name={SOME_NAME}")
            }
            _ => format!("metadata.name={SOME_NAME}"),
        };
        let mut query = String::new();
        parameter(&mut query, "fieldSelector", &selector);
        for (name, value) in parameters {
            parameter(&mut query, name, value);
        }
        format!("{}?{}", self.path(), query.trim_start_matches('&'))
    }

    /// Returns true if the API server says how many objects there are: it does so only for a whole collection.
    pub(crate) const fn is_countable(&self) -> bool {
        self.selectors.is_empty()
    }

    /// Returns path and query of a list that begins with at most one object, as of a version, to learn how many there
    /// are.
    pub(crate) fn url_of_count(&self, version: &str) -> String {
        self.url(&[("limit", "1"), ("resourceVersion", version), ("resourceVersionMatch", "Exact")])
    }

    /// Describes the resource for the log, for example `services in namespace shop`.
    pub(crate) fn describe(&self) -> String {
        match (&self.namespace, self.kind) {
            (None, _) => self.resource.to_owned(),
            (Some(name), Kind::Namespace) => format!("namespace {name}"),
            (Some(namespace), _) => format!("{} in namespace {namespace}", self.resource),
        }
    }
}

/// Returns the label selector for a kind. As in CoreDNS, `namespace_labels` selects ServiceImports too, by their own
/// labels, and `labels` does not apply to them.
fn labels(kind: Kind, request: &Request) -> String {
    match kind {
        Kind::Namespace | Kind::ServiceImport => request.namespace_labels.clone(),
        Kind::Node => String::new(),
        Kind::ImportedSlice if request.labels.is_empty() => IMPORTED.to_owned(),
        Kind::ImportedSlice => format!("{},{IMPORTED}", request.labels),
        _ => request.labels.clone(),
    }
}

/// Appends a query parameter unless its value is empty.
fn parameter(query: &mut String, name: &str, value: &str) {
    if !value.is_empty() {
        query.push('&');
        query.push_str(name);
        query.push('=');
        percent_encode(query, value);
    }
}

/// Appends a text, percent-encoded except for unreserved characters (RFC 3986 §2.3).
pub fn percent_encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::Source;

    #[test]
    fn builds_path_and_selectors_for_each_kind() {
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
            (
                Kind::ServiceImport,
                Some("a"),
                "/apis/multicluster.x-k8s.io/v1beta1/namespaces/a/serviceimports?watch=1&labelSelector=dns%3Dyes",
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

    #[test]
    fn counts_whole_collections() {
        let target = |kind, namespace: Option<&str>, labels: &str| {
            let request = Request { labels: labels.to_owned(), ..Request::new(Source::InCluster) };
            Target::new(&Watch { kind, namespace: namespace.map(Into::into) }, &request)
        };
        let services = target(Kind::Service, Some("a"), "");
        assert!(services.is_countable());
        let url = "/api/v1/namespaces/a/services?limit=1&resourceVersion=7&resourceVersionMatch=Exact";
        assert_eq!(services.url_of_count("7"), url);
        for (kind, namespace, labels) in
            [(Kind::Service, None, "app=a"), (Kind::Pod, None, ""), (Kind::Namespace, Some("a"), "")]
        {
            assert!(!target(kind, namespace, labels).is_countable(), "{kind:?}");
        }
    }

    #[test]
    fn selects_one_object_by_its_name() {
        let request = Request { labels: "app=a".to_owned(), ..Request::new(Source::InCluster) };
        for (kind, namespace, url) in [
            (Kind::Namespace, None, "/api/v1/namespaces?fieldSelector=metadata.name%3Dportolan"),
            (Kind::Namespace, Some("a"), "/api/v1/namespaces?fieldSelector=metadata.name%3Da"),
            (Kind::Node, None, "/api/v1/nodes?fieldSelector=metadata.name%3Dportolan"),
            (Kind::Pod, Some("a"), "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dportolan"),
            (
                Kind::Service,
                None,
                "/api/v1/services?fieldSelector=metadata.namespace%3Ddefault%2Cmetadata.name%3Dportolan",
            ),
        ] {
            let target = Target::new(&Watch { kind, namespace: namespace.map(Into::into) }, &request);
            assert_eq!(target.url_of_one(&[]), url);
            let bound = target.url_of_one(&[("resourceVersion", "7")]);
            assert_eq!(bound, format!("{url}&resourceVersion=7"));
        }
    }
}
