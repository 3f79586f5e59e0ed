//! What one watch is about: where the API server has it, and by which selectors.

use std::fmt::Write;

use cluster::{Kind, Request, Watch};

/// The Pods that can be asked for: those that run, or will.
const LIVE_PODS: &str = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown";

/// What one watch is about.
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// The plural name of the kind.
    pub(crate) resource: &'static str,
    /// In which namespace; for Namespaces, which one.
    pub(crate) namespace: Option<Box<str>>,
    path: String,
    selectors: String,
}

impl Target {
    pub(crate) fn new(watch: &Watch, request: &Request) -> Target {
        let (api, resource) = match watch.kind {
            Kind::Namespace => ("/api/v1", "namespaces"),
            Kind::Service => ("/api/v1", "services"),
            Kind::EndpointSlice => ("/apis/discovery.k8s.io/v1", "endpointslices"),
            Kind::Pod => ("/api/v1", "pods"),
        };
        let (mut path, mut selectors) = (api.to_owned(), String::new());
        let labels = if watch.kind == Kind::Namespace { &request.namespace_labels } else { &request.labels };
        parameter(&mut selectors, "labelSelector", labels);
        match (&watch.namespace, watch.kind) {
            (Some(name), Kind::Namespace) => {
                parameter(&mut selectors, "fieldSelector", &format!("metadata.name={name}"));
            }
            (Some(namespace), _) => {
                path.push_str("/namespaces/");
                encode(&mut path, namespace);
            }
            (None, _) => {}
        }
        if watch.kind == Kind::Pod {
            parameter(&mut selectors, "fieldSelector", LIVE_PODS);
        }
        path = format!("{path}/{resource}");
        Target { kind: watch.kind, resource, namespace: watch.namespace.clone(), path, selectors }
    }

    /// Path and query for a request with these parameters too.
    pub(crate) fn url(&self, parameters: &[(&str, &str)]) -> String {
        let mut query = String::new();
        for (name, value) in parameters {
            parameter(&mut query, name, value);
        }
        query.push_str(&self.selectors);
        format!("{}?{}", self.path, query.trim_start_matches('&'))
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
fn encode(out: &mut String, text: &str) {
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
