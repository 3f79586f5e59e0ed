//! Sends a sample of the queries to another server and compares its answers with ours.
//!
//! A worker that has answered a sampled query copies the query and the answer to a bounded queue and goes on. A
//! background job takes them from there, asks the other server, and compares the answers. Workers neither wait for the
//! job nor share a lock with it.

mod compare;
mod file;
mod job;
mod known;
mod manifest;
mod queue;
mod results;

use core::net::SocketAddr;
use std::sync::Arc;

use config::setup::{FileWatch, Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use wire::Opcode;

use file::DifferenceFile;
use job::Job;
use manifest::Config;
use queue::{Entrance, MESSAGE_MAX, Sample};
use results::{Outcomes, Results};

pub(crate) use manifest::MANIFEST;

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    refuse_itself(config.to, setup)?;
    let outcomes = Outcomes::new(setup.registry);
    let key = format!("shadow {config:?} {:?} {:?}", setup.block.zones, setup.block.sites);
    let (to, block) = (config.to, block_name(setup));
    let zones = setup.block.reachable.names().to_vec();
    let results = setup.reload_state.take_over(key, || Results::new(to, block, zones));
    setup.requests.inspection.shadows.push(Arc::clone(&results) as _);
    let (entrance, exit) = queue::queue();
    let file = config.file.as_ref().map(|name| Arc::new(DifferenceFile::new(setup.path(name))));
    if let Some(file) = &file {
        let file = Arc::clone(file);
        setup.requests.file_watches.push(FileWatch::new(file::WRITE_EVERY, move |context| file.write(context)));
    }
    let sample = config.sample;
    let job = Job::new(config, exit, Arc::clone(&results), outcomes, file);
    setup.requests.jobs.push(Box::new(move |io| Box::pin(job.run(io))));
    Ok(Some(Part::new(Shadow { to, sample, entrance, results, outcomes }, Hooks::UP)))
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

/// Returns the name of the server block for people.
fn block_name(setup: &Setup<'_>) -> String {
    let mut servers: Vec<&str> = setup.block.sites.iter().map(|site| site.server.as_str()).collect();
    let mut zones: Vec<&str> = setup.block.sites.iter().map(|site| site.zone.as_str()).collect();
    servers.dedup();
    zones.dedup();
    format!("{} {}", servers.join(" "), zones.join(" "))
}

struct Shadow {
    to: SocketAddr,
    /// Compares the first number of queries of the second.
    sample: (usize, usize),
    entrance: Entrance,
    results: Arc<Results>,
    outcomes: Outcomes,
}

impl Plugin for Shadow {
    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let (part, whole) = self.sample;
        // Nobody waits for a subquery, or for the rest of a query whose client has its answer.
        let is_answer = !query.is_own() && query.is_awaited() && !response.is_dropped();
        if is_answer && (part == whole || worker.random_below(whole) < part) {
            self.sample(query, response, worker);
        }
        Verdict::Pass
    }

    fn rehearse_response(&self, _: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Verdict::Pass
    }
}

impl Shadow {
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
        let sample =
            Sample { query: query.packet.as_slice().into(), response: bytes.into(), peer: query.peer, at, since_1970 };
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
