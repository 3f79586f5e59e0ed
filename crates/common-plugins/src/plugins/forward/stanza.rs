//! One `forward` line: its upstreams and the names that it forwards.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use config::setup::{CachesAbove, Setup, SetupError};
use engine::tls::TlsClient;
use engine::{Connections, ExchangeObservers, FairShares, HttpMethod, LabelSetter};
use upstream::{CaseMemory, CookieJar, Health, Limits, Policy, Protocol, Target};
use wire::{Name, NameRef, Rcode};

use super::forgery::ForgeryWatch;
use super::manifest::Config;
use super::metrics::{ForwardMetrics, UpstreamMetrics};
use super::outage::Outage;
use crate::shared::upstream_options::{ForwardedNames, listed_in, none_listed, was_listed, with_interface};

/// Time limit for a query, including all attempts. The resolvers of glibc, musl and Go give up after five seconds: a
/// failure that is sent then arrives too late, and they neither report it nor ask the next server.
const DEADLINE: Duration = Duration::from_millis(4_800);

/// Lookup of host names. The process provides it for upstreams that are configured by name.
pub trait HostLookup: Send + Sync {
    /// Returns the addresses of a host, whose name is complete. Uses `resolvers` or, if there are none, the system's
    /// resolver.
    ///
    /// # Errors
    /// Fails if the host has no address or the lookup failed.
    fn lookup(&self, host: &str, resolvers: &[SocketAddr]) -> io::Result<Vec<IpAddr>>;
}

/// One upstream.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    pub(super) protocol: Protocol,
    /// TLS client, unless the protocol is plain DNS.
    pub(super) tls: Option<TlsClient>,
    pub(super) health: Health,
    pub(super) outage: Outage,
    pub(super) forgery: ForgeryWatch,
    /// Its DNS cookies, with `send_cookie`.
    pub(super) cookies: CookieJar,
    /// Whether it changes the case of names, with `use_caps_for_id`.
    pub(super) case: CaseMemory,
    pub(super) metrics: UpstreamMetrics,
}

/// One `forward` line.
pub(super) struct Stanza {
    names: ForwardedNames,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) policy: Policy,
    /// Query all upstreams at once.
    pub(super) ask_all: bool,
    pub(super) limits: Limits,
    pub(super) connections: Connections,
    pub(super) force_tcp: bool,
    pub(super) prefer_udp: bool,
    pub(super) method: HttpMethod,
    /// Ask `https://` upstreams over HTTP/3 once they offer it.
    pub(super) http3: bool,
    /// Give names in queries over UDP random case.
    pub(super) use_caps_for_id: bool,
    /// Send DNS cookies in queries over UDP.
    pub(super) sends_cookies: bool,
    /// Pad queries to encrypted upstreams.
    pub(super) pads_queries: bool,
    pub(super) health_check: Duration,
    pub(super) probe: Vec<u8>,
    /// Slots of `max_concurrent`, if it limits anything.
    pub(super) slots: Option<Arc<FairShares>>,
    pub(super) next: Vec<Rcode>,
    pub(super) next_on_nodata: bool,
    pub(super) failover: Vec<Rcode>,
    pub(super) metrics: ForwardMetrics,
    pub(super) observers: Arc<ExchangeObservers>,
    /// Caches to empty if their entries may be forged.
    pub(super) caches: CachesAbove,
    /// Label for the upstream that was tried last.
    pub(super) upstream_label: LabelSetter,
}

impl Stanza {
    pub(super) fn new(config: Config, setup: &mut Setup<'_>, metrics: ForwardMetrics) -> Result<Stanza, SetupError> {
        let upstreams: Vec<Upstream> = resolve(&config, setup)?
            .into_iter()
            .map(|Resolved { address, protocol, tls }| Upstream {
                address,
                protocol,
                tls,
                health: Health::default(),
                outage: Outage::default(),
                case: CaseMemory::default(),
                cookies: CookieJar::default(),
                forgery: ForgeryWatch::new(config.unwanted_reply_threshold),
                metrics: UpstreamMetrics::new(setup.registry, &address.to_string()),
            })
            .collect();
        let failures_max = config.max_connect_attempts.unwrap_or(2 * upstreams.len());
        Ok(Stanza {
            limits: Limits {
                total: DEADLINE,
                each: config.read_timeout,
                failures_max: (failures_max > 0).then_some(failures_max),
                max_fails: config.max_fails,
                fail_fast: config.fail_fast,
            },
            connections: Connections {
                idle_max: config.expire,
                age_max: config.max_age,
                kept_max: config.max_idle_connections,
                source: config.source,
            },
            names: config.upstreams.forwarded_names(),
            upstreams,
            policy: config.upstreams.policy,
            ask_all: config.ask_all,
            force_tcp: config.force_tcp,
            prefer_udp: config.prefer_udp,
            method: config.method,
            http3: config.http3,
            use_caps_for_id: config.use_caps_for_id,
            sends_cookies: config.sends_cookies,
            pads_queries: config.pads_queries,
            health_check: config.health_check,
            probe: upstream::probe(&config.probe_name, config.probe_recursion),
            slots: (config.max_concurrent > 0).then(|| FairShares::new(config.max_concurrent)),
            next: config.next,
            next_on_nodata: config.next_on_nodata,
            failover: config.failover,
            metrics,
            observers: setup.observers(),
            caches: setup.below.find().unwrap_or_default(),
            upstream_label: setup.labels().publish_setter("forward/upstream"),
        })
    }

    /// Returns the number of upstreams.
    pub(super) fn upstreams(&self) -> usize {
        self.upstreams.len()
    }

    /// Returns true if this line forwards a name (in lower case).
    pub(super) fn forwards(&self, key: NameRef<'_>) -> bool {
        self.names.contain(key)
    }

    /// Returns the zone whose names this line forwards.
    pub(super) const fn zone(&self) -> &Name {
        self.names.zone()
    }

    /// Returns true if the upstreams of this line must not see a name that it forwards.
    pub(super) fn denies(&self, key: NameRef<'_>) -> bool {
        self.names.deny(key)
    }
}

/// Upstream whose address is known.
struct Resolved {
    address: SocketAddr,
    protocol: Protocol,
    tls: Option<TlsClient>,
}

/// Returns all upstreams without duplicates. The same address with another protocol is another upstream.
fn resolve(config: &Config, setup: &mut Setup<'_>) -> Result<Vec<Resolved>, SetupError> {
    let mut upstreams: Vec<Resolved> = Vec::new();
    for target in &config.targets {
        let (protocol, server_name, found) = match target {
            Target::Address { protocol, address, server_name } => {
                (*protocol, server_name.as_ref(), vec![with_interface(address, setup)])
            }
            Target::Named { protocol, name, port } => (*protocol, Some(name), named(name, *port, config, setup)?),
        };
        let tls = protocol.is_encrypted().then(|| config.upstreams.tls.client(server_name, setup)).transpose()?;
        for address in found {
            if !upstreams.iter().any(|known| (known.address, known.protocol) == (address, protocol)) {
                upstreams.push(Resolved { address, protocol, tls: tls.clone() });
            }
        }
    }
    let files = config.targets.iter().filter_map(|target| match target {
        Target::Named { name, .. } => Some(name.as_str()),
        Target::Address { .. } => None,
    });
    if upstreams.is_empty() { Err(none_listed(files)) } else { Ok(upstreams) }
}

/// Returns the name servers in a file, or the addresses of a host.
fn named(name: &str, port: u16, config: &Config, setup: &mut Setup<'_>) -> Result<Vec<SocketAddr>, SetupError> {
    if setup.files.is_file(&setup.path(name)) || name.contains('/') || was_listed(name, setup) {
        return listed_in(name, setup);
    }
    let fail = |what: String| {
        SetupError::new(format!("failed to resolve \"{name}\": {what}"))
            .with_help("write its IP address, or set `resolver` to a DNS server that knows the name")
    };
    let lookup: Arc<dyn HostLookup> =
        setup.process.find().ok_or_else(|| fail("host names cannot be looked up in this process".to_owned()))?;
    let resolvers: Vec<_> = config.resolvers.iter().map(|resolver| with_interface(resolver, setup)).collect();
    let found = lookup.lookup(name, &resolvers).map_err(|error| fail(error.to_string()))?;
    Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}
