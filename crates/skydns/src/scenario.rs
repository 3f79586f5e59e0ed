//! Fake store defined by short texts, for tests here and in other crates (feature `scenario`). Invalid lines panic,
//! which fails the test.
//!
//! ```text
//! /skydns/test/x {"host":"192.0.2.1"}          put a key and its value
//! /skydns/test/y @7 {"host":"192.0.2.2"}       put a key tied to lease 7
//! -/skydns/test/x                              delete a key
//! ```
#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc, reason = "for tests alone")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use host::FollowError;

use crate::{Event, Index, Pair, Range, RecordError, Reducer, Request, StoreHandle, Stores};

/// Fake store defined by script lines. Each follower sees the keys that its request covers.
#[derive(Clone, Default)]
pub struct Script(Rc<RefCell<Played>>);

#[derive(Default)]
struct Played {
    /// Keys with their leases and values.
    keys: BTreeMap<Vec<u8>, (i64, Vec<u8>)>,
    is_away: bool,
    refusal: Option<String>,
    followed: Vec<Follower>,
}

struct Follower {
    request: Request,
    reducer: Reducer,
    index: Arc<Index>,
}

impl Script {
    /// Plays lines as one change, for current and future followers.
    pub fn play(&self, lines: &[&str]) {
        let played = &mut *self.0.borrow_mut();
        let changes: Vec<Change> = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| read(line)).collect();
        for (key, value) in &changes {
            match value {
                Some(value) => drop(played.keys.insert(key.clone(), value.clone())),
                None => drop(played.keys.remove(key)),
            }
        }
        if !played.is_away {
            played.followed.iter_mut().for_each(|follower| follower.apply(&changes));
        }
    }

    /// Makes the store unreachable until [`Script::come_back`].
    pub fn go_away(&self) {
        let played = &mut *self.0.borrow_mut();
        played.is_away = true;
        played.followed.iter().for_each(|follower| follower.reducer.set_lost());
    }

    /// Makes the store reachable again. Followers list everything again.
    pub fn come_back(&self) {
        let played = &mut *self.0.borrow_mut();
        played.is_away = false;
        played.followed.iter_mut().for_each(|follower| follower.list(&played.keys));
    }

    /// Makes [`Stores::follow`] fail with this message from now on.
    pub fn refuse(&self, reason: &str) {
        self.0.borrow_mut().refusal = Some(reason.to_owned());
    }

    /// Sets the remaining time of a lease in seconds, counted from `now_nanos`.
    pub fn set_lease(&self, id: i64, left_seconds: u32, now_nanos: u64) {
        for follower in &mut self.0.borrow_mut().followed {
            follower.reducer.set_lease(id, Some(left_seconds), now_nanos);
        }
    }
}

impl Stores for Script {
    fn follow(&self, request: &Request) -> Result<Arc<dyn StoreHandle>, FollowError> {
        let played = &mut *self.0.borrow_mut();
        if let Some(reason) = &played.refusal {
            return Err(FollowError::new(reason.as_str()));
        }
        let request = request.canonical();
        if let Some(follower) = played.followed.iter().find(|follower| follower.request == request) {
            return Ok(Arc::new(Handle(Arc::clone(&follower.index))));
        }
        let (reducer, index) = Reducer::new(&request);
        let mut follower = Follower { request, reducer, index: Arc::clone(&index) };
        if !played.is_away {
            follower.list(&played.keys);
        }
        played.followed.push(follower);
        Ok(Arc::new(Handle(index)))
    }
}

struct Handle(Arc<Index>);

impl StoreHandle for Handle {
    fn index(&self) -> &Arc<Index> {
        &self.0
    }
}

/// Key, with its lease and value unless it was deleted.
type Change = (Vec<u8>, Option<(i64, Vec<u8>)>);

fn read(line: &str) -> Change {
    if let Some(key) = line.strip_prefix('-') {
        return (key.trim().into(), None);
    }
    let (key, mut value) = line.split_once(' ').unwrap_or((line, ""));
    let mut lease = 0;
    if let Some(rest) = value.strip_prefix('@') {
        let (id, rest) = rest.split_once(' ').unwrap();
        (lease, value) = (id.parse().unwrap(), rest);
    }
    (key.into(), Some((lease, value.trim().into())))
}

/// Time of all changes.
const NOW_SECONDS: u32 = 1;

fn ignore(_: &[u8], _: &RecordError) {}

impl Follower {
    fn apply(&mut self, changes: &[Change]) {
        let ranges = self.request.ranges();
        let is_wanted = |key: &[u8]| ranges.iter().any(|range| is_within(range, key));
        let wanted = changes.iter().filter(|(key, _)| is_wanted(key));
        let events: Vec<Event<'_>> = wanted
            .map(|(key, value)| match value {
                Some((lease, value)) => Event::Put(Pair { key, value, lease: *lease }),
                None => Event::Delete(key),
            })
            .collect();
        self.reducer.apply(&events, NOW_SECONDS, &mut ignore);
    }

    fn list(&mut self, keys: &BTreeMap<Vec<u8>, (i64, Vec<u8>)>) {
        for range in self.request.ranges() {
            let pairs = keys.range(range.from.clone()..range.to.clone());
            let pairs: Vec<Pair<'_>> = pairs.map(|(key, (lease, value))| Pair { key, value, lease: *lease }).collect();
            self.reducer.list(&range, &pairs, NOW_SECONDS, &mut ignore);
        }
        self.reducer.set_listed();
    }
}

fn is_within(range: &Range, key: &[u8]) -> bool {
    range.from.as_slice() <= key && key < range.to.as_slice()
}
