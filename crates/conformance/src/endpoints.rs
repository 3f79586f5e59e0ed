//! Endpoints that say what EndpointSlices say, for servers that read only those: kube-dns. A cluster makes slices of
//! Endpoints (`skip-mirror` keeps it from that here), but never Endpoints of slices.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::objects;

/// The label of a slice with the Service that it belongs to.
const SERVICE: &str = "kubernetes.io/service-name";
/// The label of Endpoints of which the cluster is to make no slices.
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";

/// The slices that there are, by their Services.
#[derive(Default)]
pub(crate) struct Endpoints {
    slices: BTreeMap<String, BTreeMap<String, Value>>,
    /// Why there can be no Endpoints, once that is known.
    pub(crate) refusal: Option<String>,
}

impl Endpoints {
    /// Learns of an object; gives the Endpoints that are to be put then.
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

    /// Learns that a slice is gone; gives the Endpoints that are to be put then.
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

/// A slice as a subset; `None` if it has no addresses, which a subset must have.
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
    fn endpoints_say_what_slices_say() {
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
    fn who_may_not_make_them_makes_none() {
        let mut endpoints = Endpoints { refusal: Some("no".to_owned()), ..Endpoints::default() };
        let slice = json!({ "kind": "EndpointSlice", "metadata": { "name": "a", "labels": { SERVICE: "a" } } });
        assert!(endpoints.put(&slice).is_none());
    }
}
