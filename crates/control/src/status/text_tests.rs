//! Golden tests of the text.

use super::*;

fn upstream(address: &str, state: UpstreamState) -> Upstream {
    Upstream {
        address: address.to_owned(),
        transport: "udp".to_owned(),
        state,
        down_seconds: None,
        error: None,
        replies: 400,
        p99: Some(Latency { above_seconds: 0.002, at_most_seconds: Some(0.004) }),
        failures: 0,
        refusals: Vec::new(),
        unwanted: 0,
        last_failure: None,
    }
}

fn resource(name: &str, objects: u64, age: f64) -> Resource {
    Resource {
        name: name.to_owned(),
        objects,
        state: WatchState::Current,
        age_seconds: Some(age),
        silent_seconds: Some(age),
        listing_seconds: None,
        server: None,
        server_seconds: None,
        failing_seconds: None,
        error: None,
    }
}

fn cluster() -> Cluster {
    Cluster {
        source: "https://10.96.0.1:443".to_owned(),
        synced: true,
        from_snapshot: false,
        age_seconds: Some(3.0),
        stale_after_seconds: Some(30.0),
        services: 10_024,
        endpoints: 101_200,
        snapshot_age_seconds: Some(40.0),
        resources: vec![resource("services", 10_024, 0.2), resource("endpointslices", 10_031, 3.0)],
    }
}

fn codes(codes: &[(&str, u64)]) -> Vec<CodeCount> {
    codes.iter().map(|(code, answers)| CodeCount { code: (*code).to_owned(), answers: *answers }).collect()
}

/// Server without problems.
fn healthy() -> Status {
    Status {
        version: "0.3.0".to_owned(),
        compatible_with: "CoreDNS 1.15.0".to_owned(),
        host: "portolan-6c9".to_owned(),
        in_pod: true,
        process_id: 1,
        uptime_seconds: 273_600.0,
        keeper: None,
        serving: Serving::Ready,
        unready: Vec::new(),
        corefile: Corefile {
            generation: 7,
            hash: "5f2c9a00".to_owned(),
            age_seconds: 7200.0,
            blocks: 3,
            warnings: 0,
            first_warnings: Vec::new(),
            refused: None,
        },
        replicas: Vec::new(),
        clusters: vec![cluster()],
        answers: Answers {
            window_seconds: 60.0,
            uncounted_blocks: 0,
            per_second: Some(42_100.0),
            codes: codes(&[("NOERROR", 1_692_420), ("NXDOMAIN", 833_000), ("SERVFAIL", 505)]),
            p50: Some(Latency { above_seconds: 0.0, at_most_seconds: Some(0.00025) }),
            p99: Some(Latency { above_seconds: 0.001, at_most_seconds: Some(0.002) }),
            lost: Some(0),
        },
        upstreams: vec![upstream("10.0.0.2:53", UpstreamState::Up)],
        loops: vec![LoopProbe { zone: ".".to_owned(), age_seconds: Some(9.0), answered: true, looping_seconds: None }],
        cache: Some(Cache { entries: 9_812, capacity: 9_984, hits: 880, misses: 120, stale: 0 }),
        limits: Limits { window_seconds: 600.0, reached: Vec::new() },
        resources: Resources {
            memory_bytes: Some(25_900_000),
            memory_limit_bytes: Some(170 << 20),
            cpus: Some(0.11),
            cpu_limit: Some(1.0),
            throttled_share: Some(0.0),
        },
        problems: Vec::new(),
    }
}

#[test]
fn fits_on_one_screen() {
    let expected = "\
portolan 0.3.0 (CoreDNS 1.15.0 compatible)  pod portolan-6c9  up 3 d 4 h   ✓ serving
  Corefile     ✓ generation 7, sha 5f2c…, loaded 2 h ago · 3 blocks, 0 warnings
  Kubernetes   ✓ synced · view 3.0 s old · 10,024 services 101,200 endpoints · https://10.96.0.1:443 · snapshot 40 s ago
               services 10,024, 0.2 s · endpointslices 10,031, 3.0 s
  Answers      42.1k q/s · NOERROR 67 NXDOMAIN 33 SERVFAIL 0.02 % · p50 < 250 µs p99 ≤ 2.0 ms · lost 0 · last 1 m
  Upstreams    ✓ 10.0.0.2:53 udp p99 ≤ 4.0 ms
  Cache        9,812 of 9,984 · hit 88 % · stale served 0
  Limits hit   none in 10 m                                   Memory 24.7 of 170 MiB · CPU 0.11 of 1
  no problems
";
    assert_eq!(healthy().to_string(), expected);
    assert!(healthy().is_fine());
}

#[test]
fn shows_a_restart_for_an_hour() {
    let mut status = healthy();
    let last_exit = "was killed by signal 9 (SIGKILL)".to_owned();
    status.keeper = Some(Keeper { restarts: 4, restarts_in_hour: 2, last_exit });
    assert_eq!(status.restart_text(), None, "days ago");
    status.uptime_seconds = 300.0;
    let text = "the server was killed by signal 9 (SIGKILL) and started again 5 m ago; 2 restarts in an hour";
    assert_eq!(status.restart_text().as_deref(), Some(text));
    assert!(status.to_string().contains(&format!("\n  Keeper       ‼ {text}\n")), "{status}");
    status.keeper = Some(Keeper { restarts: 0, restarts_in_hour: 0, last_exit: String::new() });
    assert_eq!(status.restart_text(), None);
}

#[test]
fn a_stale_view_is_marked() {
    let stale = |age| Cluster { age_seconds: age, ..cluster() }.text();
    assert!(stale(Some(29.0)).starts_with("✓ synced · view 29 s old · "), "{}", stale(Some(29.0)));
    assert!(stale(Some(30.0)).starts_with("✗ synced · view 30 s old, answers are marked as stale · "));
    assert!(stale(None).starts_with("✓ synced · 10,024 services"));
    let unlimited = Cluster { age_seconds: Some(300.0), stale_after_seconds: None, ..cluster() }.text();
    assert!(unlimited.starts_with("✓ synced · view 5 m old · "), "{unlimited}");
}

#[test]
fn names_the_relays_that_are_used() {
    let mut cluster = cluster();
    let use_server = |resource: &mut Resource, url: &str, seconds| {
        (resource.server, resource.server_seconds) = (Some(url.to_owned()), Some(seconds));
    };
    cluster.resources.iter_mut().for_each(|one| use_server(one, "https://relay:9443", 120.0));
    assert!(cluster.text().contains(" · https://relay:9443 for 2 m · "), "{}", cluster.text());
    use_server(&mut cluster.resources[0], "https://10.96.0.1:443", 3.0);
    let text = cluster.text();
    assert!(text.contains(" · https://10.96.0.1:443 for 3.0 s and https://relay:9443 for 2 m · "), "{text}");
}

#[test]
fn says_what_is_wrong_first() {
    let mut status = healthy();
    status.serving = Serving::NotReady;
    status.unready = vec!["kubernetes".to_owned()];
    status.corefile.refused = Some(Refused { age_seconds: 41.0, error: "Corefile:2: unknown directive".to_owned() });
    status.corefile.warnings = 3;
    status.corefile.first_warnings = [3, 7, 9].map(|line| format!("Corefile:{line}: no effect")).into();
    status.clusters[0].synced = false;
    status.clusters[0].from_snapshot = true;
    status.clusters[0].age_seconds = Some(250.0);
    status.clusters[0].resources[0] = Resource {
        state: WatchState::Failing,
        age_seconds: Some(250.0),
        failing_seconds: Some(250.0),
        error: Some("the API server says 403".to_owned()),
        ..resource("services", 10_024, 0.0)
    };
    let down = Upstream {
        down_seconds: Some(240.0),
        error: Some("no answer in time".to_owned()),
        ..upstream("10.0.0.3:53", UpstreamState::Down)
    };
    status.upstreams.push(down);
    status.upstreams.push(upstream("10.0.0.4:53", UpstreamState::Suspected));
    let lossy = Upstream {
        failures: 22,
        last_failure: Some(FailedExchange { age_seconds: 3.0, error: "no reply in time".to_owned(), over_tcp: false }),
        ..upstream("10.0.0.5:53", UpstreamState::Up)
    };
    status.upstreams.push(lossy);
    status.limits.reached = vec![LimitHits { limit: "parked_queries".to_owned(), hits: 1200 }];
    status.resources.throttled_share = Some(0.25);
    status.problems = vec![Problem::new(ProblemCode::UpstreamFails, "upstream 10.0.0.3:53 has been down for 4 m")];
    let expected = "\
portolan 0.3.0 (CoreDNS 1.15.0 compatible)  pod portolan-6c9  up 3 d 4 h   ✗ not ready: kubernetes
  Corefile     ✗ generation 7, sha 5f2c…, loaded 2 h ago · 3 blocks, 3 warnings · a newer one was refused 41 s ago
               ‼ Corefile:3: no effect
               ‼ Corefile:7: no effect
               and 1 more warning: portolan check --files
  Kubernetes   ✗ from a snapshot, not synced · view 4 m 10 s old, answers are marked as stale · 10,024 services 101,200 endpoints · https://10.96.0.1:443 · snapshot 40 s ago
               services 10,024, ✗ failing for 4 m 10 s: the API server says 403 · endpointslices 10,031, 3.0 s
  Answers      42.1k q/s · NOERROR 67 NXDOMAIN 33 SERVFAIL 0.02 % · p50 < 250 µs p99 ≤ 2.0 ms · lost 0 · last 1 m
  Upstreams    ✗ 10.0.0.3:53 udp no answer in time since 4 m (PD-U02)   ‼ 10.0.0.4:53 udp   \
‼ 10.0.0.5:53 udp p99 ≤ 4.0 ms, 22 of 422 failed, the last 3.0 s ago: no reply in time   ✓ 10.0.0.2:53 udp p99 ≤ 4.0 ms
  Cache        9,812 of 9,984 · hit 88 % · stale served 0
  Limits hit   parked_queries 1,200 in 10 m                   Memory 24.7 of 170 MiB · CPU 0.11 of 1, throttled 25 %
    PD-U02  upstream 10.0.0.3:53 has been down for 4 m
  1 problem: portolan doctor
";
    assert_eq!(status.to_string(), expected);
    assert!(!status.is_fine());
}

#[test]
fn an_upstream_with_many_replies_without_a_query_is_marked() {
    let text = |unwanted| Upstream { unwanted, ..upstream("10.0.0.2:53", UpstreamState::Up) }.text();
    assert_eq!(text(99), "✓ 10.0.0.2:53 udp p99 ≤ 4.0 ms");
    assert_eq!(text(4000), "‼ 10.0.0.2:53 udp p99 ≤ 4.0 ms, 4,000 replies match no query");
}

#[test]
fn an_upstream_that_refuses_many_queries_is_marked() {
    let text = |refused, servfail| {
        let codes = [("REFUSED", refused), ("SERVFAIL", servfail)].into_iter().filter(|(_, answers)| *answers > 0);
        let refusals = codes.map(|(code, answers)| CodeCount { code: code.to_owned(), answers }).collect();
        Upstream { refusals, ..upstream("10.0.0.2:53", UpstreamState::Up) }.text()
    };
    assert_eq!(text(19, 0), "✓ 10.0.0.2:53 udp p99 ≤ 4.0 ms");
    assert_eq!(text(20, 0), "‼ 10.0.0.2:53 udp p99 ≤ 4.0 ms, REFUSED 20 of 400 replies");
    assert_eq!(text(380, 20), "‼ 10.0.0.2:53 udp p99 ≤ 4.0 ms, REFUSED 380 and SERVFAIL 20 of 400 replies");
}

#[test]
fn an_upstream_counts_as_fine_only_after_a_reply() {
    let text = |replies, failures| {
        let last_failure = FailedExchange { age_seconds: 3.0, error: "connection refused".to_owned(), over_tcp: false };
        Upstream {
            replies,
            failures,
            p99: upstream("", UpstreamState::Up).p99.filter(|_| replies > 0),
            last_failure: Some(last_failure).filter(|_| failures > 0),
            ..upstream("10.0.0.2:53", UpstreamState::Up)
        }
        .text()
    };
    assert_eq!(text(0, 0), "– 10.0.0.2:53 udp no queries");
    let failed = "‼ 10.0.0.2:53 udp no replies, 2 of 2 failed, the last 3.0 s ago: connection refused";
    assert_eq!(text(0, 2), failed);
    assert_eq!(text(1, 0), "✓ 10.0.0.2:53 udp p99 ≤ 4.0 ms");
    assert_eq!(text(9, 1).chars().next(), Some('✓'));
}

#[test]
fn a_forwarding_loop_is_named() {
    let mut status = healthy();
    assert!(!status.to_string().contains("Loop") && status.loops[0].is_checked());
    status.loops[0].looping_seconds = Some(40.0);
    let line = "  Loop         ✗ forwarding loop in zone . for 40 s: queries come back to this server (PD-U01)\n";
    assert!(status.to_string().contains(line) && !status.loops[0].is_checked(), "{status}");
}

#[test]
fn an_error_of_several_watches_is_shown_once() {
    let failing = |name: &str, seconds: f64, error: &str| Resource {
        state: WatchState::Failing,
        failing_seconds: Some(seconds),
        error: Some(error.to_owned()),
        ..resource(name, 12, 3.0)
    };
    let mut status = healthy();
    let lost = "no connection to the API server";
    status.clusters[0].resources = vec![
        failing("namespaces", 8.0, lost),
        failing("services", 9.0, "the API server says 403"),
        resource("pods", 7, 1.0),
        failing("endpointslices", 250.0, lost),
    ];
    let expected = "               namespaces 12, endpointslices 12, ✗ all failing for 4 m 10 s: \
no connection to the API server · services 12, ✗ failing for 9.0 s: the API server says 403 · pods 7, 1.0 s
";
    let text = status.to_string();
    assert!(text.contains(expected), "{text}");
}

#[test]
fn says_what_it_does_not_know() {
    let mut status = healthy();
    status.in_pod = false;
    status.clusters.clear();
    status.upstreams.clear();
    status.cache = None;
    status.answers = Answers {
        per_second: None,
        uncounted_blocks: 3,
        codes: Vec::new(),
        p50: None,
        p99: None,
        lost: None,
        ..status.answers
    };
    status.resources = Resources {
        memory_bytes: Some(25_900_000),
        memory_limit_bytes: None,
        cpus: None,
        cpu_limit: None,
        throttled_share: None,
    };
    let expected = "\
portolan 0.3.0 (CoreDNS 1.15.0 compatible)  host portolan-6c9  up 3 d 4 h   ✓ serving
  Corefile     ✓ generation 7, sha 5f2c…, loaded 2 h ago · 3 blocks, 0 warnings
  Answers      not counted: no server block has `prometheus` · lost unknown
  Cache        none
  Limits hit   none in 10 m                                   Memory 24.7 MiB, no limit · CPU unknown
  no problems
";
    assert_eq!(status.to_string(), expected);
}

#[test]
fn hostile_names_cannot_change_the_terminal() {
    let mut status = healthy();
    status.clusters[0].source = "https://a\u{1b}[31m".to_owned();
    status.problems = vec![Problem::new(ProblemCode::ReloadFailed, "\u{202e}desrever\n")];
    let text = status.to_string();
    assert!(
        !text.contains(['\u{1b}', '\u{202e}']) && text.contains("\\u{1b}[31m") && text.contains("\\u{202e}"),
        "{text}"
    );
}

#[test]
fn json_has_all_fields_and_reads_back() {
    let text = serde_json::to_string(&healthy()).expect("JSON");
    assert!(text.contains(r#""serving":"ready""#) && text.contains(r#""refused":null"#), "{text}");
    assert_eq!(serde_json::from_str::<Status>(&text).expect("the same"), healthy());
}
