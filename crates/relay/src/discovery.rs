//! API discovery: the documents from which clients such as kubectl learn the paths of resources.

use serde_json::{Value, json};

use crate::table::Kind;

/// Group of EndpointSlices.
const GROUP: &str = "discovery.k8s.io";

/// Returns the document of a path as JSON, if it is one of discovery. `kinds` are those that the relay follows.
#[must_use]
pub fn discovery(path: &str, kinds: &[Kind]) -> Option<String> {
    let document = match path.trim_end_matches('/') {
        "/api" => json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] }),
        "/apis" => json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group()] }),
        "/apis/discovery.k8s.io" => {
            let mut document = group();
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            document
        }
        "/api/v1" => resources("v1", kinds),
        "/apis/discovery.k8s.io/v1" => resources("discovery.k8s.io/v1", kinds),
        _ => return None,
    };
    Some(document.to_string())
}

fn group() -> Value {
    let version = json!({ "groupVersion": format!("{GROUP}/v1"), "version": "v1" });
    json!({ "name": GROUP, "versions": [version], "preferredVersion": version })
}

fn resources(group_version: &str, kinds: &[Kind]) -> Value {
    let resource = |kind: &Kind| {
        json!({
            "name": kind.resource(),
            "singularName": kind.name().to_ascii_lowercase(),
            "namespaced": kind.is_namespaced(),
            "kind": kind.name(),
            "verbs": ["list", "watch"],
            "shortNames": kind.short_names(),
        })
    };
    let of_group = kinds.iter().filter(|kind| kind.api_version() == group_version);
    let resources: Vec<Value> = of_group.map(resource).collect();
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_resources_that_are_followed() {
        let document = |path: &str| discovery(path, &[Kind::Service, Kind::EndpointSlice, Kind::Node]);
        let names = |path: &str| {
            let document: Value = serde_json::from_str(&document(path).unwrap()).unwrap();
            let names = document["resources"].as_array().unwrap().iter();
            names.map(|resource| resource["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("/api/v1"), ["services", "nodes"]);
        assert_eq!(names("/apis/discovery.k8s.io/v1/"), ["endpointslices"]);
        for path in ["/api", "/apis", "/apis/discovery.k8s.io"] {
            let document: Value = serde_json::from_str(&document(path).unwrap()).unwrap();
            assert!(document["kind"].is_string(), "{path}");
        }
        for path in ["", "/", "/version", "/api/v1/services", "/apis/apps"] {
            assert_eq!(document(path), None, "{path}");
        }
    }
}
