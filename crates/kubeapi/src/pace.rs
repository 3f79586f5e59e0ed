//! How hard an API server is asked: so many requests in a second, so many at a time.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use cluster::Pace;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// Lets requests pass at a pace.
pub(crate) struct Gate {
    pace: Pace,
    /// When the next request would go out if all had kept their distance; a burst runs ahead of that.
    due: Cell<Instant>,
    in_flight: Option<Arc<Semaphore>>,
}

/// One of the requests that may be unanswered at a time; dropped when it is answered.
pub(crate) type Permit = Option<OwnedSemaphorePermit>;

impl Gate {
    pub(crate) fn new(pace: Pace) -> Gate {
        let most = usize::try_from(pace.in_flight).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let in_flight = (most > 0).then(|| Arc::new(Semaphore::new(most)));
        Gate { pace, due: Cell::new(Instant::now()), in_flight }
    }

    /// Waits until a request may go out; tells how long the pace, not the others in flight, made it wait.
    pub(crate) async fn pass(&self) -> (Permit, Duration) {
        let permit = match &self.in_flight {
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        let wait = self.reserve(Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
        (permit, wait)
    }

    /// Takes the next place in the row; tells how far from now it is.
    fn reserve(&self, now: Instant) -> Duration {
        let Pace { every, burst, .. } = self.pace;
        let due = self.due.get().max(now);
        self.due.set(due.checked_add(every).unwrap_or(due));
        due.duration_since(now).saturating_sub(every.saturating_mul(burst.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_out_at_once_and_then_one_at_a_time() {
        let gate = Gate::new(Pace { every: Duration::from_millis(200), burst: 3, in_flight: 0 });
        let start = gate.due.get();
        // milliseconds since the start, and those to wait
        for (at, wait) in
            [(0, 0), (0, 0), (0, 0), (0, 200), (0, 400), (400, 200), (2000, 0), (2000, 0), (2000, 0), (2000, 200)]
        {
            assert_eq!(gate.reserve(start + Duration::from_millis(at)).as_millis(), wait, "at {at}");
        }
    }

    #[test]
    fn no_pace_is_no_wait() {
        let gate = Gate::new(Pace::default());
        let now = gate.due.get();
        assert!((0..1000).all(|_| gate.reserve(now).is_zero()) && gate.in_flight.is_none());
    }

    #[test]
    fn a_pace_of_ages_is_none_to_overflow() {
        let gate = Gate::new(Pace { every: Duration::MAX, burst: u32::MAX, in_flight: 1 });
        let now = gate.due.get();
        assert!((0..3).all(|_| gate.reserve(now).is_zero()));
    }
}
