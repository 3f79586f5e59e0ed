//! The forward zones of a cluster as *transfer* wants them: all records at one moment, a message at a time.
//!
//! Pods are left out, which are any address or come and go too fast, and with them the endpoints of services that have a
//! cluster IP: nobody finds these by browsing.

use std::collections::HashSet;
use std::sync::Arc;

use cluster::{Service, ServiceKind};
use engine::setup::Setup;
use engine::{ZoneSnapshot, ZoneSource, ZoneSources};
use wire::{Class, MessageBuf, Name, NameRef, Owner, Section, Type};

use super::zone::{SOA_TTL_MAX, SPECIFICATION, name_servers};
use super::{LOCAL, is_hidden};
use crate::exposed::Exposed;
use crate::service_records::{Tree, ip_of, weight};
use crate::soa;

/// Offers the zones of a stanza to those above it.
pub(super) fn offer(exposed: &Arc<Exposed>, ttl: u32, ignore_empty: bool, setup: &mut Setup<'_>) {
    let mut sources = setup.below.find::<ZoneSources>().unwrap_or_default();
    sources.0.push(Arc::new(Source { exposed: Arc::clone(exposed), ttl, ignore_empty }));
    setup.below.provide(sources);
}

struct Source {
    exposed: Arc<Exposed>,
    ttl: u32,
    ignore_empty: bool,
}

impl ZoneSource for Source {
    fn zones(&self) -> Vec<Name> {
        self.exposed.zones.names().to_vec()
    }

    /// A zone of which part is not known would be taken for the whole.
    fn snapshot(&self, zone: NameRef<'_>) -> Option<Box<dyn ZoneSnapshot>> {
        let index = &self.exposed.index;
        if !index.knows(LOCAL.endpoints) || !self.exposed.zones.names().iter().any(|own| own.as_ref().same(zone)) {
            return None;
        }
        let mut services = Vec::new();
        index.for_each_service(|service| {
            let is_shown = self.exposed.shows(service.namespace.as_bytes()) && !is_hidden(self.ignore_empty, service);
            services.extend(is_shown.then(|| service.clone()));
        });
        services.sort_unstable_by(|one, other| (&one.name, &one.namespace).cmp(&(&other.name, &other.namespace)));
        let mut records = Records { zone, ttl: self.ttl, seen: HashSet::new(), list: Vec::new() };
        records.add_zone(&self.exposed);
        services.iter().for_each(|service| records.add_service(service));
        let (ttl, soa) = (self.ttl.min(SOA_TTL_MAX), soa_data(zone, index.serial(), self.ttl)?);
        Some(Box::new(Snapshot { ttl, soa, records: records.list, written: 0 }))
    }
}

fn soa_data(zone: NameRef<'_>, serial: u32, ttl: u32) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    for labels in [&[&b"ns"[..], b"dns"][..], &[b"hostmaster"]] {
        data.extend_from_slice(below(zone, labels)?.octets());
    }
    soa::numbers(serial, ttl).iter().for_each(|number| data.extend_from_slice(&number.to_be_bytes()));
    Some(data)
}

fn below(zone: NameRef<'_>, labels: &[&[u8]]) -> Option<Name> {
    let mut name = Name::root();
    labels.iter().try_for_each(|label| name.push_label(label)).ok()?;
    name.append(zone).ok()?;
    Some(name)
}

struct Record {
    owner: Name,
    rtype: Type,
    ttl: u32,
    data: Vec<u8>,
}

/// The records of a zone, each once.
struct Records<'a> {
    zone: NameRef<'a>,
    ttl: u32,
    seen: HashSet<(Vec<u8>, u16, Vec<u8>)>,
    list: Vec<Record>,
}

impl Records<'_> {
    fn add(&mut self, owner: &Name, rtype: Type, data: Vec<u8>) {
        if self.seen.insert((owner.octets().to_vec(), rtype.0, data.clone())) {
            self.list.push(Record { owner: owner.clone(), rtype, ttl: self.ttl, data });
        }
    }

    fn add_address(&mut self, owner: &Name, ip: std::net::IpAddr) {
        match ip {
            std::net::IpAddr::V4(v4) => self.add(owner, Type::A, v4.octets().to_vec()),
            std::net::IpAddr::V6(v6) => self.add(owner, Type::AAAA, v6.octets().to_vec()),
        }
    }

    fn add_srv(&mut self, owner: &Name, weight: u16, port: u16, target: &Name) {
        let fixed = [0, weight, port].map(u16::to_be_bytes).concat();
        self.add(owner, Type::SRV, [&fixed[..], target.octets()].concat());
    }

    /// The name servers of the zone, and the version of the specification.
    fn add_zone(&mut self, exposed: &Exposed) {
        let servers = name_servers(exposed, self.zone);
        let apex = self.zone.to_name();
        servers.iter().for_each(|(name, _)| self.add(&apex, Type::NS, name.octets().to_vec()));
        servers.iter().for_each(|(name, ip)| self.add_address(name, *ip));
        let (version, ttl) = SPECIFICATION;
        if let Some(owner) = below(self.zone, &[b"dns-version"]) {
            let length = u8::try_from(version.len()).unwrap_or(u8::MAX);
            self.list.push(Record { owner, rtype: Type::TXT, ttl, data: [&[length][..], version].concat() });
        }
    }

    fn add_service(&mut self, service: &Service) {
        let tree = Tree { branch: Some(b"svc"), zone: self.zone };
        let Some(name) = tree.service_name(service) else { return };
        match &service.kind {
            ServiceKind::ClusterIp(ips) => {
                ips.iter().for_each(|ip| self.add_address(&name, *ip));
                for port in service.ports.iter() {
                    let Some(number) = port.number else { continue };
                    self.add_srv(&name, weight(1), number, &name);
                    if let Some(owner) = port_name(&name, port) {
                        self.add_srv(&owner, weight(1), number, &name);
                    }
                }
            }
            ServiceKind::Headless => self.add_endpoints(&tree, &name, service),
            ServiceKind::ExternalName(target) => {
                let is_address = target.parse::<std::net::IpAddr>().is_ok();
                if let Some(target) = Name::from_text(target).ok().filter(|_| !is_address) {
                    self.add(&name, Type::CNAME, target.octets().to_vec());
                }
            }
            ServiceKind::Undeclared => {}
        }
    }

    fn add_endpoints(&mut self, tree: &Tree<'_>, name: &Name, service: &Service) {
        for slice in &service.slices {
            let named = |endpoint| Some((ip_of(endpoint)?, tree.endpoint_name(endpoint, service)?));
            let endpoints: Vec<_> = slice.endpoints().filter_map(named).collect();
            for (ip, target) in &endpoints {
                self.add_address(name, *ip);
                self.add_address(target, *ip);
            }
            for port in slice.ports.iter() {
                let (Some(owner), Some(number)) = (port_name(name, port), port.number) else { continue };
                let weight = weight(candidates(service, port));
                endpoints.iter().for_each(|(_, target)| self.add_srv(&owner, weight, number, target));
            }
        }
    }
}

/// How many endpoints share the clients of a port, as when somebody asks for it.
fn candidates(service: &Service, port: &cluster::Port) -> usize {
    let matching = |slice: &cluster::Slice| {
        slice.ports.iter().filter(|own| own.matches(port.name.as_bytes(), port.protocol.as_bytes())).count()
    };
    service.slices.iter().map(|slice| slice.len() * matching(slice)).sum()
}

/// `_PORT._PROTOCOL.SERVICE…`, of a port that has a name.
fn port_name(service: &Name, port: &cluster::Port) -> Option<Name> {
    if port.name.is_empty() || port.protocol.is_empty() {
        return None;
    }
    let labels = [&port.name, &port.protocol].map(|text| format!("_{}", text.to_ascii_lowercase()));
    below(service.as_ref(), &[labels[0].as_bytes(), labels[1].as_bytes()])
}

/// A zone of which a part has been written.
struct Snapshot {
    ttl: u32,
    soa: Vec<u8>,
    records: Vec<Record>,
    written: usize,
}

impl ZoneSnapshot for Snapshot {
    fn soa(&self) -> (u32, &[u8]) {
        (self.ttl, &self.soa)
    }

    fn len(&self) -> usize {
        self.records.len() + 1
    }

    fn write(&mut self, message: &mut MessageBuf) -> bool {
        for record in self.records.iter().skip(self.written) {
            let (owner, fixed) = (Owner::Name(record.owner.as_ref()), (record.rtype, Class::IN, record.ttl));
            if message.push_data(Section::Answer, owner, fixed, &record.data).is_none() {
                return false;
            }
            self.written += 1;
        }
        true
    }
}
