//! Metadata labels about the query name and the client: `kubernetes/namespace` and so on.

use std::net::IpAddr;
use std::sync::Arc;

use engine::{Labels, Query, Zones};

use super::View;
use super::name::{Grammar, Part, Target, text};
use crate::shared::cluster_view::Exposed;
use crate::shared::service_records::labels_of;

/// Parts of a query name. Missing parts are empty.
#[derive(Default)]
struct Parts<'a> {
    kind: &'a [u8],
    namespace: &'a [u8],
    service: &'a [u8],
    endpoint: &'a [u8],
    cluster: &'a [u8],
    port: &'a [u8],
    protocol: &'a [u8],
    /// Labels in wire format.
    zone: &'a [u8],
}

type Say = fn(&Parts<'_>) -> String;

/// Labels published for every zone, with the function that computes each value.
const SAID: [(&str, Say); 6] = [
    ("kubernetes/kind", |parts| text(parts.kind)),
    ("kubernetes/namespace", |parts| text(parts.namespace)),
    ("kubernetes/service", |parts| text(parts.service)),
    ("kubernetes/endpoint", |parts| text(parts.endpoint)),
    ("kubernetes/port-name", |parts| text(parts.port)),
    ("kubernetes/protocol", |parts| text(parts.protocol)),
];

/// Publishes the labels for queries in these zones, and the labels with these keys of the client's pod.
pub(super) fn publish(
    labels: &Labels,
    (zones, views): (&Zones, &[View]),
    exposed: &Arc<Exposed>,
    pod_labels: &[String],
) {
    let grammars = views.iter().map(|view| view.grammar).collect();
    let reader = Arc::new(Reader { zones: zones.clone(), grammars });
    for (label, say) in SAID {
        let reader = Arc::clone(&reader);
        labels.publish(label, move |query| reader.read(query, |_, parts| parts.map(|parts| say(&parts))));
    }
    let of_zones = Arc::clone(&reader);
    labels.publish("kubernetes/zone", move |query| {
        of_zones
            .read(query, |grammar, parts| parts.filter(|_| grammar == Grammar::Zonal).map(|parts| dotted(parts.zone)))
    });
    let of_clusters = Arc::clone(&reader);
    labels.publish("kubernetes/cluster", move |query| {
        let is_common = |grammar| grammar == Grammar::Clusterset;
        of_clusters.read(query, |grammar, parts| parts.filter(|_| is_common(grammar)).map(|parts| text(parts.cluster)))
    });
    labels.publish("kubernetes/parse-error", move |query| {
        reader.read(query, |_, parts| parts.is_none().then(|| "invalid query name".to_owned()))
    });
    let own = Arc::clone(exposed);
    labels.publish("kubernetes/client-namespace", move |query| client_namespace(&own, query));
    if exposed.index.has_pod_names() {
        let own = Arc::clone(exposed);
        labels.publish("kubernetes/client-pod-name", move |query| {
            own.only_pod_at(client_address(query), |pod| pod.name())
        });
    }
    for (at, key) in pod_labels.iter().enumerate() {
        let own = Arc::clone(exposed);
        labels.publish(&format!("{CLIENT_LABEL}{key}"), move |query| {
            let value = own.only_pod_at(client_address(query), |pod| pod.label(at).to_owned());
            value.filter(|value| !value.is_empty())
        });
    }
}

/// Start of the metadata labels with the labels of the client's pod.
const CLIENT_LABEL: &str = "kubernetes/client-label/";
/// Maximum length in bytes of the key of a label: a prefix, a slash and a name (Kubernetes, "Labels and Selectors").
const KEY_MAX: usize = 253 + 1 + 63;

/// Returns the keys of the pod labels that words of the Corefile name as `kubernetes/client-label/KEY`, sorted.
pub(super) fn client_label_keys(words: &[String]) -> Vec<String> {
    let mut keys: Vec<String> = words.iter().flat_map(|word| keys_in(word)).map(str::to_owned).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn keys_in(word: &str) -> impl Iterator<Item = &str> {
    word.split(CLIENT_LABEL).skip(1).filter_map(|rest| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        Some(&rest[..end]).filter(|key| (1..=KEY_MAX).contains(&key.len()))
    })
}

fn client_address(query: &Query) -> IpAddr {
    query.peer.address.ip().to_canonical()
}

/// Namespace of the pods at the client's address. `None` if they are in several namespaces.
fn client_namespace(exposed: &Exposed, query: &Query) -> Option<String> {
    let (mut found, mut is_one) = (None, true);
    exposed.index.namespaces_of_pod(client_address(query), |namespace| {
        is_one &= found.as_deref().is_none_or(|found| found == namespace);
        found = Some(namespace.to_owned());
    });
    found.filter(|_| is_one)
}

/// Parser for query names in the zones of this block.
struct Reader {
    zones: Zones,
    grammars: Box<[Grammar]>,
}

impl Reader {
    /// Parses the client's original query name. `None` if it is in none of the zones.
    fn read<R>(&self, query: &Query, say: impl FnOnce(Grammar, Option<Parts<'_>>) -> Option<R>) -> Option<R> {
        let name = query.request.name.clone().into_lowercase();
        let index = self.zones.find(name.as_ref())?;
        let before = name.as_ref().prefix_len(self.zones.names().get(index)?.as_ref())?;
        let (prefix, grammar) = (name.as_bytes().get(..before)?, *self.grammars.get(index)?);
        say(grammar, Parts::of(Target::read(prefix, grammar), prefix))
    }
}

impl<'a> Parts<'a> {
    /// Splits a target into its parts. `None` if no name of this form exists.
    fn of(target: Target<'a>, prefix: &'a [u8]) -> Option<Parts<'a>> {
        match target {
            Target::Apex => Some(Parts::default()),
            Target::Branch => {
                let kind = labels_of(prefix).next().filter(|label| matches!(*label, b"svc" | b"pod"))?;
                Some(Parts { kind, ..Parts::default() })
            }
            Target::Namespace(namespace) => Some(Parts { kind: b"svc", namespace, ..Parts::default() }),
            Target::PodNamespace(namespace) => Some(Parts { kind: b"pod", namespace, ..Parts::default() }),
            Target::Pod { namespace, pod } => Some(Parts { kind: b"pod", namespace, service: pod, ..Parts::default() }),
            Target::Service { namespace, service, part } => {
                Some(Parts { kind: b"svc", namespace, service, ..Parts::of_part(part) })
            }
            Target::Version | Target::NameServer | Target::Nothing => None,
        }
    }

    fn of_part(part: Part<'a>) -> Parts<'a> {
        let none = Parts::default();
        match part {
            Part::Whole | Part::Each => none,
            Part::Endpoint(endpoint) => Parts { endpoint, ..none },
            Part::EndpointIn(endpoint, cluster) => Parts { endpoint, cluster, ..none },
            Part::Zone { zone, .. } => Parts { zone, ..none },
            Part::Protocol(protocol) => Parts { protocol, ..none },
            Part::Port(port, protocol) => Parts { port, protocol, ..none },
        }
    }
}

fn dotted(labels: &[u8]) -> String {
    labels_of(labels).map(text).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::client_label_keys;

    #[test]
    fn finds_the_keys_of_pod_labels_in_all_forms() {
        let words = [
            "{name} {/kubernetes/client-label/app.kubernetes.io/name} {/kubernetes/client-label/tier}",
            "metadata('kubernetes/client-label/app') == 'web'",
            "kubernetes/client-label/tier",
            "kubernetes/client-label/",
            "kubernetes/client-pod-name",
            "app",
        ];
        let words = words.map(str::to_owned);
        assert_eq!(client_label_keys(&words), ["app", "app.kubernetes.io/name", "tier"]);
        assert!(client_label_keys(&[format!("kubernetes/client-label/{}", "a".repeat(400))]).is_empty());
    }
}
