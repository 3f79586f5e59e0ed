//! What leaves beside the answers: queries put records in here, a job takes them out, and nobody waits for anybody.
//!
//! Records are octets already, one behind the other in one buffer: to put one there costs a lock that nobody holds for
//! longer than it takes to write a record.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records on their way out.
pub(crate) struct Outlet {
    waiting: Mutex<Waiting>,
    octets_max: usize,
    /// So many octets should leave at once.
    enough: usize,
}

#[derive(Default)]
struct Waiting {
    octets: Vec<u8>,
    records: u64,
    lost: u64,
    taker: Option<Waker>,
}

/// What was taken out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// How many records it is.
    pub(crate) records: u64,
    /// How many were lost since somebody last took some out: there was no room.
    pub(crate) lost: u64,
}

impl Outlet {
    /// In which records of so many octets together may wait, and from which `enough` of them leave before their time.
    pub(crate) fn new(octets_max: usize, enough: usize) -> Outlet {
        Outlet { waiting: Mutex::default(), octets_max, enough }
    }

    /// Puts a record in, which `write` appends to the octets that it is given; or loses it, if there is no room.
    pub(crate) fn put(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut waiting = self.lock();
        let before = waiting.octets.len();
        if before >= self.octets_max {
            waiting.lost += 1;
            return;
        }
        write(&mut waiting.octets);
        if waiting.octets.len() > self.octets_max {
            waiting.octets.truncate(before);
            waiting.lost += 1;
            return;
        }
        waiting.records += 1;
        if waiting.octets.len() >= self.enough {
            waiting.taker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Takes all records out, in the order in which they came; what was in `octets` is gone.
    pub(crate) fn take(&self, octets: &mut Vec<u8>) -> Taken {
        octets.clear();
        let mut waiting = self.lock();
        core::mem::swap(&mut waiting.octets, octets);
        Taken { records: core::mem::take(&mut waiting.records), lost: core::mem::take(&mut waiting.lost) }
    }

    /// How many records were lost since somebody last asked; what waits goes on waiting.
    pub(crate) fn take_lost(&self) -> u64 {
        core::mem::take(&mut self.lock().lost)
    }

    /// Comes when there are so many records that they should leave at once.
    pub(crate) async fn has_enough(&self) {
        poll_fn(|context| {
            let mut waiting = self.lock();
            if waiting.octets.len() >= self.enough {
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

/// Which of two futures came first; the first one, if both are there.
pub(crate) enum First<A, B> {
    One(A),
    Other(B),
}

/// Waits for one future or the other; neither is dropped, so that it can be waited for again.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn put(outlet: &Outlet, text: &str) {
        outlet.put(|octets| octets.extend_from_slice(text.as_bytes()));
    }

    #[test]
    fn what_has_no_room_is_lost_and_counted() {
        let outlet = Outlet::new(6, 6);
        for text in ["abc", "defg", "de", "", "f", "g"] {
            put(&outlet, text);
        }
        let mut octets = b"before".to_vec();
        assert_eq!(outlet.take(&mut octets), Taken { records: 4, lost: 2 });
        assert_eq!(octets, b"abcdef");
        assert_eq!(outlet.take(&mut octets), Taken::default());
        put(&outlet, "again");
        assert_eq!(outlet.take(&mut octets), Taken { records: 1, lost: 0 });
        assert_eq!(octets, b"again");
    }
}
