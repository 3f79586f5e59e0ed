//! State of the running relay on its one thread: the pure [`Relay`], its subscribers, and the tasks that move time.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::{Rc, Weak};
use std::task::Waker;
use std::time::Duration;

use host::invariant::holds;
use host::{Clock, Instant};
use relay::{Cursor, Kind, KindState, News, Relay};
use tokio::sync::{Notify, watch};
use tokio::task::yield_now;
use tokio::time::{sleep, sleep_until};
use transport::MonotonicClock;

use super::meter::Meter;

/// Maximum number of subscribers. Each node has three, on one connection.
pub(super) const SUBSCRIBERS_MAX: usize = 12_000;
/// Maximum number of lists that are sent at the same time.
pub(super) const LISTS_MAX: usize = 32;
/// Time that a request for a version waits until the relay has it, as the API server lets it wait for 3 s.
const AHEAD_WAIT: Duration = Duration::from_secs(1);
/// Number of subscribers that are woken at once. Each costs about 20 µs, and with all of them at once, the changes that
/// arrive meanwhile would wait for the last one.
const WAKES_AT_ONCE: usize = 64;
/// Time for which bookmarks wait for changes if there have been some as recently: both need one write then, and changes
/// do not wait for those of bookmarks.
const BOOKMARK_WAIT: Duration = Duration::from_millis(100);
/// Interval between looks at subscribers that may be too slow.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Client on a connection.
#[derive(Default)]
pub(super) struct Peer {
    /// Closes the connection.
    pub(super) close: Notify,
    /// True after a request with a token that is accepted.
    pub(super) is_admitted: Cell<bool>,
}

/// Watch of a subscriber.
pub(super) struct Subscriber {
    pub(super) cursor: RefCell<Cursor>,
    peer: Rc<Peer>,
}

/// Tasks that wait for news of a kind.
#[derive(Default)]
struct Wakers {
    waiting: Vec<Waker>,
    /// Tasks that have nothing but a bookmark to read.
    later: VecDeque<Waker>,
    /// Number of times that all of them were woken.
    round: u64,
}

/// Registration of a task, which holds until the kind has news.
pub(super) struct Registered {
    round: u64,
    waker: Waker,
}

/// State of the relay.
pub(super) struct Hub {
    pub(super) relay: RefCell<Relay>,
    pub(super) meter: Rc<Meter>,
    wakers: RefCell<HashMap<Kind, Wakers>>,
    /// Subscribers that are woken next.
    waking: RefCell<VecDeque<Waker>>,
    /// Wakes the task that wakes them, and the one that moves time after the last of them.
    has_waking: Notify,
    all_woken: Notify,
    /// Time of the last changes, and the time until which bookmarks wait for further ones.
    last_changes: Cell<Option<Instant>>,
    bookmarks_due: Cell<Option<Instant>>,
    subscribers: RefCell<Vec<Weak<Subscriber>>>,
    /// Number of lists that are being sent.
    lists: Cell<usize>,
    /// Wakes the task that moves time.
    pub(super) applied: Notify,
    /// Wakes requests that wait for a version.
    changed: Notify,
    /// Increases when a kind must be listed again.
    pub(super) relist: watch::Sender<u64>,
    is_ready: Cell<bool>,
}

/// Slot of a list that is being sent, given back when dropped.
pub(super) struct ListSlot(Rc<Hub>);

impl Drop for ListSlot {
    fn drop(&mut self) {
        let lists = self.0.lists.get();
        holds((1..=LISTS_MAX).contains(&lists), "a list that ends was counted");
        self.0.lists.set(lists.saturating_sub(1));
    }
}

/// Returns the monotonic time.
pub(super) fn now() -> Instant {
    MonotonicClock.now()
}

impl Hub {
    pub(super) fn new(kinds: &[Kind], meter: Rc<Meter>) -> Rc<Hub> {
        Rc::new(Hub {
            relay: RefCell::new(Relay::new(kinds)),
            meter,
            wakers: RefCell::default(),
            waking: RefCell::default(),
            has_waking: Notify::new(),
            all_woken: Notify::new(),
            last_changes: Cell::default(),
            bookmarks_due: Cell::default(),
            subscribers: RefCell::default(),
            lists: Cell::new(0),
            applied: Notify::new(),
            changed: Notify::new(),
            relist: watch::Sender::new(0),
            is_ready: Cell::new(false),
        })
    }

    /// Changes the state, and wakes whoever it concerns.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Relay) -> R) -> R {
        let result = change(&mut self.relay.borrow_mut());
        self.applied.notify_one();
        self.changed.notify_waiters();
        result
    }

    /// Takes a slot for a list, or returns the number of the refused ones.
    pub(super) fn list_slot(self: &Rc<Hub>) -> Option<ListSlot> {
        if self.lists.get() >= LISTS_MAX {
            return None;
        }
        self.lists.set(self.lists.get() + 1);
        Some(ListSlot(Rc::clone(self)))
    }

    /// Registers a subscriber, or returns `None` if there are too many.
    pub(super) fn subscribe(&self, cursor: Cursor, peer: &Rc<Peer>) -> Option<Rc<Subscriber>> {
        let mut subscribers = self.subscribers.borrow_mut();
        if subscribers.len() >= SUBSCRIBERS_MAX {
            subscribers.retain(|one| one.strong_count() > 0);
        }
        if subscribers.len() >= SUBSCRIBERS_MAX {
            return None;
        }
        let subscriber = Rc::new(Subscriber { cursor: RefCell::new(cursor), peer: Rc::clone(peer) });
        subscribers.push(Rc::downgrade(&subscriber));
        holds(subscribers.len() <= SUBSCRIBERS_MAX, "the number of subscribers is bounded");
        Some(subscriber)
    }

    /// Registers a task to be woken when a kind has news, unless it is registered already.
    pub(super) fn wake_later(&self, kind: Kind, registered: &mut Option<Registered>, waker: &Waker) {
        let mut wakers = self.wakers.borrow_mut();
        let wakers = wakers.entry(kind).or_default();
        let is_known = |known: &Registered| known.round == wakers.round && known.waker.will_wake(waker);
        let is_earlier = registered.as_ref().is_none_or(|known| known.round <= wakers.round);
        holds(is_earlier, "a waker is registered in a round that has begun");
        if !registered.as_ref().is_some_and(is_known) {
            *registered = Some(Registered { round: wakers.round, waker: waker.clone() });
            wakers.waiting.push(waker.clone());
        }
    }

    /// Lets the subscribers of a kind be woken: for changes at once, for a bookmark alone together with the next
    /// changes or a little later.
    fn wake(&self, kind: Kind, news: News, now: Instant) {
        let mut wakers = self.wakers.borrow_mut();
        let Some(wakers) = wakers.get_mut(&kind) else { return };
        wakers.round += 1;
        wakers.later.extend(wakers.waiting.drain(..));
        let has_changes_soon = self.last_changes.get().is_some_and(|last| now.since(last) < BOOKMARK_WAIT);
        match news {
            News::Changes => {
                self.waking.borrow_mut().extend(wakers.later.drain(..));
                self.last_changes.set(Some(now));
                self.start_waking();
            }
            News::Bookmark if has_changes_soon => {
                let due = now + BOOKMARK_WAIT;
                self.bookmarks_due.set(self.bookmarks_due.get().map_or(Some(due), |known| Some(known.min(due))));
            }
            News::Bookmark => self.start_waking(),
        }
    }

    fn start_waking(&self) {
        self.bookmarks_due.set(None);
        self.has_waking.notify_one();
    }

    /// Wakes subscribers that have something to read, some at a time, until dropped.
    pub(super) async fn wake_subscribers(self: Rc<Hub>) {
        loop {
            self.has_waking.notified().await;
            loop {
                let woken = self.next_woken();
                if woken.is_empty() {
                    break;
                }
                woken.into_iter().for_each(Waker::wake);
                yield_now().await;
                if self.waking.borrow().is_empty() {
                    self.all_woken.notify_one();
                }
            }
        }
    }

    /// Returns the subscribers to wake next.
    fn next_woken(&self) -> Vec<Waker> {
        let first = |queue: &mut VecDeque<Waker>| queue.drain(..queue.len().min(WAKES_AT_ONCE)).collect::<Vec<_>>();
        let mut woken = first(&mut self.waking.borrow_mut());
        // All watches of a connection are at about the same place of their queues, so that what they get needs one
        // write.
        woken.extend(self.wakers.borrow_mut().values_mut().flat_map(|wakers| first(&mut wakers.later)));
        woken
    }

    /// Waits for a change, at most until `deadline`.
    pub(super) async fn wait_for_change(&self, deadline: tokio::time::Instant) {
        tokio::select! {
            () = self.changed.notified() => {}
            () = sleep_until(deadline) => {}
        }
    }

    /// Returns the time until which a request waits for its version.
    pub(super) fn ahead_deadline() -> tokio::time::Instant {
        tokio::time::Instant::now() + AHEAD_WAIT
    }

    /// Makes ticks and bookmarks when they are due, until dropped. While subscribers still wait for a tick, the next
    /// one gathers more changes: a relay that is short of time makes fewer writes.
    pub(super) async fn run(self: Rc<Hub>) {
        loop {
            while !self.waking.borrow().is_empty() {
                self.all_woken.notified().await;
            }
            let due = self.relay.borrow().due().unwrap_or_else(|| now() + CHECK_INTERVAL);
            let due = self.bookmarks_due.get().map_or(due, |bookmarks| bookmarks.min(due));
            tokio::select! {
                () = sleep_until(MonotonicClock::tokio_instant(due)) => {}
                () = self.applied.notified() => {}
            }
            self.advance();
        }
    }

    fn advance(&self) {
        let now = now();
        let woken = self.relay.borrow_mut().advance(now);
        woken.into_iter().for_each(|(kind, news)| self.wake(kind, news, now));
        if self.bookmarks_due.get().is_some_and(|due| due <= now) {
            self.start_waking();
        }
        let is_ready = self.relay.borrow().is_ready();
        if is_ready && !self.is_ready.replace(is_ready) {
            tracing::info!(target: super::LOG, "All kinds are listed; the relay serves");
        }
    }

    /// Closes subscribers that are too slow and publishes the state, once in a while, until dropped.
    pub(super) async fn check(self: Rc<Hub>) {
        loop {
            sleep(CHECK_INTERVAL).await;
            self.close_slow();
            self.publish();
        }
    }

    /// Closes subscribers that are behind while most are not. Otherwise the relay itself is slow.
    fn close_slow(&self) {
        let mut subscribers = self.subscribers.borrow_mut();
        subscribers.retain(|one| one.strong_count() > 0);
        let (relay, now) = (self.relay.borrow(), now());
        let all = subscribers.len();
        let behind: Vec<Rc<Subscriber>> = subscribers
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|one| relay.is_behind(&one.cursor.borrow(), now))
            .collect();
        // A single subscriber that is behind is slow, too.
        if behind.len() > 1 && behind.len() * 2 > all {
            return;
        }
        for one in behind {
            self.meter.slow();
            tracing::info!(target: super::LOG, "Closing a subscriber of {} that is too slow", {
                one.cursor.borrow().kind().resource()
            });
            one.peer.close.notify_one();
        }
    }

    /// Publishes the state for the metrics page, and tells the relay how many subscribers there are.
    pub(super) fn publish(&self) {
        let states: Vec<KindState> = self.relay.borrow().states(now());
        let mut counts: HashMap<Kind, usize> = HashMap::new();
        for one in self.subscribers.borrow().iter().filter_map(Weak::upgrade) {
            *counts.entry(one.cursor.borrow().kind()).or_default() += 1;
        }
        let count = |kind| counts.get(&kind).copied().unwrap_or_default();
        states.iter().for_each(|state| self.relay.borrow_mut().note_subscribers(state.kind, count(state.kind)));
        self.meter.publish(&states, count);
    }

    /// Returns true if the relay serves.
    pub(super) fn is_ready(&self) -> bool {
        self.relay.borrow().is_ready()
    }

    /// Returns the number of subscribers.
    pub(super) fn subscribers(&self) -> usize {
        self.subscribers.borrow().iter().filter(|one| one.strong_count() > 0).count()
    }

    /// Ends all watches with a bookmark.
    pub(super) fn close(&self) {
        self.change(|relay| relay.close(now()));
        Kind::ALL.into_iter().for_each(|kind| self.wake(kind, News::Changes, now()));
    }
}
