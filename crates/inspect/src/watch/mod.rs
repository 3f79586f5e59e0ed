//! Reader of the workers' taps: live queries for `tail`, and the record of failures.
//!
//! ```text
//!   worker ── ring ──┐            ┌─► failures, for `--last`
//!   worker ── ring ──┴─► drain ───┼─► streams: filter, sample, queue of lines ──► client
//!                                 └─► counts, for `top`
//! ```
//!
//! The control thread comes by every [`IDLE_INTERVAL`], or every [`BUSY_INTERVAL`] while somebody watches. It never
//! waits for a worker, and no worker waits for it: what does not fit into a ring or a queue is counted and left out.

mod distinct;
mod failures;
mod groups;
mod identity;
mod sampling;
mod shown;
mod space_saving;
mod streams;
mod windows;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::setup::NamePrivacy;
use control::tail::{Event, Line, STREAMS_MAX, TCP_STREAMS_MAX};
use control::top::{By, Top, Window};
use engine::tap::{Filter, Filters, Record};
use net::Taps;
use wire::NameRef;

use super::refusal::Refusal;
use super::view::{Loaded, View};
use failures::Failures;
use groups::Groups;
use hyper::StatusCode;
use identity::Identities;
pub(crate) use identity::Selection;
use sampling::Sampling;
use shown::Shower;
use streams::Tail;
pub(super) use streams::{Lines, Queue};

/// Interval between visits to the rings while nobody watches.
const IDLE_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between visits while somebody watches.
const BUSY_INTERVAL: Duration = Duration::from_millis(20);
/// Interval at which the addresses of selected pods are looked up again.
const PODS_INTERVAL: Duration = Duration::from_secs(1);

/// State of the reader.
pub(super) struct Watch {
    taps: Taps,
    state: RefCell<State>,
}

struct State {
    failures: Failures,
    groups: Groups,
    shower: Shower,
    identities: Identities,
    sampling: Sampling,
    filters: Filters,
    tails: Vec<Tail>,
    /// Place at which the search for a free one begins.
    opened: usize,
    pods_looked_up: Instant,
}

impl State {
    /// Returns the last `number` failures that a filter selects, oldest first.
    fn last_failures(&mut self, loaded: &Loaded, number: usize, filter: &Filter) -> Vec<Event> {
        let State { failures, shower, identities, .. } = self;
        let selected = failures.last(number, |record| filter.selects_record(record));
        selected.map(|failure| shower.event(&failure, identities, loaded)).collect()
    }

    /// Refuses a client over TCP if the other streams are reserved for the Unix socket.
    fn check_number(&self, is_remote: bool) -> Result<(), Refusal> {
        let open = self.tails.iter().filter(|tail| tail.is_remote()).count();
        if is_remote && open >= TCP_STREAMS_MAX {
            return Err(too_many(open, " over TCP"));
        }
        Ok(())
    }
}

fn too_many(open: usize, place: &str) -> Refusal {
    let message = format!("{open} streams{place} are open, the maximum; end one, or use `tail --last 20`");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
}

/// Request for a stream.
pub(super) struct Request {
    pub(super) filter: Filter,
    /// Pods whose queries are selected.
    pub(super) pods: Option<Selection>,
    /// Number of recorded failures to begin with.
    pub(super) last: usize,
    /// False to end after them.
    pub(super) follow: bool,
    pub(super) duration: Duration,
    /// True for a client over TCP.
    pub(super) is_remote: bool,
}

impl Watch {
    pub(super) fn new(taps: Taps) -> Watch {
        let state = State {
            failures: Failures::default(),
            groups: Groups::new(),
            shower: Shower::new(),
            identities: Identities::default(),
            sampling: Sampling::default(),
            filters: Filters::default(),
            tails: Vec::new(),
            opened: 0,
            pods_looked_up: Instant::now(),
        };
        Watch { taps, state: RefCell::new(state) }
    }

    /// Counts queries for `top` only if it is on.
    pub(super) fn switch(&self, is_on: bool) {
        self.state.borrow_mut().sampling.switch(is_on);
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// There are too many streams, or a filter may not be used.
    pub(super) fn open(self: &Rc<Self>, loaded: &Loaded, request: Request) -> Result<Lines, Refusal> {
        self.drain(loaded);
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        if loaded.names != NamePrivacy::Shown && request.filter.has_names() {
            let message = "the Corefile hides names (`control { privacy }`), so filters by name are refused";
            return Err(Refusal::new(StatusCode::FORBIDDEN, message));
        }
        let Request { mut filter, pods, last, follow, duration, is_remote } = request;
        if let Some(pods) = &pods {
            filter.set_addresses(pods.addresses(&loaded.inspection)?);
        }
        let queue = Queue::new();
        for event in state.last_failures(loaded, last, &filter) {
            queue.push(&Line::Query(Box::new(event)));
        }
        if !follow {
            queue.end();
            return Ok(Lines::new(queue, None));
        }
        state.check_number(is_remote)?;
        let Some(at) = state.filters.add(filter.clone(), state.opened) else {
            return Err(too_many(STREAMS_MAX, ""));
        };
        // The place of the last stream is used again last: a worker may not know yet that it is free.
        state.opened = at + 1;
        self.taps.rings().iter().for_each(|ring| ring.set_tail_every(at, 1));
        let tail = Tail::new(at, &queue, filter, pods, self.taps.rings(), Instant::now() + duration);
        let tail = if is_remote { tail.remote() } else { tail };
        tail.announce_sample();
        state.tails.push(tail);
        self.taps.watch(&Arc::new(state.filters.clone()));
        Ok(Lines::new(queue, Some(Closer { watch: Rc::clone(self), at })))
    }

    /// Returns a name that a client asked for as the configuration allows it.
    pub(super) fn shown_name(&self, name: NameRef<'_>, privacy: NamePrivacy) -> String {
        let mut text = String::new();
        self.state.borrow().shower.push_name(name, || None, privacy, &mut text);
        text
    }

    /// Returns the last `number` failures, oldest first.
    pub(super) fn failures(&self, loaded: &Loaded, number: usize) -> Vec<Event> {
        self.drain(loaded);
        self.state.borrow_mut().last_failures(loaded, number, &Filter::default())
    }

    /// Removes a stream, whose client has left.
    fn close(&self, at: usize) {
        let mut state = self.state.borrow_mut();
        state.tails.retain(|tail| tail.at() != at);
        state.filters.put(at, None);
        self.taps.watch(&Arc::new(state.filters.clone()));
    }

    /// Takes all records out of the rings and passes them on.
    fn drain(&self, loaded: &Loaded) {
        let mut state = self.state.borrow_mut();
        let State { failures, groups, shower, identities, sampling, tails, .. } = &mut *state;
        engine::tap::drain(self.taps.rings(), |words| {
            let record = Record::from_words(words);
            if record.reasons.is_counted() {
                sampling.count(&record);
                groups.count(&record, shower, identities, loaded);
            }
            let is_shown = |tail: &&Tail| record.reasons.has_tail(tail.at());
            if tails.iter().any(|tail| is_shown(&tail)) {
                let line = Line::Query(Box::new(shower.event(&record, identities, loaded)));
                tails.iter().filter(is_shown).for_each(|tail| tail.push(&line));
            }
            if record.reasons.is_failure() {
                failures.add(words);
            }
        });
        groups.advance(self.taps.rings().iter().map(|ring| ring.lost()).sum());
        if sampling.adjust(self.taps.rings()) {
            self.taps.restart_samples();
        }
        let now = Instant::now();
        tails.iter_mut().for_each(|tail| tail.adjust(self.taps.rings(), now));
    }

    /// Returns the largest groups of queries.
    pub(super) fn top(&self, loaded: &Loaded, by: By, window: Window, rows_max: usize) -> Top {
        self.drain(loaded);
        let mut state = self.state.borrow_mut();
        let State { groups, identities, .. } = &mut *state;
        groups.top((by, window, rows_max), identities, loaded)
    }

    /// Looks up the addresses of selected pods again.
    fn follow_pods(&self, loaded: &Loaded) {
        let mut state = self.state.borrow_mut();
        if state.pods_looked_up.elapsed() < PODS_INTERVAL {
            return;
        }
        state.pods_looked_up = Instant::now();
        let State { tails, filters, .. } = &mut *state;
        let mut changed = false;
        for tail in tails {
            if let Some(filter) = tail.refreshed(&loaded.inspection) {
                filters.put(tail.at(), Some(filter));
                changed = true;
            }
        }
        if changed {
            self.taps.watch(&Arc::new(state.filters.clone()));
        }
    }

    fn is_busy(&self) -> bool {
        !self.state.borrow().tails.is_empty()
    }
}

/// Removes a stream when its response is dropped.
pub(super) struct Closer {
    watch: Rc<Watch>,
    at: usize,
}

impl Drop for Closer {
    fn drop(&mut self) {
        self.watch.close(self.at);
    }
}

/// Reads the rings until aborted.
pub(super) async fn run(watch: Rc<Watch>, view: Arc<View>) {
    loop {
        let loaded = view.loaded();
        watch.drain(&loaded);
        watch.follow_pods(&loaded);
        tokio::time::sleep(if watch.is_busy() { BUSY_INTERVAL } else { IDLE_INTERVAL }).await;
    }
}
