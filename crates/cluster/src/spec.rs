//! What a world watches and keeps.

/// The kinds of objects that matter to answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// core/v1 Namespace.
    Namespace,
    /// core/v1 Service.
    Service,
    /// discovery.k8s.io/v1 EndpointSlice.
    EndpointSlice,
    /// core/v1 Pod.
    Pod,
    /// multicluster.x-k8s.io ServiceImport: a Service of several clusters.
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

    /// How many kinds there are.
    pub(crate) const COUNT: usize = Kind::ALL.len();

    /// Whether objects of this kind belong to the services that clusters have in common.
    #[must_use]
    pub const fn is_of_clusterset(self) -> bool {
        matches!(self, Kind::ServiceImport | Kind::ImportedSlice)
    }

    /// Whether objects of this kind belong to the hosts of a mesh.
    #[must_use]
    pub const fn is_of_mesh(self) -> bool {
        matches!(self, Kind::ServiceEntry | Kind::WorkloadEntry | Kind::WorkloadPod)
    }
}

/// One list-and-watch that the edge runs: a kind in all namespaces or in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// What is watched.
    pub kind: Kind,
    /// Where; `None` is everywhere.
    pub namespace: Option<Box<str>>,
}

/// What a world watches, and what of it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The watches; an event says by its position here which one saw it. No two of them see the same object.
    pub watches: Vec<Watch>,
    /// The kinds whose watches follow the namespaces: they are [opened](crate::World::open) in those that are there, and
    /// [closed](crate::World::close) as they go.
    pub followed: Vec<Kind>,
    /// Whether an endpoint without hostname is called by the name of its pod (`endpoint_pod_names`).
    pub endpoint_pod_names: bool,
    /// Whether the topology zones of endpoints are kept (`zonal`).
    pub endpoint_zones: bool,
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(pub(crate) u16);

impl Kinds {
    /// No kind.
    pub const NONE: Kinds = Kinds(0);

    /// The set of these kinds.
    #[must_use]
    pub const fn of(kinds: &[Kind]) -> Kinds {
        let (mut set, mut at) = (0, 0);
        while at < kinds.len() {
            set |= 1 << kinds[at] as u8;
            at += 1;
        }
        Kinds(set)
    }

    /// With one kind more.
    pub(crate) const fn with(self, kind: Kind) -> Kinds {
        Kinds(self.0 | 1 << kind as u8)
    }

    /// Without one kind.
    pub(crate) const fn without(self, kind: Kind) -> Kinds {
        Kinds(self.0 & !(1 << kind as u8))
    }

    /// The kinds in it.
    pub(crate) fn each(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    pub(crate) const fn contains(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// Those that are also among the others.
    pub(crate) const fn and(self, others: Kinds) -> Kinds {
        Kinds(self.0 & others.0)
    }

    /// Those that are not among the others.
    pub(crate) const fn minus(self, others: Kinds) -> Kinds {
        Kinds(self.0 & !others.0)
    }

    pub(crate) const fn or(self, others: Kinds) -> Kinds {
        Kinds(self.0 | others.0)
    }
}

impl Spec {
    /// Watches each kind everywhere or, if namespaces are given, once in each of them. Namespaces themselves are in no
    /// namespace and need one watch.
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
        Spec { watches, followed: Vec::new(), endpoint_pod_names: false, endpoint_zones: false }
    }
}
