//! State of a query in the chain, apart from its question: the position, and what steps have recorded.

use core::any::Any;
use core::cell::{Cell, RefCell};
use core::net::SocketAddr;
use std::rc::Rc;

use host::Instant;
use host::invariant::holds;
use wire::{Name, OptionCode};

use crate::label_values::LabelValues;

/// Maximum number of steps in a chain. It exceeds the number of directives, and a set of steps fits into a `u64`.
pub const STEPS_MAX: usize = 64;

/// State of a query that belongs to one run through the chain.
#[derive(Default)]
pub(crate) struct Trail {
    /// Number of bytes of the name before the zone that matched the current step.
    pub(crate) zone_at: usize,
    /// Index of that zone among the zones of the step.
    pub(crate) zone_index: usize,
    /// True if the name changed and the response still contains the old question.
    pub(crate) renamed: bool,
    /// Index of the current step.
    pub(crate) step: usize,
    /// Client timeout that a step has set.
    pub(crate) timeout: Option<ClientTimeout>,
    /// Set to true when the client stops waiting. `None` if a client timeout is not possible.
    pub(crate) abandoned: Option<Rc<Cell<bool>>>,
    /// True in the client's part of a transaction whose client timeout has expired.
    pub(crate) timed_out: bool,
    pub(crate) notes: Notes,
    /// Values that steps have stored, with the index of the step.
    pub(crate) kept: Vec<(usize, Box<dyn Any>)>,
    /// EDNS options for upstreams.
    pub(crate) onward: Vec<(OptionCode, Box<[u8]>)>,
    /// True if a step changed the question, and has restored it since.
    pub(crate) was_rewritten: bool,
    /// Upstreams that were asked for this query.
    pub(crate) asked: Cell<Asked>,
    /// Name of the key that has signed the request, in lower case, if a plugin has verified it.
    pub(crate) signer: Option<Box<Name>>,
    /// Label values that plugins set while they answered this query.
    pub(crate) label_values: RefCell<LabelValues>,
}

impl Trail {
    /// Clears everything except the notes, and keeps the memory of the lists. It names each field, so that a new one
    /// cannot be forgotten and reach the next client.
    ///
    /// Notes are cleared by [`Notes::clear`], which knows the length of the chain: their array is larger than all
    /// other fields together.
    pub(crate) fn reset(&mut self) {
        let Trail {
            zone_at,
            zone_index,
            renamed,
            step,
            timeout,
            abandoned,
            timed_out,
            notes: _,
            kept,
            onward,
            was_rewritten,
            asked,
            signer,
            label_values,
        } = self;
        (*zone_at, *zone_index, *step) = (0, 0, 0);
        (*renamed, *timed_out, *was_rewritten) = (false, false, false);
        (*timeout, *abandoned, *signer) = (None, None, None);
        kept.clear();
        onward.clear();
        asked.set(Asked::default());
        label_values.get_mut().clear();
    }

    /// Continues at the step of `other`, with its notes, its options for upstreams and its labels.
    ///
    /// The rest belongs to the run that it is copied from: kept values have one owner, a client timeout has one client,
    /// and upstreams are counted where they were asked.
    pub(crate) fn continue_from(&mut self, other: &Trail) {
        self.reset();
        let Trail {
            zone_at,
            zone_index,
            step,
            notes,
            onward,
            label_values,
            renamed: _,
            timeout: _,
            abandoned: _,
            timed_out: _,
            kept: _,
            was_rewritten: _,
            asked: _,
            signer: _,
        } = other;
        (self.zone_at, self.zone_index, self.step) = (*zone_at, *zone_index, *step);
        self.notes.0 = notes.0;
        self.onward.clone_from(onward);
        self.label_values.get_mut().extend(label_values.borrow().clone());
    }
}

/// One `u64` for each step, which a plugin carries from one hook to the next.
pub(crate) struct Notes([u64; STEPS_MAX]);

impl Default for Notes {
    fn default() -> Self {
        Notes([0; STEPS_MAX])
    }
}

impl Notes {
    /// Clears the notes of the first `steps` steps.
    pub(crate) fn clear(&mut self, steps: usize) {
        holds(steps <= STEPS_MAX, "each step has a note");
        self.0[..steps.min(STEPS_MAX)].fill(0);
    }

    pub(crate) fn get(&self, step: usize) -> u64 {
        self.0[step]
    }

    pub(crate) fn set(&mut self, step: usize, word: u64) {
        self.0[step] = word;
    }
}

/// Upstreams that were asked for a query.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// Upstream that was asked last.
    pub(crate) last: Option<SocketAddr>,
    /// Number of attempts: times that one was asked.
    pub(crate) attempts: u8,
    /// True if others were asked before the last one.
    pub(crate) has_others: bool,
}

impl Asked {
    /// Adds those that were asked later.
    pub(crate) fn and(self, later: Asked) -> Asked {
        let differs = self.last.is_some() && later.last.is_some() && self.last != later.last;
        Asked {
            last: later.last.or(self.last),
            attempts: self.attempts.saturating_add(later.attempts),
            has_others: differs || self.has_others || later.has_others,
        }
    }
}

/// Client timeout (RFC 8767 §5) that a step has set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientTimeout {
    /// Index of the step.
    pub(crate) step: usize,
    /// Time when the client stops waiting.
    pub(crate) until: Instant,
}
