//! Records of Services, endpoints and pods.

use core::net::IpAddr;

use cluster::dashed;
use cluster::{Address, Endpoint, Port, Service, ServiceKind};
use engine::{Response, Worker};
use wire::{Class, NameRef, Owner, Section, Type};

use super::name::Part;
use super::{Asked, Kubernetes, Pods, is_hidden};
use crate::shared::endpoint_hash::KUBE_DNS;
use crate::shared::service_records::{
    AnswerContext, EndpointList, NameLookup, PLAIN, PortNames, Tree, Which, matching, weight,
};

/// Label between the names of Services and the zone.
const SERVICES: &[u8] = b"svc";

impl Kubernetes {
    /// Request for records of a type with this owner. `zone` has the letter case of the query.
    pub(super) fn context<'a>(&self, qtype: Type, owner: Owner<'a>, zone: NameRef<'a>) -> AnswerContext<'a> {
        AnswerContext { qtype, ttl: self.ttl, owner, tree: Kubernetes::tree(zone), share: None, has_glue: true }
    }

    /// Subtree of the zone that holds the names of Services.
    pub(super) fn tree(zone: NameRef<'_>) -> Tree<'_> {
        Tree { branch: Some(SERVICES), zone, form: &PLAIN }
    }

    /// Answers for a Service or part of it.
    pub(super) fn answer<'s>(
        &self,
        context: &AnswerContext<'_>,
        service: &'s Service,
        part: Part<'_>,
        response: &mut Response,
        worker: &mut Worker,
    ) -> NameLookup<'s> {
        if self.is_like_kube_dns {
            return self.answer_like_kube_dns(context, service, part, response, worker);
        }
        let ips = match &service.kind {
            ServiceKind::ExternalName(target) => return external_name(target, part),
            ServiceKind::ClusterIp(_) if is_hidden(self.ignore_empty, service) => return NameLookup::NoName,
            ServiceKind::ClusterIp(ips) => ips,
            ServiceKind::Headless => return headless(context, service, part, response, worker),
            ServiceKind::Undeclared => return NameLookup::NoName,
        };
        let own = |ports, response| context.own_addresses(service, ips.iter().copied(), ports, response);
        match part {
            Part::Whole => own((b"", b""), response),
            Part::Port(name, protocol) => own((name, protocol), response),
            Part::Protocol(protocol) => branch(service.ports.iter(), protocol),
            Part::Endpoint(_) | Part::EndpointIn(..) => endpoints(context, service, part, response, worker),
            Part::Zone { .. } | Part::Each => NameLookup::NoName,
        }
    }
}

/// ExternalName Service: it has no parts, and an IP address as target gives no alias.
fn external_name<'s>(target: &'s str, part: Part<'_>) -> NameLookup<'s> {
    if part != Part::Whole || target.is_empty() || target.parse::<IpAddr>().is_ok() {
        return NameLookup::NoName;
    }
    NameLookup::Alias(target)
}

fn headless<'s>(
    context: &AnswerContext<'_>,
    service: &'s Service,
    part: Part<'_>,
    response: &mut Response,
    worker: &mut Worker,
) -> NameLookup<'s> {
    match part {
        Part::Protocol(protocol) => {
            let filled = service.slices.iter().filter(|slice| !slice.is_empty());
            branch(filled.flat_map(|slice| slice.ports.iter()), protocol)
        }
        _ => endpoints(context, service, part, response, worker),
    }
}

fn endpoints<'s>(
    context: &AnswerContext<'_>,
    service: &'s Service,
    part: Part<'_>,
    response: &mut Response,
    worker: &mut Worker,
) -> NameLookup<'s> {
    let (list, ports) = endpoints_of(service, part);
    let before = response.message.marks().len();
    let outcome = context.endpoints(&list, ports, response, worker);
    if response.message.marks().len() == before
        && let Some(target) = only_name(service, part, &list)
    {
        return NameLookup::Alias(target);
    }
    match outcome {
        // A topology zone without endpoints may get some at any time. Its name exists as long as the Service.
        NameLookup::NoName if matches!(part, Part::Zone { .. }) => NameLookup::NoData,
        outcome => outcome,
    }
}

/// Returns the host name of the only endpoint, if its address is a name (slices of type `FQDN`). With several endpoints
/// there is no alias, because a name has only one CNAME record (RFC 1034 §3.6.2). Below the name of a port, only
/// endpoints with this port count.
fn only_name<'s>(service: &'s Service, part: Part<'_>, list: &EndpointList<'_>) -> Option<&'s str> {
    let has_port = |endpoint: &Endpoint<'_>| match part {
        Part::Port(..) => matching(*endpoint, part.ports()).next().is_some(),
        _ => true,
    };
    let mut each = list.each().filter(has_port);
    let (Some(Address::Name(only)), None) = (each.next().map(Endpoint::address), each.next()) else { return None };
    let addresses = service.endpoints().map(Endpoint::address);
    let mut names = addresses.filter_map(|address| if let Address::Name(name) = address { Some(name) } else { None });
    names.find(|name| *name == only)
}

/// Endpoints of a part of a Service, and the requested ports.
fn endpoints_of<'a>(service: &'a Service, part: Part<'a>) -> (EndpointList<'a>, PortNames<'a>) {
    let which = match part {
        Part::Endpoint(label) => Which::Called(label),
        Part::EndpointIn(label, cluster) => Which::CalledIn(label, cluster),
        Part::Zone { zone, pinned } => {
            let list = EndpointList { service, which: Which::InZone(zone) };
            if pinned || list.each().next().is_some() { list.which } else { Which::All }
        }
        Part::Whole | Part::Each | Part::Port(..) | Part::Protocol(_) => Which::All,
    };
    (EndpointList { service, which }, part.ports())
}

/// Number of labels in `ADDRESS.NAMESPACE.pod`.
const POD_LABELS: usize = 3;
/// Outcome for `_PROTOCOL.SERVICE`, which exists if a named port of this protocol is below it.
pub(super) fn branch<'a>(mut ports: impl Iterator<Item = &'a Port>, protocol: &[u8]) -> NameLookup<'static> {
    let below = ports.any(|port| !port.name.is_empty() && port.matches(b"", protocol));
    if below && !protocol.is_empty() { NameLookup::NoData } else { NameLookup::NoName }
}

impl Kubernetes {
    /// Returns the address of `ADDRESS.NAMESPACE.pod`, or `None` if the name does not exist.
    pub(super) fn pod_address(&self, namespace: &[u8], pod: &[u8]) -> Option<IpAddr> {
        let address = match self.pods {
            Pods::Disabled => None,
            Pods::Insecure => dashed::read(pod),
            Pods::Verified => {
                dashed::read_pod(pod).filter(|address| self.exposed.index.pod_exists(namespace, *address))
            }
        };
        address.map(|address| address.to_canonical())
    }

    /// Answers for `ADDRESS.NAMESPACE.pod`.
    pub(super) fn pod(
        &self,
        (namespace, pod): (&[u8], &[u8]),
        asked: &Asked<'_>,
        response: &mut Response,
    ) -> NameLookup<'static> {
        let Some(address) = self.pod_address(namespace, pod) else { return NameLookup::NoName };
        let context = &asked.context;
        match context.qtype {
            Type::A | Type::AAAA if context.wants(address) => {
                response.message.push_address(Section::Answer, context.owner, context.ttl, address);
            }
            Type::SRV => self.push_pod_srv(asked, response, address),
            _ => return NameLookup::NoData,
        }
        NameLookup::Answered
    }

    /// Appends an SRV record with port 0, as in CoreDNS: DNS knows no ports of a pod.
    fn push_pod_srv(&self, asked: &Asked<'_>, response: &mut Response, address: IpAddr) {
        let extra = asked.name.labels().count() - asked.context.tree.zone.labels().count() - POD_LABELS;
        let Some(target) = asked.name.ancestors().nth(extra) else { return };
        let fields = (Type::SRV, Class::IN, self.ttl);
        let priority = if self.is_like_kube_dns { KUBE_DNS.priority } else { PLAIN.priority };
        response.message.push(Section::Answer, asked.context.owner, fields, |rdata| {
            rdata.u16(priority);
            rdata.u16(weight(1));
            rdata.u16(0);
            rdata.plain_name(target);
        });
        response.message.push_address(Section::Additional, Owner::Name(target), self.ttl, address);
    }
}
