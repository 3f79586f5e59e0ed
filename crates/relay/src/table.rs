//! Fields of the profile `dns-pods-1`: what answers of a DNS server need of each kind of object, and nothing else. The
//! profile `dns-1` is without the names of ready pods ([`strip::leave_out_pods`](crate::strip::leave_out_pods)).
//!
//! The table has the numbers of `generated.proto` in k8s.io/api and k8s.io/apimachinery, which never change, with the
//! names in JSON. Stripping and the conversion to JSON both follow it.

/// Kinds of object that a relay serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// core/v1 Namespace.
    Namespace,
    /// core/v1 Service.
    Service,
    /// discovery.k8s.io/v1 EndpointSlice.
    EndpointSlice,
    /// core/v1 Pod.
    Pod,
    /// core/v1 Node.
    Node,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 5] = [Kind::Namespace, Kind::Service, Kind::EndpointSlice, Kind::Pod, Kind::Node];

    /// Returns the plural name in URLs.
    #[must_use]
    pub const fn resource(self) -> &'static str {
        match self {
            Kind::Namespace => "namespaces",
            Kind::Service => "services",
            Kind::EndpointSlice => "endpointslices",
            Kind::Pod => "pods",
            Kind::Node => "nodes",
        }
    }

    /// Returns the kind with a plural name.
    #[must_use]
    pub fn by_resource(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.resource() == name)
    }

    /// Returns the name as objects state it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Namespace => "Namespace",
            Kind::Service => "Service",
            Kind::EndpointSlice => "EndpointSlice",
            Kind::Pod => "Pod",
            Kind::Node => "Node",
        }
    }

    /// Returns group and version as objects state them.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        if matches!(self, Kind::EndpointSlice) { "discovery.k8s.io/v1" } else { "v1" }
    }

    /// Returns the path of all objects of this kind.
    #[must_use]
    pub fn path(self) -> String {
        let root = if matches!(self, Kind::EndpointSlice) { "apis" } else { "api" };
        format!("/{root}/{}/{}", self.api_version(), self.resource())
    }

    /// Returns the abbreviations that people type, as the API server names them.
    pub(crate) const fn short_names(self) -> &'static [&'static str] {
        match self {
            Kind::Namespace => &["ns"],
            Kind::Service => &["svc"],
            Kind::EndpointSlice => &[],
            Kind::Pod => &["po"],
            Kind::Node => &["no"],
        }
    }

    /// Returns true if objects of this kind are in a namespace.
    #[must_use]
    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Kind::Namespace | Kind::Node)
    }

    /// Returns the fields to keep.
    pub(crate) const fn fields(self) -> &'static [Kept] {
        match self {
            Kind::Namespace | Kind::Node => METADATA_ALONE,
            Kind::Service => SERVICE,
            Kind::EndpointSlice => SLICE,
            Kind::Pod => POD,
        }
    }
}

/// Field to keep.
pub(crate) struct Kept {
    pub(crate) number: u64,
    /// Name in JSON.
    pub(crate) name: &'static str,
    pub(crate) content: Content,
    pub(crate) is_list: bool,
}

/// Content of a field.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    Text,
    Number,
    Boolean,
    /// metav1.Time.
    Time,
    /// Map from text to text, with the keys to keep.
    Map(Keys),
    Message(&'static [Kept]),
}

/// Keys of a map that are kept.
#[derive(Clone, Copy)]
pub(crate) enum Keys {
    All,
    Only(&'static [&'static str]),
}

impl Keys {
    pub(crate) fn keep(self, key: &str) -> bool {
        match self {
            Keys::All => true,
            Keys::Only(keys) => keys.contains(&key),
        }
    }
}

/// Labels of objects other than pods.
const LABELS: Keys = Keys::Only(&[
    "kubernetes.io/service-name",
    "multicluster.kubernetes.io/service-name",
    "multicluster.kubernetes.io/source-cluster",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
]);

/// Annotation with the time of the change that a slice shows.
const ANNOTATIONS: Keys = Keys::Only(&["endpoints.kubernetes.io/last-change-trigger-time"]);

const fn one(number: u64, name: &'static str, content: Content) -> Kept {
    Kept { number, name, content, is_list: false }
}

const fn list(number: u64, name: &'static str, content: Content) -> Kept {
    Kept { number, name, content, is_list: true }
}

const fn text(number: u64, name: &'static str) -> Kept {
    one(number, name, Content::Text)
}

macro_rules! metadata {
    ($labels:expr $(, $more:expr)?) => {
        &[
            text(1, "name"),
            text(3, "namespace"),
            $($more,)?
            text(6, "resourceVersion"),
            one(9, "deletionTimestamp", Content::Time),
            one(11, "labels", Content::Map($labels)),
            one(12, "annotations", Content::Map(ANNOTATIONS)),
        ]
    };
}

const METADATA: &[Kept] = metadata!(LABELS);
/// Metadata with the UID: that of the Namespace `kube-system` tells clusters apart. In changes of other kinds, it would
/// be a tenth of the bytes.
const METADATA_ALONE: &[Kept] = &[one(1, "metadata", Content::Message(metadata!(LABELS, text(5, "uid"))))];

const SERVICE: &[Kept] = &[
    one(1, "metadata", Content::Message(METADATA)),
    one(
        2,
        "spec",
        Content::Message(&[
            list(1, "ports", Content::Message(PORT)),
            text(3, "clusterIP"),
            text(4, "type"),
            list(5, "externalIPs", Content::Text),
            text(10, "externalName"),
            list(18, "clusterIPs", Content::Text),
        ]),
    ),
    one(3, "status", Content::Message(&[one(1, "loadBalancer", Content::Message(BALANCER))])),
];
const BALANCER: &[Kept] = &[list(1, "ingress", Content::Message(&[text(1, "ip"), text(2, "hostname")]))];
const PORT: &[Kept] = &[text(1, "name"), text(2, "protocol"), one(3, "port", Content::Number)];

/// Numbers of the fields around an endpoint: of its list in a slice, and in it and its conditions.
pub(crate) mod endpoint {
    pub(crate) const LIST: u64 = 2;
    pub(crate) const CONDITIONS: u64 = 2;
    pub(crate) const TARGET: u64 = 4;
    pub(crate) const READY: u64 = 1;
}

const SLICE: &[Kept] = &[
    one(1, "metadata", Content::Message(METADATA)),
    list(
        endpoint::LIST,
        "endpoints",
        Content::Message(&[
            list(1, "addresses", Content::Text),
            one(
                endpoint::CONDITIONS,
                "conditions",
                Content::Message(&[one(endpoint::READY, "ready", Content::Boolean)]),
            ),
            text(3, "hostname"),
            one(endpoint::TARGET, "targetRef", Content::Message(&[text(1, "kind"), text(3, "name")])),
            text(7, "zone"),
        ]),
    ),
    list(3, "ports", Content::Message(PORT)),
    text(4, "addressType"),
];

const POD: &[Kept] = &[
    one(1, "metadata", Content::Message(metadata!(Keys::All))),
    one(2, "spec", Content::Message(&[one(11, "hostNetwork", Content::Boolean)])),
    one(3, "status", Content::Message(&[text(6, "podIP"), list(12, "podIPs", Content::Message(&[text(1, "ip")]))])),
];
