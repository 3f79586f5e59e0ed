//! Workloads, and the selectors of entries.

use std::sync::Arc;

use super::Client;
use super::read::Endpoint;
use crate::object::mesh::Label;

/// Labels kept per workload or selector. Real objects have far fewer.
pub(crate) const LABELS_MAX: usize = 128;

/// Interned labels: names and values are shared between workloads.
pub(crate) type Labels = Arc<[(Arc<str>, Arc<str>)]>;

/// A WorkloadEntry or a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) labels: Labels,
    /// Addresses of the workload.
    pub(crate) endpoints: Box<[Endpoint]>,
    /// True if it can serve as an endpoint now.
    pub(crate) is_ready: bool,
    /// Client that its addresses identify. `None` for a WorkloadEntry and for a pod on the host network.
    pub(crate) client: Option<Client>,
}

/// Selector of an entry: matches workloads in its namespace that have all of these labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkloadSelector(Box<[(Box<str>, Box<str>)]>);

impl WorkloadSelector {
    pub(crate) fn new(labels: &[Label<'_>]) -> WorkloadSelector {
        WorkloadSelector(
            labels.iter().take(LABELS_MAX).map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        )
    }

    pub(crate) fn selects(&self, workload: &Workload) -> bool {
        let has = |(name, value): &(Box<str>, Box<str>)| {
            // If a name occurs twice, the last value wins.
            let own = workload.labels.iter().rfind(|(known, _)| **known == **name);
            own.is_some_and(|(_, known)| **known == **value)
        };
        self.0.iter().all(has)
    }
}
