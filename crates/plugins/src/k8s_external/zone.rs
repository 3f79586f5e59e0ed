//! What belongs to an external zone as such: its SOA and its name server.

use core::net::IpAddr;

use cluster::{Service, ServiceKind};
use engine::{Query, Response};
use wire::{Class, HEADER_LEN, Owner, Section, Type};

use super::External;
use super::name::NAME_SERVER;
use crate::service_records::ip_of;
use crate::soa;

/// The mailbox of whoever runs the zone.
const HOSTMASTER: &[u8] = b"hostmaster";

/// The names below a zone that its SOA and NS records speak of: labels in wire form.
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
    /// Appends the SOA of the zone that was asked in, in the case of the question.
    pub(super) fn push_soa(&self, section: Section, query: &Query, response: &mut Response) {
        let times = (self.ttl, soa::numbers(self.exposed.index.serial(), self.ttl));
        soa::push(section, (&self.names.name_server, &self.names.hostmaster), times, query, response);
    }

    /// Appends the name server of the zone with its addresses.
    pub(super) fn push_name_server(&self, query: &Query, response: &mut Response) {
        let zone = HEADER_LEN + query.zone_at();
        let fields = (Type::NS, Class::IN, self.ttl);
        let mark = response.message.push(Section::Answer, Owner::Question, fields, |rdata| {
            rdata.labels_to(&self.names.name_server, zone);
        });
        let Some(mark) = mark else { return };
        for address in self.addresses() {
            let owner = Owner::At(usize::from(mark.rdata));
            response.message.push_address(Section::Additional, owner, self.ttl, address);
        }
    }

    /// Appends the addresses of the name server as those of the name asked.
    pub(super) fn push_name_server_addresses(&self, query: &Query, response: &mut Response) {
        for address in self.addresses() {
            if query.qtype.is_address() && address.is_ipv4() == (query.qtype == Type::A) {
                response.message.push_address(Section::Answer, Owner::Question, self.ttl, address);
            }
        }
    }

    /// The addresses at which this server is reached from outside: those of the services that it is an endpoint of, each
    /// once; its own where it is in no cluster.
    fn addresses(&self) -> Vec<IpAddr> {
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

    /// The endpoints of a headless service, if they are shown.
    fn endpoint_addresses(&self, service: &Service) -> impl Iterator<Item = IpAddr> {
        let shown = self.headless && service.kind == ServiceKind::Headless;
        let endpoints = shown.then(|| service.endpoints().take(GLUE_MAX).filter_map(ip_of));
        endpoints.into_iter().flatten()
    }
}

/// Addresses of endpoints that are looked at for one service: more than an answer could hold over UDP.
const GLUE_MAX: usize = 64;
