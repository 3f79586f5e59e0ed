//! Running configuration: listeners, sites and server blocks.
//!
//! A generation is immutable. A reload builds the next one, while queries in progress keep the one they started with.
//!
//! Each *listener* is one address with one transport. It has a router from zones to *sites*, and each site belongs to
//! one server *block*, which has one chain. A plugin that panics costs one query, not the worker: the entry points
//! catch the panic and answer with SERVFAIL.

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use host::invariant::holds;
use wire::{EdeCode, NameRef};

use crate::chain::{Chain, Step};
use crate::ids::{BlockId, ListenerId, SiteId};
use crate::io::Io;
use crate::listener_settings::Listening;
use crate::log::{Level, Source};
use crate::query::Query;
use crate::router::Router;
use crate::scheme::Scheme;
use crate::server_metrics::ServerMetrics;
use crate::shares::{Destination, Share};
use crate::singleflight::{ExchangesInFlight, Singleflight};
use crate::tap::Answerers;
use crate::trail::STEPS_MAX;
use crate::transaction::{Progress, Transaction};
use crate::verdict::{Failure, Resolved};
use crate::worker::Worker;
use host::LocalFuture;
use host::tls::TlsServer;

/// Address that the server listens on, and the zones served there.
#[derive(Clone, Default)]
pub struct Listener {
    /// Value of the metric label `server`, also used in logs: `dns://:53`.
    pub label: String,
    /// Zones served here.
    pub router: Router,
    /// True if classes other than IN reach the chains, because a block here has a directive that handles them.
    pub any_class: bool,
    /// True if UPDATE messages reach the chains, because a block here has a directive that handles them.
    pub takes_updates: bool,
    /// TLS configuration of encrypted streams.
    pub tls: Option<Arc<dyn TlsServer>>,
    /// True to pad responses if the query has the padding option (RFC 7830). The listener must be encrypted.
    pub pads_responses: bool,
    /// Transport.
    pub scheme: Scheme,
    /// Settings from the directives of its blocks.
    pub listening: Listening,
}

/// Zone served by a listener.
#[derive(Clone)]
pub struct Site {
    /// Listener.
    pub listener: ListenerId,
    /// Server block.
    pub block: BlockId,
    /// Value of the metric label `zone`.
    pub zone: String,
}

/// Predicate for the queries that a server block accepts. Other queries go to another block with the same zone or a
/// parent zone.
#[derive(Clone)]
pub struct BlockFilter {
    /// Returns true for a query that the block accepts.
    pub accepts: Arc<dyn Fn(&Query) -> bool + Send + Sync>,
    /// True if the decision may depend on the client's address.
    pub reads_client: bool,
}

/// Server block.
#[derive(Default)]
pub struct Block {
    /// Plugins.
    pub chain: Chain,
    /// Predicate for the queries that it accepts; `None` accepts all.
    pub filter: Option<BlockFilter>,
    /// True if one of its plugins applies UPDATE messages.
    pub takes_updates: bool,
}

impl Block {
    fn wants(&self, query: &Query) -> bool {
        self.filter.as_ref().is_none_or(|filter| (filter.accepts)(query))
    }
}

/// Running configuration.
#[derive(Default)]
pub struct Generation {
    /// Listeners.
    pub listeners: Vec<Listener>,
    /// Sites, for all listeners.
    pub sites: Vec<Site>,
    /// Server blocks.
    pub blocks: Vec<Block>,
    /// Metrics of the server itself.
    pub metrics: ServerMetrics,
    /// True if a panic terminates the process, as the directive *debug* requests.
    pub panics_end: bool,
    pub(crate) singleflight: Singleflight,
}

impl Generation {
    /// Creates a generation without queries in progress.
    #[must_use]
    pub fn new(listeners: Vec<Listener>, sites: Vec<Site>, blocks: Vec<Block>, metrics: ServerMetrics) -> Generation {
        let is_known = |site: &Site| site.listener.0 < listeners.len() && site.block.0 < blocks.len();
        holds(sites.iter().all(is_known), "a site has its listener and its block");
        Generation { listeners, sites, blocks, metrics, ..Generation::default() }
    }

    /// Returns the id of the listener with a label.
    #[must_use]
    pub fn find_listener(&self, label: &str) -> Option<ListenerId> {
        self.listeners.iter().position(|listener| listener.label == label).map(ListenerId)
    }

    /// Returns a listener of this generation.
    #[must_use]
    pub fn listener(&self, ListenerId(at): ListenerId) -> &Listener {
        &self.listeners[at]
    }

    /// Returns a server block of this generation.
    pub(crate) fn block(&self, BlockId(at): BlockId) -> &Block {
        &self.blocks[at]
    }

    /// Finds the server block for the current name.
    pub(crate) fn route(&self, transaction: &mut Transaction) -> Result<(), Failure> {
        let query = &mut transaction.query;
        let wants = |site: SiteId| self.block(self.sites[site.0].block).wants(query);
        let site = self.listener(transaction.listener).router.find(query.key(), query.qtype, wants);
        let io = || Failure::refused(EdeCode::NOT_AUTHORITATIVE, "no server block serves this name");
        let site = site.ok_or_else(io)?;
        let block = self.sites[site.0].block;
        holds(self.sites[site.0].listener == transaction.listener, "a router finds the sites of its listener");
        let steps = self.block(block).chain.steps().len();
        if steps == 0 {
            return Err(io());
        }
        holds(steps <= STEPS_MAX, "a mask has a bit for each step of a chain");
        query.site = site;
        query.clear_notes(steps);
        transaction.block = block;
        Ok(())
    }

    /// Runs a part of a transaction. A panic in it becomes a SERVFAIL response, and the worker continues.
    pub(crate) fn guarded(
        &self,
        transaction: &mut Box<Transaction>,
        worker: &mut Worker,
        part: impl FnOnce(&Self, &mut Box<Transaction>, &mut Worker) -> Progress,
    ) -> Progress {
        // A panic can leave the transaction and the worker's buffers inconsistent. Both are reset before they are used
        // again.
        self.caught(|| part(self, transaction, worker)).unwrap_or_else(|panic| {
            let failure = self.report_panic(transaction, &panic, worker);
            transaction.unwind(failure);
            self.metrics.count_dropped(transaction, worker);
            Progress::Answered
        })
    }

    /// Returns the value of `part`.
    ///
    /// # Errors
    /// `part` panicked.
    pub(crate) fn caught<T>(&self, part: impl FnOnce() -> T) -> Result<T, PanicError> {
        let result = catch_unwind(AssertUnwindSafe(part));
        if self.panics_end && result.is_err() {
            // Not left to unwind: the runtime would catch it, and go on without the task that serves a socket.
            std::process::abort();
        }
        result.map_err(|panic| PanicError::new(&*panic))
    }

    /// Logs and counts a panic, and returns the failure for the client.
    pub(crate) fn report_panic(&self, transaction: &Transaction, panic: &PanicError, worker: &mut Worker) -> Failure {
        let label = &self.listener(transaction.listener).label;
        let message = format_args!("Recovered from panic in server: {label:?} {panic}");
        worker.log_text(Level::Error, Source::Server, message);
        self.metrics.count_panic(worker);
        Failure::servfail(EdeCode::OTHER, "a plugin panicked")
    }

    /// Returns the servers that a transaction waits for.
    #[must_use]
    pub fn destination(&self, transaction: &Transaction) -> Destination {
        let group = self.step_of(transaction).plugin.destination(&transaction.query);
        Destination { block: transaction.block, step: transaction.at, group }
    }

    /// Returns the step at which a transaction waits.
    fn step_of(&self, transaction: &Transaction) -> &Step {
        &self.block(transaction.block).chain.steps()[transaction.at]
    }

    /// Reserves a slot at the plugin where a transaction waits.
    pub(crate) fn acquire_permit(&self, transaction: &Transaction, io: &dyn Io) -> Result<Option<Share>, Failure> {
        self.step_of(transaction).plugin.acquire_permit(&transaction.query, io)
    }

    /// Returns the name of the plugin where a transaction waits.
    pub(crate) fn plugin_of(&self, transaction: &Transaction) -> &'static str {
        self.step_of(transaction).name
    }

    /// Returns the exchanges with upstreams that are in flight for names below `zone`, with details of the `oldest_max`
    /// oldest ones.
    #[must_use]
    pub fn exchanges_in_flight(&self, zone: NameRef<'_>, oldest_max: usize) -> ExchangesInFlight {
        self.singleflight.in_flight(zone, oldest_max)
    }

    /// Starts the I/O of a transaction that waits.
    pub(crate) fn resolve<'a>(&'a self, transaction: &'a Transaction, io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        self.step_of(transaction).plugin.resolve(&transaction.query, io)
    }
}

/// Panic in a plugin.
#[derive(Debug)]
pub(crate) struct PanicError {
    message: String,
}

impl PanicError {
    fn new(panic: &(dyn core::any::Any + Send)) -> PanicError {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        PanicError { message: text.unwrap_or("without a message").to_owned() }
    }
}

impl fmt::Display for PanicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for PanicError {}
impl Answerers for Generation {
    fn answerer(&self, transaction: &Transaction) -> Option<(&str, usize)> {
        let Transaction { query, response, block, .. } = transaction;
        let order = response.source().or(response.failed_at())?;
        let step = self.blocks.get(block.0)?.chain.steps().iter().find(|step| step.order == order)?;
        let zone_len = match step.zone_of(query.key()).and_then(|(_, zone)| zone) {
            Some(zone) => zone.as_bytes().len(),
            // Wire form has one byte more than presentation format, except for the root.
            None => {
                self.sites.get(query.site.0).map_or(1, |site| if site.zone == "." { 1 } else { site.zone.len() + 1 })
            }
        };
        Some((step.name, zone_len))
    }
}
