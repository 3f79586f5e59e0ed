//! The records of services, endpoints and pods.

use core::hash::{BuildHasher, Hash};
use core::net::IpAddr;

use cluster::dashed;
use cluster::{Address, Endpoint, Port, Service, ServiceKind};
use engine::{Query, Response, Worker};
use foldhash::fast::FixedState;
use wire::{Class, NameRef, Owner, Section, Type};

use super::name::{Part, labels_of};
use super::zone::{endpoint_name, service_name};
use super::{Kubernetes, Pods};

/// What a name turned out to be.
pub(super) enum Outcome<'a> {
    /// Its records stand in the answer.
    Answered,
    /// It exists and has no record of this type.
    NoData,
    /// It does not exist.
    NoName,
    /// It is another name for this one.
    Alias(&'a str),
}

impl Outcome<'_> {
    fn of_message(response: &Response) -> Outcome<'static> {
        if response.message.section(Section::Answer).next().is_some() || response.message.is_truncated() {
            Outcome::Answered
        } else {
            Outcome::NoData
        }
    }
}

/// What is asked of a service, and where the answer goes.
pub(super) struct Asked<'a> {
    pub(super) plugin: &'a Kubernetes,
    pub(super) qtype: Type,
    /// Who owns the records: the question, or the end of a chain of aliases.
    pub(super) owner: Owner<'a>,
    /// The zone, in the case of the question.
    pub(super) zone: NameRef<'a>,
}

impl Asked<'_> {
    /// Answers for a service or a part of it.
    pub(super) fn service<'s>(
        &self,
        service: &'s Service,
        part: Part<'_>,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Outcome<'s> {
        match &service.kind {
            ServiceKind::ExternalName(target) => self.external_name(target, part),
            ServiceKind::ClusterIp(_) if self.plugin.hides(service) => Outcome::NoName,
            ServiceKind::ClusterIp(ips) => match part {
                Part::Whole => self.cluster_ips(service, ips, (b"", b""), response),
                Part::Port(name, protocol) => self.cluster_ips(service, ips, (name, protocol), response),
                Part::Protocol(protocol) => branch(service.ports.iter(), protocol),
                Part::Endpoint(_) | Part::EndpointIn(..) => self.endpoints(service, part, response, worker),
                Part::Zone { .. } => Outcome::NoName,
            },
            ServiceKind::Headless => match part {
                Part::Protocol(protocol) => branch(
                    service.slices.iter().filter(|slice| !slice.is_empty()).flat_map(|slice| slice.ports.iter()),
                    protocol,
                ),
                _ => self.endpoints(service, part, response, worker),
            },
            ServiceKind::Undeclared => Outcome::NoName,
        }
    }

    /// An alias has no parts, and one that is an address is none.
    fn external_name<'s>(&self, target: &'s str, part: Part<'_>) -> Outcome<'s> {
        if part != Part::Whole || target.is_empty() || target.parse::<IpAddr>().is_ok() {
            return Outcome::NoName;
        }
        match self.qtype {
            Type::A | Type::AAAA | Type::CNAME => Outcome::Alias(target),
            _ => Outcome::NoData,
        }
    }

    fn cluster_ips(
        &self,
        service: &Service,
        ips: &[IpAddr],
        (name, protocol): (&[u8], &[u8]),
        response: &mut Response,
    ) -> Outcome<'static> {
        let ports = || service.ports.iter().filter(|port| port.matches(name, protocol));
        let Some(_) = ports().next() else { return Outcome::NoName };
        if self.qtype.is_address() {
            for ip in ips.iter().filter(|ip| self.wants(**ip)) {
                response.message.push_address(Section::Answer, self.owner, self.plugin.ttl, *ip);
            }
            return Outcome::of_message(response);
        }
        let Some(target) = service_name(service, self.zone).filter(|_| self.qtype == Type::SRV) else {
            return Outcome::NoData;
        };
        let weight = weight(ports().count() * ips.len());
        let mut answered = ports().enumerate().filter_map(|(at, port)| {
            let number = port.number?;
            // TCP and UDP on one number are one record.
            let seen = ports().take(at).any(|before| before.number == Some(number));
            (!seen).then_some(number)
        });
        let mut target_at = None;
        for number in answered.by_ref() {
            let mark = self.push_srv(response, target.as_ref(), weight, number);
            target_at = target_at.or(mark);
        }
        if let Some(target_at) = target_at {
            for ip in ips {
                response.message.push_address(Section::Additional, Owner::At(target_at), self.plugin.ttl, *ip);
            }
        }
        Outcome::of_message(response)
    }

    /// Appends an SRV record and says where its target stands.
    fn push_srv(&self, response: &mut Response, target: NameRef<'_>, weight: u16, number: u16) -> Option<usize> {
        let fields = (Type::SRV, Class::IN, self.plugin.ttl);
        let mark = response.message.push(Section::Answer, self.owner, fields, |rdata| {
            rdata.u16(0);
            rdata.u16(weight);
            rdata.u16(number);
            rdata.plain_name(target);
        });
        mark.map(|mark| usize::from(mark.rdata) + 6)
    }

    fn endpoints(
        &self,
        service: &Service,
        part: Part<'_>,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Outcome<'static> {
        let (list, ports) = EndpointList::of(service, part);
        let candidates: usize = list.each().map(|endpoint| matching(endpoint, ports).count()).sum();
        if candidates == 0 {
            // A topology zone without endpoints may have some at any time, and its name exists for as long as the service.
            return if matches!(part, Part::Zone { .. }) { Outcome::NoData } else { Outcome::NoName };
        }
        match self.qtype {
            Type::A | Type::AAAA => self.endpoint_addresses(&list, ports, response, worker),
            Type::SRV => self.endpoint_services(&list, ports, weight(candidates), response),
            _ => return Outcome::NoData,
        }
        Outcome::of_message(response)
    }

    /// Appends the addresses, each once. Where they will not all fit, it begins at a random one, so that each has its
    /// share of the clients.
    fn endpoint_addresses(
        &self,
        list: &EndpointList<'_>,
        ports: (&[u8], &[u8]),
        response: &mut Response,
        worker: &mut Worker,
    ) {
        let addresses = || {
            let matching = list.each().filter(|endpoint| matching(*endpoint, ports).next().is_some());
            matching.filter_map(ip_of).filter(|ip| self.wants(*ip))
        };
        let count = addresses().count();
        let first = if count > SHARED_OUT_FROM { worker.random_below(count) } else { 0 };
        let mut seen = Seen::new(count);
        for ip in addresses().skip(first).chain(addresses().take(first)) {
            if seen.is_new(&ip, || holds(response, ip)) {
                response.message.push_address(Section::Answer, self.owner, self.plugin.ttl, ip);
            }
            if response.message.is_truncated() {
                return;
            }
        }
    }

    /// Appends an SRV record for each endpoint and port, and their addresses.
    fn endpoint_services(&self, list: &EndpointList<'_>, ports: (&[u8], &[u8]), weight: u16, response: &mut Response) {
        let mut seen = Seen::new(list.each().count());
        for endpoint in list.each() {
            let Some(target) = endpoint_name(endpoint, list.service, self.zone) else { continue };
            for number in matching(endpoint, ports).filter_map(|port| port.number) {
                if seen.is_new(&(target.octets(), number), || holds_srv(response, target.as_ref(), number)) {
                    self.push_srv(response, target.as_ref(), weight, number);
                }
            }
        }
        let mut seen = Seen::new(list.each().count());
        for endpoint in list.each().filter(|endpoint| matching(*endpoint, ports).any(|port| port.number.is_some())) {
            let Some(ip) = ip_of(endpoint) else { continue };
            let Some(target) = endpoint_name(endpoint, list.service, self.zone) else { continue };
            if seen.is_new(&(target.octets(), ip), || holds_glue(response, target.as_ref(), ip)) {
                let owner = Owner::Name(target.as_ref());
                response.message.push_address(Section::Additional, owner, self.plugin.ttl, ip);
            }
            if response.message.is_truncated() {
                return;
            }
        }
    }

    fn wants(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() == (self.qtype == Type::A)
    }
}

/// Labels in `ADDRESS.NAMESPACE.pod`.
const POD_LABELS: usize = 3;
/// Addresses in an answer from which on it may not hold them all: as many as fit in 512 octets with a long name.
const SHARED_OUT_FROM: usize = 16;

/// The endpoints of a service that are asked for.
struct EndpointList<'a> {
    service: &'a Service,
    which: Which<'a>,
}

/// Which endpoints of a service.
#[derive(Clone, Copy)]
enum Which<'a> {
    All,
    /// Those that are called so.
    Called(&'a [u8]),
    /// Those that are called so in a cluster.
    CalledIn(&'a [u8], &'a [u8]),
    /// Those in a topology zone.
    InZone(&'a [u8]),
}

impl<'a> EndpointList<'a> {
    /// Those of a part of a service, and of which of its ports.
    fn of(service: &'a Service, part: Part<'a>) -> (EndpointList<'a>, (&'a [u8], &'a [u8])) {
        let mut ports: (&[u8], &[u8]) = (b"", b"");
        let which = match part {
            Part::Port(name, protocol) => {
                ports = (name, protocol);
                Which::All
            }
            Part::Endpoint(label) => Which::Called(label),
            Part::EndpointIn(label, cluster) => Which::CalledIn(label, cluster),
            Part::Zone { zone, pinned } => {
                let list = EndpointList { service, which: Which::InZone(zone) };
                if pinned || list.each().next().is_some() { list.which } else { Which::All }
            }
            Part::Whole | Part::Protocol(_) => Which::All,
        };
        (EndpointList { service, which }, ports)
    }

    fn each(&self) -> impl Iterator<Item = Endpoint<'a>> + use<'a> {
        let EndpointList { service, which } = *self;
        let label = match which {
            Which::Called(label) | Which::CalledIn(label, _) => Some(label),
            Which::All | Which::InZone(_) => None,
        };
        let called = label.map(|label| service.endpoints_called(label));
        let all = label.is_none().then(|| service.endpoints());
        let each = called.into_iter().flatten().chain(all.into_iter().flatten());
        each.filter(move |endpoint| match which {
            Which::All | Which::Called(_) => true,
            Which::CalledIn(_, cluster) => {
                endpoint.slice.cluster.as_deref().is_some_and(|own| own.as_bytes() == cluster)
            }
            Which::InZone(zone) => is_zone(zone, endpoint.zone()),
        })
    }
}

/// Whether labels spell the name of a topology zone, which may have dots in it.
fn is_zone(labels: &[u8], zone: &str) -> bool {
    !zone.is_empty() && labels_of(labels).eq(zone.as_bytes().split(|octet| *octet == b'.'))
}

fn matching<'a>(endpoint: Endpoint<'a>, (name, protocol): (&'a [u8], &'a [u8])) -> impl Iterator<Item = &'a Port> {
    endpoint.slice.ports.iter().filter(move |port| port.matches(name, protocol))
}

fn ip_of(endpoint: Endpoint<'_>) -> Option<IpAddr> {
    match endpoint.address() {
        Address::Ip(ip) => Some(ip),
        Address::Name(_) => None,
    }
}

/// A branch exists where a port of this protocol is below it.
fn branch<'a>(mut ports: impl Iterator<Item = &'a Port>, protocol: &[u8]) -> Outcome<'static> {
    let below = ports.any(|port| !port.name.is_empty() && port.matches(b"", protocol));
    if below && !protocol.is_empty() { Outcome::NoData } else { Outcome::NoName }
}

/// Each of `candidates` has the same share of a hundred, rounded down, and at least one.
fn weight(candidates: usize) -> u16 {
    u16::try_from(100 / candidates.clamp(1, 100)).unwrap_or(1)
}

fn holds(response: &Response, ip: IpAddr) -> bool {
    response.message.marks().iter().any(|mark| same_address(response.message.octets_at(mark.rdata_range()), ip))
}

fn same_address(rdata: &[u8], ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => rdata == v4.octets(),
        IpAddr::V6(v6) => rdata == v6.octets(),
    }
}

fn holds_srv(response: &Response, target: NameRef<'_>, number: u16) -> bool {
    response.message.section(Section::Answer).any(|mark| {
        let rdata = response.message.octets_at(mark.rdata_range());
        rdata.get(4..6) == Some(&number.to_be_bytes()) && rdata.get(6..) == Some(target.octets())
    })
}

fn holds_glue(response: &Response, target: NameRef<'_>, ip: IpAddr) -> bool {
    let message = &response.message;
    message.section(Section::Additional).any(|mark| {
        same_address(message.octets_at(mark.rdata_range()), ip)
            && message.owner(mark).is_ok_and(|owner| owner.as_ref().same(target))
    })
}

/// Which of many things have been written already: a filter that says "new" for certain, so that only the few others
/// are looked for in the message.
#[allow(clippy::large_enum_variant, reason = "it lives on the stack for the time of one answer")]
enum Seen {
    /// So few things that each is looked for.
    Few,
    /// One bit for each of the hashes of the things seen.
    Many([u64; SEEN_WORDS]),
}

/// Words in the filter: 64 Ki bits, so that of 4,000 things one in sixteen is looked for in vain.
const SEEN_WORDS: usize = 1024;
/// So few things are looked for one by one.
const FEW: usize = 24;

impl Seen {
    fn new(count: usize) -> Seen {
        if count <= FEW { Seen::Few } else { Seen::Many([0; SEEN_WORDS]) }
    }

    /// Whether this one was not there before; `look` says so when the filter cannot.
    fn is_new<T: Hash>(&mut self, thing: &T, look: impl FnOnce() -> bool) -> bool {
        let Seen::Many(words) = self else { return !look() };
        let hash = FixedState::default().hash_one(thing);
        let word = &mut words[(hash >> 6) as usize % SEEN_WORDS];
        let bit = 1 << (hash % 64);
        let maybe = *word & bit != 0;
        *word |= bit;
        !maybe || !look()
    }
}

impl Kubernetes {
    /// Answers for `ADDRESS.NAMESPACE.pod`.
    pub(super) fn pod(&self, namespace: &[u8], pod: &[u8], query: &Query, response: &mut Response) -> Outcome<'static> {
        let address = match self.pods {
            Pods::Disabled => None,
            Pods::Insecure => dashed::read(pod),
            Pods::Verified => {
                dashed::read_pod(pod).filter(|address| self.exposed.index.pod_exists(namespace, *address))
            }
        };
        let Some(address) = address.map(|address| address.to_canonical()) else { return Outcome::NoName };
        match query.qtype {
            Type::A | Type::AAAA if address.is_ipv4() == (query.qtype == Type::A) => {
                response.message.push_address(Section::Answer, Owner::Question, self.ttl, address);
            }
            Type::SRV => self.push_pod_srv(query, response, address),
            _ => return Outcome::NoData,
        }
        Outcome::Answered
    }

    /// A pod has no ports that DNS knows; CoreDNS says so by port 0.
    fn push_pod_srv(&self, query: &Query, response: &mut Response, address: IpAddr) {
        let name = query.name();
        let extra = name.labels().count() - query.zone().labels().count() - POD_LABELS;
        let Some(target) = name.ancestors().nth(extra) else { return };
        let fields = (Type::SRV, Class::IN, self.ttl);
        response.message.push(Section::Answer, Owner::Question, fields, |rdata| {
            rdata.u16(0);
            rdata.u16(weight(1));
            rdata.u16(0);
            rdata.plain_name(target);
        });
        response.message.push_address(Section::Additional, Owner::Name(target), self.ttl, address);
    }

    /// Whether a service without endpoints is hidden by `ignore empty_service`.
    fn hides(&self, service: &Service) -> bool {
        self.ignore_empty && !service.has_endpoints()
    }
}
