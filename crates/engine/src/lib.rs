//! What a query goes through: the gate, the router, the chain of plugins down and up, and the answer's last form.
//!
//! The engine knows no plugin, no socket, no clock and no runtime. It declares what a plugin is ([`Plugin`]), what it
//! tells the world about itself (its manifest) and what it may ask of the world ([`Outside`]).

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
