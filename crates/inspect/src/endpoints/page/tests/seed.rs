//! Seeded content: a server with trouble, a quiet one, and one whose data are hostile.

use control::explain::{Explained, Passage, Place, Question as Asked, Search, Step, Upstream as AskedUpstream, Why};
use control::status::{
    Answers, Cache, Cluster, CodeCount, Corefile, Latency, Limits, Problem, ProblemCode, Resources, Serving, Status,
    Upstream, UpstreamState,
};
use control::tail::{Client, ClientKind, Event};
use control::top::{By, Counts, Row, Top, Window};

use super::super::super::super::history::{POINTS_MAX, Point};
use super::super::corefile::{SourceFile, SourceLine};
use super::super::flow::{Flow, Share};
use super::super::{Content, Question};

/// Corefile of the busy server.
const COREFILE: &str = "\
.:53 {
    errors
    prometheus :9153
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    cache 30
    forward . 10.0.0.2 10.0.0.3
    loop
}
corp:53 {
    forward . 10.0.0.3
}
";

fn latency(at_most: f64) -> Latency {
    Latency { above_seconds: at_most / 2.0, at_most_seconds: Some(at_most) }
}

fn upstream(address: &str, state: UpstreamState, error: Option<&str>) -> Upstream {
    let is_up = state == UpstreamState::Up;
    Upstream {
        address: address.to_owned(),
        transport: "udp".to_owned(),
        state,
        down_seconds: (state == UpstreamState::Down).then_some(250.0),
        error: error.map(str::to_owned),
        replies: if is_up { 88_400 } else { 12 },
        p99: is_up.then(|| latency(0.004)),
        failures: if is_up { 0 } else { 40 },
        refusals: Vec::new(),
        unwanted: 0,
        last_failure: None,
    }
}

/// Status of a server with an upstream that is down.
pub(super) fn status() -> Status {
    let code = |code: &str, answers| CodeCount { code: code.to_owned(), answers };
    Status {
        version: "0.3.0".to_owned(),
        compatible_with: "CoreDNS 1.15.0".to_owned(),
        host: "coredns-6c9f7b-x2k8p".to_owned(),
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
            blocks: 2,
            warnings: 1,
            first_warnings: Vec::new(),
            refused: None,
        },
        replicas: Vec::new(),
        clusters: vec![Cluster {
            source: "https://10.96.0.1:443".to_owned(),
            synced: true,
            from_snapshot: false,
            age_seconds: Some(3.0),
            stale_after_seconds: Some(30.0),
            services: 10_024,
            endpoints: 101_200,
            snapshot_age_seconds: Some(40.0),
            resources: Vec::new(),
        }],
        answers: Answers {
            window_seconds: 60.0,
            uncounted_blocks: 0,
            per_second: Some(42_100.0),
            codes: vec![code("NOERROR", 1_692_420), code("NXDOMAIN", 808_000), code("SERVFAIL", 25_505)],
            p50: Some(latency(0.000_25)),
            p99: Some(latency(0.002)),
            lost: Some(0),
        },
        upstreams: vec![
            upstream("10.0.0.2:53", UpstreamState::Up, None),
            upstream("10.0.0.3:53", UpstreamState::Down, Some("no reply within 2 s")),
        ],
        loops: Vec::new(),
        cache: Some(Cache { entries: 9_812, capacity: 9_984, hits: 880, misses: 120, stale: 0 }),
        limits: Limits { window_seconds: 600.0, reached: Vec::new() },
        resources: Resources {
            memory_bytes: Some(25_900_000),
            memory_limit_bytes: Some(170 << 20),
            cpus: Some(0.11),
            cpu_limit: Some(1.0),
            throttled_share: Some(0.0),
        },
        problems: vec![
            Problem::new(
                ProblemCode::UpstreamFails,
                "upstream 10.0.0.3:53 has been down for 4 m 10 s: no reply within 2 s",
            ),
            Problem::new(ProblemCode::ResourcesShort, "the CPU was throttled in 9 % of the periods"),
        ],
    }
}

fn row(key: &str, per_second: u32, useful_percent: u64, top_name: Option<&str>) -> Row {
    let queries = u64::from(per_second) * 60;
    let useful = queries * useful_percent / 100;
    let counts = Counts {
        queries,
        per_second: f64::from(per_second),
        nxdomain: queries - useful,
        servfail: 0,
        useful,
        waste: (useful > 0).then(|| 100.0 / useful_percent as f64),
        p99_seconds: Some(32e-6),
    };
    Row { key: key.to_owned(), clients: 1, counts, error: 0, top_name: top_name.map(str::to_owned) }
}

fn top(by: By, rows: Vec<Row>) -> Top {
    let total = row("", 42_100, 60, None).counts;
    Top {
        host: "coredns-6c9f7b-x2k8p".to_owned(),
        by,
        window: Window::Medium,
        covered_seconds: 84.0,
        sampled_one_of: 16,
        total,
        refused: 0,
        from_cache: 370_000,
        names: 812,
        clients: 40,
        groups_max: 256,
        rows,
    }
}

pub(super) fn event(time: &str, name: &str, rcode: Option<&str>, plugin: &str) -> Event {
    Event {
        time: format!("2026-11-23T{time}.118Z"),
        client: Client {
            address: "10.244.1.17".to_owned(),
            port: 40_000,
            kind: ClientKind::Pod,
            namespace: Some("shop".to_owned()),
            pod: Some("web-7d9f".to_owned()),
            service: None,
        },
        transport: "udp".to_owned(),
        name: name.to_owned(),
        qtype: Some("A".to_owned()),
        rcode: rcode.map(str::to_owned),
        plugin: (!plugin.is_empty()).then(|| plugin.to_owned()),
        took_seconds: 2.0,
        ede: (plugin == "forward").then_some(22),
        upstream: (plugin == "forward").then(|| "10.0.0.3:53".to_owned()),
        ..Event::default()
    }
}

fn share(block: usize, plugin: &str, per_second: f64, failing_per_second: f64) -> Share {
    Share { block, plugin: plugin.to_owned(), per_second, failing_per_second }
}

/// History with a gap and a rise.
fn history() -> Vec<Point> {
    let point = |at: usize| {
        let wave = (at as f64 / 6.0).sin();
        Point {
            rate: Some(38_000.0 + 4000.0 * wave),
            p99: (at != 20).then_some(if at > 45 { 0.002 } else { 0.001 }),
            failures: Some(if at > 45 { 1.0 } else { 0.02 }),
            memory: Some(24e6 + 4e4 * at as f64),
        }
    };
    (0..POINTS_MAX).map(point).collect()
}

fn files(text: &str) -> Vec<SourceFile> {
    SourceFile::cut(&[("/etc/coredns/Corefile".to_owned(), text.to_owned())], |_, at, text| SourceLine {
        text: text.to_owned(),
        per_second: match at {
            3 => Some(24_800.0),
            7 => Some(15_400.0),
            _ => None,
        },
        warnings: if at == 9 { vec!["`loop` has no effect behind `cache`".to_owned()] } else { Vec::new() },
    })
}

/// Server under load with an upstream that is down.
pub(super) fn busy() -> Content {
    let status = status();
    let pods = top(
        By::Pod,
        vec![
            Row { clients: 12, ..row("shop/web", 11_204, 12, Some("api.stripe.com.shop.svc.cluster.local.")) },
            row("logging/fluent-bit", 6_010, 91, Some("es.logging.svc.cluster.local.")),
            row("billing/job-x", 312, 0, Some("git.corp.billing.svc.cluster.local.")),
        ],
    );
    let names =
        top(By::Name, vec![row("es.logging.svc.cluster.local.", 6_010, 91, None), row("git.corp.", 96, 0, None)]);
    let shares = [
        share(0, "kubernetes", 24_800.0, 0.0),
        share(0, "cache", 15_400.0, 0.0),
        share(0, "forward", 1475.0, 2.0),
        share(1, "forward", 425.0, 423.0),
    ];
    let blocks = [".:53".to_owned(), "corp:53".to_owned()];
    Content {
        flow: Flow::new(&pods, &blocks, &shares, &status),
        status,
        time: "2026-11-23T12:44:09.250Z".to_owned(),
        history: history(),
        pods,
        names,
        failures: vec![
            event("12:44:07", "git.corp.", Some("SERVFAIL"), "forward"),
            event("12:43:58", "www.example.", Some("REFUSED"), ""),
            event("12:41:02", "", None, "acl"),
        ],
        shows_names: true,
        files: files(COREFILE),
        question: Question::default(),
    }
}

/// Server that has just started, without *prometheus*.
pub(super) fn quiet() -> Content {
    let mut status = status();
    status.problems.clear();
    status.upstreams.clear();
    status.clusters.clear();
    status.cache = None;
    status.answers = Answers {
        window_seconds: 4.0,
        uncounted_blocks: 1,
        per_second: None,
        codes: Vec::new(),
        p50: None,
        p99: None,
        lost: None,
    };
    let (pods, names) = (top(By::Pod, Vec::new()), top(By::Name, Vec::new()));
    Content {
        flow: Flow::new(&pods, &[".:53".to_owned()], &[], &status),
        status,
        time: "2026-11-23T12:44:09.250Z".to_owned(),
        history: Vec::new(),
        pods,
        names,
        failures: Vec::new(),
        shows_names: true,
        files: files(".:53 {\n    whoami\n}\n"),
        question: Question::default(),
    }
}

/// Busy server with as many rows as the page shows, with names of usual length.
pub(super) fn full() -> Content {
    let busy = busy();
    let name = "a-service-with-a-long-name.and-a-namespace.svc.cluster.local.";
    let rows =
        || (0..8).map(|at| row(&format!("namespace-{at}/a-deployment-with-a-name"), 100, 20, Some(name))).collect();
    let mut status = status();
    status.upstreams = (0..20)
        .map(|at| upstream(&format!("10.0.0.{at}:53"), UpstreamState::Down, Some("no reply within 2 s")))
        .collect();
    let corefile = COREFILE.repeat(10);
    Content {
        pods: top(By::Pod, rows()),
        names: top(By::Name, rows()),
        failures: (0..20).map(|_| event("12:44:07", name, Some("SERVFAIL"), "forward")).collect(),
        files: files(&corefile),
        status,
        question: Question { name: name.to_owned(), answer: Some(Ok(explained(name, 5))), ..Question::default() },
        ..busy
    }
}

/// Server with hostile data, and with this number of each.
pub(super) fn hostile(number: usize) -> Content {
    // 255 bytes, most of which have to be escaped for HTML.
    let name =
        format!("<script>alert(1)</script>.\u{202e}{}\"'&\u{2066}.{}.", "<\u{1b}>".repeat(30), "&<>\"".repeat(20));
    let long = "<&>\"".repeat(300);
    let rows = |count: usize| (0..count).map(|at| row(&format!("{at}{name}"), 10, 1, Some(&name))).collect::<Vec<_>>();
    let mut status = status();
    status.host = name.clone();
    status.version.clone_from(&long);
    status.upstreams =
        (0..number).map(|at| upstream(&format!("{at}{long}"), UpstreamState::Down, Some(&long))).collect();
    status.problems = (0..number).map(|_| Problem::new(ProblemCode::Other(name.clone()), long.clone())).collect();
    let cluster = Cluster { source: long.clone(), ..status.clusters[0].clone() };
    status.clusters = vec![cluster; number];
    let blocks: Vec<String> = (0..40).map(|_| long.clone()).collect();
    let shares: Vec<Share> = (0..40)
        .flat_map(|block| (0..10).map(move |plugin| (block, plugin)))
        .map(|(block, plugin)| share(block, &format!("<b>{plugin}"), 1.0, 1.0))
        .collect();
    let (pods, names) = (top(By::Pod, rows(number.min(10))), top(By::Name, rows(number.min(10))));
    let corefile = format!("{long}\n").repeat(5 * number);
    Content {
        flow: Flow::new(&pods, &blocks, &shares, &status),
        status,
        pods,
        names,
        failures: (0..number.min(20)).map(|_| event("12:44:07", &name, Some(&name), &name)).collect(),
        files: files(&corefile),
        question: Question {
            name: name.clone(),
            qtype: long.clone(),
            from: long,
            answer: Some(Ok(explained(&name, number))),
        },
        ..busy()
    }
}

fn explained(name: &str, number: usize) -> Explained {
    let place = Place { file: name.to_owned(), line: 1 };
    let upstream = AskedUpstream {
        address: name.to_owned(),
        transport: "udp".to_owned(),
        state: "down".to_owned(),
        down_seconds: Some(1.0),
        error: Some(name.to_owned()),
        failed_seconds: Some(1.0),
        failure: Some(name.to_owned()),
    };
    let step = Step {
        name: name.to_owned(),
        rcode: Some("NOERROR".to_owned()),
        records: vec![name.to_owned(); number],
        text: name.to_owned(),
        upstreams: vec![upstream; number],
        trail: vec![Passage { plugin: name.to_owned(), place, did: name.to_owned() }; number],
        ..Step::default()
    };
    Explained {
        question: Asked { name: name.to_owned(), qtype: "A".to_owned() },
        from: None,
        listener: None,
        asked_from: None,
        search: Some(Search { domains: vec![name.to_owned(); 6], ndots: 5, ..Default::default() }),
        steps: vec![step; number.min(8)],
        answered: None,
        queries: 16,
        why: Why { code: "PE-S01".to_owned(), text: name.to_owned() },
        advice: Some(name.to_owned()),
        unjudged: Vec::new(),
        differing: Vec::new(),
    }
}
