//! ExternalName Services: CNAME records and the records of their targets, inside and outside of the zone.

use cluster::{Address, Endpoint, ServiceKind};
use engine::{Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use wire::{Name, Owner, Section, Type};

use super::name::{Part, Target};
use super::{Asked, Kubernetes, LookupResult, View};

/// Maximum number of CNAME records in a chain within the zone, as in CoreDNS.
const HOPS_MAX: usize = 11;

/// Asks the whole server for the last name of a chain.
fn elsewhere(last: Name, query: &Query) -> LookupResult {
    let ask = Subquery { name: last, qtype: query.qtype, target: SubqueryTarget::Top };
    LookupResult::Elsewhere(Verdict::Subquery(Box::new(ask)))
}

/// Returns true if the answer already has the CNAME record of a name: the chain has come back to it.
fn has_alias(response: &Response, owner: &Name) -> bool {
    let mut aliases = response.message.section(Section::Answer).filter(|mark| mark.rtype == Type::CNAME);
    aliases.any(|mark| response.message.owner(mark).is_ok_and(|known| known == *owner))
}

impl Kubernetes {
    /// Follows an alias from the query name (RFC 1034 §4.3.2, step 3a). The answer has the CNAME records and the
    /// result of a query for the last name: its records, or its denial (RFC 2308 §2, RFC 6604 §3). For a loop, or a
    /// chain of more than `HOPS_MAX` aliases, the answer has the CNAME records alone.
    ///
    /// In kube-dns, a chain without records at its end has no CNAME records either, and SRV is not followed.
    pub(super) fn follow_alias(
        &self,
        view: &View,
        query: &Query,
        target: &Name,
        response: &mut Response,
        worker: &mut Worker,
    ) -> LookupResult {
        let (mut owner, mut target) = (query.name().to_name(), target.clone());
        if query.qtype == Type::SRV && self.is_like_kube_dns {
            self.push_alias_service(view, query, &target, response);
            return LookupResult::Answered;
        }
        for _ in 0..HOPS_MAX {
            if has_alias(response, &owner) {
                break;
            }
            self.push_alias(response, &owner, &target);
            if query.qtype == Type::CNAME {
                return LookupResult::Answered;
            }
            let Some(prefix) = target.as_ref().prefix_len(query.zone()) else { return elsewhere(target, query) };
            let before = response.message.marks().len();
            match self.find_target(view, query, (&target, prefix), response, worker) {
                Err(next) => (owner, target) = (target, *next),
                Ok(LookupResult::Answered)
                    if response.message.marks().len() > before || response.message.is_truncated() =>
                {
                    return LookupResult::Answered;
                }
                Ok(found) => return self.end_chain(&found, target, query, response),
            }
        }
        if self.is_like_kube_dns {
            response.message.clear();
            return LookupResult::NoData;
        }
        LookupResult::Answered
    }

    /// Ends a chain whose last name is in the zone and has no records of the type.
    fn end_chain(&self, found: &LookupResult, last: Name, query: &Query, response: &mut Response) -> LookupResult {
        match found {
            LookupResult::Unknown => {
                response.message.clear();
                LookupResult::Unknown
            }
            _ if self.is_like_kube_dns => {
                response.message.clear();
                LookupResult::NoData
            }
            LookupResult::NoName if self.fallthrough.contain(last.as_ref()) => elsewhere(last, query),
            LookupResult::NoName => LookupResult::NoTarget,
            _ => LookupResult::NoData,
        }
    }

    fn push_alias(&self, response: &mut Response, owner: &Name, target: &Name) {
        response.message.push_name(
            Section::Answer,
            Owner::Name(owner.as_ref()),
            (Type::CNAME, self.ttl),
            target.as_ref(),
        );
    }

    /// Looks up the target of an alias within the zone. The first `prefix` bytes of its name are the labels before the
    /// zone. The error is the target of the next alias.
    fn find_target(
        &self,
        view: &View,
        query: &Query,
        (name, prefix): (&Name, usize),
        response: &mut Response,
        worker: &mut Worker,
    ) -> Result<LookupResult, Box<Name>> {
        let lower = name.clone().into_lowercase();
        let target = Target::read(&lower.as_bytes()[..prefix], view.grammar);
        let context = self.context(query.qtype, Owner::Name(name.as_ref()), query.zone());
        self.find_name(view, &Asked { name: name.as_ref(), target, context }, query, response, worker)
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
                Link::Last => return ChainEnd::Last(Box::new(name)),
                Link::Other => None,
            };
            chain.push(name);
        }
        ChainEnd::Other
    }

    fn link(&self, view: &View, query: &Query, name: &Name) -> Link {
        let Some(prefix) = name.as_ref().prefix_len(query.zone()) else { return Link::Other };
        match Target::read(&name.as_bytes()[..prefix], view.grammar) {
            Target::Service { namespace, service, part } if self.exposed.shows(namespace) => {
                let is_name = |endpoint: Endpoint<'_>| matches!(endpoint.address(), Address::Name(_));
                let link = view.index.service(namespace, service, |service| match &service.kind {
                    ServiceKind::ExternalName(target) if part == Part::Whole => Link::Alias(target.to_string()),
                    ServiceKind::ExternalName(_) => Link::Missing,
                    _ if service.endpoints().any(is_name) => Link::Other,
                    _ => Link::Last,
                });
                link.unwrap_or(Link::Missing)
            }
            Target::Service { .. } | Target::Nothing => Link::Missing,
            _ => Link::Last,
        }
    }
}

/// End of a chain of aliases without records.
pub(super) enum ChainEnd {
    /// An alias leads back to an earlier name. The names of the chain, the last of which is such a name.
    Loop(Vec<Name>),
    /// The last target does not exist.
    Missing(Box<Name>),
    /// The last target, which is in the zone. The response code says whether it exists.
    Last(Box<Name>),
    /// The chain leaves the zone, or is too long.
    Other,
}

/// Name in a chain.
enum Link {
    /// An alias with its target.
    Alias(String),
    /// The name does not exist.
    Missing,
    /// Another name of the zone, which is no alias.
    Last,
    /// Name outside of the zone, or an endpoint that may be an alias.
    Other,
}
