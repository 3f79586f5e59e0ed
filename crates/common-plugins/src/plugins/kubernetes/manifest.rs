//! Options of `kubernetes`.

use core::time::Duration;

use cluster::{RateLimit, Request};
use config::options::{Args, DirectiveContext, Manifest, Problem, Property, RemovedProperty, Role, Usage};
use wire::{Name, NameRef};

use super::relays::{self, HasRelays};
use crate::shared::cluster_sources::{self, HasSources, Sources, texts};
use crate::shared::cluster_view::is_reverse;
use crate::shared::option_helpers::TRANSFERRED;
use plugin::fallthrough::{DENIED, FallsThrough, fallthrough};

/// Mode of `pods`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pods {
    /// No pod names exist.
    #[default]
    Disabled,
    /// Every address has a name, without checking that a pod has it.
    Insecure,
    /// Addresses of existing pods have names.
    Verified,
}

/// Parsed `kubernetes` block.
#[derive(Debug)]
pub struct Config {
    pub(super) zones: Vec<Name>,
    pub(super) sources: Sources,
    pub(super) relays: relays::Options,
    pub(super) labels: String,
    pub(super) namespace_labels: String,
    pub(super) pods: Pods,
    /// True to know the names of pods.
    pub(super) identity: bool,
    pub(super) endpoint_pod_names: bool,
    pub(super) ttl: u32,
    pub(super) no_endpoints: bool,
    pub(super) multicluster: Vec<Name>,
    pub(super) zonal: bool,
    pub(super) is_like_kube_dns: bool,
    pub(super) snapshot: Option<String>,
    qps: f64,
    burst: u32,
    in_flight: u32,
    pub(super) startup_timeout: Duration,
    pub(super) ignore_empty: bool,
    pub(super) fallthrough: Vec<Name>,
}

impl FallsThrough for Config {
    fn fallthrough(&mut self) -> &mut Vec<Name> {
        &mut self.fallthrough
    }
}

const TTL_DEFAULT: u32 = 5;
/// Defaults of client-go if only one of the two is set.
const QPS_DEFAULT: f64 = 5.0;
const BURST_DEFAULT: u32 = 10;
/// Maximum interval between two requests, however low the rate.
const EVERY_MAX: Duration = Duration::from_secs(3600);
const STARTUP_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
const TTL_MAX: u32 = 3600;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "kubernetes",
    "serve the services, endpoints and pods of a cluster",
    || Config {
        zones: Vec::new(),
        sources: Sources::default(),
        relays: relays::Options::default(),
        labels: String::new(),
        namespace_labels: String::new(),
        pods: Pods::default(),
        identity: false,
        endpoint_pod_names: false,
        ttl: TTL_DEFAULT,
        no_endpoints: false,
        multicluster: Vec::new(),
        zonal: false,
        is_like_kube_dns: false,
        snapshot: None,
        qps: 0.0,
        burst: 0,
        in_flight: 0,
        startup_timeout: STARTUP_TIMEOUT_DEFAULT,
        ignore_empty: false,
        fallthrough: Vec::new(),
    },
    super::build,
)
.arguments("kubernetes [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(PROPERTIES)
.metrics(&super::METRICS)
.check(check)
.removed(&REMOVED)
.asks_server()
.role(|line| Role::answers(&line.config.zones, &line.config.fallthrough));

/// Properties of early CoreDNS versions.
static REMOVED: [RemovedProperty; 6] = [
    RemovedProperty {
        name: "upstream",
        instead: "remove it: since CoreDNS 1.7 the targets of ExternalName services are always looked up by this \
                  server",
    },
    RemovedProperty {
        name: "resyncperiod",
        instead: "remove it: since CoreDNS 1.7 changes are watched and nothing is listed again",
    },
    TRANSFERRED,
    RemovedProperty {
        name: "federation",
        instead: "remove it: federation v1 of Kubernetes is gone; see `multicluster`",
    },
    RemovedProperty {
        name: "cidrs",
        instead: "write the networks among the zones: `kubernetes cluster.local 10.96.0.0/12`",
    },
    RemovedProperty { name: "autopath", instead: "write the directive `autopath @kubernetes` beside this one" },
];

static PROPERTIES: &[Property<Config>] = &[
    cluster_sources::endpoint(),
    cluster_sources::tls(),
    cluster_sources::kubeconfig(),
    cluster_sources::manifests(),
    relays::urls(),
    relays::tls(),
    relays::token(),
    relays::only(),
    Property {
        usage: Usage("snapshot FILE"),
        default: "off",
        doc: "File to log all changes to, and to start from: a restarted server answers at once, and resumes its \
              watches without lists. Until then, answers carry an Extended DNS Error. Not in CoreDNS.",
        set: |config, args| {
            config.snapshot = Some(args.word()?.text.clone());
            Ok(())
        },
    },
    cluster_sources::stale_after(),
    Property {
        usage: Usage("apiserver_qps NUMBER"),
        default: "0",
        doc: "Average number of requests per second to the API server. 0 is no limit, or 5 if `apiserver_burst` is \
              set.",
        set: |config, args| {
            let word = args.word()?;
            config.qps = word.text.parse().map_err(|_| args.bad(word, "a number"))?;
            if config.qps < 0.0 { Err(args.bad(word, "a number that is not below zero")) } else { Ok(()) }
        },
    },
    Property {
        usage: Usage("apiserver_burst NUMBER"),
        default: "0",
        doc: "Number of requests to the API server that may exceed `apiserver_qps` at once. 0 is 10 if `apiserver_qps` \
              is set.",
        set: |config, args| {
            config.burst = count(args)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("apiserver_max_inflight NUMBER"),
        default: "0",
        doc: "Maximum number of concurrent requests to the API server: lists until they are complete, watches until \
              they start. 0 is no limit.",
        set: |config, args| {
            config.in_flight = count(args)?;
            Ok(())
        },
    },
    cluster_sources::namespaces(),
    Property {
        usage: Usage("namespace_labels EXPRESSION..."),
        default: "",
        doc: "Label selector for namespaces to serve; names in all others do not exist. Cannot be combined with \
              `namespaces`.",
        set: |config, args| {
            config.namespace_labels = selector(args)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("labels EXPRESSION..."),
        default: "",
        doc: "Label selector for Services and EndpointSlices to serve; all others do not exist.",
        set: |config, args| {
            config.labels = selector(args)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("pods disabled|insecure|verified"),
        default: "disabled",
        doc: "Names of pods, `1-2-3-4.NAMESPACE.pod.ZONE`: `disabled`, `insecure` for any address without checking \
              that the pod exists, or `verified` for existing pods, which are watched and need memory.",
        set: |config, args| {
            let modes = [("disabled", Pods::Disabled), ("insecure", Pods::Insecure), ("verified", Pods::Verified)];
            config.pods = args.choice(&modes)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("identity pods"),
        default: "off",
        doc: "Watch pods to know the names of clients, for `portolan tail`, `portolan top` and `portolan explain`, \
              and for the metadata labels `kubernetes/client-pod-name` and `kubernetes/client-label/KEY`. Needs the \
              permission to list and watch pods, and memory. Not in CoreDNS.",
        set: |config, args| {
            args.choice(&[("pods", ())])?;
            config.identity = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("endpoint_pod_names"),
        default: "off",
        doc: "Name endpoints without a hostname after their pod instead of their address.",
        set: |config, _| {
            config.endpoint_pod_names = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("ttl SECONDS [IGNORED...]"),
        default: "5",
        doc: "TTL of the records in seconds, 0 to 3600.",
        set: |config, args| {
            config.ttl = args.number(0..=TTL_MAX)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("noendpoints"),
        default: "off",
        doc: "Do not watch EndpointSlices. Headless services and endpoints then have no names.",
        set: |config, _| {
            config.no_endpoints = true;
            Ok(())
        },
    },
    fallthrough(DENIED),
    Property {
        usage: Usage("ignore [empty_service [IGNORED...]]"),
        default: "off",
        doc: "Answer NXDOMAIN for services without ready endpoints (`empty_service`).",
        set: |config, args| match args.next_word() {
            None => Ok(()),
            Some(word) if word.text == "empty_service" => {
                config.ignore_empty = true;
                Ok(())
            }
            Some(word) => Err(args.bad(word, "`empty_service`")),
        },
    },
    Property {
        usage: Usage("startup_timeout DURATION [IGNORED...]"),
        default: "5s",
        doc: "Maximum time that a reload waits until the cluster has been listed, if it must be listed again. The old \
              configuration keeps serving meanwhile. The first start does not wait.",
        set: |config, args| {
            config.startup_timeout = args.duration()?;
            Ok(())
        },
    },
    Property {
        usage: Usage("multicluster [ZONES...]"),
        default: "off",
        doc: "Zones that have the services shared between clusters (ServiceImports) instead of those of this cluster. \
              They must be among the zones of this plugin. Zones below them are included.",
        set: |config, args| {
            config.multicluster = args.zones()?;
            Ok(())
        },
    },
    Property {
        usage: Usage("zonal"),
        default: "off",
        doc: "Serve `TOPOLOGY-ZONE.pin._zone.SERVICE.NAMESPACE.svc.ZONE`: the endpoints of a headless service in that \
              topology zone. With `prefer` instead of `pin`, all endpoints if the topology zone has none.",
        set: |config, _| {
            config.zonal = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("compat kube-dns"),
        default: "off",
        doc: "Serve the same records as kube-dns, see below. Not in CoreDNS.",
        set: |config, args| {
            config.is_like_kube_dns = args.choice(&[("kube-dns", true)])?;
            Ok(())
        },
    },
];

/// Parses a number of requests. Values above `u32::MAX` become `u32::MAX`.
fn count(args: &mut Args<'_>) -> Result<u32, Problem> {
    args.number::<i64>(0..).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

/// Parses a label selector, with its words joined by spaces as the API expects it.
fn selector(args: &mut Args<'_>) -> Result<String, Problem> {
    let name = args.name();
    let text = texts(args).join(" ");
    match super::selector::check(&text) {
        Ok(()) => Ok(text),
        Err(error) => Err(args.problem_at(name.span, format!("`{text}` is not a label selector: {error}"))),
    }
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let config = context.config;
    if !config.sources.namespaces.is_empty() && !config.namespace_labels.is_empty() {
        return Err(context.problem_with("namespace_labels", "namespaces and namespace_labels cannot both be set"));
    }
    if config.is_like_kube_dns && (config.zonal || config.endpoint_pod_names || !config.multicluster.is_empty()) {
        let problem = "compat kube-dns cannot be combined with zonal, endpoint_pod_names or multicluster";
        return Err(context.problem_with("compat", problem));
    }
    if config.zonal && config.no_endpoints {
        return Err(context.problem_with("zonal", "zonal needs the endpoints: remove noendpoints"));
    }
    let zones = if config.zones.is_empty() { &context.block.zones } else { &config.zones };
    if zones.iter().all(|zone| is_reverse(zone.as_ref())) {
        return Err(context.problem("non-reverse zone name must be used"));
    }
    if let Some(foreign) = config.multicluster.iter().find(|common| !zones.contains(common)) {
        let problem = format!("is not authoritative for the multicluster zone {foreign}");
        return Err(context.problem_with("multicluster", &problem));
    }
    config.relays.check(context)?;
    config.sources.check_tls(context)
}

impl HasRelays for Config {
    fn relays(&mut self) -> &mut relays::Options {
        &mut self.relays
    }
}

impl HasSources for Config {
    fn sources(&mut self) -> &mut Sources {
        &mut self.sources
    }
}

impl Config {
    /// Returns true if the zone serves ServiceImports (`multicluster`).
    pub(super) fn is_common(&self, zone: NameRef<'_>) -> bool {
        self.multicluster.iter().any(|common| zone.is_within(common.as_ref()))
    }

    /// Resources to watch for this configuration.
    pub(super) fn request(&self, path: impl Fn(&str) -> std::path::PathBuf) -> Request {
        Request {
            labels: self.labels.clone(),
            namespace_labels: self.namespace_labels.clone(),
            endpoints: !self.no_endpoints,
            pods: self.pods == Pods::Verified,
            pod_names: self.identity,
            endpoint_pod_names: self.endpoint_pod_names,
            endpoint_zones: self.zonal,
            multicluster: !self.multicluster.is_empty(),
            relays: self.relays.relays(&path),
            snapshot: self.snapshot.as_ref().map(|name| path(name)),
            rate_limit: rate_limit(self.qps, self.burst, self.in_flight),
            ..self.sources.request(&path)
        }
    }
}

/// Rate limit for requests to the API server. If only rate or burst is set, the other one has the default of client-go.
fn rate_limit(qps: f64, burst: u32, in_flight: u32) -> RateLimit {
    let (qps, burst) = match (qps > 0.0 && qps.is_finite(), burst > 0) {
        (false, false) => return RateLimit { in_flight, ..RateLimit::default() },
        (true, true) => (qps, burst),
        (true, false) => (qps, BURST_DEFAULT),
        (false, true) => (QPS_DEFAULT, burst),
    };
    let every = Duration::try_from_secs_f64(1.0 / qps).map_or(EVERY_MAX, |every| every.min(EVERY_MAX));
    RateLimit { every, burst, in_flight }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_the_rate_limit_from_the_options() {
        // qps, burst, requests in flight; milliseconds between requests, burst
        for (qps, burst, in_flight, every, most) in [
            (0.0, 0, 0, 0, 0),
            (0.0, 0, 3, 0, 0),
            (50.0, 100, 0, 20, 100),
            (0.5, 0, 1, 2000, 10),
            (0.0, 20, 0, 200, 20),
            (1e-300, 1, 0, 3_600_000, 1),
            (f64::INFINITY, 0, 0, 0, 0),
            (f64::NAN, 0, 0, 0, 0),
        ] {
            let expected = RateLimit { every: Duration::from_millis(every), burst: most, in_flight };
            assert_eq!(rate_limit(qps, burst, in_flight), expected, "{qps} {burst} {in_flight}");
        }
    }
}
