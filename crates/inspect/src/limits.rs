//! Counters of reached limits: those of the server, and those of plugins, which count them in metrics of their own.

use std::collections::BTreeMap;

use metrics::Registry;

/// Counter of a reached limit.
struct LimitCounter {
    /// Metric.
    metric: &'static str,
    limit: Limit,
}

/// Name of the limit that a metric counts.
enum Limit {
    /// This one.
    Is(&'static str),
    /// The value of a label, after a prefix.
    Named { label: &'static str, prefix: &'static str },
    /// This one, for one value of a label. Other values count something else.
    For { label: &'static str, value: &'static str, name: &'static str },
}

/// Every counter of a reached limit. A test compares it with all metrics.
const COUNTERS: [LimitCounter; 9] = [
    LimitCounter { metric: "portolan_limit_hits_total", limit: Limit::Named { label: "limit", prefix: "" } },
    LimitCounter { metric: "coredns_forward_max_concurrent_rejects_total", limit: Limit::Is("max_concurrent") },
    LimitCounter {
        metric: "portolan_dynupdate_limited_total",
        limit: Limit::Named { label: "limit", prefix: "dynupdate_" },
    },
    LimitCounter { metric: "portolan_etcd_answers_cut_total", limit: Limit::Is("etcd_answer_keys") },
    LimitCounter { metric: "portolan_kubernetes_scopes_widened_total", limit: Limit::Is("watched_namespaces") },
    LimitCounter { metric: "portolan_log_lines_dropped_total", limit: Limit::Is("log_lines") },
    LimitCounter { metric: "portolan_dnstap_lost_messages_total", limit: Limit::Is("dnstap_messages") },
    LimitCounter { metric: "portolan_trace_lost_queries_total", limit: Limit::Is("traced_queries") },
    LimitCounter {
        metric: "portolan_shadow_compared_total",
        limit: Limit::For { label: "result", value: "dropped", name: "shadow_queries" },
    },
];

/// Limits whose hits cost no query an answer, and no update. The alert PortolanLimitHit leaves out those of
/// `portolan_limit_hits_total`.
const HARMLESS: [&str; 13] = [
    "control_connections",
    "control_responses",
    "control_time",
    "dnstap_messages",
    "log_lines",
    "page_connections",
    "pod_lookup_time",
    "profile_memory",
    "proxy_tlvs",
    "request_bodies",
    "shadow_queries",
    "traced_queries",
    "watched_namespaces",
];

/// Returns the number of times that each limit was reached. Omits those that were not.
pub(super) fn read(registry: &Registry) -> BTreeMap<String, u64> {
    host::sorting::map(COUNTERS.iter().flat_map(|counter| counter.read(registry)))
}

/// Returns true if hits of a limit cost queries or updates their answers.
pub(super) fn is_harmful(limit: &str) -> bool {
    !HARMLESS.contains(&limit)
}

impl LimitCounter {
    fn read(&self, registry: &Registry) -> BTreeMap<String, u64> {
        match self.limit {
            Limit::Is(name) => {
                // No label has an empty name, so this is the total of all series.
                host::sorting::map(
                    registry.totals_by(self.metric, "").into_values().map(|hits| (name.to_owned(), hits)),
                )
            }
            Limit::Named { label, prefix } => {
                let totals = registry.totals_by(self.metric, label).into_iter();
                host::sorting::map(totals.map(|(limit, hits)| (format!("{prefix}{limit}"), hits)))
            }
            Limit::For { label, value, name } => {
                let totals = registry.totals_by(self.metric, label).into_iter().filter(|(found, _)| found == value);
                host::sorting::map(totals.map(|(_, hits)| (name.to_owned(), hits)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use metrics::{Counters, Kind, Metric};

    use super::*;

    /// Words in the description of a counter of a limit.
    const WORDS: [&str; 11] =
        ["limit", "drop", "lost", "reject", "refuse", "lack", "too many", "exceed", "maximum", "full", "evict"];
    /// Counters with such a word that count no limit, each with what it counts.
    const OTHERS: [(&str, &str); 16] = [
        ("portolan_cpu_periods_total", "the limit of the container, shown as CPU"),
        ("portolan_cpu_throttled_periods_total", "the limit of the container, shown as CPU"),
        ("portolan_kube_dns_config_refused_total", "invalid ConfigMaps"),
        ("portolan_etcd_refused_records_total", "invalid keys"),
        ("coredns_shed_dropped_total", "nothing"),
        ("coredns_nodecache_setup_errors_total", "errors"),
        ("coredns_rrl_requests_exceeded_total", "a policy of the Corefile"),
        ("coredns_rrl_responses_exceeded_total", "a policy of the Corefile"),
        ("portolan_rrl_slips_total", "a policy of the Corefile"),
        ("portolan_rrl_cookies_total", "a policy of the Corefile"),
        ("coredns_acl_dropped_requests_total", "a policy of the Corefile"),
        ("coredns_cache_evictions_total", "normal work of a full cache, shown as its size"),
        ("portolan_upstream_cookie_failures_total", "replies without a cookie"),
        ("portolan_relay_connections_refused_total", "a limit of `portolan relay`, which has no control socket"),
        ("portolan_relay_refusals_total", "refusals of `portolan relay`, which has no control socket"),
        ("portolan_relay_slow_subscribers_total", "a limit of `portolan relay`, which has no control socket"),
    ];

    #[test]
    fn every_counter_of_a_limit_is_known() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let page = std::fs::read_to_string(path).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | counter | "));
        let mut found = 0;
        for (metric, rest) in rows {
            let meaning = rest.split_once(" | ").unwrap().1.to_lowercase();
            let may_be_limit = WORDS.iter().any(|word| meaning.contains(word));
            let is_known = COUNTERS.iter().any(|counter| counter.metric == metric);
            let is_other = OTHERS.iter().any(|(other, _)| *other == metric) || metric.starts_with("kubedns_");
            assert!(!may_be_limit || is_known || is_other, "{metric} may count a limit: add it to COUNTERS or OTHERS");
            found += usize::from(is_known);
        }
        assert_eq!(found, COUNTERS.len(), "a metric of COUNTERS is not in docs/metrics.md");
    }

    #[test]
    fn reads_limits_of_plugins() {
        static LIMITED: Metric = Metric {
            name: "portolan_dynupdate_limited_total",
            help: "",
            kind: Kind::Counter,
            labels: &["zone", "limit"],
        };
        static COMPARED: Metric =
            Metric { name: "portolan_shadow_compared_total", help: "", kind: Kind::Counter, labels: &["result"] };
        let registry = Registry::new();
        let counters: Counters = registry.counters();
        counters.add(registry.counter(&LIMITED, &["a.", "queue"]), 2);
        counters.add(registry.counter(&LIMITED, &["b.", "queue"]), 1);
        counters.add(registry.counter(&COMPARED, &["dropped"]), 4);
        counters.add(registry.counter(&COMPARED, &["same"]), 9);
        let limits: Vec<_> = read(&registry).into_iter().collect();
        assert_eq!(limits, [("dynupdate_queue".to_owned(), 3), ("shadow_queries".to_owned(), 4)]);
        assert!(is_harmful("dynupdate_queue") && is_harmful("streams") && !is_harmful("shadow_queries"));
    }
}
