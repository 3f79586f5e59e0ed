//! Records of Services for zone transfers: a consistent copy of the zone, without duplicates, written message by
//! message.
//!
//! Shared by the plugins that serve Services under names of their own. The plugin chooses the Services.

use std::collections::HashSet;
use std::net::IpAddr;

use cluster::{Port, Service, Slice};
use engine::ZoneSnapshot;
use wire::{Class, MessageBuf, Name, NameRef, Owner, Section, Type};

use crate::shared::service_records::{Tree, ip_of, weight};

/// All records of a zone except its SOA record.
pub struct ZoneRecords {
    ttl: u32,
    seen: HashSet<(Vec<u8>, u16, Vec<u8>)>,
    list: Vec<Record>,
}

struct Record {
    owner: Name,
    rtype: Type,
    ttl: u32,
    data: Vec<u8>,
}

impl ZoneRecords {
    /// Creates an empty list. Its records get this TTL unless they specify another.
    pub fn new(ttl: u32) -> ZoneRecords {
        ZoneRecords { ttl, seen: HashSet::new(), list: Vec::new() }
    }

    /// Adds a record unless it is already listed. Names in `data` are uncompressed.
    pub fn add(&mut self, owner: &Name, rtype: Type, data: Vec<u8>) {
        self.add_with_ttl(owner, (rtype, self.ttl), data);
    }

    /// Adds a record with its own TTL, in seconds.
    pub fn add_with_ttl(&mut self, owner: &Name, (rtype, ttl): (Type, u32), data: Vec<u8>) {
        if self.seen.insert((owner.as_bytes().to_vec(), rtype.0, data.clone())) {
            self.list.push(Record { owner: owner.clone(), rtype, ttl, data });
        }
    }

    /// Adds an A or AAAA record.
    pub fn add_address(&mut self, owner: &Name, ip: IpAddr) {
        match ip {
            IpAddr::V4(v4) => self.add(owner, Type::A, v4.octets().to_vec()),
            IpAddr::V6(v6) => self.add(owner, Type::AAAA, v6.octets().to_vec()),
        }
    }

    fn add_srv(&mut self, owner: &Name, weight: u16, port: u16, target: &Name) {
        let fixed = [0, weight, port].map(u16::to_be_bytes).concat();
        self.add(owner, Type::SRV, [&fixed[..], target.as_bytes()].concat());
    }

    /// Adds the addresses of a Service itself and the SRV records of its ports.
    pub fn add_own(&mut self, name: &Name, service: &Service, ips: impl Iterator<Item = IpAddr>) {
        ips.for_each(|ip| self.add_address(name, ip));
        for port in service.ports.iter() {
            let Some(number) = port.number else { continue };
            self.add_srv(name, weight(1), number, name);
            if let Some(owner) = port_name(name, port) {
                self.add_srv(&owner, weight(1), number, name);
            }
        }
    }

    /// Adds a CNAME record and the SRV records of the named ports. A name with a CNAME has no other records (RFC 1034
    /// §3.6.2). A target that is an IP address is ignored.
    pub fn add_alias(&mut self, name: &Name, target: &str, ports: &[Port]) {
        let is_address = target.parse::<IpAddr>().is_ok();
        let Some(target) = Name::from_text(target).ok().filter(|_| !is_address) else { return };
        self.add(name, Type::CNAME, target.as_bytes().to_vec());
        for port in ports {
            if let (Some(owner), Some(number)) = (port_name(name, port), port.number) {
                self.add_srv(&owner, weight(1), number, &target);
            }
        }
    }

    /// Adds the endpoints of a Service and the SRV records of their ports.
    pub fn add_endpoints(&mut self, tree: &Tree<'_>, name: &Name, service: &Service) {
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

    /// Returns all records as a zone with an SOA record of this TTL and data.
    pub fn under(self, soa: (u32, Vec<u8>)) -> Box<dyn ZoneSnapshot> {
        Box::new(Snapshot { soa, records: self.list, written: 0 })
    }
}

/// Returns the Services that `is_shown` selects, sorted by name and namespace.
pub fn sorted_services(index: &cluster::Index, is_shown: impl Fn(&Service) -> bool) -> Vec<Service> {
    let mut services = Vec::new();
    index.for_each_service(|service| services.extend(is_shown(service).then(|| service.clone())));
    services.sort_unstable_by(|one, other| (&one.name, &one.namespace).cmp(&(&other.name, &other.namespace)));
    services
}

/// Returns `labels` in front of a zone, or `None` if the name would be too long.
pub fn below(zone: NameRef<'_>, labels: &[&[u8]]) -> Option<Name> {
    let mut name = Name::root();
    labels.iter().try_for_each(|label| name.push_label(label)).ok()?;
    name.append(zone).ok()?;
    Some(name)
}

/// Returns the data of an SOA record.
pub fn soa_data(name_server: &Name, mailbox: &Name, numbers: [u32; 5]) -> Vec<u8> {
    let mut data = [name_server.as_bytes(), mailbox.as_bytes()].concat();
    numbers.iter().for_each(|number| data.extend_from_slice(&number.to_be_bytes()));
    data
}

/// Returns the number of endpoints that share the clients of a port, as in a query for it.
fn candidates(service: &Service, port: &Port) -> usize {
    let matching = |slice: &Slice| {
        slice.ports.iter().filter(|own| own.matches(port.name.as_bytes(), port.protocol.as_bytes())).count()
    };
    service.slices.iter().map(|slice| slice.len() * matching(slice)).sum()
}

/// Returns `_PORT._PROTOCOL.SERVICE…`, if the port has a name.
fn port_name(service: &Name, port: &Port) -> Option<Name> {
    if port.name.is_empty() || port.protocol.is_empty() {
        return None;
    }
    let labels = [&port.name, &port.protocol].map(|text| format!("_{}", text.to_ascii_lowercase()));
    below(service.as_ref(), &[labels[0].as_bytes(), labels[1].as_bytes()])
}

/// A zone that has been partly written.
struct Snapshot {
    soa: (u32, Vec<u8>),
    records: Vec<Record>,
    written: usize,
}

impl ZoneSnapshot for Snapshot {
    fn soa(&self) -> (u32, &[u8]) {
        (self.soa.0, &self.soa.1)
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
