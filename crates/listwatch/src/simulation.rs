//! Simulation in virtual time: a source that changes at random and fails at random, and a replica that the driver
//! keeps.
//!
//! The source has objects, a history that compactions cut off, and connections that break or stall. For ten minutes, it
//! fails in every known way. Afterwards the replica must equal the source within [`Sim::bound`], and follow the next
//! change within seconds. So must one that an earlier process began. At all times, no partial list counts as complete,
//! and requests are limited.

use core::convert::Infallible;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use host::Instant;

use crate::{
    BackoffRule, Earlier, Failure, FailureKind, Notice, Page, Policy, Received, Request, Resume, Source, resume, run,
};

/// End of the faults.
const FAULTS_END: Instant = Instant::from_nanos(600_000_000_000);
/// Objects per page and per part of a stream.
const PAGE: usize = 3;
/// Revisions that a restored backup is behind. That number is not reached before the position is checked, since a
/// source that has passed the position again cannot be told from one that was not restored.
const BACKUP_AGE: u64 = 100_000;
/// Maximum number of requests in one second, without the later pages of a list. A lost position, which has the shortest
/// pause, costs a check, a list and a watch.
const REQUESTS_MAX: usize = 12;
const SECOND: Duration = Duration::from_secs(1);

type Objects = BTreeMap<u64, u64>;

#[test]
fn converges_after_faults_without_spinning() {
    for (name, policy) in policies() {
        for seed in 1..=60 {
            let mut sim = Sim::new(&format!("{name}, seed {seed}"), policy.clone(), seed);
            assert_pending(run(&mut sim, policy.clone()));
        }
    }
}

#[test]
fn a_resumed_replica_converges_and_is_never_older() {
    for (name, policy) in policies() {
        let mut resumptions = 0;
        for seed in 1..=60 {
            let mut sim = Sim::new(&format!("{name}, resumed, seed {seed}"), policy.clone(), seed);
            let position = sim.remember();
            let earlier = position.map_or(Earlier::Partial(None), Earlier::Complete);
            assert_pending(resume(&mut sim, policy.clone(), earlier));
            resumptions += u32::from(sim.was_resumed);
        }
        assert_eq!(resumptions > 10, policy.resume == Resume::Check, "{name}: {resumptions} resumptions");
    }
}

fn assert_pending(driver: impl Future<Output = Infallible>) {
    let mut driver = pin!(driver);
    // The source is always ready until the end of the simulation, and then never again.
    assert!(matches!(driver.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
}

/// Settings of all users of this crate.
fn policies() -> Vec<(&'static str, Policy)> {
    let pages = Policy { streams: false, ..Policy::default() };
    let (min, max, calm) = (Duration::from_millis(200), Duration::from_secs(10), Duration::from_secs(30));
    let doubling = BackoffRule::Doubling { min, max, calm, servers: 3 };
    vec![
        ("streams", Policy::default()),
        ("pages", pages.clone()),
        ("unknown is empty", Policy { unknown_is_empty: true, ..Policy::default() }),
        ("forbidden is listed", Policy { forbidden_is_listed: true, ..Policy::default() }),
        ("lists if doubted", Policy { resume: Resume::ListIfDoubted, ..pages.clone() }),
        ("lists always", Policy { resume: Resume::List, counts_from_watch: true, backoff: doubling, ..pages }),
    ]
}

/// Condition of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Working,
    /// No connection.
    Down,
    /// Rejects every request.
    Rejecting(FailureKind),
    /// Ends watches at once.
    Short,
    /// Ends watches after one event.
    Fleeting,
    /// Breaks responses in the middle.
    Cutting,
    /// New watches send nothing.
    Stalling,
    /// Every position and cursor has expired.
    Expiring,
}

const CONDITIONS: [Condition; 11] = [
    Condition::Down,
    Condition::Rejecting(FailureKind::Forbidden),
    Condition::Rejecting(FailureKind::Unknown),
    Condition::Rejecting(FailureKind::Internal),
    Condition::Rejecting(FailureKind::Other),
    Condition::Short,
    Condition::Fleeting,
    Condition::Cutting,
    Condition::Stalling,
    Condition::Expiring,
    Condition::Working,
];

/// The source: objects, and what is wrong with it.
struct World {
    objects: Objects,
    revision: u64,
    /// Changes after `compacted`: revision, object, and its value unless it was deleted.
    history: VecDeque<(u64, u64, Option<u64>)>,
    compacted: u64,
    condition: Condition,
    /// Incremented when all connections break.
    generation: u32,
    next_change: Instant,
    next_incident: Instant,
    random: Random,
}

impl World {
    fn advance(&mut self, to: Instant) {
        while self.next_change.min(self.next_incident) <= to {
            if self.next_change <= self.next_incident {
                let (key, value) = (self.random.below(20), self.random.next());
                self.change(key, (value % 4 > 0).then_some(value));
                self.next_change = until_faults_end(self.next_change + self.random.millis(2000));
            } else {
                self.incident();
                self.next_incident = until_faults_end(self.next_incident + self.random.millis(40_000));
            }
        }
        if to >= FAULTS_END {
            self.condition = Condition::Working;
        }
    }

    fn change(&mut self, key: u64, value: Option<u64>) {
        self.revision += 1;
        self.history.push_back((self.revision, key, value));
        match value {
            Some(value) => self.objects.insert(key, value),
            None => self.objects.remove(&key),
        };
    }

    fn incident(&mut self) {
        match self.random.below(8) {
            0 => self.compact(),
            1 => self.generation += 1,
            // A load balancer may hide the restart of a restored source.
            2 => self.restore(),
            3 => {
                self.restore();
                self.generation += 1;
            }
            _ => self.condition = CONDITIONS[self.random.index(CONDITIONS.len())],
        }
        self.generation += u32::from(self.condition == Condition::Down);
    }

    fn compact(&mut self) {
        self.history.clear();
        self.compacted = self.revision;
    }

    fn restore(&mut self) {
        let key = self.random.below(20);
        self.objects.remove(&key);
        self.objects.insert(key + 1, self.revision);
        self.revision -= BACKUP_AGE;
        self.compact();
    }
}

/// Returns the time, or never if it is after the end of the faults.
fn until_faults_end(time: Instant) -> Instant {
    if time < FAULTS_END { time } else { Instant::from_nanos(u64::MAX) }
}

/// Response that is being read.
enum Response {
    Objects { rest: Vec<(u64, u64)>, snapshot: u64, is_stream: bool, generation: u32 },
    End,
    Watch { position: u64, generation: u32, is_stalled: bool },
}

/// Source with a clock, and its replica.
struct Sim {
    name: String,
    policy: Policy,
    now: Instant,
    world: World,
    /// Contents of the pages that are being read, by revision.
    snapshots: BTreeMap<u64, Objects>,
    response: Option<Response>,
    replica: Objects,
    /// Objects of the current list.
    list: Option<Objects>,
    /// Content of the last complete list, if a list was read to its end.
    complete: Option<Objects>,
    requests: VecDeque<Instant>,
    was_checked: bool,
    /// True if the replica is that of an earlier process.
    is_remembered: bool,
    was_resumed: bool,
    random: Random,
}

impl Sim {
    fn new(name: &str, policy: Policy, seed: u64) -> Sim {
        let mut random = Random(seed);
        let world = World {
            objects: (0..10).map(|key| (key, key)).collect(),
            revision: 100 * BACKUP_AGE,
            history: VecDeque::new(),
            compacted: 100 * BACKUP_AGE,
            condition: CONDITIONS[random.index(CONDITIONS.len())],
            generation: 0,
            next_change: Instant::START,
            next_incident: Instant::START + random.millis(40_000),
            random: Random(random.next()),
        };
        Sim {
            name: name.to_owned(),
            policy,
            now: Instant::START,
            world,
            snapshots: BTreeMap::new(),
            response: None,
            replica: Objects::new(),
            list: None,
            complete: None,
            requests: VecDeque::new(),
            was_checked: false,
            is_remembered: false,
            was_resumed: false,
            random,
        }
    }

    /// Gives the replica what an earlier process knew, and lets the source change, be compacted or be restored since
    /// then. Returns the position, or none if a list was in progress.
    fn remember(&mut self) -> Option<u64> {
        self.is_remembered = true;
        self.replica = self.world.objects.clone();
        let position = self.world.revision;
        for _ in 0..self.random.below(10) {
            let (key, value) = (self.random.below(20), self.random.next());
            self.world.change(key, (value % 4 > 0).then_some(value));
        }
        match self.random.below(6) {
            0 => self.world.compact(),
            1 => self.world.restore(),
            2 => return None,
            _ => {}
        }
        Some(position)
    }

    /// Returns the time within which the replica must equal the source after the end of the faults: the longest pause,
    /// a silence until a stalled watch is noticed, that of the check or the list, and a second for the requests.
    fn bound(&self) -> Duration {
        let Policy { forbidden, absent, list_silence, watch_silence, .. } = self.policy;
        let pause = match self.policy.backoff {
            BackoffRule::PartOfOutage { max, .. } => max,
            BackoffRule::Doubling { max, .. } => max.mul_f64(1.5),
        };
        let pause = if self.policy.forbidden_is_listed { pause.max(forbidden) } else { pause };
        let pause = if self.policy.unknown_is_empty { pause.max(absent) } else { pause };
        pause + watch_silence + list_silence + SECOND
    }

    /// Lets time pass. Waits forever at the end of the simulation.
    async fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.world.advance(self.now);
        let end = FAULTS_END + self.bound();
        if self.now >= end && !self.was_checked {
            self.was_checked = true;
            assert_eq!(self.replica, self.world.objects, "{}: does not converge", self.name);
            self.world.change(7, Some(7_777));
        }
        if self.now >= end + 2 * SECOND {
            assert_eq!(self.replica.get(&7), Some(&7_777), "{}: does not follow", self.name);
            core::future::pending::<()>().await;
        }
    }

    fn count_request(&mut self) {
        self.requests.push_back(self.now);
        while self.requests.front().is_some_and(|at| self.now.since(*at) > SECOND) {
            self.requests.pop_front();
        }
        assert!(self.requests.len() <= REQUESTS_MAX, "{}: spins at {:?}", self.name, self.now);
    }

    fn objects(&mut self, snapshot: u64, after: Option<u64>, is_stream: bool) -> Response {
        let objects = self.snapshots.entry(snapshot).or_insert_with(|| self.world.objects.clone());
        let rest = objects.iter().map(|(key, value)| (*key, *value));
        let mut rest: Vec<_> = rest.filter(|(key, _)| after.is_none_or(|after| *key > after)).collect();
        if !is_stream {
            rest.truncate(PAGE);
        }
        Response::Objects { rest, snapshot, is_stream, generation: self.world.generation }
    }

    fn respond(&mut self, request: &Request<u64, (u64, u64)>) -> Result<Response, FailureKind> {
        let is_expired = |position: u64| self.world.condition == Condition::Expiring || position < self.world.compacted;
        let (generation, revision) = (self.world.generation, self.world.revision);
        match *request {
            Request::Check { position } if position > revision => Err(FailureKind::Ahead),
            Request::Check { .. } | Request::Confirm { .. } => Ok(Response::End),
            Request::Watch { position } if is_expired(position) => Err(FailureKind::Expired),
            Request::Watch { position } => {
                let is_stalled = self.world.condition == Condition::Stalling;
                Ok(Response::Watch { position, generation, is_stalled })
            }
            Request::Page { cursor: Some((snapshot, _)), .. } if is_expired(snapshot) || snapshot > revision => {
                Err(FailureKind::Expired)
            }
            Request::Page { cursor: Some((snapshot, key)), .. } => Ok(self.objects(snapshot, Some(key), false)),
            Request::Stream { .. } | Request::Page { .. } => {
                let is_cached = matches!(request, Request::Page { may_be_old: true, .. });
                assert!(!(is_cached && self.is_remembered), "{}: a list that may be older", self.name);
                self.snapshots = BTreeMap::new();
                Ok(self.objects(revision, None, matches!(request, Request::Stream { .. })))
            }
        }
    }

    /// Hands out the next objects of a list.
    fn next_objects(&mut self, mut rest: Vec<(u64, u64)>, snapshot: u64, is_stream: bool) -> Part {
        let some: Vec<_> = rest.drain(..PAGE.min(rest.len())).collect();
        let last = some.last().map(|(key, _)| *key);
        let list = self.list.as_mut().expect("a list has begun");
        list.extend(some);
        let generation = self.world.generation;
        if !rest.is_empty() {
            self.response = Some(Response::Objects { rest, snapshot, is_stream, generation });
            return Ok(Received::Data { events: PAGE as u64, position: Some(snapshot), ends_list: false });
        }
        let is_last = is_stream || self.snapshots[&snapshot].keys().next_back().copied() <= last.or(Some(0));
        if is_last {
            self.complete = Some(self.snapshots[&snapshot].clone());
        }
        if is_stream {
            self.response = Some(Response::Watch { position: snapshot, generation, is_stalled: false });
            return Ok(Received::Data { events: 1, position: Some(snapshot), ends_list: true });
        }
        let next = last.filter(|_| !is_last).map(|last| Page::Next((snapshot, last)));
        Ok(Received::PageEnd(next.unwrap_or(Page::Last(snapshot))))
    }

    /// Waits for events of a watch.
    async fn next_events(&mut self, position: u64, generation: u32, is_stalled: bool, silence: Duration) -> Part {
        let deadline = self.now + silence;
        loop {
            if generation != self.world.generation {
                return Err(FailureKind::Disconnected);
            }
            match self.world.condition {
                Condition::Short => return Ok(Received::End),
                Condition::Fleeting => {
                    self.response = Some(Response::End);
                    return Ok(Received::Data { events: 1, position: None, ends_list: false });
                }
                _ => {}
            }
            let news: Vec<_> = self.world.history.iter().filter(|(at, ..)| *at > position).copied().collect();
            if let Some((last, ..)) = news.last().filter(|_| !is_stalled) {
                let (events, position) = (news.len() as u64, Some(*last));
                self.response = Some(Response::Watch { position: *last, generation, is_stalled });
                news.into_iter().for_each(|(_, key, value)| self.apply(key, value));
                return Ok(Received::Data { events, position, ends_list: false });
            }
            if self.now >= deadline {
                self.response = Some(Response::Watch { position, generation, is_stalled });
                return Err(self.silence());
            }
            self.pass(Duration::from_millis(100).min(deadline.since(self.now))).await;
        }
    }

    /// Returns the failure of a silent connection. Pings break it for sources that need a new list then.
    fn silence(&self) -> FailureKind {
        if self.policy.resume == Resume::List { FailureKind::Disconnected } else { FailureKind::Silent }
    }

    fn apply(&mut self, key: u64, value: Option<u64>) {
        match value {
            Some(value) => self.replica.insert(key, value),
            None => self.replica.remove(&key),
        };
    }
}

type Part = Result<Received<u64, (u64, u64)>, FailureKind>;

impl Source for Sim {
    type Position = u64;
    type Cursor = (u64, u64);
    type Error = FailureKind;

    async fn open(&mut self, request: Request<u64, (u64, u64)>) -> Result<(), FailureKind> {
        if !matches!(request, Request::Page { cursor: Some(_), .. }) {
            self.count_request();
        }
        self.response = None;
        let latency = self.random.millis(5);
        self.pass(latency).await;
        match self.world.condition {
            Condition::Down => return Err(FailureKind::Disconnected),
            Condition::Rejecting(kind) => return Err(kind),
            _ => {}
        }
        self.response = Some(self.respond(&request)?);
        Ok(())
    }

    async fn read(&mut self, silence: Duration) -> Part {
        let latency = self.random.millis(5);
        self.pass(latency).await;
        match self.response.take().expect("a response") {
            Response::End => Ok(Received::End),
            Response::Objects { .. } if self.world.condition == Condition::Cutting => Err(FailureKind::Other),
            Response::Objects { generation, .. } if generation != self.world.generation => {
                Err(FailureKind::Disconnected)
            }
            Response::Objects { rest, snapshot, is_stream, .. } => self.next_objects(rest, snapshot, is_stream),
            Response::Watch { position, generation, is_stalled } => {
                self.next_events(position, generation, is_stalled, silence).await
            }
        }
    }

    async fn sleep(&mut self, mut pause: Duration) {
        // In steps, so that the checks at the end of the simulation happen in time.
        while !pause.is_zero() {
            let step = pause.min(SECOND);
            self.pass(step).await;
            pause -= step;
        }
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn jitter(&mut self) -> f64 {
        self.random.below(1000) as f64 / 1000.0
    }

    fn classify(&self, error: &FailureKind) -> Failure {
        let is_transient = matches!(error, FailureKind::Disconnected | FailureKind::Silent);
        Failure { is_transient, ..Failure::new(*error, "simulated") }
    }

    fn notify(&mut self, notice: Notice, _: Option<&FailureKind>) {
        match notice {
            Notice::ListBegins => (self.list, self.complete) = (Some(Objects::new()), None),
            Notice::Listed(_) => {
                let list = self.list.take().expect("a list has begun");
                assert_eq!(self.complete.take().as_ref(), Some(&list), "{}: a partial list counts", self.name);
                self.replica = list;
            }
            Notice::Resumed => {
                assert!(self.is_remembered && !self.was_resumed, "{}: a watch is resumed once", self.name);
                self.was_resumed = true;
            }
            Notice::AssumedEmpty => self.replica.clear(),
            _ => {}
        }
    }
}

/// Random numbers (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("below the length")
    }

    /// Returns a duration of one to this many milliseconds.
    pub(crate) fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(1 + self.below(most))
    }
}
