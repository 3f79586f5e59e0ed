//! Check: its description, its function, and what the function returns.

use crate::{Facts, Unknown};

/// Area of a check, as in `--only AREA`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Corefile and its replicas.
    Corefile,
    /// Permissions at the API server, and what the server sees of the cluster.
    Rights,
    /// Service, Deployment and kubelets.
    Kubernetes,
    /// Resolver settings of Pods.
    Pods,
    /// Paths of packets.
    Network,
    /// Cache on the nodes.
    Local,
    /// Upstreams of *forward*.
    Upstream,
    /// Services and their names.
    Services,
    /// Process and machine.
    System,
}

impl Area {
    /// All areas, in the order of the report.
    pub const ALL: [Area; 9] = [
        Area::Corefile,
        Area::Rights,
        Area::Kubernetes,
        Area::Pods,
        Area::Network,
        Area::Local,
        Area::Upstream,
        Area::Services,
        Area::System,
    ];

    /// Returns the name for the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Area::Corefile => "corefile",
            Area::Rights => "rights",
            Area::Kubernetes => "kubernetes",
            Area::Pods => "pods",
            Area::Network => "network",
            Area::Local => "local",
            Area::Upstream => "upstream",
            Area::Services => "services",
            Area::System => "system",
        }
    }

    /// Returns the heading in the report.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Area::Corefile => "Corefile",
            Area::Rights => "Rights and view of the cluster",
            Area::Kubernetes => "Service, Deployment and kubelets",
            Area::Pods => "Pods",
            Area::Network => "Network",
            Area::Local => "Node cache",
            Area::Upstream => "Upstreams",
            Area::Services => "Services",
            Area::System => "Process and machine",
        }
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Queries can fail, be slow, or fail at the next change.
    Warning,
    /// Queries fail, or a change is refused.
    Error,
}

/// Source of the facts of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Running server, over its control socket.
    Server,
    /// Corefile: a file, that of the running server, or the ConfigMap.
    Corefile,
    /// Kubernetes API.
    Api,
    /// Packets from here.
    Network,
    /// Files of this machine.
    Host,
}

impl Need {
    /// Returns the name for the documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Need::Server => "control socket",
            Need::Corefile => "Corefile",
            Need::Api => "Kubernetes API",
            Need::Network => "packets from here",
            Need::Host => "this machine",
        }
    }
}

/// Check: one row of the report.
#[derive(Debug)]
pub struct Check {
    /// Stable code, such as `PD-C01`.
    pub code: &'static str,
    /// Area.
    pub area: Area,
    /// Statement that is true if all is well.
    pub title: &'static str,
    /// Severity of a finding that does not say otherwise.
    pub severity: Severity,
    /// Sources of its facts.
    pub needs: &'static [Need],
    /// Permissions at the API server that it cannot do without, each a verb and a resource.
    pub rights: &'static [&'static str],
    /// Meaning of a finding, and how the check works.
    pub meaning: &'static str,
    /// Text of the fix, if the finding does not have a better one.
    pub fix: &'static str,
    /// Function.
    pub run: fn(&Facts) -> Outcome,
}

/// Result of a check: what it found, or why it could not look.
pub type Outcome = Result<Vec<Finding>, Unknown>;

/// Something that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Description with the names and values of this case.
    pub text: String,
    /// Fix with the values of this case; that of the check without it.
    pub fix: Option<String>,
    /// Severity; that of the check without it.
    pub severity: Option<Severity>,
    /// Object that it is about, such as `kube-system/Deployment/coredns`.
    pub object: Option<String>,
}

impl Finding {
    /// Creates a finding with the severity and the fix of its check.
    pub fn new(text: impl Into<String>) -> Finding {
        Finding { text: text.into(), fix: None, severity: None, object: None }
    }

    /// Sets the fix.
    #[must_use]
    pub fn fix(self, fix: impl Into<String>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }

    /// Sets the severity.
    #[must_use]
    pub fn severity(self, severity: Severity) -> Finding {
        Finding { severity: Some(severity), ..self }
    }

    /// Sets the object.
    #[must_use]
    pub fn about(self, kind: &str, namespace: &str, name: &str) -> Finding {
        let object = if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{namespace}/{kind}/{name}") };
        Finding { object: Some(object), ..self }
    }
}
