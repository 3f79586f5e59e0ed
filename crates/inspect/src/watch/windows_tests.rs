//! Tests of the windows in virtual time.

use super::*;

fn query<'a>(groups: &'a [(Dimension, &'a str)], useful: bool) -> CountedQuery<'a> {
    CountedQuery {
        weight: 1,
        took: Duration::from_micros(20),
        is_time_of_upstream: true,
        pair: "10.0.0.1 a.test.",
        is_nxdomain: !useful,
        is_servfail: false,
        is_useful: useful,
        is_from_cache: useful,
        groups,
    }
}

fn at(seconds: u64) -> Instant {
    Instant::START + Duration::from_secs(seconds)
}

/// Asks one query in each second before `until`.
fn ask(windows: &mut Windows, from: u64, until: u64) {
    for second in from..until {
        windows.advance(at(second));
        windows.count(&query(&[(Dimension::Name, "a.test.")], second % 2 == 0));
    }
}

#[test]
fn a_report_covers_between_one_and_two_windows() {
    let mut windows = Windows::new(at(0));
    let mut asked = 0;
    for (until, expected) in [
        (5, [5, 5, 5]),
        (10, [10, 10, 10]),
        (25, [15, 25, 25]),
        (65, [15, 65, 65]),
        (125, [15, 65, 125]),
        (179, [19, 119, 179]),
        (605, [15, 65, 605]),
        (1205, [15, 65, 605]),
        (1795, [15, 115, 1195]),
    ] {
        ask(&mut windows, asked, until);
        asked = until;
        for (window, queries) in Window::ALL.into_iter().zip(expected) {
            let counts = windows.report(window, at(until));
            assert_eq!((counts.queries, counts.covered.as_secs()), (queries, queries), "{until} {window:?}");
            let (_, counter) = counts.of(Dimension::Name).iter().next().expect("a name");
            assert_eq!((u64::from(counter.count), counter.error), (queries, 0), "{until} {window:?}");
            assert_eq!(u64::from(counter.value.useful + counter.value.nxdomain), queries, "{until} {window:?}");
            assert_eq!(counts.queries_per_record(), 1, "{until} {window:?}");
            assert_eq!((counts.names.estimate(), counts.clients.estimate()), (1, 0), "{until} {window:?}");
        }
    }
}

#[test]
fn bounds_the_duration_of_most_queries() {
    let mut stats = Stats::default();
    assert_eq!(stats.p99(), None);
    for micros in std::iter::repeat_n(20, 99).chain([3_000_000]) {
        stats.add(&query(&[], true), Some(Duration::from_micros(micros)));
    }
    assert_eq!(stats.p99(), Some(Duration::from_micros(32)));
    for _ in 0..2 {
        stats.add(&query(&[], true), Some(Duration::from_secs(60)));
    }
    assert_eq!(stats.p99(), Some(Duration::from_micros(1 << 24)));
}

#[test]
fn buckets_double_from_16_microseconds() {
    for (micros, expected) in [(0, 0), (15, 0), (16, 1), (31, 1), (32, 2), (8 << 20, 20), (u64::MAX, 20)] {
        assert_eq!(bucket(Duration::from_micros(micros)), expected, "{micros}");
    }
}

#[test]
fn the_time_at_earlier_upstreams_is_not_that_of_the_last_one() {
    let mut windows = Windows::new(at(0));
    let groups = [(Dimension::Upstream, "10.0.0.2:53"), (Dimension::Client, "10.1.0.1")];
    windows.count(&query(&groups, true));
    let late = CountedQuery { took: Duration::from_secs(2), is_time_of_upstream: false, ..query(&groups, true) };
    windows.count(&late);
    let counts = windows.report(Window::Short, at(1));
    let of = |dimension: Dimension| {
        let (_, counter) = counts.of(dimension).iter().next().expect("a group");
        (counter.count, counter.value.p99())
    };
    assert_eq!(of(Dimension::Upstream), (2, Some(Duration::from_micros(32))));
    assert_eq!(of(Dimension::Client), (2, Some(Duration::from_micros(1 << 21))));
}

#[test]
fn a_window_says_which_part_of_its_queries_was_counted() {
    let mut windows = Windows::new(at(0));
    assert_eq!(windows.report(Window::Short, at(1)).queries_per_record(), 1);
    for weight in [50, 52, 1] {
        windows.count(&CountedQuery { weight, ..query(&[], true) });
    }
    assert_eq!(windows.report(Window::Short, at(1)).queries_per_record(), 35);
    windows.count_lost(40);
    assert_eq!(windows.report(Window::Short, at(1)).queries_per_record(), 48);
}

#[test]
fn fits_into_its_memory() {
    // More keys than counters in all groups and windows, as long as those of a large cluster.
    let mut windows = Windows::new(at(0));
    for second in 0..1300 {
        windows.advance(at(second));
        for at in 0..60 {
            let number = second * 60 + at;
            let (name, client) = (format!("checkout-{number}.team-prod.svc.cluster.local."), format!("10.1.{number}"));
            let pair = format!("{client} {name}");
            let groups: [(Dimension, &str); 6] = [
                (Dimension::Client, &client),
                (Dimension::Namespace, &client),
                (Dimension::Name, &name),
                (Dimension::Zone, &client),
                (Dimension::Rcode, &client),
                (Dimension::Upstream, &client),
            ];
            windows.count(&CountedQuery { pair: &pair, ..query(&groups, true) });
        }
    }
    let filling = windows.filling.iter().map(|(counts, _)| counts);
    let counts = filling.chain(windows.complete.iter().flatten()).chain([&windows.slice]);
    let sketches =
        |counts: &Counts| counts.sketches.iter().map(SpaceSaving::memory).sum::<usize>() + counts.pairs.memory();
    let distinct = 2 * Distinct::memory();
    let bytes: usize = counts.map(|counts| sketches(counts) + distinct).sum();
    println!("{} KiB", bytes >> 10);
    assert!((512 << 10..690 << 10).contains(&bytes), "{bytes}");
}
