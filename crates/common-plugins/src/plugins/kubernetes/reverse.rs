//! PTR records for cluster IPs and endpoints.

use cluster::{Endpoint, Service, ServiceKind};
use engine::{Query, Response};
use wire::{Name, Owner, Section, Type, address_of, is_above_addresses};

use super::name::{Grammar, Target};
use super::{Kubernetes, LOCAL, LookupResult};

impl Kubernetes {
    /// Answers a query in a reverse zone.
    pub(super) fn find_reverse(&self, query: &Query, response: &mut Response) -> LookupResult {
        match Target::read(&query.key().as_bytes()[..query.zone_at()], Grammar::Cluster) {
            Target::Apex => return self.find_apex(query, Owner::Question, response),
            Target::NameServer => self.push_name_server_addresses(query, Owner::Question, response),
            Target::Version if query.qtype == Type::TXT => Kubernetes::push_version(Owner::Question, response),
            Target::Version | Target::Branch => {}
            _ => return self.find_address(query, response),
        }
        LookupResult::of_message(response)
    }

    /// Answers with the Service that has the address as cluster IP, or else with the Services that have it as an
    /// endpoint: with the headless ones that know its hostname, if any, because the others would give it another name.
    fn find_address(&self, query: &Query, response: &mut Response) -> LookupResult {
        let Some(address) = address_of(query.key()) else {
            return if is_above_addresses(query.key()) { LookupResult::Above } else { LookupResult::NoName };
        };
        let tree = Kubernetes::tree(self.primary.as_ref());
        let mut exists = false;
        let shows = |service: &Service| self.exposed.shows(service.namespace.as_bytes());
        let mut add = |name: Option<Name>, service: &Service| {
            let name = name.filter(|_| shows(service))?;
            exists = true;
            if query.qtype == Type::PTR {
                self.push_ptr_once(response, &name);
            }
            Some(())
        };
        // kube-dns had one name for each address. Of several, it is the first one in order, not the latest.
        let mut only: Option<Name> = None;
        // A Service that is not shown does not hide another one.
        let of_service =
            self.exposed.index.service_of_cluster_ip(address, |service| add(tree.service_name(service), service));
        if of_service.is_none() {
            // kube-dns passed all other addresses to upstreams, which may know the host.
            let mut only_called = self.is_like_kube_dns;
            self.exposed.index.services_of_endpoint(address, |service, endpoint| {
                only_called |= shows(service) && is_called(service, endpoint);
            });
            self.exposed.index.services_of_endpoint(address, |service, endpoint| {
                if only_called && !is_called(service, endpoint) {
                    return;
                }
                if self.is_like_kube_dns {
                    let name = tree.endpoint_name(endpoint, service).filter(|_| shows(service));
                    only =
                        only.take().into_iter().chain(name).min_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
                    return;
                }
                add(tree.endpoint_name(endpoint, service), service);
            });
        }
        if let Some(name) = &only
            && query.qtype == Type::PTR
        {
            self.push_ptr_once(response, name);
        }
        if exists || only.is_some() { LookupResult::of_message(response) } else { self.absent(LOCAL.endpoints) }
    }

    fn push_ptr_once(&self, response: &mut Response, name: &Name) {
        let known = |mark| response.message.name_in(mark, 0).is_ok_and(|known| known == *name);
        if !response.message.section(Section::Answer).any(known) {
            response.message.push_name(Section::Answer, Owner::Question, (Type::PTR, self.ttl), name.as_ref());
        }
    }
}

/// Returns true if the endpoint has a hostname and its Service is headless. Only then the Kubernetes DNS specification
/// has a PTR record (§2.4.3), and kube-dns had one.
fn is_called(service: &Service, endpoint: Endpoint<'_>) -> bool {
    endpoint.own_label().is_some() && matches!(service.kind, ServiceKind::Headless)
}
