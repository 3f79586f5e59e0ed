//! Forwards queries to upstreams over gRPC.

mod manifest;
mod metrics;

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;

use config::setup::{Part, Setup, SetupError};
use engine::tls::TlsClient;
use engine::{
    Connections, Exchange, ExchangeError, ExchangeObservers, ExchangeReply, Failure, Hooks, Instant, Io, LocalFuture,
    Plugin, PoolOwner, Query, Resolved, Response, Transport, Verdict, Worker, Zones,
};
use upstream::Policy;
use wire::{EdeCode, Rcode, Reply};

use self::metrics::UpstreamMetrics;
use common_plugins::shared::resolver_arpa;
use common_plugins::shared::upstream_options::{
    ForwardedNames, failure, listed_in, none_listed, notify_observers, with_interface,
};
pub(crate) use manifest::MANIFEST;
use manifest::{Config, Target};

/// Total time for a query, over all attempts. As with *forward*, the failure arrives before most clients give up.
const DEADLINE: Duration = Duration::from_millis(4_800);
/// Timeout for the answer of one upstream.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);
/// gRPC status code NOT_FOUND, which counts as NXDOMAIN.
const NOT_FOUND: u32 = 5;

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let tls = &config.upstreams.tls;
    let tls = tls.is_set.then(|| tls.client(None, setup)).transpose()?;
    let mut upstreams: Vec<Upstream> = Vec::new();
    for (address, unix_path) in addresses(&config.targets, setup)? {
        let name = unix_path.as_ref().map_or_else(|| address.to_string(), |path| format!("unix://{path}"));
        if upstreams.iter().all(|known| known.name != name) {
            let metrics = UpstreamMetrics::new(setup.registry, &name);
            upstreams.push(Upstream { address, unix_path, metrics, owner: pool_owner(&name, setup), name });
        }
    }
    if upstreams.is_empty() {
        return Err(none_listed(config.targets.iter().filter_map(|target| match target {
            Target::File(name) => Some(name.as_str()),
            Target::Address(_) | Target::Socket(_) => None,
        })));
    }
    let grpc = Grpc {
        names: config.upstreams.forwarded_names(),
        upstreams,
        tls,
        policy: config.upstreams.policy,
        observers: setup.observers(),
        fallthrough: config.fallthrough.into_iter().collect(),
    };
    Ok(Some(Part::new(grpc, Hooks::DOWN)))
}

/// Returns the addresses of the upstreams, with the paths of Unix sockets, which have an unspecified address.
fn addresses(targets: &[Target], setup: &mut Setup<'_>) -> Result<Vec<(SocketAddr, Option<String>)>, SetupError> {
    let unspecified = SocketAddr::from(([0; 4], 0));
    let mut addresses = Vec::new();
    for target in targets {
        match target {
            Target::Address(address) => addresses.push((with_interface(address, setup), None)),
            Target::Socket(path) => addresses.push((unspecified, Some(path.clone()))),
            Target::File(name) => addresses.extend(listed_in(name, setup)?.into_iter().map(|address| (address, None))),
        }
    }
    Ok(addresses)
}

/// Keeps the connections to an upstream open across reloads, while any configuration lists it.
fn pool_owner(upstream: &str, setup: &mut Setup<'_>) -> PoolOwner {
    PoolOwner(setup.reload_state.get_or_insert_with(format!("grpc/{upstream}"), || ()))
}

struct Upstream {
    /// Address, or URL of a Unix socket.
    name: String,
    address: SocketAddr,
    unix_path: Option<String>,
    metrics: UpstreamMetrics,
    owner: PoolOwner,
}

/// Plugin for the `grpc` line of a server block.
struct Grpc {
    names: ForwardedNames,
    upstreams: Vec<Upstream>,
    tls: Option<TlsClient>,
    policy: Policy,
    observers: Arc<ExchangeObservers>,
    /// Zones in which an NXDOMAIN response passes the query to the next plugin.
    fallthrough: Zones,
}

impl Plugin for Grpc {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        if !self.names.contain(query.key()) {
            return Verdict::Pass;
        }
        if self.names.deny(query.key()) {
            resolver_arpa::deny(response);
            return Verdict::Done;
        }
        Verdict::Wait
    }

    fn resolve<'a>(&'a self, query: &'a Query, io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        Box::pin(async move {
            match self.query_upstreams(query, io).await {
                Ok(reply) if self.falls_through(query, &reply) => Resolved::Pass,
                Ok(reply) => Resolved::Reply(reply),
                Err(failure) => Resolved::Fail(failure),
            }
        })
    }
}

impl Grpc {
    fn falls_through(&self, query: &Query, reply: &Reply) -> bool {
        reply.rcode() == Rcode::NXDOMAIN && self.fallthrough.contain(query.key())
    }

    /// Queries the upstreams in policy order, each at most once, until one answers.
    async fn query_upstreams(&self, query: &Query, io: &dyn Io) -> Result<Reply, Failure> {
        let question = (query.name(), query.qtype, query.qclass);
        let (udp_size, dnssec_ok) = (query.onward_udp_size(), query.dnssec_ok);
        let bytes = upstream::outgoing(question, query.flags(), udp_size, dnssec_ok, query.onward_options());
        let deadline = io.now() + DEADLINE;
        let mut failed = Failure::servfail(EdeCode::NO_REACHABLE_AUTHORITY, "no upstream was asked");
        for at in self.policy.order(self.upstreams.len(), io.random()) {
            let upstream = &self.upstreams[at];
            let until = deadline.min(io.now() + ATTEMPT_TIMEOUT);
            query.set_upstream(upstream.address);
            match self.exchange(upstream, (query, &bytes), until, io).await {
                Ok(reply) => return Ok(reply),
                Err(error) => failed = failure(&upstream.name, "grpc", &error),
            }
            if io.now() >= deadline {
                break;
            }
        }
        Err(failed)
    }

    async fn exchange(
        &self,
        upstream: &Upstream,
        (received, query): (&Query, &[u8]),
        until: Instant,
        io: &dyn Io,
    ) -> Result<Reply, ExchangeError> {
        let sent = io.now();
        let (counters, metrics) = (io.counters(), &upstream.metrics);
        counters.count(metrics.requests);
        let (to, over, tls) = (upstream.address, Transport::Grpc, self.tls.as_ref());
        let connections = Connections { idle_max: Duration::MAX, age_max: Duration::ZERO, kept_max: 0, source: None };
        let owner = Some(&upstream.owner);
        let unix_path = upstream.unix_path.as_deref();
        let exchange = Exchange { unix_path, tls, owner, ..Exchange::new(to, over, query, until, connections) };
        let outcome = io.exchange(exchange).await;
        // The observers know upstreams by address.
        if unix_path.is_none() {
            notify_observers(&self.observers, received, (exchange, sent, &outcome), io);
        }
        let reply = match outcome {
            Ok(ExchangeReply { reply, .. }) => upstream::readable(reply).filter(|reply| reply.responds_to(query)),
            Err(ExchangeError::Status { code: NOT_FOUND, .. }) => upstream::answered_with(query, Rcode::NXDOMAIN),
            Err(error) => return Err(error),
        };
        let reply = reply.ok_or(ExchangeError::Unreadable)?;
        counters.count(metrics.responses.counter(reply.rcode()));
        if let Some(duration) = metrics.duration {
            counters.observe(duration, u64::try_from(io.now().since(sent).as_nanos()).unwrap_or(u64::MAX));
        }
        Ok(reply)
    }
}
