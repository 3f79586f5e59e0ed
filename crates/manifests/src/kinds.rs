//! Table of the kinds of objects that answers depend on. The parser and the search for mistakes share it.

use super::fields::{self, Fields};
use super::model::Head;

/// Kind of object that answers depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManifestKind {
    Namespace,
    Service,
    Endpoints,
    Pod,
    EndpointSlice,
    ServiceImport,
    ServiceEntry,
    WorkloadEntry,
}

/// Row of the table.
pub(crate) struct KindRow {
    pub kind: ManifestKind,
    /// Value of `kind`.
    pub name: &'static str,
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Value of `apiVersion` to suggest.
    pub(crate) api_version: &'static str,
    /// True if all versions of the group are read, because they have the same fields.
    any_version: bool,
    /// Fields to check for misspelled names.
    pub fields: &'static Fields,
}

/// All kinds.
const KINDS: [KindRow; 8] = [
    core(ManifestKind::Namespace, "Namespace", &fields::OBJECT),
    core(ManifestKind::Service, "Service", &fields::SERVICE),
    core(ManifestKind::Endpoints, "Endpoints", &fields::ENDPOINTS),
    core(ManifestKind::Pod, "Pod", &fields::POD),
    KindRow {
        group: "discovery.k8s.io",
        api_version: "discovery.k8s.io/v1",
        ..core(ManifestKind::EndpointSlice, "EndpointSlice", &fields::ENDPOINT_SLICE)
    },
    KindRow {
        group: "multicluster.x-k8s.io",
        api_version: "multicluster.x-k8s.io/v1alpha1",
        any_version: true,
        ..core(ManifestKind::ServiceImport, "ServiceImport", &fields::SERVICE_IMPORT)
    },
    istio(ManifestKind::ServiceEntry, "ServiceEntry", &fields::SERVICE_ENTRY),
    istio(ManifestKind::WorkloadEntry, "WorkloadEntry", &fields::WORKLOAD_ENTRY),
];

const fn core(kind: ManifestKind, name: &'static str, fields: &'static Fields) -> KindRow {
    KindRow { kind, name, group: "", api_version: "v1", any_version: false, fields }
}

const fn istio(kind: ManifestKind, name: &'static str, fields: &'static Fields) -> KindRow {
    let (group, api_version) = ("networking.istio.io", "networking.istio.io/v1");
    KindRow { group, api_version, any_version: true, ..core(kind, name, fields) }
}

/// Type of a document.
pub enum Document<'a> {
    /// Object that answers depend on.
    Object(&'static KindRow),
    /// List with this item kind, which items without a kind of their own have. Empty for kind `List`.
    List(&'a str),
    /// Any other object.
    Other,
}

impl<'a> Document<'a> {
    /// Returns the type of a document with this head.
    pub fn of(head: &'a Head) -> Document<'a> {
        let (version, kind) = (head.api_version.as_str(), head.kind.text.as_str());
        match row(kind).filter(|row| row.has_version(version)) {
            Some(row) => Document::Object(row),
            None => kind.strip_suffix("List").map_or(Document::Other, Document::List),
        }
    }
}

impl KindRow {
    fn has_version(&self, api_version: &str) -> bool {
        let is_any = || api_version.strip_prefix(self.group).is_some_and(|version| version.starts_with('/'));
        api_version == self.api_version || self.any_version && is_any()
    }
}

/// Returns the row of a kind.
pub(crate) fn row(kind: &str) -> Option<&'static KindRow> {
    KINDS.iter().find(|row| row.name == kind)
}

/// Returns the kinds of an API group.
pub(crate) fn of_group(group: &str) -> impl Iterator<Item = &'static str> {
    let list = group.is_empty().then_some("List");
    KINDS.iter().filter(move |row| row.group == group).map(|row| row.name).chain(list)
}
