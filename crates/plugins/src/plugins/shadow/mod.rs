//! Compares the answers with those of another server: for a sample of the queries, or for those that the other server
//! reports by dnstap.
//!
//! A worker that has answered a sampled query copies the query and the answer to a bounded queue and goes on. A
//! background job takes them from there, asks the other server, and compares the answers. Workers neither wait for the
//! job nor share a lock with it. With `dnstap`, a second job fills the queue with answers of the other server, and the
//! first one asks this server.

mod compare;
mod file;
mod frames;
mod job;
mod known;
mod manifest;
mod message;
mod mirror;
mod queue;
mod results;

use core::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use config::setup::{FileWatch, Part, Setup, SetupError};
use engine::{Hooks, LocalFuture, Plugin, Query, Response, Verdict, Worker};
use wire::Opcode;

use file::DifferenceFile;
use job::{Job, Own};
use manifest::Config;
use mirror::Mirror;
use queue::{Entrance, MESSAGE_MAX, Sample};
use results::{Outcomes, Results};

use common_plugins::shared::option_helpers::block_name;

pub use frames::{FrameReader, StreamFrame};
pub(crate) use manifest::MANIFEST;
pub use message::{Mirrored, read_client_response};

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    refuse_itself(config.to, setup)?;
    let (to, sample, outcomes) = (config.to, config.sample, Outcomes::new(setup.registry));
    let results = results(&config, setup);
    let file = difference_file(&config, setup);
    let dnstap = config.dnstap.clone();
    let (entrance, exit) = queue::queue();
    let job = Job::new(config, exit, Arc::clone(&results), outcomes, file);
    let Some(at) = dnstap else {
        setup.requests.jobs.push(Box::new(move |io| Box::pin(job.run(io, None))));
        let sampler = Sampler { to, sample, entrance, results, outcomes };
        return Ok(Some(Part::new(Shadow(Some(sampler)), Hooks::UP)));
    };
    let listener = setup.block.sites.first().map(|site| site.listener).unwrap_or_default();
    let mirror = Mirror { at, local: local_address(setup), sample, entrance, results, outcomes };
    setup.requests.jobs.push(Box::new(move |io| Box::pin(mirror.run(io))));
    let run = move |io, queries| Box::pin(job.run(io, Some(Own { queries, listener }))) as LocalFuture<'static, ()>;
    setup.requests.query_jobs.push(Box::new(run));
    Ok(Some(Part::new(Shadow(None), Hooks::UP)))
}

/// Returns the results of this line. A reload that does not change it keeps them.
fn results(config: &Config, setup: &mut Setup<'_>) -> Arc<Results> {
    let key = format!("shadow {config:?} {:?} {:?}", setup.block.zones, setup.block.sites);
    let (to, block, zones) = (config.to, block_name(setup.block), setup.block.reachable.names().cloned().collect());
    let results = setup.reload_state.get_or_insert_with(key, || Results::new(to, block, zones));
    setup.requests.inspection.shadows.push(Arc::clone(&results) as _);
    results
}

/// Returns the file for differences, which a thread writes that may block.
fn difference_file(config: &Config, setup: &mut Setup<'_>) -> Option<Arc<DifferenceFile>> {
    let file = Arc::new(DifferenceFile::new(setup.path(config.file.as_ref()?)));
    let written = Arc::clone(&file);
    let write = FileWatch::new(file::WRITE_EVERY, move |mut context| written.write(&mut context));
    setup.requests.file_watches.push(write);
    Some(file)
}

/// Returns the address of this server for queries that did not arrive at one.
fn local_address(setup: &Setup<'_>) -> SocketAddr {
    let site = setup.block.sites.first();
    let ip = site.and_then(|site| site.ip).unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    SocketAddr::new(ip, site.map_or(0, |site| site.port))
}

/// Refuses the address of this server itself, because each of its answers would cause another query.
fn refuse_itself(to: SocketAddr, setup: &Setup<'_>) -> Result<(), SetupError> {
    let listens = |ip: Option<_>| ip.map_or_else(|| to.ip().is_loopback(), |ip| ip == to.ip());
    if setup.block.sites.iter().any(|site| site.port == to.port() && listens(site.ip)) {
        let error = SetupError::new(format!("`{to}` is this server itself"));
        return Err(error.with_help("name the server that this one replaces"));
    }
    Ok(())
}

/// Plugin. Without a sampler, queries come from the other server.
struct Shadow(Option<Sampler>);

/// Copies queries to the queue.
struct Sampler {
    to: SocketAddr,
    /// Compares the first number of queries of the second.
    sample: (usize, usize),
    entrance: Entrance,
    results: Arc<Results>,
    outcomes: Outcomes,
}

impl Plugin for Shadow {
    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let Some(sampler) = &self.0 else { return Verdict::Pass };
        let (part, whole) = sampler.sample;
        // Nobody waits for a subquery, or for the rest of a query whose client has its answer.
        let is_answer = !query.is_own() && query.is_awaited() && !response.is_dropped();
        if is_answer && (part == whole || worker.random_below(whole) < part) {
            sampler.sample(query, response, worker);
        }
        Verdict::Pass
    }

    fn rehearse_response(&self, _: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Verdict::Pass
    }
}

impl Sampler {
    /// Copies a query and its answer to the queue.
    fn sample(&self, query: &Query, response: &mut Response, worker: &mut Worker) {
        if self.entrance.is_full() {
            self.results.count_dropped();
            return worker.counters.count(self.outcomes.dropped);
        }
        let (at, since_1970) = (worker.now(), worker.since_1970());
        let bytes = if self.is_comparable(query) { response.finish_copy(query, &mut worker.scratch) } else { &[] };
        if bytes.is_empty() || bytes.len() > MESSAGE_MAX {
            self.results.count_skipped();
            return worker.counters.count(self.outcomes.skipped);
        }
        let sample = Sample {
            query: query.packet.as_slice().into(),
            response: bytes.into(),
            peer: query.peer.clone(),
            at,
            since_1970,
        };
        if !self.entrance.put(sample) {
            self.results.count_dropped();
            worker.counters.count(self.outcomes.dropped);
        }
    }

    /// Returns true for a usual query of bounded size. Queries of the other server itself are not sent back to it: it
    /// may forward them here, again and again.
    fn is_comparable(&self, query: &Query) -> bool {
        let client = query.peer.address.ip().to_canonical();
        query.flags().opcode() == Opcode::QUERY
            && !query.qtype.is_transfer()
            && query.packet.len() <= MESSAGE_MAX
            && (client != self.to.ip() || client.is_loopback())
    }
}
