//! Bytes of replies that have arrived from upstreams and that no query has taken yet.
//!
//! A reply waits for the task of its query, and the beginning of a long one waits for its rest. Without a bound, a
//! client that asks for thousands of long answers makes this server read all of them at once:
//!
//! - If [`WAITING_MAX`] bytes of complete replies wait on a thread, its readers let the other tasks run before they
//!   read on. The tasks take the replies, and the upstream waits meanwhile.
//! - What has arrived of incomplete replies counts against a budget of the process. If it is used up, the reply that
//!   grows is given up, because the others are nearer to their end.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use engine::ExchangeReply;
use host::invariant::holds;
use hyper::body::{Body, Bytes, Frame};
use metrics::{Counters, Registry};
use upstream::QueryError;
use wire::Reply;

use crate::limits::{Limits, REPLIES_MAX};

/// Bytes of complete replies of one thread that may wait for the tasks of their queries: one of the maximum length. A
/// thread takes hundreds of usual length at once.
const WAITING_MAX: usize = 64 << 10;
/// Bytes of an incomplete reply that are not counted. Most replies are shorter.
const UNCOUNTED_MAX: usize = 4 << 10;

/// Budget of the process.
#[derive(Debug)]
pub(crate) struct ReplyBudget {
    used: AtomicUsize,
    max: usize,
}

impl ReplyBudget {
    /// Creates a budget of `max` bytes.
    pub(crate) fn new(max: usize) -> Arc<ReplyBudget> {
        Arc::new(ReplyBudget { used: AtomicUsize::new(0), max })
    }

    /// Returns bytes that were counted.
    fn release(&self, bytes: usize) {
        let used = self.used.fetch_sub(bytes, Ordering::Relaxed);
        holds(bytes <= used, "bytes that are returned to the budget were counted");
    }
}

impl Default for ReplyBudget {
    fn default() -> Self {
        ReplyBudget { used: AtomicUsize::new(0), max: REPLIES_MAX }
    }
}

/// Replies of one thread.
pub(crate) struct Replies {
    budget: Arc<ReplyBudget>,
    /// Bytes of complete replies that wait for their tasks.
    waiting: Cell<usize>,
    counters: Counters,
    limits: Limits,
}

impl Replies {
    /// Creates the count of one thread.
    pub(crate) fn new(budget: Arc<ReplyBudget>, registry: &Registry) -> Rc<Replies> {
        let (counters, limits) = (registry.counters(), Limits::new(registry));
        Rc::new(Replies { budget, waiting: Cell::new(0), counters, limits })
    }

    /// Returns true if the tasks of the queries have to run before more is read. Counts it.
    pub(super) fn must_wait(&self) -> bool {
        debug_assert!(
            self.waiting.get() <= self.budget.used.load(Ordering::Relaxed),
            "replies that wait are a part of all"
        );
        let is_full = self.waiting.get() >= WAITING_MAX;
        if is_full {
            self.counters.count(self.limits.replies);
        }
        is_full
    }

    /// Counts a complete reply that waits for its task.
    pub(super) fn add(&self, bytes: usize) {
        self.waiting.set(self.waiting.get() + bytes);
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Stops to count a reply, because its task takes it or has ended.
    pub(super) fn remove(&self, bytes: usize) {
        holds(bytes <= self.waiting.get(), "a reply that a task takes was counted");
        self.waiting.set(self.waiting.get().saturating_sub(bytes));
        self.budget.release(bytes);
    }

    fn reserve(&self, bytes: usize) -> Result<(), OverBudgetError> {
        let used = self.budget.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used <= self.budget.max {
            return Ok(());
        }
        self.budget.release(bytes);
        self.counters.count(self.limits.replies);
        Err(OverBudgetError)
    }
}

/// Error of a reply that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many long responses are being received")]
pub(super) struct OverBudgetError;

impl From<OverBudgetError> for QueryError {
    fn from(error: OverBudgetError) -> Self {
        QueryError::Network { during: "read", error: error.to_string() }
    }
}

/// Bytes of incomplete replies on one connection or stream. Dropping it returns them to the budget.
pub(super) struct Incomplete {
    replies: Rc<Replies>,
    counted: usize,
}

impl Incomplete {
    pub(super) fn new(replies: &Rc<Replies>) -> Incomplete {
        Incomplete { replies: Rc::clone(replies), counted: 0 }
    }

    /// Returns true if the tasks of the queries have to run before more is read. Counts it.
    pub(super) fn must_wait(&self) -> bool {
        self.replies.must_wait()
    }

    /// Counts this many bytes instead of those before.
    ///
    /// # Errors
    /// The budget has no room for them. The owner must drop them.
    pub(super) fn set(&mut self, bytes: usize) -> Result<(), OverBudgetError> {
        let counted = bytes.saturating_sub(UNCOUNTED_MAX);
        match counted.checked_sub(self.counted) {
            Some(more) => self.replies.reserve(more)?,
            None => self.replies.budget.release(self.counted - counted),
        }
        self.counted = counted;
        holds(self.counted <= bytes, "no more bytes are counted than have arrived");
        Ok(())
    }
}

impl Drop for Incomplete {
    fn drop(&mut self) {
        self.replies.budget.release(self.counted);
    }
}

/// Body of a response whose bytes are counted until it is dropped.
pub(crate) struct CountedBody<B> {
    body: B,
    length: usize,
    incomplete: Incomplete,
}

impl<B> CountedBody<B> {
    pub(crate) fn new(body: B, replies: &Rc<Replies>) -> CountedBody<B> {
        CountedBody { body, length: 0, incomplete: Incomplete::new(replies) }
    }
}

impl<B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static> + Unpin> Body for CountedBody<B> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else { return Poll::Ready(None) };
        let frame = frame.map_err(io::Error::other)?;
        self.length += frame.data_ref().map_or(0, Bytes::len);
        let length = self.length;
        self.incomplete.set(length).map_err(io::Error::other)?;
        Poll::Ready(Some(Ok(frame)))
    }
}

/// Outcome that a task waits for.
pub(super) trait Weigh {
    /// Returns the bytes of its reply, if it has one.
    fn reply_len(&self) -> usize;

    /// Returns true if the query has completed with this outcome.
    fn is_last(&self) -> bool {
        true
    }
}

impl Weigh for Result<ExchangeReply, QueryError> {
    fn reply_len(&self) -> usize {
        self.as_ref().map_or(0, |reply| reply.reply.bytes().len())
    }
}

impl Weigh for Result<Reply, QueryError> {
    fn reply_len(&self) -> usize {
        self.as_ref().map_or(0, |reply| reply.bytes().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_wait_while_a_long_reply_waits() {
        let budget = ReplyBudget::new(1 << 20);
        let replies = Replies::new(Arc::clone(&budget), &Registry::new());
        replies.add(WAITING_MAX - 1);
        assert!(!replies.must_wait());
        replies.add(1);
        assert!(replies.must_wait());
        replies.remove(WAITING_MAX - 1);
        replies.remove(1);
        assert!(!replies.must_wait());
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn incomplete_replies_share_a_budget() {
        let registry = Registry::new();
        let budget = ReplyBudget::new(100 << 10);
        let replies = Replies::new(Arc::clone(&budget), &registry);
        let [mut first, mut second] = [(); 2].map(|()| Incomplete::new(&replies));
        assert_eq!(first.set(64 << 10), Ok(()));
        assert_eq!(second.set(UNCOUNTED_MAX), Ok(()));
        assert_eq!(second.set(60 << 10), Err(OverBudgetError));
        assert_eq!(registry.read(replies.limits.replies), 1);
        assert_eq!(first.set(0), Ok(()), "a complete reply");
        assert_eq!(second.set(60 << 10), Ok(()));
        drop((first, second));
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
