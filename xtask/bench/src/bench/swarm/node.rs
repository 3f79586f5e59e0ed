//! Simulated node without I/O: three watches on one HTTP/2 connection, as a Portolan with relays has them. It keeps
//! versions and counts, and no objects.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::super::certificates::SERVER_NAME;
use super::super::frames::{
    ACK, DATA, END_HEADERS, END_STREAM, Frame, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_MAX, has_status_200,
    put_frame, put_start, split,
};
use super::decode::{Decoder, Event};
use super::random::Random;
use super::tally::Tally;
use xtask::Failed;

/// Paths of the kinds that a node watches.
const PATHS: [&str; 3] = ["/api/v1/namespaces", "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices"];
/// Index of the kind that changes.
const SLICES: usize = 2;
/// Duration of a watch, as Portolan requests it, in seconds.
const WATCH_SECONDS: u64 = 300;
/// Pause after a refused request, to which a random part of [`PAUSE_SPREAD`] is added.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_SPREAD: u64 = 4000;

/// Way in which a node reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Continues from a version and counts bytes.
    Counting(u64),
    /// Lists, and decodes all events.
    Decoding,
    /// Lists, and leaves when it has listed everything.
    Joining,
}

/// Node.
pub(crate) struct Node {
    number: usize,
    role: Role,
    token: Arc<str>,
    tally: Arc<Tally>,
    random: Random,
    watches: [Watch; 3],
    next_stream: u32,
}

struct Watch {
    /// Version up to which the node has everything, or 0.
    version: u64,
    /// True if the next request continues from the version.
    is_listed: bool,
    /// Stream of the current request, or 0.
    stream: u32,
    /// True if the response has the status 200.
    is_open: bool,
    decoder: Option<Decoder>,
    /// Time of the next request after a refused one.
    again: Option<Instant>,
}

impl Node {
    pub(crate) fn new(number: usize, role: Role, token: Arc<str>, tally: Arc<Tally>) -> Node {
        let watch = || Watch {
            version: if let Role::Counting(version) = role { version } else { 0 },
            is_listed: matches!(role, Role::Counting(_)),
            stream: 0,
            is_open: false,
            decoder: None,
            again: None,
        };
        let watches = [watch(), watch(), watch()];
        Node { number, role, token, tally, random: Random::new(number), watches, next_stream: 1 }
    }

    /// Appends what a new connection starts with: the requests for all watches.
    pub(crate) fn start(&mut self, out: &mut Vec<u8>) {
        put_start(out, WINDOW_MAX);
        self.next_stream = 1;
        (0..self.watches.len()).for_each(|at| self.request(at, out));
    }

    /// Records that the connection has ended.
    pub(crate) fn end(&mut self) {
        for at in 0..self.watches.len() {
            self.close(at);
        }
    }

    /// Returns true if a joining node has listed everything.
    pub(crate) fn is_done(&self) -> bool {
        self.role == Role::Joining && self.watches.iter().all(|watch| watch.is_listed)
    }

    /// Returns true if the node may read a while later: nobody wants to know when it has got something.
    pub(crate) fn may_pause(&self) -> bool {
        matches!(self.role, Role::Counting(_)) && self.watches.iter().all(|watch| watch.is_open)
    }

    /// Returns the time of the next request.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.watches.iter().filter_map(|watch| watch.again).min()
    }

    /// Appends the requests that are due.
    pub(crate) fn ask_again(&mut self, now: Instant, out: &mut Vec<u8>) {
        for at in 0..self.watches.len() {
            if self.watches[at].again.is_some_and(|again| again <= now) {
                self.request(at, out);
            }
        }
    }

    /// Returns a random part of a duration.
    pub(crate) fn part_of(&mut self, whole: Duration) -> Duration {
        let micros = u64::try_from(whole.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.random.below(micros.max(1)))
    }

    /// Takes complete frames from the input. Returns the number of their bytes.
    ///
    /// # Errors
    /// Fails if the connection ends or a body cannot be decoded.
    pub(crate) fn take(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Failed> {
        let mut rest = input;
        while let Some((frame, after)) = split(rest) {
            self.handle(&frame, out)?;
            rest = after;
        }
        Ok(input.len() - rest.len())
    }

    fn handle(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<(), Failed> {
        match frame.kind {
            SETTINGS if frame.flags & ACK == 0 => put_frame(out, SETTINGS, ACK, 0, &[]),
            PING if frame.flags & ACK == 0 => put_frame(out, PING, ACK, 0, frame.payload),
            GOAWAY => return Err("the relay ends the connection".to_owned()),
            HEADERS | DATA | RST_STREAM => {
                if let Some(at) = self.watches.iter().position(|watch| watch.stream == frame.stream) {
                    self.handle_watch(at, frame, out)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn handle_watch(&mut self, at: usize, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<(), Failed> {
        let is_open = self.watches[at].is_open;
        match frame.kind {
            HEADERS if !is_open && has_status_200(frame.payload) => self.open(at),
            HEADERS if !is_open => self.refuse(at),
            DATA if is_open => self.read(at, frame.payload)?,
            _ => {}
        }
        let has_ended = frame.kind == RST_STREAM || frame.flags & END_STREAM != 0;
        if has_ended && self.watches[at].again.is_none() {
            self.close(at);
            self.request(at, out);
        }
        Ok(())
    }

    fn open(&mut self, at: usize) {
        let decodes = !matches!(self.role, Role::Counting(_));
        let watch = &mut self.watches[at];
        (watch.is_open, watch.decoder) = (true, decodes.then(Decoder::new));
        self.tally.open.fetch_add(1, Ordering::Relaxed);
    }

    fn close(&mut self, at: usize) {
        let watch = &mut self.watches[at];
        if core::mem::take(&mut watch.is_open) {
            self.tally.open.fetch_sub(1, Ordering::Relaxed);
        }
        (watch.stream, watch.decoder, watch.again) = (0, None, None);
        // A node that does not decode does not know how far it has come.
        if matches!(self.role, Role::Counting(_)) {
            (watch.version, watch.is_listed) = (0, false);
        }
    }

    fn refuse(&mut self, at: usize) {
        self.tally.refused.fetch_add(1, Ordering::Relaxed);
        let pause = PAUSE + Duration::from_millis(self.random.below(PAUSE_SPREAD));
        self.watches[at].again = Some(Instant::now() + pause);
    }

    fn read(&mut self, at: usize, body: &[u8]) -> Result<(), Failed> {
        if at == SLICES {
            self.tally.body.fetch_add(body.len() as u64, Ordering::Relaxed);
        }
        let (tally, number) = (&self.tally, self.number);
        let Watch { version, is_listed, decoder, .. } = &mut self.watches[at];
        let Some(decoder) = decoder else { return Ok(()) };
        let each = |event| {
            let reached = match event {
                Event::Object(reached) if *is_listed => reached,
                Event::Object(_) => return,
                Event::Bookmark { version: reached, ends_list } => {
                    *is_listed |= ends_list;
                    reached
                }
                Event::Refused => {
                    tally.expired.fetch_add(1, Ordering::Relaxed);
                    *is_listed = false;
                    return;
                }
            };
            if at == SLICES {
                let is_change = matches!(event, Event::Object(_));
                tally.reach(number, *version, reached, is_change);
            }
            *version = (*version).max(reached);
        };
        decoder.feed(body, each).map_err(|_| "the body of a watch cannot be decoded".to_owned())
    }

    /// Appends a request for a watch.
    fn request(&mut self, at: usize, out: &mut Vec<u8>) {
        let seconds = WATCH_SECONDS + self.random.below(WATCH_SECONDS);
        let watch = &mut self.watches[at];
        let version = if watch.version > 0 { format!("&resourceVersion={}", watch.version) } else { String::new() };
        let begin = if watch.is_listed {
            ""
        } else {
            self.tally.lists.fetch_add(1, Ordering::Relaxed);
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        };
        let (path, rest) = (PATHS[at], format!("&allowWatchBookmarks=true&timeoutSeconds={seconds}"));
        let fields = fields(&format!("{path}?watch=1{begin}{version}{rest}"), &self.token);
        (watch.stream, watch.again) = (self.next_stream, None);
        self.next_stream += 2;
        put_frame(out, HEADERS, END_HEADERS | END_STREAM, watch.stream, &fields);
    }
}

/// Returns the header fields of a GET request (RFC 7541 §6), as Portolan sends them.
fn fields(path: &str, token: &str) -> Vec<u8> {
    // `:method: GET` and `:scheme: https`.
    let mut out = vec![0x82, 0x87];
    // `:path` without an entry in the dynamic table; the others get one, except the token.
    let accepted = "application/vnd.kubernetes.protobuf, application/json";
    let named: [(&[u8], &str); 6] = [
        (&[0x04], path),
        (&[0x40 | 1], SERVER_NAME),
        (&[0x40 | 19], accepted),
        (&[0x40 | 16], "gzip"),
        (&[0x40 | 58], "portolan-swarm"),
        // `authorization`, entry 23, never indexed.
        (&[0x1f, 23 - 15], &format!("Bearer {token}")),
    ];
    for (name, value) in named {
        out.extend_from_slice(name);
        put_text(&mut out, value);
    }
    out.push(0x40);
    put_text(&mut out, "portolan-profile");
    put_text(&mut out, "dns-1");
    out
}

/// Appends a text (RFC 7541 §5.2) without Huffman coding.
fn put_text(out: &mut Vec<u8>, text: &str) {
    const PREFIX: usize = 127;
    if let Some(mut rest) = text.len().checked_sub(PREFIX) {
        out.push(0x7f);
        while rest >= 128 {
            out.push(0x80 | rest.to_le_bytes()[0]);
            rest >>= 7;
        }
        out.push(rest.to_le_bytes()[0]);
    } else {
        out.extend_from_slice(&text.len().to_le_bytes()[..1]);
    }
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::super::frames::STATUS_200;
    use super::super::times::WriteTimes;
    use super::*;

    fn node(role: Role) -> Node {
        Node::new(0, role, "token".into(), Arc::new(Tally::new(WriteTimes::new(1, 10), 1)))
    }

    /// Returns the streams of the requests, with true for those that list.
    fn requests(out: &[u8]) -> Vec<(u32, bool)> {
        let mut rest = out.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(out);
        let mut found = Vec::new();
        while let Some((frame, after)) = split(rest) {
            if frame.kind == HEADERS {
                found.push((frame.stream, frame.payload.windows(17).any(|part| part == b"sendInitialEvents")));
            }
            rest = after;
        }
        found
    }

    fn response(stream: u32, status: u8, flags: u8) -> Vec<u8> {
        let mut out = Vec::new();
        put_frame(&mut out, HEADERS, END_HEADERS | flags, stream, &[status]);
        out
    }

    #[test]
    fn asks_for_three_watches_and_again_when_one_ends() {
        for (role, lists) in [(Role::Counting(7), false), (Role::Decoding, true)] {
            let (mut node, mut out) = (node(role), Vec::new());
            node.start(&mut out);
            assert_eq!(requests(&out), [(1, lists), (3, lists), (5, lists)]);
            out.clear();
            assert!(node.take(&response(3, STATUS_200, 0), &mut out).is_ok());
            assert_eq!((out.len(), node.tally.open.load(Ordering::Relaxed)), (0, 1));
            let mut end = Vec::new();
            put_frame(&mut end, DATA, END_STREAM, 3, b"");
            assert!(node.take(&end, &mut out).is_ok());
            assert_eq!((requests(&out), node.tally.open.load(Ordering::Relaxed)), (vec![(7, true)], 0));
        }
    }

    #[test]
    fn pauses_after_a_refusal() {
        let (mut node, mut out) = (node(Role::Decoding), Vec::new());
        node.start(&mut out);
        out.clear();
        // `:status: 500` is entry 14 of the static table.
        assert!(node.take(&response(1, 0x8e, END_STREAM), &mut out).is_ok());
        assert!(out.is_empty() && node.due().is_some());
        node.ask_again(Instant::now() + PAUSE + Duration::from_millis(PAUSE_SPREAD), &mut out);
        assert_eq!((requests(&out), node.due()), (vec![(7, true)], None));
    }

    #[test]
    fn encodes_long_texts() {
        for (length, expected) in [(126, &[126][..]), (127, &[0x7f, 0]), (300, &[0x7f, 0x80 | 45, 1])] {
            let mut out = Vec::new();
            put_text(&mut out, &"x".repeat(length));
            assert_eq!(out[..out.len() - length], *expected);
        }
    }
}
