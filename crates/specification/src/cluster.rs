//! Model of the DNS of a Kubernetes cluster: the Kubernetes DNS specification 1.1.0 (KDNS), and `pod` names of its
//! version 1.0.1.
//!
//! The specification says which records exist. So the model writes these into zones, and the model of a zone answers.
//! KDNS §3 lets a server have further records. Those that are in use are permitted and not required; there is no other.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::answer::{Answer, Authority, Rcode};
use crate::branch::Branch;
use crate::record::{Data, Question, Record, Type, is_within};
use crate::zone::{self, Zone};

/// Zone of the cluster.
pub const ZONE: &str = "cluster.local.";
/// Zones of addresses.
const REVERSE: [&str; 2] = ["in-addr.arpa.", "ip6.arpa."];
/// Version of the schema (KDNS §2.2).
const VERSION: &str = "1.1.0";

/// Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Names of the namespaces.
    pub namespaces: Vec<String>,
    /// Services.
    pub services: Vec<Service>,
}

/// Service with its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: Kind,
    /// Ports.
    pub ports: Vec<Port>,
    /// Endpoints. One with two addresses is listed twice, as in EndpointSlices.
    pub endpoints: Vec<Endpoint>,
}

/// Kind of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Service with these cluster IPs.
    ClusterIp(Vec<IpAddr>),
    /// Service without a cluster IP.
    Headless,
    /// Alias of a name, without a dot at its end.
    ExternalName(String),
}

/// Port of a Service, which is also that of its endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name; empty without one.
    pub name: &'static str,
    /// Protocol in lower case.
    pub protocol: &'static str,
    /// Number.
    pub number: u16,
}

/// Endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address.
    pub address: IpAddr,
    /// Host name of the object.
    pub hostname: Option<&'static str>,
    /// State.
    pub state: State,
}

/// State of an endpoint: the conditions of an EndpointSlice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// `ready` is true.
    Ready,
    /// No condition is known, which the API takes for ready.
    Unknown,
    /// `ready` and `serving` are false.
    NotReady,
    /// `terminating` and `serving` are true, `ready` is false.
    Terminating,
}

/// Records of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Records that must exist, each with its branch.
    required: Vec<(Record, Branch)>,
    /// The same records in their zones.
    zones: [Zone; 3],
    /// Records that may exist.
    permitted: Vec<Record>,
    /// Names that may exist without records.
    names: Vec<String>,
    /// Branches that lead to no record.
    pub absent: Vec<Branch>,
}

/// Returns the expected answer to a question, and the branches that lead to it.
#[must_use]
pub fn answer(cluster: &Cluster, question: &Question) -> (Answer, Vec<Branch>) {
    records(cluster).answer(cluster, question)
}

/// Returns the records that a cluster must and may have.
#[must_use]
pub fn records(cluster: &Cluster) -> Records {
    let mut records = Records::default();
    let version = Record::new(format!("dns-version.{ZONE}"), Data::Txt(VERSION.to_owned()));
    records.required.push((version, Branch::SchemaVersion));
    for namespace in &cluster.namespaces {
        // A namespace has no record of its own.
        records.names.extend(["svc", "pod"].map(|kind| format!("{namespace}.{kind}.{ZONE}")));
    }
    for service in &cluster.services {
        let name = format!("{}.{}.svc.{ZONE}", service.name, service.namespace);
        match &service.kind {
            Kind::ClusterIp(addresses) => records.add_service(service, &name, addresses),
            Kind::Headless => records.add_headless(service, &name),
            Kind::ExternalName(target) => {
                records.require(&name, Data::Cname(format!("{target}.")), Branch::ExternalName);
            }
        }
    }
    records.zones = [ZONE, REVERSE[0], REVERSE[1]].map(|origin| records.zone(origin));
    records
}

impl Records {
    fn zone(&self, origin: &str) -> Zone {
        let apex = [Data::Soa, Data::Ns("ns.invalid.".to_owned())].map(|data| Record::new(origin, data));
        let own = self.required.iter().map(|(record, _)| record).filter(|record| is_within(&record.owner, origin));
        Zone { origin: origin.to_owned(), records: own.cloned().chain(apex).collect() }
    }

    fn require(&mut self, owner: &str, data: Data, branch: Branch) {
        self.required.push((Record::new(owner, data), branch));
    }

    fn permit(&mut self, owner: &str, data: Data) {
        self.permitted.push(Record::new(owner, data));
    }

    /// KDNS §2.3: a Service with cluster IPs.
    fn add_service(&mut self, service: &Service, name: &str, addresses: &[IpAddr]) {
        for address in addresses {
            let is_v4 = address.is_ipv4();
            self.require(name, address_data(*address), if is_v4 { Branch::ServiceA } else { Branch::ServiceAaaa });
            let reverse = if is_v4 { Branch::ServicePtr } else { Branch::ServicePtr6 };
            self.require(&reverse_name(*address), Data::Ptr(name.to_owned()), reverse);
        }
        for port in &service.ports {
            let data = Data::Srv(port.number, name.to_owned());
            self.permit(name, data.clone());
            if port.name.is_empty() {
                self.absent.push(Branch::ServiceUnnamedPort);
                continue;
            }
            let owner = port_name(*port, name);
            self.require(&owner, data, Branch::ServiceSrv);
            addresses.iter().for_each(|address| self.permit(&owner, address_data(*address)));
        }
        // KDNS has no names for the endpoints of such a Service.
        for endpoint in service.endpoints.iter().filter(|endpoint| endpoint.is_ready()) {
            let owner = format!("{}.{name}", endpoint.hostname());
            self.permit(&owner, address_data(endpoint.address));
            self.permit(&reverse_name(endpoint.address), Data::Ptr(owner.clone()));
            service.ports.iter().for_each(|port| self.permit(&owner, Data::Srv(port.number, owner.clone())));
        }
    }

    /// KDNS §2.4: a headless Service.
    fn add_headless(&mut self, service: &Service, name: &str) {
        for endpoint in &service.endpoints {
            if endpoint.is_ready() {
                self.add_endpoint(service, name, *endpoint);
            } else {
                self.absent.push(Branch::HeadlessNotReady);
            }
        }
        if !service.endpoints.iter().any(Endpoint::is_ready) {
            self.absent.push(Branch::HeadlessNoneReady);
        }
    }

    fn add_endpoint(&mut self, service: &Service, name: &str, endpoint: Endpoint) {
        let owner = format!("{}.{name}", endpoint.hostname());
        let (is_v4, data) = (endpoint.address.is_ipv4(), address_data(endpoint.address));
        self.require(name, data.clone(), if is_v4 { Branch::HeadlessA } else { Branch::HeadlessAaaa });
        let is_given = endpoint.hostname.is_some();
        self.require(&owner, data.clone(), if is_given { Branch::HostnameGiven } else { Branch::HostnameAssigned });
        let reverse = if is_v4 { Branch::EndpointPtr } else { Branch::EndpointPtr6 };
        self.require(&reverse_name(endpoint.address), Data::Ptr(owner.clone()), reverse);
        for port in &service.ports {
            let location = Data::Srv(port.number, owner.clone());
            self.permit(name, location.clone());
            self.permit(&owner, location.clone());
            if port.name.is_empty() {
                self.absent.push(Branch::HeadlessUnnamedPort);
            } else {
                self.require(&port_name(*port, name), location, Branch::HeadlessSrv);
                self.permit(&port_name(*port, name), data.clone());
            }
        }
    }

    /// Answers a question from the zone that contains its name.
    #[must_use]
    pub fn answer(&self, cluster: &Cluster, question: &Question) -> (Answer, Vec<Branch>) {
        let name = question.name.to_ascii_lowercase();
        let zone = self.zones.iter().find(|zone| is_within(&name, &zone.origin)).unwrap_or(&self.zones[0]);
        let mut zone = Cow::Borrowed(zone);
        let pod = pod(cluster, &name);
        if let Some(record) = &pod {
            zone.to_mut().records.push(record.clone());
        }
        let (mut answer, mut branches) = zone::answer(&zone, question);
        let is_used = |record: &Record| answer.required.contains(record) || answer.permitted.contains(record);
        let used = self.required.iter().filter(|(record, _)| is_used(record)).map(|(_, branch)| *branch);
        branches.extend(used.chain(pod.filter(is_used).map(|_| Branch::PodName)));
        if name != question.name {
            branches.push(Branch::OtherCase);
        }
        if name == zone.origin && question.qtype == Type::Ns {
            // KDNS does not name the servers.
            (answer.required, answer.is_some, answer.is_open) = (Vec::new(), true, true);
        }
        let last = last_name(&name, question.qtype, &answer);
        branches.extend(self.permit_more(&last, question.qtype, &mut answer));
        branches.sort_unstable();
        branches.dedup();
        (answer, branches)
    }

    /// Permits the further records and names of KDNS §3.
    fn permit_more(&self, name: &str, qtype: Type, answer: &mut Answer) -> Option<Branch> {
        let is_asked = |record: &&Record| record.owner == name && (qtype == Type::Any || record.data.rtype() == qtype);
        let more: Vec<Record> = self.permitted.iter().filter(is_asked).cloned().collect();
        let is_below = |owner: &str| is_within(owner, name);
        let may_exist = self.permitted.iter().map(|record| record.owner.as_str()).any(is_below)
            || self.names.iter().any(|owner| is_below(owner));
        let is_denied = answer.rcodes == [Rcode::NxDomain] && may_exist;
        if is_denied {
            answer.allow(Rcode::NoError);
        }
        if !more.is_empty() {
            answer.permitted.extend(more);
            answer.authority = Authority::Open;
            return Some(Branch::ExtraRecord);
        }
        is_denied.then_some(Branch::ExtraName)
    }
}

impl Endpoint {
    /// Returns true for a ready endpoint (KDNS §2.1). A condition that is not known counts as ready (EndpointSlice
    /// API).
    fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready | State::Unknown)
    }

    /// Returns the host name (KDNS §2.1). The form of an assigned one is not specified; this is that of CoreDNS, the
    /// address with dashes.
    fn hostname(&self) -> String {
        self.hostname.map_or_else(|| dashed(self.address), str::to_owned)
    }
}

/// Returns the name whose records answer a question: the end of the chain of aliases, which RFC 1034 §4.3.2 step 3a
/// looks up as QNAME. A question for CNAME follows none.
fn last_name(name: &str, qtype: Type, answer: &Answer) -> String {
    let aliases = answer.required.iter().filter(|_| qtype != Type::Cname);
    let mut last = name;
    // A chain has at most one alias for each record of the answer. So does the search in a loop.
    for _ in &answer.required {
        let alias = aliases.clone().find_map(|record| match &record.data {
            Data::Cname(target) if record.owner == last => Some(target.as_str()),
            _ => None,
        });
        last = alias.unwrap_or(last);
    }
    last.to_owned()
}

/// Returns an address as a label: with dashes for dots and colons.
#[must_use]
pub fn dashed(address: IpAddr) -> String {
    address.to_string().replace(['.', ':'], "-")
}

fn port_name(port: Port, service: &str) -> String {
    format!("_{}._{}.{service}", port.name, port.protocol)
}

fn address_data(address: IpAddr) -> Data {
    match address {
        IpAddr::V4(address) => Data::A(address),
        IpAddr::V6(address) => Data::Aaaa(address),
    }
}

/// Returns the name of an address in the reverse zones (RFC 1035 §3.5, RFC 3596 §2.5).
#[must_use]
pub fn reverse_name(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa.")
        }
        IpAddr::V6(address) => {
            let nibbles = address.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            let labels: String = nibbles.map(|nibble| format!("{nibble:x}.")).collect();
            format!("{labels}ip6.arpa.")
        }
    }
}

/// Returns the record of a `pod` name: `1-2-3-4.NAMESPACE.pod.ZONE` for each address and namespace (KDNS 1.0.1 §2.6).
/// For IPv6 addresses servers do the same.
fn pod(cluster: &Cluster, name: &str) -> Option<Record> {
    let above = name.strip_suffix(ZONE)?.strip_suffix(".pod.")?;
    let (label, namespace) = above.split_once('.')?;
    cluster.namespaces.iter().find(|known| *known == namespace)?;
    let v4 = || label.replace('-', ".").parse::<Ipv4Addr>().ok().map(Data::A);
    let v6 = || label.replace('-', ":").parse::<Ipv6Addr>().ok().map(Data::Aaaa);
    Some(Record::new(name, v4().or_else(v6)?))
}
