//! The engine: takes a query through the gate, the router and the plugin chain, and writes the response.
//!
//! ```text
//!   datagram ─► gate ─► router ─► chain: down ─► answer ─► up ─► finish ─► datagram
//!              parse,  address,          │         ▲
//!              refuse  zone, view        └─ park ──┘  queries that wait for I/O
//! ```
//!
//! The engine contains no plugin, no socket, no clock and no async runtime. It declares three interfaces instead:
//!
//! - [`Plugin`]: the hooks of a plugin. [`Verdict`], [`Query`] and [`Response`] are their vocabulary. Start with these
//!   four   to write a plugin.
//! - [`options::Manifest`] and [`setup`]: how a directive declares its syntax, and what it may use while it is built.
//! - [`Outside`]: the I/O that a plugin may do. The crate `net` implements it, and the testkit simulates it.
//!
//! A configuration becomes a [`Plan`] (checked, without I/O), and a plan becomes a [`Generation`] (running). A reload
//! builds the next generation beside the current one. Each [`Worker`] is one thread with its own reusable buffers.

mod advice;
mod assemble;
mod chain;
mod codes;
pub mod gate;
mod generation;
mod inflight;
mod keys;
mod labels;
pub mod log;
pub mod metrics;
mod moment;
pub mod octets;
pub mod options;
mod park;
mod plan;
mod planned;
mod plugin;
mod query;
mod response;
mod router;
pub mod setup;
pub mod tls;
mod transfer;
mod verdict;
mod walk;
mod witness;
mod worker;
mod zones;

pub use assemble::{Built, Surroundings};
pub use chain::{Chain, Hooks, Step};
pub use codes::CODES;
pub use generation::{Block, Generation, Listener, Site};
pub use keys::{Key, Scheme};
pub use labels::{Label, LabelSource, Labels, Teller};
pub use moment::Moment;
pub use park::{Driver, drive};
pub use plan::{Gone, Planning, Slot, plan};
pub use planned::{Plan, PlannedListener};
pub use plugin::{
    Connections, Exchange, ExchangeError, Exchanged, Fetch, Keeper, LocalFuture, Outside, Place, Plugin, Take,
};
pub use query::{Path, Query, STEPS_MAX, Transport};
pub use response::{Continuation, Response, Seal, UDP_SIZE};
pub use router::Router;
pub use transfer::{ZoneSnapshot, ZoneSource, ZoneSources};
pub use verdict::{Ask, Failure, Resolved, Verdict, Whom};
pub use walk::{Turn, Walk};
pub use witness::{Witness, Witnessed, Witnesses};
pub use worker::{Clock, Worker};
pub use zones::{ZoneMap, Zones};
