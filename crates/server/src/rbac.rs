//! `portolan check --rbac`: the rights that a Corefile needs of an API server, as objects to apply.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use cluster::{Clusters, Following, Index, Kind, Request, Source, World};
use engine::Surroundings;
use engine::metrics::Registry;
use engine::setup::Carried;
use plugins::HostLookup;

use crate::configuration::Configuration;
use crate::files::Disk;
use crate::run::capabilities;

/// The objects for all stanzas of a configuration that follow a cluster; `None` if there is none that asks an API server.
///
/// # Errors
/// If it cannot be built, as people see it.
pub(crate) fn rules(configuration: Configuration) -> Result<Option<String>, String> {
    let requests = requests(configuration)?;
    let of_server = requests.iter().filter(|request| !matches!(request.source, Source::Manifests(_)));
    let mut places: BTreeMap<Place<'_>, Vec<Kind>> = BTreeMap::new();
    let specs: Vec<_> = of_server.map(Request::watches).collect();
    for spec in &specs {
        for watch in &spec.watches {
            // A Role cannot let anybody see its own Namespace, and we do without.
            if watch.kind != Kind::Namespace || watch.namespace.is_none() {
                let place = watch.namespace.as_deref().map_or(Place::Everywhere, Place::In);
                places.entry(place).or_default().push(watch.kind);
            }
        }
        if !spec.followed.is_empty() {
            places.entry(Place::Selected).or_default().extend(&spec.followed);
        }
    }
    let roles: Vec<String> = places.iter().map(|(place, kinds)| role(*place, kinds)).collect();
    Ok((!roles.is_empty()).then(|| roles.join("---\n")))
}

/// Where a right is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place<'a> {
    Everywhere,
    /// In the namespaces that a label selector selects.
    Selected,
    In(&'a str),
}

/// What stands before the role for selected namespaces.
const SELECTED: &str = "\
# To be bound by a RoleBinding in each namespace that `namespace_labels` selects; by a ClusterRoleBinding if these may be
# more than 50, since then everything is watched.
";

/// What the stanzas of a configuration ask for. It is built as if it were to be served, with nothing to serve it.
fn requests(configuration: Configuration) -> Result<Vec<Request>, String> {
    let Configuration { plan, sources, .. } = configuration;
    let plan = plan.ok_or_else(|| "the Corefile has errors".to_owned())?;
    let recorder = Rc::new(Recorder::default());
    let registry = Registry::new();
    let mut process = capabilities(&registry);
    process.provide(Rc::clone(&recorder) as Rc<dyn Clusters>);
    process.provide(Arc::new(Nowhere) as Arc<dyn HostLookup>);
    let surroundings =
        Surroundings { registry: &registry, files: &Disk, process: &process, carried: Carried::default() };
    let built = plan.build(surroundings);
    built.map_err(|problem| corefile::render(&[*problem], &sources, corefile::Style::Plain))?;
    Ok(recorder.0.take())
}

/// Notes what is asked for and follows nothing.
#[derive(Default)]
struct Recorder(RefCell<Vec<Request>>);

impl Clusters for Recorder {
    fn follow(&self, request: &Request) -> Result<Arc<dyn Following>, String> {
        self.0.borrow_mut().push(request.canonical());
        let (_, index) = World::new(&request.watches());
        Ok(Arc::new(Unfollowed(index)))
    }
}

struct Unfollowed(Arc<Index>);

impl Following for Unfollowed {
    fn index(&self) -> &Arc<Index> {
        &self.0
    }
}

/// Looks nothing up: where upstreams are does not matter here.
struct Nowhere;

impl HostLookup for Nowhere {
    fn lookup(&self, _: &str, _: &[SocketAddr]) -> io::Result<Vec<IpAddr>> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}

/// A ClusterRole, or a Role in a namespace, that lets these kinds be listed and watched.
fn role(place: Place<'_>, kinds: &[Kind]) -> String {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (group, resource) in kinds.iter().map(|kind| resource(*kind)) {
        let resources = groups.entry(group).or_default();
        if !resources.contains(&resource) {
            resources.push(resource);
        }
    }
    let mut text = if place == Place::Selected { SELECTED.to_owned() } else { String::new() };
    text.push_str("apiVersion: rbac.authorization.k8s.io/v1\n");
    let _ = match place {
        Place::Everywhere => writeln!(text, "kind: ClusterRole\nmetadata:\n  name: portolan\nrules:"),
        Place::Selected => writeln!(text, "kind: ClusterRole\nmetadata:\n  name: portolan:namespace\nrules:"),
        Place::In(namespace) => {
            writeln!(text, "kind: Role\nmetadata:\n  name: portolan\n  namespace: {namespace}\nrules:")
        }
    };
    for (group, resources) in groups {
        let resources = resources.join(", ");
        let _ = writeln!(text, "  - apiGroups: [\"{group}\"]\n    resources: [{resources}]\n    verbs: [list, watch]");
    }
    text
}

fn resource(kind: Kind) -> (&'static str, &'static str) {
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
