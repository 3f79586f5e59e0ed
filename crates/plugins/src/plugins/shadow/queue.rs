//! Bounded queue from the workers to the background job.
//!
//! A worker neither waits nor takes a lock: the channel is an array of slots, and its receiver never sleeps in it.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use core::time::Duration;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use engine::{Instant, PeerInfo};

/// Maximum number of queries that wait for the job: eight seconds with the default of `max`.
const QUEUED_MAX: usize = 4096;
/// Maximum size in bytes of their messages together.
const QUEUED_BYTES_MAX: usize = 4 << 20;
/// Maximum size in bytes of one message. Answers of a cluster rarely have a tenth of it.
pub(super) const MESSAGE_MAX: usize = 8192;

/// Query that was answered, with the answer.
pub(super) struct Sample {
    pub(super) query: Box<[u8]>,
    pub(super) response: Box<[u8]>,
    pub(super) peer: PeerInfo,
    /// Time of the answer.
    pub(super) at: Instant,
    pub(super) since_1970: Duration,
}

impl Sample {
    fn len(&self) -> usize {
        self.query.len() + self.response.len()
    }
}

/// Numbers of waiting queries and of their bytes.
#[derive(Default)]
struct Waiting {
    samples: AtomicUsize,
    bytes: AtomicUsize,
}

/// End of the queue that the workers have.
pub(super) struct Entrance {
    sender: SyncSender<Sample>,
    waiting: Arc<Waiting>,
}

/// End of the queue that the job has.
pub(super) struct Exit {
    receiver: Receiver<Sample>,
    waiting: Arc<Waiting>,
}

/// Creates a queue.
pub(super) fn queue() -> (Entrance, Exit) {
    let (sender, receiver) = sync_channel(QUEUED_MAX);
    let waiting = Arc::new(Waiting::default());
    (Entrance { sender, waiting: Arc::clone(&waiting) }, Exit { receiver, waiting })
}

impl Entrance {
    /// Returns true if the queue is full, so that nobody copies a message for nothing.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.samples.load(Relaxed) >= QUEUED_MAX || self.waiting.bytes.load(Relaxed) >= QUEUED_BYTES_MAX
    }

    /// Appends a query. Returns false if the queue is full.
    pub(super) fn put(&self, sample: Sample) -> bool {
        let len = sample.len();
        // Count first: the job may take the query before this thread continues.
        self.waiting.samples.fetch_add(1, Relaxed);
        self.waiting.bytes.fetch_add(len, Relaxed);
        let is_put = self.sender.try_send(sample).is_ok();
        if !is_put {
            self.waiting.subtract(len);
        }
        is_put
    }
}

impl Exit {
    /// Takes the oldest query, if there is one.
    pub(super) fn take(&self) -> Option<Sample> {
        let sample = self.receiver.try_recv().ok()?;
        self.waiting.subtract(sample.len());
        Some(sample)
    }
}

impl Waiting {
    fn subtract(&self, len: usize) {
        self.samples.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(len, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(len: usize) -> Sample {
        let query = vec![0; len].into();
        let peer = PeerInfo::default();
        Sample { query, response: Box::default(), peer, at: Instant::from_nanos(0), since_1970: Duration::ZERO }
    }

    #[test]
    fn is_full_at_its_maximum_number_of_queries_or_bytes() {
        let (entrance, exit) = queue();
        assert!((0..QUEUED_MAX).all(|_| !entrance.is_full() && entrance.put(sample(1))));
        assert!(entrance.is_full() && !entrance.put(sample(1)));
        assert!(exit.take().is_some());
        assert!(!entrance.is_full() && entrance.put(sample(1)));
        assert_eq!(std::iter::from_fn(|| exit.take()).count(), QUEUED_MAX);

        let many = (0..QUEUED_MAX).take_while(|_| !entrance.is_full() && entrance.put(sample(MESSAGE_MAX))).count();
        assert_eq!(many, QUEUED_BYTES_MAX / MESSAGE_MAX);
        assert_eq!(std::iter::from_fn(|| exit.take()).count(), many);
        assert!(!entrance.is_full());
    }

    #[test]
    fn refuses_queries_after_the_job_has_ended() {
        let (entrance, exit) = queue();
        drop(exit);
        assert!(!entrance.put(sample(1)) && !entrance.is_full());
    }
}
