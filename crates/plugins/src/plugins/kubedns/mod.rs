//! HTTP pages and metrics of the kube-dns pod, and dnsmasq's cache statistics.
//!
//! `count` has the metrics of the process `kube-dns`, `statistics` those of dnsmasq, and `dump` the page with the
//! records. `filter` removes records from answers, as dnsmasq can.

mod count;
mod dump;
mod filter;
mod statistics;

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;

use config::options::{Args, Manifest, Problem, Property, Usage};
use config::setup::{Page, PageContent, Part, Readiness, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use metrics::Metric;
use wire::Type;

use common_plugins::shared::cluster_view::Exposed;
use common_plugins::shared::option_helpers::{listen_address, metric_word, metrics_page, mnemonic, url_path};

use count::Count;
use statistics::Statistics;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "kubedns",
    "serve the HTTP endpoints and metrics of kube-dns",
    Config::default,
    build,
)
.arguments("kubedns [ADDRESS]", |config, args| {
    config.pages = listen_address(args)?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("lameduck DURATION"),
        default: "0s",
        doc: "Time to keep serving after the signal to shut down.",
        set: |config, args| {
            config.lameduck = args.duration()?;
            Ok(())
        },
    },
    Property {
        usage: Usage("metrics NAMESPACE SUBSYSTEM"),
        default: "off",
        doc: "Export the metrics of kube-dns with this prefix; kube-dns used `skydns skydns`.",
        set: |config, args| {
            config.count = Some([metric_word(args)?, metric_word(args)?]);
            Ok(())
        },
    },
    Property {
        usage: Usage("page ADDRESS PATH"),
        default: "off",
        doc: "Serve all metrics of the server at this address and path, and at this path of the other endpoints, too.",
        set: |config, args| {
            let address = listen_address(args)?.unwrap_or_default();
            config.metrics_page = Some((address, url_path(args)?));
            Ok(())
        },
    },
    Property {
        usage: Usage("dnsmasq PREFIX [SERVER INTERVAL]"),
        default: "off",
        doc: "Export the statistics of *cache* as the metrics of kube-dns's sidecar with this prefix, and answer \
              dnsmasq's TXT queries of class CH. With SERVER (`IP:PORT`), query the statistics of that process at \
              INTERVAL instead.",
        set: |config, args| {
            let prefix = metric_word(args)?;
            let server = match args.next_word() {
                None => None,
                Some(word) => {
                    let server: SocketAddr = word.text.parse().map_err(|_| args.bad(word, "an address with a port"))?;
                    Some((server, args.duration()?))
                }
            };
            config.dnsmasq = Some((prefix, server));
            Ok(())
        },
    },
    Property {
        usage: Usage("filter TYPE..."),
        default: "off",
        doc: "Remove the records of these types from the answer section, as `--filter-AAAA` of dnsmasq does. The \
              response code and aliases stay.",
        set: |config, args| {
            config.filtered.push(a_type(args)?);
            while !args.rest().is_empty() {
                config.filtered.push(a_type(args)?);
            }
            Ok(())
        },
    },
    Property {
        usage: Usage("stub"),
        default: "off",
        doc: "Count queries forwarded by this server block as those of a stub domain in `metrics`.",
        set: |config, _| {
            config.is_stub = true;
            Ok(())
        },
    },
])
.metrics(&METRICS);

fn a_type(args: &mut Args<'_>) -> Result<Type, Problem> {
    let word = args.word()?;
    mnemonic(args, word, "a type in capitals such as `AAAA`", Type::mnemonic)
}

static METRICS: [&Metric; 11] = {
    let [a, b, c, d, e] = count::METRICS;
    let [f, g, h, i, j, k] = statistics::METRICS;
    [a, b, c, d, e, f, g, h, i, j, k]
};

#[derive(Default)]
pub struct Config {
    pages: Option<String>,
    lameduck: Duration,
    count: Option<[String; 2]>,
    metrics_page: Option<(String, String)>,
    dnsmasq: Option<(String, Option<(SocketAddr, Duration)>)>,
    is_stub: bool,
    filtered: Vec<Type>,
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    setup.requests.lameduck = setup.requests.lameduck.max(config.lameduck);
    if let Some(address) = &config.pages {
        pages(address, setup);
    }
    if let Some((address, path)) = config.metrics_page {
        // All handlers of kube-dns are in one table, which serves both ports.
        if let Some(pages) = config.pages.filter(|pages| *pages != address) {
            setup.requests.pages.push(metrics_page(setup.registry, pages, path.clone()));
        }
        setup.requests.pages.push(metrics_page(setup.registry, address, path));
    }
    let count = config.count.map(|names| Count::new(&names, config.is_stub, setup));
    let statistics = match config.dnsmasq {
        None => None,
        Some((prefix, Some((server, every)))) => {
            statistics::ask(&prefix, server, every, setup);
            None
        }
        Some((prefix, None)) => Statistics::show(&prefix, config.is_stub, setup),
    };
    let filtered = config.filtered;
    if count.is_none() && statistics.is_none() && filtered.is_empty() {
        return Ok(None);
    }
    Ok(Some(Part::new(KubeDns { count, statistics, filtered }, Hooks::BOTH)))
}

/// Registers `/readiness`, and `/cache` if there is a cluster.
fn pages(address: &str, setup: &mut Setup<'_>) {
    let readiness = Arc::clone(&setup.requests.readiness);
    setup.requests.pages.push(Page::new(address.to_owned(), "/readiness", move || is_ready(&readiness)));
    if let Some(exposed) = setup.below.find::<Arc<Exposed>>() {
        setup.requests.pages.push(Page::new(address.to_owned(), "/cache", move || dump::page(&exposed)));
    }
}

/// Stays ready after it has been ready once, even if the API server fails, because queries are still answered.
fn is_ready(readiness: &Readiness) -> PageContent {
    match readiness.unready(false).join(",") {
        unready if unready.is_empty() => PageContent::text(200, "ok\n"),
        unready => PageContent::text(503, format!("waiting for {unready}\n")),
    }
}

struct KubeDns {
    count: Option<Count>,
    statistics: Option<Statistics>,
    /// Types whose records are removed from answers.
    filtered: Vec<Type>,
}

impl Plugin for KubeDns {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        match &self.statistics {
            Some(statistics) if statistics.answer(query, response) => Verdict::Done,
            _ => Verdict::Pass,
        }
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if !self.filtered.is_empty() {
            filter::remove(&self.filtered, query, response, worker);
        }
        if let Some(count) = &self.count {
            count.count(query, response, worker);
        }
        Verdict::Pass
    }
}
