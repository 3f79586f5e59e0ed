//! Records of the external zone itself: SOA and name server.

use core::net::IpAddr;

use cluster::{Service, ServiceKind};
use engine::{Query, Response};
use wire::{Class, HEADER_LEN, Owner, Section, Type};

use super::name::NAME_SERVER;
use super::{External, Showing};
use common_plugins::shared::service_records::ip_of;
use common_plugins::shared::soa_record;

/// First label of the SOA mailbox.
pub(super) const HOSTMASTER: &[u8] = b"hostmaster";

/// Names in the SOA and NS records, relative to the zone: labels in wire format.
pub(super) struct Names {
    name_server: Box<[u8]>,
    hostmaster: Box<[u8]>,
}

impl Names {
    pub(super) fn below(apex: &[u8]) -> Names {
        let join = |first: &[u8]| {
            let labels = [first, apex].into_iter().flat_map(|label| {
                core::iter::once(u8::try_from(label.len()).unwrap_or_default()).chain(label.iter().copied())
            });
            labels.collect()
        };
        Names { name_server: join(NAME_SERVER), hostmaster: join(HOSTMASTER) }
    }
}

impl External {
    /// Appends the SOA record of the query's zone, in the letter case of the query.
    pub(super) fn push_soa(&self, section: Section, query: &Query, response: &mut Response) {
        let Showing { exposed, ttl, .. } = &*self.showing;
        let fields = (*ttl, soa_record::numbers(exposed.index.serial(), *ttl));
        soa_record::push(section, (&self.names.name_server, &self.names.hostmaster), fields, query, response);
    }

    /// Appends the NS record of the zone with its addresses.
    pub(super) fn push_name_server(&self, query: &Query, response: &mut Response) {
        let zone = HEADER_LEN + query.zone_at();
        let fields = (Type::NS, Class::IN, self.showing.ttl);
        let mark = response.message.push(Section::Answer, Owner::Question, fields, |rdata| {
            rdata.labels_to(&self.names.name_server, zone);
        });
        let Some(mark) = mark else { return };
        for address in self.showing.addresses() {
            let owner = Owner::At(usize::from(mark.rdata));
            response.message.push_address(Section::Additional, owner, self.showing.ttl, address);
        }
    }

    /// Appends the addresses of the name server for a query of its name.
    pub(super) fn push_name_server_addresses(&self, query: &Query, response: &mut Response) {
        for address in self.showing.addresses() {
            if query.qtype.is_address() && address.is_ipv4() == (query.qtype == Type::A) {
                response.message.push_address(Section::Answer, Owner::Question, self.showing.ttl, address);
            }
        }
    }
}

impl Showing {
    /// Addresses at which this server is reachable from outside: those of the Services it is an endpoint of, without
    /// duplicates. If it is an endpoint of none, its own addresses.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        let (mut addresses, mut is_endpoint) = (Vec::new(), false);
        for local in self.exposed.local_addresses.iter().copied() {
            self.exposed.index.services_of_endpoint(local, |service, _| {
                is_endpoint = true;
                for address in service.external_ips().chain(self.endpoint_addresses(service)) {
                    if !addresses.contains(&address) {
                        addresses.push(address);
                    }
                }
            });
        }
        if is_endpoint { addresses } else { self.exposed.local_addresses.to_vec() }
    }

    /// Endpoints of a headless Service, if they are served.
    fn endpoint_addresses(&self, service: &Service) -> impl Iterator<Item = IpAddr> {
        let shown = self.headless && service.kind == ServiceKind::Headless;
        let endpoints = shown.then(|| service.endpoints().take(GLUE_MAX).filter_map(ip_of));
        endpoints.into_iter().flatten()
    }
}

/// Maximum number of endpoints per Service to consider: more than fit in a UDP response.
const GLUE_MAX: usize = 64;
