//! The engine: takes a query through admission, the router and the plugin chain, and writes the response.
//!
//! ```text
//!   datagram ─► admit ─► router ─► chain: down ─► answer ─► up ─► finish ─► datagram
//!              parse,   address,          │         ▲
//!              refuse   zone, view        └─ park ──┘  queries that wait for I/O
//! ```
//!
//! The engine contains no plugin, no socket, no clock and no async runtime. It declares two interfaces instead:
//!
//! - [`Plugin`]: the hooks of a plugin. [`Verdict`], [`Query`] and [`Response`] are their vocabulary. Start with these
//!   four to write a plugin.
//! - [`Io`]: the I/O that a plugin may do. The crate `net` implements it, and the testkit simulates it.
//!
//! The crate `config` builds a [`Generation`] from a Corefile. A reload builds the next one beside the current one.
//! Each [`Worker`] is one thread with its own reusable buffers.
//!
//! A generation can also be built by hand. This one answers every query of type A with 192.0.2.1:
//!
//! ```
//! use core::time::Duration;
//! use std::sync::Arc;
//!
//! use engine::{
//!     Block, BlockId, Chain, Clock, Generation, Hooks, Instant, Listener, ListenerId, Plugin, Progress, Query,
//!     Response, ServerMetrics, Site, SiteId, Step, Transaction, Verdict, Worker, Zones,
//! };
//! use metrics::Registry;
//! use wire::{Class, Header, Message, MessageBuf, Name, NameRef, Owner, Section, Type};
//!
//! struct Answer;
//!
//! impl Plugin for Answer {
//!     fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
//!         if query.qtype != Type::A {
//!             return Verdict::Pass;
//!         }
//!         response.message.push_a(Section::Answer, Owner::Question, 60, [192, 0, 2, 1].into());
//!         Verdict::Done
//!     }
//! }
//!
//! struct Stopped;
//!
//! impl Clock for Stopped {
//!     fn now(&self) -> Instant {
//!         Instant::START
//!     }
//!     fn since_1970(&self) -> Duration {
//!         Duration::ZERO
//!     }
//! }
//!
//! let registry = Registry::new();
//! let mut listener = Listener::default();
//! listener.router.add(NameRef::ROOT, SiteId(0));
//! let (plugin, hooks, fallthrough) = (Arc::new(Answer), Hooks::DOWN, Zones::default());
//! let refuses = engine::Refuses::Nothing;
//! let step = Step { name: "answer", order: 0, plugin, hooks, zones: None, fallthrough, refuses };
//! let block = Block { chain: Chain::new(vec![step]), ..Block::default() };
//! let site = Site { listener: ListenerId(0), block: BlockId(0), zone: ".".to_owned() };
//! let metrics = ServerMetrics::new(&registry, ["dns://:53"].into_iter());
//! let generation = Generation::new(vec![listener], vec![site], vec![block], metrics);
//!
//! let mut packet = MessageBuf::new();
//! let name = Name::from_text("www.example.org.").unwrap();
//! packet.start(Header { id: 7, ..Header::default() }, Some((name.as_ref(), Type::A, Class::IN)));
//! let mut worker = Worker::new(&registry, Box::new(Stopped), 1);
//! let mut transaction = worker.take_transaction();
//! transaction.query.packet.extend_from_slice(packet.finish(None, [].into_iter()));
//! assert_eq!(generation.receive(ListenerId(0), &mut transaction, &mut worker), Progress::Answered);
//!
//! let Transaction { query, response, .. } = &mut *transaction;
//! let answer = Message::parse(response.finish(query)).unwrap();
//! assert_eq!(answer.header().answers, 1);
//! ```

mod admission;
mod chain;
mod execute;
mod explanation;
mod generation;
mod ids;
mod io;
mod label_values;
mod labels;
mod line_limit;
mod listener_settings;
pub mod log;
mod observers;
mod park;
mod peer;
mod plugin;
mod query;
mod refused_updates;
mod rehearsal;
mod response;
mod router;
mod scheme;
mod server_metrics;
mod shares;
mod singleflight;
pub mod tap;
mod trail;
mod transaction;
mod transfer;
mod verdict;
mod worker;
mod zones;

pub use chain::{Chain, Hooks, Refuses, Step};
pub use explanation::{
    CachedAnswer, ExplainedEndpoints, ExplainedObject, ExplainedUpstream, Explanation, Hook, Reason, ReasonCode,
};
pub use generation::{Block, BlockFilter, Generation, Listener, Site};
// Types of `host` that the hooks and `Io` mention: a plugin needs one crate.
pub use host::{Clock, Instant, LocalFuture, streams, tls};
pub use ids::{BlockId, ListenerId, SiteId};
pub use io::unwanted::{UNWANTED_REASONS, Unwanted, UnwantedReplies};
pub use io::{
    Connections, Exchange, ExchangeError, ExchangeReply, Fetch, FetchError, HttpMethod, Io, OnMessage, PoolOwner,
};
pub use labels::{Label, LabelFunction, LabelSetter, Labels};
pub use line_limit::LineLimit;
pub use listener_settings::{
    CallLimits, EncryptionLimits, HttpsSettings, Listening, ProxyHeader, ProxyPolicy, QuicLimits, Timeouts,
};
pub use observers::{ExchangeObserver, ExchangeObservers, ObservedExchange, TooManyObserversError};
pub use park::{Driver, drive};
pub use peer::{PeerInfo, ProxyTlvs, Transport};
pub use plugin::Plugin;
pub use query::{Query, UDP_SIZE};
pub use rehearsal::{Decision, RecordedHook, Rehearsal, Rehearsed};
pub use response::{Continuation, MessageSigner, Response};
pub use router::Router;
pub use scheme::Scheme;
pub use server_metrics::{QueryMetrics, SERVER_METRICS, ServerMetrics};
pub use shares::{Destination, FairShares, Share, ShareError, client_network};
pub use singleflight::{ExchangeInFlight, ExchangesInFlight};
pub use trail::STEPS_MAX;
pub use transaction::{Progress, Transaction};
pub use transfer::{ZoneSnapshot, ZoneSource, ZoneSources};
pub use verdict::{Failure, Resolved, Subquery, SubqueryTarget, Verdict};
pub use worker::Worker;
pub use zones::{ZoneMap, Zones};
