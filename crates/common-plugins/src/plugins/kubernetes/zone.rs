//! Records of the zone itself: SOA, name servers and version of the specification.

use core::net::IpAddr;

use engine::{Query, Response};
use wire::{Class, Name, NameRef, Owner, Section, Type};

use super::Kubernetes;
use crate::shared::cluster_view::Exposed;
use crate::shared::soa_record;

/// Version of the specification, and the TTL of its record (Kubernetes DNS specification 1.1.0, §2.2).
pub(super) const SPECIFICATION: (&[u8], u32) = (b"1.1.0", 28_800);
/// Maximum TTL of the SOA record, whatever the TTL of other records.
pub(super) const SOA_TTL_MAX: u32 = 300;

impl Kubernetes {
    /// Appends the SOA record of the query's zone, in the letter case of the query.
    pub(super) fn push_soa(&self, section: Section, query: &Query, response: &mut Response) {
        let serial = self.views.get(query.zone_index()).map_or(0, |view| view.index.serial());
        let fields = match self.is_like_kube_dns {
            false => (self.ttl.min(SOA_TTL_MAX), soa_record::numbers(serial, self.ttl)),
            true => soa_record::fields_of_kube_dns(section, serial),
        };
        soa_record::push(section, soa_record::NAMES, fields, query, response);
    }

    /// Appends the version of the specification.
    pub(super) fn push_version(owner: Owner<'_>, response: &mut Response) {
        let (version, ttl) = SPECIFICATION;
        response.message.push(Section::Answer, owner, (Type::TXT, Class::IN, ttl), |rdata| {
            rdata.character_string(version);
        });
    }

    /// Appends the name servers of the zone with their addresses.
    pub(super) fn push_name_servers(&self, query: &Query, owner: Owner<'_>, response: &mut Response) {
        let servers = name_servers(&self.exposed, query.zone());
        let mut known: Vec<&Name> = Vec::new();
        for (name, _) in &servers {
            if !known.contains(&name) {
                known.push(name);
                response.message.push_name(Section::Answer, owner, (Type::NS, self.ttl), name.as_ref());
            }
        }
        for (name, address) in &servers {
            response.message.push_address(Section::Additional, Owner::Name(name.as_ref()), self.ttl, *address);
        }
    }

    /// Appends the addresses of the name servers for a query of `ns.dns`.
    pub(super) fn push_name_server_addresses(&self, query: &Query, owner: Owner<'_>, response: &mut Response) {
        for (_, address) in name_servers(&self.exposed, query.zone()) {
            if address.is_ipv4() == (query.qtype == Type::A) && query.qtype.is_address() {
                response.message.push_address(Section::Answer, owner, self.ttl, address);
            }
        }
    }
}

/// Services that this server is an endpoint of, as pairs of name and address without duplicates. If there are none, its
/// own addresses under the name `ns.dns`.
pub(super) fn name_servers(exposed: &Exposed, zone: NameRef<'_>) -> Vec<(Name, IpAddr)> {
    let tree = Kubernetes::tree(zone);
    let mut servers: Vec<(Name, IpAddr)> = Vec::new();
    let mut add = |name: Option<Name>, address: IpAddr| {
        let server = name.map(|name| (name, address));
        servers.extend(server.filter(|server| !servers.contains(server)));
    };
    for local in exposed.local_addresses.iter().copied() {
        exposed.index.services_of_endpoint(local, |service, _| {
            let name = tree.service_name(service);
            for ip in service.cluster_ips() {
                add(name.clone(), *ip);
            }
            if service.kind == cluster::ServiceKind::Headless {
                for endpoint in service.slices.iter().flat_map(|slice| slice.endpoints()) {
                    let name = tree.endpoint_name(endpoint, service);
                    if let cluster::Address::Ip(ip) = endpoint.address() {
                        add(name, ip);
                    }
                }
            }
        });
    }
    if servers.is_empty() {
        let mut name = Name::root();
        let built = [&b"ns"[..], b"dns"].iter().try_for_each(|label| name.push_label(label));
        if built.and_then(|()| name.append(zone)).is_ok() {
            servers.extend(exposed.local_addresses.iter().map(|address| (name.clone(), *address)));
        }
    }
    servers
}
