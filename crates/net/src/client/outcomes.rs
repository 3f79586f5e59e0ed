//! Outcomes of queries, and the tasks that wait for them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use foldhash::fast::RandomState;
use upstream::QueryId;

/// Queries that a task waits for.
pub(super) struct Outcomes<T>(RefCell<HashMap<QueryId, State<T>, RandomState>>);

enum State<T> {
    Pending(Option<Waker>),
    Ready(T),
}

impl<T> Default for Outcomes<T> {
    fn default() -> Self {
        Outcomes(RefCell::default())
    }
}

impl<T> Outcomes<T> {
    /// Adds a query that has been started.
    pub(super) fn expect(&self, query: QueryId) {
        self.0.borrow_mut().insert(query, State::Pending(None));
    }

    /// Keeps the outcome of a query, and wakes the task that waits for it.
    pub(super) fn complete(&self, query: QueryId, outcome: T) {
        if let Some(state) = self.0.borrow_mut().get_mut(&query)
            && let State::Pending(Some(waker)) = std::mem::replace(state, State::Ready(outcome))
        {
            waker.wake();
        }
    }

    /// Waits for the outcome of a query.
    pub(super) async fn wait(&self, query: QueryId) -> T {
        poll_fn(|context| self.poll(query, context)).await
    }

    /// Polls for the outcome of a query.
    pub(super) fn poll(&self, query: QueryId, context: &Context<'_>) -> Poll<T> {
        let mut states = self.0.borrow_mut();
        let state = states.entry(query).or_insert(State::Pending(None));
        match state {
            State::Pending(Some(known)) if known.will_wake(context.waker()) => Poll::Pending,
            State::Pending(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            State::Ready(_) => match states.remove(&query) {
                Some(State::Ready(outcome)) => Poll::Ready(outcome),
                _ => Poll::Pending,
            },
        }
    }

    /// Removes a query. Returns true if it was still pending.
    pub(super) fn forget(&self, query: QueryId) -> bool {
        matches!(self.0.borrow_mut().remove(&query), Some(State::Pending(_)))
    }
}
