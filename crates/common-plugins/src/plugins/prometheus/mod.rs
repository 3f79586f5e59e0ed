//! Counts queries and serves the metrics of the server.

mod web;

use std::sync::Arc;

use config::Directives;
use config::options::{Directive, Manifest, Property, Usage};
use config::setup::{Page, Part, ReloadState, Setup, SetupError};
use engine::{Hooks, Plugin, Query, QueryMetrics, Response, SERVER_METRICS, Verdict, Worker};

use crate::shared::option_helpers::{listen_address, metrics_page, no_arguments, url_path};
use metrics::{Kind, Metric, Registry};
use plugin::PerSite;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "prometheus",
    "export metrics in Prometheus format",
    || Config { address: DEFAULT_ADDRESS.to_owned(), path: "/metrics".to_owned(), web: None },
    build,
)
.arguments("prometheus [ADDRESS]", |config, args| {
    if let Some(address) = listen_address(args)? {
        config.address = address;
    }
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("runtime_metrics"),
        default: "off",
        doc: "Accepted for compatibility with CoreDNS. There is no Go runtime to export metrics of.",
        set: no_arguments,
    },
    Property {
        usage: Usage("path PATH"),
        default: "/metrics",
        doc: "Path of the metrics endpoint. Not in CoreDNS.",
        set: |config, args| {
            config.path = url_path(args)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("tls FILE"),
        default: "",
        doc: "Serve metrics over HTTPS, with this web configuration file.",
        set: |config, args| {
            config.web = Some(args.word()?.text.clone());
            Ok(())
        },
    },
])
.metrics(&SERVER_METRICS);

const DEFAULT_ADDRESS: &str = "localhost:9153";

static PLUGIN_ENABLED: Metric = Metric {
    name: "coredns_plugin_enabled",
    help: "A metric that indicates whether a plugin is enabled on per server and zone basis.",
    kind: Kind::Gauge,
    labels: &["server", "zone", "view", "name"],
};

/// Metrics of the configuration, for the documentation.
pub static ENABLED_METRICS: [&Metric; 1] = [&PLUGIN_ENABLED];

pub struct Config {
    address: String,
    path: String,
    /// Web configuration file for HTTPS.
    web: Option<String>,
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    for config in configs {
        // As in CoreDNS, a server that cannot serve metrics still answers queries.
        match config.web.as_deref().map_or(Ok(None), |file| web::tls(file, setup)) {
            Ok(tls) => {
                let page = metrics_page(setup.registry, config.address, config.path);
                setup.requests.pages.push(Page { tls, ..page });
            }
            Err(error) => setup.warn(format_args!("metrics are not served: {error}")),
        }
    }
    let registry = setup.registry;
    if let Some(directives) = setup.process.find::<Directives>() {
        show_at_zero(registry, directives);
    }
    let (block, mut enabled) = (setup.block, Vec::new());
    for site in &block.sites {
        for name in &block.handlers {
            enabled.push(show_enabled([&site.server, &site.zone, &site.view, name], registry, setup.reload_state));
        }
    }
    let metrics = PerSite::new(block, |site| {
        QueryMetrics::new(registry, [site.server.as_str(), &site.zone, &site.view], &block.directives)
    });
    Ok(Some(Part::new(Prometheus { metrics, _enabled: enabled }, Hooks::UP.with_updates())))
}

struct Prometheus {
    metrics: PerSite<QueryMetrics>,
    _enabled: Vec<Arc<Enabled>>,
}

/// Registers the metrics of CoreDNS that have no labels, so that they are exported even if no server block has their
/// directive. CoreDNS registers them when its process starts.
fn show_at_zero(registry: &Registry, directives: Directives) {
    let all = directives.available().flat_map(Directive::metrics);
    for metric in all.filter(|metric| metric.labels.is_empty() && metric.name.starts_with("coredns_")) {
        match metric.kind {
            Kind::Counter => _ = registry.counter(metric, &[]),
            Kind::Histogram(_) => _ = registry.histogram(metric, &[]),
            Kind::Gauge => {}
        }
    }
}

/// Keeps a series of [`PLUGIN_ENABLED`] as long as a generation with the plugin exists.
struct Enabled;

/// Shows a plugin as enabled. The series ends with the last clone of the result, which is shared across reloads.
fn show_enabled(labels: [&str; 4], registry: &Registry, reload_state: &mut ReloadState) -> Arc<Enabled> {
    let enabled = reload_state.get_or_insert_with(format!("{}{labels:?}", PLUGIN_ENABLED.name), || Enabled);
    let shown = Arc::downgrade(&enabled);
    registry.gauge(&PLUGIN_ENABLED, &labels, move || (shown.strong_count() > 0).then_some(1.0));
    enabled
}

impl Plugin for Prometheus {
    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if let Some(metrics) = self.metrics.of(query) {
            metrics.count(query, response, worker);
        }
        Verdict::Pass
    }
}
