//! Sends queries and responses to a collector as dnstap messages over Frame Streams.
//!
//! Queries append messages to a bounded buffer, and a background job sends them. Messages that do not fit are dropped
//! and counted, so that queries never wait.

mod collector;
mod handshake;
mod manifest;
mod message;
mod sender;

use core::time::Duration;
use std::sync::Arc;

use config::setup::{Part, Setup, SetupError};
use engine::{
    ExchangeObserver, Hooks, ObservedExchange, PeerInfo, Plugin, Query, Response, Transport, Verdict, Worker,
};
use metrics::{Kind as MetricKind, Metric};
use wire::{Header, MessageBuf, Opt};

pub(crate) use manifest::MANIFEST;

use crate::shared::record_queue::Outlet;
use common_plugins::shared::log_format::{Format, Seen};
use common_plugins::shared::option_helpers::HostName;
use manifest::Config;
use message::{Kind, Message, Protocol, Sender, write_frame};
use plugin::PerSite;

static LOST: Metric = Metric {
    name: "portolan_dnstap_lost_messages_total",
    help: "Messages lost because the queue was full or the connection broke.",
    kind: MetricKind::Counter,
    labels: &[],
};

/// Default software version in messages.
const VERSION: &str = concat!("Portolan-", env!("CARGO_PKG_VERSION"));
/// Number of messages that may wait for each unit of QUEUE.
const MESSAGES_PER_QUEUE: usize = 10_000;
/// Assumed size of a message in bytes: several times that of a query or a small response with all its fields.
const BYTES_PER_MESSAGE: usize = 1024;
/// Number of buffered bytes that are sent at once: some hundred messages.
const ENOUGH: usize = 64 << 10;

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let lost = setup.registry.counter(&LOST, &[]);
    let labels = setup.labels();
    let host = HostName::of(setup);
    let mut taps = Vec::new();
    for mut config in configs {
        let bytes_max = config.queue * MESSAGES_PER_QUEUE * BYTES_PER_MESSAGE;
        let outlet = Arc::new(Outlet::new(bytes_max, ENOUGH));
        let sender = sender::of(&config, Arc::clone(&outlet), lost, setup)?;
        setup.requests.graceful_jobs.push(Box::new(move |io, ending| Box::pin(sender.run(io, ending))));
        if let Some(extra) = &mut config.extra {
            extra.bind(&labels);
        }
        let identity = config.identity.unwrap_or_else(|| host.clone());
        let version = config.version.unwrap_or_else(|| VERSION.to_owned());
        taps.push(Tap { outlet, full: config.full, identity, version, extra: config.extra });
    }
    let taps: Arc<[Tap]> = taps.into();
    let over_tls = PerSite::new(setup.block, |site| site.server.starts_with("tls://"));
    let dnstap = Dnstap { taps: Arc::clone(&taps), over_tls };
    setup.observers().add(Exchanges(taps)).map_err(SetupError::from_error)?;
    Ok(Some(Part::new(dnstap, Hooks::BOTH.with_updates())))
}

/// One `dnstap` line.
struct Tap {
    outlet: Arc<Outlet>,
    /// True if the DNS messages themselves are included.
    full: bool,
    identity: String,
    version: String,
    extra: Option<Format>,
}

impl Tap {
    fn put(&self, message: &Message<'_>, seen: &Seen<'_>) {
        let sender = Sender { identity: self.identity.as_bytes(), version: self.version.as_bytes() };
        let message = Message { bytes: message.bytes.filter(|_| self.full), ..*message };
        self.outlet.put(|frame| {
            write_frame(frame, &sender, |text| self.extra.iter().for_each(|extra| extra.write(text, seen)), &message);
        });
    }
}

/// All `dnstap` lines of a server block.
struct Dnstap {
    taps: Arc<[Tap]>,
    /// True for sites that are served over TLS.
    over_tls: PerSite<bool>,
}

impl Plugin for Dnstap {
    fn on_query(&self, query: &mut Query, _: &mut Response, worker: &mut Worker) -> Verdict {
        let query_time = worker.since_1970();
        query.set_note(u64::try_from(query_time.as_nanos()).unwrap_or(u64::MAX));
        let bytes = if query.is_own() { write_question(query, &mut worker.scratch) } else { &query.packet };
        let message = self.message(Kind::ClientQuery, query, bytes);
        put(&self.taps, &Message { query_time, ..message }, &Seen::unanswered(query));
        Verdict::Pass
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if response.is_dropped() {
            return Verdict::Pass;
        }
        let (query_time, response_time) = (Duration::from_nanos(query.note()), Some(worker.since_1970()));
        let now = worker.now();
        let wanted = self.taps.iter().any(|tap| tap.full);
        let bytes = if wanted { response.finish_copy(query, &mut worker.scratch) } else { &[] };
        let message = self.message(Kind::ClientResponse, query, bytes);
        put(&self.taps, &Message { query_time, response_time, ..message }, &Seen::new(query, response, now));
        Verdict::Pass
    }

    fn rehearse_query(&self, _: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Verdict::Pass
    }

    fn rehearse_response(&self, _: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Verdict::Pass
    }
}

impl Dnstap {
    /// Creates the message for a query or a response of a client. The caller sets the times.
    fn message<'a>(&self, kind: Kind, query: &Query, bytes: &'a [u8]) -> Message<'a> {
        let PeerInfo { address: peer, local, transport, .. } = query.peer;
        let over_tls = self.over_tls.of(query).copied().unwrap_or_default();
        Message {
            kind,
            protocol: protocol(transport, over_tls),
            query_address: Some(peer),
            response_address: Some(local),
            query_time: Duration::ZERO,
            response_time: None,
            bytes: Some(bytes),
        }
    }
}

/// Observer of the exchanges with upstreams.
struct Exchanges(Arc<[Tap]>);

impl ExchangeObserver for Exchanges {
    fn on_exchange(&self, query: &Query, exchange: &ObservedExchange<'_>) {
        let sent = Message {
            kind: Kind::ForwarderQuery,
            protocol: protocol(exchange.over, exchange.encrypted),
            query_address: exchange.local,
            response_address: Some(exchange.to),
            query_time: exchange.sent_since_1970,
            response_time: None,
            bytes: Some(exchange.query),
        };
        let seen = Seen::unanswered(query);
        put(&self.0, &sent, &seen);
        if let Some(reply) = exchange.reply {
            let response_time = Some(exchange.sent_since_1970 + exchange.took);
            put(&self.0, &Message { kind: Kind::ForwarderResponse, response_time, bytes: Some(reply), ..sent }, &seen);
        }
    }
}

fn put(taps: &[Tap], message: &Message<'_>, seen: &Seen<'_>) {
    taps.iter().for_each(|tap| tap.put(message, seen));
}

const fn protocol(over: Transport, encrypted: bool) -> Protocol {
    match over {
        Transport::Udp => Protocol::Udp,
        Transport::Tcp if encrypted => Protocol::Tls,
        Transport::Quic => Protocol::Quic,
        Transport::Https | Transport::Https3 => Protocol::Https,
        // dnstap has no number for gRPC.
        Transport::Tcp | Transport::Grpc => Protocol::Tcp,
    }
}

/// Writes the query that a client would have sent for the subquery of a plugin.
fn write_question<'a>(query: &Query, message: &'a mut MessageBuf) -> &'a [u8] {
    let header = Header { id: query.header().id, flags: query.flags(), ..Header::default() };
    message.start(header, Some((query.name(), query.qtype, query.qclass)));
    let opt = query.opt().map(|opt| Opt { extended_rcode: 0, ..opt });
    message.finish(opt, core::iter::empty())
}
