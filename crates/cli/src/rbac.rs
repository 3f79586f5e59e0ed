//! `portolan check --rbac`: the permissions that a Corefile needs at the API server, as manifests.

use std::collections::BTreeMap;
use std::fmt::Write;

use cluster::{Kind, Request, Source};

/// Returns the manifests for what a configuration watches; `None` if it uses no API server.
pub(crate) fn rules(requests: &[Request]) -> Option<String> {
    let of_server = requests.iter().filter(|request| !matches!(request.source, Source::Manifests(_)));
    let mut scopes: BTreeMap<Scope<'_>, Vec<Kind>> = BTreeMap::new();
    let specs: Vec<_> = of_server.map(Request::watches).collect();
    for spec in &specs {
        for watch in &spec.watches {
            // A Role cannot grant access to its own Namespace object, and the server works without it.
            if watch.kind != Kind::Namespace || watch.namespace.is_none() {
                let scope = watch.namespace.as_deref().map_or(Scope::Cluster, Scope::Namespace);
                scopes.entry(scope).or_default().push(watch.kind);
            }
        }
        if !spec.followed.is_empty() {
            scopes.entry(Scope::SelectedNamespaces).or_default().extend(&spec.followed);
        }
    }
    let roles: Vec<String> = scopes.iter().map(|(scope, kinds)| role(*scope, kinds)).collect();
    (!roles.is_empty()).then(|| roles.join("---\n"))
}

/// Scope of a permission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope<'a> {
    Cluster,
    /// Namespaces that a label selector selects.
    SelectedNamespaces,
    Namespace(&'a str),
}

/// Comment before the role for selected namespaces.
const SELECTED: &str = "\
# Bind this role with a RoleBinding in each namespace that `namespace_labels` selects. If it may select more than 50
# namespaces, use a ClusterRoleBinding: the server then watches all namespaces.
";

/// Returns a ClusterRole, or a Role in a namespace, that allows to list and watch these kinds.
fn role(scope: Scope<'_>, kinds: &[Kind]) -> String {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (group, resource) in kinds.iter().map(|kind| resource(*kind)) {
        let resources = groups.entry(group).or_default();
        if !resources.contains(&resource) {
            resources.push(resource);
        }
    }
    let mut text = if scope == Scope::SelectedNamespaces { SELECTED.to_owned() } else { String::new() };
    text.push_str("apiVersion: rbac.authorization.k8s.io/v1\n");
    let _ = match scope {
        Scope::Cluster => writeln!(text, "kind: ClusterRole\nmetadata:\n  name: portolan\nrules:"),
        Scope::SelectedNamespaces => writeln!(text, "kind: ClusterRole\nmetadata:\n  name: portolan:namespace\nrules:"),
        Scope::Namespace(namespace) => {
            writeln!(text, "kind: Role\nmetadata:\n  name: portolan\n  namespace: {namespace}\nrules:")
        }
    };
    for (group, resources) in groups {
        let resources = resources.join(", ");
        let _ = writeln!(text, "  - apiGroups: [\"{group}\"]\n    resources: [{resources}]\n    verbs: [list, watch]");
    }
    text
}

/// Returns the API group and the plural name of a kind.
pub(crate) fn resource(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Namespace => ("", "namespaces"),
        Kind::Service => ("", "services"),
        Kind::Pod | Kind::WorkloadPod => ("", "pods"),
        Kind::Node => ("", "nodes"),
        Kind::EndpointSlice | Kind::ImportedSlice => ("discovery.k8s.io", "endpointslices"),
        Kind::ServiceImport => ("multicluster.x-k8s.io", "serviceimports"),
        Kind::ServiceEntry => ("networking.istio.io", "serviceentries"),
        Kind::WorkloadEntry => ("networking.istio.io", "workloadentries"),
    }
}
