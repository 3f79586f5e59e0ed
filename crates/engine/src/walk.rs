//! One query's walk: down the chain until a step answers, and up again past the steps that let it through.
//!
//! ```text
//!            ┌────────────── Ask: a sub-walk, whose answer comes back to the step that asked
//!            │
//!   Down(0) ─┴─► Down(i) ──Done, Missing, Fail, end of chain──► Up(i) ──► Up(0) ──► the client, or the asking walk
//!                  │  ▲                                           ▲
//!                Wait └── Pass ── resumed ── Reply, Fail ─────────┘
//! ```
//!
//! A step that waited sees the reply before it goes up (`on_resolved`): there it may still pass, deny or ask.

use core::cell::Cell;
use std::rc::Rc;

use wire::{EdeCode, Name, NameRef};

use crate::generation::Generation;
use crate::{Ask, Failure, Moment, Query, Resolved, Response, Step, Verdict, Whom, Worker};

/// Walks that may wait for each other: a CNAME chain across zones, or a loop of them.
const DEPTH_MAX: usize = 8;

/// What has become of a walk.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The answer stands in the response.
    Answered,
    /// The client gets nothing.
    Dropped,
    /// The outside world must be asked: [`drive`](crate::drive) does, and goes on.
    Waiting,
}

/// Where a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// The first step at or below this one.
    Down(usize),
    /// The last step above this one that was passed.
    Up(usize),
    /// The present step, which waited and whose answer has come.
    Resolved,
}

/// A query and its answer on their way; walks are reused.
#[derive(Default)]
pub struct Walk {
    /// The question.
    pub query: Query,
    /// The answer so far.
    pub response: Response,
    pub(crate) listener: usize,
    pub(crate) block: usize,
    /// The step at which the walk stands.
    pub(crate) at: usize,
    /// Whether the hook that spoke last was on the way up.
    upwards: bool,
    /// A bit for each step that let the query through and wants to see the answer.
    passed: u64,
    /// The walk that waits for this one's answer.
    parent: Option<Box<Walk>>,
    /// Whom that walk asks, if there is one.
    whom: Whom,
    depth: usize,
}

impl Walk {
    /// Forgets an earlier life.
    pub(crate) fn begin(&mut self) {
        self.at = 0;
        self.upwards = false;
        self.passed = 0;
        self.parent = None;
        self.depth = 0;
        self.response.unseal();
    }

    /// Becomes a walk without a client, from below the present step of `query` and up to it.
    pub(crate) fn begin_refresh(&mut self, query: &Query) {
        self.begin();
        self.query.copy_from(query);
        self.query.abandoned = Some(Rc::new(Cell::new(true)));
        self.at = query.step;
        self.passed = 1 << query.step;
    }

    /// Takes the client away if a step of this walk, or of one that waits for it, has a limit to its patience: gives the
    /// client's walk, in which the steps above that step are left, and the limit. What stays here goes on without it.
    pub(crate) fn part_with_client(&mut self, worker: &mut Worker) -> Option<Parting> {
        let waiting = self.outermost_with_patience()?;
        let patience = waiting.query.patience.take()?;
        let above = steps_above(patience.step);
        let mut client = worker.take_walk();
        client.begin();
        client.query.copy_from(&waiting.query);
        client.query.take_kept_above(patience.step, &mut waiting.query);
        client.response.take_seal(&mut waiting.response);
        client.listener = waiting.listener;
        client.block = waiting.block;
        client.depth = waiting.depth;
        client.whom = waiting.whom;
        client.parent = waiting.parent.take();
        client.passed = waiting.passed & above;
        waiting.passed &= !above;
        let abandoned = Rc::new(Cell::new(false));
        waiting.query.abandoned = Some(Rc::clone(&abandoned));
        Some(Parting { client, patience, abandoned })
    }

    /// Of the walks that wait for each other, the one nearest to the client in which a step has a limit to its patience.
    fn outermost_with_patience(&mut self) -> Option<&mut Walk> {
        let chain = core::iter::successors(Some(&*self), |walk| walk.parent.as_deref());
        let has_patience = |(_, walk): &(usize, &Walk)| walk.query.patience.is_some();
        let (level, _) = chain.enumerate().filter(has_patience).last()?;
        (0..level).try_fold(self, |walk, _| walk.parent.as_deref_mut())
    }
}

/// A client that waits for a walk apart from its own, for a while.
pub(crate) struct Parting {
    /// The client's walk.
    pub(crate) client: Box<Walk>,
    /// How long it waits.
    pub(crate) patience: Patience,
    /// Tells the other walk that it waits no more.
    pub(crate) abandoned: Rc<Cell<bool>>,
}

/// A step that does not let its client wait for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// The step.
    pub(crate) step: usize,
    /// When it goes on without an answer.
    pub(crate) until: Moment,
}

/// The bits of the steps above `step`.
const fn steps_above(step: usize) -> u64 {
    if step < u64::BITS as usize { (1 << step) - 1 } else { u64::MAX }
}

impl Generation {
    /// Begins at the first step of the block that serves the query.
    pub(crate) fn descend(&self, walk: &mut Box<Walk>, worker: &mut Worker) -> Turn {
        walk.response.begin(&walk.query);
        self.go(walk, Move::Down(0), worker)
    }

    /// Goes on with a walk without a client that [`Worker::next_refresh`] gave.
    pub fn run_refresh(&self, walk: &mut Box<Walk>, worker: &mut Worker) -> Turn {
        walk.block = self.sites.get(walk.query.site).map_or(0, |site| site.block);
        walk.listener = self.sites.get(walk.query.site).map_or(0, |site| site.listener);
        walk.response.begin(&walk.query);
        let from = walk.at + 1;
        self.guarded(walk, worker, |generation, walk, worker| generation.go(walk, Move::Down(from), worker))
    }

    /// Goes on with a walk that waited, with what came of it.
    pub fn resume(&self, walk: &mut Box<Walk>, resolved: &Resolved, worker: &mut Worker) -> Turn {
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

    /// Goes on upwards with the client's walk that [`Walk::part_with_client`] gave: with the answer of the other part,
    /// which has passed `step`, or without one, so that `step` sees a failure.
    pub(crate) fn rejoin(
        &self,
        walk: &mut Box<Walk>,
        step: usize,
        below: Option<&mut Walk>,
        worker: &mut Worker,
    ) -> Turn {
        let above = match below {
            Some(below) => {
                core::mem::swap(&mut walk.response, &mut below.response);
                walk.response.take_seal(&mut below.response);
                walk.query.take_question(&below.query);
                walk.query.hear(below.query.all_told());
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

    fn go(&self, walk: &mut Box<Walk>, mut next: Move, worker: &mut Worker) -> Turn {
        loop {
            let verdict = match next {
                Move::Down(from) => self.call_down(walk, from, worker),
                Move::Resolved => self.call_resolved(walk, worker),
                Move::Up(above) => match self.call_up(walk, above, worker) {
                    Some(verdict) => verdict,
                    None if walk.parent.is_some() => self.hand_over(walk, worker),
                    None if walk.response.is_dropped() => return Turn::Dropped,
                    None => return Turn::Answered,
                },
            };
            next = match verdict {
                Verdict::Wait => return Turn::Waiting,
                Verdict::Ask(ask) => self.ask(walk, &ask, worker),
                settled => self.settle(walk, settled),
            };
        }
    }

    /// Asks the first step at or below `from` that has a hook on the way down and is for this name.
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

    /// Shows the step that waited what has come.
    fn call_resolved(&self, walk: &mut Walk, worker: &mut Worker) -> Verdict {
        let step = &self.blocks[walk.block].chain.steps()[walk.at];
        let verdict = step.plugin.on_resolved(&mut walk.query, &mut walk.response, worker);
        if matches!(verdict, Verdict::Pass) {
            walk.response.begin(&walk.query);
        }
        verdict
    }

    /// Shows the answer to the last passed step above `above`; `None` at the top.
    fn call_up(&self, walk: &mut Walk, above: usize, worker: &mut Worker) -> Option<Verdict> {
        let at = (walk.passed & steps_above(above)).checked_ilog2()? as usize;
        walk.passed &= !(1 << at);
        walk.stand_at(at, true);
        let step = &self.blocks[walk.block].chain.steps()[at];
        let (index, zone) = step.zone_of(walk.query.key()).unwrap_or_default();
        walk.query.set_zone(index, zone.map_or(NameRef::ROOT, Name::as_ref));
        Some(step.plugin.on_response(&mut walk.query, &mut walk.response, worker))
    }

    /// Where a verdict that neither waits nor asks leads.
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
                // Nothing was asked of the outside world: to fail again costs as little.
                walk.response.set_local();
                Move::Up(at)
            }
            Verdict::Drop => {
                walk.response.set_dropped();
                Move::Up(at)
            }
            Verdict::Done | Verdict::Missing | Verdict::Ask(_) | Verdict::Wait => {
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

    /// Puts a sub-walk on top of this one.
    fn ask(&self, walk: &mut Box<Walk>, ask: &Ask, worker: &mut Worker) -> Move {
        let mut sub = worker.take_walk();
        sub.begin();
        sub.depth = walk.depth + 1;
        sub.whom = ask.whom;
        sub.listener = walk.listener;
        sub.block = walk.block;
        sub.query.begin_for(&walk.query, ask.name.as_ref(), ask.qtype);
        sub.query.site = walk.query.site;
        sub.response.begin(&sub.query);
        let next = if sub.depth > DEPTH_MAX {
            sub.response.fail(&sub.query, Failure::servfail(EdeCode::OTHER, "too many questions for one answer"));
            Move::Up(0)
        } else if ask.whom == Whom::Below {
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

    /// Gives the answer of a sub-walk to the step that asked.
    fn hand_over(&self, walk: &mut Box<Walk>, worker: &mut Worker) -> Verdict {
        let Some(parent) = walk.parent.take() else { return Verdict::Done };
        let mut sub = core::mem::replace(walk, parent);
        if sub.whom == Whom::Below {
            walk.query.hear(sub.query.all_told());
        }
        let step = &self.blocks[walk.block].chain.steps()[walk.at];
        let verdict = step.plugin.on_subanswer(&mut walk.query, &mut sub.response, &mut walk.response, worker);
        worker.give_walk(sub);
        verdict
    }
}

impl Walk {
    fn stand_at(&mut self, step: usize, upwards: bool) {
        self.at = step;
        self.upwards = upwards;
        self.query.step = step;
    }

    /// What the outside world said, as the verdict of the hook that waited for it.
    fn take_over(&mut self, resolved: &Resolved) -> Verdict {
        let octets = match resolved {
            Resolved::Pass => return Verdict::Pass,
            Resolved::Fail(failure) => return Verdict::Fail(failure.clone()),
            Resolved::Reply(octets) => octets,
        };
        self.response.begin(&self.query);
        let adopted = wire::Message::parse(octets)
            .map_err(|error| error.to_string())
            .and_then(|message| self.response.adopt(&message).map_err(|error| error.to_string()));
        match adopted {
            Ok(()) => Verdict::Done,
            Err(cause) => Verdict::Fail(Failure::servfail(EdeCode::INVALID_DATA, cause)),
        }
    }

    /// Goes back to the walk of the client after a sub-walk came to grief, and fails there.
    pub(crate) fn unwind(self: &mut Box<Self>, failure: Failure) {
        while let Some(parent) = self.parent.take() {
            *self = parent;
        }
        self.query.take_request();
        self.response.fail(&self.query, failure);
    }
}

/// All steps of a chain have passed the query on.
fn nobody_answers(steps: &[Step]) -> Failure {
    match steps.last() {
        // The client asked the wrong server; that is no news here.
        Some(last) if last.is_authority => Failure::refused(EdeCode::NOT_AUTHORITATIVE, ""),
        // Logs name the last plugin, as CoreDNS does.
        last => {
            let last = last.map_or("", |step| step.name);
            Failure::servfail(EdeCode::NOT_AUTHORITATIVE, format!("plugin/{last}: no next plugin found"))
        }
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
