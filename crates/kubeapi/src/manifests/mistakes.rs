//! Likely mistakes in manifests. An API server would reject such an object; here it would only be missing.

use std::net::IpAddr;

use corefile::did_you_mean;

use super::model::{Head, Service, Text};

/// API group with objects that answers depend on.
struct Group {
    name: &'static str,
    /// Value of `apiVersion` to suggest.
    api_version: &'static str,
    /// Kinds that answers depend on.
    kinds: &'static [&'static str],
    /// Kinds that are similar to one of `kinds` and are not misspelled.
    others: &'static [&'static str],
}

const GROUPS: [Group; 4] = [
    Group {
        name: "",
        api_version: "v1",
        kinds: &["Namespace", "Service", "Endpoints", "Pod", "List"],
        others: &["Node", "Event"],
    },
    Group { name: "discovery.k8s.io", api_version: "discovery.k8s.io/v1", kinds: &["EndpointSlice"], others: &[] },
    Group {
        name: "multicluster.x-k8s.io",
        api_version: "multicluster.x-k8s.io/v1alpha1",
        kinds: &["ServiceImport"],
        others: &["ServiceExport"],
    },
    Group {
        name: "networking.istio.io",
        api_version: "networking.istio.io/v1",
        kinds: &["ServiceEntry", "WorkloadEntry"],
        others: &[],
    },
];

/// Returns the `apiVersion` of a kind, `v1` if the kind is unknown.
pub(crate) fn api_version(kind: &str) -> &'static str {
    group_of(kind).map_or("v1", |group| group.api_version)
}

/// Returns a message if `kind` or `apiVersion` of an object that is ignored look misspelled.
pub(crate) fn of_head(head: &Head) -> Option<String> {
    let (api_version, kind) = (head.api_version.as_str(), head.kind.text.as_str());
    let name = api_version.split_once('/').map_or("", |(name, _)| name);
    if let Some(group) = group_of(kind) {
        let wanted = group.api_version;
        // Other groups may have kinds of the same name, such as the `Service` of Knative.
        let is_of_other_group =
            name != group.name && !name.is_empty() && did_you_mean(api_version, [wanted].into_iter()).is_none();
        return (!is_of_other_group).then(|| match api_version {
            "" => format!("`{kind}` without `apiVersion`; use `{wanted}`; the object is ignored"),
            _ => format!("`{api_version}` is not an API version of `{kind}`; use `{wanted}`; the object is ignored"),
        });
    }
    let group = GROUPS.iter().find(|group| group.name == name)?;
    if group.others.contains(&kind) {
        return None;
    }
    let near = did_you_mean(kind, group.kinds.iter().copied())?;
    Some(format!("unknown kind `{kind}`; did you mean `{near}`? The object is ignored"))
}

/// Returns the lines and messages of cluster IPs that are not IP addresses.
pub(crate) fn of_service(service: &Service) -> impl Iterator<Item = (usize, String)> {
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

fn group_of(kind: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.kinds.contains(&kind))
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
            "Node",
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
