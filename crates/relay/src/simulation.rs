//! Random histories: an API server, relays that follow it with gaps, and subscribers that read at their own pace, stop
//! in the middle of a frame, and continue at another relay. What a subscriber has applied always equals what the server
//! had at its version.

use core::time::Duration;
use std::collections::BTreeMap;

use flate2::{Decompress, FlushDecompress};
use host::Instant;
use serde_json::{Value, json};

use crate::*;

/// Objects at a version: names with their versions.
type State = BTreeMap<String, u64>;
/// The same with the version of their creation, which is their UID.
type Objects = BTreeMap<String, (u64, u64)>;

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// API server: its state at each version, and the change that led to it.
struct Server {
    states: Vec<Objects>,
    changes: Vec<Option<(EventType, String, u64)>>,
}

impl Server {
    fn new() -> Server {
        Server { states: vec![Objects::new(); 2], changes: vec![None, None] }
    }

    fn version(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    fn change(&mut self, random: &mut Random) {
        let (version, mut state) = (self.version() + 1, self.states[self.states.len() - 1].clone());
        let name = format!("s{}", random.below(6));
        let change = match (random.below(4), state.contains_key(&name)) {
            // The version belongs to an object of another kind.
            (0, _) => None,
            (1, true) => {
                let created = state.remove(&name).map_or(version, |(_, created)| created);
                Some((EventType::Deleted, name, created))
            }
            (_, is_known) => {
                let created = state.get(&name).map_or(version, |(_, created)| *created);
                state.insert(name.clone(), (version, created));
                Some((if is_known { EventType::Modified } else { EventType::Added }, name, created))
            }
        };
        self.states.push(state);
        self.changes.push(change);
    }

    fn objects(&self, version: u64) -> &Objects {
        &self.states[usize::try_from(version).unwrap()]
    }

    fn state(&self, version: u64) -> State {
        self.objects(version).iter().map(|(name, (version, _))| (name.clone(), *version)).collect()
    }

    /// Restores a backup of this version.
    fn restore(&mut self, version: u64) {
        let length = usize::try_from(version).unwrap() + 1;
        self.states.truncate(length);
        self.changes.truncate(length);
    }
}

fn object(name: &str, version: u64, created: u64) -> Vec<u8> {
    let (version, uid) = (version.to_string(), created.to_string());
    let metadata = json!({ "name": name, "namespace": "n", "resourceVersion": version, "uid": uid });
    let enveloped = fakeapi::protobuf::object("", &json!({ "kind": "Service", "metadata": metadata }));
    let mut fields = crate::wire::Fields::of(&enveloped[4..]).map(Result::unwrap);
    fields.find(|field| field.number == 2).unwrap().value.bytes().unwrap().to_vec()
}

/// Relay, and the version up to which it has read.
struct Follower {
    relay: Relay,
    at: u64,
}

impl Follower {
    fn new(server: &Server, now: Instant) -> Follower {
        let mut follower = Follower { relay: Relay::new(&[Kind::Service]), at: 0 };
        follower.list(server, server.version(), now);
        follower
    }

    fn list(&mut self, server: &Server, version: u64, now: Instant) {
        self.relay.begin_list(Kind::Service);
        for (name, (version, created)) in server.objects(version) {
            self.relay.add_to_list(Kind::Service, &object(name, *version, *created)).unwrap();
        }
        self.relay.end_list(Kind::Service, version, now);
        self.at = version;
    }

    /// Gets the changes before the first list if subscribers want them. The API server may not have them, and the watch
    /// may break.
    fn read_earlier(&mut self, server: &Server, random: &mut Random, now: Instant) {
        let Some(mut earlier) = self.relay.begin_earlier(Kind::Service, now) else { return };
        let (from, last) = (earlier.from(), server.version() - random.below(2) * random.below(server.version()));
        for version in from + 1..=last {
            if let Some((what, name, created)) = &server.changes[usize::try_from(version).unwrap()] {
                earlier.add(*what, &object(name, version, *created)).unwrap();
            }
        }
        if random.below(2) == 0 {
            earlier.note_bookmark(last);
        }
        if random.below(8) == 0 {
            earlier.fail();
        }
        self.relay.end_earlier(earlier, now);
    }

    /// Reads some events, and a bookmark if it has read all of them.
    fn read(&mut self, server: &Server, random: &mut Random, now: Instant) {
        let last = self.at + random.below(server.version() - self.at + 1);
        for version in self.at + 1..=last {
            if let Some((what, name, created)) = &server.changes[usize::try_from(version).unwrap()] {
                self.relay.apply(Kind::Service, *what, &object(name, version, *created), now).unwrap();
            }
        }
        self.at = last;
        if random.below(3) == 0 {
            self.relay.note_bookmark(Kind::Service, last, now);
        }
    }
}

/// Subscriber with what it has applied.
struct Subscriber {
    headers: Headers<'static>,
    state: State,
    version: u64,
    /// True while the state is that of the version; false within the initial events.
    is_whole: bool,
    /// Version from which the state is exact again. After a stop within the difference of two lists, objects are gone
    /// whose deletion comes later, and others lack a change that a later one replaces.
    exact_from: u64,
    watch: Option<(usize, Cursor, Decompress, Vec<u8>)>,
}

impl Subscriber {
    fn new(gzip: bool) -> Subscriber {
        let headers = Headers { accept_encoding: if gzip { "gzip" } else { "" }, ..Headers::default() };
        Subscriber { headers, state: State::new(), version: 0, is_whole: false, exact_from: 0, watch: None }
    }

    fn connect(&mut self, at: usize, relay: &mut Relay, now: Instant) {
        let query = if self.is_whole {
            format!("watch=1&resourceVersion={}&allowWatchBookmarks=1", self.version)
        } else {
            let at = if self.version > 0 { format!("&resourceVersion={}", self.version) } else { String::new() };
            format!("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1{at}")
        };
        let request = Request::parse("/api/v1/services", &query, self.headers).unwrap();
        match relay.watch(&request, now) {
            Ok(cursor) => {
                if !self.is_whole {
                    self.state.clear();
                }
                self.watch = Some((at, cursor, Decompress::new(false), Vec::new()));
            }
            Err(Refusal::Ahead(..)) => {}
            Err(refusal) => panic!("{refusal}"),
        }
    }

    /// Reads one part. Applies all events in it, or only the first ones, after which it loses its connection.
    fn read(&mut self, relays: &mut [Follower], random: &mut Random, now: Instant, server: &Server) {
        let Some((at, cursor, inflate, rest)) = &mut self.watch else { return };
        let next = relays[*at].relay.next(cursor, now);
        let given = cursor.version();
        let bytes = match next {
            Next::Wait => return,
            Next::End => {
                self.watch = None;
                return;
            }
            Next::Data(bytes) => bytes,
        };
        let text = if self.headers.accept_encoding.is_empty() { bytes.to_vec() } else { decode(inflate, &bytes) };
        rest.extend_from_slice(&text);
        let lines: Vec<Value> =
            rest.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        rest.clear();
        let stops_after = if random.below(8) == 0 { random.below(lines.len() as u64 + 1) } else { u64::MAX };
        for (number, line) in (0..).zip(&lines) {
            if number == stops_after {
                (self.watch, self.exact_from) = (None, self.exact_from.max(given));
                return;
            }
            if !self.apply(line) {
                self.watch = None;
                return;
            }
        }
        if self.is_whole && !lines.is_empty() {
            // All that this part says has been applied.
            assert!(given >= self.version);
            self.version = given;
            let expected = server.state(given);
            if given >= self.exact_from {
                assert_eq!(self.state, expected, "at {given}");
            }
            assert!(self.state.values().all(|version| *version <= given), "at {given}");
        }
    }

    /// Applies an event. Returns false if the watch has ended.
    fn apply(&mut self, event: &Value) -> bool {
        let metadata = &event["object"]["metadata"];
        let version = || metadata["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
        let name = || metadata["name"].as_str().unwrap().to_owned();
        match event["type"].as_str().unwrap() {
            "ERROR" => {
                assert_eq!(event["object"]["code"], 410);
                self.is_whole = false;
                if event["object"]["message"].as_str().unwrap().contains("restored") {
                    self.version = 0;
                }
                return false;
            }
            "BOOKMARK" => {
                assert!(version() >= self.version, "a version went back");
                (self.version, self.is_whole) = (version(), true);
                return true;
            }
            "DELETED" => drop(self.state.remove(&name())),
            _ => drop(self.state.insert(name(), version())),
        }
        if self.is_whole {
            assert!(version() >= self.version, "a version went back: {event} after {}", self.version);
            self.version = version();
        }
        true
    }
}

/// Decodes a part of a gzip member, whose header is a part of its own.
fn decode(inflate: &mut Decompress, bytes: &[u8]) -> Vec<u8> {
    if bytes.starts_with(b"\x1f\x8b") {
        return Vec::new();
    }
    let mut out = Vec::with_capacity(1 << 20);
    inflate.decompress_vec(bytes, &mut out, FlushDecompress::Sync).unwrap();
    out
}

fn simulate(seed: u64, steps: u32) {
    let (mut random, mut server, mut now) = (Random(seed), Server::new(), Instant::START);
    let mut relays: Vec<Follower> = (0..3).map(|_| Follower::new(&server, now)).collect();
    let mut subscribers: Vec<Subscriber> = (0..6).map(|number| Subscriber::new(number % 2 == 0)).collect();
    for _ in 0..steps {
        now = now + Duration::from_millis(random.below(40));
        let which = usize::try_from(random.below(3)).unwrap();
        match random.below(100) {
            0..30 => server.change(&mut random),
            30..52 => relays[which].read(&server, &mut random, now),
            52..55 => relays[which].read_earlier(&server, &mut random, now),
            // A list after an outage.
            55..58 => relays[which].list(&server, server.version(), now),
            // A restart.
            58 => {
                relays[which] = Follower::new(&server, now);
                subscribers
                    .iter_mut()
                    .filter(|one| one.watch.as_ref().is_some_and(|watch| watch.0 == which))
                    .for_each(|one| one.watch = None);
            }
            59 if random.below(10) == 0 => {
                let version = server.version() - random.below(server.version().min(20));
                if version < server.version() {
                    server.restore(version);
                    server.change(&mut random);
                    relays.iter_mut().for_each(|relay| relay.list(&server, server.version(), now));
                    // A subscriber without a watch cannot know.
                    let lost = subscribers.iter_mut().filter(|one| one.watch.is_none());
                    lost.for_each(|one| (one.is_whole, one.version, one.exact_from) = (false, 0, 0));
                    // One with a watch learns it from its relay, but not if the versions have not gone back.
                    subscribers
                        .iter_mut()
                        .for_each(|one| (one.watch, one.is_whole, one.version, one.exact_from) = (None, false, 0, 0));
                }
            }
            _ => {
                let number = usize::try_from(random.below(6)).unwrap();
                let one = &mut subscribers[number];
                if one.watch.is_none() {
                    one.connect(which, &mut relays[which].relay, now);
                }
                (0..=random.below(4)).for_each(|_| one.read(&mut relays, &mut random, now, &server));
            }
        }
        relays.iter_mut().for_each(|relay| drop(relay.relay.advance(now)));
        assert!(relays.iter().all(|relay| relay.relay.states(now)[0].history_bytes <= HISTORY_BYTES_MAX));
    }
}

/// Number of schedules in the usual test. The long one takes its seeds from the environment.
const SCHEDULES: u64 = 150;
/// Number of steps of a schedule.
const STEPS: u32 = 1500;

/// Prints the seed of a schedule that fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

fn check_schedules(seeds: core::ops::RangeInclusive<u64>) {
    for seed in seeds {
        let _seed = Seed(seed);
        simulate(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), STEPS);
    }
}

#[test]
fn what_a_subscriber_has_applied_is_the_state_at_its_version() {
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
