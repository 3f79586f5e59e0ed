//! Authoritative answers from zones: the part that *file*, *auto* and *secondary* share. They differ in the source of
//! their zones.

mod held;
mod served;
mod snapshot;
mod source;

use std::sync::Arc;

use arc_swap::ArcSwap;
use config::setup::{ReachableZones, Setup};
use engine::log::{Level, Source};
use engine::{Failure, LabelSetter, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker, ZoneMap};
use host::invariant::holds;
use wire::{EdeCode, Name, NameRef, Opcode, Rcode, Section, Type};
use zone::{Lookup, Question, Zone};

pub(crate) use held::Held;
pub use held::ZoneMemory;
pub(crate) use served::ServedZones;
pub(crate) use snapshot::{offer, snapshot};
pub(crate) use source::{CodedNotice, FileZone, SignedFiles, ZONE_KEPT, code_of};

/// Zones that a directive serves. They are swapped atomically.
pub(crate) type Directory = Arc<ArcSwap<ZoneMap<Arc<Held>>>>;

/// Plugin that answers from zones.
pub(crate) struct Authority {
    /// Name of the directive in log lines.
    directive: &'static str,
    /// Zones of the directive.
    zones: Directory,
    /// Zones of the whole server, which CNAME targets may be in.
    reachable: ReachableZones,
    /// Label for the wildcard that an answer was synthesised from.
    wildcard: LabelSetter,
}

impl Authority {
    /// Creates the plugin for a directive and its zones.
    pub(crate) fn new(directive: &'static str, zones: Directory, setup: &mut Setup<'_>) -> Authority {
        ServedZones::add(directive, &zones, setup.reload_state);
        let reachable = setup.block.reachable.clone();
        Authority { directive, zones, reachable, wildcard: setup.labels().publish_setter("zone/wildcard") }
    }
}

/// Builds a directory of zones. If a name occurs twice, the first zone wins.
pub(crate) fn directory(zones: impl IntoIterator<Item = Arc<Held>>) -> ZoneMap<Arc<Held>> {
    let mut map = ZoneMap::new();
    for held in zones {
        map.entry(held.origin.as_ref(), || Arc::clone(&held));
    }
    map
}

impl Plugin for Authority {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let zones = self.zones.load();
        let Some(held) = find(&zones, query.key(), query.qtype) else { return Verdict::Pass };
        if query.flags().opcode() == Opcode::NOTIFY {
            return self.notified(held, query, response, worker);
        }
        if query.qtype.is_transfer() {
            return Verdict::Fail(Failure::refused(EdeCode::PROHIBITED, "transfers are not allowed"));
        }
        self.answer(held, query, response)
    }

    /// Adds the answer of the subquery for a CNAME target that this zone could not answer alone.
    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        _: &mut Worker,
    ) -> Verdict {
        let zones = self.zones.load();
        let zone = find(&zones, query.key(), query.qtype).and_then(|held| held.zone());
        if let Some(zone) = &zone
            && leaves_target_to(zone, sub)
        {
            response.begin(query);
            let reply = zone.answer(question(query), &mut response.message);
            response.set_authoritative(true);
            response.set_rcode(reply.map_or(Rcode::NOERROR, |reply| reply.rcode));
            if sub.is_local() {
                response.set_local();
            }
            return Verdict::Done;
        }
        let is_known = matches!(sub.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN);
        if is_known {
            response.append_answers(sub);
        }
        // If no plugin here serves the target, the answer ends with the CNAME record and the client resolves the rest.
        // It is no failure of ours.
        if matches!(sub.rcode(), Rcode::NXDOMAIN | Rcode::SERVFAIL) {
            response.set_rcode(sub.rcode());
        }
        // A negative answer carries the SOA record of the target's zone (RFC 2308 §2.1).
        if is_known && response.append_denial(sub) {
            if let Some(zone) = zone {
                zone.prove_wildcards(query.dnssec_ok, &mut response.message);
            }
            return Verdict::Done;
        }
        if let Some(zone) = zone {
            zone.end_alias(query.dnssec_ok, &mut response.message);
        }
        if is_known && query.dnssec_ok {
            response.append_proofs(sub);
        }
        Verdict::Done
    }
}

impl Authority {
    /// Handles a NOTIFY (RFC 1996). It is accepted only from a primary of a zone that is transferred from others.
    fn notified(&self, held: &Held, query: &Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let (peer, name) = (query.peer.address.ip().to_canonical(), query.name());
        let taken = query.key() == held.origin.as_ref() && held.notify(peer);
        let source = Source::Plugin(self.directive);
        if taken {
            worker.log_text(Level::Info, source, format_args!("Notify from {peer} for {name}: checking transfer"));
        } else {
            worker.log_text(Level::Info, source, format_args!("Dropping notify from {peer} for {name}"));
        }
        response.set_authoritative(true);
        if taken { Verdict::Done } else { Verdict::Drop }
    }

    /// Answers from a zone.
    fn answer(&self, held: &Held, query: &Query, response: &mut Response) -> Verdict {
        holds(query.key().is_within(held.origin.as_ref()), "a zone answers for names in it");
        let Some(zone) = held.zone() else { return fail(held, query, response) };
        let leaves = |target: NameRef<'_>, lookup| self.leaves(&zone, target, lookup, query.qtype);
        let Some(reply) = zone.answer_until(question(query), &mut response.message, leaves) else {
            return Verdict::Pass;
        };
        if let Some(wildcard) = reply.wildcard {
            self.wildcard.set(query, || zone.name_of(wildcard).into_lowercase().to_string());
        }
        response.set_authoritative(reply.authoritative);
        response.set_rcode(reply.rcode);
        if reply.rcode == Rcode::SERVFAIL {
            response.set_ede(EdeCode::OTHER, "CNAME chain is a loop or too long");
        }
        if let Some(name) = reply.next {
            return follow(name, query.qtype);
        }
        response.set_local();
        if reply.is_unowned { Verdict::Missing } else { Verdict::Done }
    }
}

impl Authority {
    /// Returns true if the server must resolve a CNAME target that lies in `zone`: a longer zone holds it, or this zone
    /// has no record for it and another directive may (RFC 1034 §4.3.2 step 3a: go back to step 1).
    fn leaves(&self, zone: &Zone, target: NameRef<'_>, lookup: Lookup, qtype: Type) -> bool {
        if matches!(lookup, Lookup::Nothing(_) | Lookup::Cut(_)) {
            return true;
        }
        let mut key = Name::root();
        key.set_lowercase(target);
        let key = if qtype == Type::DS { key.as_ref().parent().unwrap_or(NameRef::ROOT) } else { key.as_ref() };
        let own = zone.origin().len();
        let is_longer = |longest: usize| longest > own;
        is_longer(self.zones.load().longest(key).map_or(0, |(name, _)| name.len()))
            || is_longer(self.reachable.longest(key).unwrap_or(0))
    }
}

fn question(query: &Query) -> Question<'_> {
    Question { name: query.name(), qtype: query.qtype, dnssec_ok: query.dnssec_ok }
}

/// Returns true if the server's answer for a name of `zone` adds nothing to what the zone itself says: a denial with
/// the zone's own SOA record, a referral or a refusal.
fn leaves_target_to(zone: &Zone, sub: &Response) -> bool {
    let target = sub.message.question().split_last_chunk::<4>().and_then(|(name, _)| NameRef::from_bytes(name).ok());
    if target.is_none_or(|target| target.prefix_len(zone.origin()).is_none()) || sub.rcode() == Rcode::SERVFAIL {
        return false;
    }
    let soa = sub.message.section(Section::Authority).find(|mark| mark.rtype == Type::SOA);
    let denies_elsewhere = soa
        .and_then(|mark| sub.message.owner(mark).ok())
        .is_some_and(|owner| owner.as_ref().prefix_len(zone.origin()).is_none_or(|prefix| prefix > 0));
    sub.message.section(Section::Answer).next().is_none() && !denies_elsewhere
}

/// Returns the zone that answers for a name: the longest match, except that DS at an apex belongs to the parent (RFC
/// 4035 §3.1.4.1).
fn find<'z>(zones: &'z ZoneMap<Arc<Held>>, key: NameRef<'z>, qtype: Type) -> Option<&'z Arc<Held>> {
    let mut matches = zones.matches(key);
    let (name, held) = matches.next()?;
    let parent = if qtype == Type::DS && name == key { matches.next() } else { None };
    Some(parent.map_or(held, |(_, held)| held))
}

/// Fails a query because its zone cannot be served. If the file of the zone holds another zone, the query may fall
/// through.
fn fail(held: &Held, query: &Query, response: &mut Response) -> Verdict {
    let (cause, text) = match (held.is_expired(), held.is_elsewhere()) {
        (true, _) => ("is expired", "the zone is expired"),
        (false, true) => ("is not the zone in its file", "the zone is not the zone in its file"),
        (false, false) => ("is not loaded yet", "the zone is not loaded yet"),
    };
    let failure = Failure::servfail(EdeCode::NOT_READY, format!("Zone {} {cause}", held.origin)).with_text(text);
    if !held.is_elsewhere() {
        return Verdict::Fail(failure);
    }
    response.fail(query, failure);
    response.set_local();
    Verdict::Missing
}

fn follow(name: Name, qtype: Type) -> Verdict {
    Verdict::Subquery(Box::new(Subquery { name, qtype, target: SubqueryTarget::Top }))
}
