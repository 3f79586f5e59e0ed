//! Parser for request URIs: resource, namespace, name and parameters.

use std::collections::BTreeMap;

use hyper::Uri;

use crate::selection::{Selection, SelectionError};
use crate::store::Key;

/// Parsed request URI.
pub(crate) struct Query {
    pub(crate) group_version: String,
    pub(crate) resource: String,
    pub(crate) namespace: String,
    /// Name of an object; empty for a collection.
    pub(crate) name: String,
    pub(crate) parameters: BTreeMap<String, String>,
}

impl Query {
    /// Parses a URI. Returns `None` if it is not a path of the API.
    pub(crate) fn parse(uri: &Uri) -> Option<Query> {
        let path: Vec<String> = uri.path().trim_matches('/').split('/').map(decode).collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let (group_version, rest) = match path[..] {
            ["api", version, ref rest @ ..] => (version.to_owned(), rest),
            ["apis", group, version, ref rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, resource, name) = match rest {
            [resource] => ("", *resource, ""),
            [resource, name] => ("", *resource, *name),
            ["namespaces", namespace, resource] => (*namespace, *resource, ""),
            ["namespaces", namespace, resource, name] => (*namespace, *resource, *name),
            _ => return None,
        };
        let parameters = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let parameters = parameters.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let parameters = parameters.map(|(name, value)| (decode(name), decode(value))).collect();
        let [resource, namespace, name] = [resource, namespace, name].map(str::to_owned);
        Some(Query { group_version, resource, namespace, name, parameters })
    }

    /// Returns namespace and name of the object.
    pub(crate) fn key(&self) -> Key {
        (self.namespace.clone(), self.name.clone())
    }

    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        matches!(self.parameter(name), "1" | "true")
    }

    /// Returns the selection of objects.
    pub(crate) fn selection(&self) -> Result<Selection, SelectionError> {
        Selection::parse(&self.namespace, self.parameter("labelSelector"), self.parameter("fieldSelector"))
    }
}

/// Decodes percent-encoding.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                u8::from_str_radix(&String::from_utf8_lossy(&digits), 16).unwrap_or(b'?')
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
