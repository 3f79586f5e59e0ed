//! Answers from the services, endpoints and pods of a cluster (Kubernetes DNS specification 1.1.0).
//!
//! The cluster is an index in memory (crate `cluster`); the edge keeps it. `name` says what a name stands for, `answer`
//! has its records, `zone` those of the zone itself, `reverse` and `alias` the two ways round.

mod alias;
mod answer;
mod config;
mod labels;
mod name;
mod reverse;
mod selector;
mod transfer;
mod zone;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use cluster::{Clusters, Index, Kind, Kinds, Service, ServiceKind};
use engine::metrics::{self, Counter, Metric};
use engine::setup::{LocalZones, Part, Setup, SetupError};
use engine::{Failure, Hooks, Plugin, Query, Response, Verdict, Worker, Zones};
use wire::{EdeCode, Name, NameRef, Owner, Rcode, Section, Type};

use crate::exposed::{Exposed, is_reverse};
use crate::service_records::{Outcome, end_alias};

pub(crate) use config::MANIFEST;

use config::{Config, Pods};
use name::{Grammar, Target};

static STALE: Metric = Metric {
    name: "portolan_kubernetes_stale_answers_total",
    help: "Answers made from a snapshot, while the API server has not been asked, by zone.",
    kind: metrics::Kind::Counter,
    labels: &["zone"],
};

/// What is counted here.
static METRICS: [&Metric; 1] = [&STALE];

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    if let [used, _, ..] = config.endpoints.as_slice() {
        let text =
            format!("Multiple endpoints have been deprecated, only the first specified endpoint '{used}' is used");
        setup.needs.warnings.push((MANIFEST.name, text));
    }
    let request = config.request(|name| setup.path(name));
    let clusters: Rc<dyn Clusters> =
        setup.process.find().ok_or_else(|| SetupError::new("no cluster can be followed in this process"))?;
    let zones = setup.zones_or_keys(&config.zones);
    let local_addresses = setup.process.find().map_or_else(|| Arc::from([]), |LocalAddresses(addresses)| addresses);
    let own = zones.names().iter().filter(|zone| !is_reverse(zone.as_ref()) && !config.is_common(zone.as_ref()));
    let exposed = Exposed::follow(&*clusters, &request, own.cloned().collect(), local_addresses);
    let exposed = Arc::new(exposed.map_err(SetupError::new)?);
    setup.below.provide(Arc::clone(&exposed));
    transfer::offer(&exposed, config.ttl, config.ignore_empty, setup);
    let told = Arc::clone(&exposed.index);
    setup.needs.readiness.add(MANIFEST.name, move || told.knows(READY));

    let fallthrough: Zones = config.fallthrough.iter().cloned().collect();
    LocalZones::add(setup.below, &zones, &fallthrough);
    let primary = zones.names().iter().find(|zone| !is_reverse(zone.as_ref())).cloned().unwrap_or_default();
    let views: Box<[View]> =
        zones.names().iter().map(|zone| View::of(zone.as_ref(), &config, &exposed.index)).collect();
    labels::publish(&setup.labels(), &zones, &views, &exposed);
    let plugin = Kubernetes {
        primary,
        views,
        ttl: config.ttl,
        pods: config.pods,
        ignore_empty: config.ignore_empty,
        stale: zones.names().iter().map(|zone| setup.registry.counter(&STALE, &[&zone.to_string()])).collect(),
        exposed,
    };
    Ok(Some(Part { plugin: Box::new(plugin), hooks: Hooks::DOWN, zones: Some(zones), fallthrough }))
}

/// The addresses of this machine, without loopback: what the process offers to find out which services it serves.
#[derive(Clone)]
pub struct LocalAddresses(pub Arc<[IpAddr]>);

/// A cluster, as one stanza shows it.
struct Kubernetes {
    exposed: Arc<Exposed>,
    /// The zone in which PTR records point.
    primary: Name,
    /// What each zone shows, by its index.
    views: Box<[View]>,
    ttl: u32,
    pods: Pods,
    ignore_empty: bool,
    /// Of each zone, how many answers were made from what was only remembered.
    stale: Box<[Counter]>,
}

/// What a zone shows.
struct View {
    is_reverse: bool,
    grammar: Grammar,
    /// Where its services are.
    index: Arc<Index>,
    /// What must be known before something can be said not to exist.
    needs: Needs,
}

/// The kinds of objects that decide whether something exists.
struct Needs {
    namespaces: Kinds,
    services: Kinds,
    endpoints: Kinds,
}

/// What must be known before clients may come. What clusters have in common is not among it: an API server without
/// ServiceImports must not keep this one's names from being served.
const READY: Kinds = Kinds::of(&[Kind::Namespace, Kind::Service, Kind::EndpointSlice, Kind::Pod]);

/// In the zones of the cluster.
const LOCAL: Needs = Needs {
    namespaces: Kinds::of(&[Kind::Namespace]),
    services: Kinds::of(&[Kind::Namespace, Kind::Service]),
    endpoints: Kinds::of(&[Kind::Namespace, Kind::Service, Kind::EndpointSlice]),
};
/// In the zones of services that clusters have in common.
const COMMON: Needs = Needs {
    namespaces: Kinds::of(&[Kind::Namespace]),
    services: Kinds::of(&[Kind::Namespace, Kind::ServiceImport]),
    endpoints: Kinds::of(&[Kind::Namespace, Kind::ServiceImport, Kind::ImportedSlice]),
};

impl View {
    fn of(zone: NameRef<'_>, config: &Config, index: &Arc<Index>) -> View {
        let is_reverse = is_reverse(zone);
        match index.clusterset().filter(|_| config.is_common(zone)) {
            Some(common) => View { is_reverse, grammar: Grammar::Clusterset, index: Arc::clone(common), needs: COMMON },
            None => {
                let grammar = if config.zonal { Grammar::Zonal } else { Grammar::Cluster };
                View { is_reverse, grammar, index: Arc::clone(index), needs: LOCAL }
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
        let found =
            if view.is_reverse { self.find_reverse(query, response) } else { self.find(view, query, response, worker) };
        if self.exposed.mark_remembered(matches!(found, Found::NoName(_)), response)
            && let Some(counter) = self.stale.get(query.zone_index())
        {
            worker.counters.count(*counter);
        }
        match found {
            Found::Answered => Verdict::Done,
            Found::NoData => {
                self.push_soa(Section::Authority, query, response);
                Verdict::Done
            }
            Found::NoName(kinds) if !self.exposed.index.knows(kinds) => {
                Verdict::Fail(Failure::servfail(EdeCode::NOT_READY, "the cluster is not known as a whole yet"))
            }
            Found::NoName(_) => {
                response.set_rcode(Rcode::NXDOMAIN);
                self.push_soa(Section::Authority, query, response);
                Verdict::Missing
            }
            Found::Elsewhere(verdict) => verdict,
        }
    }

    fn on_subanswer(&self, _: &mut Query, sub: &mut Response, response: &mut Response, _: &mut Worker) -> Verdict {
        end_alias(sub, response)
    }
}

/// Whether `ignore empty_service` hides a service: one with a cluster IP and without endpoints.
fn is_hidden(ignore_empty: bool, service: &Service) -> bool {
    ignore_empty && matches!(service.kind, ServiceKind::ClusterIp(_)) && !service.has_endpoints()
}

/// What became of a question.
enum Found {
    /// The answer stands in the response.
    Answered,
    /// The name has no such record.
    NoData,
    /// There is no such name, if these kinds of objects are known.
    NoName(Kinds),
    /// It is an alias that leads out of the zone.
    Elsewhere(Verdict),
}

impl Kubernetes {
    /// A question for a name in a forward zone.
    fn find(&self, view: &View, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Found {
        let key = query.key();
        match Target::read(&key.octets()[..query.zone_at()], view.grammar) {
            Target::Apex => self.find_apex(query, response),
            Target::Branch => Found::NoData,
            Target::Version => {
                if query.qtype == Type::TXT {
                    Kubernetes::push_version(response);
                }
                Found::of_message(response)
            }
            Target::NameServer => {
                self.push_name_server_addresses(query, response);
                Found::of_message(response)
            }
            Target::Namespace(namespace) => found_if(self.exposed.shows(namespace)),
            Target::PodNamespace(namespace) => found_if(self.pods != Pods::Disabled && self.exposed.shows(namespace)),
            Target::Pod { namespace, pod } if self.exposed.shows(namespace) => {
                Found::of(&self.pod(namespace, pod, query, response), self.needs_of_pods())
            }
            Target::Service { namespace, service, part } if self.exposed.shows(namespace) => {
                let asked = self.asked(query.qtype, Owner::Question, query.zone());
                let mut alias = None;
                let found = view.index.service(namespace, service, |service| {
                    match self.answer(&asked, service, part, response, worker) {
                        Outcome::Alias(target) => {
                            alias = Some(Name::from_text(target));
                            Found::NoData
                        }
                        outcome => Found::of(&outcome, view.needs.endpoints),
                    }
                });
                match alias {
                    None => found.unwrap_or(Found::NoName(view.needs.services)),
                    Some(Ok(target)) => self.follow_alias(view, query, &target, response, worker),
                    // A target that is no name leads nowhere.
                    Some(Err(_)) => Found::NoData,
                }
            }
            Target::Service { .. } | Target::Pod { .. } => Found::NoName(LOCAL.namespaces),
            Target::Nothing => Found::NoName(Kinds::NONE),
        }
    }

    fn find_apex(&self, query: &Query, response: &mut Response) -> Found {
        match query.qtype {
            Type::SOA => self.push_soa(Section::Answer, query, response),
            Type::NS => self.push_name_servers(query, response),
            _ => {}
        }
        Found::of_message(response)
    }

    fn needs_of_pods(&self) -> Kinds {
        const PODS: Kinds = Kinds::of(&[Kind::Namespace, Kind::Pod]);
        if self.pods == Pods::Verified { PODS } else { LOCAL.namespaces }
    }
}

/// A namespace that exists has no records.
fn found_if(exists: bool) -> Found {
    if exists { Found::NoData } else { Found::NoName(LOCAL.namespaces) }
}

impl Found {
    fn of(outcome: &Outcome<'_>, needs: Kinds) -> Found {
        match outcome {
            Outcome::Answered => Found::Answered,
            Outcome::NoData | Outcome::Alias(_) => Found::NoData,
            Outcome::NoName => Found::NoName(needs),
        }
    }

    fn of_message(response: &Response) -> Found {
        if response.message.section(Section::Answer).next().is_some() { Found::Answered } else { Found::NoData }
    }
}
