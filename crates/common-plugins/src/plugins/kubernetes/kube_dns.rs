//! Record forms of kube-dns (`compat kube-dns`): endpoint names are hashes, SRV records exist also for names without a
//! port, ports are aliases of their Service, and `*` matches any Service, namespace or endpoint.
//!
//! Bugs and nondeterminism of kube-dns are not copied. docs/differences.md lists them.

use core::net::IpAddr;
use std::sync::Arc;

use cluster::dashed::LabelBuffer;
use cluster::{Service, ServiceKind};
use engine::{Query, Response, Worker};
use wire::{Name, Owner, Section, Type};

use super::answer::branch;
use super::name::{Part, Target};
use super::{Kubernetes, LookupResult, View, is_hidden};
use crate::shared::endpoint_hash::{KUBE_DNS, address_label};
use crate::shared::service_records::{
    AnswerContext, EndpointList, NameLookup, PortNames, Tree, Which, ip_of, matching, weight,
};

/// Wildcard label for a Service or namespace.
const ANY: &[u8] = b"*";

/// Pattern for the Services that a name with `*` matches.
#[derive(Clone, Copy)]
pub(super) struct Among<'a> {
    pub(super) namespace: &'a [u8],
    pub(super) service: &'a [u8],
    pub(super) part: Part<'a>,
}

impl<'a> Among<'a> {
    /// Returns the pattern if the Service or namespace label is `*`.
    pub(super) fn read(namespace: &'a [u8], service: &'a [u8], part: Part<'a>) -> Option<Among<'a>> {
        (namespace == ANY || service == ANY).then_some(Among { namespace, service, part })
    }

    /// Returns true for `*.NAMESPACE`, which matches only aliases: kube-dns stores their records directly in the
    /// namespace node.
    fn is_of_aliases(self) -> bool {
        self.service == ANY && self.part == Part::Whole
    }

    fn holds(self, service: &Service) -> bool {
        let is = |label: &[u8], own: &str| label == ANY || label == own.as_bytes();
        is(self.namespace, &service.namespace)
            && is(self.service, &service.name)
            && (!self.is_of_aliases() || matches!(service.kind, ServiceKind::ExternalName(_)))
    }
}

impl Kubernetes {
    /// Answers for a Service or part of it.
    pub(super) fn answer_like_kube_dns<'s>(
        &self,
        context: &AnswerContext<'_>,
        service: &'s Service,
        part: Part<'_>,
        response: &mut Response,
        worker: &mut Worker,
    ) -> NameLookup<'s> {
        let context = &AnswerContext {
            tree: Tree { form: &KUBE_DNS, ..context.tree },
            share: context.share.or_else(|| share(context.qtype, service, part)),
            ..*context
        };
        match &service.kind {
            ServiceKind::ClusterIp(_) if is_hidden(self.ignore_empty, service) => NameLookup::NoName,
            ServiceKind::ClusterIp(ips) => of_cluster_ips(context, service, ips, part, response),
            ServiceKind::Headless => of_endpoints(context, service, part, response, worker),
            ServiceKind::ExternalName(target) => of_alias(context, (service, target), part, response),
            ServiceKind::Undeclared => NameLookup::NoName,
        }
    }

    /// Answers a query with `*` from the records of all matching Services.
    ///
    /// # Errors
    /// Target of an alias to follow: that of the first ExternalName Service by namespace and name. Not returned if
    /// there are addresses, because an alias cannot coexist with other records.
    pub(super) fn find_among(
        &self,
        view: &View,
        among: Among<'_>,
        query: &Query,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Result<LookupResult, Box<Name>> {
        let meant = self.meant(view, among);
        let each = |visit: &mut dyn FnMut(&Service)| {
            for (namespace, name) in &meant {
                view.index.service(namespace.as_bytes(), name.as_bytes(), &mut *visit);
            }
        };
        let mut total = 0;
        each(&mut |service| total += share(query.qtype, service, among.part).unwrap_or(0));
        let (share, has_glue) = (Some(total), meant.len() == 1);
        let context = AnswerContext { share, has_glue, ..self.context(query.qtype, Owner::Question, query.zone()) };
        let (mut exists, mut alias) = (false, None);
        each(&mut |service| {
            let outcome = self.answer_like_kube_dns(&context, service, among.part, response, worker);
            exists |= !matches!(outcome, NameLookup::NoName);
            if let NameLookup::Alias(target) = outcome {
                alias = alias.take().or_else(|| Name::from_text(target).ok());
            }
        });
        match (LookupResult::of_message(response), alias) {
            (LookupResult::Answered, _) => Ok(LookupResult::Answered),
            (_, Some(target)) => Err(Box::new(target)),
            _ if exists => Ok(LookupResult::NoData),
            _ => Ok(self.absent(view.required.endpoints)),
        }
    }

    /// Matching Services, sorted by namespace and name.
    fn meant(&self, view: &View, among: Among<'_>) -> Vec<(Arc<str>, Box<str>)> {
        let mut meant = Vec::new();
        view.index.for_each_service(|service| {
            if among.holds(service) && self.exposed.shows(service.namespace.as_bytes()) {
                meant.push((Arc::clone(&service.namespace), service.name.clone()));
            }
        });
        meant.sort_unstable();
        meant
    }

    /// Answers an SRV query for an alias: its target with port 0, and the target's addresses if it is a Service of this
    /// zone.
    pub(super) fn push_alias_service(&self, view: &View, query: &Query, target: &Name, response: &mut Response) {
        let context = self.context(Type::SRV, Owner::Question, query.zone());
        let context = AnswerContext { tree: Tree { form: &KUBE_DNS, ..context.tree }, ..context };
        context.push_srv(response, target.as_ref(), weight(1), 0);
        let lower = target.clone().into_lowercase();
        let Some(prefix) = lower.as_ref().prefix_len(query.zone()) else { return };
        let push = |ip| {
            response.message.push_address(Section::Additional, Owner::Name(target.as_ref()), self.ttl, ip);
        };
        match Target::read(&lower.as_bytes()[..prefix], view.grammar) {
            Target::Service { namespace, service, part: Part::Whole } if self.exposed.shows(namespace) => {
                view.index.service(namespace, service, |service| each_address(service, push));
            }
            Target::Pod { namespace, pod } if self.exposed.shows(namespace) || self.has_pods_anywhere() => {
                self.pod_address(namespace, pod).into_iter().for_each(push);
            }
            _ => {}
        }
    }
}

/// Visits the cluster IPs of a Service, or the addresses of its endpoints.
fn each_address(service: &Service, visit: impl FnMut(IpAddr)) {
    match &service.kind {
        ServiceKind::ClusterIp(ips) => ips.iter().copied().for_each(visit),
        ServiceKind::Headless => service.endpoints().filter_map(ip_of).for_each(visit),
        ServiceKind::ExternalName(_) | ServiceKind::Undeclared => {}
    }
}

fn of_cluster_ips<'s>(
    context: &AnswerContext<'_>,
    service: &Service,
    ips: &[IpAddr],
    part: Part<'_>,
    response: &mut Response,
) -> NameLookup<'s> {
    let all = ips.iter().copied();
    match part {
        Part::Whole | Part::Each if context.qtype == Type::SRV => targets(context, service, all, response),
        Part::Whole | Part::Each => context.own_addresses(service, all, (b"", b""), response),
        Part::Endpoint(label) => {
            let called = all.filter(|ip| address_label(*ip, &mut [0; 63]) == label);
            match context.qtype {
                _ if called.clone().next().is_none() => NameLookup::NoName,
                Type::SRV => targets(context, service, called, response),
                _ => context.own_addresses(service, called, (b"", b""), response),
            }
        }
        Part::Port(name, protocol) if context.qtype.is_address() => {
            of_port(context, service, ips, (name, protocol), response)
        }
        Part::Port(name, protocol) => context.own_addresses(service, all, (name, protocol), response),
        Part::Protocol(protocol) => branch(service.ports.iter(), protocol),
        Part::EndpointIn(..) | Part::Zone { .. } => NameLookup::NoName,
    }
}

/// Appends one SRV record per address, with a target below the Service.
fn targets(
    context: &AnswerContext<'_>,
    service: &Service,
    ips: impl Iterator<Item = IpAddr> + Clone,
    response: &mut Response,
) -> NameLookup<'static> {
    let share = context.share.unwrap_or_else(|| ips.clone().count());
    let target = |ip| {
        let mut buffer: LabelBuffer = [0; 63];
        context.tree.name_of(&[address_label(ip, &mut buffer)], service)
    };
    for target in ips.clone().filter_map(target) {
        context.push_srv(response, target.as_ref(), weight(share), 0);
    }
    for ip in ips.filter(|_| context.has_glue) {
        let Some(target) = target(ip) else { continue };
        response.message.push_address(Section::Additional, Owner::Name(target.as_ref()), context.ttl, ip);
    }
    NameLookup::of_message(response)
}

/// Answers for a port, which is an alias of its Service.
fn of_port(
    context: &AnswerContext<'_>,
    service: &Service,
    ips: &[IpAddr],
    (name, protocol): (&[u8], &[u8]),
    response: &mut Response,
) -> NameLookup<'static> {
    if !service.ports.iter().any(|port| port.matches(name, protocol)) {
        return NameLookup::NoName;
    }
    let Some(owner) = context.tree.service_name(service).filter(|_| ips.iter().any(|ip| context.wants(*ip))) else {
        return NameLookup::NoData;
    };
    response.message.push_name(Section::Answer, context.owner, (Type::CNAME, context.ttl), owner.as_ref());
    let context = AnswerContext { owner: Owner::Name(owner.as_ref()), ..*context };
    context.own_addresses(service, ips.iter().copied(), (b"", b""), response)
}

fn of_endpoints(
    context: &AnswerContext<'_>,
    service: &Service,
    part: Part<'_>,
    response: &mut Response,
    worker: &mut Worker,
) -> NameLookup<'static> {
    let which = match part {
        Part::Whole | Part::Each | Part::Port(..) => Which::All,
        Part::Endpoint(label) => Which::Labelled(label, &KUBE_DNS),
        Part::Protocol(protocol) => {
            let filled = service.slices.iter().filter(|slice| !slice.is_empty());
            return branch(filled.flat_map(|slice| slice.ports.iter()), protocol);
        }
        Part::EndpointIn(..) | Part::Zone { .. } => return NameLookup::NoName,
    };
    context.endpoints(&EndpointList { service, which }, part.ports(), response, worker)
}

/// Answers for an ExternalName Service. Its target may be an IP address, which only kube-dns supports.
fn of_alias<'s>(
    context: &AnswerContext<'_>,
    (service, target): (&Service, &'s str),
    part: Part<'_>,
    response: &mut Response,
) -> NameLookup<'s> {
    if !matches!(part, Part::Whole) || target.is_empty() {
        return NameLookup::NoName;
    }
    if let Ok(ip) = target.parse() {
        if context.qtype == Type::SRV {
            own_target(context, service, ip, response);
        } else if context.wants(ip) && context.qtype.is_address() {
            response.message.push_address(Section::Answer, context.owner, context.ttl, ip);
        }
        return NameLookup::of_message(response);
    }
    match context.qtype {
        Type::A | Type::AAAA | Type::CNAME | Type::SRV => NameLookup::Alias(target),
        _ => NameLookup::NoData,
    }
}

/// Appends the SRV record of an ExternalName that is an IP address. Its target is the name of the Service itself.
fn own_target(context: &AnswerContext<'_>, service: &Service, ip: IpAddr, response: &mut Response) {
    let Some(target) = context.tree.service_name(service) else { return };
    context.push_srv(response, target.as_ref(), weight(context.share.unwrap_or(1)), 0);
    if context.has_glue {
        response.message.push_address(Section::Additional, Owner::Name(target.as_ref()), context.ttl, ip);
    }
}

/// Number of SRV records that share the weight. An endpoint in several slices counts once.
fn share(qtype: Type, service: &Service, part: Part<'_>) -> Option<usize> {
    if qtype != Type::SRV {
        return None;
    }
    let which = match part {
        Part::Endpoint(label) => Which::Labelled(label, &KUBE_DNS),
        _ => Which::All,
    };
    let ports = part.ports();
    match (&service.kind, part) {
        (ServiceKind::ClusterIp(ips), Part::Port(name, protocol)) => {
            Some(ips.len() * service.ports.iter().filter(|port| port.matches(name, protocol)).count())
        }
        (ServiceKind::ClusterIp(ips), Part::Whole | Part::Each) => Some(ips.len()),
        (ServiceKind::ExternalName(target), Part::Whole) => target.parse::<IpAddr>().ok().map(|_| 1),
        (ServiceKind::Headless, _) => Some(count_once(&EndpointList { service, which }, ports)),
        _ => None,
    }
}

/// Number of endpoints with distinct names.
fn count_once(list: &EndpointList<'_>, ports: PortNames<'_>) -> usize {
    let meant = list.each().filter(|endpoint| matching(*endpoint, ports).next().is_some());
    if list.service.slices.len() == 1 {
        return meant.count();
    }
    let mut names: Vec<_> = meant.map(|endpoint| endpoint.own_label().ok_or_else(|| ip_of(endpoint))).collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}
