//! Client-side rate limiting of requests to an API server: a maximum rate with bursts, and a maximum number in flight.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use cluster::RateLimit;
use host::invariant::{Expected as _, holds};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// Rate limiter.
pub(crate) struct RateLimiter {
    rate_limit: RateLimit,
    /// Time of the next request if all requests were evenly spaced. A burst may run ahead of it.
    due: Cell<Instant>,
    in_flight: Option<Arc<Semaphore>>,
}

/// Slot of a request in flight, released when dropped. `None` if the number is not limited.
pub(crate) type Permit = Option<OwnedSemaphorePermit>;

impl RateLimiter {
    pub(crate) fn new(rate_limit: RateLimit) -> RateLimiter {
        let most = usize::try_from(rate_limit.in_flight).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let in_flight = (most > 0).then(|| Arc::new(Semaphore::new(most)));
        RateLimiter { rate_limit, due: Cell::new(Instant::now()), in_flight }
    }

    /// Waits until a request may be sent. Returns how long the rate limit delayed it, without the time spent waiting
    /// for a free slot.
    ///
    /// The slot comes first, and the request keeps it while the rate limit delays it. No other request could use the
    /// slot: its send time would be later. In the reverse order, requests that wait for a slot would have passed the
    /// rate limit, and would be sent as a burst when slots become free.
    pub(crate) async fn pass(&self) -> (Permit, Duration) {
        let permit = match &self.in_flight {
            Some(permits) => {
                Arc::clone(permits).acquire_owned().await.ok().expected("a permit, since no one closes them")
            }
            None => None,
        };
        let wait = self.reserve(Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
        (permit, wait)
    }

    /// Reserves the next send time and returns the delay until then.
    fn reserve(&self, now: Instant) -> Duration {
        let RateLimit { every, burst, .. } = self.rate_limit;
        let due = self.due.get().max(now);
        self.due.set(due.checked_add(every).unwrap_or(due));
        holds(now <= due && due <= self.due.get(), "a request is due after the one before");
        due.duration_since(now).saturating_sub(every.saturating_mul(burst.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_a_burst_at_once_and_then_one_request_per_interval() {
        let limiter = RateLimiter::new(RateLimit { every: Duration::from_millis(200), burst: 3, in_flight: 0 });
        let start = limiter.due.get();
        // (milliseconds since the start, expected delay in milliseconds)
        for (at, wait) in
            [(0, 0), (0, 0), (0, 0), (0, 200), (0, 400), (400, 200), (2000, 0), (2000, 0), (2000, 0), (2000, 200)]
        {
            assert_eq!(limiter.reserve(start + Duration::from_millis(at)).as_millis(), wait, "at {at}");
        }
    }

    #[test]
    fn does_not_wait_without_a_limit() {
        let limiter = RateLimiter::new(RateLimit::default());
        let now = limiter.due.get();
        assert!((0..1000).all(|_| limiter.reserve(now).is_zero()) && limiter.in_flight.is_none());
    }

    #[test]
    fn does_not_overflow_with_the_longest_interval() {
        let limiter = RateLimiter::new(RateLimit { every: Duration::MAX, burst: u32::MAX, in_flight: 1 });
        let now = limiter.due.get();
        assert!((0..3).all(|_| limiter.reserve(now).is_zero()));
    }
}
