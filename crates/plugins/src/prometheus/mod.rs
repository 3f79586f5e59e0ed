//! Counts queries and serves all metrics of the server.

mod web;

use std::sync::Arc;

use engine::metrics::{Kind, Metric, QueryMetrics, Registry, SERVER_METRICS};
use engine::options::{Manifest, Property, Usage};
use engine::setup::{Page, PageContent, Part, Setup, SetupError};
use engine::tls::TlsServer;
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "prometheus",
    "counts queries and serves all metrics of the server",
    include_str!("README.md"),
    || Config { address: DEFAULT_ADDRESS.to_owned(), web: None },
    build,
)
.arguments("prometheus [ADDRESS]", |config, args| {
    if let Some(address) = crate::listen_address(args)? {
        config.address = address;
    }
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("runtime_metrics"),
        default: "off",
        doc: "Accepted for CoreDNS's sake: the metrics of a Go runtime have no counterpart here.",
        set: crate::no_arguments,
    },
    Property {
        usage: Usage("tls FILE"),
        default: "",
        doc: "Metrics are served over HTTPS, as FILE says.",
        set: |config, args| {
            config.web = Some(args.word()?.text.clone());
            Ok(())
        },
    },
])
.metrics(&SERVER_METRICS);

const DEFAULT_ADDRESS: &str = "localhost:9153";
/// What Prometheus expects of a target that speaks its text format.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

static PLUGIN_ENABLED: Metric = Metric {
    name: "coredns_plugin_enabled",
    help: "A metric that indicates whether a plugin is enabled on per server and zone basis.",
    kind: Kind::Gauge,
    labels: &["server", "zone", "view", "name"],
};

pub struct Config {
    address: String,
    /// The file that says how HTTP is served.
    web: Option<String>,
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    for config in configs {
        // As in CoreDNS, names are answered also where metrics cannot be shown.
        match config.web.as_deref().map_or(Ok(None), |file| web::tls(file, setup)) {
            Ok(tls) => setup.needs.pages.push(page(config.address, setup.registry, tls)),
            Err(error) => setup.needs.warnings.push(("prometheus", format!("metrics are not served: {error}"))),
        }
    }
    let registry = setup.registry;
    let block = setup.block;
    for site in &block.sites {
        for name in &block.directives {
            registry.gauge(&PLUGIN_ENABLED, &[&site.server, &site.zone, &site.view, name], || Some(1.0));
        }
    }
    let first_site = block.sites.first().map_or(0, |site| site.index);
    let labels = block.sites.iter().map(|site| [site.server.as_str(), site.zone.as_str(), site.view.as_str()]);
    let sites = labels.map(|labels| QueryMetrics::new(registry, labels, &block.directives)).collect();
    Ok(Some(Part::new(Prometheus { first_site, sites }, Hooks::UP)))
}

fn page(address: String, registry: &Arc<Registry>, tls: Option<Arc<dyn TlsServer>>) -> Page {
    let registry = Arc::clone(registry);
    let body = move || registry.render().into_bytes().into();
    let make = move || PageContent { status: 200, content_type: CONTENT_TYPE, body: body() };
    Page { tls, ..Page::new(address, "/metrics", make) }
}

struct Prometheus {
    /// The sites of a block have consecutive numbers.
    first_site: usize,
    sites: Vec<QueryMetrics>,
}

impl Plugin for Prometheus {
    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if let Some(metrics) = query.site.checked_sub(self.first_site).and_then(|at| self.sites.get(at)) {
            metrics.count(query, response, worker);
        }
        Verdict::Pass
    }
}
