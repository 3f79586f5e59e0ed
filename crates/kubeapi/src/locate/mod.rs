//! Addresses and resolver of one Pod, for questions about it.
//!
//! The index keeps the names of Pods only where a plugin needs them, because they would cost memory for every endpoint.
//! A question about one Pod is rare, so it reads the Pod from the source of the objects instead: the Pod itself, or, if
//! Pods may not be read, the EndpointSlices of its namespace, which name it in `targetRef`.

mod resolver;
mod slices;

use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use std::path::PathBuf;

use cluster::Source;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::ApiError;
use crate::on_disk::{ManifestPod, Manifests};
use crate::target::percent_encode;
use crate::{ReadError, Reader, SetupError};
use resolver::PodSpec;
pub use resolver::{DnsPolicy, KubeletError, PodResolver};
use slices::Slice;
pub use slices::pods_in;

/// Time limit for all requests. A person waits for the answer.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Number of EndpointSlices that a request asks for.
const PAGE_OBJECTS: u32 = 500;
/// Maximum number of pages of EndpointSlices: 10,000 in one namespace.
const PAGES_MAX: usize = 20;
/// Maximum number of namespaces in which a Pod is searched by its address.
const NAMESPACES_MAX: usize = 4;
/// Number of Pods with the same address that a message names.
const SHARED_SHOWN: usize = 3;
/// Maximum size of a response in bytes: a slice with 1,000 endpoints has about 300 KiB.
const RESPONSE_MAX: usize = 16 << 20;

/// Pod, as far as a question about it needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedPod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Addresses; empty for a Pod that has none yet.
    pub addresses: Vec<IpAddr>,
    /// Settings of its resolver. An error says why the Pod itself could not be read.
    pub resolver: Result<PodResolver, UnreadError>,
}

impl LocatedPod {
    /// Returns true if the kubelet of its node did not respond in time.
    #[must_use]
    pub fn is_kubelet_late(&self) -> bool {
        let resolver = self.resolver.as_ref().ok();
        matches!(resolver.and_then(|resolver| resolver.cluster_domain.as_ref()), Some(Err(KubeletError::Late(_))))
    }
}

/// Reason why a Pod could not be read that is known from an endpoint of a Service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadError {
    /// The role of the server does not allow to list Pods.
    #[error("the API server refuses to list Pods (403; right: list pods)")]
    Refused,
    /// The API server has no understandable answer, for this reason.
    #[error("the Pod cannot be read: {0}")]
    Api(String),
    /// The manifests have no such Pod.
    #[error("the manifests have an endpoint of the Pod, but not the Pod")]
    NotInManifests,
    /// The API server has no such Pod any more.
    #[error("an EndpointSlice refers to the Pod, which does not exist")]
    Gone,
}

impl From<&ReadError> for UnreadError {
    fn from(error: &ReadError) -> UnreadError {
        if error.status() == Some(403) { UnreadError::Refused } else { UnreadError::Api(error.to_string()) }
    }
}

/// Reason why a Pod is unknown.
#[derive(Debug)]
pub enum LocateError {
    /// The text is not the name of a Pod or of a namespace.
    Name(String),
    /// The source cannot be used.
    Source(String),
    /// The API server did not answer in time.
    Late,
    /// Pods may not be read, for this reason, and no EndpointSlice refers to the Pod.
    NoPods(ReadError),
    /// Neither a Pod nor an EndpointSlice in the manifests has the name.
    NotInManifests,
    /// Pods may not be read, for this reason, so that the one with an address is unknown.
    NoAddress(ReadError),
    /// The address is that of these Pods, which are on the network of their node.
    Shared(Vec<String>),
}

impl fmt::Display for LocateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LocateError::Name(text) => write!(out, "`{text}` is not a name that Kubernetes accepts"),
            LocateError::Source(text) => out.write_str(text),
            LocateError::Late => write!(out, "the API server did not answer within {} s", TIME_MAX.as_secs()),
            LocateError::NoPods(error) if error.status() == Some(403) => {
                out.write_str("no EndpointSlice refers to the Pod, and the API server refuses to list Pods (403)")
            }
            LocateError::NoPods(error) => write!(out, "the Pod cannot be read: {error}"),
            LocateError::NotInManifests => out.write_str("the manifests have neither the Pod nor an endpoint of it"),
            LocateError::NoAddress(error) => UnreadError::from(error).fmt(out),
            LocateError::Shared(pods) => {
                let shown = pods.iter().take(SHARED_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = pods.len().saturating_sub(SHARED_SHOWN);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                write!(out, "the address is that of a node, and of the Pods on its network: {shown}{more}; ")?;
                out.write_str("name one of them with `--from NAMESPACE/POD`")
            }
        }
    }
}

impl core::error::Error for LocateError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            LocateError::NoPods(error) | LocateError::NoAddress(error) => Some(error),
            _ => None,
        }
    }
}

/// Reads the addresses and the resolver of a Pod from the source of the objects; `None` if the source has no such Pod.
///
/// Needs a tokio runtime with I/O and time.
///
/// # Errors
/// It is unknown which addresses the Pod has.
pub async fn locate_pod(source: &Source, namespace: &str, pod: &str) -> Result<Option<LocatedPod>, LocateError> {
    if let Some(text) = [namespace, pod].into_iter().find(|text| !is_name(text)) {
        return Err(LocateError::Name(text.to_owned()));
    }
    match source {
        Source::Manifests(paths) => in_manifests(paths.clone(), namespace.to_owned(), pod.to_owned()).await,
        _ => in_time(async { by_name(&connect(source).await?, namespace, pod).await }).await,
    }
}

/// Reads the Pod with an address from the source of the objects; `None` if the source has no such Pod. `namespaces` are
/// those in which the address is known as an endpoint of a Service: they are searched where the role of the server does
/// not allow to list the Pods of all namespaces, and for the second address of a Pod, which Pods cannot be selected by.
///
/// Needs a tokio runtime with I/O and time.
///
/// # Errors
/// The Pod with the address is unknown.
pub async fn locate_address(
    source: &Source,
    address: IpAddr,
    namespaces: &[String],
) -> Result<Option<LocatedPod>, LocateError> {
    match source {
        Source::Manifests(paths) => at_address_in_manifests(paths.clone(), address).await,
        _ => in_time(async { at_address(&connect(source).await?, address, namespaces).await }).await,
    }
}

async fn in_time<T>(locating: impl Future<Output = Result<T, LocateError>>) -> Result<T, LocateError> {
    tokio::time::timeout(TIME_MAX, locating).await.map_err(|_| LocateError::Late)?
}

/// Returns true for a DNS subdomain, as the names of Pods and namespaces are (RFC 1123). It needs no escape in a URL.
fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    (1..=253).contains(&text.len()) && text.bytes().all(is_letter)
}

async fn in_manifests(paths: Vec<PathBuf>, namespace: String, name: String) -> Result<Option<LocatedPod>, LocateError> {
    let key = (namespace.clone(), name.clone());
    let found = blocking(move || Manifests::pod(&paths, &namespace, &name)).await?;
    if found.addresses.is_empty() && found.spec.is_none() {
        return Err(LocateError::NotInManifests);
    }
    Ok(Some(of_manifest(key, found).await))
}

async fn at_address_in_manifests(paths: Vec<PathBuf>, address: IpAddr) -> Result<Option<LocatedPod>, LocateError> {
    let found = blocking(move || Manifests::pods_at(&paths, address)).await?;
    let is_on_host = |pod: &ManifestPod| pod.spec.as_ref().is_some_and(|spec| spec.host_network.unwrap_or(false));
    Ok(match only(found, |(key, pod)| (key.clone(), is_on_host(pod)))? {
        Some((key, pod)) => Some(of_manifest(key, pod).await),
        None => None,
    })
}

async fn of_manifest((namespace, name): (String, String), found: ManifestPod) -> LocatedPod {
    let resolver = match found.spec {
        Some(spec) => Ok(PodSpec::from(&spec).resolver(None).await),
        None => Err(UnreadError::NotInManifests),
    };
    LocatedPod { namespace, name, addresses: in_order(found.addresses), resolver }
}

async fn connect(source: &Source) -> Result<Reader, LocateError> {
    let source = source.clone();
    // The kubeconfig may name a program for credentials.
    blocking(move || Reader::new(&source)).await
}

/// Runs work with files or programs on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SetupError> + Send + 'static,
) -> Result<T, LocateError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| LocateError::Source(error.to_string()))?;
    done.map_err(|error| LocateError::Source(error.to_string()))
}

async fn by_name(reader: &Reader, namespace: &str, name: &str) -> Result<Option<LocatedPod>, LocateError> {
    // The usual role of a DNS server has the verbs `list` and `watch`, not `get`.
    let path = format!("/api/v1/namespaces/{namespace}/pods?fieldSelector=metadata.name%3D{name}");
    match list::<Pod>(reader, &path).await {
        Ok(list) => Ok(match list.items.into_iter().next() {
            Some(pod) => Some(pod.located(reader).await),
            None => None,
        }),
        Err(error) => match in_slices(reader, namespace, |slice| slice.addresses_of(name).collect()).await {
            Ok(addresses) if !addresses.is_empty() => {
                let (namespace, name, resolver) = (namespace.to_owned(), name.to_owned(), Err((&error).into()));
                Ok(Some(LocatedPod { namespace, name, addresses: in_order(addresses), resolver }))
            }
            _ => Err(LocateError::NoPods(error)),
        },
    }
}

async fn at_address(
    reader: &Reader,
    address: IpAddr,
    namespaces: &[String],
) -> Result<Option<LocatedPod>, LocateError> {
    let namespaces = || namespaces.iter().filter(|namespace| is_name(namespace)).take(NAMESPACES_MAX);
    let mut refusal = None;
    for namespace in core::iter::once(None).chain(namespaces().map(Some)) {
        match live_at(reader, namespace.map(String::as_str), address).await {
            Ok(live) => {
                if let Some(pod) = only(live, |pod| (pod.metadata.key(), pod.spec.is_on_host_network()))? {
                    return Ok(Some(pod.located(reader).await));
                }
                if namespace.is_none() {
                    break;
                }
            }
            Err(error) => refusal = Some(error),
        }
    }
    for namespace in namespaces() {
        let names = in_slices(reader, namespace, |slice| slice.pods_at(address).map(str::to_owned).collect()).await;
        let Some(name) = names.unwrap_or_default().into_iter().find(|name| is_name(name)) else { continue };
        let found = by_name(reader, namespace, &name).await?;
        let gone = || {
            let (namespace, addresses, resolver) = (namespace.clone(), vec![address], Err(UnreadError::Gone));
            LocatedPod { namespace, name, addresses, resolver }
        };
        return Ok(Some(found.unwrap_or_else(gone)));
    }
    refusal.map_or(Ok(None), |error| Err(LocateError::NoAddress(error)))
}

/// Returns the Pods with an address that have not ended, of one namespace or of all.
async fn live_at(reader: &Reader, namespace: Option<&str>, address: IpAddr) -> Result<Vec<Pod>, ReadError> {
    let scope = namespace.map_or_else(String::new, |namespace| format!("namespaces/{namespace}/"));
    let list = list::<Pod>(reader, &format!("/api/v1/{scope}pods?fieldSelector=status.podIP%3D{address}")).await?;
    Ok(list.items.into_iter().filter(|pod| pod.is_live_at(address)).collect())
}

/// Returns the only Pod of those with an address; `None` without one. `about` returns the namespace and name of a Pod,
/// and true if it is on the network of its node.
///
/// # Errors
/// Address of a node, which other clients on the node have too, or of several Pods.
fn only<T>(mut pods: Vec<T>, about: impl Fn(&T) -> ((String, String), bool)) -> Result<Option<T>, LocateError> {
    if pods.is_empty() || matches!(pods.as_slice(), [pod] if !about(pod).1) {
        return Ok(pods.pop());
    }
    let name = |pod: &T| {
        let ((namespace, name), _) = about(pod);
        format!("{namespace}/{name}")
    };
    Err(LocateError::Shared(pods.iter().map(name).collect()))
}

fn in_order(mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// Reads the EndpointSlices of a namespace, and returns what `read` finds in them.
async fn in_slices<T>(reader: &Reader, namespace: &str, read: impl Fn(&Slice) -> Vec<T>) -> Result<Vec<T>, ReadError> {
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?limit={PAGE_OBJECTS}");
    let (mut found, mut next) = (Vec::new(), String::new());
    for _ in 0..PAGES_MAX {
        let list = list::<Slice>(reader, &format!("{path}{next}")).await?;
        found.extend(list.items.iter().flat_map(&read));
        if list.metadata.next.is_empty() {
            break;
        }
        next = "&continue=".to_owned();
        percent_encode(&mut next, &list.metadata.next);
    }
    Ok(found)
}

async fn list<T: DeserializeOwned>(reader: &Reader, path: &str) -> Result<List<T>, ReadError> {
    let document = reader.get(path, RESPONSE_MAX).await?;
    serde_json::from_slice(&document.body).map_err(|error| ReadError(ApiError::Unexpected(error.to_string())))
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default)]
    metadata: ListMetadata,
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue", default)]
    next: String,
}

#[derive(Deserialize)]
struct Pod {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    namespace: String,
    name: String,
}

impl Metadata {
    fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: String,
    #[serde(rename = "podIP")]
    ip: String,
    #[serde(rename = "podIPs")]
    ips: Vec<PodIp>,
}

#[derive(Deserialize)]
struct PodIp {
    #[serde(default)]
    ip: String,
}

impl Pod {
    fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let texts = self.status.ips.iter().map(|ip| &ip.ip).chain([&self.status.ip]);
        texts.filter_map(|text| text.parse().ok())
    }

    /// Returns true for a Pod that has not ended, and has the address. One that has ended keeps its address, which
    /// another Pod may have by now.
    fn is_live_at(&self, address: IpAddr) -> bool {
        !matches!(self.status.phase.as_str(), "Succeeded" | "Failed") && self.addresses().any(|own| own == address)
    }

    async fn located(self, reader: &Reader) -> LocatedPod {
        let addresses = in_order(self.addresses().collect());
        let ((namespace, name), resolver) = (self.metadata.key(), Ok(self.spec.resolver(Some(reader)).await));
        LocatedPod { namespace, name, addresses, resolver }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fakeapi::{FakeApi, object};
    use serde_json::json;

    fn located(api: &FakeApi, pod: &str) -> Result<Vec<String>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let source = Source::Endpoint { url: api.url().to_owned(), tls: None };
        let found = runtime.block_on(locate_pod(&source, "shop", pod));
        let addresses = |found: LocatedPod| found.addresses.iter().map(ToString::to_string).collect();
        found.map(|found| found.map(addresses).unwrap_or_default()).map_err(|error| error.to_string())
    }

    /// Returns the Pod with an address, and why it could not be read.
    fn at(api: &FakeApi, address: &str) -> Result<Option<(String, Option<String>)>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let source = Source::Endpoint { url: api.url().to_owned(), tls: None };
        let namespaces = ["billing".to_owned(), "shop".to_owned()];
        let found = runtime.block_on(locate_address(&source, address.parse().unwrap(), &namespaces));
        let shown = |pod: LocatedPod| {
            (format!("{}/{}", pod.namespace, pod.name), pod.resolver.err().map(|error| error.to_string()))
        };
        found.map(|found| found.map(shown)).map_err(|error| error.to_string())
    }

    fn api() -> FakeApi {
        let api = FakeApi::start();
        let ips = json!({"status": {"podIP": "10.1.0.7", "podIPs": [{"ip": "10.1.0.7"}, {"ip": "fd00::7"}]}});
        api.put(object("Pod", "shop", "web-1", ips));
        let target = |name: &str| json!({"kind": "Pod", "name": name});
        let endpoints = json!([
            {"addresses": ["10.1.0.8"], "targetRef": target("web-2"), "conditions": {"ready": true}},
            {"addresses": ["10.1.0.9"], "targetRef": target("web-3"), "conditions": {"ready": false}},
        ]);
        api.put(object("EndpointSlice", "shop", "web", json!({"addressType": "IPv4", "endpoints": endpoints})));
        api
    }

    #[test]
    fn reads_all_addresses_of_a_pod() {
        let api = api();
        assert_eq!(located(&api, "web-1"), Ok(vec!["10.1.0.7".to_owned(), "fd00::7".to_owned()]));
        assert_eq!(located(&api, "gone"), Ok(Vec::new()));
        let error = located(&api, "web-1&limit=1").unwrap_err();
        assert_eq!(error, "`web-1&limit=1` is not a name that Kubernetes accepts");
    }

    #[test]
    fn reads_endpoints_where_pods_may_not_be_read() {
        let api = api();
        api.fault("pods", fakeapi::Fault::Status(403, None));
        assert_eq!(located(&api, "web-2"), Ok(vec!["10.1.0.8".to_owned()]));
        api.fault("pods", fakeapi::Fault::Status(403, None));
        assert_eq!(located(&api, "web-3"), Ok(vec!["10.1.0.9".to_owned()]), "also if it is not ready");
        api.fault("pods", fakeapi::Fault::Status(403, None));
        let error = located(&api, "web-1").unwrap_err();
        assert_eq!(error, "no EndpointSlice refers to the Pod, and the API server refuses to list Pods (403)");
    }

    #[test]
    fn finds_the_pod_with_an_address() {
        let api = api();
        let web = || Ok(Some(("shop/web-1".to_owned(), None)));
        assert_eq!(at(&api, "10.1.0.7"), web());
        assert_eq!(at(&api, "10.1.0.99"), Ok(None));
        // Pods can be selected by their first address only; the endpoint says which one has the second.
        let target = json!({"kind": "Pod", "name": "web-1"});
        let endpoints = json!([{"addresses": ["fd00::7"], "targetRef": target}]);
        api.put(object("EndpointSlice", "shop", "web6", json!({"addressType": "IPv6", "endpoints": endpoints})));
        assert_eq!(at(&api, "fd00::7"), web());
        // The Pod of an endpoint may be gone.
        assert_eq!(at(&api, "10.1.0.8"), Ok(Some(("shop/web-2".to_owned(), Some(UnreadError::Gone.to_string())))));
    }

    #[test]
    fn says_why_the_pod_with_an_address_is_unknown() {
        let api = api();
        let node = |name: &str| json!({"spec": {"hostNetwork": true}, "status": {"podIP": name}});
        api.put(object("Pod", "kube-system", "proxy", node("192.0.2.1")));
        api.put(object("Pod", "kube-system", "cni", node("192.0.2.1")));
        let error = at(&api, "192.0.2.1").unwrap_err();
        assert!(error.contains("that of a node") && error.contains("kube-system/proxy"), "{error}");
        let ended = json!({"status": {"podIP": "10.1.0.70", "phase": "Succeeded"}});
        api.put(object("Pod", "shop", "job", ended));
        assert_eq!(at(&api, "10.1.0.70"), Ok(None));
        api.fault("pods", fakeapi::Fault::Status(403, None));
        assert_eq!(at(&api, "10.1.0.8"), Ok(Some(("shop/web-2".to_owned(), Some(UnreadError::Refused.to_string())))));
        assert_eq!(at(&api, "10.1.0.99"), Err(UnreadError::Refused.to_string()));
        // A role for some namespaces.
        api.script("pods", [Some(fakeapi::Fault::Status(403, None))]);
        assert_eq!(at(&api, "10.1.0.7"), Ok(Some(("shop/web-1".to_owned(), None))));
    }
}
