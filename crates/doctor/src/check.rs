//! Check: its description, its function, and what the function returns.

use control::text::counted;

use crate::objects::List;
use crate::{Facts, Gap, Known, Unknown};

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
    /// Full server on every node.
    EveryNode,
    /// Upstreams of *forward*.
    Upstream,
    /// Services and their names.
    Services,
    /// Process and machine.
    System,
}

impl Area {
    /// All areas, in the order of the report.
    pub const ALL: [Area; 10] = [
        Area::Corefile,
        Area::Rights,
        Area::Kubernetes,
        Area::Pods,
        Area::Network,
        Area::Local,
        Area::EveryNode,
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
            Area::EveryNode => "every-node",
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
            Area::EveryNode => "Server on every node",
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

/// Result of a check: the inspected facts with the findings, or the reason why nothing was inspected. A check without
/// [`Evidence`] is never shown as fine.
pub type Outcome = Result<Looked, Unknown>;

/// Evidence of a check, and what it found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Inspected facts.
    pub evidence: Evidence,
    /// Problems in these facts.
    pub findings: Vec<Finding>,
}

/// Facts that a check inspected, and the reasons why it could not inspect others that apply.
///
/// ```
/// use doctor::{Evidence, Unknown};
///
/// // Nothing was looked at, so nothing is fine.
/// assert!(Evidence::of(0, "upstream").is_err());
/// let evidence = Evidence::of(2, "upstream").unwrap().without(Unknown::new("10.0.0.3 does not answer"));
/// assert_eq!(evidence.unseen().as_deref(), Some("10.0.0.3 does not answer"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    seen: String,
    unseen: Vec<Unknown>,
}

/// Maximum number of reasons that are listed for the unchecked parts of a check. Each may name a silent server.
const REASONS_MAX: usize = 4;

impl Evidence {
    /// Returns the evidence of this number of things. `noun` is in the singular.
    ///
    /// # Errors
    /// The number is zero: there is nothing to look at.
    pub fn of(number: usize, noun: &str) -> Known<Evidence> {
        if number == 0 {
            return Err(Unknown::inapplicable(format!("there is no {noun}")));
        }
        Ok(Evidence::fact(counted(number as u64, noun)))
    }

    /// Returns the evidence of objects. Those that were not read are unseen.
    ///
    /// # Errors
    /// The cluster has no such object.
    pub fn list<T>(list: &List<T>, noun: &str) -> Known<Evidence> {
        let evidence = Evidence::of(list.len(), noun)?;
        let rest = || Unknown::new(format!("the cluster has more than the {} that were read", evidence.seen));
        Ok(if list.cut { evidence.clone().without(rest()) } else { evidence })
    }

    /// Returns the evidence of a single fact that is known.
    pub fn fact(seen: impl Into<String>) -> Evidence {
        Evidence { seen: seen.into(), unseen: Vec::new() }
    }

    /// Adds a part that could not be looked at. A part that does not apply is left out.
    #[must_use]
    pub fn without(mut self, part: Unknown) -> Evidence {
        if part.gap() == Gap::NotLooked && !self.unseen.contains(&part) {
            self.unseen.push(part);
        }
        self
    }

    /// Adds parts that could not be looked at.
    #[must_use]
    pub fn without_all(self, parts: impl IntoIterator<Item = Unknown>) -> Evidence {
        parts.into_iter().fold(self, Evidence::without)
    }

    /// Adds a note about what was looked at.
    #[must_use]
    pub fn noting(mut self, note: &str) -> Evidence {
        self.seen.push_str("; ");
        self.seen.push_str(note);
        self
    }

    /// Returns what was looked at.
    #[must_use]
    pub fn seen(&self) -> &str {
        &self.seen
    }

    /// Returns why a part could not be looked at; `None` if all of it was.
    #[must_use]
    pub fn unseen(&self) -> Option<String> {
        let mut reasons: Vec<String> = self.unseen.iter().take(REASONS_MAX).map(Unknown::to_string).collect();
        if self.unseen.len() > REASONS_MAX {
            reasons.push(format!("and {} more", self.unseen.len() - REASONS_MAX));
        }
        if reasons.is_empty() { None } else { Some(reasons.join("; ")) }
    }

    /// Returns the outcome with these findings.
    ///
    /// # Errors
    /// Never fails. Returns a `Result` to match the function of a check.
    pub fn found(self, findings: impl IntoIterator<Item = Finding>) -> Outcome {
        Ok(Looked { evidence: self, findings: findings.into_iter().collect() })
    }
}

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
