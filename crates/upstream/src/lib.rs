//! Client for upstreams without I/O: which upstream to query, which bytes to send on which socket, and which replies to
//! accept.
//!
//! The crate has no socket, no clock and no runtime. Time is a parameter: a [`Duration`](core::time::Duration) since
//! any fixed start. Random numbers come from a function that the caller passes. `net` is the driver in production; the
//! tests of this crate drive the same code through a virtual network.
//!
//! # Decisions
//!
//! [`Policy`], [`Attempts`] and [`Health`] decide for one query of a client. *forward* uses them:
//!
//! 1. [`Policy::order`] returns the order of the upstreams.
//! 2. [`Attempts::next`] returns the next upstream and the deadline, or the reason to stop.
//! 3. The caller sends the message from [`outgoing`] and reports the outcome: [`Attempts::failed`] and
//!    [`Health::suspect`] for an error, [`Attempts::judge`] for a reply.
//!
//! ```
//! use core::time::Duration;
//!
//! use host::Instant;
//! use upstream::{Action, Attempts, Health, Limits, Policy};
//!
//! let second = Duration::from_secs(1);
//! let start = Instant::START;
//! let limits = Limits { total: 5 * second, each: 2 * second, failures_max: None, max_fails: 2, fail_fast: false };
//! let health = [Health::default(), Health::default()];
//! let mut attempts = Attempts::new(limits, Policy::Sequential.order(health.len(), 0), start);
//!
//! // The first upstream does not reply. The second one has until four seconds after the start.
//! assert!(matches!(attempts.next(start, 0, |index| &health[index]), Action::Query { upstream: 0, .. }));
//! attempts.failed();
//! health[0].suspect();
//! match attempts.next(start + 2 * second, 0, |index| &health[index]) {
//!     Action::Query { upstream, until, .. } => assert_eq!((upstream, until), (1, start + 4 * second)),
//!     _ => panic!("there is another upstream"),
//! }
//! ```
//!
//! # Clients
//!
//! [`UdpClient`] and [`StreamClient`] are state machines for one message to one upstream: message IDs, source ports,
//! connection pools, pipelining, retransmission, retries and deadlines. [`MultiplexClient`] is the same for protocols
//! that give each query a stream of its own, HTTP and QUIC, which a library implements. One client serves all upstreams
//! of a thread. [`Alternatives`] knows which upstreams over HTTPS offer HTTP/3. The driver of a client
//!
//! 1. calls `start` for a query, `handle_input` for bytes that have arrived, `handle_error` or `handle_closed` for a
//!    failed socket, and `handle_timeout` at the time that `poll_timeout` returns,
//! 2. then performs the actions of `poll_event`, and sends what `poll_transmit` returns.
//!
//! ```
//! use core::time::Duration;
//!
//! use host::Instant;
//! use upstream::{Mismatch, UdpClient, UdpEvent, UdpQuery};
//!
//! let after = |millis| Instant::START + Duration::from_millis(millis);
//! let mut client = UdpClient::new(Box::new(|| 4711));
//! let message = upstream::probe(&wire::Name::from_text("example.org.").unwrap(), true);
//!
//! // Start a query. The client requests a socket, and then has a datagram to send.
//! let query = UdpQuery {
//!     route: &"192.0.2.1:53",
//!     message: &message,
//!     deadline: after(2000),
//!     retransmit_after: Some(Duration::from_millis(400)),
//! };
//! let started = client.start(Instant::START, &query).unwrap();
//! assert_eq!(client.poll_event(), Some(UdpEvent::Open(started.socket, "192.0.2.1:53")));
//! let sent = client.poll_transmit().unwrap().datagram.to_vec();
//!
//! // It is lost. The client sends it again, from the same socket.
//! assert_eq!(client.poll_timeout(), Some(after(400)));
//! client.handle_timeout(after(400));
//! assert_eq!(client.poll_transmit().unwrap().datagram, sent);
//!
//! // A forged reply with another message ID is ignored. The reply completes the query.
//! let mut reply = sent;
//! reply[2] |= 0x80;
//! let mut forged = reply.clone();
//! forged[0] ^= 1;
//! assert_eq!(client.handle_input(started.socket, &forged), Some(Mismatch::Id));
//! assert_eq!(client.poll_event(), None);
//! client.handle_input(started.socket, &reply);
//! match client.poll_event() {
//!     Some(UdpEvent::Completed(query, Ok(received))) => {
//!         assert_eq!((query, received.bytes()), (started.query, &reply[..]));
//!     }
//!     event => panic!("{event:?}"),
//! }
//!
//! // The socket is idle now. It is closed if there is no other query soon.
//! client.handle_timeout(client.poll_timeout().unwrap());
//! assert_eq!(client.poll_event(), Some(UdpEvent::Close(started.socket)));
//! ```
//!
//! `docs/decisions/0007-upstream-client.md` has the reasons for this division.

mod alternatives;
mod attempts;
mod caps;
mod client;
mod cookies;
mod forgery;
mod health;
mod policy;
mod query;
mod reply;
mod scoped;
mod target;

pub use alternatives::Alternatives;
pub use attempts::{Action, Attempts, Decision, Limits};
pub use caps::{CaseCheck, CaseMemory, CaseVerdict, with_random_case};
pub use client::{
    Carrier, ConnectionId, FrameReader, Framed, Mismatch, MultiplexClient, Multiplexed, PoolClient, PoolEvent,
    PoolLimits, PoolQuery, PoolReply, QueryError, QueryId, Random, SocketId, Started, StreamClient, Transmit,
    UdpClient, UdpEvent, UdpQuery, append_frame,
};
pub use cookies::{CookieJar, CookiePath, CookieVerdict, with_cookie};
pub use forgery::ForgeryAlarm;
pub use health::Health;
pub use policy::Policy;
pub use query::{answered_with, outgoing, padding, probe};
pub use reply::{readable, readable_datagram};
pub use scoped::{ScopedAddress, UnknownInterface};
pub use target::{NameserverError, Protocol, Target, TargetError, nameservers, search_list};
