//! Exchanges with upstreams: the attempts for one query, and the health probes.

use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use engine::log::Level;
use engine::{
    Exchange, ExchangeError, ExchangeReply, Failure, Instant, Io, Query, Resolved, Share, ShareError, Transport,
};
use host::planted::{Bug, is_planted};
use upstream::{Action, Attempts, Decision, Protocol};
use wire::{EdeCode, Rcode, Reply, Type};

use super::SOURCE;
use super::outage::OVER_TCP;
use super::stanza::{Stanza, Upstream};
use crate::shared::upstream_options::{failure, notify_observers};

/// Time to wait for the response to a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time after which an unanswered UDP query is sent once more: longer than most responses take, and shorter than the
/// retry interval of clients.
const RETRANSMIT_AFTER: Duration = Duration::from_millis(400);

/// One query as it is sent to upstreams.
#[derive(Clone, Copy)]
pub(super) struct Sending<'a> {
    pub(super) query: &'a Query,
    pub(super) bytes: &'a [u8],
    /// The query as encrypted upstreams get it, if it is padded for them.
    pub(super) padded: Option<&'a [u8]>,
    pub(super) until: Instant,
    pub(super) io: &'a dyn Io,
}

impl Stanza {
    /// Takes one of the `max_concurrent` slots. Fails with REFUSED if none is free, or none for this client.
    pub(super) fn acquire_permit(&self, query: &Query, io: &dyn Io) -> Result<Option<Share>, Failure> {
        let Some(slots) = &self.slots else { return Ok(None) };
        let client = query.peer.address.ip();
        slots.acquire(client, None).map(Some).map_err(|error| {
            io.counters().count(self.metrics.rejected);
            let limit = slots.limit();
            let (cause, text) = match error {
                ShareError::Full => (
                    format!("concurrent queries exceeded maximum {limit}"),
                    "too many queries wait for upstreams (max_concurrent)",
                ),
                // Without a destination, none is crowded.
                ShareError::Crowded | ShareError::Greedy => (
                    format!("concurrent queries of one client exceeded its share of maximum {limit}"),
                    "too many queries of this client wait for upstreams (max_concurrent)",
                ),
            };
            Failure::refused(EdeCode::OTHER, cause).with_text(text)
        })
    }

    /// Queries the upstreams. The boolean is true if the next line should be tried instead of using the response.
    pub(super) async fn forward(&self, query: &Query, io: &dyn Io) -> (Resolved, bool) {
        match self.attempt(query, io).await {
            Ok(reply) => {
                let continues = self.next.contains(&reply.rcode()) || (self.next_on_nodata && reply.is_nodata());
                (Resolved::Reply(reply), continues)
            }
            Err(failure) => (Resolved::Fail(failure), false),
        }
    }

    async fn attempt(&self, query: &Query, io: &dyn Io) -> Result<Reply, Failure> {
        let start = io.now();
        let question = (query.name(), query.qtype, query.qclass);
        let (udp_size, dnssec_ok) = (query.onward_udp_size(), query.dnssec_ok);
        let build = |padding: Option<_>| {
            let options = query.onward_options().chain(padding);
            upstream::outgoing(question, query.flags(), udp_size, dnssec_ok, options)
        };
        let bytes = build(None);
        let padded = self.pads_queries.then(|| build(Some(upstream::padding(bytes.len()))));
        let (bytes, padded) = (bytes.as_slice(), padded.as_deref());
        if self.ask_all {
            let until = start + self.limits.each.min(self.limits.total);
            return Box::pin(self.race(Sending { query, bytes, padded, until, io })).await;
        }
        let order = self.policy.order(self.upstreams.len(), io.random());
        let mut attempts = Attempts::new(self.limits, order, start);
        if self.upstreams.iter().all(|upstream| upstream.health.is_suspected()) {
            attempts = attempts.once_each();
        }
        let mut failed = Failure::servfail(EdeCode::NO_REACHABLE_AUTHORITY, "no healthy proxies");
        loop {
            let health = |at: usize| &self.upstreams[at].health;
            let (upstream, until) = match attempts.next(io.now(), io.random(), health) {
                Action::Query { upstream, until, is_last_resort } => {
                    if is_last_resort {
                        io.counters().count(self.metrics.all_down);
                    }
                    (&self.upstreams[upstream], until)
                }
                Action::AllDown => {
                    io.counters().count(self.metrics.all_down);
                    return Err(failed);
                }
                Action::GiveUp => return Err(failed),
            };
            query.set_upstream(upstream.address);
            self.upstream_label.set(query, || upstream.address.to_string());
            match self.exchange(upstream, &Sending { query, bytes, padded, until, io }).await {
                Ok(reply) => {
                    let failover = |rcode: Rcode| self.failover.contains(&rcode);
                    if attempts.judge(&reply, failover) == Decision::Accept {
                        return Ok(reply);
                    }
                }
                Err(error) => {
                    attempts.failed();
                    self.record_failure(upstream, io);
                    failed = failure(upstream.address, self.transport(query, upstream).label(), &error);
                    let (name, qtype, address) = (query.name(), query.qtype, upstream.address);
                    io.log(Level::Debug, SOURCE, format_args!("{name} {qtype}: {address}: {error}"));
                }
            }
        }
    }

    /// Records a failed exchange. The upstream is checked from now on.
    pub(super) fn record_failure(&self, upstream: &Upstream, io: &dyn Io) {
        if self.limits.max_fails > 0 {
            upstream.health.suspect();
        }
        io.counters().count(upstream.metrics.failures);
        upstream.forgery.note_failure(io.now());
    }

    /// Queries one upstream. With `prefer_udp`, a truncated response is retried over TCP.
    pub(super) async fn exchange(&self, upstream: &Upstream, sending: &Sending<'_>) -> Result<Reply, ExchangeError> {
        let over = self.transport(sending.query, upstream);
        let is_transfer = matches!(sending.query.qtype, Type::AXFR | Type::IXFR);
        if over == Transport::Quic && is_transfer {
            // The response may have several messages, of which only the first would be forwarded.
            return upstream::answered_with(sending.bytes, Rcode::NOTIMP).ok_or(ExchangeError::Unreadable);
        }
        let reply = self.exchange_over(over, upstream, sending).await?;
        if reply.is_truncated() && self.prefer_udp && over == Transport::Udp && !is_planted(Bug::KeepsTruncated) {
            return Box::pin(self.exchange_over(Transport::Tcp, upstream, sending)).await;
        }
        Ok(reply)
    }

    /// Queries one upstream over this transport, and keeps the error for people.
    async fn exchange_over(
        &self,
        over: Transport,
        upstream: &Upstream,
        sending: &Sending<'_>,
    ) -> Result<Reply, ExchangeError> {
        let outcome = self.exchange_message(over, upstream, sending).await;
        if let Err(error) = &outcome {
            // Such a query follows a truncated answer, or comes from a client over TCP.
            let differs = over == Transport::Tcp && matches!(upstream.protocol, Protocol::Dns) && !self.force_tcp;
            upstream.outage.failed(sending.io.now(), if differs { OVER_TCP } else { "" }, error);
        }
        outcome
    }

    async fn exchange_message(
        &self,
        over: Transport,
        upstream: &Upstream,
        sending: &Sending<'_>,
    ) -> Result<Reply, ExchangeError> {
        let Sending { bytes, padded, .. } = *sending;
        let query = padded.filter(|_| upstream.protocol.is_encrypted()).unwrap_or(bytes);
        if over == Transport::Udp {
            return self.exchange_datagrams(upstream, sending).await;
        }
        self.exchange_once((over, query), upstream, sending).await
    }

    /// Queries an upstream with this message.
    pub(super) async fn exchange_once(
        &self,
        (over, query): (Transport, &[u8]),
        upstream: &Upstream,
        sending: &Sending<'_>,
    ) -> Result<Reply, ExchangeError> {
        let Sending { until, io, .. } = *sending;
        let sent = io.now();
        let exchange = Exchange {
            tls: upstream.tls.as_ref(),
            method: self.method,
            http3: self.http3,
            retransmit_after: Some(RETRANSMIT_AFTER),
            unwanted: Some(upstream.forgery.replies()),
            ..Exchange::new(upstream.address, over, query, until, self.connections)
        };
        let outcome = io.exchange(exchange).await;
        notify_observers(&self.observers, sending.query, (exchange, sent, &outcome), io);
        if self.count_unwanted(upstream, io) == Suspicion::Raised {
            // This reply may be the one that was forged.
            return Err(ExchangeError::Unreadable);
        }
        let ExchangeReply { reply, reused, .. } = outcome?;
        let counters = io.counters();
        counters.count(upstream.metrics.connection(over, upstream.protocol, reused));
        if let Some(duration) = upstream.metrics.duration.histogram(reply.rcode()) {
            let taken = io.now().since(sent).as_nanos();
            counters.observe(duration, u64::try_from(taken).unwrap_or(u64::MAX));
        }
        let readable =
            if over == Transport::Udp { upstream::readable_datagram(reply) } else { upstream::readable(reply) };
        readable.ok_or(ExchangeError::Unreadable)
    }

    pub(super) fn transport(&self, query: &Query, upstream: &Upstream) -> Transport {
        match upstream.protocol {
            Protocol::Https => Transport::Https,
            Protocol::Quic => Transport::Quic,
            Protocol::Tls => Transport::Tcp,
            Protocol::Dns if self.force_tcp => Transport::Tcp,
            Protocol::Dns if self.prefer_udp => Transport::Udp,
            // Clients on streams get answers of any length.
            Protocol::Dns if query.peer.transport.is_stream() => Transport::Tcp,
            Protocol::Dns => query.peer.transport,
        }
    }

    /// Probes an upstream while it is suspected to be down.
    pub(super) async fn watch_health(self: Arc<Self>, upstream: usize, io: Rc<dyn Io>) {
        let upstream = &self.upstreams[upstream];
        let mut down_since = None;
        loop {
            io.sleep_until(io.now() + self.health_check.max(PROBE_INTERVAL_MIN)).await;
            if upstream.health.is_suspected() {
                let outcome = self.probe(upstream, &*io).await;
                self.report_change(upstream, &mut down_since, &outcome, &*io);
            }
        }
    }

    /// Logs that an upstream went down, or is up again.
    fn report_change(
        &self,
        upstream: &Upstream,
        down_since: &mut Option<Instant>,
        outcome: &Result<(), ExchangeError>,
        io: &dyn Io,
    ) {
        let (address, now, fails) = (upstream.address, io.now(), self.limits.max_fails);
        match (outcome, *down_since) {
            (Err(error), None) if upstream.health.is_down(fails) => {
                *down_since = Some(now);
                upstream.outage.changed(Some(now));
                let failed = fails + 1;
                let message = format_args!("upstream {address} is down: {failed} health checks failed: {error}");
                io.log(Level::Warning, SOURCE, message);
            }
            (Ok(()), Some(since)) => {
                *down_since = None;
                upstream.outage.changed(None);
                let after = now.since(since).as_secs_f32();
                io.log(Level::Info, SOURCE, format_args!("upstream {address} is up again after {after:.1} s"));
            }
            _ => {}
        }
    }

    async fn probe(&self, upstream: &Upstream, io: &dyn Io) -> Result<(), ExchangeError> {
        let over = match upstream.protocol {
            Protocol::Https => Transport::Https,
            Protocol::Quic => Transport::Quic,
            Protocol::Dns if !self.force_tcp => Transport::Udp,
            Protocol::Dns | Protocol::Tls => Transport::Tcp,
        };
        let until = io.now() + PROBE_TIMEOUT;
        let exchange = Exchange {
            tls: upstream.tls.as_ref(),
            method: self.method,
            http3: self.http3,
            unwanted: Some(upstream.forgery.replies()),
            ..Exchange::new(upstream.address, over, &self.probe, until, self.connections)
        };
        let outcome = io.exchange(exchange).await.map(drop);
        self.count_unwanted(upstream, io);
        upstream.outage.probed(&outcome);
        match &outcome {
            Ok(()) => io.log(Level::Debug, SOURCE, format_args!("health check of {}: answered", upstream.address)),
            Err(error) => io.log(Level::Debug, SOURCE, format_args!("health check of {}: {error}", upstream.address)),
        }
        if outcome.is_ok() {
            upstream.health.probe_answered();
        } else {
            upstream.health.probe_failed();
            io.counters().count(upstream.metrics.probe_failures);
        }
        outcome
    }
}

/// Minimum interval between probes, even if the Corefile sets a shorter one.
const PROBE_INTERVAL_MIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the state of a query that waits for an upstream. Thousands may wait at once, so what few of them need
    /// is in boxes.
    const STATE_MAX: usize = 1024;

    fn size_of_state<F: Future>(_: impl FnOnce(&'static Stanza, &'static Query, &'static dyn Io) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_state_of_a_waiting_query_is_small() {
        let size = size_of_state(Stanza::forward);
        assert!(size <= STATE_MAX, "{size} bytes");
    }
}

/// Outcome of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// No or few replies without a query.
    Low,
    /// The threshold has been reached now, and the caches have been emptied.
    Raised,
}

impl Stanza {
    /// Counts the replies that came without a query since the last exchange with an upstream, on any worker. Takes no
    /// lock if there are none. Empties the caches above at the threshold.
    pub(super) fn count_unwanted(&self, upstream: &Upstream, io: &dyn Io) -> Suspicion {
        let Some(replies @ [_, id, question]) = upstream.forgery.replies().take() else { return Suspicion::Low };
        for (reason, count) in replies.into_iter().enumerate() {
            io.counters().add(upstream.metrics.unwanted(reason), count);
        }
        let guesses = id.saturating_add(question);
        if guesses == 0 || !upstream.forgery.is_raised(io.now(), guesses) {
            return Suspicion::Low;
        }
        let (address, entries) = (upstream.address, self.caches.flush());
        let message = format_args!(
            "many replies from upstream {address} match no query, possibly an attempt to forge one: {entries} cached \
             answers dropped"
        );
        io.log(Level::Warning, SOURCE, message);
        Suspicion::Raised
    }
}
