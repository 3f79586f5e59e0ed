//! Buffer for records that leave the server beside the answers: queries append, one background job drains, and queries
//! never wait for the job.
//!
//! Records are serialised back to back in one buffer. Appending takes a lock that is held only while one
//! record is written.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

use host::invariant::holds;

/// Bounded buffer of serialised records on their way out.
pub(crate) struct Outlet {
    waiting: Mutex<Waiting>,
    bytes_max: usize,
    /// Number of bytes from which the buffer should be drained at once.
    enough: usize,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    records: u64,
    lost: u64,
    taker: Option<Waker>,
}

/// Result of draining the buffer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Drained {
    /// Number of records.
    pub(crate) records: u64,
    /// Number of records dropped since the last call because the buffer was full.
    pub(crate) lost: u64,
}

impl Outlet {
    /// Creates a buffer for at most `bytes_max` bytes. From `enough` bytes on, the job is woken before its next
    /// interval.
    pub(crate) fn new(bytes_max: usize, enough: usize) -> Outlet {
        Outlet { waiting: Mutex::default(), bytes_max, enough }
    }

    /// Appends a record with `write`, which gets the buffer to append to. Drops and counts the record if it does not
    /// fit.
    pub(crate) fn put(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut waiting = self.lock();
        let before = waiting.bytes.len();
        if before >= self.bytes_max {
            waiting.lost += 1;
            return;
        }
        write(&mut waiting.bytes);
        holds(waiting.bytes.len() >= before, "a record is appended");
        if waiting.bytes.len() > self.bytes_max {
            waiting.bytes.truncate(before);
            waiting.lost += 1;
            return;
        }
        waiting.records += 1;
        holds(waiting.bytes.len() <= self.bytes_max, "the buffer is bounded");
        if waiting.bytes.len() >= self.enough {
            waiting.taker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Moves all records, oldest first, to the given buffer, whose previous content is discarded.
    pub(crate) fn drain(&self, bytes: &mut Vec<u8>) -> Drained {
        bytes.clear();
        let mut waiting = self.lock();
        holds(waiting.records > 0 || waiting.bytes.is_empty(), "each byte belongs to a record");
        core::mem::swap(&mut waiting.bytes, bytes);
        Drained { records: core::mem::take(&mut waiting.records), lost: core::mem::take(&mut waiting.lost) }
    }

    /// Returns the number of records dropped since the last call. Buffered records stay.
    pub(crate) fn take_lost(&self) -> u64 {
        core::mem::take(&mut self.lock().lost)
    }

    /// Completes when the buffer holds enough bytes to be drained at once.
    pub(crate) async fn has_enough(&self) {
        poll_fn(|context| {
            let mut waiting = self.lock();
            if waiting.bytes.len() >= self.enough {
                return Poll::Ready(());
            }
            waiting.taker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Result of [`first`]: the future that completed. If both are ready, the first one wins.
pub(crate) enum First<A, B> {
    One(A),
    Other(B),
}

/// Waits until one of two futures completes. Neither is dropped, so the other can be awaited again.
pub(crate) async fn first<A, B>(
    one: &mut (impl Future<Output = A> + Unpin),
    other: &mut (impl Future<Output = B> + Unpin),
) -> First<A, B> {
    poll_fn(|context: &mut Context<'_>| {
        if let Poll::Ready(value) = Pin::new(&mut *one).poll(context) {
            return Poll::Ready(First::One(value));
        }
        Pin::new(&mut *other).poll(context).map(First::Other)
    })
    .await
}

/// Waits until one of several futures completes, and returns its position with its value. The others can be awaited
/// again.
pub(crate) fn any<F: Future + Unpin>(futures: &mut [F]) -> impl Future<Output = (usize, F::Output)> + Unpin {
    poll_fn(|context: &mut Context<'_>| {
        let mut each = futures.iter_mut().enumerate();
        each.find_map(|(at, future)| match Pin::new(future).poll(context) {
            Poll::Ready(value) => Some((at, value)),
            Poll::Pending => None,
        })
        .map_or(Poll::Pending, Poll::Ready)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(outlet: &Outlet, text: &str) {
        outlet.put(|bytes| bytes.extend_from_slice(text.as_bytes()));
    }

    #[test]
    fn drops_and_counts_records_that_do_not_fit() {
        let outlet = Outlet::new(6, 6);
        for text in ["abc", "defg", "de", "", "f", "g"] {
            put(&outlet, text);
        }
        let mut bytes = b"before".to_vec();
        assert_eq!(outlet.drain(&mut bytes), Drained { records: 4, lost: 2 });
        assert_eq!(bytes, b"abcdef");
        assert_eq!(outlet.drain(&mut bytes), Drained::default());
        put(&outlet, "again");
        assert_eq!(outlet.drain(&mut bytes), Drained { records: 1, lost: 0 });
        assert_eq!(bytes, b"again");
    }
}
