//! Simulation in virtual time of ordered sources: three relays and a server, whose views differ.
//!
//! The server changes at random, and is restored from a backup now and then. Each relay follows it with a delay, stops
//! to follow, restarts without its history, is unreachable, silent or breaks responses. One kind of relay does not even
//! check positions. A replica uses them in the order of the policy. At no time does it go back in version, unless the
//! storage was restored; what it has is always a state that the server had at that version; and it equals the server
//! within [`Sim::bound`] after the faults, although one relay stays silent.
//!
//! Versions of a restored server are far below those before. A relay that has not seen the restoration yet is not told
//! apart by its versions from one that is ahead, so that it is only required here that versions do not decrease.

use core::convert::Infallible;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::{BTreeMap, HashMap};

use host::Instant;

use crate::simulation::Random;
use crate::{
    BackoffRule, Earlier, Failure, FailureKind, Notice, Order, Page, Policy, Received, Request, Source, resume, run,
};

const RELAYS: usize = 3;
const SERVER: usize = RELAYS;
/// Number of schedules of each kind in the usual test. The long one takes its seeds from the environment.
const SCHEDULES: u64 = 500;
/// End of the faults.
const FAULTS_END: Instant = Instant::from_nanos(90_000_000_000);
/// Versions that a restored backup is behind, more than there are changes.
const BACKUP_AGE: u64 = 100_000;
/// Time without a view of the server after which a relay does not count as current.
const FRESH: Duration = Duration::from_secs(2);
/// Objects per page.
const PAGE: usize = 4;
const KEYS: u64 = 12;
const TICK: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);

type Objects = BTreeMap<u64, u64>;

/// Epoch, which is that of the storage between two restorations, and version.
type Version = (u64, u64);

#[test]
fn never_goes_back_and_converges() {
    check_schedules(1..=SCHEDULES);
}

#[test]
#[ignore = "the long form of the test above, which `cargo xtask schedules` runs"]
#[allow(clippy::disallowed_methods, reason = "a test that is run by hand")]
fn many_schedules() {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let from = number("SCHEDULES_FROM").unwrap_or(SCHEDULES + 1);
    check_schedules(from..=from + number("SCHEDULES").unwrap_or(SCHEDULES).max(1) - 1);
}

fn check_schedules(seeds: core::ops::RangeInclusive<u64>) {
    let mut uses = Uses::default();
    let are_many = seeds.clone().count() as u64 >= SCHEDULES;
    for seed in seeds {
        for (has_server, is_resumed) in [(true, false), (true, true), (false, false)] {
            let mut sim = Sim::new(seed, has_server);
            let policy = sim.policy.clone();
            if is_resumed {
                let earlier = sim.remember();
                assert_pending(resume(&mut sim, policy, earlier));
            } else {
                assert_pending(run(&mut sim, policy));
            }
            uses.add(&sim.uses);
        }
    }
    // Each way of the machine was taken: a test of schedules that avoid one would prove nothing.
    let Uses { moves, returns, confirmations, restorations, behind } = uses;
    assert!(
        !are_many || [moves, returns, confirmations, restorations, behind].iter().all(|uses| *uses > 10),
        "moves {moves}, returns {returns}, confirmations {confirmations}, restorations {restorations}, behind {behind}"
    );
}

fn assert_pending(driver: impl Future<Output = Infallible>) {
    let mut driver = pin!(driver);
    assert!(matches!(driver.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
}

/// Number of times that something happened.
#[derive(Default)]
struct Uses {
    moves: u64,
    returns: u64,
    confirmations: u64,
    restorations: u64,
    behind: u64,
}

impl Uses {
    fn add(&mut self, other: &Uses) {
        self.moves += other.moves;
        self.returns += other.returns;
        self.confirmations += other.confirmations;
        self.restorations += other.restorations;
        self.behind += other.behind;
    }
}

fn policy(has_server: bool) -> Policy {
    let (seconds, millis) = (Duration::from_secs, Duration::from_millis);
    let order = Order {
        relays: RELAYS,
        has_server,
        reconnect: millis(300),
        silence: seconds(2),
        patience: seconds(5),
        spread: seconds(5),
        behind: seconds(6),
    };
    let backoff = BackoffRule::PartOfOutage { min: millis(400), max: seconds(6), calm: seconds(5) };
    Policy { order: Some(order), list_silence: seconds(3), watch_silence: seconds(8), backoff, ..Policy::default() }
}

/// Fault of a simulated source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Working,
    /// No connection.
    Down,
    /// Rejects every request.
    Rejecting(FailureKind),
    /// Sends nothing on watches.
    Silent,
    /// Breaks lists in the middle.
    Cutting,
    /// Ends watches at once.
    Short,
    /// A relay that does not compare positions with its own.
    Careless,
}

const CONDITIONS: [Condition; 9] = [
    Condition::Working,
    Condition::Working,
    Condition::Down,
    Condition::Rejecting(FailureKind::Other),
    Condition::Rejecting(FailureKind::Unsupported),
    Condition::Silent,
    Condition::Cutting,
    Condition::Short,
    Condition::Careless,
];

/// View of a relay, or that of the caches of the server.
struct View {
    /// Number of changes that it has seen.
    seen: usize,
    version: Version,
    objects: Objects,
    /// Position of the first change that it does not have any more.
    compacted: u64,
    /// True while it does not follow the server.
    is_frozen: bool,
    /// Last time at which it followed the server.
    fresh: Instant,
    /// True if it has seen that the server was restored.
    saw_restoration: bool,
    condition: Condition,
    /// Incremented when its connections break.
    generation: u32,
}

/// A change: version, object, and its value unless it was deleted.
type Change = (Version, u64, Option<u64>);

/// The server and its relays.
struct World {
    objects: Objects,
    version: Version,
    changes: Vec<Change>,
    /// Digest of the objects at each version.
    digests: HashMap<Version, u64>,
    views: Vec<View>,
    /// Number of the relay that stays silent after the end of the faults.
    silent: usize,
    now: Instant,
    next_change: Instant,
    next_incident: Instant,
    random: Random,
}

impl World {
    fn new(mut random: Random) -> World {
        let objects: Objects = (0..6).map(|key| (key, key)).collect();
        let version = (0, 100 * BACKUP_AGE);
        let view = || View {
            seen: 0,
            version,
            objects: objects.clone(),
            compacted: version.1,
            is_frozen: false,
            fresh: Instant::START,
            saw_restoration: false,
            condition: Condition::Working,
            generation: 0,
        };
        let views = (0..=RELAYS).map(|_| view()).collect();
        let digests = HashMap::from([(version, digest(&objects))]);
        let next_incident = Instant::START + random.millis(2000);
        let (now, next_change, silent) = (Instant::START, Instant::START, random.index(RELAYS));
        let changes = Vec::new();
        World { objects, version, changes, digests, views, silent, now, next_change, next_incident, random }
    }

    fn advance(&mut self, to: Instant) {
        let never = Instant::from_nanos(u64::MAX);
        while self.now < to {
            self.now = (self.now + TICK).min(to);
            if self.now >= FAULTS_END {
                self.end_faults();
                (self.next_change, self.next_incident) = (never, never);
            }
            if self.now >= self.next_change {
                self.change();
                self.next_change = self.now + self.random.millis(1500);
            }
            if self.now >= self.next_incident {
                self.incident();
                self.next_incident = self.now + self.random.millis(4000);
            }
            (0..=RELAYS).for_each(|at| self.follow(at));
        }
    }

    /// Ends the faults, except for a relay that stays silent.
    fn end_faults(&mut self) {
        for (at, view) in self.views.iter_mut().enumerate() {
            let is_silent = at == self.silent;
            view.condition = if is_silent { Condition::Silent } else { Condition::Working };
            view.is_frozen = is_silent;
        }
    }

    fn change(&mut self) {
        let (key, value) = (self.random.below(KEYS), self.random.next());
        self.put(key, (value % 4 > 0).then_some(value));
    }

    fn put(&mut self, key: u64, value: Option<u64>) {
        self.version.1 += 1 + self.random.below(3);
        apply(&mut self.objects, key, value);
        self.changes.push((self.version, key, value));
        self.digests.insert(self.version, digest(&self.objects));
    }

    fn incident(&mut self) {
        let at = self.random.index(RELAYS + 1);
        let view = &mut self.views[at];
        match self.random.below(12) {
            0 => view.compacted = view.version.1,
            1 => view.generation += 1,
            2 | 3 => view.is_frozen = !view.is_frozen,
            // A restart: the history is lost, and that there was a restoration.
            4 => {
                view.generation += 1;
                (view.compacted, view.saw_restoration) = (view.version.1, false);
            }
            5 if self.random.below(4) == 0 => self.restore(),
            // Everything at once, as when a network is divided.
            6 => {
                let condition = CONDITIONS[self.random.index(CONDITIONS.len())];
                self.views.iter_mut().take(RELAYS).for_each(|relay| relay.condition = condition);
            }
            _ => view.condition = CONDITIONS[self.random.index(CONDITIONS.len())],
        }
        for view in &mut self.views {
            view.generation += u32::from(view.condition == Condition::Down);
        }
    }

    fn restore(&mut self) {
        self.version = (self.version.0 + 1, self.version.1 - BACKUP_AGE);
        let key = self.random.below(KEYS);
        self.objects.remove(&key);
        self.put(key + 1, Some(self.version.0));
    }

    /// Lets a view follow the server.
    fn follow(&mut self, at: usize) {
        let view = &mut self.views[at];
        if view.is_frozen || self.random.below(3) == 0 {
            return;
        }
        view.fresh = self.now;
        while let Some((version, key, value)) = self.changes.get(view.seen) {
            view.seen += 1;
            if version.0 > view.version.0 {
                // It lists again: the next changes belong to another history.
                (view.seen, view.version) = (self.changes.len(), self.version);
                view.objects.clone_from(&self.objects);
                (view.compacted, view.saw_restoration) = (self.version.1, at != SERVER);
                return;
            }
            view.version = *version;
            apply(&mut view.objects, *key, *value);
        }
    }
}

fn apply(objects: &mut Objects, key: u64, value: Option<u64>) {
    match value {
        Some(value) => objects.insert(key, value),
        None => objects.remove(&key),
    };
}

fn digest(objects: &Objects) -> u64 {
    objects.iter().fold(0, |digest, (key, value)| Random(digest ^ Random(*key ^ Random(*value).next()).next()).next())
}

/// Response that is being read.
enum Response {
    Objects { rest: Vec<(u64, u64)>, version: Version, is_stream: bool, bound: Option<u64>, generation: u32 },
    End,
    Watch { position: u64, seen: usize, epoch: u64, heard: Instant, generation: u32 },
}

/// A page of a list: source, version, last key. The content of the list is kept by the replica's host.
type Cursor = (usize, Version, u64);
type Part = Result<Received<u64, Cursor>, FailureKind>;

/// Sources with a clock, and the replica.
struct Sim {
    seed: u64,
    policy: Policy,
    order: Order,
    world: World,
    /// Contents of lists by pages.
    pages: HashMap<Version, Objects>,
    at: usize,
    relay: usize,
    look: Instant,
    response: Option<Response>,
    replica: Objects,
    /// Version of the replica, once it has one.
    version: Option<Version>,
    list: Option<(Objects, Version)>,
    was_restored: bool,
    is_remembered: bool,
    was_checked: bool,
    uses: Uses,
    random: Random,
}

impl Sim {
    fn new(seed: u64, has_server: bool) -> Sim {
        let mut random = Random(seed);
        let policy = policy(has_server);
        Sim {
            seed,
            order: policy.order.clone().expect("ordered sources"),
            policy,
            world: World::new(Random(random.next())),
            pages: HashMap::new(),
            at: 0,
            relay: 0,
            look: Instant::START,
            response: None,
            replica: Objects::new(),
            version: None,
            list: None,
            was_restored: false,
            is_remembered: false,
            was_checked: false,
            uses: Uses::default(),
            random,
        }
    }

    /// Gives the replica what an earlier process knew.
    fn remember(&mut self) -> Earlier<u64> {
        self.is_remembered = true;
        let time = self.random.millis(5000);
        self.world.advance(Instant::START + time);
        (self.replica, self.version) = (self.world.objects.clone(), Some(self.world.version));
        let position = self.world.version.1;
        let time = self.random.millis(5000);
        self.world.advance(self.world.now + time);
        match self.random.below(4) {
            0 => Earlier::Partial(Some(position)),
            _ => Earlier::Complete(position),
        }
    }

    fn name(&self) -> String {
        format!("seed {}, {}at {:?}", self.seed, if self.order.has_server { "" } else { "only relays, " }, self.now())
    }

    /// Returns the time within which the replica equals the server after the end of the faults: until all sources are
    /// known to be behind, a silence and the pauses before and after it, and lists.
    fn bound(&self) -> Duration {
        let Order { patience, spread, behind, .. } = self.order;
        let pause = Duration::from_secs(10);
        patience.max(behind) + spread + self.policy.watch_silence * 2 + self.policy.list_silence + pause * 2
    }

    /// Lets time pass. Waits forever at the end of the simulation.
    async fn pass(&mut self, time: Duration) {
        self.world.advance(self.now() + time);
        let end = FAULTS_END + self.bound();
        if self.now() >= end && !self.was_checked {
            self.was_checked = true;
            assert_eq!(self.version, Some(self.world.version), "{}: does not converge", self.name());
            assert_eq!(self.replica, self.world.objects, "{}: does not converge", self.name());
            self.world.put(7, Some(7_777));
        }
        if self.now() >= end + 2 * SECOND {
            assert_eq!(self.replica.get(&7), Some(&7_777), "{}: does not follow", self.name());
            core::future::pending::<()>().await;
        }
    }

    /// Returns the failure of a source that does not have a position. A relay that has seen the restoration, or has
    /// asked the server since, says so.
    fn behind(&self, at: usize, position: u64) -> Option<FailureKind> {
        let view = &self.world.views[at];
        if position <= view.version.1 {
            return None;
        }
        let is_current = view.seen == self.world.changes.len() && !view.is_frozen;
        let is_certain = at != SERVER && is_current && (view.saw_restoration || !self.order.has_server);
        Some(if is_certain { FailureKind::Restored } else { FailureKind::Ahead })
    }

    fn respond(&mut self, request: &Request<u64, Cursor>) -> Result<Response, FailureKind> {
        let at = self.at;
        let (is_careless, is_server) = (self.world.views[at].condition == Condition::Careless, at == SERVER);
        let is_behind = |position: &u64| self.behind(at, *position).filter(|_| !is_careless);
        match request {
            Request::Check { position } => is_behind(position).map_or(Ok(Response::End), Err),
            Request::Confirm { position } => {
                assert!(is_server, "{}: only the server proves a restoration", self.name());
                if self.world.version.1 < *position { Err(FailureKind::Restored) } else { Ok(Response::End) }
            }
            // Like a real one, the server accepts a watch from a position that it will have one day.
            Request::Watch { position } if !is_server && is_behind(position).is_some() => {
                Err(is_behind(position).unwrap_or(FailureKind::Other))
            }
            Request::Watch { position } => {
                let view = &self.world.views[at];
                if *position < view.compacted {
                    return Err(FailureKind::Expired);
                }
                let of_epoch = |change: &&Change| change.0.0 == view.version.0 && change.0.1 <= *position;
                let seen = self.world.changes.iter().take(view.seen).rposition(|change| of_epoch(&change));
                let seen = seen.map_or_else(|| self.first_of_epoch(view.version.0), |seen| seen + 1);
                let seen = if is_careless && *position > view.version.1 { view.seen } else { seen };
                let (epoch, generation) = (view.version.0, view.generation);
                Ok(Response::Watch { position: *position, seen, epoch, heard: self.now(), generation })
            }
            Request::Page { cursor: Some((source, version, last)), .. } => {
                let is_known = *source == at && self.pages.contains_key(version);
                if is_known { Ok(self.page(*version, Some(*last))) } else { Err(FailureKind::Expired) }
            }
            Request::Stream { not_before } | Request::Page { not_before, .. } => {
                if let Some(behind) = not_before.as_ref().and_then(is_behind) {
                    return Err(behind);
                }
                Ok(self.list(request, *not_before))
            }
        }
    }

    /// Returns the index of the first change of an epoch.
    fn first_of_epoch(&self, epoch: u64) -> usize {
        self.world.changes.iter().position(|change| change.0.0 == epoch).unwrap_or(self.world.changes.len())
    }

    fn list(&mut self, request: &Request<u64, Cursor>, bound: Option<u64>) -> Response {
        let is_cached = matches!(request, Request::Page { may_be_old: true, .. });
        let is_known = self.version.is_some();
        assert!(!(is_cached && is_known), "{}: a list that may be older", self.name());
        assert!(!is_known || bound.is_some() || self.was_restored, "{}: a list without a bound", self.name());
        let view = &self.world.views[self.at];
        let is_consistent = self.at == SERVER && bound.is_none() && !is_cached;
        let (objects, version) = match is_consistent {
            true => (self.world.objects.clone(), self.world.version),
            false => (view.objects.clone(), view.version),
        };
        if matches!(request, Request::Stream { .. }) {
            let (rest, generation) = (objects.into_iter().collect(), view.generation);
            return Response::Objects { rest, version, is_stream: true, bound, generation };
        }
        self.pages.insert(version, objects);
        match self.page(version, None) {
            Response::Objects { rest, version, is_stream, generation, .. } => {
                Response::Objects { rest, version, is_stream, bound, generation }
            }
            other => other,
        }
    }

    fn page(&self, version: Version, after: Option<u64>) -> Response {
        let objects = self.pages[&version].iter().map(|(key, value)| (*key, *value));
        let rest = objects.filter(|(key, _)| after.is_none_or(|after| *key > after)).take(PAGE).collect();
        let generation = self.world.views[self.at].generation;
        Response::Objects { rest, version, is_stream: false, bound: None, generation }
    }

    fn next_objects(&mut self, rest: Vec<(u64, u64)>, version: Version, is_stream: bool, bound: Option<u64>) -> Part {
        // A source that ignores the bound: the version of the list is compared, too.
        if bound.is_some_and(|bound| version.1 < bound) {
            self.uses.behind += 1;
            return Err(FailureKind::Ahead);
        }
        let last = rest.last().map(|(key, _)| *key);
        let list = self.list.as_mut().expect("a list has begun");
        list.0.extend(rest);
        list.1 = version;
        if is_stream {
            let view = &self.world.views[self.at];
            let of_list = |change: &Change| change.0 == version;
            let seen = self.world.changes.iter().rposition(of_list).map_or(0, |seen| seen + 1);
            let (epoch, generation) = (version.0, view.generation);
            self.response = Some(Response::Watch { position: version.1, seen, epoch, heard: self.now(), generation });
            return Ok(Received::Data { events: 1, position: Some(version.1), ends_list: true });
        }
        let is_last = self.pages[&version].keys().next_back().copied() <= last.or(Some(0));
        let next = last.filter(|_| !is_last).map(|last| Page::Next((self.at, version, last)));
        Ok(Received::PageEnd(next.unwrap_or(Page::Last(version.1))))
    }

    /// Waits for events or a bookmark of a watch.
    async fn next_events(&mut self, watch: Response, silence: Duration) -> Part {
        let Response::Watch { position, mut seen, epoch, mut heard, generation } = watch else {
            return Err(FailureKind::Other);
        };
        let deadline = self.now() + silence;
        loop {
            let view = &self.world.views[self.at];
            let is_over = epoch != view.version.0;
            if generation != view.generation {
                return Err(FailureKind::Disconnected);
            }
            match view.condition {
                Condition::Down => return Err(FailureKind::Disconnected),
                Condition::Short => return Ok(Received::End),
                // A relay drops its history when the storage was restored. Watches of the server go on, without events.
                _ if is_over && self.at != SERVER => return Err(FailureKind::Restored),
                _ => {}
            }
            let is_silent = view.condition == Condition::Silent || is_over;
            let end = if is_silent { seen } else { view.seen };
            let news: Vec<Change> = self.world.changes[seen.min(end)..end].to_vec();
            seen = seen.max(end);
            let is_fresh = self.at != SERVER && self.now().since(view.fresh) < FRESH && view.version.1 >= position;
            let bookmarks = !is_silent && is_fresh && self.now().since(heard) >= SECOND;
            if bookmarks || !news.is_empty() {
                heard = self.now();
            }
            let watch = |position| Some(Response::Watch { position, seen, epoch, heard, generation });
            self.response = watch(position);
            if let Some((last, ..)) = news.last().copied() {
                self.apply(&news, position)?;
                let last = last.1.max(position);
                self.response = watch(last);
                return Ok(Received::Data { events: news.len() as u64, position: Some(last), ends_list: false });
            }
            if bookmarks {
                return Ok(Received::Data { events: 1, position: None, ends_list: false });
            }
            if self.at == SERVER && self.now() >= self.look && self.look_for_relay(position) {
                return Ok(Received::RelayFound);
            }
            if self.now() >= deadline {
                return Err(FailureKind::Silent);
            }
            self.pass(TICK).await;
        }
    }

    /// Asks the last relay for what it has. Returns true if it has the position, and is current.
    fn look_for_relay(&mut self, position: u64) -> bool {
        let view = &self.world.views[self.relay];
        let works = !matches!(view.condition, Condition::Down | Condition::Rejecting(_));
        let has_it = self.behind(self.relay, position).is_none() || view.condition == Condition::Careless;
        let jitter = self.jitter();
        self.look = self.now() + self.order.look(jitter);
        works && has_it && self.now().since(self.world.views[self.relay].fresh) < FRESH
    }

    /// Applies events, and checks that each of them is a step forward.
    fn apply(&mut self, news: &[Change], position: u64) -> Result<(), FailureKind> {
        for (version, key, value) in news {
            if version.1 < position {
                // The server skips what a watch knows. A relay that sends it has not compared the position.
                if self.at == SERVER {
                    continue;
                }
                self.uses.behind += 1;
                return Err(FailureKind::Ahead);
            }
            apply(&mut self.replica, *key, *value);
            self.set_version(*version);
        }
        Ok(())
    }

    fn set_version(&mut self, version: Version) {
        let known = self.version;
        let is_forward = known.is_none_or(|known| known.1 <= version.1 || known.0 < version.0 && self.was_restored);
        assert!(is_forward, "{}: goes back from {known:?} to {version:?} at {}", self.name(), self.at);
        let expected = self.world.digests.get(&version).copied();
        assert_eq!(expected, Some(digest(&self.replica)), "{}: never was a state: {version:?}", self.name());
        self.version = Some(version);
    }
}

impl Source for Sim {
    type Position = u64;
    type Cursor = Cursor;
    type Error = FailureKind;

    async fn open(&mut self, request: Request<u64, Cursor>) -> Result<(), FailureKind> {
        self.response = None;
        let latency = self.random.millis(20);
        self.pass(latency).await;
        match self.world.views[self.at].condition {
            Condition::Down => return Err(FailureKind::Disconnected),
            Condition::Rejecting(kind) => return Err(kind),
            _ => {}
        }
        self.uses.confirmations += u64::from(matches!(request, Request::Confirm { .. }));
        let response = self.respond(&request);
        self.was_restored |= matches!(response, Err(FailureKind::Restored));
        self.response = Some(response?);
        Ok(())
    }

    async fn read(&mut self, silence: Duration) -> Part {
        let latency = self.random.millis(20);
        self.pass(latency).await;
        let condition = self.world.views[self.at].condition;
        let part = match self.response.take().expect("a response") {
            Response::End => Ok(Received::End),
            Response::Objects { .. } if condition == Condition::Cutting => Err(FailureKind::Other),
            Response::Objects { generation, .. } if generation != self.world.views[self.at].generation => {
                Err(FailureKind::Disconnected)
            }
            Response::Objects { rest, version, is_stream, bound, .. } => {
                self.next_objects(rest, version, is_stream, bound)
            }
            watch @ Response::Watch { .. } => self.next_events(watch, silence).await,
        };
        self.was_restored |= matches!(part, Err(FailureKind::Restored));
        part
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
        self.world.now
    }

    fn jitter(&mut self) -> f64 {
        self.random.below(1000) as f64 / 1000.0
    }

    fn classify(&self, error: &FailureKind) -> Failure {
        let retry_after = (*error == FailureKind::Ahead).then_some(SECOND);
        Failure { retry_after, ..Failure::new(*error, "simulated") }
    }

    fn notify(&mut self, notice: Notice, _: Option<&FailureKind>) {
        match notice {
            Notice::ListBegins => self.list = Some((Objects::new(), (0, 0))),
            Notice::Listed(_) => {
                let (objects, version) = self.list.take().expect("a list has begun");
                self.replica = objects;
                self.uses.restorations += u64::from(self.version.is_some_and(|known| version.1 < known.1));
                self.set_version(version);
                self.was_restored = false;
            }
            Notice::Moved { source } => {
                self.uses.moves += 1;
                self.at = source;
                let jitter = self.jitter();
                self.look = self.now() + self.order.look(jitter);
                self.relay = if source < RELAYS { source } else { self.relay };
            }
            Notice::Returned { source } => {
                assert_eq!((self.at, self.relay), (SERVER, source), "{}: returns elsewhere", self.name());
                self.uses.returns += 1;
                self.at = source;
            }
            _ => {}
        }
    }
}
