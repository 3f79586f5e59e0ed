//! Connection table: how many connections may be open and how much they may buffer, counted over all threads that accept.
//!
//! A new client always gets in. If the table is full, it evicts the idlest connection of the address that holds the most
//! connections, so that one address cannot lock out the others; an address with too many connections of its own loses
//! its idlest one. Buffers beyond what every connection may have come from one budget. If that is used up, the address
//! that holds the most of it loses its largest connection, or gets no more if it asks itself.
//!
//! Only accepting, closing and growing a buffer take the lock. A query stores the time in its connection's entry, an
//! atomic that nobody else writes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{Clock, Moment};
use tokio::sync::Notify;

use crate::clock::MonotonicClock;

/// The idle time of a connection in a full table: enough for a client that asks again at once.
const IDLE_MIN: Duration = Duration::from_millis(200);

/// Bounds of a [`ConnectionTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// Connections open at a time.
    pub open_max: usize,
    /// Connections of one address open at a time.
    pub per_address_max: usize,
    /// Bytes that all connections together may reserve for buffers.
    pub buffered_max: usize,
}

impl TableLimits {
    /// For a table whose bound is given with each connection.
    pub(crate) const UNBOUNDED: TableLimits =
        TableLimits { open_max: usize::MAX, per_address_max: usize::MAX, buffered_max: usize::MAX };
}

/// The connections that are open.
#[derive(Debug)]
pub struct ConnectionTable {
    limits: TableLimits,
    open: AtomicUsize,
    /// Bytes reserved from the budget.
    buffered: AtomicUsize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_address: HashMap<IpAddr, Vec<Arc<Entry>>>,
    /// Reserved bytes of connections that are evicted and not yet closed.
    leaving: usize,
}

/// What the table knows of a connection.
#[derive(Debug)]
struct Entry {
    /// When it last asked something, in nanoseconds of the monotonic clock.
    active: AtomicU64,
    /// Bytes that it has reserved.
    buffered: AtomicUsize,
    /// Bytes that it had reserved when it was evicted.
    leaving: AtomicUsize,
    evicted: Notify,
}

impl Entry {
    fn buffered(&self) -> usize {
        self.buffered.load(Ordering::Relaxed)
    }
}

impl ConnectionTable {
    /// Creates an empty table.
    #[must_use]
    pub fn new(limits: TableLimits) -> Arc<ConnectionTable> {
        let (open, buffered, entries) = Default::default();
        Arc::new(ConnectionTable { limits, open, buffered, entries })
    }

    /// Adds a connection of this address; says whether another one was evicted for it.
    #[must_use]
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> (Connection, bool) {
        let address = address.to_canonical();
        let entry = Arc::new(Entry {
            active: AtomicU64::new(MonotonicClock.now().nanos()),
            buffered: AtomicUsize::new(0),
            leaving: AtomicUsize::new(0),
            evicted: Notify::new(),
        });
        let mut entries = self.lock();
        let evicted = self.make_place(&mut entries, address);
        self.insert(&mut entries, address, Arc::clone(&entry));
        drop(entries);
        (Connection { table: Arc::clone(self), address: Mutex::new(address), entry }, evicted)
    }

    /// Adds a connection of this address if fewer than `open_max` are open. Else it takes the place of an idle one of an
    /// address that has at least two more; `None` if there is no such address.
    #[must_use]
    pub(crate) fn admit_within(self: &Arc<Self>, address: IpAddr, open_max: usize) -> Option<Connection> {
        let mut entries = self.lock();
        if self.open.load(Ordering::Relaxed) >= open_max {
            let own = entries.by_address.get(&address.to_canonical()).map_or(0, Vec::len);
            let most = entries.by_address.values().map(Vec::len).max().unwrap_or(0);
            if own + 1 >= most || !self.evict_idlest(&mut entries, None) {
                return None;
            }
        }
        drop(entries);
        Some(self.admit(address).0)
    }

    /// Evicts the connection that a full table would evict: the system has no more descriptors.
    pub fn evict_one(&self) {
        let mut entries = self.lock();
        self.evict_idlest(&mut entries, None);
    }

    /// The time that a connection may be idle: all of `usual` while half of the table is free, less as it fills.
    #[must_use]
    pub fn idle_time(&self, usual: Duration) -> Duration {
        let (open, most) = (self.open.load(Ordering::Relaxed), self.limits.open_max.max(1));
        let free = most.saturating_sub(open);
        if free * 2 >= most {
            return usual;
        }
        let scaled = usual.mul_f64(2.0 * free as f64 / most as f64);
        scaled.max(IDLE_MIN).min(usual)
    }

    fn insert(&self, entries: &mut Entries, address: IpAddr, entry: Arc<Entry>) {
        entries.by_address.entry(address).or_default().push(entry);
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes place for one more connection of an address; says whether that took an eviction.
    fn make_place(&self, entries: &mut Entries, address: IpAddr) -> bool {
        let own = entries.by_address.get(&address).map_or(0, Vec::len);
        if own >= self.limits.per_address_max {
            self.evict_idlest(entries, Some(address))
        } else if self.open.load(Ordering::Relaxed) >= self.limits.open_max {
            self.evict_idlest(entries, None)
        } else {
            false
        }
    }

    /// Evicts the idlest connection of an address, or of those that have the most.
    fn evict_idlest(&self, entries: &mut Entries, of: Option<IpAddr>) -> bool {
        let most = entries.by_address.values().map(Vec::len).max().unwrap_or(0);
        let active = |entry: &Arc<Entry>| entry.active.load(Ordering::Relaxed);
        let idlest = entries
            .by_address
            .iter()
            .filter(|(address, own)| of.map_or(own.len() == most, |of| of == **address))
            .flat_map(|(address, own)| own.iter().map(move |entry| (address, entry)))
            .min_by_key(|(_, entry)| active(entry))
            .map(|(address, entry)| (*address, Arc::clone(entry)));
        idlest.is_some_and(|(address, entry)| self.evict(entries, address, &entry))
    }

    fn evict(&self, entries: &mut Entries, address: IpAddr, entry: &Arc<Entry>) -> bool {
        let leaving = entry.buffered();
        entry.leaving.store(leaving, Ordering::Relaxed);
        entries.leaving += leaving;
        entry.evicted.notify_one();
        self.remove(entries, address, entry)
    }

    /// Removes a connection; says whether it was there.
    fn remove(&self, entries: &mut Entries, address: IpAddr, entry: &Arc<Entry>) -> bool {
        let Some(own) = entries.by_address.get_mut(&address) else { return false };
        let Some(at) = own.iter().position(|other| Arc::ptr_eq(other, entry)) else { return false };
        own.swap_remove(at);
        if own.is_empty() {
            entries.by_address.remove(&address);
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Evicts connections until the budget has room again; refuses an address that holds the most itself.
    fn make_room(&self, asking: IpAddr) -> bool {
        let mut entries = self.lock();
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
        // Each change is whole before anything that may panic.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection in the table; dropping it removes it.
#[derive(Debug)]
pub struct Connection {
    table: Arc<ConnectionTable>,
    /// Locked while the table is, or alone.
    address: Mutex<IpAddr>,
    entry: Arc<Entry>,
}

impl Connection {
    /// Records that the client has asked something now. Bytes alone do not count.
    pub fn touch(&self) {
        self.touch_at(MonotonicClock.now());
    }

    /// The same, at a time that is known.
    pub(crate) fn touch_at(&self, now: Moment) {
        self.entry.active.store(now.nanos(), Ordering::Relaxed);
    }

    /// Returns when the table has evicted this connection, which is to be closed then.
    pub async fn evicted(&self) {
        self.entry.evicted.notified().await;
    }

    /// Counts the connection for the client that a proxy has named.
    pub(crate) fn belongs_to(&self, address: IpAddr) {
        let address = address.to_canonical();
        let mut entries = self.table.lock();
        let before = self.address();
        if address != before && self.table.remove(&mut entries, before, &self.entry) {
            self.table.make_place(&mut entries, address);
            self.table.insert(&mut entries, address, Arc::clone(&self.entry));
            *self.address.lock().unwrap_or_else(PoisonError::into_inner) = address;
        }
    }

    fn address(&self) -> IpAddr {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time that this connection may be idle, of what is usual.
    pub(crate) fn idle_time(&self, usual: Duration) -> Duration {
        self.table.idle_time(usual)
    }

    /// Reserves bytes of the budget; `false` if there are none left for this client, whose connection is to be closed then.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        let used = self.table.buffered.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.entry.buffered.fetch_add(bytes, Ordering::Relaxed);
        let granted = used <= self.table.limits.buffered_max || self.table.make_room(self.address());
        if !granted {
            self.release(bytes);
        }
        granted
    }

    /// Reserves bytes until what this returns is dropped; `None` as for [`Connection::reserve`].
    pub(crate) fn reserved(self: &Arc<Self>, bytes: usize) -> Option<Reserved> {
        self.reserve(bytes).then(|| Reserved { connection: Arc::clone(self), bytes })
    }

    /// Gives reserved bytes back.
    pub(crate) fn release(&self, bytes: usize) {
        self.entry.buffered.fetch_sub(bytes, Ordering::Relaxed);
        self.table.buffered.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes that are reserved as long as this lives.
#[derive(Debug)]
pub(crate) struct Reserved {
    connection: Arc<Connection>,
    bytes: usize,
}

impl Reserved {
    /// Reserves more; `false` if there is no room.
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
        self.table.remove(&mut entries, self.address(), &self.entry);
        entries.leaving -= self.entry.leaving.load(Ordering::Relaxed);
        self.table.buffered.fetch_sub(self.entry.buffered(), Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
