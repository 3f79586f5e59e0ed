use super::*;
use std::sync::Arc;

static HITS: Metric = Metric { name: "hits_total", help: "Hits.", kind: Kind::Counter, labels: &["server", "type"] };
static PLAIN: Metric = Metric { name: "plain_total", help: "Plain.", kind: Kind::Counter, labels: &[] };
static TOOK: Metric =
    Metric { name: "took_seconds", help: "Took.", kind: Kind::Histogram(&SLIM_TIME), labels: &["to"] };
static SIZE_NOW: Metric = Metric { name: "entries", help: "Entries.", kind: Kind::Gauge, labels: &["type"] };

#[test]
fn sums_a_series_over_all_threads() {
    let registry = Registry::new();
    let table = registry.table(&HITS, &["dns://:53"], &[&["success", "denial"]]);
    let threads: Vec<_> = [3, 4].map(|hits| (registry.counters(), hits)).into();
    for (counters, hits) in &threads {
        (0..*hits).for_each(|_| counters.count(table.counter([1, 0, 0])));
    }
    assert_eq!(registry.read(table.counter([1, 0, 0])), 7);
    // A series of a table is omitted until it counts.
    assert_eq!(
        registry.render(),
        "# HELP hits_total Hits.\n# TYPE hits_total counter\nhits_total{server=\"dns://:53\",type=\"denial\"} 7\n"
    );
}

#[test]
fn exports_a_single_counter_at_zero() {
    let registry = Registry::new();
    registry.counter(&PLAIN, &[]);
    registry.counter(&HITS, &["s", "a"]);
    registry.table(&HITS, &["s"], &[&["b", "c"]]);
    let text = registry.render();
    assert!(text.contains("\nplain_total 0\n") && text.contains("\nhits_total{server=\"s\",type=\"a\"} 0\n"), "{text}");
    assert!(!text.contains("\"b\"") && !text.contains("\"c\""), "{text}");
}

#[test]
fn returns_the_same_series_for_the_same_labels() {
    let registry = Registry::new();
    let counters = registry.counters();
    counters.count(registry.counter(&PLAIN, &[]));
    counters.count(registry.counter(&PLAIN, &[]));
    assert!(registry.render().ends_with("plain_total 2\n"));
    // The two tables overlap in one label set, which must be exported once.
    let before = registry.table(&HITS, &["s"], &[&["a", "b"]]);
    let after = registry.table(&HITS, &["s"], &[&["b", "c"]]);
    counters.count(before.counter([1, 0, 0]));
    counters.count(after.counter([0, 0, 0]));
    assert!(registry.render().contains("hits_total{server=\"s\",type=\"b\"} 2\n"));
}

#[test]
fn renders_cumulative_histograms() {
    let registry = Registry::new();
    let counters = registry.counters();
    let took = registry.histogram(&TOOK, &["up\"stream"]).unwrap();
    for nanos in [250_000, 250_001, 9_000_000_000] {
        counters.observe(took, nanos);
    }
    let text = registry.render();
    for line in [
        "took_seconds_bucket{to=\"up\\\"stream\",le=\"0.00025\"} 1",
        "took_seconds_bucket{to=\"up\\\"stream\",le=\"0.0025\"} 2",
        "took_seconds_bucket{to=\"up\\\"stream\",le=\"+Inf\"} 3",
        "took_seconds_count{to=\"up\\\"stream\"} 3",
        "took_seconds_sum{to=\"up\\\"stream\"} 9.000500001",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
    }
    assert_eq!(TIME.bounds.last(), Some(&8_192_000_000));
}

#[test]
fn reads_gauges_when_rendered() {
    let registry = Registry::new();
    let size = Arc::new(std::sync::atomic::AtomicU32::new(3));
    let read = Arc::clone(&size);
    registry.gauge(&SIZE_NOW, &["x"], move || Some(f64::from(read.load(std::sync::atomic::Ordering::Relaxed))));
    registry.gauge(&SIZE_NOW, &["gone"], || None);
    size.store(5, std::sync::atomic::Ordering::Relaxed);
    assert!(registry.render().ends_with("entries{type=\"x\"} 5\n"));
}

#[test]
fn a_gauge_that_has_ended_leaves_its_series_to_the_previous_one() {
    let registry = Registry::new();
    registry.gauge(&SIZE_NOW, &["x"], || Some(1.0));
    for _ in 0..3 {
        let owner = Arc::new(2.0);
        let read = Arc::downgrade(&owner);
        registry.gauge(&SIZE_NOW, &["x"], move || read.upgrade().map(|size| *size));
        assert!(registry.render().ends_with("entries{type=\"x\"} 2\n"));
        drop(owner);
        assert!(registry.render().ends_with("entries{type=\"x\"} 1\n"));
    }
}

#[test]
fn exports_a_series_under_an_older_name() {
    static SLOW: Metric =
        Metric { name: "slow_ms", help: "Slow.", kind: Kind::Histogram(&IN_MILLISECONDS), labels: &[] };
    static IN_MILLISECONDS: Buckets = Buckets { bounds: SLIM_TIME.bounds, per_unit: 1e6 };
    let registry = Registry::new();
    let counters = registry.counters();
    let hits = ["a", "b"].map(|kind| registry.counter(&HITS, &["s", kind]));
    // A reload registers the alias again.
    (0..2).for_each(|_| registry.alias(PLAIN.renamed("old_hits"), &[], &hits));
    let took = registry.histogram(&TOOK, &["x"]).unwrap();
    registry.alias_histogram(&SLOW, &[], took);
    hits.iter().for_each(|hit| counters.count(*hit));
    counters.observe(took, 2_000_000);
    let text = registry.render();
    assert!(text.contains("\nold_hits 2\n"), "{text}");
    assert!(text.contains("slow_ms_bucket{le=\"2.5\"} 1\n") && text.contains("slow_ms_sum 2\n"), "{text}");
    assert!(std::ptr::eq(PLAIN.renamed("old_hits"), PLAIN.renamed("old_hits")));
}

#[test]
fn sums_families_by_a_label() {
    let registry = Registry::new();
    let counters = registry.counters();
    for (server, kind, hits) in [("a\",type=\"x", "success", 3), ("b", "success", 4), ("b", "denial", 5)] {
        counters.add(registry.counter(&HITS, &[server, kind]), hits);
    }
    let by = |label: &str| registry.totals_by("hits_total", label).into_iter().collect::<Vec<_>>();
    assert_eq!(by("type"), [("denial".to_owned(), 5), ("success".to_owned(), 7)]);
    assert_eq!(by(""), [(String::new(), 12)]);
    assert!(registry.totals_by("unknown", "type").is_empty());
}

#[test]
fn finds_the_bucket_of_a_quantile() {
    let registry = Registry::new();
    let counters = registry.counters();
    let took = registry.histogram(&TOOK, &["x"]).unwrap();
    assert!(registry.histograms_by("took_seconds", "to").is_empty());
    assert!(HistogramTotals::default().quantile(0.5).is_none());
    (0..98).for_each(|_| counters.observe(took, 1));
    let before = registry.histograms_by("took_seconds", "to")["x"].clone();
    [3_000_000, u64::from(u32::MAX) * 1000].into_iter().for_each(|nanos| counters.observe(took, nanos));
    let totals = &registry.histograms_by("took_seconds", "to")["x"];
    assert_eq!((totals.count(), totals.quantile(0.5)), (100, Some((0.0, Some(0.000_25)))));
    assert_eq!(totals.quantile(0.99), Some((0.0025, Some(0.025))));
    assert_eq!(totals.quantile(1.0), Some((2.5, None)));
    assert_eq!((totals.since(&before).count(), totals.since(&before).quantile(0.5)), (2, Some((0.0025, Some(0.025)))));
}
