//! What is asked of those who bring a cluster's objects: from where, and which of them. Equal requests can share what is
//! brought.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{Index, Kind, Spec, Watch};

/// Where objects come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The API server of the cluster that this process runs in, by its environment and its service account. The token
    /// and the authority are read again when they rotate.
    InCluster,
    /// The API server of a kubeconfig file.
    Kubeconfig {
        /// The file.
        file: PathBuf,
        /// The context to use in place of the file's current one.
        context: Option<String>,
    },
    /// The API server at a URL.
    Endpoint {
        /// The URL; without a scheme it is `https` if there is `tls` and `http` otherwise.
        url: String,
        /// How to be trusted, and whom to trust.
        tls: Option<Tls>,
    },
    /// Manifests on disk: files, and folders with all that is below them. No API server is asked.
    Manifests(Vec<PathBuf>),
}

/// Files with a client certificate, its key, and the authority of the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tls {
    /// The client certificate, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// The certificates of the authority, PEM; read again when they change.
    pub authority: PathBuf,
}

/// How hard an API server may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pace {
    /// The time between two requests in the long run; zero if it does not matter.
    pub every: Duration,
    /// Requests that may go out at once where there were none for a while.
    pub burst: u32,
    /// Requests that may be unanswered at a time; 0 if it does not matter. A list is answered when it is complete, a watch
    /// when it begins.
    pub in_flight: u32,
}

/// Which objects of a cluster are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Where they come from.
    pub source: Source,
    /// What they are to say.
    pub about: About,
    /// The namespaces to look into; none means all. Each of them has watches of its own, so that a Role in it suffices;
    /// one that the API server does not let us see is taken to exist.
    pub namespaces: Vec<String>,
    /// The label selector of Services, EndpointSlices and Pods; empty selects all.
    pub labels: String,
    /// The label selector of Namespaces; empty selects all.
    pub namespace_labels: String,
    /// Whether EndpointSlices are watched.
    pub endpoints: bool,
    /// Whether Pods are watched.
    pub pods: bool,
    /// Whether an endpoint without hostname is called by the name of its pod.
    pub endpoint_pod_names: bool,
    /// Whether the topology zones of endpoints matter.
    pub endpoint_zones: bool,
    /// Whether ServiceImports and their EndpointSlices are watched.
    pub multicluster: bool,
    /// Whether the hosts of a mesh (Istio's ServiceEntries) are wanted, in the place of the cluster's own services; with
    /// `pods` also the Pods that are endpoints or clients.
    pub mesh: bool,
    /// Where to remember what is known, for a process that begins while the API server is away.
    pub snapshot: Option<PathBuf>,
    /// How hard the API server may be asked.
    pub pace: Pace,
}

/// What the objects of a request are to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum About {
    /// Which names there are.
    #[default]
    Names,
    /// Where the cluster is: Nodes alone.
    Place,
}

impl Request {
    /// The Nodes of a source.
    #[must_use]
    pub fn of_place(source: Source) -> Request {
        Request { about: About::Place, endpoints: false, ..Request::new(source) }
    }

    /// All Namespaces, Services and EndpointSlices of a source.
    #[must_use]
    pub fn new(source: Source) -> Request {
        Request {
            source,
            about: About::Names,
            namespaces: Vec::new(),
            labels: String::new(),
            namespace_labels: String::new(),
            endpoints: true,
            pods: false,
            endpoint_pod_names: false,
            endpoint_zones: false,
            multicluster: false,
            mesh: false,
            snapshot: None,
            pace: Pace::default(),
        }
    }

    /// The same request as everyone would write it who means it: the order of namespaces does not matter, nor does it
    /// to name one twice.
    #[must_use]
    pub fn canonical(&self) -> Request {
        let mut request = self.clone();
        request.namespaces.retain(|namespace| !namespace.is_empty());
        request.namespaces.sort_unstable();
        request.namespaces.dedup();
        request
    }

    /// The kinds of objects, in the order in which an answer needs them.
    fn kinds(&self) -> impl Iterator<Item = Kind> {
        let kinds = [
            (Kind::Namespace, !self.mesh),
            (Kind::Service, !self.mesh),
            (Kind::EndpointSlice, self.endpoints && !self.mesh),
            (Kind::Pod, self.pods && !self.mesh),
            (Kind::ServiceImport, self.multicluster),
            (Kind::ImportedSlice, self.multicluster),
            (Kind::ServiceEntry, self.mesh),
            (Kind::WorkloadEntry, self.mesh),
            (Kind::WorkloadPod, self.pods && self.mesh),
        ];
        let of_names = kinds.into_iter().map(|(kind, wanted)| (kind, wanted && self.about == About::Names));
        let of_place = [(Kind::Node, self.about == About::Place)];
        of_names.chain(of_place).filter(|(_, wanted)| *wanted).map(|(kind, _)| kind)
    }

    /// The watches of an API server: a kind everywhere or, if namespaces are given, in each of them. The watch of
    /// Namespaces "in" one is the watch of that one. Where namespaces are selected by their labels, only these are
    /// watched from the beginning, and the rest follows them.
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

    /// The watches of manifests: each kind everywhere, since the whole of a change is applied at once.
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
        }
    }
}

/// Follows clusters: what a process offers to those who answer from them.
pub trait Clusters {
    /// Begins to follow a cluster; comes back at once.
    ///
    /// Equal requests share what is followed for as long as anybody holds it: two stanzas that ask for the same, and a
    /// reload that asks for it again.
    ///
    /// # Errors
    /// In words, if it cannot even begin: a kubeconfig file that cannot be read, no cluster around.
    fn follow(&self, request: &Request) -> Result<Arc<dyn Following>, String>;
}

/// A cluster that is being followed; when the last holder lets go, that ends.
pub trait Following: Send + Sync {
    /// The cluster as answers see it.
    fn index(&self) -> &Arc<Index>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watches(request: &Request) -> Vec<String> {
        let name = |watch: &Watch| format!("{:?} {}", watch.kind, watch.namespace.as_deref().unwrap_or("*"));
        request.canonical().watches().watches.iter().map(name).collect()
    }

    #[test]
    fn requests_say_what_is_watched() {
        let mut request = Request::new(Source::InCluster);
        assert_eq!(watches(&request), ["Namespace *", "Service *", "EndpointSlice *"]);
        request.endpoints = false;
        request.pods = true;
        request.namespaces = ["b", "a", "", "b"].map(str::to_owned).into();
        assert_eq!(watches(&request), ["Namespace a", "Namespace b", "Service a", "Service b", "Pod a", "Pod b"]);
        assert_eq!(request.watches_of_manifests().watches.len(), 3);
        assert_eq!(watches(&Request::of_place(Source::InCluster)), ["Node *"]);
        let mut mesh = Request { mesh: true, ..Request::new(Source::InCluster) };
        assert_eq!(watches(&mesh), ["ServiceEntry *", "WorkloadEntry *"]);
        mesh.pods = true;
        assert_eq!(watches(&mesh), ["ServiceEntry *", "WorkloadEntry *", "WorkloadPod *"]);
    }

    #[test]
    fn watches_follow_the_labels_of_namespaces() {
        let request = Request { namespace_labels: "dns=yes".to_owned(), ..Request::new(Source::InCluster) };
        assert_eq!(watches(&request), ["Namespace *"]);
        assert_eq!(request.watches().followed, [Kind::Service, Kind::EndpointSlice]);
        let listed = Request { namespaces: vec!["a".to_owned()], ..request };
        assert_eq!(watches(&listed), ["Namespace a", "Service a", "EndpointSlice a"]);
    }

    #[test]
    fn requests_that_mean_the_same_are_equal() {
        let request = |namespaces: &[&str]| Request {
            namespaces: namespaces.iter().map(|&namespace| namespace.to_owned()).collect(),
            ..Request::new(Source::InCluster)
        };
        assert_eq!(request(&["b", "a", "b"]).canonical(), request(&["a", "b"]).canonical());
        assert_ne!(request(&["a"]).canonical(), request(&[]).canonical());
    }
}
