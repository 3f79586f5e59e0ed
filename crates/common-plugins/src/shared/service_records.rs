//! Records of Services: their addresses, their endpoints and the SRV records of both. Shared by the plugins that serve
//! Services under names of their own. The plugin maps a name to a Service, this module writes the records.

use core::net::IpAddr;

use cluster::dashed::LabelBuffer;
use cluster::{Address, Endpoint, Port, Service};
use engine::{Failure, Response, Verdict, Worker};
use wire::{Class, EdeCode, Name, NameRef, Owner, Rcode, Record, Section, Type};

use crate::shared::seen_records::{Seen, is_address};

/// Result of a lookup of a name.
pub enum NameLookup<'a> {
    /// The records are in the answer section.
    Answered,
    /// The name exists but has no records of this type.
    NoData,
    /// The name does not exist.
    NoName,
    /// The name is an alias of this one.
    Alias(&'a str),
}

impl NameLookup<'_> {
    /// Returns what a response says: records in its answer section, or none.
    pub fn of_message(response: &Response) -> NameLookup<'static> {
        if response.message.section(Section::Answer).next().is_some() || response.message.is_truncated() {
            NameLookup::Answered
        } else {
            NameLookup::NoData
        }
    }
}

/// A query for a Service and the shape of its answer.
pub struct AnswerContext<'a> {
    /// Type of the query, which selects the addresses of one family.
    pub qtype: Type,
    /// TTL of the records, in seconds.
    pub ttl: u32,
    /// Owner of the records: the query name, or the end of a CNAME chain.
    pub owner: Owner<'a>,
    /// Tree that the names of Services are in.
    pub tree: Tree<'a>,
    /// Number of targets that share the clients, if they are not those of one Service. It determines the weight of SRV
    /// records.
    pub share: Option<usize>,
    /// True if the addresses of SRV targets are added. False while the answer of another Service is still to follow.
    pub has_glue: bool,
}

/// Location of Service names: `SERVICE.NAMESPACE[.BRANCH].ZONE`.
#[derive(Clone, Copy)]
pub struct Tree<'a> {
    /// Label between the namespace and the zone: `svc`.
    pub branch: Option<&'static [u8]>,
    /// Zone of the cluster.
    pub zone: NameRef<'a>,
    /// Naming scheme.
    pub form: &'static Form,
}

/// Naming scheme: what the Kubernetes DNS specification leaves open about endpoint labels and SRV records.
pub struct Form {
    /// Returns the label of an endpoint below its Service.
    pub label: for<'b> fn(Endpoint<'b>, &'b mut LabelBuffer) -> &'b [u8],
    /// Priority of SRV records.
    pub priority: u16,
    /// Port of the SRV record of a name without a port. If `None`, such a name has one record for each of its ports.
    pub bare_port: Option<u16>,
}

/// Naming scheme of CoreDNS.
pub static PLAIN: Form = Form { label: |endpoint, buffer| endpoint.label(buffer), priority: 0, bare_port: None };

/// Name and protocol of a port. An empty text matches any.
pub type PortNames<'a> = (&'a [u8], &'a [u8]);

impl AnswerContext<'_> {
    /// Answers with addresses of the Service itself and with its own ports.
    pub fn own_addresses(
        &self,
        service: &Service,
        ips: impl Iterator<Item = IpAddr> + Clone,
        (name, protocol): PortNames<'_>,
        response: &mut Response,
    ) -> NameLookup<'static> {
        let ports = || service.ports.iter().filter(|port| port.matches(name, protocol));
        let Some(_) = ports().next() else { return NameLookup::NoName };
        if self.qtype.is_address() {
            for ip in ips.filter(|ip| self.wants(*ip)) {
                response.message.push_address(Section::Answer, self.owner, self.ttl, ip);
            }
            return NameLookup::of_message(response);
        }
        let Some(target) = self.tree.service_name(service).filter(|_| self.qtype == Type::SRV) else {
            return NameLookup::NoData;
        };
        let weight = self.weight(ports().count() * ips.clone().count());
        let mut answered = ports().enumerate().filter_map(|(at, port)| {
            let number = port.number?;
            // TCP and UDP on the same port number share one record.
            let seen = ports().take(at).any(|before| before.number == Some(number));
            (!seen).then_some(number)
        });
        let mut target_at = None;
        for number in answered.by_ref() {
            let mark = self.push_srv(response, target.as_ref(), weight, number);
            target_at = target_at.or(mark);
        }
        if let Some(target_at) = target_at.filter(|_| self.has_glue) {
            for ip in ips {
                response.message.push_address(Section::Additional, Owner::At(target_at), self.ttl, ip);
            }
        }
        NameLookup::of_message(response)
    }

    /// Appends an SRV record and returns the offset of its target in the message.
    pub fn push_srv(&self, response: &mut Response, target: NameRef<'_>, weight: u16, number: u16) -> Option<usize> {
        let fields = (Type::SRV, Class::IN, self.ttl);
        let mark = response.message.push(Section::Answer, self.owner, fields, |rdata| {
            rdata.u16(self.tree.form.priority);
            rdata.u16(weight);
            rdata.u16(number);
            rdata.plain_name(target);
        });
        mark.map(|mark| usize::from(mark.rdata) + 6)
    }

    /// Answers with endpoints and with the ports of their EndpointSlices.
    pub fn endpoints(
        &self,
        list: &EndpointList<'_>,
        ports: PortNames<'_>,
        response: &mut Response,
        worker: &mut Worker,
    ) -> NameLookup<'static> {
        let candidates: usize = list.each().map(|endpoint| matching(endpoint, ports).count()).sum();
        if candidates == 0 {
            return NameLookup::NoName;
        }
        match self.qtype {
            Type::A | Type::AAAA => self.endpoint_addresses(list, ports, response, worker),
            Type::SRV => self.endpoint_services(list, ports, self.weight(candidates), response),
            _ => return NameLookup::NoData,
        }
        NameLookup::of_message(response)
    }

    /// Appends the addresses without duplicates. If they may not all fit, it starts at a random one, so that all
    /// endpoints get their share of the clients.
    fn endpoint_addresses(
        &self,
        list: &EndpointList<'_>,
        ports: PortNames<'_>,
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
                response.message.push_address(Section::Answer, self.owner, self.ttl, ip);
            }
            if response.message.is_truncated() {
                return;
            }
        }
    }

    /// Appends an SRV record for each endpoint and port, and the addresses of the targets. An endpoint whose address is
    /// a host name gets no record: its own name would be an alias, which RFC 2782 does not allow as a target.
    fn endpoint_services(&self, list: &EndpointList<'_>, ports: PortNames<'_>, weight: u16, response: &mut Response) {
        let mut seen = Seen::new(list.each().count());
        for endpoint in list.each().filter(|endpoint| ip_of(*endpoint).is_some()) {
            let Some(target) = self.tree.endpoint_name(endpoint, list.service) else { continue };
            for number in self.numbers(endpoint, ports) {
                if seen.is_new(&(target.as_bytes(), number), || holds_srv(response, target.as_ref(), number)) {
                    self.push_srv(response, target.as_ref(), weight, number);
                }
            }
        }
        if !self.has_glue {
            return;
        }
        let mut seen = Seen::new(list.each().count());
        for endpoint in list.each().filter(|endpoint| self.numbers(*endpoint, ports).next().is_some()) {
            let Some(ip) = ip_of(endpoint) else { continue };
            let Some(target) = self.tree.endpoint_name(endpoint, list.service) else { continue };
            if seen.is_new(&(target.as_bytes(), ip), || holds_glue(response, target.as_ref(), ip)) {
                let owner = Owner::Name(target.as_ref());
                response.message.push_address(Section::Additional, owner, self.ttl, ip);
            }
            if response.message.is_truncated() {
                return;
            }
        }
    }

    /// Returns the port numbers of an endpoint that match `ports`.
    fn numbers<'e>(&self, endpoint: Endpoint<'e>, ports: PortNames<'e>) -> impl Iterator<Item = u16> + use<'e> {
        let bare = self.tree.form.bare_port.filter(|_| ports.0.is_empty() && ports.1.is_empty());
        let own = matching(endpoint, ports).filter(move |_| bare.is_none()).filter_map(|port| port.number);
        bare.into_iter().chain(own)
    }

    /// Returns the weight of one of `candidates` SRV records.
    fn weight(&self, candidates: usize) -> u16 {
        weight(self.share.unwrap_or(candidates))
    }

    /// Returns true if an address is of the family of the query.
    pub fn wants(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() == (self.qtype == Type::A)
    }
}

/// Number of addresses from which on an answer may not hold all: with a long name, about this many fit in 512 bytes.
const SHARED_OUT_FROM: usize = 16;

/// A selection of the endpoints of a Service.
pub struct EndpointList<'a> {
    /// The Service.
    pub service: &'a Service,
    /// Its endpoints that are selected.
    pub which: Which<'a>,
}

/// Selector for endpoints of a Service.
#[derive(Clone, Copy)]
pub enum Which<'a> {
    /// All endpoints.
    All,
    /// Endpoints with this label.
    Called(&'a [u8]),
    /// Endpoints with this label in this cluster.
    CalledIn(&'a [u8], &'a [u8]),
    /// Endpoints in this topology zone.
    InZone(&'a [u8]),
    /// Endpoints with this label in a naming scheme.
    Labelled(&'a [u8], &'static Form),
}

impl<'a> EndpointList<'a> {
    /// Returns the selected endpoints.
    pub fn each(&self) -> impl Iterator<Item = Endpoint<'a>> + use<'a> {
        let EndpointList { service, which } = *self;
        let label = match which {
            Which::Called(label) | Which::CalledIn(label, _) => Some(label),
            Which::All | Which::InZone(_) | Which::Labelled(..) => None,
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
            Which::Labelled(label, form) => (form.label)(*endpoint, &mut [0; 63]) == label,
        })
    }
}

/// Returns true if `labels` spell the name of a topology zone. The name may contain dots.
fn is_zone(labels: &[u8], zone: &str) -> bool {
    !zone.is_empty() && labels_of(labels).eq(zone.as_bytes().split(|byte| *byte == b'.'))
}

/// Returns the ports of an endpoint with this name and protocol, as the labels of an SRV query spell them.
pub fn matching<'a>(endpoint: Endpoint<'a>, (name, protocol): (&'a [u8], &'a [u8])) -> impl Iterator<Item = &'a Port> {
    endpoint.slice.ports.iter().filter(move |port| port.matches(name, protocol))
}

/// Returns the IP address of an endpoint, or `None` if it has a name as its address.
pub fn ip_of(endpoint: Endpoint<'_>) -> Option<IpAddr> {
    match endpoint.address() {
        Address::Ip(ip) => Some(ip),
        Address::Name(_) => None,
    }
}

impl Tree<'_> {
    /// Returns the name of a Service, or `None` if it would be too long.
    pub fn service_name(&self, service: &Service) -> Option<Name> {
        self.name_of(&[], service)
    }

    /// Returns the name of an endpoint, `ENDPOINT[.CLUSTER].` followed by the name of its Service, or `None` if it
    /// would be too long.
    pub fn endpoint_name(&self, endpoint: Endpoint<'_>, service: &Service) -> Option<Name> {
        let mut buffer: LabelBuffer = [0; 63];
        let label = (self.form.label)(endpoint, &mut buffer);
        match endpoint.slice.cluster.as_deref() {
            Some(cluster) => self.name_of(&[label, cluster.as_bytes()], service),
            None => self.name_of(&[label], service),
        }
    }

    /// Returns the name of a Service below some labels, or `None` if it would be too long.
    pub fn name_of(&self, first: &[&[u8]], service: &Service) -> Option<Name> {
        let mut name = Name::root();
        let rest = [service.name.as_bytes(), service.namespace.as_bytes()];
        for label in first.iter().chain(&rest).chain(self.branch.as_ref()) {
            name.push_label(label).ok()?;
        }
        name.append(self.zone).ok()?;
        Some(name)
    }
}

/// Completes a CNAME chain that led out of the zone with the result of the subquery.
///
/// If the target does not exist, was refused, or no plugin here serves its part of the tree, the answer holds the CNAME
/// records alone (RFC 1034 §4.3.2, step 3a). If the lookup of the target failed, the query fails (RFC 6604 §3).
pub fn end_alias(sub: &Response, response: &mut Response) -> Verdict {
    let nobody_to_ask = sub.failure().is_some_and(|failure| failure.ede == EdeCode::NOT_AUTHORITATIVE);
    if sub.rcode() == Rcode::SERVFAIL && !nobody_to_ask {
        let cause =
            sub.failure().map_or("the target of an alias cannot be resolved".into(), |failure| failure.cause.clone());
        let ede = sub.ede().unwrap_or(EdeCode::NO_REACHABLE_AUTHORITY);
        let failure = Failure::servfail(ede, cause).with_text("the target of an alias cannot be resolved");
        return Verdict::Fail(failure);
    }
    response.append_answers(sub);
    Verdict::Done
}

/// Appends the answer to a lookup of addresses to the additional section: the addresses, and the aliases that lead to
/// them unless the lookup of the other address family has already added them. Stops when the response is full, because
/// a client can do without them.
pub fn append_glue(sub: &Response, response: &mut Response) {
    for mark in sub.message.section(Section::Answer) {
        let record = sub.message.record(mark);
        if mark.rtype == Type::CNAME && holds_alias(response, &record) {
            continue;
        }
        if response.message.push_record(Section::Additional, &record).is_err() {
            return;
        }
    }
}

fn holds_alias(response: &Response, alias: &Record<'_>) -> bool {
    let Ok(owner) = alias.owner() else { return false };
    let mut added = response.message.section(Section::Additional).filter(|mark| mark.rtype == Type::CNAME);
    added.any(|mark| response.message.owner(mark).is_ok_and(|known| known.as_ref().same(owner.as_ref())))
}

/// Iterates over labels in wire format.
pub fn labels_of(labels: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = labels;
    core::iter::from_fn(move || {
        let (&length, after) = rest.split_first()?;
        let (label, after) = after.split_at_checked(usize::from(length))?;
        rest = after;
        Some(label)
    })
}

/// Returns the weight of one of `candidates` SRV records: an equal share of 100, rounded down, at least 1.
pub fn weight(candidates: usize) -> u16 {
    u16::try_from(100 / candidates.clamp(1, 100)).unwrap_or(1)
}

fn holds(response: &Response, ip: IpAddr) -> bool {
    response.message.marks().iter().any(|mark| is_address(response.message.bytes_at(mark.rdata_range()), ip))
}

fn holds_srv(response: &Response, target: NameRef<'_>, number: u16) -> bool {
    response.message.section(Section::Answer).any(|mark| {
        let rdata = response.message.bytes_at(mark.rdata_range());
        rdata.get(4..6) == Some(&number.to_be_bytes()) && rdata.get(6..) == Some(target.as_bytes())
    })
}

fn holds_glue(response: &Response, target: NameRef<'_>, ip: IpAddr) -> bool {
    let message = &response.message;
    message.section(Section::Additional).any(|mark| {
        is_address(message.bytes_at(mark.rdata_range()), ip)
            && message.owner(mark).is_ok_and(|owner| owner.as_ref().same(target))
    })
}
