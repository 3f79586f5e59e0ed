//! The contract between the engine and a plugin: the hooks that a plugin implements, and the I/O that it may use.
//!
//! # The chain
//!
//! The directives of a server block form a chain of middleware, in a fixed order. A query goes down the chain until
//! one plugin answers it. The response goes up again through the plugins that passed the query on:
//!
//! ```text
//!   client ─► cache.on_query ─► rewrite.on_query ─► forward.on_query ─ Wait ─► forward.resolve
//!   client ◄─ cache.on_response ◄─ rewrite.on_response ◄─ forward.on_resolved ◄──────┘
//! ```
//!
//! - [`Plugin::on_query`] runs on the way down. It answers, refuses, changes the question, or passes.
//! - [`Plugin::on_response`] runs on the way up, for answers and for failures.
//! - [`Plugin::resolve`] is the only asynchronous part. The engine calls it after a hook returned [`Verdict::Wait`],
//!   for example to query an upstream. [`Plugin::on_resolved`] then inspects the reply.
//! - [`Plugin::on_subresponse`] receives the answer to a subquery ([`Verdict::Subquery`]), for example the target of a
//!   CNAME.
//!
//! Every hook tells the engine how to proceed by returning a [`Verdict`].
//!
//! # State
//!
//! One instance of a plugin serves all workers at once, so the hooks take `&self`. State that a plugin keeps from one
//! hook to the next belongs to the query: a `u64` ([`Query::set_note`]), which costs nothing, or a boxed value
//! ([`Query::keep`]).
//!
//! # I/O
//!
//! A synchronous hook reads the clock, counts, logs and draws random numbers through its [`Worker`]. Asynchronous code,
//! in [`Plugin::resolve`] or in a background job, does this and reaches the network through [`Io`]. There is no other
//! way to the outside, so scenarios run the same plugin with simulated time and simulated upstreams.

use crate::explanation::{Explanation, Hook};
use crate::io::Io;
use crate::query::Query;
use crate::response::Response;
use crate::shares::Share;
use crate::verdict::{Failure, Resolved, Verdict};
use crate::worker::Worker;
use host::Instant;
use host::LocalFuture;

/// A step in the chain of a server block.
///
/// The hooks run synchronously on the thread that read the packet. They must not block, must not take a lock, and
/// should not allocate on the usual path. A plugin that has to wait for I/O returns [`Verdict::Wait`] and does the I/O
/// in [`Plugin::resolve`].
///
/// The engine calls `on_query` and `on_response` only if the plugin declares them in its [`Hooks`](crate::Hooks).
pub trait Plugin: Send + Sync {
    /// Handles a query on the way down: answers it, refuses it, changes the question, or passes.
    fn on_query(&self, _query: &mut Query, _response: &mut Response, _worker: &mut Worker) -> Verdict {
        Verdict::Pass
    }

    /// Handles a response on the way up. The engine calls it exactly once for each query that this step passed on,
    /// also if the steps below failed or dropped the query.
    fn on_response(&self, _query: &mut Query, _response: &mut Response, _worker: &mut Worker) -> Verdict {
        Verdict::Pass
    }

    /// Handles the answer (`sub`) to a subquery that this plugin started with [`Verdict::Subquery`].
    ///
    /// `response` is as the plugin left it before the subquery. The verdict continues from the hook that asked.
    fn on_subresponse(
        &self,
        _query: &mut Query,
        _sub: &mut Response,
        _response: &mut Response,
        _worker: &mut Worker,
    ) -> Verdict {
        Verdict::Done
    }

    /// Handles the message that [`Plugin::resolve`] returned; `response` already contains it. The engine does not call
    /// this hook if `resolve` failed.
    ///
    /// `Done` keeps the message. `Pass` discards it and continues with the next step. `Missing` marks it as a denial of
    /// the name, so that `fallthrough` applies. `Subquery` asks for another name first, for example for the target of a
    /// CNAME.
    fn on_resolved(&self, _query: &mut Query, _response: &mut Response, _worker: &mut Worker) -> Verdict {
        Verdict::Done
    }

    /// Handles a query of a [`Rehearsal`](crate::Rehearsal) on the way down, like [`Plugin::on_query`].
    ///
    /// A plugin overrides it if `on_query` has an effect on later queries or on others outside this server. The
    /// response must be the same.
    fn rehearse_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        self.on_query(query, response, worker)
    }

    /// Handles the response to a query of a [`Rehearsal`](crate::Rehearsal) on the way up, like
    /// [`Plugin::on_response`], but without an effect on later queries or on others outside this server.
    fn rehearse_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        self.on_response(query, response, worker)
    }

    /// Describes for people what this plugin has just done in a rehearsal: the hook, and the query and response after
    /// it. Never called while serving.
    fn explain(&self, _hook: Hook, _query: &Query, _response: &Response, _now: Instant) -> Option<Explanation> {
        None
    }

    /// Returns true if the answer to a query may depend on the client's address. Only a rehearsal calls it, to say
    /// which rules it could not judge for a client without a known address.
    fn reads_client(&self, _query: &Query) -> bool {
        false
    }

    /// Returns the index of the group of servers that a query waits for, such as a line of *forward*. Queries that wait
    /// for one group leave slots for those that wait for another one ([`FairShares`](crate::FairShares)).
    fn destination(&self, _query: &Query) -> usize {
        0
    }

    /// Reserves one of the slots for queries that wait at this plugin, as *forward*'s `max_concurrent` does.
    ///
    /// The engine calls it before [`Plugin::resolve`], and also for a query that only waits for the reply to an
    /// identical one. `None` means that the plugin has no limit.
    ///
    /// # Errors
    /// The failure to answer with at once, if all slots are in use.
    fn acquire_permit(&self, _query: &Query, _io: &dyn Io) -> Result<Option<Share>, Failure> {
        Ok(None)
    }

    /// Does the I/O for a query after [`Verdict::Wait`].
    ///
    /// Identical queries that wait at the same step at the same time share one call (singleflight).
    fn resolve<'a>(&'a self, _query: &'a Query, _io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        Box::pin(core::future::ready(Resolved::Pass))
    }
}
