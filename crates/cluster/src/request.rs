//! Description of the objects that a zone needs and of their source. Equal requests can share one set of watches.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use host::FollowError;

use crate::{Index, Kind, Spec, Watch};

/// Source of objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// API server of the cluster that this process runs in, from the environment and the service account. The token
    /// and the CA certificates are read again when they are rotated.
    InCluster,
    /// API server of a kubeconfig file.
    Kubeconfig {
        /// Path of the file.
        file: PathBuf,
        /// Context to use instead of the file's current one.
        context: Option<String>,
    },
    /// API server at a URL.
    Endpoint {
        /// URL. Without a scheme, `https` is used if `tls` is set, otherwise `http`.
        url: String,
        /// Client certificate and trusted CA.
        tls: Option<Tls>,
    },
    /// Manifests on disk: files, and directories recursively. No API server is contacted.
    Manifests(Vec<PathBuf>),
}

/// Files with a client certificate, its key, and the CA certificates of the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tls {
    /// Client certificate (PEM).
    pub certificate: PathBuf,
    /// Private key (PEM).
    pub key: PathBuf,
    /// CA certificates (PEM). Read again when they change.
    pub authority: PathBuf,
}

/// Relays of an API server, which are asked before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relays {
    /// URLs, with the scheme `https`. Behind each of them may be several relays. There is at least one.
    pub urls: Vec<String>,
    /// CA certificates (PEM), of which one must have signed the certificate of a relay. Read again when they change.
    pub authority: PathBuf,
    /// File with the token for relays. Read again when it changes.
    pub token: PathBuf,
    /// Name in the certificate of a relay, if it is not the host of the URL.
    pub server_name: Option<String>,
    /// True if the API server is never asked.
    pub only: bool,
}

/// Rate limit for requests to an API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RateLimit {
    /// Average time between two requests; zero for no limit.
    pub every: Duration,
    /// Number of requests that may be sent at once after an idle period.
    pub burst: u32,
    /// Maximum number of requests in flight; 0 for no limit. A list request ends when the list is complete, a watch
    /// request when the watch begins.
    pub in_flight: u32,
}

/// Set of objects of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Source of the objects.
    pub source: Source,
    /// Relays of the API server, if there are any.
    pub relays: Option<Relays>,
    /// Purpose of the objects.
    pub purpose: Purpose,
    /// Namespaces to watch; empty for all. Each has its own watches, so a Role in it is sufficient. A Namespace
    /// object that the API server does not let us read is assumed to exist.
    pub namespaces: Vec<String>,
    /// Label selector for Services, EndpointSlices and Pods; empty selects all.
    pub labels: String,
    /// Label selector for Namespaces; empty selects all.
    pub namespace_labels: String,
    /// True to watch EndpointSlices.
    pub endpoints: bool,
    /// True to watch Pods.
    pub pods: bool,
    /// True if an endpoint without a hostname is named after its pod.
    pub endpoint_pod_names: bool,
    /// True to keep the topology zones of endpoints.
    pub endpoint_zones: bool,
    /// True to watch Pods too, and to keep their names.
    pub pod_names: bool,
    /// Keys of the labels to keep of Pods whose names are kept, in the order of
    /// [`NamedPod::label`](crate::NamedPod::label).
    pub pod_labels: Vec<String>,
    /// True to watch ServiceImports and their EndpointSlices.
    pub multicluster: bool,
    /// True to watch the hosts of a mesh (Istio's ServiceEntries and WorkloadEntries) instead of the cluster's
    /// Services. With `pods`, also the Pods that are endpoints or clients.
    pub mesh: bool,
    /// File for snapshots, used when a process starts while the API server is unreachable.
    pub snapshot: Option<PathBuf>,
    /// Age of the view from which answers are marked as stale, and which is kept below that by requests to the API
    /// server; `None` to do neither.
    pub stale_after: Option<Duration>,
    /// Rate limit for requests to the API server.
    pub rate_limit: RateLimit,
}

/// Purpose of the objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// DNS names.
    #[default]
    Names,
    /// Location of the cluster (topology zone and region): Nodes only.
    Location,
}

impl Request {
    /// Requests the Nodes of a source.
    #[must_use]
    pub fn of_location(source: Source) -> Request {
        Request { purpose: Purpose::Location, endpoints: false, ..Request::new(source) }
    }

    /// Requests all Namespaces, Services and EndpointSlices of a source.
    #[must_use]
    pub fn new(source: Source) -> Request {
        Request {
            source,
            relays: None,
            purpose: Purpose::Names,
            namespaces: Vec::new(),
            labels: String::new(),
            namespace_labels: String::new(),
            endpoints: true,
            pods: false,
            endpoint_pod_names: false,
            endpoint_zones: false,
            pod_names: false,
            pod_labels: Vec::new(),
            multicluster: false,
            mesh: false,
            snapshot: None,
            stale_after: None,
            rate_limit: RateLimit::default(),
        }
    }

    /// Returns the request in canonical form, so that equivalent ones compare equal: namespaces sorted, without
    /// duplicates and empty names.
    #[must_use]
    pub fn canonical(&self) -> Request {
        let mut request = self.clone();
        request.namespaces.retain(|namespace| !namespace.is_empty());
        request.namespaces.sort_unstable();
        request.namespaces.dedup();
        request
    }

    /// Returns the kinds to watch, in the order in which answers need them.
    fn kinds(&self) -> impl Iterator<Item = Kind> {
        let kinds = [
            (Kind::Namespace, !self.mesh),
            (Kind::Service, !self.mesh),
            (Kind::EndpointSlice, self.endpoints && !self.mesh),
            (Kind::Pod, (self.pods || self.pod_names) && !self.mesh),
            (Kind::ServiceImport, self.multicluster),
            (Kind::ImportedSlice, self.multicluster),
            (Kind::ServiceEntry, self.mesh),
            (Kind::WorkloadEntry, self.mesh),
            (Kind::WorkloadPod, self.pods && self.mesh),
        ];
        let of_names = kinds.into_iter().map(|(kind, wanted)| (kind, wanted && self.purpose == Purpose::Names));
        let of_location = [(Kind::Node, self.purpose == Purpose::Location)];
        of_names.chain(of_location).filter(|(_, wanted)| *wanted).map(|(kind, _)| kind)
    }

    /// Returns the watches for an API server: each kind in all namespaces or, if `namespaces` is not empty, in each
    /// of them. The Namespace watch "in" a namespace covers the Namespace object of that name.
    ///
    /// If namespaces are selected by label, only Namespaces are watched at first; the other kinds
    /// [follow](Spec::followed) them.
    #[must_use]
    pub fn watches(&self) -> Spec {
        if self.follows_namespaces() {
            let watch = Watch { kind: Kind::Namespace, namespace: None };
            let followed = self.kinds().filter(|kind| *kind != Kind::Namespace).collect();
            return Spec { followed, ..self.spec(vec![watch]) };
        }
        let everywhere = [None];
        let namespaces: Vec<Option<Box<str>>> = if self.namespaces.is_empty() {
            everywhere.into()
        } else {
            self.namespaces.iter().map(|namespace| Some(namespace.as_str().into())).collect()
        };
        let watches = self
            .kinds()
            .flat_map(|kind| namespaces.iter().map(move |namespace| Watch { kind, namespace: namespace.clone() }));
        self.spec(watches.collect())
    }

    /// Returns the watches for manifests: each kind in all namespaces, because a change is applied as a whole.
    #[must_use]
    pub fn watches_of_manifests(&self) -> Spec {
        let watches = self.kinds().map(|kind| Watch { kind, namespace: None });
        self.spec(watches.collect())
    }

    fn follows_namespaces(&self) -> bool {
        self.namespaces.is_empty() && !self.namespace_labels.is_empty()
    }

    fn spec(&self, watches: Vec<Watch>) -> Spec {
        Spec {
            watches,
            followed: Vec::new(),
            endpoint_pod_names: self.endpoint_pod_names,
            endpoint_zones: self.endpoint_zones,
            pod_names: self.pod_names,
            pod_labels: self.pod_labels.iter().map(|key| key.as_str().into()).collect(),
        }
    }
}

/// Provides clusters to the plugins that serve zones from them.
pub trait Clusters {
    /// Starts to follow a cluster. Returns immediately.
    ///
    /// Equal requests share their watches for as long as anyone holds the result: two server blocks with the same
    /// options, or a reload with unchanged ones.
    ///
    /// # Errors
    /// Returns an error if it cannot start, for example if the kubeconfig file is unreadable or the process does not
    /// run in a cluster.
    fn follow(&self, request: &Request) -> Result<Arc<dyn ClusterHandle>, FollowError>;
}

/// Handle of a followed cluster. The watches end when the last reference is dropped.
pub trait ClusterHandle: Send + Sync {
    /// Returns the index of the cluster.
    fn index(&self) -> &Arc<Index>;

    /// Returns what is wrong with the files that describe the cluster, if this process only checks them. A process that
    /// serves the cluster logs it instead.
    fn warnings(&self) -> &[String] {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watches(request: &Request) -> Vec<String> {
        let name = |watch: &Watch| format!("{:?} {}", watch.kind, watch.namespace.as_deref().unwrap_or("*"));
        request.canonical().watches().watches.iter().map(name).collect()
    }

    #[test]
    fn watches_the_kinds_that_the_request_needs() {
        let mut request = Request::new(Source::InCluster);
        assert_eq!(watches(&request), ["Namespace *", "Service *", "EndpointSlice *"]);
        request.endpoints = false;
        request.pods = true;
        request.namespaces = ["b", "a", "", "b"].map(str::to_owned).into();
        assert_eq!(watches(&request), ["Namespace a", "Namespace b", "Service a", "Service b", "Pod a", "Pod b"]);
        assert_eq!(request.watches_of_manifests().watches.len(), 3);
        assert_eq!(watches(&Request::of_location(Source::InCluster)), ["Node *"]);
        let mut mesh = Request { mesh: true, ..Request::new(Source::InCluster) };
        assert_eq!(watches(&mesh), ["ServiceEntry *", "WorkloadEntry *"]);
        mesh.pods = true;
        assert_eq!(watches(&mesh), ["ServiceEntry *", "WorkloadEntry *", "WorkloadPod *"]);
    }

    #[test]
    fn watches_only_namespaces_first_if_they_are_selected_by_label() {
        let request = Request { namespace_labels: "dns=yes".to_owned(), ..Request::new(Source::InCluster) };
        assert_eq!(watches(&request), ["Namespace *"]);
        assert_eq!(request.watches().followed, [Kind::Service, Kind::EndpointSlice]);
        let listed = Request { namespaces: vec!["a".to_owned()], ..request };
        assert_eq!(watches(&listed), ["Namespace a", "Service a", "EndpointSlice a"]);
    }

    #[test]
    fn ignores_the_order_and_repetition_of_namespaces() {
        let request = |namespaces: &[&str]| Request {
            namespaces: namespaces.iter().map(|&namespace| namespace.to_owned()).collect(),
            ..Request::new(Source::InCluster)
        };
        assert_eq!(request(&["b", "a", "b"]).canonical(), request(&["a", "b"]).canonical());
        assert_ne!(request(&["a"]).canonical(), request(&[]).canonical());
    }
}
