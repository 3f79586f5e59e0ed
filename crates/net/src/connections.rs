//! Connection table: limits open connections and their buffers across all threads that accept connections.
//!
//! A new client is always admitted. If the table is full, a connection that has not sent a complete query for a second
//! goes first: opening it costs an attacker nothing. Otherwise the table evicts the connection that has been idle
//! longest, among those of the client with the most connections. One client therefore cannot lock out the others. A
//! client at its own limit loses its own longest-idle connection. A client is an IPv4 address or an IPv6 prefix of 64
//! bits ([`client_network`]).
//!
//! Buffers above the free allowance of a connection come from one budget. If the budget is used up, the table evicts
//! the largest connection of the address that holds the most of it. If that address is the one asking, its request is
//! refused.
//!
//! Only accepting, closing and growing a buffer take the lock. A query stores its time in the entry of its connection,
//! an atomic with a single writer.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{Clock, Instant, client_network};
use host::invariant::holds;
use tokio::sync::Notify;
use transport::MonotonicClock;

/// Age at which a connection that has not sent a complete query loses against any new one: longer than a handshake and
/// the first query of a client that uses the connection.
const FIRST_QUERY_WITHIN: Duration = Duration::from_secs(1);
/// Time without a query after which a connection has none in flight: an exchange with an upstream takes less.
const RESTING_AFTER: Duration = Duration::from_secs(5);
/// Idle timeout in a full table: long enough for a client that sends its next query at once.
const IDLE_MIN: Duration = Duration::from_millis(200);

/// Reserved bytes of evicted connections that may count as free before these connections are closed. Without this
/// bound, a burst of large answers would evict one connection after the other, and free none of their buffers.
const LEAVING_MAX: usize = 1 << 20;

/// Number of clients up to which a debug build checks the whole table after each change.
const CHECKED_MAX: usize = 64;

/// Bounds of a [`ConnectionTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// Maximum weight of the open connections.
    pub open_max: usize,
    /// Maximum number of open connections from one address.
    pub per_address_max: usize,
    /// Maximum number of bytes that all connections together may reserve for buffers.
    pub buffered_max: usize,
}

impl TableLimits {
    /// Limits of a table whose bound is passed with each connection ([`ConnectionTable::admit_within`]).
    pub(crate) const UNBOUNDED: TableLimits =
        TableLimits { open_max: usize::MAX, per_address_max: usize::MAX, buffered_max: usize::MAX };
}

/// Table of the open connections.
#[derive(Debug)]
pub struct ConnectionTable {
    limits: TableLimits,
    /// Weight of the open connections.
    open: AtomicUsize,
    /// Bytes reserved from the budget.
    buffered: AtomicUsize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_address: HashMap<IpAddr, Vec<Arc<Entry>>>,
    /// Reserved bytes of connections that are evicted but not closed yet.
    leaving: usize,
    /// Earliest time at which a connection may have been open for [`FIRST_QUERY_WITHIN`] without a query.
    silent_from: Instant,
}

/// Table entry of a connection.
#[derive(Debug)]
struct Entry {
    /// Memory of the connection, in units of a connection over TCP.
    weight: usize,
    /// Time of the latest query, or of the opening, in nanoseconds of the monotonic clock.
    active: AtomicU64,
    /// True after the first complete query.
    has_asked: AtomicBool,
    /// Reserved bytes.
    buffered: AtomicUsize,
    /// Reserved bytes at the time of eviction.
    leaving: AtomicUsize,
    is_evicted: AtomicBool,
    /// Notified after the eviction. Connections may share it.
    evicted: Arc<Notify>,
}

impl Entry {
    fn buffered(&self) -> usize {
        self.buffered.load(Ordering::Relaxed)
    }

    fn active(&self) -> Instant {
        Instant::from_nanos(self.active.load(Ordering::Relaxed))
    }

    fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Relaxed)
    }

    /// Returns true if the last query, or the opening, is at least this long ago.
    fn rests(&self, now: Instant, time: Duration) -> bool {
        now.since(self.active()) >= time
    }
}

impl ConnectionTable {
    /// Creates an empty table.
    #[must_use]
    pub fn new(limits: TableLimits) -> Arc<ConnectionTable> {
        let (open, buffered, entries) = Default::default();
        Arc::new(ConnectionTable { limits, open, buffered, entries })
    }

    /// Adds a connection from this address. The second value is true if another connection was evicted for it.
    #[must_use]
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> (Connection, bool) {
        self.admit_weighing(address, 1, Arc::default())
    }

    /// Adds a connection that takes as much memory as `weight` ones over TCP, and whose eviction notifies `evicted`. An
    /// owner of many connections waits for one notification and then looks at [`Connection::is_evicted`] of each.
    #[must_use]
    pub(crate) fn admit_weighing(
        self: &Arc<Self>,
        address: IpAddr,
        weight: usize,
        evicted: Arc<Notify>,
    ) -> (Connection, bool) {
        self.admit_at(address, weight, evicted, MonotonicClock.now())
    }

    fn admit_at(
        self: &Arc<Self>,
        address: IpAddr,
        weight: usize,
        evicted: Arc<Notify>,
        now: Instant,
    ) -> (Connection, bool) {
        self.add(&mut self.lock(), address, weight, evicted, now)
    }

    /// Adds a connection to the locked table, and makes room for it.
    fn add(
        self: &Arc<Self>,
        entries: &mut Entries,
        address: IpAddr,
        weight: usize,
        evicted: Arc<Notify>,
        now: Instant,
    ) -> (Connection, bool) {
        let address = client_network(address);
        let entry = Arc::new(Entry {
            weight,
            active: AtomicU64::new(now.nanos()),
            has_asked: AtomicBool::new(false),
            buffered: AtomicUsize::new(0),
            leaving: AtomicUsize::new(0),
            is_evicted: AtomicBool::new(false),
            evicted,
        });
        let evicted = self.make_place(entries, address, weight, now);
        self.insert(entries, address, Arc::clone(&entry));
        (Connection { table: Arc::clone(self), address: Mutex::new(address), entry }, evicted)
    }

    /// Adds a connection from this address if fewer than `open_max` are open. Otherwise evicts a connection that has
    /// sent no query for a second, or one of a client with at least two more than this one. A client without
    /// connections also gets the place of an unused one. Returns `None` if nothing can be evicted.
    #[must_use]
    pub(crate) fn admit_within(
        self: &Arc<Self>,
        address: IpAddr,
        open_max: usize,
        evicted: Arc<Notify>,
    ) -> Option<Connection> {
        self.admit_within_at(address, open_max, evicted, MonotonicClock.now())
    }

    fn admit_within_at(
        self: &Arc<Self>,
        address: IpAddr,
        open_max: usize,
        evicted: Arc<Notify>,
        now: Instant,
    ) -> Option<Connection> {
        let mut entries = self.lock();
        if self.open.load(Ordering::Relaxed) >= open_max {
            let own = entries.by_address.get(&client_network(address)).map_or(0, Vec::len);
            let most = entries.by_address.values().map(Vec::len).max().unwrap_or(0);
            let made = self.evict_silent(&mut entries, now)
                || (own + 1 < most && self.evict_idlest(&mut entries, None))
                || (own == 0 && self.evict_unused(&mut entries, most, now));
            if !made {
                return None;
            }
        }
        // In the same lock: another worker would otherwise get the same place.
        Some(self.add(&mut entries, address, 1, evicted, now).0)
    }

    /// Returns the weight of the open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Evicts the connection that a full table would evict. Called when the process has run out of file descriptors.
    pub fn evict_one(&self) {
        let mut entries = self.lock();
        let _ = self.evict_silent(&mut entries, MonotonicClock.now()) || self.evict_idlest(&mut entries, None);
    }

    /// Returns the idle timeout: `usual` while at least half of the table is free, less as it fills.
    #[must_use]
    pub(crate) fn idle_time(&self, usual: Duration) -> Duration {
        let (open, most) = (self.open.load(Ordering::Relaxed), self.limits.open_max.max(1));
        let free = most.saturating_sub(open);
        if free * 2 >= most {
            return usual;
        }
        let scaled = usual.mul_f64(2.0 * free as f64 / most as f64);
        let time = scaled.max(IDLE_MIN).min(usual);
        holds(
            time <= usual && (time >= IDLE_MIN || time == usual),
            "a full table shortens the time of idle connections",
        );
        time
    }

    fn insert(&self, entries: &mut Entries, address: IpAddr, entry: Arc<Entry>) {
        self.open.fetch_add(entry.weight, Ordering::Relaxed);
        entries.by_address.entry(address).or_default().push(entry);
        self.check(entries);
    }

    /// Checks the table after a change. Debug builds only, and only while a search is cheap.
    fn check(&self, entries: &Entries) {
        if !cfg!(debug_assertions) || entries.by_address.len() > CHECKED_MAX {
            return;
        }
        let all = || entries.by_address.values().flatten();
        let weight: usize = all().map(|entry| entry.weight).sum();
        holds(weight == self.open.load(Ordering::Relaxed), "the table counts the weights of its connections");
        holds(entries.by_address.values().all(|own| !own.is_empty()), "a client in the table has a connection");
        holds(all().all(|entry| !entry.is_evicted.load(Ordering::Relaxed)), "an evicted connection has left the table");
    }

    /// Makes room for one more connection of this weight from an address. Returns true if that took an eviction.
    fn make_place(&self, entries: &mut Entries, address: IpAddr, weight: usize, now: Instant) -> bool {
        let own = entries.by_address.get(&address).map_or(0, Vec::len);
        holds(weight > 0, "each connection takes memory");
        let mut evicted = own >= self.limits.per_address_max && self.evict_idlest(entries, Some(address));
        while self.open.load(Ordering::Relaxed).saturating_add(weight) > self.limits.open_max
            && (self.evict_silent(entries, now) || self.evict_idlest(entries, None))
        {
            evicted = true;
        }
        evicted
    }

    /// Evicts the oldest of the connections without a complete query for [`FIRST_QUERY_WITHIN`], of the clients with
    /// the most of them. Younger ones may be in a handshake: evicting these would lock out new clients.
    fn evict_silent(&self, entries: &mut Entries, now: Instant) -> bool {
        // A flood of young connections must not cost a search of the whole table for each of them.
        if now < entries.silent_from {
            return false;
        }
        let mut silent_from = now + FIRST_QUERY_WITHIN;
        let of_client = |(address, own): (&IpAddr, &Vec<Arc<Entry>>)| {
            let (count, oldest) = silent_of(own, now, &mut silent_from)?;
            Some((count, Reverse(oldest.active()), *address, Arc::clone(oldest)))
        };
        let greediest = entries.by_address.iter().filter_map(of_client).max_by_key(|(count, age, ..)| (*count, *age));
        let Some((.., address, oldest)) = greediest else {
            entries.silent_from = silent_from;
            return false;
        };
        self.evict(entries, address, &oldest)
    }

    /// Evicts the longest-idle connection of the clients with this many connections that has sent no query yet, or none
    /// for [`RESTING_AFTER`].
    fn evict_unused(&self, entries: &mut Entries, most: usize, now: Instant) -> bool {
        let is_unused = |entry: &Entry| !entry.has_asked() || entry.rests(now, RESTING_AFTER);
        self.evict_oldest(entries, |_, own| own.len() == most, is_unused)
    }

    /// Evicts the longest-idle connection of an address, or of the addresses with the most connections.
    fn evict_idlest(&self, entries: &mut Entries, of: Option<IpAddr>) -> bool {
        let most = entries.by_address.values().map(Vec::len).max().unwrap_or(0);
        self.evict_oldest(entries, |address, own| of.map_or(own.len() == most, |of| of == address), |_| true)
    }

    /// Evicts the connection with the oldest activity among those that both conditions select.
    fn evict_oldest(
        &self,
        entries: &mut Entries,
        selects_client: impl Fn(IpAddr, &[Arc<Entry>]) -> bool,
        selects: impl Fn(&Entry) -> bool,
    ) -> bool {
        let oldest = entries
            .by_address
            .iter()
            .filter(|(address, own)| selects_client(**address, own))
            .flat_map(|(address, own)| own.iter().map(move |entry| (address, entry)))
            .filter(|(_, entry)| selects(entry))
            .min_by_key(|(_, entry)| entry.active())
            .map(|(address, entry)| (*address, Arc::clone(entry)));
        oldest.is_some_and(|(address, entry)| self.evict(entries, address, &entry))
    }

    fn evict(&self, entries: &mut Entries, address: IpAddr, entry: &Arc<Entry>) -> bool {
        // Its task frees the buffers when it runs. Until then they count as leaving: otherwise each connection that
        // asks for memory in the meantime would evict one more.
        let leaving = entry.buffered();
        entry.leaving.store(leaving, Ordering::Relaxed);
        entries.leaving += leaving;
        let was_evicted = entry.is_evicted.swap(true, Ordering::Relaxed);
        holds(!was_evicted, "a connection is evicted once");
        entry.evicted.notify_one();
        self.remove(entries, address, entry)
    }

    /// Removes a connection. Returns true if it was in the table.
    fn remove(&self, entries: &mut Entries, address: IpAddr, entry: &Arc<Entry>) -> bool {
        let Some(own) = entries.by_address.get_mut(&address) else { return false };
        let Some(at) = own.iter().position(|other| Arc::ptr_eq(other, entry)) else { return false };
        own.swap_remove(at);
        if own.is_empty() {
            entries.by_address.remove(&address);
        }
        let open = self.open.fetch_sub(entry.weight, Ordering::Relaxed);
        holds(entry.weight <= open, "the weight of a connection in the table was counted");
        self.check(entries);
        true
    }

    /// Evicts connections until the budget is met. Returns false if the requesting address holds the most itself.
    fn make_room(&self, asking: IpAddr) -> bool {
        let mut entries = self.lock();
        // Buffers of evicted connections are freed when their tasks run. Until then, only a few may count as free.
        if entries.leaving > LEAVING_MAX {
            return self.buffered.load(Ordering::Relaxed) <= self.limits.buffered_max;
        }
        loop {
            let used = self.buffered.load(Ordering::Relaxed).saturating_sub(entries.leaving);
            if used <= self.limits.buffered_max {
                return true;
            }
            let sum = |own: &[Arc<Entry>]| own.iter().map(|entry| entry.buffered()).sum::<usize>();
            let greediest = entries.by_address.iter().max_by_key(|(_, own)| sum(own));
            let Some((&address, own)) = greediest.filter(|(address, _)| **address != asking) else { return false };
            let largest = own.iter().max_by_key(|entry| entry.buffered()).filter(|entry| entry.buffered() > 0);
            let Some(largest) = largest.cloned() else { return false };
            self.evict(&mut entries, address, &largest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // No code that holds the lock panics half-way through a change, so a poisoned table is still consistent.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of connections of a client that are silent, and the oldest of them. Moves `silent_from` to the
/// time at which the first younger one would be.
fn silent_of<'e>(own: &'e [Arc<Entry>], now: Instant, silent_from: &mut Instant) -> Option<(usize, &'e Arc<Entry>)> {
    let mut silent: Option<(usize, &Arc<Entry>)> = None;
    for entry in own.iter().filter(|entry| !entry.has_asked()) {
        if !entry.rests(now, FIRST_QUERY_WITHIN) {
            *silent_from = (*silent_from).min(entry.active() + FIRST_QUERY_WITHIN);
            continue;
        }
        let (count, oldest) = silent.unwrap_or((0, entry));
        silent = Some((count + 1, if entry.active() < oldest.active() { entry } else { oldest }));
    }
    silent
}

/// Connection in the table. Dropping it removes the entry.
#[derive(Debug)]
pub struct Connection {
    table: Arc<ConnectionTable>,
    /// Changed only while the table is locked.
    address: Mutex<IpAddr>,
    entry: Arc<Entry>,
}

impl Connection {
    /// Records that a query has arrived now. Bytes of an incomplete query do not count.
    pub fn touch(&self) {
        self.touch_at(MonotonicClock.now());
    }

    /// Records that a query has arrived at `now`.
    pub(crate) fn touch_at(&self, now: Instant) {
        self.entry.active.store(now.nanos(), Ordering::Relaxed);
        self.entry.has_asked.store(true, Ordering::Relaxed);
    }

    /// Waits until the table evicts this connection. The owner must then close it.
    pub async fn evicted(&self) {
        self.entry.evicted.notified().await;
    }

    /// Returns true if the table has evicted this connection.
    pub(crate) fn is_evicted(&self) -> bool {
        self.entry.is_evicted.load(Ordering::Relaxed)
    }

    /// Counts the connection for the client address that a PROXY header names.
    pub(crate) fn belongs_to(&self, address: IpAddr) {
        let address = client_network(address);
        let mut entries = self.table.lock();
        let before = self.address();
        if address != before && self.table.remove(&mut entries, before, &self.entry) {
            self.table.make_place(&mut entries, address, self.entry.weight, MonotonicClock.now());
            self.table.insert(&mut entries, address, Arc::clone(&self.entry));
            *self.address.lock().unwrap_or_else(PoisonError::into_inner) = address;
        }
    }

    fn address(&self) -> IpAddr {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the idle timeout of this connection, at most `usual`.
    pub(crate) fn idle_time(&self, usual: Duration) -> Duration {
        self.table.idle_time(usual)
    }

    /// Reserves bytes from the budget. Returns false if this client gets no more. The caller must then close the
    /// connection.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        let used = self.table.buffered.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.entry.buffered.fetch_add(bytes, Ordering::Relaxed);
        let granted = used <= self.table.limits.buffered_max || self.table.make_room(self.address());
        if !granted {
            self.release(bytes);
        }
        granted
    }

    /// Reserves bytes until the returned guard is dropped. Returns `None` where [`Connection::reserve`] returns false.
    pub(crate) fn reserved(self: &Arc<Self>, bytes: usize) -> Option<Reserved> {
        self.reserve(bytes).then(|| Reserved { connection: Arc::clone(self), bytes })
    }

    /// Returns reserved bytes to the budget.
    pub(crate) fn release(&self, bytes: usize) {
        let own = self.entry.buffered.fetch_sub(bytes, Ordering::Relaxed);
        let all = self.table.buffered.fetch_sub(bytes, Ordering::Relaxed);
        holds(bytes <= own && bytes <= all, "bytes that are released were reserved");
    }
}

/// Guard that holds reserved bytes.
#[derive(Debug)]
pub(crate) struct Reserved {
    connection: Arc<Connection>,
    bytes: usize,
}

impl Reserved {
    /// Takes over the bytes of another reservation of the same connection.
    pub(crate) fn absorb(&mut self, mut other: Reserved) {
        holds(Arc::ptr_eq(&self.connection, &other.connection), "both reservations are of one connection");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Reserves more bytes. Returns false if the budget has no room.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let granted = self.connection.reserve(bytes);
        if granted {
            self.bytes += bytes;
        }
        granted
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.connection.release(self.bytes);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut entries = self.table.lock();
        let is_listed = self.table.remove(&mut entries, self.address(), &self.entry);
        holds(is_listed != self.is_evicted(), "a connection is in the table until it is evicted");
        let leaving = self.entry.leaving.load(Ordering::Relaxed);
        holds(leaving <= entries.leaving, "the bytes of an evicted connection were counted");
        entries.leaving -= leaving;
        let all = self.table.buffered.fetch_sub(self.entry.buffered(), Ordering::Relaxed);
        holds(self.entry.buffered() <= all, "the bytes of a connection were counted");
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
