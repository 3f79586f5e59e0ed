//! Rehearsal of a query: the same chain with a recorder in it, so that the answer can be explained.
//!
//! A [`Rehearsal`] has its own chains, in which every step is wrapped. The plugins are those that serve, with their
//! caches and connections; the wrapper calls their hooks and records what they did. A generation that serves has no
//! such wrappers, so recording costs it nothing. The engine that runs the chain is the same, and so is the answer.
//!
//! A rehearsal has no effect on other queries: it counts and logs nothing, it does not wait for upstreams, and it calls
//! [`Plugin::rehearse_query`] and [`Plugin::rehearse_response`] where a plugin keeps something for later queries.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::Registry;
use wire::{EdeCode, Name, Type};

use crate::chain::{Chain, Step};
use crate::explanation::{Explanation, Hook};
use crate::generation::{Block, Generation};
use crate::ids::{BlockId, ListenerId, SiteId};
use crate::peer::PeerInfo;
use crate::plugin::Plugin;
use crate::query::Query;
use crate::response::Response;
use crate::transaction::{Progress, Transaction};
use crate::verdict::{Failure, Verdict};
use crate::worker::Worker;
use host::{Clock, Instant};

/// Maximum number of recorded hooks of one query: eight nested subqueries through a long chain, down and up.
const RECORDED_MAX: usize = 1024;

/// Copy of a generation that records what its plugins do.
pub struct Rehearsal {
    generation: Generation,
    record: Arc<Record>,
    worker: Worker,
}

/// Result of a rehearsed query.
#[derive(Debug)]
pub struct Rehearsed {
    /// [`Progress::Waiting`] if a plugin would wait for I/O. The message is then empty.
    pub progress: Progress,
    /// Response in wire form.
    pub message: Vec<u8>,
    /// Failure, if the answer is one.
    pub failure: Option<Failure>,
    /// Extended DNS Error.
    pub ede: Option<EdeCode>,
    /// Site that serves the query. Without recorded hooks, none does.
    pub site: SiteId,
    /// Hooks that ran, in order.
    pub hooks: Vec<RecordedHook>,
}

/// Hook that ran.
#[derive(Clone, Debug)]
pub struct RecordedHook {
    /// Server block.
    pub block: BlockId,
    /// Index of the step in the chain.
    pub step: usize,
    /// Index of the directive among those of the block.
    pub order: usize,
    /// Name of the directive.
    pub plugin: &'static str,
    /// Hook.
    pub hook: Hook,
    /// Question before the hook.
    pub question: (Name, Type),
    /// Question after the hook, if the hook changed it.
    pub changed: Option<(Name, Type)>,
    /// True in a subquery.
    pub is_subquery: bool,
    /// True if the decision may depend on the client's address.
    pub reads_client: bool,
    /// Decision of the hook.
    pub decision: Decision,
    /// Words of the plugin.
    pub explanation: Option<Explanation>,
}

/// Decision of a hook, without the data of its [`Verdict`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Passed on.
    Pass,
    /// Answered.
    Done,
    /// Denied the name. The next step runs if `fallthrough` contains it.
    Missing,
    /// Failed.
    Fail(Failure),
    /// Dropped the query.
    Drop,
    /// Asked another question first.
    Subquery(Box<Name>, Type),
    /// Would wait for I/O.
    Wait,
}

impl Decision {
    fn of(verdict: &Verdict) -> Decision {
        match verdict {
            Verdict::Pass => Decision::Pass,
            Verdict::Done => Decision::Done,
            Verdict::Missing => Decision::Missing,
            Verdict::Fail(failure) => Decision::Fail(failure.clone()),
            Verdict::Drop => Decision::Drop,
            Verdict::Subquery(subquery) => Decision::Subquery(Box::new(subquery.name.clone()), subquery.qtype),
            Verdict::Wait => Decision::Wait,
        }
    }
}

impl Rehearsal {
    /// Creates a rehearsal of a generation. It uses the plugins of that generation, also after a reload.
    #[must_use]
    pub fn new(generation: &Generation, clock: Box<dyn Clock>, seed: u64) -> Rehearsal {
        let record = Arc::new(Record::default());
        let listeners = generation.listeners.clone();
        let sites = generation.sites.clone();
        let blocks = generation.blocks.iter().enumerate();
        let blocks = blocks.map(|(at, block)| with_recorder(BlockId(at), block, &record)).collect();
        let generation = Generation { listeners, sites, blocks, ..Generation::default() };
        // A registry of its own: what it counts is never read.
        Rehearsal { generation, record, worker: Worker::new(&Registry::new(), clock, seed) }
    }

    /// Runs a query in wire form as if a listener had received it.
    pub fn run(&mut self, listener: ListenerId, packet: &[u8], peer: PeerInfo) -> Rehearsed {
        let Rehearsal { generation, record, worker } = self;
        record.lock().clear();
        let mut transaction = worker.take_transaction();
        transaction.query.packet.clear();
        transaction.query.packet.extend_from_slice(packet);
        transaction.query.peer = peer;
        transaction.query.received = worker.now();
        let progress = generation.receive(listener, &mut transaction, worker);
        let Transaction { query, response, .. } = &mut *transaction;
        let (failure, ede, site) = (response.failure().cloned(), response.ede(), query.site);
        let message = if progress == Progress::Answered { response.finish(query).to_vec() } else { Vec::new() };
        let hooks = core::mem::take(&mut *record.lock());
        worker.take_log(|_| ());
        while worker.next_refresh().is_some() {}
        if progress != Progress::Waiting {
            worker.give_transaction(transaction);
        }
        Rehearsed { progress, message, failure, ede, site, hooks }
    }
}

fn with_recorder(id: BlockId, block: &Block, record: &Arc<Record>) -> Block {
    let wrap = |(at, step): (usize, &Step)| {
        let (plugin, record) = (Arc::clone(&step.plugin), Arc::clone(record));
        let recorded = Recorded { plugin, record, block: id, step: at, order: step.order, name: step.name };
        let (zones, fallthrough) = (step.zones.clone(), step.fallthrough.clone());
        Step { plugin: Arc::new(recorded), zones, fallthrough, ..*step }
    };
    let steps = block.chain.steps().iter().enumerate().map(wrap).collect();
    Block { chain: Chain::new(steps), filter: block.filter.clone(), takes_updates: block.takes_updates }
}

/// Hooks that ran for the current query. Only the thread of the rehearsal uses it.
#[derive(Default)]
struct Record(Mutex<Vec<RecordedHook>>);

impl Record {
    fn lock(&self) -> MutexGuard<'_, Vec<RecordedHook>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wrapper around the plugin of a step.
struct Recorded {
    plugin: Arc<dyn Plugin>,
    record: Arc<Record>,
    block: BlockId,
    step: usize,
    order: usize,
    name: &'static str,
}

fn question_of(query: &Query) -> (Name, Type) {
    (query.name().to_name(), query.qtype)
}

impl Recorded {
    fn put(
        &self,
        hook: Hook,
        before: (Name, Type),
        query: &Query,
        response: &Response,
        verdict: &Verdict,
        now: Instant,
    ) {
        let mut hooks = self.record.lock();
        if hooks.len() >= RECORDED_MAX {
            return;
        }
        let after = question_of(query);
        let changed = (after != before).then_some(after);
        let is_telling = hook != Hook::Query || changed.is_some() || !matches!(verdict, Verdict::Pass);
        hooks.push(RecordedHook {
            block: self.block,
            step: self.step,
            order: self.order,
            plugin: self.name,
            hook,
            question: before,
            changed,
            is_subquery: query.is_own(),
            reads_client: self.plugin.reads_client(query),
            decision: Decision::of(verdict),
            explanation: if is_telling { self.plugin.explain(hook, query, response, now) } else { None },
        });
    }
}

impl Plugin for Recorded {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let before = question_of(query);
        let verdict = self.plugin.rehearse_query(query, response, worker);
        self.put(Hook::Query, before, query, response, &verdict, worker.now());
        verdict
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let before = question_of(query);
        let verdict = self.plugin.rehearse_response(query, response, worker);
        self.put(Hook::Response, before, query, response, &verdict, worker.now());
        verdict
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Verdict {
        let before = question_of(query);
        let verdict = self.plugin.on_subresponse(query, sub, response, worker);
        self.put(Hook::Subresponse, before, query, response, &verdict, worker.now());
        verdict
    }
}
