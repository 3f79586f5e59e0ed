//! Serves the external addresses of a cluster's Services: load balancers and external IPs.
//!
//! The cluster is that of the `kubernetes` block in the same server block; no further watches are opened. `name` parses
//! names, `zone` has the records of the zone itself.

mod manifest;
mod name;
mod transfer;
mod zone;

use std::net::IpAddr;
use std::sync::Arc;

use cluster::{External as Outside, Kind, Kinds, Service, ServiceKind};
use config::setup::{Part as Step, Setup, SetupError};
use engine::{Failure, Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker, Zones};
use wire::{EdeCode, Name, Owner, Rcode, Section, Type, address_of, is_above_addresses};

pub(crate) use manifest::MANIFEST;

use common_plugins::shared::any_type::first_of_any;
use common_plugins::shared::cluster_view::{Exposed, is_reverse, not_ready};
use common_plugins::shared::service_records::{
    AnswerContext, EndpointList, NameLookup, PLAIN, Tree, Which, append_glue, end_alias, weight,
};
use manifest::Config;
use name::{Part, Target};
use zone::Names;

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Step>, SetupError> {
    let Some(config) = configs.into_iter().reduce(Config::merge) else { return Ok(None) };
    let exposed = setup.below.find::<Arc<Exposed>>().ok_or_else(|| {
        SetupError::new("kubernetes plugin not loaded")
            .with_help("write `kubernetes` into the same server block")
            .missing("kubernetes")
    })?;
    let zones = setup.zones_or_keys(&config.zones);
    let apex = config.apex.unwrap_or_else(|| manifest::APEX.into());
    let names = Names::below(&apex);
    let showing =
        Arc::new(Showing { exposed, apex, ttl: config.ttl.unwrap_or(manifest::TTL), headless: config.headless });
    let forward = zones.names().iter().filter(|zone| !is_reverse(zone.as_ref()));
    transfer::offer(&showing, forward.cloned().collect(), setup);
    let plugin = External {
        showing,
        are_reverse: zones.names().iter().map(|zone| is_reverse(zone.as_ref())).collect(),
        primary: zones.names().iter().find(|zone| !is_reverse(zone.as_ref())).cloned(),
        names,
    };
    let fallthrough: Zones = config.fallthrough.into_iter().collect();
    Ok(Some(Step { zones: Some(zones), fallthrough, ..Step::new(plugin, Hooks::DOWN) }))
}

/// Plugin that serves a cluster's external names.
struct External {
    showing: Arc<Showing>,
    /// True for each reverse zone, by zone index.
    are_reverse: Box<[bool]>,
    /// Zone of the PTR targets.
    primary: Option<Name>,
    names: Names,
}

/// Data shared between queries and zone transfers.
struct Showing {
    exposed: Arc<Exposed>,
    /// Label above the name server.
    apex: Box<[u8]>,
    ttl: u32,
    /// True if endpoints are served (`headless`).
    headless: bool,
}

/// Result of a lookup.
enum LookupResult {
    /// The name exists. An empty answer section means NODATA.
    Name,
    /// Address names can exist below, here or at the next plugin. The name has no records and may fall through.
    Above,
    /// The name does not exist.
    Nothing,
    /// The objects that decide whether the name exists have not been listed yet.
    Unknown,
    /// The name is an alias of this name.
    Alias(Name),
    /// The name has SRV records whose target is this name, outside of the cluster.
    Target(Name),
}

/// Lookups of the addresses of an SRV target that are still to be made.
struct Glue(Option<Box<Subquery>>);

impl Plugin for External {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if query.qtype.is_transfer() {
            return Verdict::Fail(Failure::refused(EdeCode::NOT_SUPPORTED, "zone transfer is not offered"));
        }
        response.set_authoritative(true);
        response.set_local();
        let is_reverse = self.are_reverse.get(query.zone_index()).copied().unwrap_or_default();
        let found = if query.qtype == Type::ANY {
            let find = |query: &Query| {
                let found = self.find(is_reverse, query, response, worker);
                let is_empty =
                    matches!((&found, NameLookup::of_message(response)), (LookupResult::Name, NameLookup::NoData));
                (!is_empty).then_some(found)
            };
            first_of_any(query, find).unwrap_or(LookupResult::Name)
        } else {
            self.find(is_reverse, query, response, worker)
        };
        let denies = matches!(found, LookupResult::Nothing);
        let verdict = self.respond(found, query, response);
        self.showing.exposed.mark_stale(denies, response);
        verdict
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        _: &mut Worker,
    ) -> Verdict {
        let Some(Glue(next)) = query.take_kept() else { return end_alias(sub, response) };
        append_glue(sub, response);
        let Some(ask) = next else { return Verdict::Done };
        query.keep(Glue(None));
        Verdict::Subquery(ask)
    }
}

impl External {
    /// Completes the response to a lookup that has written the records of an answer.
    fn respond(&self, found: LookupResult, query: &mut Query, response: &mut Response) -> Verdict {
        match found {
            LookupResult::Alias(name) => {
                Verdict::Subquery(Box::new(Subquery { name, qtype: query.qtype, target: SubqueryTarget::Top }))
            }
            LookupResult::Target(name) => {
                let ask = |qtype| Box::new(Subquery { name: name.clone(), qtype, target: SubqueryTarget::Top });
                query.keep(Glue(Some(ask(Type::AAAA))));
                Verdict::Subquery(ask(Type::A))
            }
            LookupResult::Above => {
                self.push_soa(Section::Authority, query, response);
                Verdict::Missing
            }
            LookupResult::Unknown => Verdict::Fail(not_ready(&self.showing.exposed.index)),
            LookupResult::Nothing => {
                response.set_rcode(Rcode::NXDOMAIN);
                self.push_soa(Section::Authority, query, response);
                Verdict::Missing
            }
            LookupResult::Name => {
                if matches!(NameLookup::of_message(response), NameLookup::NoData) {
                    self.push_soa(Section::Authority, query, response);
                }
                Verdict::Done
            }
        }
    }

    fn find(&self, is_reverse: bool, query: &Query, response: &mut Response, worker: &mut Worker) -> LookupResult {
        let key = query.key();
        match Target::read(&key.as_bytes()[..query.zone_at()], &self.showing.apex) {
            Target::Apex => match query.qtype {
                Type::SOA => self.push_soa(Section::Answer, query, response),
                Type::NS => self.push_name_server(query, response),
                _ => {}
            },
            Target::Branch => {}
            Target::NameServer => self.push_name_server_addresses(query, response),
            _ if is_reverse => return self.find_address(query, response),
            Target::Namespace(namespace) if self.showing.exposed.shows(namespace) => {}
            Target::Service { namespace, service, part } if self.showing.exposed.shows(namespace) => {
                let read = |service: &Service| self.answer(service, part, query, response, worker);
                let found = self.showing.exposed.index.service(namespace, service, read).flatten();
                return found.unwrap_or_else(|| {
                    if self.showing.exposed.index.knows_in(namespace, self.showing.requests()) {
                        LookupResult::Nothing
                    } else {
                        LookupResult::Unknown
                    }
                });
            }
            Target::Namespace(_) | Target::Service { .. } | Target::Nothing => return self.absent(),
        }
        LookupResult::Name
    }

    /// Answers for a Service or part of it. `None` if the name does not exist.
    fn answer(
        &self,
        service: &Service,
        part: Part<'_>,
        query: &Query,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Option<LookupResult> {
        let tree = Tree { branch: None, zone: query.zone(), form: &PLAIN };
        let (qtype, ttl) = (query.qtype, self.showing.ttl);
        let context = AnswerContext { qtype, ttl, owner: Owner::Question, tree, share: None, has_glue: true };
        let outcome = match host_of(service) {
            _ if service.external_ips().next().is_some() => {
                context.own_addresses(service, distinct(service), part.ports(), response)
            }
            Some(host) => at_host(&context, service, part, host, response),
            None => self.endpoints(&context, service, part, response, worker),
        };
        match outcome {
            NameLookup::NoName => None,
            NameLookup::Answered | NameLookup::NoData => Some(LookupResult::Name),
            // An invalid host name leads nowhere.
            NameLookup::Alias(host) => Some(match Name::from_text(host) {
                Ok(target) if qtype == Type::SRV => LookupResult::Target(target),
                Ok(target) => self.follow(target, query, response),
                Err(_) => LookupResult::Name,
            }),
        }
    }

    /// Answers with endpoints if they are served: those of a headless Service, or the one called by name.
    fn endpoints(
        &self,
        context: &AnswerContext<'_>,
        service: &Service,
        part: Part<'_>,
        response: &mut Response,
        worker: &mut Worker,
    ) -> NameLookup<'static> {
        let which = match part {
            Part::Endpoint(label) => Which::Called(label),
            Part::Whole | Part::Port(_) if service.kind == ServiceKind::Headless => Which::All,
            Part::Whole | Part::Port(_) => return NameLookup::NoName,
        };
        if !self.showing.headless {
            return NameLookup::NoName;
        }
        context.endpoints(&EndpointList { service, which }, part.ports(), response, worker)
    }

    /// Answers with a CNAME record to the load balancer's host name, and follows it.
    fn follow(&self, name: Name, query: &Query, response: &mut Response) -> LookupResult {
        response.message.push_name(Section::Answer, Owner::Question, (Type::CNAME, self.showing.ttl), name.as_ref());
        if query.qtype == Type::CNAME {
            return LookupResult::Name;
        }
        LookupResult::Alias(name)
    }

    /// Answers with the Services at an external address.
    fn find_address(&self, query: &Query, response: &mut Response) -> LookupResult {
        if is_above_addresses(query.key()) {
            return LookupResult::Above;
        }
        let (Some(address), Some(primary)) = (address_of(query.key()), &self.primary) else { return self.absent() };
        let (tree, mut exists) = (Tree { branch: None, zone: primary.as_ref(), form: &PLAIN }, false);
        self.showing.exposed.index.services_of_external_ip(address, |service| {
            let name = tree.service_name(service).filter(|_| self.showing.exposed.shows(service.namespace.as_bytes()));
            let Some(name) = name else { return };
            exists = true;
            if query.qtype == Type::PTR {
                response.message.push_name(
                    Section::Answer,
                    Owner::Question,
                    (Type::PTR, self.showing.ttl),
                    name.as_ref(),
                );
            }
        });
        if exists { LookupResult::Name } else { self.absent() }
    }

    /// Result for a name without an object: NXDOMAIN, or unknown until the objects are listed.
    fn absent(&self) -> LookupResult {
        if self.showing.exposed.index.knows(self.showing.requests()) {
            LookupResult::Nothing
        } else {
            LookupResult::Unknown
        }
    }
}

impl Showing {
    /// Kinds that must be listed before a name can be denied.
    fn requests(&self) -> Kinds {
        const SERVICES: Kinds = Kinds::of(&[Kind::Namespace, Kind::Service]);
        const ENDPOINTS: Kinds = Kinds::of(&[Kind::Namespace, Kind::Service, Kind::EndpointSlice]);
        if self.headless { ENDPOINTS } else { SERVICES }
    }
}

/// Host name of a Service's load balancer, if it has one.
fn host_of(service: &Service) -> Option<&str> {
    service.external.iter().find_map(|external| match external {
        Outside::Host(host) => Some(&**host),
        Outside::Ip(_) => None,
    })
}

/// External addresses of a Service without duplicates.
fn distinct(service: &Service) -> impl Iterator<Item = IpAddr> + Clone {
    let before = |at, ip| service.external_ips().take(at).any(|known| known == ip);
    service.external_ips().enumerate().filter(move |(at, ip)| !before(*at, *ip)).map(|(_, ip)| ip)
}

/// Answers for a Service whose load balancer has a host name. Returns it as the alias to follow. For SRV, pushes the
/// records and returns the host name as their target.
fn at_host<'s>(
    context: &AnswerContext<'_>,
    service: &Service,
    part: Part<'_>,
    host: &'s str,
    response: &mut Response,
) -> NameLookup<'s> {
    let (name, protocol) = part.ports();
    let ports = || service.ports.iter().filter(|port| port.matches(name, protocol));
    let count = ports().count();
    if count == 0 {
        return NameLookup::NoName;
    }
    if context.qtype != Type::SRV {
        return NameLookup::Alias(host);
    }
    let Ok(target) = Name::from_text(host) else { return NameLookup::NoData };
    for (at, number) in ports().map(|port| port.number).enumerate() {
        // TCP and UDP ports with the same number would give equal records.
        let seen = ports().take(at).any(|before| before.number == number);
        if let Some(number) = number.filter(|_| !seen) {
            context.push_srv(response, target.as_ref(), weight(count), number);
        }
    }
    match NameLookup::of_message(response) {
        NameLookup::Answered => NameLookup::Alias(host),
        outcome => outcome,
    }
}
