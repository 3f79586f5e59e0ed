//! Totals of the last ten minutes, so that a status can show rates. The control thread reads them every ten seconds
//! from counters that exist anyway.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{HistogramTotals, Registry};

use crate::limits;
use process::cgroup::{self, Throttling};
use process::process_metrics;

/// Interval between readings.
const INTERVAL: Duration = Duration::from_secs(10);
/// Number of readings: ten minutes.
const READINGS_MAX: usize = POINTS_MAX + 1;
/// Number of times between readings.
pub(super) const POINTS_MAX: usize = 60;
/// Period of rates and latencies: long enough for a quiet cluster, short enough to see a change.
pub(super) const RATE_WINDOW: Duration = Duration::from_secs(60);

/// Number of readings that [`RATE_WINDOW`] needs: one more than fit into it, and one that may be late.
const RATE_READINGS: usize = 8;
/// Metric with the answers.
const ANSWERS: &str = "coredns_dns_responses_total";

/// Metric with the time to the replies of upstreams.
const REPLIES: &str = "coredns_proxy_request_duration_seconds";
/// Response codes that mean that clients get no answer.
pub(super) const FAILURES: [&str; 2] = ["SERVFAIL", "REFUSED"];

/// Totals since the start of the process.
#[derive(Clone, Debug)]
pub(super) struct Totals {
    pub(super) at: Instant,
    /// Answers by response code.
    pub(super) codes: BTreeMap<String, u64>,
    /// Answers by server, zone, view, plugin and response code. Only readings of [`RATE_WINDOW`] keep them: with many
    /// server blocks they are most of a reading.
    pub(super) answerers: BTreeMap<[String; 5], u64>,
    pub(super) latency: HistogramTotals,
    /// Time to a reply, by upstream.
    pub(super) upstreams: BTreeMap<String, HistogramTotals>,
    /// Replies with a response code that leaves clients without an answer, by upstream and code.
    pub(super) upstream_refusals: BTreeMap<[String; 2], u64>,
    /// Failed exchanges, by upstream.
    pub(super) upstream_failures: BTreeMap<String, u64>,
    /// Replies that match no query and are not late, by upstream.
    pub(super) upstream_unwanted: BTreeMap<String, u64>,
    pub(super) cache_hits: u64,
    pub(super) cache_misses: u64,
    pub(super) cache_stale: u64,
    /// Limits that were reached, by name.
    pub(super) limits: BTreeMap<String, u64>,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) throttling: Option<Throttling>,
}

impl Totals {
    /// Reads all totals.
    pub(super) fn read(registry: &Registry) -> Totals {
        let sum = |family: &str| registry.totals_by(family, "").into_values().sum();
        Totals {
            at: Instant::now(),
            codes: registry.totals_by(ANSWERS, "rcode"),
            answerers: registry.totals_by_all(ANSWERS, ["server", "zone", "view", "plugin", "rcode"]),
            latency: registry
                .histograms_by("coredns_dns_request_duration_seconds", "")
                .into_values()
                .next()
                .unwrap_or_default(),
            upstreams: registry.histograms_by(REPLIES, "to"),
            upstream_refusals: upstream_refusals(registry),
            upstream_failures: registry.totals_by("portolan_upstream_failures_total", "to"),
            upstream_unwanted: upstream_unwanted(registry),
            cache_hits: sum("coredns_cache_hits_total"),
            cache_misses: sum("coredns_cache_misses_total"),
            cache_stale: sum("coredns_cache_served_stale_total"),
            limits: limits::read(registry),
            cpu_seconds: process_metrics::cpu_time(),
            memory_bytes: process_metrics::resident_bytes(),
            throttling: cgroup::throttling(),
        }
    }
}

fn upstream_refusals(registry: &Registry) -> BTreeMap<[String; 2], u64> {
    let by_code = registry.histograms_by_all(REPLIES, ["to", "rcode"]).into_iter();
    let refusals = by_code.filter(|([_, rcode], _)| FAILURES.contains(&rcode.as_str()));
    host::sorting::map(refusals.map(|(labels, replies)| (labels, replies.count())))
}

fn upstream_unwanted(registry: &Registry) -> BTreeMap<String, u64> {
    let mut unwanted = BTreeMap::new();
    let by_reason = registry.totals_by_all("portolan_upstream_unwanted_replies_total", ["to", "reason"]);
    for ([to, _], replies) in by_reason.into_iter().filter(|([_, reason], _)| reason != "late") {
        *unwanted.entry(to).or_default() += replies;
    }
    unwanted
}

/// Figures of the time between two readings. Those that nothing measured are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    /// Answers per second.
    pub(super) rate: Option<f64>,
    /// Upper bound of the 99th percentile of the latency in seconds.
    pub(super) p99: Option<f64>,
    /// Share of answers with SERVFAIL in percent.
    pub(super) failures: Option<f64>,
    /// Memory in bytes.
    pub(super) memory: Option<f64>,
}

impl Point {
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    fn between(before: &Totals, now: &Totals) -> Point {
        let sum = |totals: &Totals| totals.codes.values().sum::<u64>();
        let failed = |totals: &Totals| totals.codes.get("SERVFAIL").copied().unwrap_or_default();
        let (answers, failures) = (sum(now) - sum(before), failed(now) - failed(before));
        let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
        let p99 = now.latency.since(&before.latency).quantile(0.99);
        Point {
            rate: (seconds > 0.0).then(|| answers as f64 / seconds),
            p99: p99.map(|(above, at_most)| at_most.unwrap_or(above)),
            failures: (answers > 0).then(|| failures as f64 / answers as f64 * 100.0),
            memory: now.memory_bytes.map(|bytes| bytes as f64),
        }
    }
}

/// Readings, oldest first.
#[derive(Default)]
pub(super) struct History {
    readings: VecDeque<Totals>,
}

impl History {
    fn add(&mut self, totals: Totals) {
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back(totals);
        if let Some(old) = self.readings.iter_mut().rev().nth(RATE_READINGS) {
            old.answerers.clear();
        }
    }

    /// Returns the figures between the readings, oldest first.
    pub(super) fn points(&self) -> Vec<Point> {
        self.readings
            .iter()
            .zip(self.readings.iter().skip(1))
            .map(|(before, now)| Point::between(before, now))
            .collect()
    }

    /// Returns the latest reading that is at least `window` older than `now`, or the oldest one.
    pub(super) fn before(&self, now: Instant, window: Duration) -> Option<&Totals> {
        let is_old = |totals: &&Totals| now.duration_since(totals.at) >= window;
        self.readings.iter().rev().find(is_old).or(self.readings.front())
    }

    /// Returns the oldest reading.
    pub(super) fn oldest(&self) -> Option<&Totals> {
        self.readings.front()
    }
}

/// Adds readings until aborted.
pub(super) async fn keep(history: Rc<RefCell<History>>, registry: Arc<Registry>) {
    loop {
        let totals = Totals::read(&registry);
        history.borrow_mut().add(totals);
        tokio::time::sleep(INTERVAL).await;
    }
}
