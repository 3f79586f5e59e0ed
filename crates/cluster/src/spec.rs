//! Object kinds, and the watches that a reducer of their events needs.

use serde::{Deserialize, Serialize};

/// Object kinds that a cluster's zones are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum Kind {
    /// core/v1 Namespace.
    Namespace,
    /// core/v1 Service.
    Service,
    /// discovery.k8s.io/v1 EndpointSlice.
    EndpointSlice,
    /// core/v1 Pod.
    Pod,
    /// multicluster.x-k8s.io ServiceImport: a Service of a ClusterSet.
    ServiceImport,
    /// discovery.k8s.io/v1 EndpointSlice that belongs to a ServiceImport.
    ImportedSlice,
    /// networking.istio.io ServiceEntry: hosts of a mesh.
    ServiceEntry,
    /// networking.istio.io WorkloadEntry: an endpoint of a mesh.
    WorkloadEntry,
    /// core/v1 Pod as an endpoint and a client of a mesh.
    WorkloadPod,
    /// core/v1 Node.
    Node,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Kind; 10] = [
        Kind::Namespace,
        Kind::Service,
        Kind::EndpointSlice,
        Kind::Pod,
        Kind::ServiceImport,
        Kind::ImportedSlice,
        Kind::ServiceEntry,
        Kind::WorkloadEntry,
        Kind::WorkloadPod,
        Kind::Node,
    ];

    /// Number of kinds.
    pub(crate) const COUNT: usize = Kind::ALL.len();

    /// Name of the objects, as messages use it.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Kind::Namespace => "Namespaces",
            Kind::Service => "Services",
            Kind::EndpointSlice => "EndpointSlices",
            Kind::Pod | Kind::WorkloadPod => "Pods",
            Kind::ServiceImport => "ServiceImports",
            Kind::ImportedSlice => "EndpointSlices of ServiceImports",
            Kind::ServiceEntry => "ServiceEntries",
            Kind::WorkloadEntry => "WorkloadEntries",
            Kind::Node => "Nodes",
        }
    }

    /// Returns true for the kinds whose objects are in a namespace.
    #[must_use]
    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Kind::Namespace | Kind::Node)
    }

    /// Returns the kind of the objects themselves, which differs for imported slices.
    pub(crate) const fn of_objects(self) -> Kind {
        if matches!(self, Kind::ImportedSlice) { Kind::EndpointSlice } else { self }
    }

    /// Returns true for the kinds that describe ClusterSet Services.
    #[must_use]
    pub const fn is_of_clusterset(self) -> bool {
        matches!(self, Kind::ServiceImport | Kind::ImportedSlice)
    }

    /// Returns true for the kinds that describe hosts of a mesh.
    #[must_use]
    pub const fn is_of_mesh(self) -> bool {
        matches!(self, Kind::ServiceEntry | Kind::WorkloadEntry | Kind::WorkloadPod)
    }
}

/// One list-and-watch: a kind in all namespaces or in one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watch {
    /// Kind of the objects.
    pub kind: Kind,
    /// Namespace; `None` for all.
    pub namespace: Option<Box<str>>,
}

/// Watches of a reducer and the properties to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Watches. An event refers to its watch by the position in this list. No two watches see the same object.
    pub watches: Vec<Watch>,
    /// Kinds with a watch per existing namespace, which the caller opens and closes as namespaces come and go.
    pub followed: Vec<Kind>,
    /// True if an endpoint without a hostname is named after its pod (`endpoint_pod_names`).
    pub endpoint_pod_names: bool,
    /// True to keep the topology zones of endpoints (`zonal`).
    pub endpoint_zones: bool,
    /// True to keep the names of pods (`identity pods`).
    pub pod_names: bool,
    /// Keys of the labels to keep of pods whose names are kept.
    pub pod_labels: Vec<Box<str>>,
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(pub(crate) u16);

impl Kinds {
    /// The empty set.
    pub const NONE: Kinds = Kinds(0);

    /// Returns the set of these kinds.
    #[must_use]
    pub const fn of(kinds: &[Kind]) -> Kinds {
        let (mut set, mut at) = (0, 0);
        while at < kinds.len() {
            set |= 1 << kinds[at] as u8;
            at += 1;
        }
        Kinds(set)
    }

    /// Adds a kind.
    pub(crate) const fn with(self, kind: Kind) -> Kinds {
        Kinds(self.0 | 1 << kind as u8)
    }

    /// Removes a kind.
    pub(crate) const fn without(self, kind: Kind) -> Kinds {
        Kinds(self.0 & !(1 << kind as u8))
    }

    /// Iterates over the kinds.
    pub(crate) fn each(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    /// Returns true if a kind is in the set.
    #[must_use]
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// Returns the intersection.
    pub(crate) const fn and(self, others: Kinds) -> Kinds {
        Kinds(self.0 & others.0)
    }

    /// Returns the difference.
    pub(crate) const fn minus(self, others: Kinds) -> Kinds {
        Kinds(self.0 & !others.0)
    }

    pub(crate) const fn or(self, others: Kinds) -> Kinds {
        Kinds(self.0 | others.0)
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Kinds {
        kinds.into_iter().fold(Kinds::NONE, Kinds::with)
    }
}

impl Spec {
    /// Returns a spec with a watch of each kind in all namespaces or, if `namespaces` is not empty, in each of them.
    /// Namespace objects always get a single watch, since they are cluster-scoped.
    #[must_use]
    pub fn new(kinds: &[Kind], namespaces: &[&str]) -> Spec {
        let mut watches = Vec::new();
        for &kind in kinds {
            if namespaces.is_empty() || kind == Kind::Namespace {
                watches.push(Watch { kind, namespace: None });
            } else {
                watches.extend(namespaces.iter().map(|&name| Watch { kind, namespace: Some(name.into()) }));
            }
        }
        Spec {
            watches,
            followed: Vec::new(),
            endpoint_pod_names: false,
            endpoint_zones: false,
            pod_names: false,
            pod_labels: Vec::new(),
        }
    }
}
