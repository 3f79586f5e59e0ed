//! Options of `istio`.

use std::net::IpAddr;
use std::path::PathBuf;

use cluster::Request;
use config::options::{Args, DirectiveContext, Effect, Manifest, Problem, Property, Role, Usage};
use wire::Name;

use common_plugins::shared::cluster_sources::{self, HasSources, Sources, texts};
use plugin::fallthrough::{FallsThrough, fallthrough};

/// Parsed `istio` block.
#[derive(Debug)]
pub struct Config {
    pub(super) zones: Vec<Name>,
    pub(super) sources: Sources,
    pub(super) default_addresses: Vec<IpAddr>,
    pub(super) default_export_to: Vec<String>,
    pub(super) pods: bool,
    pub(super) vips: Vips,
    pub(super) ttl: u32,
    pub(super) fallthrough: Vec<Name>,
}

impl FallsThrough for Config {
    fn fallthrough(&mut self) -> &mut Vec<Name> {
        &mut self.fallthrough
    }
}

/// Clients that get the addresses of a host rather than those of its endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Vips {
    /// All clients.
    #[default]
    All,
    /// Pods whose traffic the mesh captures.
    Captured,
    /// No clients.
    None,
}

/// Default TTL in seconds, that of Istio's own DNS proxy.
const TTL_DEFAULT: u32 = 30;
/// Maximum TTL in seconds, that of Istio's CoreDNS plugin.
const TTL_MAX: u32 = 3600;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "istio",
    "serve the hosts of Istio service entries",
    || Config {
        zones: Vec::new(),
        sources: Sources::default(),
        default_addresses: Vec::new(),
        default_export_to: Vec::new(),
        pods: false,
        vips: Vips::default(),
        ttl: TTL_DEFAULT,
        fallthrough: Vec::new(),
    },
    super::build,
)
.arguments("istio [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(PROPERTIES)
.metrics(&super::METRICS)
.check(check)
// Some hosts pass on to the next plugins: an entry can leave its addresses to DNS.
.asks_server()
.role(|line| Role {
    fallthrough: line.config.fallthrough.clone(),
    ..Role::new(Effect::AnswersSome, &line.config.zones)
});

static PROPERTIES: &[Property<Config>] = &[
    cluster_sources::endpoint(),
    cluster_sources::tls(),
    cluster_sources::kubeconfig(),
    cluster_sources::manifests(),
    cluster_sources::namespaces(),
    cluster_sources::stale_after(),
    Property {
        usage: Usage("default_address IP..."),
        default: "none",
        doc: "Addresses of hosts without any, like `-default-address` of the old plugin. All such hosts share them, so \
              only ports tell them apart.",
        set: read_default_addresses,
    },
    Property {
        usage: Usage("pods"),
        default: "off",
        doc: "Watch pods: the pods that an entry selects become endpoints of its hosts, and a client that is a pod \
              sees what is exported to its namespace.",
        set: |config, _| {
            config.pods = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("vips all|captured|none"),
        default: "all",
        doc: "Clients that get the addresses of an entry instead of its endpoints: `all`, only pods whose traffic \
              Istio captures (`captured`, requires `pods`), or `none`.",
        set: |config, args| {
            config.vips = args.choice(&[("all", Vips::All), ("captured", Vips::Captured), ("none", Vips::None)])?;
            Ok(())
        },
    },
    Property {
        usage: Usage("default_export_to NAMESPACE..."),
        default: "*",
        doc: "Namespaces that entries without `exportTo` are visible to, like `defaultServiceExportTo` of the mesh: \
              `*` is all, `.` the namespace of the entry.",
        set: |config, args| {
            config.default_export_to = texts(args);
            Ok(())
        },
    },
    Property {
        usage: Usage("ttl SECONDS"),
        default: "30",
        doc: "TTL of the records in seconds, 0 to 3600.",
        set: |config, args| {
            config.ttl = args.number(0..=TTL_MAX)?;
            Ok(())
        },
    },
    fallthrough(
        "Pass queries for other names, and for types other than A and AAAA, to the next plugin: all, or those in \
         ZONES.",
    ),
];

fn read_default_addresses(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let words = args.take_rest();
    let read = |word: &corefile::Token| word.text.parse().map_err(|_| args.bad(word, "an IP address"));
    config.default_addresses = words.iter().map(read).collect::<Result<_, _>>()?;
    Ok(())
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    if context.config.vips == Vips::Captured && !context.config.pods {
        return Err(context.problem_with("vips", "`vips captured` needs `pods` to identify the client's pod"));
    }
    context.config.sources.check_tls(context)
}

impl HasSources for Config {
    fn sources(&mut self) -> &mut Sources {
        &mut self.sources
    }
}

impl Config {
    /// Resources to watch for this configuration.
    pub(super) fn request(&self, path: impl Fn(&str) -> PathBuf) -> Request {
        Request { mesh: true, pods: self.pods, ..self.sources.request(path) }
    }
}
