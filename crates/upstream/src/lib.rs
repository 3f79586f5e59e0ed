//! Upstream selection: which upstream to query next, which message to send, and which upstreams are down.
//!
//! The crate contains decisions only: no socket, no clock, no runtime. The caller (such as *forward*) does the
//! exchanges:
//!
//! 1. [`Policy::order`] returns the order of the upstreams for one query.
//! 2. [`Attempts::next`] returns the next upstream and the deadline, or the reason to stop.
//! 3. The caller sends the message from [`outgoing`] and reports the outcome: [`Attempts::failed`] and
//!    [`Health::suspect`] for an error, [`Attempts::judge`] for a reply.
//!
//! ```
//! use core::time::Duration;
//! use upstream::{Action, Attempts, Health, Limits, Policy};
//!
//! let second = Duration::from_secs(1);
//! let limits = Limits { deadline: 5 * second, each: 2 * second, failures_max: None, max_fails: 2, fail_fast: false };
//! let health = [Health::default(), Health::default()];
//! let mut attempts = Attempts::new(limits, Policy::Sequential.order(health.len(), 0));
//!
//! // The first upstream does not reply. The second one has until four seconds after the start.
//! assert!(matches!(attempts.next(Duration::ZERO, 0, |index| &health[index]), Action::Query { upstream: 0, .. }));
//! attempts.failed();
//! health[0].suspect();
//! match attempts.next(2 * second, 0, |index| &health[index]) {
//!     Action::Query { upstream, until, .. } => assert_eq!((upstream, until), (1, 4 * second)),
//!     _ => panic!("there is another upstream"),
//! }
//! ```

mod attempts;
mod client;
mod health;
mod policy;
mod query;
mod reply;
mod target;

pub use attempts::{Action, Attempts, Decision, Limits};
pub use client::{
    ConnectionId, FrameReader, PoolLimits, QueryError, QueryId, Random, SocketId, Started, StreamClient, StreamEvent,
    StreamQuery, StreamReply, Transmit, UdpClient, UdpEvent, UdpQuery, append_frame,
};
pub use health::Health;
pub use policy::Policy;
pub use query::{answered_with, outgoing, probe};
pub use reply::{readable, readable_datagram};
pub use target::{NameserverError, Protocol, Target, TargetError, nameservers};
