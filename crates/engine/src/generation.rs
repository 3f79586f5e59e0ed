//! One generation of the configuration, as it runs: listeners, sites, blocks. A reload builds the next one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wire::{Class, EdeCode, Rcode};

use crate::gate::{Admission, admit};
use crate::log::{Level, Source};
use crate::metrics::ServerMetrics;
use crate::setup::{BlockFilter, Listening};
use crate::tls::TlsServer;
use crate::{Chain, Failure, LocalFuture, Outside, Place, Query, Resolved, Router, Scheme, Turn, Walk, Worker};

/// An address that is listened on, with the zones served there.
#[derive(Default)]
pub struct Listener {
    /// As metrics and logs write it: `dns://:53`.
    pub label: String,
    /// Its zones.
    pub router: Router,
    /// Whether classes other than IN reach the chains: a block here has a directive that handles them.
    pub any_class: bool,
    /// What its clients are greeted with, if its streams are TLS.
    pub tls: Option<Arc<dyn TlsServer>>,
    /// How its clients speak.
    pub scheme: Scheme,
    /// What directives say of how it is served.
    pub listening: Listening,
}

/// A zone served on an address.
pub struct Site {
    /// Index of the listener.
    pub listener: usize,
    /// Index of the server block.
    pub block: usize,
    /// The zone, as metrics write it.
    pub zone: String,
}

/// A server block.
#[derive(Default)]
pub struct Block {
    /// Its plugins.
    pub chain: Chain,
    /// Which queries it wants; all of them without one.
    pub filter: Option<BlockFilter>,
}

impl Block {
    fn wants(&self, query: &Query) -> bool {
        self.filter.as_ref().is_none_or(|BlockFilter(wants)| wants(query))
    }
}

/// One generation of the configuration.
#[derive(Default)]
pub struct Generation {
    /// The addresses listened on.
    pub listeners: Vec<Listener>,
    /// The zones served on them.
    pub sites: Vec<Site>,
    /// The server blocks.
    pub blocks: Vec<Block>,
    /// What the server counts itself.
    pub metrics: ServerMetrics,
    /// Whether a panic ends the process, as `debug` asks.
    pub panics_end: bool,
    pub(crate) inflight: crate::inflight::Inflight,
}

impl Generation {
    /// Answers the packet in [`Query::packet`](crate::Query::packet), as far as this process knows the answer.
    pub fn receive(&self, listener: usize, walk: &mut Box<Walk>, worker: &mut Worker) -> Turn {
        walk.begin();
        walk.listener = listener;
        let Walk { query, response, .. } = &mut **walk;
        match admit(&query.packet, &mut query.request) {
            Admission::Silence => return Turn::Dropped,
            Admission::Reject(header, rcode) => {
                query.request.opt = None;
                query.qtype = wire::Type(0);
                response.begin_unread(header, rcode);
                return Turn::Answered;
            }
            Admission::Query => query.begin(),
        }
        self.guarded(walk, worker, Generation::dispatch)
    }

    fn dispatch(&self, walk: &mut Box<Walk>, worker: &mut Worker) -> Turn {
        if walk.query.qclass != Class::IN && !self.listeners[walk.listener].any_class {
            return self.refuse(walk, Failure::refused(EdeCode::NOT_SUPPORTED, "class is not served here"), worker);
        }
        if walk.query.opt().is_some_and(|opt| opt.version != 0) {
            walk.response.begin(&walk.query);
            walk.response.set_rcode(Rcode::BADVERS);
            return Turn::Answered;
        }
        match self.route(walk) {
            Ok(()) => self.descend(walk, worker),
            Err(failure) => self.refuse(walk, failure, worker),
        }
    }

    /// Finds the server block for the name that is asked.
    pub(crate) fn route(&self, walk: &mut Walk) -> Result<(), Failure> {
        let query = &mut walk.query;
        let wants = |site: usize| self.blocks[self.sites[site].block].wants(query);
        let site = self.listeners[walk.listener].router.find(query.key(), query.qtype, wants);
        let outside = || Failure::refused(EdeCode::NOT_AUTHORITATIVE, "no zone here holds the name");
        let site = site.ok_or_else(outside)?;
        let block = self.sites[site].block;
        let steps = self.blocks[block].chain.steps().len();
        if steps == 0 {
            return Err(outside());
        }
        query.site = site;
        query.clear_notes(steps);
        walk.block = block;
        Ok(())
    }

    fn refuse(&self, walk: &mut Walk, failure: Failure, worker: &mut Worker) -> Turn {
        walk.response.fail(&walk.query, failure);
        self.metrics.count_dropped(walk, worker);
        Turn::Answered
    }

    /// Runs a part of a walk; a panic in it costs one SERVFAIL and not the worker.
    pub(crate) fn guarded(
        &self,
        walk: &mut Box<Walk>,
        worker: &mut Worker,
        part: impl FnOnce(&Self, &mut Box<Walk>, &mut Worker) -> Turn,
    ) -> Turn {
        // What a panic may leave half-done is the walk and the worker's buffers, and both are begun anew.
        self.caught(|| part(self, walk, worker)).unwrap_or_else(|panic| {
            let failure = self.report_panic(walk, &panic, worker);
            walk.unwind(failure);
            self.metrics.count_dropped(walk, worker);
            Turn::Answered
        })
    }

    /// The value of `part`, or the text of a panic in it.
    pub(crate) fn caught<T>(&self, part: impl FnOnce() -> T) -> Result<T, String> {
        if self.panics_end {
            return Ok(part());
        }
        catch_unwind(AssertUnwindSafe(part)).map_err(|panic| panic_text(&*panic).to_owned())
    }

    /// Logs and counts a panic; gives the failure that it is to the client.
    pub(crate) fn report_panic(&self, walk: &Walk, text: &str, worker: &mut Worker) -> Failure {
        let label = &self.listeners[walk.listener].label;
        worker.log_text(Level::Error, Source::Server, format_args!("Recovered from panic in server: {label:?} {text}"));
        self.metrics.count_panic(worker);
        Failure::servfail(EdeCode::OTHER, "a plugin panicked")
    }

    /// Takes a place at the plugin where a walk is to wait.
    pub(crate) fn take_place(&self, walk: &Walk, outside: &dyn Outside) -> Result<Option<Place>, Failure> {
        self.blocks[walk.block].chain.steps()[walk.at].plugin.take_place(&walk.query, outside)
    }

    /// What the outside world says to a walk that waits.
    pub(crate) fn resolve<'a>(&'a self, walk: &'a Walk, outside: &'a dyn Outside) -> LocalFuture<'a, Resolved> {
        self.blocks[walk.block].chain.steps()[walk.at].plugin.resolve(&walk.query, outside)
    }
}

fn panic_text(panic: &(dyn core::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
