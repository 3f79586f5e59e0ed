//! One connection: reads queries from its streams and writes the answers.
//!
//! A query usually arrives in one piece and leaves at once as an event. Otherwise its bytes are collected in
//! [`Stream`], whose memory the [`Account`](crate::Account) of the connection counts.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use host::invariant::holds;
use quinn_proto::{ConnectionHandle, Dir, ReadError, StreamEvent, StreamId, WriteError};

use crate::account::Account;
use crate::event::{Event, Limit, QueryKey, Route};
use crate::limits::{
    CANCELS_MAX, ENDED_STREAM_COST, ENDED_STREAMS_FREE, HANDSHAKE_TIMEOUT, STREAMS_AT_FIRST, Settings,
};
use crate::protocol::{Codes, Protocol};
use crate::stream::{Fed, Input, Output, Stream, StreamFault};
use crate::{doq, h3};

/// What a connection needs from its endpoint.
pub(crate) struct Context<'e> {
    pub(crate) settings: &'e Settings,
    pub(crate) events: &'e mut VecDeque<Event>,
    pub(crate) now: Instant,
}

impl Context<'_> {
    const fn codes(&self) -> Codes {
        self.settings.protocol.codes()
    }
}

/// Connection of a client.
pub(crate) struct Connection {
    pub(crate) quic: quinn_proto::Connection,
    handle: ConnectionHandle,
    serial: u64,
    /// Entry in the tables of the process. `None` if the listener was full, or after the end.
    account: Option<Box<dyn Account>>,
    /// Address of the client behind a proxy.
    pub(crate) proxied: Option<SocketAddr>,
    streams: HashMap<StreamId, Stream, FixedState>,
    /// Streams whose query did not arrive at once, with the time until which it must.
    deadlines: VecDeque<(Instant, StreamId)>,
    /// Time until which the handshake must be complete, while it is not.
    open_by: Option<Instant>,
    session: h3::Session,
    /// Control stream of the server.
    control: Option<StreamId>,
    /// Number of bidirectional streams that the client has opened.
    requests: u64,
    /// Memory of the streams in bytes.
    held: usize,
    /// Most streams that were open at once.
    streams_most: usize,
    /// Queries cancelled since this time.
    cancels: (Instant, u32),
    /// True while the endpoint will ask for datagrams.
    pub(crate) is_queued: bool,
    /// Time for which the endpoint has set a timer.
    pub(crate) timer: Option<Instant>,
    /// Phase in which the endpoint counts the connection.
    pub(crate) phase: Phase,
}

/// Phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The handshake is in progress.
    Opening,
    /// The handshake is in progress only to tell the client that the listener is full.
    TurnedAway,
    /// The handshake is complete, or the connection has ended.
    Open,
}

impl Connection {
    pub(crate) fn new(
        (handle, quic): (ConnectionHandle, quinn_proto::Connection),
        serial: u64,
        account: Option<Box<dyn Account>>,
        now: Instant,
    ) -> Connection {
        holds(serial > 0, "connections are numbered from 1");
        let phase = if account.is_some() { Phase::Opening } else { Phase::TurnedAway };
        Connection {
            phase,
            quic,
            handle,
            serial,
            account,
            proxied: None,
            streams: HashMap::default(),
            deadlines: VecDeque::new(),
            open_by: Some(now + HANDSHAKE_TIMEOUT),
            session: h3::Session::default(),
            control: None,
            requests: 0,
            held: 0,
            streams_most: 0,
            cancels: (now, 0),
            is_queued: false,
            timer: None,
        }
    }

    /// Returns the phase of the connection.
    pub(crate) const fn current_phase(&self) -> Phase {
        match (&self.open_by, &self.account) {
            (Some(_), Some(_)) => Phase::Opening,
            (Some(_), None) => Phase::TurnedAway,
            (None, _) => Phase::Open,
        }
    }

    /// Returns the number of open streams.
    pub(crate) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Checks the state after a step, with debug assertions.
    pub(crate) fn check(&self) {
        holds(self.is_queued || self.phase == self.current_phase(), "a connection is counted in its phase");
        holds(self.held == self.streams.values().map(|stream| stream.cost).sum(), "memory is that of the streams");
        holds(self.streams.len() <= self.streams_most, "the most streams are at least those that are open");
        holds(self.cancels.1 <= CANCELS_MAX || self.quic.is_closed(), "a client that cancels too much is closed");
        let ids = || self.streams.keys().filter(|id| id.dir() == Dir::Bi);
        holds(ids().all(|id| id.index() < self.requests), "each request was counted");
        holds(
            self.account.is_some() || self.requests == 0 || self.quic.is_closed(),
            "only admitted clients have requests",
        );
        if self.quic.is_closed() {
            holds(self.streams.is_empty() && self.account.is_none(), "a closed connection has freed everything");
            holds(self.open_by.is_none() && self.deadlines.is_empty(), "a closed connection has no deadlines");
            holds(self.held == 0, "a closed connection holds no memory");
        }
        for (id, stream) in &self.streams {
            holds(!stream.is_done(), "a stream that is done is removed");
            holds(stream.cost == stream.current_cost(), "the memory of a stream is counted");
            holds(stream.is_uni == (id.dir() == Dir::Uni), "the direction of a stream does not change");
            holds(!stream.is_uni || stream.output == Output::Done, "a stream in one direction has no answer");
        }
    }

    /// Returns true if this is the connection with the number.
    pub(crate) const fn is(&self, serial: u64) -> bool {
        self.serial == serial
    }

    /// Returns true if no answer is missing or on its way.
    pub(crate) fn is_idle(&self) -> bool {
        self.streams.values().all(|stream| stream.output == Output::Done)
    }

    /// Returns true if all answers have left, even if the client has not acknowledged them.
    pub(crate) fn is_answered(&self) -> bool {
        self.streams.values().all(|stream| matches!(stream.output, Output::Done | Output::Written(_)))
    }

    pub(crate) fn is_evicted(&self) -> bool {
        self.account.as_ref().is_some_and(|account| account.is_evicted())
    }

    /// Returns the time of the next call of [`Connection::on_timeout`].
    pub(crate) fn next_timeout(&mut self) -> Option<Instant> {
        let own = self.open_by.into_iter().chain(self.deadlines.front().map(|(deadline, _)| *deadline));
        own.chain(self.quic.poll_timeout()).min()
    }

    pub(crate) fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.quic.handle_timeout(cx.now);
        if self.open_by.is_some_and(|deadline| deadline <= cx.now) {
            self.close(cx.codes().no_error, "the handshake takes too long", cx);
        }
        while let Some((deadline, id)) = self.deadlines.front().copied()
            && deadline <= cx.now
        {
            self.deadlines.pop_front();
            self.end_slow_stream(id, cx);
        }
    }

    /// Handles the events that quinn-proto reports.
    pub(crate) fn on_events(&mut self, cx: &mut Context<'_>) {
        while let Some(event) = self.quic.poll() {
            match event {
                quinn_proto::Event::Connected => self.on_connected(cx),
                quinn_proto::Event::Stream(event) => self.on_stream_event(&event, cx),
                quinn_proto::Event::ConnectionLost { .. } => self.forget(cx),
                quinn_proto::Event::HandshakeDataReady
                | quinn_proto::Event::DatagramReceived
                | quinn_proto::Event::DatagramsUnblocked => {}
            }
        }
    }

    fn on_connected(&mut self, cx: &mut Context<'_>) {
        holds(self.control.is_none() && self.streams.is_empty(), "a handshake is complete once");
        let phase = self.current_phase();
        self.open_by = None;
        if phase == Phase::TurnedAway {
            return self.close(cx.codes().turned_away, "too many connections", cx);
        }
        if cx.settings.protocol == Protocol::Http3 {
            self.control = self.quic.streams().open(Dir::Uni);
            self.write_control(&h3::control_stream());
        }
    }

    /// Writes a few bytes to the control stream. A client that gives no credit for them does without.
    fn write_control(&mut self, bytes: &[u8]) {
        if let Some(id) = self.control {
            let _ = self.quic.send_stream(id).write(bytes);
        }
    }

    fn on_stream_event(&mut self, event: &StreamEvent, cx: &mut Context<'_>) {
        match *event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.quic.streams().accept(dir) {
                    if dir == Dir::Bi {
                        holds(id.index() == self.requests, "streams are accepted in their order");
                        self.requests = id.index() + 1;
                        self.allow_all_streams(cx.settings.streams_max);
                    }
                    let former = self.streams.insert(id, Stream::new(dir == Dir::Uni));
                    holds(former.is_none(), "a stream is opened once");
                    self.streams_most = self.streams_most.max(self.streams.len());
                    self.read(id, cx);
                    self.add_deadline(id, cx);
                }
            }
            StreamEvent::Readable { id } => self.read(id, cx),
            StreamEvent::Writable { id } => self.write(id, cx),
            StreamEvent::Finished { id } => self.change(id, cx, |stream| stream.output = Output::Done),
            StreamEvent::Stopped { id, error_code } => self.on_stopped(id, error_code.into_inner(), cx),
            StreamEvent::Available { .. } => {}
        }
    }

    /// Allows a client that uses many streams to open all that it may.
    fn allow_all_streams(&mut self, streams_max: u32) {
        let (open, allowed) =
            (self.quic.streams().remote_open_streams(Dir::Bi), self.quic.max_concurrent_streams(Dir::Bi));
        if allowed < u64::from(streams_max) && open >= u64::from(STREAMS_AT_FIRST / 2) {
            self.quic.set_max_concurrent_streams(Dir::Bi, streams_max.into());
        }
    }

    /// Reads what has arrived on a stream, and passes the query on if it is complete.
    fn read(&mut self, id: StreamId, cx: &mut Context<'_>) {
        match self.read_chunks(id, cx) {
            Ok(Some(query)) => self.pass_on(id, query, cx),
            Ok(None) => {}
            Err(error) => self.fail(id, error, cx),
        }
        self.change(id, cx, |_| {});
    }

    fn read_chunks(&mut self, id: StreamId, cx: &mut Context<'_>) -> Result<Option<Bytes>, StreamFault> {
        let Connection { quic, streams, session, .. } = self;
        let Some(stream) = streams.get_mut(&id) else { return Ok(None) };
        let mut query = None;
        loop {
            let mut receiving = quic.recv_stream(id);
            let Ok(mut chunks) = receiving.read(!stream.is_unordered) else { return Ok(query) };
            let stopped = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => match stream.take(chunk.offset, &chunk.bytes, cx.settings, session)? {
                        Fed::More => {}
                        Fed::Query(message) => query = Some(message),
                        Fed::Ignored => break Stopped::Ignored,
                    },
                    Ok(None) => break Stopped::End,
                    Err(ReadError::Blocked) => break Stopped::Blocked,
                    Err(ReadError::Reset(_)) => break Stopped::Reset,
                }
            };
            drop(chunks);
            match stopped {
                // Bytes behind a gap must not wait in the buffers of quinn-proto.
                Stopped::Blocked if !stream.is_unordered && stream.is_arriving() => stream.is_unordered = true,
                Stopped::Blocked => return Ok(query),
                Stopped::End => {
                    let ended = stream.end(cx.settings)?;
                    holds(ended.is_none() || query.is_none(), "a stream has one query");
                    return Ok(ended.or(query));
                }
                Stopped::Ignored => {
                    holds(query.is_none() && stream.is_uni, "only streams in one direction are ignored");
                    let _ = receiving.stop(h3::code::STREAM_CREATION_ERROR.into());
                    return Ok(None);
                }
                Stopped::Reset => {
                    holds(query.is_none(), "a stream that was reset has no bytes");
                    return on_reset(stream, cx.settings);
                }
            }
        }
    }

    /// Passes a query to the owner of the endpoint.
    fn pass_on(&mut self, id: StreamId, message: Bytes, cx: &mut Context<'_>) {
        let is_passed = |stream: &Stream| !stream.is_arriving() && stream.output == Output::Awaited;
        debug_assert!(self.streams.get(&id).is_some_and(is_passed), "a query is passed on once, when it is complete");
        holds(id.dir() == Dir::Bi, "a query can be answered on its stream");
        if let Some(account) = &self.account {
            account.touch();
        }
        let route = Route { peer: self.quic.remote_address(), local: self.quic.local_ip() };
        let client = self.proxied.unwrap_or(route.peer);
        cx.events.push_back(Event::Query { key: self.key(id), route, client, message });
    }

    fn key(&self, id: StreamId) -> QueryKey {
        QueryKey { connection: self.handle.0, serial: self.serial, stream: id }
    }

    /// Answers a query with a message, the last one or one of several.
    pub(crate) fn respond(&mut self, id: StreamId, message: &[u8], is_last: bool, cx: &mut Context<'_>) {
        let framed = match cx.settings.protocol {
            Protocol::Doq => doq::frame(message),
            Protocol::Http3 => h3::answer(message),
        };
        if is_last {
            cx.events.push_back(Event::Responded(cx.codes().success));
        }
        self.send(id, framed, is_last, cx);
    }

    fn send(&mut self, id: StreamId, framed: Bytes, is_last: bool, cx: &mut Context<'_>) {
        // The client may have reset the stream since.
        let Some(stream) = self.streams.get_mut(&id) else { return };
        holds(!stream.is_uni && !framed.is_empty(), "an answer is written to the stream of its query");
        holds(!matches!(stream.output, Output::Writing { .. }), "an answer waits for the one before it");
        if matches!(stream.output, Output::Awaited | Output::Ready) {
            let length = framed.len();
            stream.output = Output::Writing { rest: framed, length, is_last };
            self.write(id, cx);
        }
    }

    /// Ends an answer of several messages, the last of which has been written.
    pub(crate) fn end_answer(&mut self, id: StreamId, cx: &mut Context<'_>) {
        if self.streams.get(&id).is_some_and(|stream| stream.output == Output::Ready) {
            cx.events.push_back(Event::Responded(cx.codes().success));
            let is_open = self.quic.send_stream(id).finish().is_ok();
            self.change(id, cx, |stream| stream.output = if is_open { Output::Written(0) } else { Output::Done });
        }
    }

    /// Gives up a query.
    pub(crate) fn abandon(&mut self, id: StreamId, cx: &mut Context<'_>) {
        if !self.streams.get(&id).is_some_and(|stream| stream.output == Output::Awaited) {
            return;
        }
        match cx.settings.protocol {
            Protocol::Http3 => self.refuse(id, &doh::Refusal::NO_ANSWER, cx),
            Protocol::Doq => {
                cx.events.push_back(Event::Responded(doq::code::INTERNAL_ERROR));
                self.reset(id, doq::code::INTERNAL_ERROR, cx);
            }
        }
    }

    /// Writes as much of an answer as the client takes.
    fn write(&mut self, id: StreamId, cx: &mut Context<'_>) {
        let key = self.key(id);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Output::Writing { rest, length, is_last } = &mut stream.output else { return };
        holds(rest.len() <= *length, "the rest of an answer is a part of it");
        let mut sending = self.quic.send_stream(id);
        let written = loop {
            match sending.write_chunks(core::slice::from_mut(rest)) {
                Ok(_) if rest.is_empty() => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        stream.output = match written {
            Err(WriteError::Blocked) => return self.change(id, cx, |_| {}),
            Ok(()) if !*is_last => {
                cx.events.push_back(Event::Ready(key));
                Output::Ready
            }
            Ok(()) if sending.finish().is_ok() => Output::Written(*length),
            Ok(()) | Err(_) => Output::Done,
        };
        self.change(id, cx, |_| {});
    }

    /// Handles the consequence of a mistake of the client.
    fn fail(&mut self, id: StreamId, error: StreamFault, cx: &mut Context<'_>) {
        match error {
            StreamFault::Connection(code, reason) => {
                if cx.settings.protocol == Protocol::Doq {
                    cx.events.push_back(Event::Responded(code));
                }
                self.close(code, reason, cx);
            }
            StreamFault::Cancelled => {
                self.reset(id, cx.codes().cancelled, cx);
                self.count_cancel(cx);
            }
            StreamFault::Stream(code) => self.reset(id, code, cx),
            StreamFault::Refused(refusal) => self.refuse(id, &refusal, cx),
            StreamFault::Load => self.overload(cx),
        }
    }

    /// Answers a request of HTTP with a status and a text.
    fn refuse(&mut self, id: StreamId, refusal: &doh::Refusal, cx: &mut Context<'_>) {
        cx.events.push_back(Event::Responded(u32::from(refusal.status)));
        // RFC 9114 §4.1: the client may stop sending after a response that does not need the whole request.
        let _ = self.quic.recv_stream(id).stop(cx.codes().no_error.into());
        self.change(id, cx, |stream| stream.input = Input::Ended);
        self.send(id, h3::refusal(refusal), true, cx);
    }

    /// Ends both sides of a stream.
    fn reset(&mut self, id: StreamId, code: u32, cx: &mut Context<'_>) {
        let _ = self.quic.recv_stream(id).stop(code.into());
        if id.dir() == Dir::Bi {
            let _ = self.quic.send_stream(id).reset(code.into());
        }
        self.change(id, cx, |stream| {
            stream.input = Input::Ended;
            stream.output = Output::Done;
        });
    }

    fn on_stopped(&mut self, id: StreamId, code: u64, cx: &mut Context<'_>) {
        let Some(stream) = self.streams.get(&id) else { return };
        if !stream.is_arriving() && matches!(stream.output, Output::Awaited | Output::Ready) {
            cx.events.push_back(Event::Cancelled(self.key(id)));
        }
        self.reset(id, u32::try_from(code).unwrap_or(cx.codes().cancelled), cx);
        self.count_cancel(cx);
    }

    /// Counts a cancelled query. Closes the connection of a client that does little else (CVE-2023-44487).
    fn count_cancel(&mut self, cx: &mut Context<'_>) {
        const SPAN: Duration = Duration::from_secs(1);
        holds(self.cancels.0 <= cx.now, "time does not go backwards");
        if cx.now.saturating_duration_since(self.cancels.0) >= SPAN {
            self.cancels = (cx.now, 0);
        }
        self.cancels.1 += 1;
        if self.cancels.1 > CANCELS_MAX {
            self.overload(cx);
        }
    }

    fn end_slow_stream(&mut self, id: StreamId, cx: &mut Context<'_>) {
        let Some(stream) = self.streams.get(&id) else { return };
        match (&stream.input, cx.settings.protocol) {
            (Input::Ended, _) => {}
            (Input::Complete, _) => {
                let _ = self.quic.recv_stream(id).stop(cx.codes().no_error.into());
                self.change(id, cx, |stream| stream.input = Input::Ended);
            }
            (Input::New | Input::Arriving(_), Protocol::Http3) => self.refuse(id, &doh::Refusal::TOO_SLOW, cx),
            (Input::New | Input::Arriving(_), Protocol::Doq) => self.reset(id, cx.codes().cancelled, cx),
        }
    }

    /// Sets the deadline for the rest of a stream. The critical streams of HTTP/3 never end.
    fn add_deadline(&mut self, id: StreamId, cx: &Context<'_>) {
        let streams = &self.streams;
        let is_open = |id: &StreamId| streams.get(id).is_some_and(|stream| !matches!(stream.input, Input::Ended));
        if id.dir() == Dir::Uni || !is_open(&id) {
            return;
        }
        if self.deadlines.len() > 2 * streams.len() + 16 {
            self.deadlines.retain(|(_, id)| is_open(id));
        }
        self.deadlines.push_back((cx.now + cx.settings.read, id));
        holds(
            self.deadlines.len() <= 2 * streams.len() + 17,
            "the deadlines are those of the open streams, and few others",
        );
    }

    /// Changes a stream, counts its memory, and removes it if it is done.
    fn change(&mut self, id: StreamId, cx: &mut Context<'_>, change: impl FnOnce(&mut Stream)) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        change(stream);
        let before = stream.cost;
        holds(before <= self.held, "the memory of a stream is part of that of the connection");
        stream.cost = if stream.is_done() { 0 } else { stream.current_cost() };
        self.held = self.held - before + stream.cost;
        if stream.is_done() {
            self.streams.remove(&id);
            if self.streams.is_empty() {
                self.streams.shrink_to(KEPT_STREAMS);
            }
        }
        holds(!self.streams.is_empty() || self.held == 0, "a connection without streams holds no memory");
        let ended = self.streams_most.saturating_sub(self.streams.len().max(ENDED_STREAMS_FREE)) * ENDED_STREAM_COST;
        if self.account.as_mut().is_some_and(|account| !account.hold(self.held + ended)) {
            self.overload(cx);
        }
    }

    fn overload(&mut self, cx: &mut Context<'_>) {
        if !self.quic.is_closed() {
            cx.events.push_back(Event::LimitReached(Limit::Load));
            self.close(cx.codes().excessive_load, "too many resources in use", cx);
        }
    }

    /// Tells the client that no further queries are answered.
    pub(crate) fn announce_end(&mut self) {
        holds(self.requests <= 1 << 60, "a stream ID has 62 bits");
        // All requests that the client has sent so far are served. Stream IDs of clients are multiples of four.
        self.write_control(&h3::goaway(4 * self.requests));
    }

    pub(crate) fn close(&mut self, code: u32, reason: &'static str, cx: &mut Context<'_>) {
        self.quic.close(cx.now, code.into(), Bytes::from_static(reason.as_bytes()));
        holds(self.quic.is_closed(), "a connection that is closed stays closed");
        self.forget(cx);
    }

    /// Frees everything of a connection that has ended, and cancels its queries.
    fn forget(&mut self, cx: &mut Context<'_>) {
        self.open_by = None;
        self.deadlines = VecDeque::new();
        for (id, stream) in std::mem::take(&mut self.streams) {
            if !stream.is_arriving() && matches!(stream.output, Output::Awaited | Output::Ready) {
                let key = QueryKey { connection: self.handle.0, serial: self.serial, stream: id };
                cx.events.push_back(Event::Cancelled(key));
            }
        }
        self.held = 0;
        self.account = None;
        holds(self.current_phase() == Phase::Open, "a connection that has ended is in no handshake");
    }
}

/// Capacity of the table of streams that an idle connection keeps.
const KEPT_STREAMS: usize = 3;

/// Reason why reading from a stream stopped.
enum Stopped {
    /// More bytes must arrive.
    Blocked,
    /// The client has ended the stream.
    End,
    /// The client has reset the stream.
    Reset,
    /// The stream is of no interest.
    Ignored,
}

/// Handles the reset of a stream. A query that is not complete will never be.
fn on_reset(stream: &mut Stream, settings: &Settings) -> Result<Option<Bytes>, StreamFault> {
    if stream.is_uni {
        return stream.end(settings);
    }
    let is_arriving = stream.is_arriving();
    stream.input = Input::Ended;
    if is_arriving { Err(StreamFault::Cancelled) } else { Ok(None) }
}
