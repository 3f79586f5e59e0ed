//! Probes a name server periodically, this one or another, and reports over HTTP whether it answers as expected.
//!
//! `question` sends and checks one query, and `health` derives the state from the results.

mod health;
mod question;

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use config::options::{Args, DirectiveContext, Manifest, Problem, Property, Usage};
use config::setup::{Page, PageContent, Part, Setup, SetupError};
use engine::Io;
use engine::log::{Level, Source};
use metrics::{Buckets, Counter, Histogram, Kind, Metric, TIME};
use wire::{Name, NameRef, Rcode, Type};
use zone::text::ParseError;

use common_plugins::shared::option_helpers::{listen_address, metric_word, mnemonic, quote_json};

use health::{Health, State};
use question::{ProbeError, Question};

pub static MANIFEST: Manifest<Config> =
    Manifest::new("probe", "probe DNS servers and report their health over HTTP", Config::default, build)
        .without_handler()
        .repeated()
        .arguments("probe LABEL SERVER NAME [INTERVAL] [TYPE]", read_arguments)
        .properties(PROPERTIES)
        .metrics(&[&DURATION, &FAILURES, &HEALTHY])
        .check(check);

static DURATION: Metric = Metric {
    name: "portolan_probe_duration_seconds",
    help: "Response time of successful probes.",
    kind: Kind::Histogram(&TIME),
    labels: &["probe"],
};
static FAILURES: Metric = Metric {
    name: "portolan_probe_failures_total",
    help: "Probes without the expected response.",
    kind: Kind::Counter,
    labels: &["probe"],
};
static HEALTHY: Metric = Metric {
    name: "portolan_probe_healthy",
    help: "1 if the server is healthy, 0 if it is not.",
    kind: Kind::Gauge,
    labels: &["probe"],
};

/// Same buckets in milliseconds, as kube-dns's sidecar exported them.
static MILLISECONDS: Buckets = Buckets { bounds: TIME.bounds, per_unit: 1e6 };
static SIDECAR_LATENCY: Metric = Metric {
    name: "kubedns_probe_latency_ms",
    help: "Latency of the DNS probe request.",
    kind: Kind::Histogram(&MILLISECONDS),
    labels: &[],
};
static SIDECAR_ERRORS: Metric = Metric {
    name: "kubedns_probe_errors",
    help: "Count of errors in the DNS probe.",
    kind: Kind::Counter,
    labels: &[],
};

const DNS_PORT: u16 = 53;
/// Address of the pages of kube-dns's sidecar.
const ADDRESS: &str = ":10054";
/// Maximum of `failures` and `successes`.
const ROW_MAX: u32 = 1000;

#[derive(Debug)]
pub struct Config {
    label: String,
    server: SocketAddr,
    name: Name,
    interval: Duration,
    qtype: Type,
    address: String,
    rcode: Rcode,
    may_be_empty: bool,
    value: Option<String>,
    timeout: Duration,
    failures: u32,
    successes: u32,
    prefix: Option<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            label: String::new(),
            server: SocketAddr::new(IpAddr::from([127, 0, 0, 1]), DNS_PORT),
            name: Name::root(),
            interval: Duration::from_secs(5),
            qtype: Type::A,
            address: ADDRESS.to_owned(),
            rcode: Rcode::NOERROR,
            may_be_empty: false,
            value: None,
            timeout: Duration::from_secs(2),
            failures: 1,
            successes: 1,
            prefix: None,
        }
    }
}

fn read_arguments(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let word = args.word()?;
    if word.text.is_empty() || !word.text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(args.bad(word, "a label of letters, digits and `_`"));
    }
    config.label.clone_from(&word.text);
    let word = args.word()?;
    let server = word.text.parse().ok().or_else(|| Some(SocketAddr::new(word.text.parse().ok()?, DNS_PORT)));
    config.server = server.ok_or_else(|| args.bad(word, "an address with or without a port"))?;
    let word = args.word()?;
    config.name = Name::from_text(&word.text).map_err(|_| args.bad(word, "a name"))?;
    if args.rest().is_empty() {
        return Ok(());
    }
    config.interval = time(args)?;
    if let Some(word) = args.next_word() {
        config.qtype = mnemonic(args, word, "a type in capitals such as `A`", Type::mnemonic)?;
    }
    Ok(())
}

/// Parses a duration above zero.
fn time(args: &mut Args<'_>) -> Result<Duration, Problem> {
    let word = args.rest().first();
    let time = args.duration()?;
    match word {
        Some(word) if time.is_zero() => Err(args.bad(word, "a duration above zero")),
        _ => Ok(time),
    }
}

static PROPERTIES: &[Property<Config>] = &[
    Property {
        usage: Usage("address ADDRESS"),
        default: ADDRESS,
        doc: "Address of the HTTP endpoints, `[HOST]:PORT`.",
        set: |config, args| {
            config.address = listen_address(args)?.unwrap_or_default();
            Ok(())
        },
    },
    Property {
        usage: Usage("rcode CODE"),
        default: "NOERROR",
        doc: "Expected response code.",
        set: |config, args| {
            let word = args.word()?;
            config.rcode = mnemonic(args, word, "a response code in capitals such as `NXDOMAIN`", Rcode::mnemonic)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("value DATA..."),
        default: "any",
        doc: "Data that a record of the type must have, as in a zone file.",
        set: |config, args| {
            config.value = Some(args.take_rest().iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "));
            Ok(())
        },
    },
    Property {
        usage: Usage("empty"),
        default: "off",
        doc: "Accept a response without records. Otherwise a NOERROR response must have at least one.",
        set: |config, _| {
            config.may_be_empty = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("timeout DURATION"),
        default: "2s",
        doc: "Time to wait for the response.",
        set: |config, args| {
            config.timeout = time(args)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("failures NUMBER"),
        default: "1",
        doc: "Number of consecutive failed probes, 1 to 1000, after which the server is unhealthy.",
        set: |config, args| {
            config.failures = args.number(1..=ROW_MAX)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("successes NUMBER"),
        default: "1",
        doc: "Number of consecutive successful probes, 1 to 1000, after which the server is healthy again.",
        set: |config, args| {
            config.successes = args.number(1..=ROW_MAX)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("prefix PREFIX"),
        default: "off",
        doc: "Also export the metrics under the names of kube-dns's sidecar: `PREFIX_probe_LABEL_latency_ms` and \
              `PREFIX_probe_LABEL_errors`.",
        set: |config, args| {
            config.prefix = Some(metric_word(args)?);
            Ok(())
        },
    },
];

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let config = context.config;
    match config.expected_data() {
        Some(Err(error)) => Err(context.problem_with("value", format!("invalid data for this type: {error}"))),
        _ => Ok(()),
    }
}

impl Config {
    /// Expected record data.
    fn expected_data(&self) -> Option<Result<Vec<u8>, ParseError>> {
        let text = format!(". 0 IN {} {}", self.qtype, self.value.as_ref()?);
        let record = zone::text::record(&text, NameRef::ROOT, 0);
        Some(record.map(|record| record.rdata))
    }
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    setup.for_each_line(configs, |config, setup| {
        let path = format!("/healthcheck/{}", config.label);
        if setup.requests.pages.iter().any(|page| page.address == config.address && page.path == path) {
            return Err(SetupError::new(format!("duplicate probe {} on {}", config.label, config.address)));
        }
        start(config, path, setup);
        Ok(())
    });
    Ok(None)
}

fn start(config: Config, path: String, setup: &mut Setup<'_>) {
    // The health of the server is kept across reloads.
    let health = setup
        .reload_state
        .get_or_insert_with(format!("probe {config:?}"), || Health::new(config.failures, config.successes));
    let address = config.address.clone();
    let reported = Arc::clone(&health);
    setup.requests.pages.push(Page::new(address.clone(), path, move || page(&reported)));
    if !setup.requests.pages.iter().any(|page| page.address == address && page.path == "/healthz") {
        setup.requests.pages.push(Page::new(address, "/healthz", || PageContent::text(200, "ok\n")));
    }
    let registry = setup.registry;
    let exported = Arc::downgrade(&health);
    registry.gauge(&HEALTHY, &[&config.label], move || match exported.upgrade()?.state() {
        State::Unknown => None,
        State::Healthy => Some(1.0),
        State::Unhealthy => Some(0.0),
    });
    let duration = registry.histogram(&DURATION, &[&config.label]);
    let failures = registry.counter(&FAILURES, &[&config.label]);
    if let Some(prefix) = &config.prefix {
        let named = |rest: &str| format!("{prefix}_probe_{}_{rest}", config.label);
        registry.alias(SIDECAR_ERRORS.renamed(&named("errors")), &[], &[failures]);
        if let Some(duration) = duration {
            registry.alias_histogram(SIDECAR_LATENCY.renamed(&named("latency_ms")), &[], duration);
        }
    }
    let expected = config.expected_data().and_then(Result::ok);
    let probe = Probe {
        question: Question {
            server: config.server,
            name: config.name,
            qtype: config.qtype,
            rcode: config.rcode,
            may_be_empty: config.may_be_empty,
            expected,
            timeout: config.timeout,
        },
        label: config.label,
        interval: config.interval,
        health,
        duration,
        failures,
    };
    setup.requests.jobs.push(Box::new(move |io| Box::pin(probe.run(io))));
}

/// Page in the format of kube-dns's sidecar.
fn page(health: &Health) -> PageContent {
    let report = health.report();
    let mut body = format!("{{\"IsOk\":{},\"LatencySeconds\":{},\"Err\":", report.is_ok, report.latency.as_secs_f64());
    quote_json(&mut body, &report.problem);
    body.push_str("}\n");
    let status = if report.is_ok { 200 } else { 503 };
    PageContent { status, content_type: "application/json", body: body.into_bytes().into() }
}

struct Probe {
    label: String,
    question: Question,
    interval: Duration,
    health: Arc<Health>,
    duration: Option<Histogram>,
    failures: Counter,
}

impl Probe {
    /// Probes until dropped. The first probe waits for a random part of the interval, so that not all probes start at
    /// once.
    async fn run(self, io: Rc<dyn Io>) {
        let nanos = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        io.sleep_until(io.now() + Duration::from_nanos(io.random() % nanos)).await;
        loop {
            let begin = io.now();
            let outcome = self.question.ask(&*io).await;
            let latency = io.now().since(begin);
            self.record(&outcome, latency, &*io);
            io.sleep_until(begin + self.interval.max(latency)).await;
        }
    }

    /// Records the outcome of a probe, and logs a change of the state.
    fn record(&self, outcome: &Result<(), ProbeError>, latency: Duration, io: &dyn Io) {
        match (outcome, self.duration) {
            (Ok(()), Some(duration)) => {
                io.counters().observe(duration, u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
            }
            (Ok(()), None) => {}
            (Err(_), _) => io.counters().count(self.failures),
        }
        if !self.health.record(outcome, latency) {
            return;
        }
        let (label, server, source) = (&self.label, self.question.server, Source::Plugin(MANIFEST.name));
        match outcome {
            Ok(()) => io.log(Level::Info, source, format_args!("{label}: {server} is healthy")),
            Err(error) => {
                io.log(Level::Warning, source, format_args!("{label}: {server} is unhealthy: {error}"));
            }
        }
    }
}
