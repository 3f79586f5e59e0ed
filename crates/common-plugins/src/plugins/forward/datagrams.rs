//! Exchanges over UDP, with what makes a reply harder to forge: DNS cookies, and random case of names.
//!
//! Off by default. A cookie is the outer layer, so that each query with random case has it too.

use engine::{ExchangeError, Transport};
use upstream::{CaseCheck, CaseVerdict, CookiePath, CookieVerdict};
use wire::Reply;

use super::exchange::Sending;
use super::stanza::{Stanza, Upstream};

/// Queries over UDP before TCP, if the upstream answers BADCOOKIE to each (RFC 7873 §5.3).
const COOKIE_TRIES: usize = 3;

impl Stanza {
    /// Queries an upstream over UDP. What most queries do without is in boxes.
    pub(super) async fn exchange_datagrams(
        &self,
        upstream: &Upstream,
        sending: &Sending<'_>,
    ) -> Result<Reply, ExchangeError> {
        let now = sending.io.now();
        if self.sends_cookies {
            return Box::pin(self.exchange_with_cookies(upstream, sending)).await;
        }
        if self.use_caps_for_id && upstream.case.is_kept(now) {
            return Box::pin(self.exchange_with_random_case(upstream, sending)).await;
        }
        self.exchange_once((Transport::Udp, sending.bytes), upstream, sending).await
    }

    /// Queries an upstream over UDP with a DNS cookie.
    async fn exchange_with_cookies(&self, upstream: &Upstream, sending: &Sending<'_>) -> Result<Reply, ExchangeError> {
        let Sending { bytes, io, .. } = *sending;
        let now = || io.now();
        for _ in 0..COOKIE_TRIES {
            let cookie = upstream.cookies.next(now(), io.random());
            let Some(cookie) = cookie else { return self.exchange_named(upstream, sending).await };
            let query = upstream::with_cookie(bytes, &cookie);
            let reply = self.exchange_named(upstream, &Sending { bytes: &query, ..*sending }).await?;
            match upstream.cookies.judge(now(), &reply, CookiePath::Datagram) {
                CookieVerdict::Accept => return Ok(reply),
                CookieVerdict::Repeat => {}
                CookieVerdict::Distrust => {
                    io.counters().count(upstream.metrics.cookie_failures);
                    break;
                }
            }
        }
        let cookie = upstream.cookies.next(now(), io.random()).unwrap_or_default();
        let query = upstream::with_cookie(bytes, &cookie);
        let reply = self.exchange_once((Transport::Tcp, &query), upstream, sending).await?;
        _ = upstream.cookies.judge(now(), &reply, CookiePath::Stream);
        Ok(reply)
    }

    /// Queries an upstream over UDP, with the name in random case if that is set.
    async fn exchange_named(&self, upstream: &Upstream, sending: &Sending<'_>) -> Result<Reply, ExchangeError> {
        let now = sending.io.now();
        if self.use_caps_for_id && upstream.case.is_kept(now) {
            return self.exchange_with_random_case(upstream, sending).await;
        }
        self.exchange_once((Transport::Udp, sending.bytes), upstream, sending).await
    }

    /// Queries an upstream over UDP with a name in random case. Repeats the query if the reply has another one.
    async fn exchange_with_random_case(
        &self,
        upstream: &Upstream,
        sending: &Sending<'_>,
    ) -> Result<Reply, ExchangeError> {
        let Sending { bytes, io, .. } = *sending;
        let mut check = CaseCheck::default();
        loop {
            let query = upstream::with_random_case(bytes, || io.random());
            let reply = self.exchange_once((Transport::Udp, &query), upstream, sending).await?;
            let verdict = check.judge(&query, &reply);
            if verdict != CaseVerdict::Kept {
                io.counters().count(upstream.metrics.case_changes);
            }
            match verdict {
                CaseVerdict::Kept => return Ok(reply.with_case_of(bytes)),
                CaseVerdict::Changed => {
                    upstream.case.note_changed(io.now());
                    return Ok(reply.with_case_of(bytes));
                }
                CaseVerdict::Forged => return Err(ExchangeError::Unreadable),
                CaseVerdict::Repeat => {}
            }
        }
    }
}
