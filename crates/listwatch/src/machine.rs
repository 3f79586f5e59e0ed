//! The state machine.

use core::time::Duration;

use host::Instant;
use host::invariant::{Expected as _, broken, holds};
use host::planted::{Bug, is_planted};

use crate::backoff::Backoff;
use crate::event::{Action, Event, Failure, FailureKind, Notice, Page, Received, Request, Step, Transfer};
use crate::health::Health;
use crate::policy::{Policy, Resume};
use crate::sources::{Next, Sources};

/// Failure of a response that ended too early: a watch right after its begin and without an event, or a list before it
/// was complete.
const SHORT: Failure = Failure { is_transient: true, ..Failure::new(FailureKind::Other, "short") };

/// Maximum number of notices of a step: a list that is complete or a watch that is resumed, and the end of an outage;
/// or a failure and the next source.
const NOTICES_MAX: usize = 2;

/// State of a list and its watch, which decides on the next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State<P, C> {
    /// No complete list yet. The request is a streaming list, which continues as a watch.
    Listing,
    /// No complete list yet, and streaming lists are not available. The request is for a page.
    Paging {
        /// Start of the page, or `None` for the first one.
        cursor: Option<C>,
    },
    /// Everything up to the position is known. The request is a watch from it.
    Following(Watch<P>),
    /// All sources are behind. The request asks the server whether its storage was restored.
    Confirming {
        /// State if it was not.
        then: Box<State<P, C>>,
    },
    /// No request, until a pause is over.
    Waiting {
        /// State after the pause.
        then: Box<State<P, C>>,
    },
    /// The source does not know the kind of object. The next list follows after a pause.
    Absent,
}

/// Data of [`State::Following`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch<P> {
    /// Everything up to here is known.
    position: P,
    /// True if the source may not have the position. The request then is a check of it.
    is_doubted: bool,
    /// Time of the last request.
    began: Instant,
    /// Number of events of the current watch.
    events: u64,
    /// Transfer of a list that does not count before the watch has begun.
    uncounted: Option<Transfer>,
    /// True if the position is that of an earlier process, and the source has not shown yet that it continues from it.
    is_resuming: bool,
}

/// What is known about the collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// No list was complete yet. The first list may come from a cache of the source. Later lists must not be older than
    /// what is already known.
    Nothing,
    /// The objects of an earlier process. No list was complete in this one, and none may be older than they are.
    Remembered,
    /// The source does not know the kind of object, so that there are no objects.
    Empty,
    /// A list was complete.
    Listed,
}

/// State of the objects that an earlier process left in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier<P> {
    /// Everything up to this position.
    Complete(P),
    /// More than before a list that it did not complete. No list may be older than this position, if it is known.
    Partial(Option<P>),
}

/// List and watch of one collection.
#[derive(Debug)]
pub struct Machine<P, C> {
    policy: Policy,
    state: State<P, C>,
    health: Health,
    backoff: Backoff,
    known: Known,
    /// True if the source supports streaming lists, as far as is known.
    streams: bool,
    /// Begin of the current attempt: the end of the last pause.
    attempt: Instant,
    /// True if the position was lost and no event has arrived since then.
    is_relisting: bool,
    /// Choice of the source, if there are several.
    sources: Option<Sources>,
    /// Position before which no list is accepted, unless a watch has a later one. `None` with a single source.
    floor: Option<P>,
    notices: Vec<Notice>,
}

impl<P: Clone, C: Clone> Machine<P, C> {
    /// Creates a machine that has not started.
    #[must_use]
    pub fn new(policy: Policy) -> Machine<P, C> {
        holds(policy.order.is_none() || policy.resume == Resume::Check, "a position is checked at the next source");
        Machine {
            state: State::Paging { cursor: None },
            health: Health::New,
            backoff: Backoff::new(policy.backoff.clone()),
            known: Known::Nothing,
            streams: policy.streams,
            attempt: Instant::START,
            is_relisting: false,
            sources: policy.order.clone().map(Sources::new),
            floor: None,
            notices: Vec::new(),
            policy,
        }
    }

    /// Returns the first action.
    pub fn start(&mut self, now: Instant) -> Action<P, C> {
        holds(self.known == Known::Nothing, "a machine starts without a collection");
        self.attempt = now;
        self.state = self.new_list();
        let action = self.open(now);
        self.check(&action);
        action
    }

    /// Returns the first action of a process that knows the objects of an earlier one.
    pub fn resume(&mut self, earlier: Earlier<P>, now: Instant) -> Action<P, C> {
        holds(self.known == Known::Nothing, "a machine resumes what an earlier process knew");
        self.attempt = now;
        self.known = Known::Remembered;
        if let (Earlier::Complete(position) | Earlier::Partial(Some(position)), true) =
            (&earlier, self.sources.is_some())
        {
            self.floor = Some(position.clone());
        }
        if let (Earlier::Partial(None), Some(sources)) = (&earlier, &mut self.sources)
            && sources.start_at_server()
        {
            self.notices.push(Notice::Moved { source: sources.current() });
        }
        self.state = match earlier {
            // Storage that was restored meanwhile would accept a watch from it and never send an event.
            Earlier::Complete(position) if self.policy.resume == Resume::Check => State::Following(Watch {
                position,
                is_doubted: true,
                began: now,
                events: 0,
                uncounted: None,
                is_resuming: true,
            }),
            _ => self.new_list(),
        };
        let action = self.open(now);
        self.check(&action);
        action
    }

    /// Takes the notices of the first action.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        core::mem::take(&mut self.notices)
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> &State<P, C> {
        &self.state
    }

    /// Returns the health.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Processes an event at the time `now` and returns the next action. `jitter` is a random number from 0 to 1 that
    /// spreads the retries of a fleet. An event that does not belong to the last action repeats the request.
    pub fn on(&mut self, event: Event<P, C>, now: Instant, jitter: f64) -> Step<P, C> {
        holds((0.0..=1.0).contains(&jitter), "jitter is from 0 to 1");
        holds(self.attempt <= now, "time does not go backwards");
        holds(self.notices.is_empty(), "the notices of a step leave with it");
        let action = match event {
            Event::Opened => self.opened(now),
            Event::Read(Received::Data { events, position, ends_list }) => {
                self.received(events, position, ends_list, now)
            }
            Event::Read(Received::PageEnd(page)) => self.page_end(page, now),
            Event::Read(Received::End) => self.ended(now, jitter),
            Event::Read(Received::RelayFound) => self.return_to_relay(now),
            Event::OpenFailed(failure) => self.failed(&failure, false, now, jitter),
            Event::ReadFailed(failure) => self.failed(&failure, true, now, jitter),
            Event::Woke => self.woke(now),
        };
        self.check(&action);
        Step { notices: core::mem::take(&mut self.notices), action }
    }

    /// Checks that an action fits the state, and the notices of the step.
    fn check(&self, action: &Action<P, C>) {
        let fits = match action {
            Action::Open(Request::Stream { .. }) => matches!(self.state, State::Listing) && self.streams,
            Action::Open(Request::Page { .. }) => matches!(self.state, State::Paging { .. }),
            Action::Open(Request::Check { .. }) => self.is_checking(),
            Action::Open(Request::Confirm { .. }) => matches!(self.state, State::Confirming { .. }),
            Action::Open(Request::Watch { .. }) => self.is_watching(),
            Action::Read { silence } => !self.is_pausing() && !silence.is_zero(),
            Action::Sleep(pause) => self.is_pausing() && !pause.is_zero(),
        };
        holds(fits, "the action is that of the state");
        if let State::Waiting { then } = &self.state {
            holds(!matches!(**then, State::Waiting { .. }), "a pause leads to a request");
        }
        let is_checked = !self.is_checking() || self.policy.resume == Resume::Check;
        holds(is_checked, "a position is checked if the source can check it");
        holds(self.notices.len() <= NOTICES_MAX, "a step has few notices");
        self.check_sources();
        if self.notices.iter().any(|notice| matches!(notice, Notice::Failed { .. })) {
            holds(self.health.is_failing(), "a failure that is reported is an outage");
            holds(
                !self.notices.iter().any(|notice| matches!(notice, Notice::Listed(_))),
                "a list fails or is complete",
            );
        }
        if self.notices.iter().any(|notice| matches!(notice, Notice::Listed(_))) {
            holds(self.known == Known::Listed, "a list that is reported is known");
            holds(self.is_watching(), "a watch follows a complete list");
            holds(!self.health.is_failing(), "a complete list ends an outage");
        }
        if self.notices.contains(&Notice::Resumed) {
            holds(self.known == Known::Listed, "a collection that is resumed is known");
            holds(matches!(self.state, State::Following(_) | State::Waiting { .. }), "a resumed watch continues");
        }
        if self.notices.contains(&Notice::AssumedEmpty) {
            holds(self.known == Known::Empty, "a collection that is assumed to be empty is known");
            holds(matches!(self.state, State::Absent), "an unknown kind is listed again after a pause");
        }
    }

    fn check_sources(&self) {
        holds(!self.streams || self.policy.streams, "streams are used if the source may support them");
        holds(self.sources.is_some() == self.policy.order.is_some(), "ordered sources have a policy");
        holds(self.floor.is_none() || self.sources.is_some(), "a list has a bound if a source can be behind");
        if let State::Confirming { then } = &self.state {
            holds(self.floor.is_some(), "a position that is confirmed is known");
            let is_request = !matches!(**then, State::Confirming { .. } | State::Waiting { .. } | State::Absent);
            holds(is_request, "a confirmation leads to a list or a watch");
        }
        let moves = |notice: &Notice| matches!(notice, Notice::Moved { .. } | Notice::Returned { .. });
        holds(self.sources.is_some() || !self.notices.iter().any(moves), "a machine with one source does not move");
    }

    const fn is_pausing(&self) -> bool {
        matches!(self.state, State::Waiting { .. } | State::Absent)
    }

    const fn is_checking(&self) -> bool {
        matches!(self.state, State::Following(Watch { is_doubted: true, .. }))
    }

    fn opened(&mut self, now: Instant) -> Action<P, C> {
        holds(!self.is_pausing(), "a response belongs to a request");
        match &mut self.state {
            State::Listing | State::Paging { cursor: None } => self.notices.push(Notice::ListBegins),
            State::Following(Watch { is_doubted: false, uncounted, .. }) => {
                if let Some(transfer) = uncounted.take() {
                    self.listed(transfer, now);
                }
            }
            // A later page belongs to the same list, and a check has no content.
            _ => {}
        }
        self.read()
    }

    fn received(&mut self, events: u64, position: Option<P>, ends_list: bool, now: Instant) -> Action<P, C> {
        holds(!self.is_pausing(), "a response belongs to a request");
        holds(!ends_list || matches!(self.state, State::Listing), "a list that ends in a stream began in it");
        match &mut self.state {
            State::Listing => {
                if let Some(position) = position.filter(|_| ends_list) {
                    self.follow(position, Transfer::Stream, now);
                }
            }
            State::Following(following) if !following.is_doubted => {
                following.events = following.events.saturating_add(events);
                if let Some(position) = position {
                    following.position = position;
                }
                if events > 0 {
                    self.is_relisting = false;
                    self.sources.iter_mut().for_each(Sources::worked);
                    self.resumed();
                    self.well(now);
                }
            }
            // The source applies the objects of a page itself, and a check has none that are new.
            _ => {}
        }
        self.read()
    }

    fn page_end(&mut self, page: Page<P, C>, now: Instant) -> Action<P, C> {
        holds(matches!(self.state, State::Paging { .. }), "a page belongs to a list of pages");
        match (&self.state, page) {
            (State::Paging { .. }, Page::Next(cursor)) => self.state = State::Paging { cursor: Some(cursor) },
            (State::Paging { .. }, Page::Last(position)) => self.follow(position, Transfer::Pages, now),
            _ => {}
        }
        self.open(now)
    }

    fn ended(&mut self, now: Instant, jitter: f64) -> Action<P, C> {
        if let State::Confirming { then } = &mut self.state {
            self.state = core::mem::replace(&mut **then, State::Absent);
            self.sources.iter_mut().for_each(Sources::confirmed);
            return self.open(now);
        }
        let State::Following(following) = &mut self.state else { return self.failed(&SHORT, true, now, jitter) };
        let lived = now.since(following.began);
        if following.is_doubted {
            following.is_doubted = false;
            self.open(now)
        // Servers end watches after minutes. One that ends at once and brings nothing would be opened again in a tight
        // loop.
        } else if following.events == 0 && lived < self.policy.watch_min {
            self.failed(&SHORT, true, now, jitter)
        } else {
            self.resumed();
            self.wait(self.policy.watch_min.saturating_sub(lived), now)
        }
    }

    fn woke(&mut self, now: Instant) -> Action<P, C> {
        self.attempt = now;
        match core::mem::replace(&mut self.state, State::Absent) {
            State::Waiting { then } => self.state = *then,
            State::Absent => self.state = self.new_list(),
            state => self.state = state,
        }
        self.open(now)
    }

    fn failed(&mut self, failure: &Failure, is_open: bool, now: Instant, jitter: f64) -> Action<P, C> {
        let kind = failure.kind;
        if matches!(self.state, State::Listing) && kind.rejects_streams(is_open) {
            // Before everything else: a source that rejects the form of the request is healthy, and needs no pause.
            return self.use_pages(now);
        }
        // A relay sends something each second. Its silence shows that it is not current.
        if is_open && kind == FailureKind::Silent && self.is_watching() && !self.is_at_relay() {
            return self.silent(now);
        }
        let is_final = self.sources.as_ref().is_none_or(Sources::is_last);
        if kind == FailureKind::Unknown && self.policy.unknown_is_empty && self.known != Known::Listed && is_final {
            return self.assume_empty(now);
        }
        if kind == FailureKind::Forbidden && self.policy.forbidden_is_listed && is_final {
            self.assume_listed();
            self.choose(kind);
            return self.wait(self.policy.forbidden, now);
        }
        self.report(failure, now);
        let keeps_source = self.keeps_source(kind);
        let pause = self.pause(failure, now, jitter);
        match &mut self.sources {
            Some(_) if !keeps_source => self.move_on(kind, now, jitter),
            Some(sources) if kind == FailureKind::Restored => {
                sources.restored();
                self.choose(kind);
            }
            _ => self.choose(kind),
        }
        self.wait(pause, now)
    }

    /// Returns true if a failure leads to another request to the same source: there is only one, or a list from it
    /// solves the problem. A source that loses positions again and again has another problem.
    fn keeps_source(&self, kind: FailureKind) -> bool {
        let is_first_loss = kind == FailureKind::Expired && !self.is_relisting;
        let has_the_rest = matches!(kind, FailureKind::Restored | FailureKind::Incomplete);
        self.sources.is_none() || has_the_rest || is_first_loss
    }

    /// Continues at the next source, from where this one has failed.
    fn move_on(&mut self, kind: FailureKind, now: Instant, jitter: f64) {
        let Some(sources) = self.sources.as_mut().expected("the sources of a machine that moves on") else { return };
        let next = sources.failed(kind, now, jitter);
        self.notices.push(Notice::Moved { source: sources.current() });
        // The next source may support streams, and does not know the cursors of this one.
        self.streams = self.policy.streams;
        let state = match core::mem::replace(&mut self.state, State::Absent) {
            State::Confirming { then } => *then,
            state => state,
        };
        self.state = match state {
            State::Following(watch) if kind == FailureKind::Expired => {
                self.floor = Some(watch.position);
                self.new_list()
            }
            State::Following(watch) => State::Following(Watch { is_doubted: true, ..watch }),
            State::Listing if kind.is_response() => State::Paging { cursor: None },
            _ => self.new_list(),
        };
        self.keep_floor();
        // Without a position, nothing can be behind it: the server is asked for a list.
        if next == Next::Confirm && self.floor.is_some() {
            let then = core::mem::replace(&mut self.state, State::Absent);
            self.state = State::Confirming { then: Box::new(then) };
        }
    }

    /// Continues the watch at a relay that has its position.
    fn return_to_relay(&mut self, now: Instant) -> Action<P, C> {
        let is_watching = self.is_watching();
        let Some(sources) = self.sources.as_mut().filter(|sources| is_watching && !sources.is_at_relay()) else {
            return self.read();
        };
        sources.return_to_relay();
        self.notices.push(Notice::Returned { source: sources.current() });
        self.open(now)
    }

    fn is_at_relay(&self) -> bool {
        self.sources.as_ref().is_some_and(Sources::is_at_relay)
    }

    /// Switches to pages for good.
    fn use_pages(&mut self, now: Instant) -> Action<P, C> {
        self.notices.push(Notice::UsesPages);
        self.streams = false;
        self.state = self.new_list();
        self.open(now)
    }

    /// Handles a silent watch. After a failure, and after a resumption, the silence of an open watch shows that it
    /// works: a source that does not have the position any more says so at once. Otherwise the watch may have stalled,
    /// and a new one finds out.
    fn silent(&mut self, now: Instant) -> Action<P, C> {
        if is_planted(Bug::DeafWatch) {
            return self.read();
        }
        if self.health.is_failing() || self.is_resuming() {
            self.resumed();
            self.well(now);
            return self.read();
        }
        self.notices.push(Notice::Renewed);
        self.is_relisting = false;
        self.doubt();
        self.open(now)
    }

    /// Treats an unknown kind of object as an empty collection, unless objects of the kind were known before: a
    /// starting API server briefly does not know its custom resources.
    fn assume_empty(&mut self, now: Instant) -> Action<P, C> {
        if matches!(self.known, Known::Nothing | Known::Remembered) {
            self.notices.push(Notice::AssumedEmpty);
        }
        self.known = Known::Empty;
        self.well(now);
        self.state = State::Absent;
        Action::Sleep(self.policy.absent)
    }

    fn assume_listed(&mut self) {
        let is_known = matches!(self.state, State::Following(_)) && !self.is_resuming();
        let is_first = matches!(self.known, Known::Nothing | Known::Remembered);
        self.notices.push(Notice::AssumedListed { is_first, is_known });
        if self.is_resuming() {
            // What is assumed takes the place of what an earlier process knew, and has no position.
            self.state = self.new_list();
        }
        self.known = Known::Listed;
    }

    fn report(&mut self, failure: &Failure, now: Instant) {
        self.notices.push(if self.loses_position(failure.kind) {
            Notice::PositionLost
        } else {
            Notice::Failed { is_news: self.health.failed(failure, now) }
        });
    }

    /// Returns true if a failure is part of a watch's life: a source keeps its history for some minutes. Of several
    /// sources, one that is behind has failed. So has one that leaves out events.
    fn loses_position(&self, kind: FailureKind) -> bool {
        let is_behind = self.sources.is_some() && kind == FailureKind::Ahead || kind == FailureKind::Incomplete;
        kind.loses_position() && self.policy.resume != Resume::List && !is_behind
    }

    fn pause(&mut self, failure: &Failure, now: Instant, jitter: f64) -> Duration {
        if is_planted(Bug::RetriesAtOnce) {
            return Duration::ZERO;
        }
        let is_expired =
            matches!(failure.kind, FailureKind::Expired | FailureKind::Restored) && self.loses_position(failure.kind);
        if is_expired && !core::mem::replace(&mut self.is_relisting, true) {
            // A source compacts its history for all replicas at once. Their lists, the most expensive requests there
            // are, are spread over this time. Only the first: a source that loses positions again and again has another
            // problem.
            return self.policy.relist.mul_f64(jitter);
        }
        let pause = self.backoff.pause(now, self.attempt, jitter, failure);
        self.sources.as_ref().map_or(pause, |sources| sources.pause(failure, pause, jitter))
    }

    /// Chooses the next request after a failure, unless the same one is repeated.
    fn choose(&mut self, kind: FailureKind) {
        match &self.state {
            _ if self.policy.resume == Resume::List => self.state = self.new_list(),
            // Changes since then are lost.
            State::Following(_) | State::Paging { .. } | State::Confirming { .. } if kind.loses_position() => {
                self.keep_floor();
                // A stream may come from the cache that has left out the events, and a page from the storage.
                let is_incomplete = kind == FailureKind::Incomplete;
                self.state = if is_incomplete { State::Paging { cursor: None } } else { self.new_list() };
            }
            // A pause follows other failures, and no connection breaks if the storage is restored meanwhile.
            State::Following(_) if kind == FailureKind::Disconnected || self.policy.resume == Resume::Check => {
                self.doubt();
            }
            // The form of the request may be the cause, so try the other one.
            State::Listing if kind.is_response() => self.state = State::Paging { cursor: None },
            State::Paging { cursor: None } if kind.is_response() => self.state = self.new_list(),
            // The cursor may be the cause: one from before a backup was restored is refused for as long as it is sent.
            State::Paging { .. } if kind.rejects_cursors() => self.state = self.new_list(),
            _ => {}
        }
    }

    /// Keeps the position that the next list must have reached, if there are several sources.
    fn keep_floor(&mut self) {
        if let (State::Following(watch), true) = (&self.state, self.sources.is_some()) {
            self.floor = Some(watch.position.clone());
        }
    }

    /// Doubts that the source has the position.
    fn doubt(&mut self) {
        match &mut self.state {
            State::Following(_) if is_planted(Bug::TrustsPosition) => {}
            State::Following(following) if self.policy.resume == Resume::Check => following.is_doubted = true,
            _ => self.state = self.new_list(),
        }
    }

    fn follow(&mut self, position: P, transfer: Transfer, now: Instant) {
        self.sources.iter_mut().for_each(Sources::worked);
        let uncounted = self.policy.counts_from_watch.then_some(transfer);
        // The end of the list counts as the first event, so that a stream may end right after it.
        self.state = State::Following(Watch {
            position,
            is_doubted: false,
            began: now,
            events: 1,
            uncounted,
            is_resuming: false,
        });
        if uncounted.is_none() {
            self.listed(transfer, now);
        }
    }

    fn listed(&mut self, transfer: Transfer, now: Instant) {
        self.known = Known::Listed;
        self.notices.push(Notice::Listed(transfer));
        self.well(now);
    }

    /// Records that a watch continues from the position of an earlier process, if it is not known yet.
    fn resumed(&mut self) {
        if let State::Following(watch) = &mut self.state
            && core::mem::take(&mut watch.is_resuming)
        {
            self.known = Known::Listed;
            self.notices.push(Notice::Resumed);
        }
    }

    const fn is_resuming(&self) -> bool {
        matches!(self.state, State::Following(Watch { is_resuming: true, .. }))
    }

    fn well(&mut self, now: Instant) {
        let was_failing = self.health.is_failing();
        let after = self.health.well(now);
        if was_failing {
            self.notices.push(Notice::Recovered { after });
        }
        holds(!self.health.is_failing(), "a success ends an outage");
    }

    /// Returns the state that starts a new list.
    fn new_list(&self) -> State<P, C> {
        if self.streams { State::Listing } else { State::Paging { cursor: None } }
    }

    fn is_watching(&self) -> bool {
        matches!(self.state, State::Following(Watch { is_doubted: false, .. }))
    }

    fn wait(&mut self, pause: Duration, now: Instant) -> Action<P, C> {
        if pause.is_zero() {
            self.attempt = now;
            return self.open(now);
        }
        holds(!self.is_pausing(), "a pause follows a request");
        let then = core::mem::replace(&mut self.state, State::Absent);
        self.state = State::Waiting { then: Box::new(then) };
        Action::Sleep(pause)
    }

    fn read(&self) -> Action<P, C> {
        let relay = self.sources.as_ref().filter(|sources| sources.is_at_relay());
        let silence = match (self.is_watching(), self.health.is_failing() || self.is_resuming()) {
            (false, _) => self.policy.list_silence,
            (true, _) if let Some(relay) = relay => relay.silence(self.policy.watch_silence),
            (true, true) => self.policy.watch_min,
            (true, false) => self.policy.watch_silence,
        };
        Action::Read { silence }
    }

    /// Returns the request of the state.
    fn open(&mut self, now: Instant) -> Action<P, C> {
        match &mut self.state {
            State::Listing => Action::Open(Request::Stream { not_before: self.bound() }),
            State::Paging { cursor } => {
                // The first list may come from the cache of the API server, which spares etcd when a fleet starts.
                // Later it must not: a server that lags behind would take the collection back in time.
                let may_be_old = cursor.is_none() && (self.known == Known::Nothing || is_planted(Bug::OldList));
                let cursor = cursor.clone();
                let not_before = if cursor.is_none() { self.bound() } else { None };
                Action::Open(Request::Page { cursor, may_be_old, not_before })
            }
            State::Confirming { .. } => match &self.floor {
                Some(position) => Action::Open(Request::Confirm { position: position.clone() }),
                None => {
                    broken("a position that is confirmed is known");
                    Action::Sleep(self.policy.watch_min)
                }
            },
            State::Following(following) => {
                (following.began, following.events) = (now, 0);
                let position = following.position.clone();
                let check = following.is_doubted;
                Action::Open(if check { Request::Check { position } } else { Request::Watch { position } })
            }
            State::Waiting { .. } | State::Absent => {
                broken("a machine that pauses requests nothing");
                Action::Sleep(self.policy.watch_min)
            }
        }
    }

    /// Returns the position that the next list must have reached.
    fn bound(&self) -> Option<P> {
        let is_restored = self.sources.as_ref().is_some_and(Sources::is_restored);
        self.floor.clone().filter(|_| !is_restored)
    }
}
