//! Recording rules: the sums that alerts compare.

use super::Recording;

/// All recording rules, in the order of their evaluation.
pub(super) const ALL: &[Recording] = &[
    Recording {
        name: "instance:coredns_dns_requests:rate5m",
        expression: "sum by (job, instance) (rate(coredns_dns_requests_total[5m]))",
    },
    Recording {
        name: "job_rcode:coredns_dns_responses:rate5m",
        expression: "sum by (job, rcode) (rate(coredns_dns_responses_total[5m]))",
    },
    Recording {
        name: "job:coredns_dns_responses_servfail:ratio_rate5m",
        expression: "sum by (job) (job_rcode:coredns_dns_responses:rate5m{rcode=\"SERVFAIL\"}) / \
            sum by (job) (job_rcode:coredns_dns_responses:rate5m)",
    },
    Recording {
        name: "job:coredns_dns_responses_nxdomain:ratio_rate5m",
        expression: "sum by (job) (job_rcode:coredns_dns_responses:rate5m{rcode=\"NXDOMAIN\"}) / \
            sum by (job) (job_rcode:coredns_dns_responses:rate5m)",
    },
    Recording {
        name: "instance:coredns_dns_request_duration_seconds:p99_rate5m",
        expression: "histogram_quantile(0.99, sum by (job, instance, le) \
            (rate(coredns_dns_request_duration_seconds_bucket[5m])))",
    },
    Recording {
        name: "job:coredns_cache_hits:ratio_rate5m",
        expression: "sum by (job) (rate(coredns_cache_hits_total[5m])) / \
            sum by (job) (rate(coredns_cache_requests_total[5m]))",
    },
    Recording {
        name: "job_to:coredns_proxy_request_duration_seconds:p99_rate5m",
        expression: "histogram_quantile(0.99, sum by (job, to, le) \
            (rate(coredns_proxy_request_duration_seconds_bucket[5m])))",
    },
    Recording {
        name: "job_to:coredns_proxy_servfail:ratio_rate5m",
        expression: "sum by (job, to) (rate(coredns_proxy_request_duration_seconds_count{rcode=\"SERVFAIL\"}[5m])) / \
            sum by (job, to) (rate(coredns_proxy_request_duration_seconds_count[5m]))",
    },
];
