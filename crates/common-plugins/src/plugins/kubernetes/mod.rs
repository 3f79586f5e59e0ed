//! Answers from the Services, endpoints and pods of a cluster (Kubernetes DNS specification 1.1.0).
//!
//! The index of the cluster is in memory (crate `cluster`), and the edge keeps it up to date. `name` parses names,
//! `answer` creates their records, and `zone` those of the zone itself. `reverse` answers PTR queries, and `alias`
//! follows ExternalName Services.

mod alias;
mod answer;
mod explain;
mod kube_dns;
mod labels;
mod manifest;
mod name;
mod relays;
mod reverse;
mod selector;
mod suggest;
mod transfer;
mod unready;
mod zone;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cluster::{Clusters, Index, Kind, Kinds, Request, Service, ServiceKind};
use config::setup::{InspectCluster, LocalZones, Part, Setup, SetupError, StartupGate};
use engine::{Explanation, Failure, Hook, Hooks, Instant, Plugin, Query, Response, Verdict, Worker, Zones};
use host::planted::{Bug, is_planted};
use metrics::{self, Counter, Metric};
use wire::{EdeCode, Name, NameRef, Owner, Rcode, Section, Type};

use crate::shared::any_type::first_of_any;
use crate::shared::cluster_view::{Exposed, is_reverse, not_ready};
use crate::shared::service_records::{AnswerContext, NameLookup, end_alias};

pub(crate) use explain::REASONS;
pub(crate) use manifest::MANIFEST;

use kube_dns::Among;
use manifest::{Config, Pods};
use name::{Grammar, Target};

static STALE: Metric = Metric {
    name: "portolan_kubernetes_stale_answers_total",
    help: "Answers from data that the API server has not confirmed: from a snapshot, or older than `stale_after`.",
    kind: metrics::Kind::Counter,
    labels: &["zone"],
};

static WILDCARDS: Metric = Metric {
    name: "portolan_kubernetes_wildcard_questions_total",
    help: "Queries with `*` for a service or namespace, which `compat kube-dns` answers.",
    kind: metrics::Kind::Counter,
    labels: &["zone"],
};

/// Metrics of `kubernetes`.
static METRICS: [&Metric; 2] = [&STALE, &WILDCARDS];

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    config.sources.warn(setup);
    let pod_labels = if config.identity { client_labels(setup) } else { Vec::new() };
    let request = Request { pod_labels: pod_labels.clone(), ..config.request(|name| setup.path(name)) };
    claim_snapshot(&request, setup)?;
    let clusters: Rc<dyn Clusters> =
        setup.process.find().ok_or_else(|| SetupError::new("this process cannot watch a cluster"))?;
    let zones = setup.zones_or_keys(&config.zones);
    let local_addresses = setup.process.find().map_or_else(|| Arc::from([]), |LocalAddresses(addresses)| addresses);
    let own = zones.names().iter().filter(|zone| !is_reverse(zone.as_ref()) && !config.is_common(zone.as_ref()));
    let exposed = Exposed::follow(&*clusters, &request, own.cloned().collect(), local_addresses);
    let exposed = Arc::new(exposed.map_err(SetupError::from_error)?);
    exposed.warnings().iter().for_each(|warning| setup.warn(warning));
    setup.below.provide(Arc::clone(&exposed));
    setup.requests.inspection.clusters.push(Arc::clone(&exposed) as Arc<dyn InspectCluster>);
    // No transfers with `compat kube-dns`: kube-dns had none, and a copy of the zone would lack the names of kube-dns.
    if !config.is_like_kube_dns {
        let common = zones.names().iter().filter(|zone| !is_reverse(zone.as_ref()) && config.is_common(zone.as_ref()));
        transfer::offer(&exposed, common.cloned().collect(), (config.ttl, config.ignore_empty), setup);
    }
    let index = Arc::clone(&exposed.index);
    setup.requests.readiness.add(MANIFEST.name, move || index.knows(READY));
    setup.requests.startup_gates.push(startup_gates(&exposed.index, config.startup_timeout));

    let fallthrough: Zones = config.fallthrough.iter().cloned().collect();
    LocalZones::add(setup.below, &zones, &fallthrough);
    let primary = zones.names().iter().find(|zone| !is_reverse(zone.as_ref())).cloned().unwrap_or_default();
    let views: Box<[View]> =
        zones.names().iter().map(|zone| View::of(zone.as_ref(), &config, &exposed.index)).collect();
    labels::publish(&setup.labels(), (&zones, &views), &exposed, &pod_labels);
    let plugin = Kubernetes {
        fallthrough: fallthrough.clone(),
        primary,
        views,
        ttl: config.ttl,
        pods: config.pods,
        ignore_empty: config.ignore_empty,
        is_like_kube_dns: config.is_like_kube_dns,
        stale: counters(&STALE, &zones, setup),
        wildcards: if config.is_like_kube_dns { counters(&WILDCARDS, &zones, setup) } else { Box::default() },
        exposed,
    };
    Ok(Some(Part { zones: Some(zones), fallthrough, ..Part::new(plugin, Hooks::DOWN) }))
}

/// Reserves the file of the snapshot for the watches of this directive. Equal directives share watches and file.
///
/// # Errors
/// A directive with other watches has the same file. Each would replace what the other one wrote, so that neither could
/// resume.
fn claim_snapshot(request: &Request, setup: &mut Setup<'_>) -> Result<(), SetupError> {
    let Some(file) = &request.snapshot else { return Ok(()) };
    let key = format!("{} snapshot {}", MANIFEST.name, file.display());
    let (_, owner) = setup.reload_state.successive::<OnceLock<Request>>(key);
    let request = request.canonical();
    if *owner.get_or_init(|| request.clone()) == request {
        return Ok(());
    }
    let problem =
        format!("`{}` is also the snapshot of another *kubernetes*, which watches other objects", file.display());
    Err(SetupError::new(problem).with_help("give each of them a file of its own"))
}

/// Maximum number of pod labels that are kept. Each takes memory for every pod.
const POD_LABELS_MAX: usize = 16;

/// Returns the keys of the pod labels that directives of the Corefile use. The server keeps no others.
fn client_labels(setup: &mut Setup<'_>) -> Vec<String> {
    let mut keys = labels::client_label_keys(setup.words);
    if keys.len() > POD_LABELS_MAX {
        let left_out = keys.split_off(POD_LABELS_MAX).join(", ");
        setup.warn(format!("the server keeps {POD_LABELS_MAX} labels of pods; these stay empty: {left_out}"));
    }
    keys
}

/// Registers one counter per zone.
fn counters(metric: &'static Metric, zones: &Zones, setup: &Setup<'_>) -> Box<[Counter]> {
    zones.names().iter().map(|zone| setup.registry.counter(metric, &[&zone.to_string()])).collect()
}

/// Condition that a reload waits for. Until then the old configuration keeps serving.
fn startup_gates(index: &Arc<Index>, timeout: Duration) -> StartupGate {
    let index = Arc::clone(index);
    StartupGate {
        directive: MANIFEST.name,
        is_there: Box::new(move || index.knows(READY)),
        timeout,
        waiting: "waiting for Kubernetes API before starting server",
        missing: "starting server with unsynced Kubernetes API",
    }
}

/// Addresses of this machine without loopback. The process provides them, and plugins use them to find the Services
/// that this server is an endpoint of.
#[derive(Clone)]
pub struct LocalAddresses(pub Arc<[IpAddr]>);

/// Plugin that serves a cluster with the options of one block.
struct Kubernetes {
    exposed: Arc<Exposed>,
    /// Zones whose missing names the next plugin may have.
    fallthrough: Zones,
    /// Zone of the PTR targets.
    primary: Name,
    /// View of the cluster per zone, by zone index.
    views: Box<[View]>,
    ttl: u32,
    pods: Pods,
    ignore_empty: bool,
    /// `compat kube-dns`: records are those of kube-dns.
    is_like_kube_dns: bool,
    /// Answers from a snapshot, per zone.
    stale: Box<[Counter]>,
    /// Queries with `*`, per zone. Empty without `compat kube-dns`.
    wildcards: Box<[Counter]>,
}

/// Part of the cluster that a zone serves, and the form of its names.
struct View {
    is_reverse: bool,
    grammar: Grammar,
    /// Index with the Services of the zone.
    index: Arc<Index>,
    /// Kinds that must be listed before a name can be denied.
    required: RequiredKinds,
}

/// Kinds of objects that decide whether a name exists.
struct RequiredKinds {
    namespaces: Kinds,
    services: Kinds,
    endpoints: Kinds,
}

/// Kinds that must be listed before this server is ready. ServiceImports are not among them: an API server without that
/// resource must not keep the names of the cluster from being served.
const READY: Kinds = Kinds::of(&[Kind::Namespace, Kind::Service, Kind::EndpointSlice, Kind::Pod]);

/// Kinds for the zones of this cluster.
const LOCAL: RequiredKinds = RequiredKinds {
    namespaces: Kinds::of(&[Kind::Namespace]),
    services: Kinds::of(&[Kind::Namespace, Kind::Service]),
    endpoints: Kinds::of(&[Kind::Namespace, Kind::Service, Kind::EndpointSlice]),
};
/// Kinds for the `multicluster` zones.
const COMMON: RequiredKinds = RequiredKinds {
    namespaces: Kinds::of(&[Kind::Namespace]),
    services: Kinds::of(&[Kind::Namespace, Kind::ServiceImport]),
    endpoints: Kinds::of(&[Kind::Namespace, Kind::ServiceImport, Kind::ImportedSlice]),
};

impl View {
    fn of(zone: NameRef<'_>, config: &Config, index: &Arc<Index>) -> View {
        let is_reverse = is_reverse(zone);
        match index.clusterset().filter(|_| config.is_common(zone)) {
            Some(common) => {
                View { is_reverse, grammar: Grammar::Clusterset, index: Arc::clone(common), required: COMMON }
            }
            None => {
                let grammar = match config {
                    _ if config.is_like_kube_dns => Grammar::KubeDns,
                    _ if config.zonal => Grammar::Zonal,
                    _ => Grammar::Cluster,
                };
                View { is_reverse, grammar, index: Arc::clone(index), required: LOCAL }
            }
        }
    }
}

impl Plugin for Kubernetes {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if query.qtype.is_transfer() {
            return Verdict::Fail(Failure::refused(EdeCode::NOT_SUPPORTED, "zone transfer is not offered"));
        }
        response.set_authoritative(true);
        response.set_local();
        let Some(view) = self.views.get(query.zone_index()) else { return Verdict::Pass };
        let found = if query.qtype == Type::ANY && !self.is_like_kube_dns {
            let has_set = |found: &LookupResult| !matches!(found, LookupResult::NoData);
            let find = |query: &Query| Some(self.find(view, query, response, worker)).filter(has_set);
            first_of_any(query, find).unwrap_or(LookupResult::NoData)
        } else {
            self.find(view, query, response, worker)
        };
        let denies = matches!(found, LookupResult::NoName | LookupResult::NoTarget);
        let verdict = self.respond(found, query, response);
        if self.exposed.mark_stale(denies, response)
            && let Some(counter) = self.stale.get(query.zone_index())
        {
            worker.counters.count(*counter);
        }
        verdict
    }

    fn on_subresponse(&self, _: &mut Query, sub: &mut Response, response: &mut Response, _: &mut Worker) -> Verdict {
        end_alias(sub, response)
    }

    fn explain(&self, hook: Hook, query: &Query, response: &Response, _: Instant) -> Option<Explanation> {
        if hook == Hook::Response { None } else { self.explained(query, response) }
    }
}

/// Returns true if `ignore empty_service` hides the Service: it has a cluster IP and no endpoints.
fn is_hidden(ignore_empty: bool, service: &Service) -> bool {
    ignore_empty && matches!(service.kind, ServiceKind::ClusterIp(_)) && !service.has_endpoints()
}

/// Name to look up: that of the query, or the target of an alias.
struct Asked<'a> {
    /// The name as it is written.
    name: NameRef<'a>,
    /// Object that the name refers to.
    target: Target<'a>,
    /// Shape of its records.
    context: AnswerContext<'a>,
}

/// Result of a lookup.
enum LookupResult {
    /// The records are in the answer section.
    Answered,
    /// The name exists without records of this type.
    NoData,
    /// Address names can exist below, here or at the next plugin. The name has no records and may fall through.
    Above,
    /// The name does not exist.
    NoName,
    /// The name is an alias, whose target does not exist.
    NoTarget,
    /// The objects that decide whether the name exists have not been listed yet.
    Unknown,
    /// The name is an alias with a target outside of the zone.
    Elsewhere(Verdict),
}

impl Kubernetes {
    /// Completes the response to a lookup that has written the records of an answer.
    fn respond(&self, found: LookupResult, query: &Query, response: &mut Response) -> Verdict {
        match found {
            LookupResult::Answered => Verdict::Done,
            LookupResult::NoData => {
                self.push_soa(Section::Authority, query, response);
                Verdict::Done
            }
            LookupResult::Above => {
                self.push_soa(Section::Authority, query, response);
                Verdict::Missing
            }
            LookupResult::Unknown => Verdict::Fail(not_ready(&self.exposed.index)),
            LookupResult::NoName => {
                response.set_rcode(Rcode::NXDOMAIN);
                self.push_soa(Section::Authority, query, response);
                Verdict::Missing
            }
            LookupResult::NoTarget => {
                response.set_rcode(Rcode::NXDOMAIN);
                self.push_soa(Section::Authority, query, response);
                Verdict::Done
            }
            LookupResult::Elsewhere(verdict) => verdict,
        }
    }

    /// Looks up the query name.
    fn find(&self, view: &View, query: &Query, response: &mut Response, worker: &mut Worker) -> LookupResult {
        if view.is_reverse {
            return self.find_reverse(query, response);
        }
        let key = query.key();
        let target = Target::read(&key.as_bytes()[..query.zone_at()], view.grammar);
        let found = if view.grammar == Grammar::KubeDns
            && let Target::Service { namespace, service, part } = target
            && let Some(among) = Among::read(namespace, service, part)
        {
            if let Some(counter) = self.wildcards.get(query.zone_index()) {
                worker.counters.count(*counter);
            }
            self.find_among(view, among, query, response, worker)
        } else {
            let context = self.context(query.qtype, Owner::Question, query.zone());
            self.find_name(view, &Asked { name: query.name(), target, context }, query, response, worker)
        };
        found.unwrap_or_else(|alias| self.follow_alias(view, query, &alias, response, worker))
    }

    /// Looks up a name.
    ///
    /// # Errors
    /// Target of an alias to follow.
    fn find_name(
        &self,
        view: &View,
        asked: &Asked<'_>,
        query: &Query,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Result<LookupResult, Box<Name>> {
        let owner = asked.context.owner;
        Ok(match asked.target {
            Target::Apex => self.find_apex(query, owner, response),
            Target::Branch => LookupResult::NoData,
            Target::Version => {
                if query.qtype == Type::TXT {
                    Kubernetes::push_version(owner, response);
                }
                LookupResult::of_message(response)
            }
            Target::NameServer => {
                self.push_name_server_addresses(query, owner, response);
                LookupResult::of_message(response)
            }
            Target::Namespace(namespace) if self.exposed.shows(namespace) => LookupResult::NoData,
            Target::PodNamespace(namespace) if self.pods != Pods::Disabled && self.exposed.shows(namespace) => {
                LookupResult::NoData
            }
            Target::Pod { namespace, pod } if self.exposed.shows(namespace) || self.has_pods_anywhere() => {
                let outcome = self.pod((namespace, pod), asked, response);
                LookupResult::of(&outcome).unwrap_or_else(|| self.absent_in(namespace, self.needs_of_pods()))
            }
            Target::Service { namespace, service, part } if self.exposed.shows(namespace) => {
                return self.find_service(view, (namespace, service, part), &asked.context, response, worker);
            }
            Target::Nothing => LookupResult::NoName,
            _ => self.absent(LOCAL.namespaces),
        })
    }

    /// Looks up a Service or part of it. The error is the target of an alias to follow.
    fn find_service(
        &self,
        view: &View,
        (namespace, service, part): (&[u8], &[u8], name::Part<'_>),
        context: &AnswerContext<'_>,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Result<LookupResult, Box<Name>> {
        let mut alias = None;
        let found = view.index.service(namespace, service, |service| {
            match self.answer(context, service, part, response, worker) {
                NameLookup::Alias(target) => {
                    alias = Some(Name::from_text(target));
                    LookupResult::NoData
                }
                outcome => {
                    LookupResult::of(&outcome).unwrap_or_else(|| self.absent_in(namespace, view.required.endpoints))
                }
            }
        });
        match alias {
            None => Ok(found.unwrap_or_else(|| self.absent_in(namespace, view.required.services))),
            Some(Ok(target)) => Err(target.into()),
            // An invalid host name leads nowhere.
            Some(Err(_)) => Ok(LookupResult::NoData),
        }
    }

    fn find_apex(&self, query: &Query, owner: Owner<'_>, response: &mut Response) -> LookupResult {
        match query.qtype {
            Type::SOA => self.push_soa(Section::Answer, query, response),
            Type::NS => self.push_name_servers(query, owner, response),
            _ => {}
        }
        LookupResult::of_message(response)
    }

    /// Result for a name without an object: NXDOMAIN, or unknown until these kinds are listed.
    fn absent(&self, kinds: Kinds) -> LookupResult {
        if self.exposed.index.knows(kinds) { LookupResult::NoName } else { LookupResult::Unknown }
    }

    /// Same as [`Kubernetes::absent`] for a name in a served namespace.
    fn absent_in(&self, namespace: &[u8], kinds: Kinds) -> LookupResult {
        let is_known = self.exposed.index.knows_in(namespace, kinds) || is_planted(Bug::DeniesUnknown);
        if is_known { LookupResult::NoName } else { LookupResult::Unknown }
    }

    /// Returns true if pod names exist in namespaces that do not: kube-dns only parsed the address.
    fn has_pods_anywhere(&self) -> bool {
        self.is_like_kube_dns && self.pods == Pods::Insecure
    }

    fn needs_of_pods(&self) -> Kinds {
        const PODS: Kinds = Kinds::of(&[Kind::Namespace, Kind::Pod]);
        if self.pods == Pods::Verified { PODS } else { LOCAL.namespaces }
    }
}

impl LookupResult {
    /// Converts an outcome. `None` if the name does not exist.
    fn of(outcome: &NameLookup<'_>) -> Option<LookupResult> {
        match outcome {
            NameLookup::Answered => Some(LookupResult::Answered),
            NameLookup::NoData | NameLookup::Alias(_) => Some(LookupResult::NoData),
            NameLookup::NoName => None,
        }
    }

    fn of_message(response: &Response) -> LookupResult {
        if response.message.section(Section::Answer).next().is_some() {
            LookupResult::Answered
        } else {
            LookupResult::NoData
        }
    }
}
