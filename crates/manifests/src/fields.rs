//! Names of the fields of manifests, to find misspelled ones. An API server ignores an unknown field or warns about it;
//! here a part of the object would be missing without a word.

use corefile::did_you_mean;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::model::Text;

/// Fields of an object or of a part of it.
pub struct Fields {
    /// Fields that answers depend on, with their own fields.
    used: &'static [(&'static str, &'static Fields)],
    /// Fields that are similar to one of `used` and are not misspelled.
    similar: &'static [&'static str],
}

/// Value without fields that are checked.
const VALUE: Fields = Fields { used: &[], similar: &[] };
const METADATA: Fields = Fields {
    used: &[("name", &VALUE), ("namespace", &VALUE), ("labels", &VALUE), ("deletionTimestamp", &VALUE)],
    similar: &["creationTimestamp", "generateName"],
};
/// Object of which only the metadata matter.
pub(crate) const OBJECT: Fields = Fields { used: &[("metadata", &METADATA)], similar: &[] };
const SERVICE_PORT: Fields = Fields {
    used: &[("name", &VALUE), ("protocol", &VALUE), ("port", &VALUE), ("targetPort", &VALUE)],
    similar: &["nodePort", "appProtocol"],
};
const SERVICE_SPEC: Fields = Fields {
    used: &[
        ("type", &VALUE),
        ("clusterIP", &VALUE),
        ("clusterIPs", &VALUE),
        ("externalName", &VALUE),
        ("externalIPs", &VALUE),
        ("ports", &SERVICE_PORT),
        ("selector", &VALUE),
        ("ipFamilies", &VALUE),
        ("ipFamilyPolicy", &VALUE),
        ("publishNotReadyAddresses", &VALUE),
    ],
    similar: &["ipFamily"],
};
const INGRESS: Fields = Fields { used: &[("ip", &VALUE), ("hostname", &VALUE)], similar: &["ipMode", "ports"] };
const LOAD_BALANCER: Fields = Fields { used: &[("ingress", &INGRESS)], similar: &[] };
const SERVICE_STATUS: Fields = Fields { used: &[("loadBalancer", &LOAD_BALANCER)], similar: &[] };
pub(crate) const SERVICE: Fields =
    Fields { used: &[("metadata", &METADATA), ("spec", &SERVICE_SPEC), ("status", &SERVICE_STATUS)], similar: &[] };
const IMPORT_SPEC: Fields =
    Fields { used: &[("type", &VALUE), ("ips", &VALUE), ("ports", &SERVICE_PORT)], similar: &[] };
pub(crate) const SERVICE_IMPORT: Fields =
    Fields { used: &[("metadata", &METADATA), ("spec", &IMPORT_SPEC)], similar: &["status"] };
const ENDPOINT_PORT: Fields =
    Fields { used: &[("name", &VALUE), ("protocol", &VALUE), ("port", &VALUE)], similar: &["appProtocol"] };
const CONDITIONS: Fields = Fields { used: &[("ready", &VALUE)], similar: &[] };
const REFERENCE: Fields = Fields { used: &[("kind", &VALUE), ("name", &VALUE)], similar: &["namespace"] };
const SLICE_ENDPOINT: Fields = Fields {
    used: &[
        ("addresses", &VALUE),
        ("conditions", &CONDITIONS),
        ("hostname", &VALUE),
        ("targetRef", &REFERENCE),
        ("zone", &VALUE),
    ],
    similar: &["nodeName", "hints"],
};
pub(crate) const ENDPOINT_SLICE: Fields = Fields {
    used: &[
        ("metadata", &METADATA),
        ("addressType", &VALUE),
        ("endpoints", &SLICE_ENDPOINT),
        ("ports", &ENDPOINT_PORT),
    ],
    similar: &[],
};
const SUBSET_ADDRESS: Fields =
    Fields { used: &[("ip", &VALUE), ("hostname", &VALUE), ("targetRef", &REFERENCE)], similar: &["nodeName"] };
const SUBSET: Fields = Fields {
    used: &[("addresses", &SUBSET_ADDRESS), ("notReadyAddresses", &SUBSET_ADDRESS), ("ports", &ENDPOINT_PORT)],
    similar: &[],
};
pub(crate) const ENDPOINTS: Fields = Fields { used: &[("metadata", &METADATA), ("subsets", &SUBSET)], similar: &[] };
const CONTAINER_PORT: Fields = Fields {
    used: &[("name", &VALUE), ("protocol", &VALUE), ("containerPort", &VALUE)],
    similar: &["hostPort", "hostIP"],
};
const CONTAINER: Fields = Fields { used: &[("ports", &CONTAINER_PORT)], similar: &[] };
const POD_SPEC: Fields = Fields {
    used: &[("hostname", &VALUE), ("subdomain", &VALUE), ("containers", &CONTAINER)],
    similar: &["hostUsers", "hostname", "nodeName"],
};
const POD_IP: Fields = Fields { used: &[("ip", &VALUE)], similar: &[] };
const POD_CONDITION: Fields = Fields { used: &[("type", &VALUE), ("status", &VALUE)], similar: &[] };
const POD_STATUS: Fields = Fields {
    used: &[("phase", &VALUE), ("podIP", &VALUE), ("podIPs", &POD_IP), ("conditions", &POD_CONDITION)],
    similar: &["hostIP", "hostIPs"],
};
pub const POD: Fields =
    Fields { used: &[("metadata", &METADATA), ("spec", &POD_SPEC), ("status", &POD_STATUS)], similar: &[] };
const MESH_PORT: Fields = Fields {
    used: &[("name", &VALUE), ("number", &VALUE), ("protocol", &VALUE), ("targetPort", &VALUE)],
    similar: &[],
};
const ENTRY_SPEC: Fields = Fields {
    used: &[
        ("hosts", &VALUE),
        ("addresses", &VALUE),
        ("ports", &MESH_PORT),
        ("location", &VALUE),
        ("resolution", &VALUE),
        ("endpoints", &WORKLOAD_SPEC),
        ("workloadSelector", &VALUE),
        ("exportTo", &VALUE),
        ("subjectAltNames", &VALUE),
    ],
    similar: &[],
};
const WORKLOAD_SPEC: Fields =
    Fields { used: &[("address", &VALUE), ("ports", &VALUE), ("labels", &VALUE)], similar: &[] };
pub(crate) const SERVICE_ENTRY: Fields =
    Fields { used: &[("metadata", &METADATA), ("spec", &ENTRY_SPEC)], similar: &["status"] };
pub(crate) const WORKLOAD_ENTRY: Fields =
    Fields { used: &[("metadata", &METADATA), ("spec", &WORKLOAD_SPEC)], similar: &["status"] };

/// Names of the fields of an object, with their lines.
pub(crate) enum FieldTree {
    Map(Vec<(Text, FieldTree)>),
    Seq(Vec<FieldTree>),
    Scalar,
}

impl FieldTree {
    /// Calls `each` with the line and a description of each misspelled field.
    pub fn misspelled(&self, fields: &Fields, each: &mut dyn FnMut(usize, String)) {
        match self {
            FieldTree::Map(entries) if !fields.used.is_empty() => {
                entries.iter().for_each(|(name, value)| check(name, value, fields, each));
            }
            FieldTree::Seq(items) => items.iter().for_each(|item| item.misspelled(fields, each)),
            FieldTree::Map(_) | FieldTree::Scalar => {}
        }
    }
}

fn check(name: &Text, value: &FieldTree, fields: &Fields, each: &mut dyn FnMut(usize, String)) {
    let Text { text, line } = name;
    if let Some((_, inner)) = fields.used.iter().find(|(used, _)| used == text) {
        return value.misspelled(inner, each);
    }
    if fields.similar.contains(&text.as_str()) {
        return;
    }
    if let Some(near) = did_you_mean(text, fields.used.iter().map(|(used, _)| *used)) {
        each(*line, format!("unknown field `{text}`; did you mean `{near}`? The field is ignored"));
    }
}

impl<'de> Deserialize<'de> for FieldTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FieldTree, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

/// Visitor methods for values without fields.
macro_rules! scalars {
    ($($method:ident($type:ty))*) => {
        $(fn $method<E>(self, _: $type) -> Result<FieldTree, E> {
            Ok(FieldTree::Scalar)
        })*
    };
}

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = FieldTree;

    scalars! { visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_f64(f64) visit_str(&str) visit_i128(i128) visit_u128(u128) }

    fn expecting(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<FieldTree, E> {
        Ok(FieldTree::Scalar)
    }

    fn visit_none<E>(self) -> Result<FieldTree, E> {
        Ok(FieldTree::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<FieldTree, D::Error> {
        FieldTree::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<FieldTree, A::Error> {
        let mut tree = Vec::new();
        while let Some(item) = items.next_element()? {
            tree.push(item);
        }
        Ok(FieldTree::Seq(tree))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<FieldTree, A::Error> {
        let mut tree = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            tree.push(entry);
        }
        Ok(FieldTree::Map(tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misspelled(fields: &Fields, json: &str) -> Vec<String> {
        let (tree, mut found): (FieldTree, _) = (serde_json::from_str(json).unwrap(), Vec::new());
        tree.misspelled(fields, &mut |_, text| found.push(text));
        found
    }

    #[test]
    fn reports_misspelled_fields_at_every_depth() {
        let text =
            |field: &str, near: &str| format!("unknown field `{field}`; did you mean `{near}`? The field is ignored");
        for (fields, json, expected) in [
            (&SERVICE, r#"{"spec": {"clusterIp": "None"}}"#, vec![text("clusterIp", "clusterIP")]),
            (
                &SERVICE,
                r#"{"spec": {"portz": [], "ports": [{"prot": 1}]}}"#,
                vec![text("portz", "ports"), text("prot", "port")],
            ),
            (&ENDPOINT_SLICE, r#"{"endpoints": [{"adresses": []}]}"#, vec![text("adresses", "addresses")]),
            (&OBJECT, r#"{"metadata": {"nmae": "x", "labels": {"nmae": "y"}}}"#, vec![text("nmae", "name")]),
            (&SERVICE, r#"{"sepc": 7}"#, vec![text("sepc", "spec")]),
            (&SERVICE, r#"{"spec": [true, null, 1.5, -1, "x"], "wholly": {"else": 1}}"#, vec![]),
        ] {
            assert_eq!(misspelled(fields, json), expected, "{json}");
        }
    }

    /// All fields of the API of Kubernetes 1.36 and Istio 1.27 at the levels that are checked.
    #[test]
    fn accepts_all_fields_of_the_api() {
        let metadata = "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName \
                        generation labels managedFields name namespace ownerReferences resourceVersion selfLink uid";
        let service_spec = "allocateLoadBalancerNodePorts clusterIP clusterIPs externalIPs externalName \
                            externalTrafficPolicy healthCheckNodePort internalTrafficPolicy ipFamilies ipFamily \
                            ipFamilyPolicy loadBalancerClass loadBalancerIP loadBalancerSourceRanges ports \
                            publishNotReadyAddresses selector sessionAffinity sessionAffinityConfig topologyKeys \
                            trafficDistribution type";
        let pod_spec = "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy \
                        enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname \
                        hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os overhead \
                        preemptionPolicy priority priorityClassName readinessGates resourceClaims resources \
                        restartPolicy runtimeClassName schedulerName schedulingGates securityContext serviceAccount \
                        serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain \
                        terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes workloadRef";
        let container = "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe \
                         resizePolicy resources restartPolicy restartPolicyRules securityContext startupProbe stdin \
                         stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts \
                         workingDir";
        let pod_status = "allocatedResources conditions containerStatuses ephemeralContainerStatuses \
                          extendedResourceClaimStatus hostIP hostIPs initContainerStatuses message nominatedNodeName \
                          observedGeneration phase podIP podIPs qosClass reason resize resourceClaimStatuses resources \
                          startTime";
        let condition = "lastProbeTime lastTransitionTime message observedGeneration reason status type";
        for (name, fields, all) in [
            ("object", &SERVICE, "apiVersion kind metadata spec status"),
            ("metadata", &METADATA, metadata),
            ("service", &SERVICE_SPEC, service_spec),
            ("service port", &SERVICE_PORT, "appProtocol name nodePort port protocol targetPort"),
            ("service status", &SERVICE_STATUS, "conditions loadBalancer"),
            ("ingress", &INGRESS, "hostname ip ipMode ports"),
            ("slice", &ENDPOINT_SLICE, "addressType apiVersion endpoints kind metadata ports"),
            (
                "endpoint",
                &SLICE_ENDPOINT,
                "addresses conditions deprecatedTopology hints hostname nodeName targetRef zone",
            ),
            ("conditions", &CONDITIONS, "ready serving terminating"),
            ("reference", &REFERENCE, "apiVersion fieldPath kind name namespace resourceVersion uid"),
            ("endpoint port", &ENDPOINT_PORT, "appProtocol name port protocol"),
            ("subset", &SUBSET, "addresses notReadyAddresses ports"),
            ("address", &SUBSET_ADDRESS, "hostname ip nodeName targetRef"),
            ("pod", &POD_SPEC, pod_spec),
            ("container", &CONTAINER, container),
            ("container port", &CONTAINER_PORT, "containerPort hostIP hostPort name protocol"),
            ("pod status", &POD_STATUS, pod_status),
            ("pod condition", &POD_CONDITION, condition),
            (
                "import",
                &IMPORT_SPEC,
                "ipFamilies ips internalTrafficPolicy ports sessionAffinity sessionAffinityConfig \
                                      trafficDistribution type",
            ),
            (
                "entry",
                &ENTRY_SPEC,
                "addresses endpoints exportTo hosts location ports resolution subjectAltNames \
                                    workloadSelector",
            ),
            ("workload", &WORKLOAD_SPEC, "address labels locality network ports serviceAccount weight"),
        ] {
            for field in all.split_whitespace() {
                let json = format!(r#"{{"{field}": 1}}"#);
                assert_eq!(misspelled(fields, &json), [""; 0], "{name}");
            }
        }
    }
}
