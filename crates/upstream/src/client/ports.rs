//! Source ports of the UDP client: which socket carries the next query to an upstream.
//!
//! There are as many sockets as queries wait for replies at the same time, at most [`BUSY_MAX`]; above that, queries
//! share sockets. A query takes the socket that became idle last, so that those of a burst are idle and get closed. The
//! client opens a socket for a query if no other is idle.
//!
//! A socket carries [`USES_MAX`] queries, and none after it was idle for [`IDLE_MAX`]. So its port is in use for less
//! than eight seconds and the wait for the last reply, and the ports of two queries in flight differ. The system
//! chooses each port at random, and workers have sockets of their own, so a port says nothing about the next one or
//! about the worker. Of `r` ports, `q` queries use about `r * (1 - exp(-q / (r * USES_MAX)))`: at 2,000 queries per
//! second and with Linux's default range of 28,232 ports, 99.5 % within ten minutes.

use core::time::Duration;

use host::Instant;
use host::invariant::{Expected as _, holds};

use super::ended::EndedIds;
use super::slots::Key;
use super::{QueryError, SocketId};

/// Queries sent from one source port. A new socket costs about as much as a query, so that this is an eighth.
pub(super) const USES_MAX: u32 = 8;
/// Sockets of an upstream that wait for replies before queries share one. More would cost descriptors while an upstream
/// does not reply.
pub(super) const BUSY_MAX: usize = 64;
/// Time without a new query after which a socket is closed. An upstream to which the thread sends fewer queries gets
/// each from a new port, and an idle server keeps no socket, in spite of probes.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(1);

/// Time after a report that an upstream is unreachable for which queries wait only shortly. Routers limit the number
/// of reports (RFC 4443 §2.4 f): Linux sends hardly one in ten seconds after a burst. A reply ends it, so a longer
/// time would only harm queries whose replies are slow.
const UNREACHABLE_FOR: Duration = Duration::from_secs(10);

/// Calls of the idle timer, one per [`IDLE_MAX`], for which message IDs of ended queries are remembered at least, and
/// twice as many at most. With a longer time, a guess would often look late while an upstream is down.
const ENDED_TICKS: u32 = 5;

/// Key of the ports of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PortsId(pub(super) Key);

/// Sockets of one upstream that take new queries.
pub(super) struct Ports<R> {
    pub(super) route: R,
    /// Sockets without a query in flight. The last one was used last.
    idle: Vec<SocketId>,
    /// Sockets with queries in flight.
    busy: Vec<SocketId>,
    /// Busy socket that was shared last.
    shared: usize,
    /// Message IDs that late replies have.
    ended: EndedIds,
    /// Number of calls of [`Ports::tick`] in this period of `ended`.
    ticks: u32,
    /// Last report that the upstream is unreachable, and the time until which it counts.
    unreachable: Option<(QueryError, Instant)>,
}

impl<R> Ports<R> {
    pub(super) fn new(route: R) -> Ports<R> {
        let (idle, busy, shared, ended, ticks, unreachable) = Default::default();
        Ports { route, idle, busy, shared, ended, ticks, unreachable }
    }

    /// Notes that the upstream is unreachable.
    pub(super) fn note_unreachable(&mut self, now: Instant, error: &QueryError) {
        self.unreachable = Some((error.clone(), now + UNREACHABLE_FOR));
    }

    /// Notes that the upstream has replied.
    pub(super) fn note_reply(&mut self) {
        self.unreachable = None;
    }

    /// Returns true if the upstream was unreachable a moment ago. Forgets a report that counts no longer.
    pub(super) fn is_unreachable(&mut self, now: Instant) -> bool {
        self.unreachable.take_if(|(_, until)| now >= *until);
        self.unreachable.is_some()
    }

    /// Returns the report that the upstream is unreachable, unless it has replied since.
    pub(super) fn report(&self) -> Option<QueryError> {
        self.unreachable.as_ref().map(|(error, _)| error.clone())
    }

    /// Takes the socket that became idle last. The caller closes it or returns it with [`Ports::occupy`].
    pub(super) fn take_idle(&mut self) -> Option<SocketId> {
        self.idle.pop()
    }

    /// Adds a socket that is about to carry a query.
    pub(super) fn occupy(&mut self, socket: SocketId) {
        debug_assert!(self.is_busy(socket).is_none(), "a socket is listed once");
        holds(self.busy.len() < BUSY_MAX, "queries share sockets above the maximum");
        self.busy.push(socket);
    }

    /// Returns true for a busy socket, and false for an idle one. `None` for a socket that is not listed.
    pub(super) fn is_busy(&self, socket: SocketId) -> Option<bool> {
        let is_busy = self.busy.contains(&socket);
        (is_busy || self.idle.contains(&socket)).then_some(is_busy)
    }

    /// Returns the number of sockets that take new queries.
    pub(super) fn listed(&self) -> usize {
        self.busy.len() + self.idle.len()
    }

    /// Returns a socket with queries in flight, each in turn. `None` while there may be more sockets.
    pub(super) fn share(&mut self) -> Option<SocketId> {
        if self.busy.len() < BUSY_MAX {
            return None;
        }
        self.shared = (self.shared + 1) % self.busy.len();
        self.busy.get(self.shared).copied().expected("a busy socket")
    }

    /// Marks a socket as idle, because its last query in flight has ended.
    pub(super) fn release(&mut self, socket: SocketId) {
        holds(self.forget(socket), "a socket whose last query ends is busy");
        self.idle.push(socket);
    }

    /// Removes a socket, which takes no more queries. Returns false if it was not listed.
    pub(super) fn forget(&mut self, socket: SocketId) -> bool {
        let is_it = |listed: &SocketId| *listed == socket;
        let from_busy = self.busy.iter().position(is_it).map(|at| self.busy.swap_remove(at));
        // A socket is idle before it is open if its query was cancelled at once.
        let from_idle = || self.idle.iter().position(is_it).map(|at| self.idle.remove(at));
        let was_listed = from_busy.or_else(from_idle).is_some();
        debug_assert!(self.is_busy(socket).is_none(), "a socket that is forgotten was listed once");
        was_listed
    }

    /// Removes the idle sockets that have expired, and returns them.
    pub(super) fn expire(&mut self, is_expired: impl Fn(SocketId) -> bool) -> Vec<SocketId> {
        self.idle.extract_if(.., |socket| is_expired(*socket)).collect()
    }

    /// Records that a query has ended, whose reply may come late.
    pub(super) fn note_ended(&mut self, message_id: u16) {
        self.ended.insert(message_id);
    }

    /// Returns true if a reply with this message ID may be late.
    pub(super) fn may_be_late(&self, message_id: u16) -> bool {
        self.ended.contains(message_id)
    }

    /// Counts the calls of the idle timer, and forgets old message IDs.
    pub(super) fn tick(&mut self) {
        self.ticks = (self.ticks + 1) % ENDED_TICKS;
        if self.ticks == 0 {
            self.ended.rotate();
        }
    }

    /// Returns true if there is nothing to remember.
    pub(super) fn is_empty(&self) -> bool {
        self.idle.is_empty() && self.busy.is_empty() && self.ended.is_empty()
    }
}
