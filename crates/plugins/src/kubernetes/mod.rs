//! Answers from the services, endpoints and pods of a cluster (Kubernetes DNS specification 1.1.0).
//!
//! The cluster is an index in memory (crate `cluster`); the edge keeps it. `name` says what a name stands for, `answer`
//! has its records, `zone` those of the zone itself, `reverse` and `alias` the two ways round.

mod alias;
mod answer;
mod config;
mod name;
mod reverse;
mod selector;
mod zone;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use cluster::{Clusters, Following, Index};
use engine::setup::{LocalZones, Part, Setup, SetupError};
use engine::{Failure, Hooks, Plugin, Query, Response, Verdict, Worker, Zones};
use wire::{EdeCode, Name, NameRef, Owner, Rcode, Section, Type};

pub(crate) use config::MANIFEST;

use answer::{Asked, Outcome};
use config::{Config, Pods};
use name::Target;

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
    let following = clusters.follow(&request).map_err(SetupError::new)?;
    let index = Arc::clone(following.index());
    let told = Arc::clone(&index);
    setup.needs.readiness.add(MANIFEST.name, move || told.is_synced());

    let zones = setup.zones_or_keys(&config.zones);
    let fallthrough: Zones = config.fallthrough.iter().cloned().collect();
    let answers_all = |zone: &&Name| {
        !fallthrough
            .names()
            .iter()
            .any(|name| name.as_ref().is_within(zone.as_ref()) || zone.as_ref().is_within(name.as_ref()))
    };
    setup.below.provide(LocalZones(zones.names().iter().filter(answers_all).cloned().collect()));
    let primary = zones.names().iter().find(|zone| !is_reverse(zone.as_ref())).cloned().unwrap_or_default();
    let local_addresses = setup.process.find().map_or_else(|| Arc::from([]), |LocalAddresses(addresses)| addresses);
    let plugin = Kubernetes {
        index,
        following,
        primary,
        reverse: zones.names().iter().map(|zone| is_reverse(zone.as_ref())).collect(),
        ttl: config.ttl,
        pods: config.pods,
        namespaces: config.namespaces.iter().map(|name| name.as_bytes().into()).collect(),
        ignore_empty: config.ignore_empty,
        local_addresses,
    };
    Ok(Some(Part { plugin: Box::new(plugin), hooks: Hooks::DOWN, zones: Some(zones), fallthrough }))
}

/// The addresses of this machine, without loopback: what the process offers to find out which services it serves.
#[derive(Clone)]
pub struct LocalAddresses(pub Arc<[IpAddr]>);

/// Whether a zone is of reverse names.
fn is_reverse(zone: NameRef<'_>) -> bool {
    const TREES: [&[u8]; 2] = [b"\x07in-addr\x04arpa\0", b"\x03ip6\x04arpa\0"];
    TREES.iter().any(|tree| NameRef::from_octets(tree).is_ok_and(|tree| zone.is_within(tree)))
}

/// A cluster, as one stanza shows it.
struct Kubernetes {
    index: Arc<Index>,
    /// Keeps the cluster followed.
    #[allow(dead_code, reason = "held for as long as the plugin is")]
    following: Arc<dyn Following>,
    /// The zone in which PTR records point.
    primary: Name,
    /// Which zones are of reverse names, by their index.
    reverse: Box<[bool]>,
    ttl: u32,
    pods: Pods,
    /// The only namespaces that exist; all if empty.
    namespaces: Box<[Box<[u8]>]>,
    ignore_empty: bool,
    local_addresses: Arc<[IpAddr]>,
}

impl Plugin for Kubernetes {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if query.qtype.is_transfer() {
            return Verdict::Fail(Failure::refused(EdeCode::NOT_SUPPORTED, "zone transfer is not offered"));
        }
        response.set_authoritative(true);
        response.set_local();
        let found = if self.reverse.get(query.zone_index()).copied().unwrap_or(false) {
            self.find_reverse(query, response)
        } else {
            self.find(query, response, worker)
        };
        match found {
            Found::Answered => Verdict::Done,
            Found::NoData => {
                self.push_soa(Section::Authority, query, response);
                Verdict::Done
            }
            Found::NoName if !self.index.is_synced() => {
                Verdict::Fail(Failure::servfail(EdeCode::NOT_READY, "the cluster is not known as a whole yet"))
            }
            Found::NoName => {
                response.set_rcode(Rcode::NXDOMAIN);
                self.push_soa(Section::Authority, query, response);
                Verdict::Missing
            }
            Found::Elsewhere(verdict) => verdict,
        }
    }

    fn on_subanswer(&self, query: &mut Query, sub: &mut Response, response: &mut Response, _: &mut Worker) -> Verdict {
        Kubernetes::end_alias(query, sub, response)
    }
}

/// What became of a question.
enum Found {
    /// The answer stands in the response.
    Answered,
    /// The name has no such record.
    NoData,
    /// There is no such name.
    NoName,
    /// It is an alias that leads out of the zone.
    Elsewhere(Verdict),
}

impl From<Outcome<'_>> for Found {
    fn from(outcome: Outcome<'_>) -> Found {
        match outcome {
            Outcome::Answered => Found::Answered,
            Outcome::NoData | Outcome::Alias(_) => Found::NoData,
            Outcome::NoName => Found::NoName,
        }
    }
}

impl Kubernetes {
    /// A question for a name in a forward zone.
    fn find(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Found {
        let key = query.key();
        match Target::read(&key.octets()[..query.zone_at()]) {
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
            Target::Namespace(namespace) => self.found_if(self.shows(namespace)),
            Target::PodNamespace(namespace) => self.found_if(self.pods != Pods::Disabled && self.shows(namespace)),
            Target::Pod { namespace, pod } if self.shows(namespace) => self.pod(namespace, pod, query, response).into(),
            Target::Service { namespace, service, part } if self.shows(namespace) => {
                let asked = Asked { plugin: self, qtype: query.qtype, owner: Owner::Question, zone: query.zone() };
                let mut alias = None;
                let found = self.index.service(namespace, service, |service| {
                    match asked.service(service, part, response, worker) {
                        Outcome::Alias(target) => {
                            alias = Some(Name::from_text(target));
                            Found::NoData
                        }
                        outcome => outcome.into(),
                    }
                });
                match alias {
                    None => found.unwrap_or(Found::NoName),
                    Some(Ok(target)) => self.follow_alias(query, &target, response, worker),
                    // A target that is no name leads nowhere.
                    Some(Err(_)) => Found::NoData,
                }
            }
            Target::Service { .. } | Target::Pod { .. } | Target::Nothing => Found::NoName,
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

    fn found_if(&self, exists: bool) -> Found {
        if exists { Found::NoData } else { Found::NoName }
    }

    /// Whether a namespace exists, as far as this stanza shows it.
    fn shows(&self, namespace: &[u8]) -> bool {
        let listed = self.namespaces.is_empty() || self.namespaces.iter().any(|listed| **listed == *namespace);
        listed && self.index.namespace_exists(namespace)
    }
}

impl Found {
    fn of_message(response: &Response) -> Found {
        if response.message.section(Section::Answer).next().is_some() { Found::Answered } else { Found::NoData }
    }
}
