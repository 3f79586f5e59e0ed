//! Objects of the cluster: EndpointSlices of ten pods, of which a change replaces one, as a rolling update does.

use fakeapi::FakeApi;
use serde_json::{Value, json};

use super::random::Random;

/// Number of endpoints of a slice.
const ENDPOINTS: usize = 10;
/// Number of namespaces, and of Services per namespace that have a cluster IP of their own.
const NAMESPACES: usize = 50;
/// Number of nodes that pods run on.
const NODES: u64 = 5000;

/// EndpointSlices with their current endpoints.
pub(crate) struct Slices {
    random: Random,
    slices: Vec<Slice>,
}

struct Slice {
    /// Random parts of the names of the slice and of its ReplicaSet.
    names: [String; 2],
    uid: String,
    pods: Vec<Pod>,
}

struct Pod {
    address: [u8; 4],
    node: u64,
    suffix: String,
    uid: String,
}

impl Slices {
    /// Creates this many slices.
    pub(crate) fn new(count: usize) -> Slices {
        let mut random = Random::new(count);
        let slices = (0..count).map(|_| Slice::new(&mut random)).collect();
        Slices { random, slices }
    }

    /// Puts everything into the API server: namespaces, and a Service for each slice. Returns the resource version.
    pub(crate) fn fill(&self, api: &FakeApi) -> u64 {
        api.put_all((0..NAMESPACES).map(|number| fakeapi::namespace(&format!("ns-{number}"))));
        let count = self.slices.len();
        api.put_all((0..count).map(service));
        api.put_all((0..count).map(|number| self.object(number)))
    }

    /// Replaces a pod of some slice, and returns the slice.
    pub(crate) fn change(&mut self) -> Value {
        let number = self.random.index(self.slices.len());
        let place = self.random.index(ENDPOINTS);
        self.slices[number].pods[place] = Pod::new(&mut self.random);
        self.object(number)
    }

    fn object(&self, number: usize) -> Value {
        let slice = &self.slices[number];
        let [name, hash] = &slice.names;
        json!({
            "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4",
            "metadata": {
                "name": format!("app-{number}-{name}"), "generateName": format!("app-{number}-"),
                "namespace": namespace_of(number), "uid": slice.uid, "generation": 17,
                "labels": {
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                    "kubernetes.io/service-name": format!("app-{number}"), "app": format!("app-{number}"),
                },
                "annotations": { "endpoints.kubernetes.io/last-change-trigger-time": "2026-11-28T12:00:00Z" },
            },
            "endpoints": slice.pods.iter().map(|pod| pod.endpoint(number, hash)).collect::<Vec<_>>(),
            "ports": [{ "name": "http", "protocol": "TCP", "port": 8080 }],
        })
    }
}

impl Slice {
    fn new(random: &mut Random) -> Slice {
        let names = [random.text(5), random.text(9)];
        Slice { names, uid: uid(random), pods: (0..ENDPOINTS).map(|_| Pod::new(random)).collect() }
    }
}

impl Pod {
    fn new(random: &mut Random) -> Pod {
        let node = random.below(NODES);
        let byte = |value: u64| u8::try_from(value & 0xff).unwrap_or(0);
        // Each node has 256 addresses.
        let address = [10, byte(node >> 8), byte(node), byte(random.below(256))];
        Pod { address, node, suffix: random.text(5), uid: uid(random) }
    }

    fn endpoint(&self, number: usize, hash: &str) -> Value {
        let [a, b, c, d] = self.address;
        json!({
            "addresses": [format!("{a}.{b}.{c}.{d}")],
            "conditions": { "ready": true, "serving": true, "terminating": false },
            "nodeName": format!("ip-10-0-{b}-{c}.eu-central-1.compute.internal"),
            "zone": format!("eu-central-1{}", ["a", "b", "c"][usize::try_from(self.node % 3).unwrap_or(0)]),
            "targetRef": {
                "kind": "Pod", "namespace": namespace_of(number), "uid": self.uid,
                "name": format!("app-{number}-{hash}-{}", self.suffix),
            },
        })
    }
}

fn namespace_of(number: usize) -> String {
    format!("ns-{}", number % NAMESPACES)
}

fn service(number: usize) -> Value {
    let ip = format!("10.{}.{}.{}", 96 + number / 62_500, number / 250 % 250, number % 250 + 1);
    fakeapi::service(&namespace_of(number), &format!("app-{number}"), &ip)
}

fn uid(random: &mut Random) -> String {
    let [high, low] = [random.below(1 << 53), random.below(1 << 53)];
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 20,
        high & 0xffff,
        low & 0xfff,
        low >> 12 & 0xfff,
        low >> 5
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_replaces_one_endpoint() {
        let mut slices = Slices::new(1);
        let before = slices.object(0);
        let after = slices.change();
        let [before, after] =
            [&before, &after].map(|object| object["endpoints"].as_array().cloned().unwrap_or_default());
        assert_eq!(before.iter().zip(&after).filter(|(before, after)| before != after).count(), 1);
        let size = fakeapi::protobuf::object("", &slices.object(0)).len();
        // One of a real cluster has 2,700 bytes, of which 700 are `managedFields`, which relays strip.
        assert!((1900..2800).contains(&size), "{size} bytes are not those of a usual slice");
    }
}
