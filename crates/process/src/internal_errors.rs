//! Broken invariants of this process: a metric for each place, and a line of the log at most once a minute.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use host::invariant::Place;
use metrics::{Kind, Metric, Registry};

static INTERNAL_ERRORS: Metric = Metric {
    name: "portolan_internal_errors_total",
    help: "Broken invariants by place in the source: faults of this program that cost one query or one connection \
           each.",
    kind: Kind::Counter,
    labels: &["place"],
};

/// Metrics of broken invariants, for the documentation.
pub static INTERNAL_ERROR_METRICS: [&Metric; 1] = [&INTERNAL_ERRORS];

/// Minimum time between two lines of the log. A broken invariant may recur with each query.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Counts and logs broken invariants from now on.
pub fn publish(registry: &Arc<Registry>) {
    // Alerts on an increase need a series with the value 0.
    registry.gauge(&INTERNAL_ERRORS, &[""], || Some(0.0));
    let (registry, start, log_at) = (Arc::clone(registry), Instant::now(), AtomicU64::new(0));
    host::invariant::observe(Box::new(move |place| {
        static REGISTER: [Once; host::invariant::PLACES_MAX] = [const { Once::new() }; host::invariant::PLACES_MAX];
        if let Some(once) = REGISTER.get(place.index()) {
            once.call_once(|| export(&registry, place));
        }
        if is_due(&log_at, start.elapsed()) {
            tracing::error!(
                "Internal error at {place}, {} since the start: expected {}. One query or connection was given up; \
                 report this line with the version",
                place.count(),
                place.what()
            );
        }
    }));
}

#[allow(clippy::cast_precision_loss, reason = "exact below 2^53")]
fn export(registry: &Registry, place: &'static Place) {
    registry.gauge(&INTERNAL_ERRORS, &[&place.to_string()], || Some(place.count() as f64));
}

/// Returns true at most once per [`LOG_INTERVAL`]. `at` is the earliest time of the next line in milliseconds.
fn is_due(at: &AtomicU64, now: Duration) -> bool {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (now, next) = (milliseconds(now), milliseconds(now + LOG_INTERVAL));
    at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| (at <= now).then_some(next)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_once_a_minute() {
        let at = AtomicU64::new(0);
        let due = [0, 1, 59, 60, 61, 119, 120].map(|seconds| is_due(&at, Duration::from_secs(seconds)));
        assert_eq!(due, [true, false, false, true, false, false, true]);
    }
}
