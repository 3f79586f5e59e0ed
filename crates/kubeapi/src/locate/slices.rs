//! EndpointSlices, as far as they name the Pods of their endpoints.

use core::net::IpAddr;

use serde::Deserialize;

/// EndpointSlice.
#[derive(Deserialize)]
pub(super) struct Slice {
    #[serde(default)]
    endpoints: Option<Vec<Endpoint>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint {
    #[serde(default)]
    addresses: Vec<String>,
    #[serde(default)]
    target_ref: Option<TargetRef>,
}

#[derive(Deserialize)]
struct TargetRef {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
}

/// List of EndpointSlices, as `kubectl get -o json` prints it.
#[derive(Deserialize)]
struct Slices {
    items: Vec<Slice>,
}

/// Returns the names of the Pods in a list of EndpointSlices, in order and without repetitions.
///
/// # Errors
/// The text is not such a list in JSON.
pub fn pods_in(list: &[u8]) -> Result<Vec<String>, serde_json::Error> {
    let slices: Slices = serde_json::from_slice(list)?;
    let mut pods: Vec<String> = slices.items.iter().flat_map(Slice::pods).map(|(_, pod)| pod.to_owned()).collect();
    pods.sort_unstable();
    // A Pod with addresses of two families is in two slices.
    pods.dedup();
    Ok(pods)
}

impl Slice {
    /// Returns the endpoints that are Pods: their addresses and names.
    fn pods(&self) -> impl Iterator<Item = (&[String], &str)> {
        self.endpoints.iter().flatten().filter_map(|endpoint| {
            let target = endpoint.target_ref.as_ref().filter(|target| target.kind == "Pod")?;
            Some((endpoint.addresses.as_slice(), target.name.as_str()))
        })
    }

    /// Returns the addresses of a Pod.
    pub(super) fn addresses_of<'a>(&'a self, pod: &'a str) -> impl Iterator<Item = IpAddr> + 'a {
        let endpoints = self.pods().filter(move |(_, name)| *name == pod);
        endpoints.flat_map(|(addresses, _)| addresses).filter_map(|text| text.parse().ok())
    }

    /// Returns the names of the Pods with an address.
    pub(super) fn pods_at(&self, address: IpAddr) -> impl Iterator<Item = &str> {
        let has_it = move |addresses: &[String]| addresses.iter().any(|text| text.parse() == Ok(address));
        self.pods().filter(move |(addresses, _)| has_it(addresses)).map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_pods_of_a_list() {
        let list = br#"{"items": [
            {"endpoints": [
                {"addresses": ["10.1.0.8"], "targetRef": {"kind": "Pod", "name": "b"}},
                {"addresses": ["10.1.0.9"], "targetRef": {"kind": "Node", "name": "n"}},
                {"addresses": ["10.1.0.7"], "targetRef": {"kind": "Pod", "name": "a"}},
                {"addresses": ["10.1.0.6"]}
            ]},
            {"endpoints": [{"addresses": ["fd00::8"], "targetRef": {"kind": "Pod", "name": "b"}}]},
            {"endpoints": null}
        ]}"#;
        assert_eq!(pods_in(list).unwrap(), ["a", "b"]);
        assert!(pods_in(b"{}").is_err() && pods_in(b"").is_err());
    }
}
