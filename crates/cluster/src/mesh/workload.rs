//! Workloads, and which of them an entry selects.

use std::sync::Arc;

use super::Client;
use super::object::Label;
use super::read::Endpoint;

/// Labels that are kept of one workload or selector; nobody writes so many.
pub(crate) const LABELS_MAX: usize = 128;

/// Labels as they are kept: names and values, each of which many workloads have in common.
pub(crate) type Labels = Arc<[(Arc<str>, Arc<str>)]>;

/// A WorkloadEntry, or a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) labels: Labels,
    /// Where it is.
    pub(crate) places: Box<[Endpoint]>,
    /// Whether it can be an endpoint now.
    pub(crate) is_ready: bool,
    /// As what it asks, if it is a pod with addresses of its own.
    pub(crate) client: Option<Client>,
}

/// Which workloads of its namespace an entry selects: those with all of these labels.
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
            // Of two of one name the later one counts.
            let own = workload.labels.iter().rfind(|(known, _)| **known == **name);
            own.is_some_and(|(_, known)| **known == **value)
        };
        self.0.iter().all(has)
    }
}
