//! Totals of the last ten minutes, so that a status can show rates. The control thread reads them every ten seconds
//! from counters that exist anyway.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use metrics::{HistogramTotals, Registry};

use super::connection::Context;
use crate::cgroup::{self, Throttling};
use crate::process_metrics;

/// Interval between readings.
const INTERVAL: Duration = Duration::from_secs(10);
/// Number of readings: ten minutes.
const READINGS_MAX: usize = 61;
/// Period of rates and latencies: long enough for a quiet cluster, short enough to see a change.
pub(super) const RATE_WINDOW: Duration = Duration::from_secs(60);

/// Totals since the start of the process.
#[derive(Clone, Debug)]
pub(super) struct Totals {
    pub(super) at: Instant,
    /// Answers by response code.
    pub(super) codes: BTreeMap<String, u64>,
    pub(super) latency: HistogramTotals,
    /// Time to a reply, by upstream.
    pub(super) upstreams: BTreeMap<String, HistogramTotals>,
    pub(super) cache_hits: u64,
    pub(super) cache_misses: u64,
    pub(super) cache_stale: u64,
    /// Limits that were reached, by name.
    pub(super) limits: BTreeMap<String, u64>,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) throttling: Option<Throttling>,
}

impl Totals {
    /// Reads all totals.
    pub(super) fn read(registry: &Registry) -> Totals {
        let sum = |family: &str| registry.totals_by(family, "").into_values().sum();
        Totals {
            at: Instant::now(),
            codes: registry.totals_by("coredns_dns_responses_total", "rcode"),
            latency: registry
                .histograms_by("coredns_dns_request_duration_seconds", "")
                .into_values()
                .next()
                .unwrap_or_default(),
            upstreams: registry.histograms_by("coredns_proxy_request_duration_seconds", "to"),
            cache_hits: sum("coredns_cache_hits_total"),
            cache_misses: sum("coredns_cache_misses_total"),
            cache_stale: sum("coredns_cache_served_stale_total"),
            limits: registry.totals_by("portolan_limit_hits_total", "limit"),
            cpu_seconds: process_metrics::cpu_time(),
            throttling: cgroup::throttling(),
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
pub(super) async fn keep(context: Rc<Context>) {
    loop {
        let totals = Totals::read(&context.view.registry);
        context.history.borrow_mut().add(totals);
        tokio::time::sleep(INTERVAL).await;
    }
}
