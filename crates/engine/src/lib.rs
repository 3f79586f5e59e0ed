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
//! - [`Io`]: the I/O that a plugin may do. The crate `net` implements it, and the testkit simulates it.
//!
//! A configuration becomes a [`Plan`] (checked, without I/O), and a plan becomes a [`Generation`] (running). A reload
//! builds the next generation beside the current one. Each [`Worker`] is one thread with its own reusable buffers.

pub mod admission;
mod chain;
mod execute;
mod generation;
mod io;
mod label_values;
mod labels;
mod listener_settings;
pub mod log;
mod observers;
mod park;
mod peer;
mod plugin;
mod query;
mod response;
mod router;
mod scheme;
mod server_metrics;
mod singleflight;
mod time;
pub mod tls;
mod transaction;
mod transfer;
mod verdict;
mod worker;
mod zones;

pub use chain::{Chain, Hooks, Step};
pub use generation::{Block, BlockFilter, Generation, Listener, Site};
pub use io::streams;
pub use io::{Connections, Exchange, ExchangeError, ExchangeReply, Fetch, Io, LocalFuture, PoolOwner, Take};
pub use labels::{Label, LabelFunction, LabelSetter, Labels};
pub use listener_settings::{CallLimits, Listening, ProxyHeader, ProxyPolicy, Timeouts};
pub use observers::{ExchangeObserver, ExchangeObservers, ObservedExchange, TooManyObserversError};
pub use park::{Driver, drive};
pub use peer::{PeerInfo, Transport};
pub use plugin::{Plugin, QueryPermit};
pub use query::{Query, STEPS_MAX, UDP_SIZE};
pub use response::{Continuation, MessageSigner, Response};
pub use router::Router;
pub use scheme::Scheme;
pub use server_metrics::{QueryMetrics, SERVER_METRICS, ServerMetrics};
pub use time::Instant;
pub use transaction::{Progress, Transaction};
pub use transfer::{ZoneSnapshot, ZoneSource, ZoneSources};
pub use verdict::{Failure, Resolved, Subquery, SubqueryTarget, Verdict};
pub use worker::{Clock, Worker};
pub use zones::{ZoneMap, Zones};
