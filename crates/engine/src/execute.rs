//! The state machine that takes one query down the chain until a step answers, and its response up again.
//!
//! ```text
//!            ┌────────────── Subquery: a query of its own, whose answer goes back to the step that asked
//!            │
//!   Down(0) ─┴─► Down(i) ──Done, Missing, Fail, end of chain──► Up(i) ──► Up(0) ──► the client, or the parent
//!                  │  ▲                                           ▲
//!                Wait └── Pass ── resumed ── Reply, Fail ─────────┘
//! ```
//!
//! A [`Transaction`] holds one query, its response, and the position in the chain. Running it has one of two results:
//! the response is complete ([`Progress::Answered`], [`Progress::Dropped`]), or a step waits for I/O
//! ([`Progress::Waiting`]). A transaction that waits is parked (`park.rs`) until [`Generation::resume`] continues it
//! with the reply. The engine then calls `on_resolved` of the step that waited, which may pass, deny the name, or start
//! a subquery.
//!
//! A bit mask records the steps that passed the query on and have a hook for the response. On the way up, the
//! transaction visits these steps from the lowest to the highest. A subquery is a transaction of its own that owns its
//! parent.

use core::cell::RefCell;

use host::invariant::{Expected as _, holds};
use wire::{Class, EdeCode, Name, NameRef, Opcode, Rcode};

use crate::admission::{Admission, admit};
use crate::chain::{Refuses, Step};
use crate::generation::Generation;
use crate::ids::ListenerId;
use crate::refused_updates;
use crate::trail::STEPS_MAX;
use crate::transaction::{Progress, Transaction, steps_above};
use crate::verdict::{Failure, Resolved, Subquery, SubqueryTarget, Verdict};
use crate::worker::Worker;

/// Maximum nesting depth of subqueries. It bounds a CNAME chain across zones, and ends a loop of CNAMEs.
const DEPTH_MAX: usize = 8;

/// Next move of a transaction.
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
    pub fn receive(&self, listener: ListenerId, transaction: &mut Box<Transaction>, worker: &mut Worker) -> Progress {
        transaction.begin();
        transaction.listener = listener;
        let Transaction { query, response, .. } = &mut **transaction;
        match admit(&query.packet, &mut query.request, self.listener(listener).takes_updates) {
            Admission::Silence => return Progress::Dropped,
            Admission::Reject(header, rcode) => {
                query.request.opt = None;
                query.qtype = wire::Type(0);
                response.begin_unread(header, rcode);
                transaction.is_unread = true;
                worker.observe(self, transaction, Progress::Answered);
                if header.flags.opcode() == Opcode::UPDATE && self.listener(listener).takes_updates {
                    refused_updates::log(self, transaction, Progress::Answered, worker);
                }
                return Progress::Answered;
            }
            Admission::Query => query.begin(),
        }
        holds(!query.is_own(), "a query of a client has a packet");
        query.may_pad = self.listener(listener).pads_responses;
        let progress = self.guarded(transaction, worker, Generation::dispatch);
        holds(
            progress == Progress::Waiting || transaction.depth == 0,
            "the query that is answered is that of the client",
        );
        if progress != Progress::Waiting {
            worker.observe(self, transaction, progress);
            if transaction.query.is_update() {
                refused_updates::log(self, transaction, progress, worker);
            }
        }
        progress
    }

    fn dispatch(&self, transaction: &mut Box<Transaction>, worker: &mut Worker) -> Progress {
        if transaction.query.qclass != Class::IN && !self.listener(transaction.listener).any_class {
            return self.refuse(transaction, Failure::refused(EdeCode::NOT_SUPPORTED, "class not supported"), worker);
        }
        if transaction.query.opt().is_some_and(|opt| opt.version != 0) {
            transaction.response.begin(&transaction.query);
            transaction.response.set_rcode(Rcode::BADVERS);
            return Progress::Answered;
        }
        match self.route(transaction) {
            Ok(()) if transaction.query.is_update() && !self.block(transaction.block).takes_updates => {
                let failure = Failure::refused(EdeCode::NOT_SUPPORTED, "no dynamic updates here");
                self.refuse(transaction, Failure { rcode: Rcode::NOTIMP, ..failure }, worker)
            }
            Ok(()) => self.descend(transaction, worker),
            Err(failure) => self.refuse(transaction, failure, worker),
        }
    }

    fn refuse(&self, transaction: &mut Transaction, failure: Failure, worker: &mut Worker) -> Progress {
        transaction.response.fail(&transaction.query, failure);
        self.metrics.count_dropped(transaction, worker);
        Progress::Answered
    }

    /// Starts at the first step of the block that serves the query.
    pub(crate) fn descend(&self, transaction: &mut Box<Transaction>, worker: &mut Worker) -> Progress {
        holds(transaction.passed == 0, "a query that starts was passed on by no step");
        transaction.response.begin(&transaction.query);
        self.go(transaction, Move::Down(0), worker)
    }

    /// Runs the refreshes that hooks have requested. `park` takes over those that wait for I/O.
    pub fn run_refreshes(&self, worker: &RefCell<Worker>, mut park: impl FnMut(Box<Transaction>)) {
        loop {
            let Some(mut transaction) = worker.borrow_mut().next_refresh() else { return };
            let progress = self.run_refresh(&mut transaction, &mut worker.borrow_mut());
            match progress {
                Progress::Waiting => park(transaction),
                Progress::Answered | Progress::Dropped => worker.borrow_mut().give_transaction(transaction),
            }
        }
    }

    fn run_refresh(&self, transaction: &mut Box<Transaction>, worker: &mut Worker) -> Progress {
        holds(!transaction.query.is_awaited(), "a refresh has no client");
        holds(transaction.passed == 1 << transaction.at, "a refresh ends at the step that requested it");
        holds(transaction.parent.is_none(), "a refresh has no parent");
        if let Some(site) = self.sites.get(transaction.query.site.0).expected("the site of a refresh") {
            (transaction.block, transaction.listener) = (site.block, site.listener);
        }
        transaction.response.begin(&transaction.query);
        // Below the step that requested it: that step would answer from the entry that the refresh is to replace.
        let from = transaction.at + 1;
        self.guarded(transaction, worker, |generation, transaction, worker| {
            generation.go(transaction, Move::Down(from), worker)
        })
    }

    /// Continues a parked transaction with the outcome of its I/O.
    pub fn resume(&self, transaction: &mut Box<Transaction>, resolved: &Resolved, worker: &mut Worker) -> Progress {
        holds(!transaction.is_unread, "a message that was not read does not wait");
        self.guarded(transaction, worker, |generation, transaction, worker| {
            let next = match transaction.adopt_resolved(resolved) {
                Verdict::Fail(failure) => {
                    transaction.response.fail(&transaction.query, failure);
                    generation.record_failed_step(transaction);
                    Move::Up(transaction.at)
                }
                Verdict::Done => Move::Resolved,
                verdict => generation.settle(transaction, verdict),
            };
            generation.go(transaction, next, worker)
        })
    }

    /// Continues the client's part of a split transaction upwards.
    ///
    /// With the background part `below`, which has completed up to `step`, it takes over that part's response. Without
    /// one, the timeout has expired, and `step` sees a failure.
    pub(crate) fn resume_client(
        &self,
        transaction: &mut Box<Transaction>,
        step: usize,
        below: Option<&mut Transaction>,
        worker: &mut Worker,
    ) -> Progress {
        holds(step < STEPS_MAX, "a client timeout names a step");
        holds(transaction.passed & !steps_above(step) == 0, "the part of the client has the steps above the timeout");
        let above = match below {
            Some(below) => {
                holds(below.parent.is_none(), "the background part has no parent: the client's part took it");
                // Swapped, not copied: both transactions go back to the worker with buffers that the next queries use.
                holds(below.passed & steps_above(step) == 0, "the background part has visited its steps");
                core::mem::swap(&mut transaction.response, &mut below.response);
                transaction.response.move_signer(&mut below.response);
                // Steps below have restored the question on the way up, but only in their part.
                transaction.query.copy_question(&below.query);
                transaction.query.merge_labels(below.query.label_values());
                transaction.query.add_asked(below.query.trail.asked.get());
                transaction.query.trail.was_rewritten |= below.query.trail.was_rewritten;
                step
            }
            None => {
                let failure = Failure::servfail(EdeCode::NO_REACHABLE_AUTHORITY, "no answer in time");
                transaction.response.fail(&transaction.query, failure);
                transaction.query.trail.timed_out = true;
                // The step that set the timeout is in the background part, which has not come up yet. Its `on_response`
                // runs for the client here, and once more there: the first answers without an upstream, the second
                // stores what the upstream says.
                transaction.passed |= 1 << step;
                step + 1
            }
        };
        self.guarded(transaction, worker, |generation, transaction, worker| {
            generation.go(transaction, Move::Up(above), worker)
        })
    }

    fn go(&self, transaction: &mut Box<Transaction>, mut next: Move, worker: &mut Worker) -> Progress {
        loop {
            let verdict = match next {
                Move::Down(from) => self.call_down(transaction, from, worker),
                Move::Resolved => self.call_resolved(transaction, worker),
                Move::Up(above) => match self.call_up(transaction, above, worker) {
                    Some(verdict) => verdict,
                    None if transaction.parent.is_some() => self.return_to_parent(transaction, worker),
                    None => return finished(transaction),
                },
            };
            next = match verdict {
                Verdict::Wait => {
                    let steps = self.block(transaction.block).chain.steps().len();
                    holds(transaction.at < steps, "the step that waits is in the chain");
                    return Progress::Waiting;
                }
                Verdict::Subquery(ask) => self.ask(transaction, &ask, worker),
                settled => self.settle(transaction, settled),
            };
        }
    }

    /// Calls the first step at or below `from` that serves this name and has a hook for the way down.
    fn call_down(&self, transaction: &mut Transaction, from: usize, worker: &mut Worker) -> Verdict {
        let steps = self.block(transaction.block).chain.steps();
        let is_update = transaction.query.is_update();
        holds(from <= steps.len(), "the way down is within the chain");
        holds(transaction.passed & !steps_above(from) == 0, "steps below have not seen the query yet");
        for (at, step) in steps.iter().enumerate().skip(from) {
            if is_update && !step.hooks.updates {
                continue;
            }
            let Some((index, zone)) = step.zone_of(transaction.query.key()) else { continue };
            if step.hooks.down {
                // The step that changed the name does not know if it is the last one. The first step that sees the new
                // name starts the response for it, so a name that changes twice costs one start.
                if transaction.query.take_renamed() {
                    transaction.response.begin(&transaction.query);
                }
                transaction.query.set_zone(index, zone.map_or(NameRef::ROOT, Name::as_ref));
                transaction.enter_step(at, false);
                match step.plugin.on_query(&mut transaction.query, &mut transaction.response, worker) {
                    Verdict::Pass => {}
                    verdict => return verdict,
                }
            }
            transaction.passed |= u64::from(step.hooks.up) << at;
        }
        transaction.enter_step(steps.len(), false);
        if is_update {
            let failure = Failure::refused(EdeCode::NOT_AUTHORITATIVE, "no dynamic zone has this name");
            return Verdict::Fail(Failure { rcode: Rcode::NOTAUTH, cause: "".into(), ..failure });
        }
        Verdict::Fail(nobody_answers(steps, transaction.query.key()))
    }

    /// Calls `on_resolved` of the step that waited.
    fn call_resolved(&self, transaction: &mut Transaction, worker: &mut Worker) -> Verdict {
        let step = &self.block(transaction.block).chain.steps()[transaction.at];
        let verdict = step.plugin.on_resolved(&mut transaction.query, &mut transaction.response, worker);
        if matches!(verdict, Verdict::Pass) {
            transaction.response.begin(&transaction.query);
        }
        verdict
    }

    /// Calls the lowest recorded step above `above`; `None` at the top of the chain.
    fn call_up(&self, transaction: &mut Transaction, above: usize, worker: &mut Worker) -> Option<Verdict> {
        holds(above <= STEPS_MAX, "the way up begins within the chain");
        let at = (transaction.passed & steps_above(above)).checked_ilog2()? as usize;
        transaction.passed &= !(1 << at);
        transaction.enter_step(at, true);
        let step = &self.block(transaction.block).chain.steps()[at];
        // A step may have changed the name on the way up to one outside of these zones. Then the zone is the root.
        let (index, zone) = step.zone_of(transaction.query.key()).unwrap_or_default();
        transaction.query.set_zone(index, zone.map_or(NameRef::ROOT, Name::as_ref));
        Some(step.plugin.on_response(&mut transaction.query, &mut transaction.response, worker))
    }

    /// Maps a verdict other than `Wait` and `Subquery` to the next move.
    fn settle(&self, transaction: &mut Transaction, verdict: Verdict) -> Move {
        let at = transaction.at;
        holds(at == transaction.query.trail.step, "the query is at the step of its transaction");
        match verdict {
            Verdict::Pass if transaction.upwards => {
                holds(transaction.passed & !steps_above(at) == 0, "the way up visits steps from below");
                Move::Up(at)
            }
            Verdict::Pass => {
                transaction.passed |= u64::from(self.has_up_hook(transaction, at)) << at;
                Move::Down(at + 1)
            }
            Verdict::Missing if !transaction.upwards && self.falls_through(transaction) => {
                transaction.response.begin(&transaction.query);
                transaction.passed |= u64::from(self.has_up_hook(transaction, at)) << at;
                Move::Down(at + 1)
            }
            Verdict::Fail(failure) => {
                transaction.response.fail(&transaction.query, failure);
                // The failure cost no I/O, so a cache gains nothing by storing it.
                transaction.response.set_local();
                self.record_failed_step(transaction);
                Move::Up(at)
            }
            Verdict::Drop => {
                transaction.response.set_dropped();
                self.record_failed_step(transaction);
                Move::Up(at)
            }
            Verdict::Done | Verdict::Missing | Verdict::Subquery(_) | Verdict::Wait => {
                holds(!matches!(verdict, Verdict::Subquery(_) | Verdict::Wait), "a step that waits has no verdict yet");
                transaction
                    .response
                    .set_source(self.block(transaction.block).chain.steps().get(at).map(|step| step.order));
                Move::Up(at)
            }
        }
    }

    /// Records the current step as the one that failed or dropped the query.
    fn record_failed_step(&self, transaction: &mut Transaction) {
        let step = self.block(transaction.block).chain.steps().get(transaction.at);
        transaction.response.set_failed_at(step.map(|step| step.order));
    }

    fn has_up_hook(&self, transaction: &Transaction, at: usize) -> bool {
        self.block(transaction.block).chain.steps().get(at).is_some_and(|step| step.hooks.up)
    }

    fn falls_through(&self, transaction: &Transaction) -> bool {
        let step = self.block(transaction.block).chain.steps().get(transaction.at);
        step.is_some_and(|step| step.fallthrough.contain(transaction.query.key()))
    }

    /// Starts a subquery. The current transaction becomes its parent.
    fn ask(&self, transaction: &mut Box<Transaction>, ask: &Subquery, worker: &mut Worker) -> Move {
        let mut sub = worker.take_transaction();
        sub.begin();
        holds(transaction.depth <= DEPTH_MAX, "the depth of subqueries is bounded");
        sub.depth = transaction.depth + 1;
        sub.listener = transaction.listener;
        sub.block = transaction.block;
        sub.query.begin_for(&transaction.query, ask.name.as_ref(), ask.qtype);
        sub.query.site = transaction.query.site;
        sub.response.begin(&sub.query);
        sub.target = self.target_of(&mut sub, ask.target);
        holds(sub.target != SubqueryTarget::BelowOrOther, "a subquery starts at one place");
        let next = if sub.depth > DEPTH_MAX {
            sub.response.fail(&sub.query, Failure::servfail(EdeCode::OTHER, "too many nested subqueries"));
            Move::Up(0)
        } else if sub.target == SubqueryTarget::Below {
            sub.query.clear_notes(self.block(sub.block).chain.steps().len());
            sub.query.copy_onward_options(&transaction.query);
            Move::Down(transaction.at + 1)
        } else {
            match self.route(&mut sub) {
                Ok(()) => Move::Down(0),
                Err(failure) => {
                    sub.response.fail(&sub.query, failure);
                    Move::Up(0)
                }
            }
        };
        holds(sub.parent.is_none() && sub.passed == 0, "a subquery that starts is alone");
        core::mem::swap(transaction, &mut sub);
        transaction.parent = Some(sub);
        next
    }

    /// Returns the starting point of a subquery whose block and site are still those of its parent, and leaves it so.
    fn target_of(&self, sub: &mut Transaction, target: SubqueryTarget) -> SubqueryTarget {
        if target != SubqueryTarget::BelowOrOther {
            return target;
        }
        // Routing overwrites them, and most subqueries stay in the block of their parent.
        let (block, site) = (sub.block, sub.query.site);
        let is_other = self.route(sub).is_ok() && sub.block != block;
        (sub.block, sub.query.site) = (block, site);
        // A name that no block serves is still answered by the steps below, such as *forward*.
        if is_other { SubqueryTarget::Top } else { SubqueryTarget::Below }
    }

    /// Passes the answer of a subquery to the step that asked.
    fn return_to_parent(&self, transaction: &mut Box<Transaction>, worker: &mut Worker) -> Verdict {
        let Some(parent) = transaction.parent.take().expected("the parent of a subquery") else {
            return Verdict::Done;
        };
        let mut sub = core::mem::replace(transaction, parent);
        holds(sub.depth == transaction.depth + 1, "a subquery is one level below its parent");
        holds(sub.passed == 0, "a subquery that ends has visited all steps on the way up");
        holds(sub.listener == transaction.listener, "a subquery is of the client of its parent");
        holds(transaction.at == transaction.query.trail.step, "the step that asked is the step of its transaction");
        if sub.target == SubqueryTarget::Below {
            // Steps below answer for this query, so their labels describe it. Another block has labels of its own.
            transaction.query.merge_labels(sub.query.label_values());
        }
        transaction.query.add_asked(sub.query.trail.asked.get());
        let step = &self.block(transaction.block).chain.steps()[transaction.at];
        let verdict =
            step.plugin.on_subresponse(&mut transaction.query, &mut sub.response, &mut transaction.response, worker);
        worker.give_transaction(sub);
        verdict
    }
}

/// Returns the progress of a transaction that is back at the top.
fn finished(transaction: &Transaction) -> Progress {
    holds(transaction.passed == 0, "each step that passed the query on has seen the response");
    holds(transaction.parent.is_none(), "the answer of a client has no parent");
    if transaction.response.is_dropped() { Progress::Dropped } else { Progress::Answered }
}

/// Failure of a query that every step of a chain passed on.
fn nobody_answers(steps: &[Step], key: NameRef<'_>) -> Failure {
    let is_refused = |step: &Step| match step.refuses {
        Refuses::Nothing => false,
        // A name of its own zones only gets here by `fallthrough`, after which another plugin should answer.
        Refuses::OtherZones => !(step.fallthrough.contain(key) && step.zone_of(key).is_some()),
        Refuses::OwnZones => step.zone_of(key).is_some(),
    };
    match steps.last() {
        // The client asked a server that is not responsible. The operator needs no log line for that.
        Some(last) if is_refused(last) => Failure::refused(EdeCode::NOT_AUTHORITATIVE, ""),
        // CoreDNS logs the name of the last plugin as well.
        last => {
            let last = last.map_or("", |step| step.name);
            Failure::servfail(EdeCode::NOT_AUTHORITATIVE, format!("plugin/{last}: no next plugin found"))
        }
    }
}
