//! Upstream selection: which upstream to query next, which message to send, and which upstreams are down.
//!
//! The crate contains decisions only: no socket, no clock, no runtime. The caller (such as *forward*) does the
//! exchanges:
//!
//! 1. [`Policy::order`] returns the order of the upstreams for one query.
//! 2. [`Attempts::next`] returns the next upstream and the deadline, or the reason to stop.
//! 3. The caller sends the message from [`outgoing`] and reports the outcome: [`Attempts::failed`] and
//!    [`Health::suspect`] for an error, [`Attempts::judge`] for a reply.

mod attempts;
mod health;
mod policy;
mod query;
mod reply;
mod target;

pub use attempts::{Attempts, Limits, Next, Verdict};
pub use health::Health;
pub use policy::Policy;
pub use query::{answered_with, outgoing, probe};
pub use reply::{Reply, readable, readable_datagram};
pub use target::{Protocol, Target, TargetError, Unlisted, nameservers};
