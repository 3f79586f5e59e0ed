//! Serving zones: what *file*, *auto* and *secondary* have in common, wherever their zones come from.

mod held;
mod snapshot;
mod source;

use std::sync::Arc;

use arc_swap::ArcSwap;
use engine::log::{Level, Source};
use engine::setup::Setup;
use engine::{Ask, Failure, Plugin, Query, Response, Teller, Verdict, Whom, Worker, ZoneMap};
use wire::{EdeCode, Name, NameRef, Opcode, Rcode, Section, Type};
use zone::Question;

pub(crate) use held::Held;
pub(crate) use snapshot::offer;
pub(crate) use source::FileZone;

/// The zones that a directive serves at the moment.
pub(crate) type Directory = Arc<ArcSwap<ZoneMap<Arc<Held>>>>;

/// What answers from zones.
pub(crate) struct Authority {
    /// The directive, as logs name it.
    directive: &'static str,
    /// Its zones.
    zones: Directory,
    /// The label for the wildcard that stood in for the name asked.
    wildcard: Teller,
}

impl Authority {
    /// Answers from these zones for a directive.
    pub(crate) fn new(directive: &'static str, zones: Directory, setup: &mut Setup<'_>) -> Authority {
        Authority { directive, zones, wildcard: setup.labels().publish_told("zone/wildcard") }
    }
}

/// A directory of these zones; the first of a name counts.
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

    /// What is known about the target of an alias that leads out of the zone.
    fn on_subanswer(&self, query: &mut Query, sub: &mut Response, response: &mut Response, _: &mut Worker) -> Verdict {
        let is_known = matches!(sub.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN);
        if is_known {
            response.append_answers(sub);
        }
        // That nobody here knows the target is the client's to find out, not our failure.
        if matches!(sub.rcode(), Rcode::NXDOMAIN | Rcode::SERVFAIL) {
            response.set_rcode(sub.rcode());
        }
        // A denial is that of the zone which the alias leads to (RFC 2308 §2.1).
        if is_known && response.append_denial(sub) {
            return Verdict::Done;
        }
        let zones = self.zones.load();
        if let Some(zone) = find(&zones, query.key(), query.qtype).and_then(|held| held.zone()) {
            zone.end_alias(query.dnssec_ok, &mut response.message);
        }
        Verdict::Done
    }
}

impl Authority {
    /// Word that a zone has changed (RFC 1996): of use where it comes from others, and only from those.
    fn notified(&self, held: &Held, query: &Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let (peer, name) = (query.path.peer.ip().to_canonical(), query.name());
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
        let Some(zone) = held.zone() else { return fail(held, query, response) };
        let question = Question { name: query.name(), qtype: query.qtype, dnssec_ok: query.dnssec_ok };
        let Some(reply) = zone.answer(question, &mut response.message) else { return Verdict::Pass };
        if let Some(wildcard) = reply.wildcard {
            self.wildcard.tell(query, || zone.name_of(wildcard).into_lowercase().to_string());
        }
        response.set_authoritative(reply.authoritative);
        response.set_rcode(reply.rcode);
        if let Some(name) = reply.next {
            return follow(name, query.qtype);
        }
        response.set_local();
        let is_missing = reply.rcode == Rcode::NXDOMAIN && response.message.section(Section::Answer).next().is_none();
        if is_missing { Verdict::Missing } else { Verdict::Done }
    }
}

/// The zone that answers for a name: the longest, but DS at an apex is its parent's (RFC 4035 §3.1.4.1).
fn find<'z>(zones: &'z ZoneMap<Arc<Held>>, key: NameRef<'z>, qtype: Type) -> Option<&'z Arc<Held>> {
    let mut matches = zones.matches(key);
    let (name, held) = matches.next()?;
    let parent = if qtype == Type::DS && name == key { matches.next() } else { None };
    Some(parent.map_or(held, |(_, held)| held))
}

/// The zone cannot be served. If its file has another zone, no name is in it: they fall through, if they may.
fn fail(held: &Held, query: &Query, response: &mut Response) -> Verdict {
    let cause = match (held.is_expired(), held.is_elsewhere()) {
        (true, _) => "is expired",
        (false, true) => "is not what its file has",
        (false, false) => "is not there yet",
    };
    let failure = Failure::servfail(EdeCode::NOT_READY, format!("Zone {} {cause}", held.origin));
    if !held.is_elsewhere() {
        return Verdict::Fail(failure);
    }
    response.fail(query, failure);
    response.set_local();
    Verdict::Missing
}

fn follow(name: Name, qtype: Type) -> Verdict {
    Verdict::Ask(Box::new(Ask { name, qtype, whom: Whom::Server }))
}
