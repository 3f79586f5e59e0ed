//! Heartbeats of the worker threads, for a watchdog.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot::{Receiver, channel, error::TryRecvError};

use crate::worker::{Probe, Probes};

/// Asks the workers again and again to respond, without waiting for them.
pub struct Heartbeats(Vec<Heart>);

/// State of one worker.
struct Heart {
    probes: Sender<Probe>,
    /// Response that has not arrived yet.
    pending: Option<Receiver<u32>>,
    /// Thread of the worker and the time of its last response; `None` until the first one.
    last: Option<(u32, Instant)>,
}

impl Probes {
    /// Returns the heartbeats of the workers.
    #[must_use]
    pub fn heartbeats(&self) -> Heartbeats {
        Heartbeats(self.0.iter().map(|probes| Heart { probes: probes.clone(), pending: None, last: None }).collect())
    }
}

impl Heartbeats {
    /// Takes the responses that have arrived and asks again. Returns the thread that has not responded for the longest
    /// time, and this time, unless all have responded since the last call. A worker counts from its first response on.
    pub fn check(&mut self, now: Instant) -> Option<(u32, Duration)> {
        let late = self.0.iter_mut().filter_map(|heart| heart.check(now));
        late.max_by_key(|(_, time)| *time)
    }
}

impl Heart {
    fn check(&mut self, now: Instant) -> Option<(u32, Duration)> {
        match self.pending.as_mut().map(Receiver::try_recv) {
            Some(Ok(thread)) => {
                self.pending = None;
                self.last = Some((thread, now));
            }
            // The worker has ended, or dropped the probe.
            Some(Err(TryRecvError::Closed)) => self.pending = None,
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        if self.pending.is_none() {
            let (probe, response) = channel();
            // The queue is full if somebody else asks at this moment: try again next time.
            self.pending = self.probes.try_send(probe).ok().map(|()| response);
        }
        let (thread, at) = self.last?;
        let late = now.duration_since(at);
        (!late.is_zero()).then_some((thread, late))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_thread_that_has_not_responded_for_the_longest_time() {
        let ((first, mut of_first), (second, mut of_second)) =
            (tokio::sync::mpsc::channel(1), tokio::sync::mpsc::channel(1));
        let mut hearts = Probes(vec![first, second]).heartbeats();
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let respond =
            |probes: &mut tokio::sync::mpsc::Receiver<Probe>, thread| probes.try_recv().unwrap().send(thread).unwrap();
        assert_eq!(hearts.check(at(0)), None, "no response yet");
        assert_eq!(hearts.check(at(500)), None);
        respond(&mut of_first, 11);
        respond(&mut of_second, 12);
        assert_eq!(hearts.check(at(1000)), None);
        respond(&mut of_first, 11);
        assert_eq!(hearts.check(at(1500)), Some((12, Duration::from_millis(500))));
        assert_eq!(hearts.check(at(2000)), Some((12, Duration::from_millis(1000))));
        respond(&mut of_second, 12);
        assert_eq!(hearts.check(at(2500)), Some((11, Duration::from_millis(1000))));
        drop(of_first);
        assert_eq!(hearts.check(at(9000)), Some((11, Duration::from_millis(7500))), "a worker that has ended");
    }
}
