//! What is known about failures of an upstream.

use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::{ExchangeError, Instant};

/// Beginning of the error of a query over TCP to an upstream that is usually asked over UDP.
pub const OVER_TCP: &str = "over TCP: ";

/// Outcome of the health checks of an upstream, and its last failure.
#[derive(Default)]
pub(super) struct Outage(Mutex<Last>);

#[derive(Clone, Default)]
pub(super) struct Last {
    /// Time at which the upstream went down.
    pub(super) since: Option<Instant>,
    pub(super) error: Option<String>,
    /// Time and error of the last exchange that failed.
    pub(super) failed: Option<(Instant, String)>,
}

impl Outage {
    /// Records the outcome of a health check.
    pub(super) fn probed(&self, outcome: &Result<(), ExchangeError>) {
        self.lock().error = outcome.as_ref().err().map(ToString::to_string);
    }

    /// Records that the upstream went down, or is up again.
    pub(super) fn changed(&self, down_since: Option<Instant>) {
        self.lock().since = down_since;
    }

    /// Records a failed exchange, unless somebody else uses the record: a worker does not wait for it.
    /// `over` comes before the error, and is empty for the usual transport of the upstream.
    pub(super) fn failed(&self, now: Instant, over: &str, error: &ExchangeError) {
        if let Ok(mut last) = self.0.try_lock() {
            last.failed = Some((now, format!("{over}{error}")));
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Last> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_health_check_and_the_last_failed_exchange() {
        let (outage, now) = (Outage::default(), Instant::from_nanos(7));
        outage.probed(&Err(ExchangeError::Closed));
        outage.changed(Some(now));
        outage.failed(now, OVER_TCP, &ExchangeError::Closed);
        let Last { since, error, failed } = outage.lock().clone();
        assert_eq!((since, error), (Some(now), Some(ExchangeError::Closed.to_string())));
        assert_eq!(failed, Some((now, format!("over TCP: {}", ExchangeError::Closed))));
        // Up again: the failed exchange stays known.
        outage.probed(&Ok(()));
        outage.changed(None);
        let Last { since, error, failed } = outage.lock().clone();
        assert_eq!((since, error, failed.is_some()), (None, None, true));
    }
}
