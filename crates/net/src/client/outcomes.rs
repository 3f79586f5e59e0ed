//! Outcomes of queries, and the tasks that wait for them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use foldhash::fast::RandomState;
use host::invariant::{broken, holds};
use upstream::QueryId;

use super::replies::{Replies, Weigh};

/// Queries that a task waits for. The replies of those that have completed are counted.
pub(super) struct Outcomes<T> {
    states: RefCell<HashMap<QueryId, State<T>, RandomState>>,
    pub(super) replies: Rc<Replies>,
}

enum State<T> {
    Pending(Option<Waker>),
    Ready(T),
}

impl<T: Weigh> Outcomes<T> {
    pub(super) fn new(replies: &Rc<Replies>) -> Outcomes<T> {
        Outcomes { states: RefCell::default(), replies: Rc::clone(replies) }
    }

    /// Adds a query that has been started.
    pub(super) fn expect(&self, query: QueryId) {
        let former = self.states.borrow_mut().insert(query, State::Pending(None));
        holds(former.is_none(), "a query is expected once");
    }

    /// Keeps the outcome of a query, and wakes the task that waits for it.
    pub(super) fn complete(&self, query: QueryId, outcome: T) {
        let mut states = self.states.borrow_mut();
        // The query may have ended after the event was made.
        let Some(state) = states.get_mut(&query) else { return };
        if let State::Ready(former) = state {
            holds(!former.is_last(), "a query completes once");
        }
        self.replies.add(outcome.reply_len());
        match std::mem::replace(state, State::Ready(outcome)) {
            State::Pending(waker) => waker.into_iter().for_each(Waker::wake),
            State::Ready(former) => self.replies.remove(former.reply_len()),
        }
    }

    /// Waits for the outcome of a query.
    pub(super) async fn wait(&self, query: QueryId) -> T {
        poll_fn(|context| self.poll(query, context)).await
    }

    /// Polls for the outcome of a query.
    pub(super) fn poll(&self, query: QueryId, context: &Context<'_>) -> Poll<T> {
        let mut states = self.states.borrow_mut();
        let state = states.entry(query).or_insert(State::Pending(None));
        match state {
            State::Pending(Some(known)) if known.will_wake(context.waker()) => Poll::Pending,
            State::Pending(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            State::Ready(_) => {
                let Some(State::Ready(outcome)) = states.remove(&query) else {
                    broken("an outcome that was just found");
                    return Poll::Pending;
                };
                self.replies.remove(outcome.reply_len());
                Poll::Ready(outcome)
            }
        }
    }

    /// Removes a query. Returns true if it was still in flight.
    pub(super) fn forget(&self, query: QueryId) -> bool {
        match self.states.borrow_mut().remove(&query) {
            Some(State::Ready(outcome)) => {
                self.replies.remove(outcome.reply_len());
                !outcome.is_last()
            }
            state => state.is_some(),
        }
    }
}
