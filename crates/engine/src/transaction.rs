//! State of one query on its way through the chain, and of its subqueries.
//!
//! A [`Transaction`] holds a query, its response, and the position in the chain. It moves between pools, parents and
//! futures by its box. The state machine that advances it is in `execute.rs`.

use core::cell::Cell;
use std::rc::Rc;

use host::invariant::holds;
use wire::EdeCode;

use crate::ids::{BlockId, ListenerId};
use crate::query::Query;
use crate::response::Response;
use crate::trail::{ClientTimeout, STEPS_MAX};
use crate::verdict::{Failure, Resolved, SubqueryTarget, Verdict};

/// Capacity in bytes that a pooled transaction keeps for a query, and for a response.
const PACKET_KEPT: usize = 4096;

/// Result of running a transaction as far as it can go.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The response is complete.
    Answered,
    /// The client gets no response.
    Dropped,
    /// A step waits for I/O. [`drive`](crate::drive) does it and continues the transaction.
    Waiting,
}

/// Progress of one query through the chain. Transactions are pooled and reused.
#[derive(Default)]
pub struct Transaction {
    /// Query.
    pub query: Query,
    /// Response so far.
    pub response: Response,
    pub(crate) listener: ListenerId,
    pub(crate) block: BlockId,
    /// Index of the current step.
    pub(crate) at: usize,
    /// True if the last hook ran on the way up.
    pub(crate) upwards: bool,
    /// Bit mask of the steps that passed the query on and have a hook for the response.
    pub(crate) passed: u64,
    /// Transaction that waits for the answer to this subquery.
    pub(crate) parent: Option<Box<Transaction>>,
    /// Starting point of this subquery.
    pub(crate) target: SubqueryTarget,
    pub(crate) depth: usize,
    /// True for a message that was rejected before its question was read.
    pub(crate) is_unread: bool,
}

impl Transaction {
    /// Resets a reused transaction.
    pub(crate) fn begin(&mut self) {
        self.at = 0;
        self.upwards = false;
        self.passed = 0;
        self.parent = None;
        self.depth = 0;
        self.is_unread = false;
        self.response.clear_signer();
    }

    /// Frees the memory of a long query and a long response, so that a pooled transaction takes a few kilobytes.
    pub(crate) fn trim(&mut self) {
        if self.query.packet.capacity() > PACKET_KEPT {
            self.query.packet = Vec::new();
        }
        self.response.message.trim();
        debug_assert!(self.parent.is_some() || self.excess() == 0, "a pooled transaction takes a few kilobytes");
    }

    /// Frees the room of the query and the response, and of the transactions that wait for it, that their contents do
    /// not need: most of the memory of a transaction that waits for I/O.
    pub fn shrink(&mut self) {
        let mut at = Some(self);
        while let Some(transaction) = at {
            transaction.query.packet.shrink_to_fit();
            transaction.response.message.shrink();
            at = transaction.parent.as_deref_mut();
        }
    }

    /// Returns the bytes of the query and the response, with those of the transactions that wait for it, beyond what
    /// each pooled transaction keeps.
    #[must_use]
    pub fn excess(&self) -> usize {
        let chain = core::iter::successors(Some(self), |transaction| transaction.parent.as_deref());
        let own = |transaction: &Transaction| {
            let packet = transaction.query.packet.capacity().saturating_sub(PACKET_KEPT);
            packet + transaction.response.message.capacity().saturating_sub(PACKET_KEPT)
        };
        chain.map(own).sum()
    }

    /// Turns this transaction into a refresh of `query`: a copy without a client that starts below the current step,
    /// and goes up to that step only.
    pub(crate) fn begin_refresh(&mut self, query: &Query) {
        self.begin();
        self.query.copy_from(query);
        self.query.trail.abandoned = Some(Rc::new(Cell::new(true)));
        holds(query.trail.step < STEPS_MAX, "a step requests a refresh");
        holds(!self.query.is_awaited(), "nobody waits for a refresh");
        self.at = query.trail.step;
        self.passed = 1 << query.trail.step;
    }

    /// Splits the transaction in two if a step of it, or of a parent transaction, has set a client timeout.
    ///
    /// Returns the client's part, in a transaction from `take_transaction`, and the timeout. The client's part contains
    /// the steps above the one with the timeout. The rest stays in `self` and continues without a client.
    pub(crate) fn detach_client(&mut self, take_transaction: impl FnOnce() -> Box<Transaction>) -> Option<Detached> {
        // Nearest to the client, because its timeout covers everything below. An inner one would leave the client
        // waiting for the steps between both.
        let waiting = self.outermost_with_timeout()?;
        let timeout = waiting.query.trail.timeout.take()?;
        let above = steps_above(timeout.step);
        holds(timeout.step < STEPS_MAX, "a step sets a client timeout");
        holds(waiting.at >= timeout.step, "a timeout is that of a step above the one that waits");
        let passed = waiting.passed;
        let mut client = take_transaction();
        client.begin();
        client.query.copy_from(&waiting.query);
        // A kept value has one owner. Each goes to the part in which the `on_response` of its step runs.
        client.query.move_kept_above(timeout.step, &mut waiting.query);
        client.response.move_signer(&mut waiting.response);
        client.listener = waiting.listener;
        client.block = waiting.block;
        client.depth = waiting.depth;
        client.target = waiting.target;
        // The parent gets one answer, that of the client's part. What the background part finds only updates caches.
        client.parent = waiting.parent.take();
        client.passed = waiting.passed & above;
        waiting.passed &= !above;
        let abandoned = Rc::new(Cell::new(false));
        waiting.query.trail.abandoned = Some(Rc::clone(&abandoned));
        holds(client.passed & waiting.passed == 0, "each step answers in one of the parts");
        holds(client.passed | waiting.passed == passed, "no step is left out");
        holds(waiting.parent.is_none(), "the client's part has the parent");
        Some(Detached { client, timeout, abandoned })
    }

    /// Returns the transaction nearest to the client, among this one and its parents, in which a step has set a client
    /// timeout.
    fn outermost_with_timeout(&mut self) -> Option<&mut Transaction> {
        let chain = core::iter::successors(Some(&*self), |transaction| transaction.parent.as_deref());
        let has_timeout = |(_, transaction): &(usize, &Transaction)| transaction.query.trail.timeout.is_some();
        let (level, _) = chain.enumerate().filter(has_timeout).last()?;
        (0..level).try_fold(self, |transaction, _| transaction.parent.as_deref_mut())
    }
}

/// Client's part of a transaction that was split because of a client timeout.
pub(crate) struct Detached {
    /// Transaction of the client.
    pub(crate) client: Box<Transaction>,
    /// Timeout, and the step that set it.
    pub(crate) timeout: ClientTimeout,
    /// Flag that tells the background part that the client no longer waits.
    pub(crate) abandoned: Rc<Cell<bool>>,
}

/// Bit mask of the steps above `step`.
pub(crate) const fn steps_above(step: usize) -> u64 {
    if step < u64::BITS as usize { (1 << step) - 1 } else { u64::MAX }
}

impl Transaction {
    pub(crate) fn enter_step(&mut self, step: usize, upwards: bool) {
        debug_assert!(step <= STEPS_MAX, "a chain has at most as many steps as a mask has bits");
        self.at = step;
        self.upwards = upwards;
        self.query.trail.step = step;
    }

    /// Converts the outcome of the I/O to a verdict, and stores a reply in the response.
    pub(crate) fn adopt_resolved(&mut self, resolved: &Resolved) -> Verdict {
        holds(self.at == self.query.trail.step, "the query is at the step that waited");
        let reply = match resolved {
            Resolved::Pass => return Verdict::Pass,
            Resolved::Fail(failure) => return Verdict::Fail(failure.clone()),
            Resolved::Reply(reply) => reply,
        };
        self.response.begin(&self.query);
        let adopted = reply
            .message()
            .map_err(|error| error.to_string())
            .and_then(|message| self.response.adopt(&message).map_err(|error| error.to_string()));
        match adopted {
            Ok(()) => {
                self.response.explain_upstream_failure();
                Verdict::Done
            }
            Err(cause) => Verdict::Fail(Failure::servfail(EdeCode::INVALID_DATA, cause)),
        }
    }

    /// Unwinds to the client's transaction after a panic in a subquery, and fails that transaction.
    pub(crate) fn unwind(self: &mut Box<Self>, failure: Failure) {
        while let Some(parent) = self.parent.take() {
            *self = parent;
        }
        holds(self.depth == 0, "the client's transaction is at the top");
        self.query.reset_question();
        self.response.fail(&self.query, failure);
    }
}
