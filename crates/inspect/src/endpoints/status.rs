//! State of the server on one screen.

use config::setup::{InspectLoop, UpstreamHealth};
use control::status::{
    Answers, Cache, Cluster, CodeCount, Corefile, FailedExchange, Keeper, Latency, LimitHits, Limits, LoopProbe,
    Refused, Resource, Resources, Serving, Status, Upstream, UpstreamState, WARNINGS_MAX, WatchState,
};
use engine::Clock;
use metrics::HistogramTotals;
use transport::MonotonicClock;

use super::super::context::Context;
use super::super::history::{RATE_WINDOW, Totals};
use super::super::{EarlierExits, Loaded, drops};
use super::problems;
use super::replicas::replicas;
use process::cgroup;
use process::clusters::FollowedCluster;

/// Version of CoreDNS whose Corefiles and metrics this server has.
const COMPATIBLE_WITH: &str = "CoreDNS 1.15.0";
/// Directive that counts the queries of a server block.
const COUNTING: &str = "prometheus";

/// Returns the state of the server.
pub(crate) fn status(context: &Context) -> Status {
    let loaded = context.view.loaded();
    let now = Totals::read(&context.view.registry);
    let history = context.history.borrow();
    let before = history.before(now.at, RATE_WINDOW).unwrap_or(&now);
    let oldest = history.oldest().unwrap_or(&now);
    let (serving, unready) = serving(&loaded);
    let mut status = Status {
        version: process::version::VERSION.to_owned(),
        compatible_with: COMPATIBLE_WITH.to_owned(),
        host: process::local::host_name().0,
        in_pod: process::local::is_pod(),
        process_id: std::process::id(),
        uptime_seconds: context.view.started.elapsed().as_secs_f64(),
        keeper: context.view.earlier.as_ref().map(keeper),
        serving,
        unready,
        corefile: corefile(context, &loaded),
        replicas: replicas(&context.view.clusters, &loaded),
        clusters: context.view.clusters.all().into_iter().map(cluster).collect(),
        answers: answers(context, before, &now),
        upstreams: upstreams(&loaded, before, &now),
        loops: loops(&loaded),
        cache: cache(&loaded, before, &now),
        limits: limits(oldest, &now),
        resources: resources(before, &now),
        problems: Vec::new(),
    };
    status.problems = problems::problems(&status);
    status.problems.extend(problems::of_zones(&loaded));
    status.problems.extend(problems::of_certificates(&loaded));
    status
}

/// Returns the ability to answer queries, and the directives that are not ready.
pub(super) fn serving(loaded: &Loaded) -> (Serving, Vec<String>) {
    let unready: Vec<String> = loaded.readiness.unready(false).into_iter().map(str::to_owned).collect();
    let serving = match (loaded.readiness.is_ending(), unready.is_empty()) {
        (true, _) => Serving::Ending,
        (false, true) => Serving::Ready,
        (false, false) => Serving::NotReady,
    };
    (serving, unready)
}

fn keeper(earlier: &EarlierExits) -> Keeper {
    Keeper {
        restarts: earlier.total.into(),
        restarts_in_hour: earlier.in_last_hour.into(),
        last_exit: earlier.reason.clone(),
    }
}

fn corefile(context: &Context, loaded: &Loaded) -> Corefile {
    let (refused, warnings) = (context.view.refused(), loaded.current_warnings());
    Corefile {
        generation: loaded.generation,
        hash: loaded.hash.clone(),
        age_seconds: loaded.at.map_or(0.0, |at| at.elapsed().as_secs_f64()),
        blocks: context.view.live.load().blocks.len() as u64,
        warnings: warnings.len() as u64,
        first_warnings: warnings.iter().take(WARNINGS_MAX).map(ToString::to_string).collect(),
        refused: refused.map(|(age, error)| Refused { age_seconds: age.as_secs_f64(), error }),
    }
}

fn cluster(followed: FollowedCluster) -> Cluster {
    let resources: Vec<Resource> = followed.resources.into_iter().map(resource).collect();
    Cluster {
        source: followed.source,
        synced: followed.index.is_synced(),
        from_snapshot: followed.index.is_remembered(),
        age_seconds: followed.view_age.map(|age| age.as_secs_f64()),
        stale_after_seconds: followed.stale_after.map(|limit| limit.as_secs_f64()),
        services: u64::from(followed.index.counts().services),
        endpoints: followed.endpoints,
        snapshot_age_seconds: followed.snapshot_age.map(|age| age.as_secs_f64()),
        resources,
    }
}

fn resource(health: kubeapi::ResourceHealth) -> Resource {
    Resource {
        name: health.kind.plural().to_lowercase(),
        objects: u64::from(health.objects),
        state: match (&health.failing, health.listed) {
            (Some(_), _) => WatchState::Failing,
            (None, true) => WatchState::Current,
            (None, false) => WatchState::Listing,
        },
        age_seconds: health.view_age.map(|age| age.as_secs_f64()),
        silent_seconds: health.silent.map(|silent| silent.as_secs_f64()),
        listing_seconds: (!health.listed).then_some(health.age.as_secs_f64()),
        server_seconds: health.server.as_ref().map(|(_, since)| since.as_secs_f64()),
        server: health.server.map(|(url, _)| url),
        failing_seconds: health.failing.as_ref().map(|(since, _)| since.as_secs_f64()),
        error: health.failing.map(|(_, error)| error),
    }
}

fn answers(context: &Context, before: &Totals, now: &Totals) -> Answers {
    let generation = context.view.live.load();
    let counts = |block: &&engine::Block| block.chain.steps().iter().any(|step| step.name == COUNTING);
    let (blocks, counted) = (generation.blocks.len(), generation.blocks.iter().filter(counts).count());
    let window = seconds(before, now);
    let mut codes: Vec<CodeCount> = now
        .codes
        .iter()
        .map(|(code, answers)| CodeCount {
            code: code.clone(),
            answers: answers - before.codes.get(code).unwrap_or(&0),
        })
        .filter(|code| code.answers > 0)
        .collect();
    host::sorting::sort_by(&mut codes, |one, other| {
        other.answers.cmp(&one.answers).then_with(|| one.code.cmp(&other.code))
    });
    let total: u64 = codes.iter().map(|code| code.answers).sum();
    let latency = now.latency.since(&before.latency);
    Answers {
        window_seconds: window,
        uncounted_blocks: (blocks - counted) as u64,
        per_second: (counted > 0).then(|| per_second(total, window)),
        codes,
        p50: quantile(&latency, 0.5),
        p99: quantile(&latency, 0.99),
        lost: drops::dropped_datagrams(),
    }
}

fn seconds(before: &Totals, now: &Totals) -> f64 {
    now.at.saturating_duration_since(before.at).as_secs_f64()
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn per_second(count: u64, window: f64) -> f64 {
    if window > 0.0 { count as f64 / window } else { 0.0 }
}

fn quantile(totals: &HistogramTotals, share: f64) -> Option<Latency> {
    let (above, at_most) = totals.quantile(share)?;
    Some(Latency { above_seconds: above, at_most_seconds: at_most })
}

/// Returns the upstreams of all server blocks. The same address in several of them counts once, with its worst state.
fn upstreams(loaded: &Loaded, before: &Totals, now: &Totals) -> Vec<Upstream> {
    let clock = MonotonicClock.now();
    let mut all: Vec<Upstream> = Vec::new();
    for upstream in loaded.inspection.upstreams.iter().flat_map(|inspected| inspected.upstreams()) {
        let address = upstream.address.to_string();
        let totals = now.upstreams.get(&address).cloned().unwrap_or_default();
        let recent = before.upstreams.get(&address).map_or(totals.clone(), |before| totals.since(before));
        let failures = |totals: &Totals| totals.upstream_failures.get(&address).copied().unwrap_or(0);
        let unwanted = |totals: &Totals| totals.upstream_unwanted.get(&address).copied().unwrap_or(0);
        let found = Upstream {
            failures: failures(now) - failures(before),
            refusals: refusals(&address, before, now),
            unwanted: unwanted(now) - unwanted(before),
            last_failure: upstream.last_failure.map(|(at, error)| FailedExchange {
                age_seconds: clock.since(at).as_secs_f64(),
                over_tcp: error.starts_with(plugins::OVER_TCP),
                error,
            }),
            address,
            transport: upstream.transport.to_owned(),
            state: match upstream.health {
                UpstreamHealth::Up => UpstreamState::Up,
                UpstreamHealth::Suspected => UpstreamState::Suspected,
                UpstreamHealth::Down => UpstreamState::Down,
            },
            down_seconds: upstream.down_since.map(|since| clock.since(since).as_secs_f64()),
            error: upstream.error,
            replies: recent.count(),
            p99: quantile(&recent, 0.99),
        };
        let is_same = |one: &&mut Upstream| one.address == found.address && one.transport == found.transport;
        match all.iter_mut().find(is_same) {
            Some(known) if found.state < known.state => *known = found,
            Some(_) => {}
            None => all.push(found),
        }
    }
    all
}

/// Returns the probes of *loop*.
fn loops(loaded: &Loaded) -> Vec<LoopProbe> {
    let now = MonotonicClock.now();
    let age = |since: engine::Instant| now.since(since).as_secs_f64();
    let probe = |inspected: &dyn InspectLoop| {
        let state = inspected.state();
        LoopProbe {
            zone: inspected.zone().to_string(),
            age_seconds: state.probed.map(age),
            answered: state.answered,
            looping_seconds: state.looping_since.map(age),
        }
    };
    loaded.inspection.loops.iter().map(|inspected| probe(&**inspected)).collect()
}

/// Returns the replies of an upstream with a failure, by response code, most first.
fn refusals(address: &str, before: &Totals, now: &Totals) -> Vec<CodeCount> {
    let own = now.upstream_refusals.iter().filter(|([to, _], _)| to == address);
    let since = |labels, count: &u64| count - before.upstream_refusals.get(labels).unwrap_or(&0);
    let counted = own.map(|(labels, count)| CodeCount { code: labels[1].clone(), answers: since(labels, count) });
    let mut refusals: Vec<CodeCount> = counted.filter(|code| code.answers > 0).collect();
    host::sorting::sort_by_key(&mut refusals, |code| core::cmp::Reverse(code.answers));
    refusals
}

fn cache(loaded: &Loaded, before: &Totals, now: &Totals) -> Option<Cache> {
    let caches = &loaded.inspection.caches;
    let sizes = caches.iter().map(|cache| cache.size());
    let (entries, capacity) = sizes.reduce(|one, other| (one.0 + other.0, one.1 + other.1))?;
    Some(Cache {
        entries: entries as u64,
        capacity: capacity as u64,
        hits: now.cache_hits - before.cache_hits,
        misses: now.cache_misses - before.cache_misses,
        stale: now.cache_stale - before.cache_stale,
    })
}

fn limits(oldest: &Totals, now: &Totals) -> Limits {
    let hits = now
        .limits
        .iter()
        .map(|(limit, hits)| LimitHits { limit: limit.clone(), hits: hits - oldest.limits.get(limit).unwrap_or(&0) });
    Limits { window_seconds: seconds(oldest, now), reached: hits.filter(|limit| limit.hits > 0).collect() }
}

fn resources(before: &Totals, now: &Totals) -> Resources {
    let window = seconds(before, now);
    let cpu_seconds = now.cpu_seconds.zip(before.cpu_seconds).map(|(now, before)| now - before);
    let throttled = now
        .throttling
        .zip(before.throttling)
        .map(|(now, before)| per_second(now.throttled - before.throttled, (now.periods - before.periods) as f64));
    Resources {
        memory_bytes: now.memory_bytes,
        memory_limit_bytes: cgroup::memory_limit(),
        cpus: cpu_seconds.filter(|_| window > 0.0).map(|spent| spent / window),
        cpu_limit: cgroup::cpu_limit(),
        throttled_share: throttled,
    }
}
