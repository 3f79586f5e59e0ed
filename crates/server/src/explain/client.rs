//! Client of an explained query, and its search path.

use std::net::IpAddr;

use config::setup::{InspectCluster, Inspection};
use control::explain::{Client, Search};

use super::ExplainError;

/// `ndots` of the resolv.conf that kubelet writes for `dnsPolicy: ClusterFirst`.
const NDOTS: u64 = 5;

/// Finds a client that is named as `NAMESPACE/POD` or by its address, and its search path.
///
/// # Errors
/// The text is neither.
pub(super) fn find(text: &str, inspection: &Inspection) -> Result<(Option<Client>, Option<Search>), ExplainError> {
    let clusters = inspection.clusters.iter().map(|cluster| &**cluster);
    let client = match (text.parse::<IpAddr>(), text.split_once('/')) {
        (Ok(address), _) => at_address(address, clusters),
        (_, Some((namespace, pod))) if is_label(namespace) && !pod.is_empty() => named(namespace, pod, clusters),
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
    Client { namespace, pod, address: Some(address.to_string()), missing: false }
}

fn named<'a>(namespace: &str, pod: &str, mut clusters: impl Iterator<Item = &'a dyn InspectCluster> + Clone) -> Client {
    let is_known = clusters.clone().any(|cluster| cluster.has_all_pods(namespace));
    let address = clusters.find_map(|cluster| cluster.address_of_pod(namespace, pod));
    let address = address.map(|address| address.to_string());
    let missing = is_known && address.is_none();
    Client { namespace: Some(namespace.to_owned()), pod: Some(pod.to_owned()), address, missing }
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
