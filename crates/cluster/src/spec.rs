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
}

impl Kind {
    /// How many kinds there are.
    pub(crate) const COUNT: usize = 4;
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
    /// Whether an endpoint without hostname is called by the name of its pod (`endpoint_pod_names`).
    pub endpoint_pod_names: bool,
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
        Spec { watches, endpoint_pod_names: false }
    }
}
