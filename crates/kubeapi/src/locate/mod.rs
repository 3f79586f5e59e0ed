//! Addresses and resolver of one Pod, for questions about it.
//!
//! The index keeps the names of Pods only where a plugin needs them, because they would cost memory for every endpoint.
//! A question about one Pod is rare, so it reads the Pod from the source of the objects instead: the Pod itself, or, if
//! Pods may not be read, the EndpointSlices of its namespace, which name it in `targetRef`.

mod resolver;

use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use std::path::PathBuf;

use cluster::Source;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::ApiError;
use crate::on_disk::Manifests;
use crate::target::encode;
use crate::{ReadError, Reader};
use resolver::PodSpec;
pub use resolver::{DnsPolicy, KubeletError, PodResolver};

/// Time limit for all requests. A person waits for the answer.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Number of EndpointSlices that a request asks for.
const PAGE_OBJECTS: u32 = 500;
/// Maximum number of pages of EndpointSlices: 10,000 in one namespace.
const PAGES_MAX: usize = 20;
/// Maximum size of a response in bytes: a slice with 1,000 endpoints has about 300 KiB.
const RESPONSE_MAX: usize = 16 << 20;

/// Pod, as far as a question about it needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocatedPod {
    /// Addresses; empty if there is no such Pod with an address.
    pub addresses: Vec<IpAddr>,
    /// Settings of its resolver; `None` if the Pod itself could not be read.
    pub resolver: Option<PodResolver>,
}

/// Reason why it is unknown which addresses a Pod has.
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
        }
    }
}

impl core::error::Error for LocateError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            LocateError::NoPods(error) => Some(error),
            _ => None,
        }
    }
}

/// Reads the addresses and the resolver of a Pod from the source of the objects; no addresses if the source has no such
/// Pod.
///
/// Needs a tokio runtime with I/O and time.
///
/// # Errors
/// It is unknown which addresses the Pod has.
pub async fn locate_pod(source: &Source, namespace: &str, pod: &str) -> Result<LocatedPod, LocateError> {
    if let Some(text) = [namespace, pod].into_iter().find(|text| !is_name(text)) {
        return Err(LocateError::Name(text.to_owned()));
    }
    let found = match source {
        Source::Manifests(paths) => in_manifests(paths.clone(), namespace.to_owned(), pod.to_owned()).await,
        _ => tokio::time::timeout(TIME_MAX, at_server(source.clone(), namespace, pod))
            .await
            .map_err(|_| LocateError::Late)?,
    };
    found.map(|mut found| {
        found.addresses.sort_unstable();
        found.addresses.dedup();
        found
    })
}

/// Returns true for a DNS subdomain, as the names of Pods and namespaces are (RFC 1123). It needs no escape in a URL.
fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    (1..=253).contains(&text.len()) && text.bytes().all(is_letter)
}

async fn in_manifests(paths: Vec<PathBuf>, namespace: String, pod: String) -> Result<LocatedPod, LocateError> {
    let reading = tokio::task::spawn_blocking(move || Manifests::pod(&paths, &namespace, &pod));
    let found = reading.await.map_err(|error| LocateError::Source(error.to_string()))?;
    let (addresses, spec) = found.map_err(|error| LocateError::Source(error.to_string()))?;
    if addresses.is_empty() && spec.is_none() {
        return Err(LocateError::NotInManifests);
    }
    let resolver = match spec {
        Some(spec) => Some(PodSpec::from(&spec).resolver(None).await),
        None => None,
    };
    Ok(LocatedPod { addresses, resolver })
}

async fn at_server(source: Source, namespace: &str, pod: &str) -> Result<LocatedPod, LocateError> {
    // The kubeconfig may name a program for credentials.
    let connecting = tokio::task::spawn_blocking(move || Reader::new(&source)).await;
    let reader = connecting.map_err(|error| LocateError::Source(error.to_string()))?;
    let reader = reader.map_err(|error| LocateError::Source(error.to_string()))?;
    // The usual role of a DNS server has the verbs `list` and `watch`, not `get`.
    let path = format!("/api/v1/namespaces/{namespace}/pods?fieldSelector=metadata.name%3D{pod}");
    match list::<Pod>(&reader, &path).await {
        Ok(list) => {
            let addresses = list.items.iter().flat_map(Pod::addresses).collect();
            let resolver = match list.items.into_iter().next() {
                Some(pod) => Some(pod.spec.resolver(Some(&reader)).await),
                None => None,
            };
            Ok(LocatedPod { addresses, resolver })
        }
        Err(error) => match in_slices(&reader, namespace, pod).await {
            Ok(addresses) if !addresses.is_empty() => Ok(LocatedPod { addresses, resolver: None }),
            _ => Err(LocateError::NoPods(error)),
        },
    }
}

async fn in_slices(reader: &Reader, namespace: &str, pod: &str) -> Result<Vec<IpAddr>, ReadError> {
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?limit={PAGE_OBJECTS}");
    let (mut addresses, mut next) = (Vec::new(), String::new());
    for _ in 0..PAGES_MAX {
        let list = list::<Slice>(reader, &format!("{path}{next}")).await?;
        addresses.extend(list.items.iter().flat_map(|slice| slice.addresses_of(pod)));
        if list.metadata.next.is_empty() {
            break;
        }
        next = "&continue=".to_owned();
        encode(&mut next, &list.metadata.next);
    }
    Ok(addresses)
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
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
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
}

#[derive(Deserialize)]
struct Slice {
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

impl Slice {
    fn addresses_of<'a>(&'a self, pod: &'a str) -> impl Iterator<Item = IpAddr> + 'a {
        let is_it = move |endpoint: &&Endpoint| {
            endpoint.target_ref.as_ref().is_some_and(|target| target.kind == "Pod" && target.name == pod)
        };
        let endpoints = self.endpoints.iter().flatten().filter(is_it);
        endpoints.flat_map(|endpoint| &endpoint.addresses).filter_map(|text| text.parse().ok())
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
        found.map(|found| found.addresses.iter().map(ToString::to_string).collect()).map_err(|error| error.to_string())
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
}
