//! Race of all upstreams (`ask_all`): the first usable response wins, the other exchanges are dropped.

use core::future::poll_fn;
use core::task::{Context, Poll};

use engine::{ExchangeError, Failure, LocalFuture};
use wire::{EdeCode, Rcode, Reply};

use super::exchange::Sending;
use super::stanza::{Stanza, Upstream};
use crate::shared::upstream_options::failure;

/// An exchange in flight and its upstream.
type Running<'a> = (&'a Upstream, LocalFuture<'a, Result<Reply, ExchangeError>>);

impl Stanza {
    /// Queries all upstreams that are up, or all of them if every one is down. A failure code of one upstream is
    /// returned only if no other upstream has a better response.
    pub(super) async fn race(&self, sending: Sending<'_>) -> Result<Reply, Failure> {
        let is_up = |upstream: &&Upstream| !upstream.health.is_down(self.limits.max_fails);
        let is_any_up = self.upstreams.iter().any(|upstream| is_up(&upstream));
        let candidates = self.upstreams.iter().filter(|upstream| !is_any_up || is_up(upstream));
        let mut running: Vec<Running<'_>> = candidates
            .map(|upstream| (upstream, Box::pin(async move { self.exchange(upstream, &sending).await }) as _))
            .collect();
        let mut fallback = Err(Failure::servfail(EdeCode::NO_REACHABLE_AUTHORITY, "no healthy proxies"));
        let winner = poll_fn(|context| self.poll_all(&mut running, &mut fallback, sending, context)).await;
        winner.map_or(fallback, Ok)
    }

    /// Polls each exchange. Ready with the first usable response, or with `None` once all have ended without one.
    fn poll_all(
        &self,
        running: &mut Vec<Running<'_>>,
        fallback: &mut Result<Reply, Failure>,
        sending: Sending<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Reply>> {
        let mut at = 0;
        while let Some((upstream, exchange)) = running.get_mut(at) {
            let upstream = *upstream;
            let Poll::Ready(outcome) = exchange.as_mut().poll(context) else {
                at += 1;
                continue;
            };
            drop(running.swap_remove(at));
            match outcome {
                Ok(reply) if is_usable(&reply) => {
                    sending.query.set_upstream(upstream.address);
                    self.upstream_label.set(sending.query, || upstream.address.to_string());
                    return Poll::Ready(Some(reply));
                }
                Ok(reply) => *fallback = Ok(reply),
                Err(error) => self.note_failure(upstream, &error, fallback, sending),
            }
        }
        if running.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }

    fn note_failure(
        &self,
        upstream: &Upstream,
        error: &ExchangeError,
        fallback: &mut Result<Reply, Failure>,
        sending: Sending<'_>,
    ) {
        self.record_failure(upstream, sending.io);
        if fallback.is_err() {
            let transport = self.transport(sending.query, upstream);
            *fallback = Err(failure(upstream.address, transport.label(), error));
        }
    }
}

/// Returns true if a response answers the query: NOERROR or NXDOMAIN.
fn is_usable(reply: &Reply) -> bool {
    matches!(reply.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN)
}
