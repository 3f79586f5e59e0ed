//! [`Io`] on tokio: clock, timers, random numbers, log and network I/O of one thread.

use std::cell::RefCell;
use std::fmt::Arguments;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::log::{Level, Source};
use engine::streams::{ByteListener, ByteStream, Dial, Listen};
use engine::{
    Clock, Exchange, ExchangeError, ExchangeReply, Fetch, FetchError, Instant, Io, LocalFuture, OnMessage, Transport,
};
use metrics::{Counters, Registry};
use quic::Protocol;
use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng};
use tokio::time::timeout_at;
use transport::{MonotonicClock, byte_streams};

use crate::client::replies::{Replies, ReplyBudget};
use crate::client::{HttpsClient, QuicClient, StreamClient, UdpClient, fetch, transfer};
use crate::grpc::GrpcClient;
use crate::log::log_queue;

/// Tokio implementation of [`Io`] for the tasks of one thread.
pub struct TokioIo {
    udp: UdpClient,
    streams: StreamClient,
    https: HttpsClient,
    quic: QuicClient,
    grpc: GrpcClient,
    random: Rc<RefCell<StdRng>>,
    counters: Counters,
}

impl TokioIo {
    /// Creates the implementation for the current thread. It uses the thread's runtime and counts in `registry`.
    #[must_use]
    pub fn new(registry: &Registry) -> TokioIo {
        TokioIo::within(Arc::default(), registry)
    }

    /// Creates the implementation for one of several threads that share a budget for replies.
    #[allow(clippy::expect_used, reason = "a system without random numbers can ask no upstream safely")]
    pub(crate) fn within(budget: Arc<ReplyBudget>, registry: &Registry) -> TokioIo {
        let random = StdRng::try_from_rng(&mut SysRng).expect("the system gives random numbers");
        let random = Rc::new(RefCell::new(random));
        let message_ids = || {
            let random = Rc::clone(&random);
            Box::new(move || random.borrow_mut().random())
        };
        let replies = &Replies::new(budget, registry);
        let http3 = QuicClient::new(Protocol::Http3, message_ids(), replies);
        TokioIo {
            udp: UdpClient::new(message_ids(), replies),
            streams: StreamClient::new(message_ids(), replies),
            https: HttpsClient::new(message_ids(), http3, replies),
            quic: QuicClient::new(Protocol::Doq, message_ids(), replies),
            grpc: GrpcClient::new(replies),
            random,
            counters: registry.counters(),
        }
    }
}

impl Io for TokioIo {
    fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    fn since_1970(&self) -> Duration {
        MonotonicClock.since_1970()
    }

    fn sleep_until(&self, at: Instant) -> LocalFuture<'_, ()> {
        Box::pin(tokio::time::sleep_until(MonotonicClock::tokio_instant(at)))
    }

    fn random(&self) -> u64 {
        self.random.borrow_mut().random()
    }

    fn log(&self, level: Level, source: Source<'_>, message: Arguments<'_>) {
        log_queue().report(level, source, message);
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn fetch<'a>(&'a self, fetch: Fetch<'a>) -> LocalFuture<'a, Result<u16, FetchError>> {
        Box::pin(async move {
            let answer = timeout_at(MonotonicClock::tokio_instant(fetch.until), fetch::status(fetch)).await;
            answer.unwrap_or(Err(FetchError::Timeout))
        })
    }

    fn exchange<'a>(&'a self, exchange: Exchange<'a>) -> LocalFuture<'a, Result<ExchangeReply, ExchangeError>> {
        match exchange.over {
            Transport::Udp => Box::pin(self.udp.exchange(exchange)),
            Transport::Grpc => Box::pin(self.grpc.exchange(exchange)),
            Transport::Https => Box::pin(self.https.exchange(exchange)),
            Transport::Quic => Box::pin(self.quic.exchange(exchange)),
            // Upstreams over HTTP/3 are found over HTTPS.
            Transport::Tcp | Transport::Https3 => Box::pin(self.streams.exchange(exchange)),
        }
    }

    fn exchange_all<'a>(
        &'a self,
        exchange: Exchange<'a>,
        on_message: OnMessage<'a>,
    ) -> LocalFuture<'a, Result<(), ExchangeError>> {
        let id = self.random.borrow_mut().random();
        Box::pin(transfer(exchange, id, on_message))
    }

    fn connect<'a>(&'a self, dial: Dial<'a>) -> LocalFuture<'a, io::Result<Box<dyn ByteStream>>> {
        Box::pin(byte_streams::connect(dial))
    }

    fn listen(&self, listen: Listen<'_>) -> io::Result<Box<dyn ByteListener>> {
        byte_streams::listen(listen)
    }
}
