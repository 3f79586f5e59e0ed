//! Contents of responses: pages of lists, watches and error statuses, in pieces with their effects.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use tokio::time::Instant;

use super::{Condition, State, now};
use crate::counts::What;
use crate::mirror::Effect;
use crate::objects::{Key, Kind, Object};
use crate::random::Generator;

/// Interval of bookmarks.
const BOOKMARK: Duration = Duration::from_secs(60);
/// Percentage of the watches of a stalled server that stay silent, as on a connection that is half open.
const DEAF: u64 = 20;
/// Percentage of the additions and deletions that a server leaves out that omits events.
const OMITTED: u64 = 30;
/// Maximum number of objects on a page.
const PAGE_MAX: u64 = 4;

/// Query parameters of a request.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    is_watch: bool,
    is_stream: bool,
    version: Option<u64>,
    is_bound: bool,
    is_exact: bool,
    /// Version and epoch of the list that a page belongs to, and the last key of the page before.
    token: Option<(u64, u64, Key)>,
    selects_one: bool,
    is_limited_to_one: bool,
    seconds: u64,
}

impl Parameters {
    pub(super) fn of(query: &str) -> Parameters {
        let mut parameters = Parameters::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "watch" => parameters.is_watch = true,
                "sendInitialEvents" => parameters.is_stream = true,
                "resourceVersion" => parameters.version = value.parse().ok(),
                "resourceVersionMatch" => {
                    (parameters.is_bound, parameters.is_exact) = (value == "NotOlderThan", value == "Exact");
                }
                "continue" => parameters.token = token(value),
                "fieldSelector" => parameters.selects_one = true,
                "limit" => parameters.is_limited_to_one = value == "1",
                "timeoutSeconds" => parameters.seconds = value.parse().unwrap_or_default(),
                _ => {}
            }
        }
        parameters
    }

    /// Returns the version that a list must not be older than.
    pub(super) fn not_older(&self) -> u64 {
        if self.is_bound { self.version.unwrap_or_default() } else { 0 }
    }
}

/// Reads a continue token: version, epoch and key, apart by `~`, which URLs do not escape.
fn token(value: &str) -> Option<(u64, u64, Key)> {
    let mut parts = value.split('~');
    let (version, epoch) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((version, epoch, (parts.next()?.to_owned(), parts.next()?.to_owned())))
}

/// Bytes that are sent at once, with their effects.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    pub(super) effects: Vec<Effect>,
}

/// Content of a response.
pub(super) enum Content {
    /// Pieces, and effects of the end of the response.
    Pieces(VecDeque<Piece>, Vec<Effect>),
    Watch(Watch),
}

/// State of a watch.
pub(super) struct Watch {
    pub(super) pieces: VecDeque<Piece>,
    position: u64,
    end: Instant,
    bookmark: Instant,
    /// `Some(true)` if the watch sends nothing any more, although the server works again. Decided when the server is
    /// stalled for the first time; `None` until then.
    is_deaf: Option<bool>,
}

/// Returns the content of an error response.
pub(super) fn status(code: u16, message: &str) -> Content {
    let bytes = Bytes::from(status_object(code, message));
    Content::Pieces([Piece { bytes, effects: Vec::new() }].into(), Vec::new())
}

fn status_object(code: u16, message: &str) -> String {
    let start = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#;
    format!(r#"{start}"message":"{message}","code":{code}}}"#)
}

/// Status code and message of a request that is refused.
type Refused = (u16, &'static str);

const EXPIRED: Refused = (410, "too old resource version");

/// Opens a list or a watch.
pub(super) fn open(state: &mut State, server: usize, kind: Kind, asked: &Parameters) -> Result<Content, Refused> {
    if asked.is_watch && asked.is_stream && !state.has_streams {
        return Err((422, "sendInitialEvents is forbidden for watch"));
    }
    if asked.is_watch {
        return watch(state, server, kind, asked).map(Content::Watch);
    }
    if asked.is_exact {
        return count(state, kind, asked.version.unwrap_or_default());
    }
    if asked.selects_one || asked.is_limited_to_one {
        let text = list_text(kind, if asked.version.is_some() { state.visible(server) } else { state.store.version });
        let bytes = Bytes::from(text.concat());
        return Ok(Content::Pieces([Piece { bytes, effects: Vec::new() }].into(), Vec::new()));
    }
    page(state, server, kind, asked)
}

/// Opens a list of one object as of a version, which says how many are left.
fn count(state: &mut State, kind: Kind, version: u64) -> Result<Content, Refused> {
    if version < state.store.compacted {
        return Err(EXPIRED);
    }
    if version > state.store.version {
        return Err((504, "Timeout: Too large resource version"));
    }
    let all = state.store.at(kind, version);
    let known = &state.mirrors.of(kind).objects;
    if !known.keys().eq(all.iter().map(|(_, object)| &object.key)) && state.mirrors.of(kind).version == version {
        state.counts.count(What::Missed);
    }
    let items = all.first().map(|(version, object)| object.json(*version)).unwrap_or_default();
    let left = match all.len() {
        0 | 1 => String::new(),
        many => format!(r#","continue":"more","remainingItemCount":{}"#, many - 1),
    };
    let (group, name) = kind.names();
    let metadata = format!(r#"{{"resourceVersion":"{version}"{left}}}"#);
    let text = format!(r#"{{"kind":"{name}List","apiVersion":"{group}","metadata":{metadata},"items":[{items}]}}"#);
    Ok(Content::Pieces([Piece { bytes: text.into(), effects: Vec::new() }].into(), Vec::new()))
}

/// Returns the texts before and after the items of a list.
fn list_text(kind: Kind, version: u64) -> [String; 2] {
    list_text_of(kind, version, "")
}

fn list_text_of(kind: Kind, version: u64, token: &str) -> [String; 2] {
    let (group, name) = kind.names();
    let metadata = format!(r#"{{"resourceVersion":"{version}","continue":"{token}"}}"#);
    let before = format!(r#"{{"kind":"{name}List","apiVersion":"{group}","metadata":{metadata},"items":["#);
    [before, "]}".to_owned()]
}

/// Opens a page of a list.
fn page(state: &mut State, server: usize, kind: Kind, asked: &Parameters) -> Result<Content, Refused> {
    state.counts.count(What::Page);
    let version = match (&asked.token, asked.version) {
        // As for etcd, which does not have the revision.
        (Some((_, epoch, _)), _) if *epoch != state.store.epoch => {
            return Err((500, "mvcc: required revision is a future revision"));
        }
        (Some((version, ..)), _) if *version < state.store.compacted => {
            state.counts.count(What::Expired);
            return Err((410, "The provided continue parameter is too old"));
        }
        (Some((version, ..)), _) => *version,
        (None, None) => state.store.version,
        (None, Some(_)) => state.visible(server),
    };
    if asked.token.is_none() {
        state.counts.count(What::List);
        state.mirror(kind).is_listing = true;
    }
    let all = state.store.at(kind, version);
    let after = asked.token.as_ref().map(|(.., key)| key);
    let most = usize::try_from(1 + state.random.below(PAGE_MAX)).expect("a small number");
    let rest: Vec<_> = all.iter().filter(|(_, object)| after.is_none_or(|after| object.key > *after)).collect();
    let (items, is_last) = (&rest[..rest.len().min(most)], rest.len() <= most);
    let last = items.last().filter(|_| !is_last).map(|(_, object)| &object.key);
    let token = last
        .map_or_else(String::new, |(namespace, name)| format!("{version}~{}~{namespace}~{name}", state.store.epoch));
    let [before, end] = list_text_of(kind, version, &token);
    let mut segments = vec![(before, Vec::new())];
    for (at, (version, object)) in items.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        segments.push((format!("{comma}{}", object.json(*version)), vec![Effect::Applied(Arc::clone(object))]));
    }
    segments.push((end, Vec::new()));
    let keys = || all.iter().map(|(_, object)| object.key.clone()).collect();
    let effects = if is_last { vec![Effect::Listed(version, state.store.epoch, keys())] } else { Vec::new() };
    Ok(Content::Pieces(cut(segments, &mut state.random), effects))
}

/// Opens a watch, or a list as a stream.
fn watch(state: &mut State, server: usize, kind: Kind, asked: &Parameters) -> Result<Watch, Refused> {
    state.counts.count(What::Watch);
    let is_empty = state.servers[server].condition == Condition::Short;
    let spread = Duration::from_secs(asked.seconds);
    let (end, bookmark) = (now() + if is_empty { Duration::ZERO } else { spread }, now() + BOOKMARK);
    if asked.is_stream {
        state.counts.count(What::List);
        state.mirror(kind).is_listing = true;
        // A list that is bounded by no version is as new as the storage.
        let version = if asked.version.is_some() { state.visible(server) } else { state.store.version };
        let pieces = stream(state, kind, version);
        return Ok(Watch { pieces, position: version, end, bookmark, is_deaf: None });
    }
    let position = asked.version.unwrap_or_default();
    let known = state.mirrors.of(kind).version;
    if position != known {
        state.violate(format!("{kind:?}: a watch from {position} where {known} is known"));
    }
    let mut pieces = VecDeque::new();
    if position < state.store.compacted {
        state.counts.count(What::Expired);
        if state.random.is(50) {
            return Err(EXPIRED);
        }
        let text = event("ERROR", &status_object(EXPIRED.0, EXPIRED.1));
        pieces.push_back(Piece { bytes: text.into(), effects: Vec::new() });
    }
    Ok(Watch { pieces, position, end, bookmark, is_deaf: None })
}

/// Returns a list as a stream.
fn stream(state: &mut State, kind: Kind, version: u64) -> VecDeque<Piece> {
    let all = state.store.at(kind, version);
    let added = |(version, object): &(u64, Arc<Object>)| {
        (event("ADDED", &object.json(*version)), vec![Effect::Applied(Arc::clone(object))])
    };
    let mut segments: Vec<_> = all.iter().map(added).collect();
    let keys: BTreeSet<Key> = all.iter().map(|(_, object)| object.key.clone()).collect();
    let end = bookmark(kind, version, r#","annotations":{"k8s.io/initial-events-end":"true"}"#);
    segments.push((end, vec![Effect::Listed(version, state.store.epoch, keys)]));
    cut(segments, &mut state.random)
}

fn event(what: &str, object: &str) -> String {
    format!("{{\"type\":\"{what}\",\"object\":{object}}}\n")
}

fn bookmark(kind: Kind, version: u64, more: &str) -> String {
    let (group, name) = kind.names();
    let metadata = format!(r#"{{"resourceVersion":"{version}"{more}}}"#);
    event("BOOKMARK", &format!(r#"{{"kind":"{name}","apiVersion":"{group}","metadata":{metadata}}}"#))
}

impl Watch {
    /// Returns the time at which the watch has something to do.
    pub(super) fn next(&self) -> Instant {
        self.end.min(self.bookmark)
    }

    /// Returns true if the watch sends nothing.
    pub(super) fn is_silent(&mut self, is_stalled: bool, state: &mut State) -> bool {
        if is_stalled && self.is_deaf.is_none() {
            let is_deaf = state.random.is(DEAF);
            if is_deaf {
                state.counts.count(What::Deaf);
            }
            self.is_deaf = Some(is_deaf);
        }
        is_stalled || self.is_deaf == Some(true)
    }

    pub(super) fn is_over(&self) -> bool {
        now() >= self.end
    }

    /// Makes pieces of what is due.
    pub(super) fn fill(&mut self, state: &mut State, server: usize, kind: Kind) {
        let visible = state.visible(server);
        let mut segments = Vec::new();
        for change in state.store.between(kind, self.position, visible) {
            // Changes of known objects do not change their number.
            let may_be_omitted = if state.omits_deletions { change.is_deletion } else { change.is_creation };
            if may_be_omitted && state.servers[server].omits && state.random.is(OMITTED) {
                state.counts.count(What::Omitted);
                self.position = change.version;
                continue;
            }
            let what = match (change.is_creation, change.is_deletion) {
                (true, _) => "ADDED",
                (_, true) => "DELETED",
                _ => "MODIFIED",
            };
            let effect = match change.is_deletion {
                true => Effect::Deleted(change.object.key.clone()),
                false => Effect::Applied(Arc::clone(&change.object)),
            };
            let text = event(what, &change.object.json(change.version));
            segments.push((text, vec![effect, Effect::Position(change.version)]));
            self.position = change.version;
        }
        if now() >= self.bookmark {
            self.bookmark = now() + BOOKMARK;
            self.position = self.position.max(visible);
            segments.push((bookmark(kind, self.position, ""), vec![Effect::Position(self.position)]));
        }
        self.pieces = cut(segments, &mut state.random);
    }
}

/// Text, and the effects of its end.
type Segment = (String, Vec<Effect>);

/// Cuts texts into pieces at random places, but not just before the end of a text: a decoder may see its end there.
fn cut(segments: Vec<Segment>, random: &mut Generator) -> VecDeque<Piece> {
    let (mut pieces, mut bytes, mut done) = (VecDeque::new(), Vec::new(), Vec::new());
    for (text, effects) in segments {
        let text = text.as_bytes();
        let is_cut = text.len() > 8 && random.is(20);
        let at = if is_cut { 1 + random.index(text.len() - 6) } else { 0 };
        bytes.extend(&text[..at]);
        if is_cut {
            pieces.push_back(Piece { bytes: core::mem::take(&mut bytes).into(), effects: core::mem::take(&mut done) });
        }
        bytes.extend(&text[at..]);
        done.extend(effects);
        if random.is(30) {
            pieces.push_back(Piece { bytes: core::mem::take(&mut bytes).into(), effects: core::mem::take(&mut done) });
        }
    }
    if !bytes.is_empty() {
        pieces.push_back(Piece { bytes: bytes.into(), effects: done });
    }
    pieces
}
