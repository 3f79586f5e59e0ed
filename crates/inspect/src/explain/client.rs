//! Client of an explained query, and its search path.

use std::net::IpAddr;

use cluster::Source;
use config::setup::{InspectCluster, Inspection};
use control::explain::{Client, Search};
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use kubeapi::{DnsPolicy, LocateError, LocatedPod, PodResolver, UnreadError};
use process::limit_hits;

use super::ExplainError;

/// `ndots` of a resolver without the option (resolv.conf(5)).
const NDOTS_USUAL: u64 = 1;
/// `ndots` of the resolv.conf that kubelet writes for `dnsPolicy: ClusterFirst`.
const NDOTS: u64 = 5;

/// Maximum number of clusters that are asked for a pod. Most Corefiles have one.
const SOURCES_MAX: usize = 4;

/// Pod as the source of a cluster has it, or `None` if there is no such pod. An error has the reason why it is not
/// known.
pub(crate) type Located = Result<Option<LocatedPod>, LocateError>;

/// Reads a client that is named as `NAMESPACE/POD` or by its address from the source of its cluster. `None` without a
/// source, or for another text. The index has addresses of pods, but not how their resolvers ask.
pub(crate) async fn locate(text: &str, sources: &[Source], inspection: &Inspection) -> Option<Located> {
    if sources.is_empty() {
        return None;
    }
    let wanted = match text.parse::<IpAddr>() {
        Ok(address) => Wanted::Address(address, namespaces_at(address, inspection)),
        Err(_) => pod_in(text).map(|(namespace, pod)| Wanted::Pod(namespace, pod))?,
    };
    let ask = async |source| match &wanted {
        Wanted::Address(address, namespaces) => kubeapi::locate_address(source, *address, namespaces).await,
        Wanted::Pod(namespace, pod) => kubeapi::locate_pod(source, namespace, pod).await,
    };
    // All at the same time: together they may take no longer than one that does not respond.
    let mut asked: FuturesOrdered<_> = sources.iter().take(SOURCES_MAX).map(ask).collect();
    let mut reason = None;
    while let Some(found) = asked.next().await {
        count_late(&found);
        match found {
            Ok(Some(found)) => return Some(Ok(Some(found))),
            Ok(None) => {}
            Err(error) => reason = Some(error),
        }
    }
    Some(reason.map_or(Ok(None), Err))
}

/// Pod that a client's text names.
enum Wanted<'a> {
    /// The Pod with an address, and the namespaces in which the index has one.
    Address(IpAddr, Vec<String>),
    /// The Pod of a namespace with a name.
    Pod(&'a str, &'a str),
}

/// Counts an API server or a kubelet that did not respond in time.
fn count_late(found: &Located) {
    let is_late = match found {
        Ok(found) => found.as_ref().is_some_and(LocatedPod::is_kubelet_late),
        Err(error) => matches!(error, LocateError::Late),
    };
    if is_late {
        limit_hits::count(|limits| limits.pod_lookup_time);
    }
}

/// Returns the namespaces of the pods with an address, as far as the index has them.
fn namespaces_at(address: IpAddr, inspection: &Inspection) -> Vec<String> {
    let pods = inspection.clusters.iter().flat_map(|cluster| cluster.pods_at(address));
    let mut namespaces: Vec<String> = pods.map(|pod| pod.namespace).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    namespaces
}

/// Returns namespace and name of a pod.
fn pod_in(text: &str) -> Option<(&str, &str)> {
    text.split_once('/').filter(|(namespace, pod)| is_label(namespace) && !pod.is_empty() && !pod.contains('/'))
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
        (Ok(address), _) => at_address(address, clusters, located),
        (_, Some(pod)) => named(pod, clusters, located),
        _ => return Err(ExplainError::From(text.to_owned())),
    };
    let resolver = located.map(resolver_of);
    let search = client.namespace.as_deref().and_then(|namespace| search_of(namespace, inspection, resolver));
    Ok((Some(client), search))
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && !text.contains(['.', '/'])
}

/// Reason why the resolver of a pod is not known.
#[derive(Debug, thiserror::Error)]
enum ResolverError<'a> {
    /// The pod is known from an endpoint only.
    #[error("{0}")]
    Unread(&'a UnreadError),
    /// There is no such pod.
    #[error("no such Pod was found")]
    NoPod,
    /// The pod was not located.
    #[error("{0}")]
    NotLocated(&'a LocateError),
}

/// Returns the resolver of a pod.
fn resolver_of(located: &Located) -> Result<&PodResolver, ResolverError<'_>> {
    match located {
        Ok(Some(pod)) => pod.resolver.as_ref().map_err(ResolverError::Unread),
        Ok(None) => Err(ResolverError::NoPod),
        Err(error) => Err(ResolverError::NotLocated(error)),
    }
}

fn at_address<'a>(
    address: IpAddr,
    clusters: impl Iterator<Item = &'a dyn InspectCluster>,
    located: Option<&Located>,
) -> Client {
    let unknown = located.and_then(|located| located.as_ref().err().map(ToString::to_string));
    let located = located.and_then(|located| located.as_ref().ok()?.as_ref());
    let (namespace, pod) = match located {
        Some(pod) => (Some(pod.namespace.clone()), Some(pod.name.clone())),
        None => {
            let pod = clusters.flat_map(|cluster| cluster.pods_at(address)).next();
            pod.map_or((None, None), |pod| (Some(pod.namespace), pod.name))
        }
    };
    Client { namespace, pod, address: Some(address.to_string()), unknown, ..Client::default() }
}

fn named<'a>(
    (namespace, pod): (&str, &str),
    clusters: impl Iterator<Item = &'a dyn InspectCluster> + Clone,
    located: Option<&Located>,
) -> Client {
    let is_known = clusters.clone().any(|cluster| cluster.has_all_pods(namespace));
    let mut addresses: Vec<IpAddr> = clusters.flat_map(|cluster| cluster.addresses_of_pod(namespace, pod)).collect();
    let found = located.and_then(|located| located.as_ref().ok()?.as_ref());
    addresses.extend(found.iter().flat_map(|found| &found.addresses));
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

/// Returns the search path of a pod. Unless its kubelet is known, its cluster domain is the first zone of the cluster
/// that has its namespace.
fn search_of(
    namespace: &str,
    inspection: &Inspection,
    resolver: Option<Result<&PodResolver, ResolverError<'_>>>,
) -> Option<Search> {
    let resolver = match resolver {
        Some(Ok(resolver)) => resolver,
        unread => {
            let domains = cluster_domains(namespace, &zone_of(namespace, inspection)?);
            let unknown = unread.and_then(Result::err).map(|error| error.to_string());
            return Some(Search { domains, ndots: NDOTS, unknown, ..Search::default() });
        }
    };
    let PodResolver { policy, nameservers, searches, ndots, cluster_domain } = resolver;
    let shown = match policy {
        DnsPolicy::ClusterFirst => control::explain::DnsPolicy::ClusterFirst,
        DnsPolicy::Node | DnsPolicy::HostNetwork => control::explain::DnsPolicy::Default,
        DnsPolicy::None => control::explain::DnsPolicy::None,
    };
    let (mut domains, usual) = match policy {
        DnsPolicy::ClusterFirst => {
            let known = cluster_domain.as_ref().and_then(|known| known.as_ref().ok());
            let domain = known.cloned().or_else(|| zone_of(namespace, inspection))?;
            (cluster_domains(namespace, &domain), NDOTS)
        }
        DnsPolicy::Node | DnsPolicy::HostNetwork | DnsPolicy::None => (Vec::new(), NDOTS_USUAL),
    };
    for search in searches {
        // kubelet leaves repeated ones out.
        if !domains.contains(search) {
            domains.push(search.clone());
        }
    }
    Some(Search {
        domains,
        ndots: ndots.unwrap_or(usual),
        policy: Some(shown),
        nameservers: nameservers.clone(),
        assumed: *policy == DnsPolicy::ClusterFirst && !matches!(cluster_domain, Some(Ok(_))),
        unknown: cluster_domain.as_ref().and_then(|known| known.as_ref().err()).map(ToString::to_string),
        host_network: *policy == DnsPolicy::HostNetwork,
        cluster_dns: Vec::new(),
    })
}

/// Returns the first zone of the cluster that has a namespace.
fn zone_of(namespace: &str, inspection: &Inspection) -> Option<String> {
    let clusters = || inspection.clusters.iter().filter(|cluster| !cluster.zones().is_empty());
    let own = clusters().find(|cluster| cluster.has_namespace(namespace)).or_else(|| clusters().next())?;
    Some(own.zones().first()?.to_string())
}

/// Returns the search domains of `dnsPolicy: ClusterFirst`.
fn cluster_domains(namespace: &str, domain: &str) -> Vec<String> {
    let domain = domain.trim_end_matches('.');
    vec![format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.to_owned()]
}
