//! The state machine that takes one query down the chain until a step answers, and its response up again.
//!
//! ```text
//!            ┌────────────── Ask: a subquery, whose answer goes back to the step that asked
//!            │
//!   Down(0) ─┴─► Down(i) ──Done, Missing, Fail, end of chain──► Up(i) ──► Up(0) ──► the client, or the parent walk
//!                  │  ▲                                           ▲
//!                Wait └── Pass ── resumed ── Reply, Fail ─────────┘
//! ```
//!
//! A [`Walk`] holds one query, its response, and the position in the chain. It stops in one of two ways: the response
//! is complete ([`Progress::Answered`], [`Progress::Dropped`]), or a step waits for I/O ([`Progress::Waiting`]). In the
//! second case the walk is parked (`park.rs`). [`Generation::resume`] continues it with the reply. The step that waited
//! sees the reply first (`on_resolved`) and may still pass, deny the name, or ask a subquery.
//!
//! A bit mask records the steps that passed the query on and have a hook for the response. On the way up, the walk
//! visits these steps from the lowest to the highest. A subquery is a walk of its own that owns its parent.

use wire::{Class, EdeCode, Name, NameRef, Rcode};

use crate::chain::Step;
use crate::gate::{Admission, admit};
use crate::generation::Generation;
use crate::transaction::{Progress, Walk, steps_above};
use crate::verdict::{Failure, Resolved, Subquery, SubqueryTarget, Verdict};
use crate::worker::Worker;

/// Maximum nesting depth of subqueries. It bounds a CNAME chain across zones, and ends a loop of CNAMEs.
const DEPTH_MAX: usize = 8;

/// Next move of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// Calls the first step at or below this index.
    Down(usize),
    /// Calls the lowest recorded step above this index.
    Up(usize),
    /// Calls `on_resolved` of the current step, whose reply has arrived.
    Resolved,
}

impl Generation {
    /// Processes the packet in [`Query::packet`](crate::Query::packet) until it is answered or has to wait for I/O.
    pub fn receive(&self, listener: usize, walk: &mut Box<Walk>, worker: &mut Worker) -> Progress {
        walk.begin();
        walk.listener = listener;
        let Walk { query, response, .. } = &mut **walk;
        match admit(&query.packet, &mut query.request) {
            Admission::Silence => return Progress::Dropped,
            Admission::Reject(header, rcode) => {
                query.request.opt = None;
                query.qtype = wire::Type(0);
                response.begin_unread(header, rcode);
                return Progress::Answered;
            }
            Admission::Query => query.begin(),
        }
        self.guarded(walk, worker, Generation::dispatch)
    }

    fn dispatch(&self, walk: &mut Box<Walk>, worker: &mut Worker) -> Progress {
        if walk.query.qclass != Class::IN && !self.listeners[walk.listener].any_class {
            return self.refuse(walk, Failure::refused(EdeCode::NOT_SUPPORTED, "class not supported"), worker);
        }
        if walk.query.opt().is_some_and(|opt| opt.version != 0) {
            walk.response.begin(&walk.query);
            walk.response.set_rcode(Rcode::BADVERS);
            return Progress::Answered;
        }
        match self.route(walk) {
            Ok(()) => self.descend(walk, worker),
            Err(failure) => self.refuse(walk, failure, worker),
        }
    }

    fn refuse(&self, walk: &mut Walk, failure: Failure, worker: &mut Worker) -> Progress {
        walk.response.fail(&walk.query, failure);
        self.metrics.count_dropped(walk, worker);
        Progress::Answered
    }

    /// Starts at the first step of the block that serves the query.
    pub(crate) fn descend(&self, walk: &mut Box<Walk>, worker: &mut Worker) -> Progress {
        walk.response.begin(&walk.query);
        self.go(walk, Move::Down(0), worker)
    }

    /// Runs a refresh that [`Worker::next_refresh`] returned.
    pub fn run_refresh(&self, walk: &mut Box<Walk>, worker: &mut Worker) -> Progress {
        walk.block = self.sites.get(walk.query.site).map_or(0, |site| site.block);
        walk.listener = self.sites.get(walk.query.site).map_or(0, |site| site.listener);
        walk.response.begin(&walk.query);
        let from = walk.at + 1;
        self.guarded(walk, worker, |generation, walk, worker| generation.go(walk, Move::Down(from), worker))
    }

    /// Continues a parked walk with the outcome of its I/O.
    pub fn resume(&self, walk: &mut Box<Walk>, resolved: &Resolved, worker: &mut Worker) -> Progress {
        self.guarded(walk, worker, |generation, walk, worker| {
            let next = match walk.take_over(resolved) {
                Verdict::Fail(failure) => {
                    walk.response.fail(&walk.query, failure);
                    Move::Up(walk.at)
                }
                Verdict::Done => Move::Resolved,
                verdict => generation.settle(walk, verdict),
            };
            generation.go(walk, next, worker)
        })
    }

    /// Continues the client's part of a split walk upwards.
    ///
    /// With the background part `below`, which has completed up to `step`, it takes over that part's response. Without
    /// one, the timeout has expired, and `step` sees a failure.
    pub(crate) fn rejoin(
        &self,
        walk: &mut Box<Walk>,
        step: usize,
        below: Option<&mut Walk>,
        worker: &mut Worker,
    ) -> Progress {
        let above = match below {
            Some(below) => {
                core::mem::swap(&mut walk.response, &mut below.response);
                walk.response.take_seal(&mut below.response);
                walk.query.take_question(&below.query);
                walk.query.merge_labels(below.query.label_values());
                step
            }
            None => {
                let failure = Failure::servfail(EdeCode::NO_REACHABLE_AUTHORITY, "no answer in time");
                walk.response.fail(&walk.query, failure);
                walk.passed |= 1 << step;
                step + 1
            }
        };
        self.guarded(walk, worker, |generation, walk, worker| generation.go(walk, Move::Up(above), worker))
    }

    fn go(&self, walk: &mut Box<Walk>, mut next: Move, worker: &mut Worker) -> Progress {
        loop {
            let verdict = match next {
                Move::Down(from) => self.call_down(walk, from, worker),
                Move::Resolved => self.call_resolved(walk, worker),
                Move::Up(above) => match self.call_up(walk, above, worker) {
                    Some(verdict) => verdict,
                    None if walk.parent.is_some() => self.hand_over(walk, worker),
                    None if walk.response.is_dropped() => return Progress::Dropped,
                    None => return Progress::Answered,
                },
            };
            next = match verdict {
                Verdict::Wait => return Progress::Waiting,
                Verdict::Subquery(ask) => self.ask(walk, &ask, worker),
                settled => self.settle(walk, settled),
            };
        }
    }

    /// Calls the first step at or below `from` that serves this name and has a hook for the way down.
    fn call_down(&self, walk: &mut Walk, from: usize, worker: &mut Worker) -> Verdict {
        let steps = self.blocks[walk.block].chain.steps();
        for (at, step) in steps.iter().enumerate().skip(from) {
            let Some((index, zone)) = step.zone_of(walk.query.key()) else { continue };
            if step.hooks.down {
                if walk.query.take_renamed() {
                    walk.response.begin(&walk.query);
                }
                walk.query.set_zone(index, zone.map_or(NameRef::ROOT, Name::as_ref));
                walk.stand_at(at, false);
                match step.plugin.on_query(&mut walk.query, &mut walk.response, worker) {
                    Verdict::Pass => {}
                    verdict => return verdict,
                }
            }
            walk.passed |= u64::from(step.hooks.up) << at;
        }
        walk.stand_at(steps.len(), false);
        Verdict::Fail(nobody_answers(steps))
    }

    /// Calls `on_resolved` of the step that waited.
    fn call_resolved(&self, walk: &mut Walk, worker: &mut Worker) -> Verdict {
        let step = &self.blocks[walk.block].chain.steps()[walk.at];
        let verdict = step.plugin.on_resolved(&mut walk.query, &mut walk.response, worker);
        if matches!(verdict, Verdict::Pass) {
            walk.response.begin(&walk.query);
        }
        verdict
    }

    /// Calls the lowest recorded step above `above`; `None` at the top of the chain.
    fn call_up(&self, walk: &mut Walk, above: usize, worker: &mut Worker) -> Option<Verdict> {
        let at = (walk.passed & steps_above(above)).checked_ilog2()? as usize;
        walk.passed &= !(1 << at);
        walk.stand_at(at, true);
        let step = &self.blocks[walk.block].chain.steps()[at];
        let (index, zone) = step.zone_of(walk.query.key()).unwrap_or_default();
        walk.query.set_zone(index, zone.map_or(NameRef::ROOT, Name::as_ref));
        Some(step.plugin.on_response(&mut walk.query, &mut walk.response, worker))
    }

    /// Maps a verdict other than `Wait` and `Subquery` to the next move.
    fn settle(&self, walk: &mut Walk, verdict: Verdict) -> Move {
        let at = walk.at;
        match verdict {
            Verdict::Pass if walk.upwards => Move::Up(at),
            Verdict::Pass => {
                walk.passed |= u64::from(self.has_up_hook(walk, at)) << at;
                Move::Down(at + 1)
            }
            Verdict::Missing if !walk.upwards && self.falls_through(walk) => {
                walk.response.begin(&walk.query);
                walk.passed |= u64::from(self.has_up_hook(walk, at)) << at;
                Move::Down(at + 1)
            }
            Verdict::Fail(failure) => {
                walk.response.fail(&walk.query, failure);
                // The failure cost no I/O, so a cache gains nothing by storing it.
                walk.response.set_local();
                Move::Up(at)
            }
            Verdict::Drop => {
                walk.response.set_dropped();
                Move::Up(at)
            }
            Verdict::Done | Verdict::Missing | Verdict::Subquery(_) | Verdict::Wait => {
                walk.response.set_source(self.blocks[walk.block].chain.steps().get(at).map(|step| step.order));
                Move::Up(at)
            }
        }
    }

    fn has_up_hook(&self, walk: &Walk, at: usize) -> bool {
        self.blocks[walk.block].chain.steps().get(at).is_some_and(|step| step.hooks.up)
    }

    fn falls_through(&self, walk: &Walk) -> bool {
        let step = self.blocks[walk.block].chain.steps().get(walk.at);
        step.is_some_and(|step| step.fallthrough.contain(walk.query.key()))
    }

    /// Starts a subquery. The current walk becomes its parent.
    fn ask(&self, walk: &mut Box<Walk>, ask: &Subquery, worker: &mut Worker) -> Move {
        let mut sub = worker.take_walk();
        sub.begin();
        sub.depth = walk.depth + 1;
        sub.target = ask.target;
        sub.listener = walk.listener;
        sub.block = walk.block;
        sub.query.begin_for(&walk.query, ask.name.as_ref(), ask.qtype);
        sub.query.site = walk.query.site;
        sub.response.begin(&sub.query);
        let next = if sub.depth > DEPTH_MAX {
            sub.response.fail(&sub.query, Failure::servfail(EdeCode::OTHER, "too many nested subqueries"));
            Move::Up(0)
        } else if ask.target == SubqueryTarget::Below {
            sub.query.clear_notes(self.blocks[sub.block].chain.steps().len());
            sub.query.take_onward(&walk.query);
            Move::Down(walk.at + 1)
        } else {
            match self.route(&mut sub) {
                Ok(()) => Move::Down(0),
                Err(failure) => {
                    sub.response.fail(&sub.query, failure);
                    Move::Up(0)
                }
            }
        };
        core::mem::swap(walk, &mut sub);
        walk.parent = Some(sub);
        next
    }

    /// Passes the answer of a subquery to the step that asked.
    fn hand_over(&self, walk: &mut Box<Walk>, worker: &mut Worker) -> Verdict {
        let Some(parent) = walk.parent.take() else { return Verdict::Done };
        let mut sub = core::mem::replace(walk, parent);
        if sub.target == SubqueryTarget::Below {
            walk.query.merge_labels(sub.query.label_values());
        }
        let step = &self.blocks[walk.block].chain.steps()[walk.at];
        let verdict = step.plugin.on_subresponse(&mut walk.query, &mut sub.response, &mut walk.response, worker);
        worker.give_walk(sub);
        verdict
    }
}

/// Failure of a query that every step of a chain passed on.
fn nobody_answers(steps: &[Step]) -> Failure {
    match steps.last() {
        // The client asked a server that is not responsible. The operator needs no log line for that.
        Some(last) if last.is_authority => Failure::refused(EdeCode::NOT_AUTHORITATIVE, ""),
        // CoreDNS logs the name of the last plugin as well.
        last => {
            let last = last.map_or("", |step| step.name);
            Failure::servfail(EdeCode::NOT_AUTHORITATIVE, format!("plugin/{last}: no next plugin found"))
        }
    }
}
