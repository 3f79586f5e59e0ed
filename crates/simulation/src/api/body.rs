//! Bodies of responses, which are sent in pieces and may break.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::future::Future as _;
use std::io;
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use tokio::time::{Sleep, sleep, sleep_until};

use super::content::{Content, Piece};
use super::{Api, Condition, State};
use crate::counts::What;
use crate::objects::Kind;

/// Longest pause between two pieces of a slow response.
const PAUSE_MAX: u64 = 2500;

/// Body of a response.
pub(crate) struct ApiBody {
    api: Api,
    server: usize,
    /// Generation of the connections of the server that this one is of.
    generation: u64,
    kind: Kind,
    content: Content,
    /// Number of pieces until the connection breaks.
    pieces_left: Option<u64>,
    pause: Option<Pin<Box<Sleep>>>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl ApiBody {
    pub(super) fn new(api: &Api, server: usize, kind: Kind, content: Content) -> ApiBody {
        let mut state = api.lock();
        let is_cut = state.servers[server].condition == Condition::Cutting;
        let pieces_left = is_cut.then(|| state.random.below(4));
        let generation = state.servers[server].generation;
        drop(state);
        ApiBody { api: api.clone(), server, generation, kind, content, pieces_left, pause: None, timer: None }
    }

    /// Returns the next piece, `None` at the end, or waits.
    fn next(&mut self, state: &mut State) -> Poll<Option<Piece>> {
        let is_stalled = state.servers[self.server].condition == Condition::Stalled;
        match &mut self.content {
            Content::Pieces(pieces, end) => match pieces.pop_front() {
                Some(piece) => Poll::Ready(Some(piece)),
                None => {
                    let effects = core::mem::take(end);
                    effects.into_iter().for_each(|effect| state.deliver(self.kind, effect));
                    Poll::Ready(None)
                }
            },
            Content::Watch(watch) => {
                if watch.is_silent(is_stalled, state) {
                    return Poll::Pending;
                }
                if watch.pieces.is_empty() && watch.is_over() {
                    return Poll::Ready(None);
                }
                if watch.pieces.is_empty() {
                    watch.fill(state, self.server, self.kind);
                }
                watch.pieces.pop_front().map_or(Poll::Pending, |piece| Poll::Ready(Some(piece)))
            }
        }
    }

    /// Waits for the pause before the next piece.
    fn is_pausing(&mut self, context: &mut Context<'_>) -> bool {
        let is_pausing = self.pause.as_mut().is_some_and(|pause| pause.as_mut().poll(context).is_pending());
        if !is_pausing {
            self.pause = None;
        }
        is_pausing
    }

    /// Arranges to be polled when the watch has something to do.
    fn wait(&mut self, context: &mut Context<'_>) {
        if let Content::Watch(watch) = &self.content {
            let mut timer = Box::pin(sleep_until(watch.next()));
            if timer.as_mut().poll(context).is_ready() {
                // Stalled: only a change wakes it.
                return;
            }
            self.timer = Some(timer);
        }
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let api = this.api.clone();
        let mut state = api.lock();
        if state.servers[this.server].generation != this.generation || this.pieces_left == Some(0) {
            state.counts.count(What::Broken);
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset"))));
        }
        state.wakers.push(context.waker().clone());
        if this.is_pausing(context) {
            return Poll::Pending;
        }
        let Poll::Ready(next) = this.next(&mut state) else {
            this.wait(context);
            return Poll::Pending;
        };
        let Some(Piece { bytes, effects }) = next else { return Poll::Ready(None) };
        effects.into_iter().for_each(|effect| state.deliver(this.kind, effect));
        this.pieces_left = this.pieces_left.map(|left| left - 1);
        if state.servers[this.server].condition == Condition::Slow {
            let most = Duration::from_millis(state.random.below(PAUSE_MAX));
            this.pause = Some(Box::pin(sleep(most)));
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}
