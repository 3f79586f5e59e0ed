//! Likely mistakes in manifests. An API server would reject such an object; here it would only be missing.

use std::net::IpAddr;

use corefile::did_you_mean;

use super::kinds;
use super::model::{AddressType, EndpointSlice, Endpoints, Head, Pod, Service, SliceEndpoint, Text};

/// Kinds that are similar to one that answers depend on and are not misspelled, with their API groups.
const SIMILAR: [(&str, &str); 3] = [("", "Node"), ("", "Event"), ("multicluster.x-k8s.io", "ServiceExport")];

/// Line in an object and message.
pub(crate) type Mistake = (usize, String);

/// Returns a message for an object that is ignored, if `kind` or `apiVersion` look misspelled or the object would have
/// an effect in a cluster. Other kinds are ignored without a message, since a folder of manifests has many of them.
pub(crate) fn of_head(head: &Head) -> Option<String> {
    let (api_version, kind) = (head.api_version.as_str(), head.kind.text.as_str());
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if let Some(row) = kinds::row(kind) {
        let wanted = row.api_version;
        // Other groups may have kinds of the same name, such as the `Service` of Knative.
        let is_of_other_group =
            group != row.group && !group.is_empty() && did_you_mean(api_version, [wanted].into_iter()).is_none();
        return (!is_of_other_group).then(|| match api_version {
            "" => format!("`{kind}` without `apiVersion`; use `{wanted}`; the object is ignored"),
            _ => format!("`{api_version}` is not an API version of `{kind}`; use `{wanted}`; the object is ignored"),
        });
    }
    if (api_version, kind) == ("v1", "Node") {
        return Some("`Node` is ignored: only nodes of an API server give the region and zone of a cluster".to_owned());
    }
    if SIMILAR.contains(&(group, kind)) {
        return None;
    }
    let near = did_you_mean(kind, kinds::of_group(group))?;
    Some(format!("unknown kind `{kind}`; did you mean `{near}`? The object is ignored"))
}

/// Returns the lines and messages of cluster IPs that are not IP addresses.
pub fn of_service(service: &Service) -> impl Iterator<Item = Mistake> {
    let (spec, metadata) = (&service.spec, &service.metadata);
    // Objects from an API server have the first address in both fields.
    let single = Some(&spec.cluster_ip).filter(|single| spec.cluster_ips.iter().all(|ip| ip.text != single.text));
    let is_invalid = |ip: &&Text| !matches!(ip.text.as_str(), "" | "None") && ip.text.parse::<IpAddr>().is_err();
    spec.cluster_ips.iter().chain(single).filter(is_invalid).map(|Text { text, line }| {
        let message = format!(
            "cluster IP `{text}` of Service `{}` is not an IP address; use an IP address, `None`, or remove it",
            metadata.name
        );
        (*line, message)
    })
}

/// Returns the addresses of a slice that are not of its type.
pub(crate) fn of_slice(slice: &EndpointSlice) -> impl Iterator<Item = Mistake> {
    let family = match slice.address_type {
        AddressType::Ipv4 => Some((false, "IPv4")),
        AddressType::Ipv6 => Some((true, "IPv6")),
        AddressType::Fqdn => None,
    };
    let addresses = slice.endpoints.iter().flat_map(|SliceEndpoint { addresses, .. }| addresses);
    addresses.filter_map(move |Text { text, line }| {
        let (is_ipv6, family) = family?;
        let is_valid = text.parse().is_ok_and(|ip: IpAddr| ip.is_ipv6() == is_ipv6);
        let name = &slice.metadata.name;
        let message = || {
            format!("address `{text}` of EndpointSlice `{name}` is not an {family} address; the endpoint is ignored")
        };
        (!is_valid).then(|| (*line, message()))
    })
}

/// Returns the addresses of an Endpoints object that are not IP addresses.
pub fn of_endpoints(endpoints: &Endpoints) -> impl Iterator<Item = Mistake> {
    let subsets = endpoints.subsets.iter();
    let addresses = subsets.flat_map(|subset| subset.addresses.iter().chain(&subset.not_ready_addresses));
    bad_addresses(addresses.map(|address| &address.ip), "Endpoints", &endpoints.metadata.name)
}

/// Returns the addresses of a Pod that are not IP addresses.
pub(crate) fn of_pod(pod: &Pod) -> impl Iterator<Item = Mistake> {
    let listed = pod.status.pod_ips.iter().map(|pod_ip| &pod_ip.ip);
    // Objects from an API server have the first address in both fields.
    let single = Some(&pod.status.pod_ip)
        .filter(|single| !single.text.is_empty() && listed.clone().all(|ip| ip.text != single.text));
    bad_addresses(listed.chain(single), "Pod", &pod.metadata.name)
}

fn bad_addresses<'a>(
    addresses: impl Iterator<Item = &'a Text>,
    kind: &'static str,
    name: &str,
) -> impl Iterator<Item = Mistake> {
    let bad = addresses.filter(|address| address.text.parse::<IpAddr>().is_err());
    bad.map(move |Text { text, line }| {
        (*line, format!("address `{text}` of {kind} `{name}` is not an IP address; it is ignored"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_misspelled_kinds_and_versions_only() {
        for (api_version, kind, expected) in [
            ("v1", "Servic", Some("unknown kind `Servic`; did you mean `Service`? The object is ignored")),
            ("v1", "service", Some("unknown kind `service`; did you mean `Service`? The object is ignored")),
            ("v1", "Endpoint", Some("unknown kind `Endpoint`; did you mean `Endpoints`? The object is ignored")),
            (
                "networking.istio.io/v1",
                "ServiceEntri",
                Some("unknown kind `ServiceEntri`; did you mean `ServiceEntry`? The object is ignored"),
            ),
            ("", "Service", Some("`Service` without `apiVersion`; use `v1`; the object is ignored")),
            ("v2", "Service", Some("`v2` is not an API version of `Service`; use `v1`; the object is ignored")),
            (
                "v1",
                "EndpointSlice",
                Some("`v1` is not an API version of `EndpointSlice`; use `discovery.k8s.io/v1`; the object is ignored"),
            ),
            (
                "discovery.k8s.io/v1beta1",
                "EndpointSlice",
                Some(
                    "`discovery.k8s.io/v1beta1` is not an API version of `EndpointSlice`; use `discovery.k8s.io/v1`; \
                     the object is ignored",
                ),
            ),
            (
                "discovry.k8s.io/v1",
                "EndpointSlice",
                Some(
                    "`discovry.k8s.io/v1` is not an API version of `EndpointSlice`; use `discovery.k8s.io/v1`; \
                     the object is ignored",
                ),
            ),
            ("serving.knative.dev/v1", "Service", None),
            ("multicluster.x-k8s.io/v1alpha1", "ServiceExport", None),
            ("apps/v1", "Deployment", None),
            ("batch/v1", "Job", None),
            ("rbac.authorization.k8s.io/v1", "Role", None),
            ("networking.k8s.io/v1", "Ingress", None),
            ("", "", None),
            (
                "v1",
                "Node",
                Some("`Node` is ignored: only nodes of an API server give the region and zone of a cluster"),
            ),
            ("", "Servic", Some("unknown kind `Servic`; did you mean `Service`? The object is ignored")),
        ] {
            let kind = Text { text: kind.to_owned(), line: 1 };
            let head = Head { api_version: api_version.to_owned(), kind };
            assert_eq!(of_head(&head).as_deref(), expected, "{head:?}");
        }
    }

    #[test]
    fn accepts_all_kinds_of_kubernetes() {
        for kind in [
            "Binding",
            "ComponentStatus",
            "ConfigMap",
            "Event",
            "LimitRange",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "ServiceAccount",
        ] {
            let kind = Text { text: kind.to_owned(), line: 1 };
            assert_eq!(of_head(&Head { api_version: "v1".to_owned(), kind: kind.clone() }), None, "{kind:?}");
        }
        for kind in
            ["DestinationRule", "EnvoyFilter", "Gateway", "ProxyConfig", "Sidecar", "VirtualService", "WorkloadGroup"]
        {
            let kind = Text { text: kind.to_owned(), line: 1 };
            let api_version = "networking.istio.io/v1".to_owned();
            assert_eq!(of_head(&Head { api_version, kind: kind.clone() }), None, "{kind:?}");
        }
    }
}
