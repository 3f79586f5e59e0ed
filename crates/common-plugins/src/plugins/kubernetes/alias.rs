//! ExternalName Services: CNAME records and the records of their targets, inside and outside of the zone.

use core::net::IpAddr;

use cluster::ServiceKind;
use engine::{Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use wire::{Name, Owner, Section, Type};

use super::name::Target;
use super::{Kubernetes, LookupResult, View};
use crate::shared::service_records::NameLookup;

/// Maximum number of CNAME records in a chain within the zone, as in CoreDNS.
const HOPS_MAX: usize = 11;

impl Kubernetes {
    /// Follows an alias from the query name. If the chain ends without records, the answer has no CNAME records either.
    pub(super) fn follow_alias(
        &self,
        view: &View,
        query: &mut Query,
        target: &Name,
        response: &mut Response,
        worker: &mut Worker,
    ) -> LookupResult {
        let zone = query.zone().to_name();
        let (mut owner, mut target) = (query.name().to_name(), target.clone());
        if query.qtype == Type::CNAME {
            self.push_alias(response, &owner, &target);
            return LookupResult::Answered;
        }
        if query.qtype == Type::SRV {
            self.push_alias_service(view, query, &target, response);
            return LookupResult::Answered;
        }
        for _ in 0..HOPS_MAX {
            if target.as_ref().is_within(owner.as_ref()) || self.visited(response, &target) {
                break;
            }
            self.push_alias(response, &owner, &target);
            let Some(prefix) = target.as_ref().prefix_len(zone.as_ref()) else {
                let ask = Subquery { name: target, qtype: query.qtype, target: SubqueryTarget::Top };
                return LookupResult::Elsewhere(Verdict::Subquery(Box::new(ask)));
            };
            match self.next(view, query, (&target, prefix), response, worker) {
                Next::Answered => return LookupResult::Answered,
                Next::Alias(next) => (owner, target) = (target, *next),
                Next::Nothing => break,
            }
        }
        response.message.clear();
        LookupResult::NoData
    }

    fn push_alias(&self, response: &mut Response, owner: &Name, target: &Name) {
        response.message.push_name(
            Section::Answer,
            Owner::Name(owner.as_ref()),
            (Type::CNAME, self.ttl),
            target.as_ref(),
        );
    }

    /// Returns true if a CNAME record in the answer already points to `target`.
    fn visited(&self, response: &Response, target: &Name) -> bool {
        response.message.section(Section::Answer).any(|mark| {
            mark.rtype == Type::CNAME && response.message.name_in(mark, 0).is_ok_and(|known| known == *target)
        })
    }

    /// Looks up the target of an alias within the zone. The first `prefix` bytes of its name are the labels before the
    /// zone.
    fn next(
        &self,
        view: &View,
        query: &Query,
        (name, prefix): (&Name, usize),
        response: &mut Response,
        worker: &mut Worker,
    ) -> Next {
        let lower = name.clone().into_lowercase();
        let zone = query.zone();
        let before = response.message.marks().len();
        let owner = Owner::Name(name.as_ref());
        let context = self.context(query.qtype, owner, zone);
        let alias = match Target::read(&lower.as_bytes()[..prefix], view.grammar) {
            Target::Service { namespace, service, part } if self.exposed.shows(namespace) => {
                view.index.service(namespace, service, |service| {
                    match self.answer(&context, service, part, response, worker) {
                        NameLookup::Alias(target) => Name::from_text(target).ok(),
                        NameLookup::Answered | NameLookup::NoData | NameLookup::NoName => None,
                    }
                })
            }
            Target::Pod { namespace, pod } if self.exposed.shows(namespace) || self.has_pods_anywhere() => {
                let wanted = |ip: &IpAddr| query.qtype.is_address() && ip.is_ipv4() == (query.qtype == Type::A);
                if let Some(address) = self.pod_address(namespace, pod).filter(wanted) {
                    response.message.push_address(Section::Answer, owner, self.ttl, address);
                }
                None
            }
            Target::NameServer => {
                self.push_name_server_addresses(query, owner, response);
                None
            }
            _ => None,
        };
        match alias.flatten() {
            Some(target) => Next::Alias(Box::new(target)),
            None if response.message.marks().len() > before => Next::Answered,
            None => Next::Nothing,
        }
    }
}

impl Kubernetes {
    /// Finds out for an explanation why the chain of aliases from the query name ends without records. `target` is that
    /// of the first alias.
    pub(super) fn end_of_chain(&self, view: &View, query: &Query, target: &str) -> ChainEnd {
        let mut chain = vec![query.name().to_name().into_lowercase()];
        let mut next = Name::from_text(target).ok();
        while let Some(name) = next.map(Name::into_lowercase).filter(|_| chain.len() <= HOPS_MAX) {
            if chain.contains(&name) {
                chain.push(name);
                return ChainEnd::Loop(chain);
            }
            next = match self.link(view, query, &name) {
                Link::Alias(target) => Name::from_text(&target).ok(),
                Link::Missing => return ChainEnd::Missing(Box::new(name)),
                Link::Other => None,
            };
            chain.push(name);
        }
        ChainEnd::Other
    }

    fn link(&self, view: &View, query: &Query, name: &Name) -> Link {
        let Some(prefix) = name.as_ref().prefix_len(query.zone()) else { return Link::Other };
        match Target::read(&name.as_bytes()[..prefix], view.grammar) {
            Target::Service { namespace, service, .. } if self.exposed.shows(namespace) => {
                let link = view.index.service(namespace, service, |service| match &service.kind {
                    ServiceKind::ExternalName(target) => Link::Alias(target.to_string()),
                    _ => Link::Other,
                });
                link.unwrap_or(Link::Missing)
            }
            Target::Service { .. } | Target::Nothing => Link::Missing,
            _ => Link::Other,
        }
    }
}

/// End of a chain of aliases without records.
pub(super) enum ChainEnd {
    /// An alias leads back to an earlier name. The names of the chain, the last of which is such a name.
    Loop(Vec<Name>),
    /// The last target does not exist.
    Missing(Box<Name>),
    /// The chain leaves the zone, is too long, or the last target has no record of the type.
    Other,
}

/// Name in a chain.
enum Link {
    /// An alias with its target.
    Alias(String),
    /// The name does not exist.
    Missing,
    /// Any other name.
    Other,
}

/// Result of looking up the target of an alias.
enum Next {
    /// The records of the target are in the answer.
    Answered,
    /// The target is another alias.
    Alias(Box<Name>),
    /// The target has no records of this type.
    Nothing,
}
