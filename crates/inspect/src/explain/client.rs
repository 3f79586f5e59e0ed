//! Client of an explained query, and its search path.

use std::net::IpAddr;

use cluster::Source;
use config::setup::{InspectCluster, Inspection};
use control::explain::{Client, Search};
use kubeapi::LocateError;

use super::ExplainError;

/// `ndots` of the resolv.conf that kubelet writes for `dnsPolicy: ClusterFirst`.
const NDOTS: u64 = 5;

/// Maximum number of clusters that are asked for a pod. Most Corefiles have one.
const SOURCES_MAX: usize = 4;

/// Addresses of a pod as the source of a cluster has them; empty if there is no such pod. An error has the reason why
/// they are not known.
pub(crate) type Located = Result<Vec<IpAddr>, LocateError>;

/// Reads the addresses of a client that is named as `NAMESPACE/POD` from the source of its cluster. `None` if the index
/// has all that is known, or the client is not named so.
pub(crate) async fn locate(text: &str, inspection: &Inspection, sources: &[Source]) -> Option<Located> {
    let (namespace, pod) = pod_in(text)?;
    let is_known = |cluster: &dyn InspectCluster| {
        cluster.has_all_pods(namespace) && !cluster.addresses_of_pod(namespace, pod).is_empty()
    };
    if sources.is_empty() || inspection.clusters.iter().any(|cluster| is_known(&**cluster)) {
        return None;
    }
    let mut reason = None;
    for source in sources.iter().take(SOURCES_MAX) {
        match kubeapi::pod_addresses(source, namespace, pod).await {
            Ok(addresses) if !addresses.is_empty() => return Some(Ok(addresses)),
            Ok(_) => {}
            Err(error) => reason = Some(error),
        }
    }
    Some(reason.map_or_else(|| Ok(Vec::new()), Err))
}

/// Returns namespace and name of a pod.
fn pod_in(text: &str) -> Option<(&str, &str)> {
    text.split_once('/').filter(|(namespace, pod)| is_label(namespace) && !pod.is_empty())
}

/// Finds a client that is named as `NAMESPACE/POD` or by its address, and its search path. `located` are the addresses
/// of the pod in the source of its cluster, if that was asked.
///
/// # Errors
/// The text is neither.
pub(super) fn find(
    text: &str,
    inspection: &Inspection,
    located: Option<&Located>,
) -> Result<(Option<Client>, Option<Search>), ExplainError> {
    let clusters = inspection.clusters.iter().map(|cluster| &**cluster);
    let client = match (text.parse::<IpAddr>(), pod_in(text)) {
        (Ok(address), _) => at_address(address, clusters),
        (_, Some(pod)) => named(pod, clusters, located),
        _ => return Err(ExplainError::From(text.to_owned())),
    };
    let search = client.namespace.as_deref().and_then(|namespace| search_of(namespace, inspection));
    Ok((Some(client), search))
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && !text.contains(['.', '/'])
}

fn at_address<'a>(address: IpAddr, clusters: impl Iterator<Item = &'a dyn InspectCluster>) -> Client {
    let pod = clusters.flat_map(|cluster| cluster.pods_at(address)).next();
    let (namespace, pod) = pod.map_or((None, None), |pod| (Some(pod.namespace), pod.name));
    Client { namespace, pod, address: Some(address.to_string()), ..Client::default() }
}

fn named<'a>(
    (namespace, pod): (&str, &str),
    clusters: impl Iterator<Item = &'a dyn InspectCluster> + Clone,
    located: Option<&Located>,
) -> Client {
    let is_known = clusters.clone().any(|cluster| cluster.has_all_pods(namespace));
    let mut addresses: Vec<IpAddr> = clusters.flat_map(|cluster| cluster.addresses_of_pod(namespace, pod)).collect();
    addresses.extend(located.iter().flat_map(|located| located.iter().flatten()));
    // Most queries of a pod with both families come from its IPv4 address, because most clusters prefer that family.
    addresses.sort_unstable();
    addresses.dedup();
    let is_absent = is_known || matches!(located, Some(Ok(_)));
    let missing = is_absent && addresses.is_empty();
    let mut texts = addresses.iter().map(ToString::to_string);
    Client {
        namespace: Some(namespace.to_owned()),
        pod: Some(pod.to_owned()),
        address: texts.next(),
        other_addresses: texts.collect(),
        unknown: located.and_then(|located| located.as_ref().err().map(ToString::to_string)),
        missing,
    }
}

/// Returns the search path of a pod. Its cluster domain is the first zone of the cluster that has its namespace.
fn search_of(namespace: &str, inspection: &Inspection) -> Option<Search> {
    let clusters = || inspection.clusters.iter().filter(|cluster| !cluster.zones().is_empty());
    let own = clusters().find(|cluster| cluster.has_namespace(namespace)).or_else(|| clusters().next())?;
    let domain = own.zones().first()?.to_string();
    let domain = domain.trim_end_matches('.');
    let domains = vec![format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.to_owned()];
    Some(Search { domains, ndots: NDOTS })
}
