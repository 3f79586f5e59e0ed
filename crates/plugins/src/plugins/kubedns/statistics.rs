//! Cache statistics as dnsmasq and kube-dns's sidecar exposed them: TXT records of class CH, and metrics.

use core::net::SocketAddr;
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use config::setup::Setup;
use engine::{Connections, Exchange, Io, Query, Response, Transport};
use metrics::{Counter, Kind, Metric, Registry};
use wire::{Class, Flags, Header, MessageBuf, Name, NameRef, Owner, Section, Type};

use common_plugins::shared::cache_statistics::CacheStatistics;

const fn metric(name: &'static str, help: &'static str) -> Metric {
    Metric { name, help, kind: Kind::Counter, labels: &[] }
}

static HITS: Metric = metric("kubedns_dnsmasq_hits", "Number of DNS cache hits (from start of process).");
static MISSES: Metric = metric("kubedns_dnsmasq_misses", "Number of DNS cache misses (from start of process).");
static EVICTIONS: Metric =
    metric("kubedns_dnsmasq_evictions", "Counter of DNS cache evictions (from start of process).");
static INSERTIONS: Metric =
    metric("kubedns_dnsmasq_insertions", "Counter of DNS cache insertions (from start of process).");
static MAX_SIZE: Metric = metric("kubedns_dnsmasq_max_size", "Maximum size of the DNS cache.");
static ERRORS: Metric = metric("kubedns_dnsmasq_errors", "Number of errors that have occurred getting metrics.");

pub(super) static METRICS: [&Metric; 6] = [&HITS, &MISSES, &EVICTIONS, &INSERTIONS, &MAX_SIZE, &ERRORS];

/// Default prefix of the metric names.
const PREFIX: &str = "kubedns_";

fn named(metric: &'static Metric, prefix: &str) -> &'static Metric {
    metric.renamed(&format!("{prefix}_{}", metric.name.strip_prefix(PREFIX).unwrap_or(metric.name)))
}

/// Cache statistics of this server block.
pub(super) struct Statistics {
    cache: Arc<CacheStatistics>,
    registry: Arc<Registry>,
}

impl Statistics {
    /// Registers the cache metrics with this prefix. Returns `None` if there is no cache or queries are not answered
    /// here.
    pub(super) fn show(prefix: &str, is_stub: bool, setup: &Setup<'_>) -> Option<Statistics> {
        let registry = setup.registry;
        let cache = setup.below.find::<Arc<CacheStatistics>>()?;
        for (metric, counters) in [
            (&HITS, &cache.hits),
            (&MISSES, &cache.misses),
            (&EVICTIONS, &cache.evictions),
            (&INSERTIONS, &cache.insertions),
        ] {
            registry.alias(named(metric, prefix), &[], counters);
        }
        registry.counter(named(&ERRORS, prefix), &[]);
        if is_stub {
            return None;
        }
        #[allow(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
        let capacity = cache.capacity as f64;
        registry.gauge(named(&MAX_SIZE, prefix), &[], move || Some(capacity));
        Some(Statistics { cache, registry: Arc::clone(registry) })
    }

    /// Answers a query of class CH for a statistic. Returns true if it was one.
    pub(super) fn answer(&self, query: &Query, response: &mut Response) -> bool {
        if query.qclass != Class::CH || query.qtype != Type::TXT {
            return false;
        }
        let sum = |counters: &[Counter]| counters.iter().map(|counter| self.registry.read(*counter)).sum();
        let number: u64 = match label_of(query.key()) {
            Some(b"cachesize") => self.cache.capacity as u64,
            Some(b"hits") => sum(&self.cache.hits),
            Some(b"misses") => sum(&self.cache.misses),
            Some(b"insertions") => sum(&self.cache.insertions),
            Some(b"evictions") => sum(&self.cache.evictions),
            // Queries for dnsmasq's own zones, which do not exist here.
            Some(b"auth") => 0,
            _ => return false,
        };
        response.set_local();
        let text = number.to_string();
        response.message.push(Section::Answer, Owner::Question, (Type::TXT, Class::CH, 0), |rdata| {
            rdata.character_string(text.as_bytes());
        });
        true
    }
}

/// First label of `LABEL.bind`.
fn label_of(name: NameRef<'_>) -> Option<&[u8]> {
    let mut labels = name.labels();
    let label = labels.next()?;
    (labels.next()? == b"bind" && labels.next().is_none()).then_some(label)
}

/// Timeout of a query.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Each query is one datagram; no connection is kept.
const CONNECTIONS: Connections =
    Connections { idle_max: Duration::ZERO, age_max: Duration::ZERO, kept_max: 1, source: None };

/// Polls the statistics of another process and exports them with this prefix.
pub(super) fn ask(prefix: &str, server: SocketAddr, every: Duration, setup: &mut Setup<'_>) {
    let counter = |metric| setup.registry.counter(named(metric, prefix), &[]);
    let asked = [
        ("hits.bind.", &HITS),
        ("misses.bind.", &MISSES),
        ("evictions.bind.", &EVICTIONS),
        ("insertions.bind.", &INSERTIONS),
        ("cachesize.bind.", &MAX_SIZE),
    ]
    .map(|(name, metric)| Number { name, counter: counter(metric), last: 0 });
    let poll = Poll { server, every, asked, errors: counter(&ERRORS) };
    setup.requests.jobs.push(Box::new(move |io| Box::pin(poll.run(io))));
}

struct Poll {
    server: SocketAddr,
    every: Duration,
    asked: [Number; 5],
    errors: Counter,
}

/// Statistic that is polled.
struct Number {
    name: &'static str,
    counter: Counter,
    last: u64,
}

impl Poll {
    async fn run(mut self, io: Rc<dyn Io>) {
        loop {
            for number in &mut self.asked {
                match ask_number(self.server, number.name, &*io).await {
                    Some(now) => {
                        // After a restart the other process counts from zero. The exported counter keeps its previous
                        // value and adds to it.
                        let more = now.checked_sub(number.last).unwrap_or(now);
                        io.counters().add(number.counter, more);
                        number.last = now;
                    }
                    None => io.counters().count(self.errors),
                }
            }
            io.sleep_until(io.now() + self.every).await;
        }
    }
}

async fn ask_number(server: SocketAddr, name: &str, io: &dyn Io) -> Option<u64> {
    let name = Name::from_text(name).ok()?;
    let header = Header { flags: Flags::default().with_recursion_desired(true), ..Header::default() };
    let mut message = MessageBuf::new();
    message.start(header, Some((name.as_ref(), Type::TXT, Class::CH)));
    let query = message.finish(None, core::iter::empty());
    let until = io.now() + TIMEOUT;
    let exchange = Exchange::new(server, Transport::Udp, query, until, CONNECTIONS);
    let exchanged = io.exchange(exchange).await.ok()?;
    let reply = exchanged.reply.message().ok()?;
    let text = reply.records().find(|record| record.rtype() == Type::TXT)?;
    let (length, rest) = text.rdata().split_first()?;
    core::str::from_utf8(rest.get(..usize::from(*length))?).ok()?.trim().parse().ok()
}
