//! Endpoints with the same content as EndpointSlices, for servers that read only Endpoints, such as kube-dns.
//!
//! A cluster mirrors Endpoints to slices (prevented here by `skip-mirror`), but never slices to Endpoints.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::objects;

/// Label of a slice: the name of its Service.
const SERVICE: &str = "kubernetes.io/service-name";
/// Label that keeps the cluster from mirroring Endpoints to slices.
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";

/// Existing slices by Service.
#[derive(Default)]
pub(crate) struct Endpoints {
    slices: BTreeMap<String, BTreeMap<String, Value>>,
    /// Reason why Endpoints cannot be created, once known.
    pub(crate) refusal: Option<String>,
}

impl Endpoints {
    /// Records an object. Returns the Endpoints to create or update.
    pub(crate) fn put(&mut self, object: &Value) -> Option<Value> {
        let service = object["metadata"]["labels"][SERVICE].as_str()?;
        let (kind, name) = objects::key(object);
        if kind != "EndpointSlice" || self.refusal.is_some() {
            return None;
        }
        let slices = self.slices.entry(service.to_owned()).or_default();
        slices.insert(name, object.clone());
        Some(endpoints(service, slices))
    }

    /// Records the deletion of a slice. Returns the Endpoints to update.
    pub(crate) fn remove(&mut self, kind: &str, name: &str) -> Option<Value> {
        if kind != "EndpointSlice" || self.refusal.is_some() {
            return None;
        }
        let (service, slices) = self.slices.iter_mut().find(|(_, slices)| slices.contains_key(name))?;
        slices.remove(name);
        Some(endpoints(service, slices))
    }
}

fn endpoints(service: &str, slices: &BTreeMap<String, Value>) -> Value {
    let namespace = slices.values().map(|slice| &slice["metadata"]["namespace"]).next();
    let subsets: Vec<Value> = slices.values().filter_map(subset).collect();
    let mut endpoints = json!({ "apiVersion": "v1", "kind": "Endpoints", "subsets": subsets });
    endpoints["metadata"] = json!({ "name": service, "labels": { SKIP_MIRROR: "true" } });
    if let Some(namespace) = namespace {
        endpoints["metadata"]["namespace"] = namespace.clone();
    }
    endpoints
}

/// Converts a slice to a subset. Returns `None` if it has no addresses, because a subset must have some.
fn subset(slice: &Value) -> Option<Value> {
    let is_ready = |endpoint: &&Value| endpoint["conditions"]["ready"].as_bool() != Some(false);
    let all = slice["endpoints"].as_array()?;
    let (ready, others): (Vec<&Value>, Vec<&Value>) = all.iter().partition(is_ready);
    let [ready, others] = [ready, others].map(|list| list.into_iter().flat_map(addresses).collect::<Vec<_>>());
    let ports = slice["ports"].as_array().cloned().unwrap_or_default();
    let has_any = !ready.is_empty() || !others.is_empty();
    has_any.then(|| json!({ "addresses": ready, "notReadyAddresses": others, "ports": ports }))
}

fn addresses(endpoint: &Value) -> impl Iterator<Item = Value> {
    let hostname = &endpoint["hostname"];
    endpoint["addresses"].as_array().into_iter().flatten().map(move |ip| match hostname {
        Value::Null => json!({ "ip": ip }),
        hostname => json!({ "ip": ip, "hostname": hostname }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Values;

    #[test]
    fn endpoints_have_the_content_of_their_slices() {
        let mut endpoints = Endpoints::default();
        let objects = objects::objects(&Values::new("cluster.local", "scratch")).unwrap();
        let made: Vec<Value> = objects.iter().filter_map(|object| endpoints.put(object)).collect();
        let last = |name: &str| made.iter().rfind(|object| object["metadata"]["name"] == name).unwrap();
        let pets = last("pets");
        assert_eq!((&pets["kind"], &pets["metadata"]["namespace"]), (&json!("Endpoints"), &json!("scratch")));
        assert_eq!(pets["metadata"]["labels"][SKIP_MIRROR], "true");
        let v4 = &pets["subsets"][0];
        assert_eq!(
            v4["addresses"],
            json!([
                { "ip": "192.0.2.20", "hostname": "cat" },
                { "ip": "192.0.2.21", "hostname": "twin" },
                { "ip": "192.0.2.22", "hostname": "twin" },
                { "ip": "192.0.2.23" },
            ])
        );
        assert_eq!(v4["notReadyAddresses"].as_array().unwrap().len(), 2);
        assert_eq!(v4["ports"][1], json!({ "name": "gossip", "port": 7946, "protocol": "UDP" }));
        assert_eq!(pets["subsets"][1]["addresses"][0]["ip"], "2001:db8::20");
        assert_eq!(last("portless")["subsets"][0]["ports"], json!([]));
        assert_eq!(last("asleep")["subsets"][0]["addresses"], json!([]));
        let without = endpoints.remove("EndpointSlice", "pets-v4").unwrap();
        assert_eq!(without["subsets"].as_array().unwrap().len(), 1);
        assert_eq!(endpoints.remove("EndpointSlice", "pets-v6").unwrap()["subsets"], json!([]));
        assert!(endpoints.remove("Service", "web").is_none());
    }

    #[test]
    fn creates_no_endpoints_after_a_refusal() {
        let mut endpoints = Endpoints { refusal: Some("no".to_owned()), ..Endpoints::default() };
        let slice = json!({ "kind": "EndpointSlice", "metadata": { "name": "a", "labels": { SERVICE: "a" } } });
        assert!(endpoints.put(&slice).is_none());
    }
}
