//! DNS cookies in queries to upstreams (RFC 7873 §5.2, §5.3, RFC 9018).
//!
//! A query has a random client cookie of eight bytes, which a server with cookies returns together with one of its own.
//! Who cannot read the queries cannot forge a reply with it. Servers without cookies ignore the option, so a reply
//! without one counts until the upstream has returned one:
//!
//! ```text
//!              reply with our cookie
//!   Unknown ───────────────────────────► Supported ──┐ a UDP reply without our cookie is not used: the query is
//!    │    ▲                                  │       │ repeated over TCP
//!    │    │   TCP reply without our cookie   │ ◄─────┘
//!    │    └──────────────────────────────────┘
//!    │ FORMERR without a cookie                 15 minutes
//!    └───────────────────────────► Unsupported ────────────► Unknown
//! ```

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use host::Instant;
use host::invariant::holds;
use wire::{HEADER_LEN, OPT_FIXED_LEN, OptionCode, Rcode, Reply, Type, question_end};

/// Length of a client cookie in bytes.
const CLIENT_LEN: usize = 8;
/// Bounds of the length of a server cookie in bytes.
const SERVER_LEN_MIN: usize = 8;
const SERVER_LEN_MAX: usize = 32;
/// Time for which an upstream that fails queries with a cookie gets none.
const UNSUPPORTED_FOR: Duration = Duration::from_secs(15 * 60);

/// Transport of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookiePath {
    /// UDP: anybody may have sent it.
    Datagram,
    /// TCP: only the upstream, or somebody on the path, has sent it.
    Stream,
}

/// Decision about a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieVerdict {
    /// Use it.
    Accept,
    /// Send the query again, with the cookie that the upstream has now, or without one.
    Repeat,
    /// Send the query over TCP: the reply may be forged.
    Distrust,
}

/// Cookies of one upstream, shared by all threads.
#[derive(Debug, Default)]
pub struct CookieJar(Mutex<Jar>);

#[derive(Debug, Default)]
struct Jar {
    client: Option<[u8; CLIENT_LEN]>,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// No reply with a cookie so far.
    #[default]
    Unknown,
    /// The upstream returns cookies; this is its own one.
    Supported(Vec<u8>),
    /// The upstream fails queries with a cookie, until this time at least.
    Unsupported(Instant),
}

impl CookieJar {
    /// Returns the cookie for the next query, or `None` if the upstream should get none. `random` is a new random
    /// number; the first one becomes the client cookie.
    #[must_use]
    pub fn next(&self, now: Instant, random: u64) -> Option<Vec<u8>> {
        let mut jar = self.lock();
        if matches!(jar.state, State::Unsupported(until) if now < until) {
            return None;
        }
        let client = *jar.client.get_or_insert(random.to_be_bytes());
        let server = if let State::Supported(server) = &jar.state { server.as_slice() } else { &[] };
        let is_valid = server.is_empty() || (SERVER_LEN_MIN..=SERVER_LEN_MAX).contains(&server.len());
        holds(is_valid, "a server cookie has 8 to 32 bytes (RFC 7873 §4)");
        Some([&client[..], server].concat())
    }

    /// Decides about the reply to a query with a cookie.
    pub fn judge(&self, now: Instant, reply: &Reply, path: CookiePath) -> CookieVerdict {
        let mut jar = self.lock();
        let cookie = cookie_in(reply);
        let ours = cookie.as_deref().and_then(|cookie| cookie.strip_prefix(&jar.client?[..]));
        if let Some(server) = ours.filter(|server| (SERVER_LEN_MIN..=SERVER_LEN_MAX).contains(&server.len())) {
            jar.state = State::Supported(server.to_vec());
            let is_refused = extended_rcode(reply) == Rcode::BADCOOKIE;
            return if is_refused { CookieVerdict::Repeat } else { CookieVerdict::Accept };
        }
        // Some servers return the client cookie alone. It proves as much about the reply.
        if ours.is_some_and(<[u8]>::is_empty) {
            return CookieVerdict::Accept;
        }
        let is_forged = cookie.is_some() || matches!(jar.state, State::Supported(_));
        match path {
            CookiePath::Datagram if is_forged => return CookieVerdict::Distrust,
            CookiePath::Stream if is_forged => jar.state = State::Unknown,
            _ if reply.rcode() == Rcode::FORMERR => {
                jar.state = State::Unsupported(now + UNSUPPORTED_FOR);
                return CookieVerdict::Repeat;
            }
            _ => {}
        }
        CookieVerdict::Accept
    }

    fn lock(&self) -> MutexGuard<'_, Jar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a cookie to a query from [`outgoing`](crate::outgoing), whose OPT record is the last one.
#[must_use]
pub fn with_cookie(query: &[u8], cookie: &[u8]) -> Vec<u8> {
    let mut query = query.to_vec();
    let length_at = question_end(&query).unwrap_or(HEADER_LEN) + OPT_FIXED_LEN - 2;
    let Some(length) = query.get_mut(length_at..).and_then(|rest| rest.first_chunk_mut::<2>()) else { return query };
    let (Ok(cookie_len), before) = (u16::try_from(cookie.len()), u16::from_be_bytes(*length)) else { return query };
    *length = before.saturating_add(cookie_len + 4).to_be_bytes();
    query.extend_from_slice(&OptionCode::COOKIE.0.to_be_bytes());
    query.extend_from_slice(&cookie_len.to_be_bytes());
    query.extend_from_slice(cookie);
    query
}

/// Returns the cookie option of a reply.
fn cookie_in(reply: &Reply) -> Option<Vec<u8>> {
    let message = reply.message().ok()?;
    let opt = message.records().find(|record| record.rtype() == Type::OPT)?;
    let found = wire::options(opt.rdata()).find(|(code, _)| *code == OptionCode::COOKIE);
    found.map(|(_, cookie)| cookie.to_vec())
}

/// Returns the response code of a reply with the bits in its OPT record.
fn extended_rcode(reply: &Reply) -> Rcode {
    let message = reply.message().ok();
    let opt = message.as_ref().and_then(|message| message.records().find(|record| record.rtype() == Type::OPT));
    let upper = opt.map_or(0, |opt| u16::from(opt.raw_ttl().to_be_bytes()[0]));
    Rcode(upper << 4 | reply.rcode().0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Class, Flags, Name};

    const CLIENT: u64 = 0x0102_0304_0506_0708;
    const SERVER: [u8; 8] = [9; 8];
    const NOW: Instant = Instant::from_nanos(100_000_000_000);

    fn query() -> Vec<u8> {
        let name = Name::from_text("www.test.").unwrap();
        let question = (name.as_ref(), Type::A, Class::IN);
        crate::outgoing(question, Flags::default(), 1232, false, core::iter::empty())
    }

    /// Returns a reply with a response code and an OPT record that has these bytes as a cookie.
    fn reply(rcode: u16, cookie: &[u8]) -> Reply {
        let mut bytes = if cookie.is_empty() { query() } else { with_cookie(&query(), cookie) };
        let upper_at = question_end(&bytes).unwrap() + 5;
        (bytes[2], bytes[3], bytes[upper_at]) = (0x80, rcode.to_be_bytes()[1] & 0xf, (rcode >> 4).to_be_bytes()[1]);
        Reply::parse(bytes).unwrap()
    }

    fn ours() -> Vec<u8> {
        [&CLIENT.to_be_bytes()[..], &SERVER].concat()
    }

    /// Returns a jar of an upstream that has returned a cookie.
    fn supported() -> CookieJar {
        let jar = CookieJar::default();
        assert_eq!(jar.next(NOW, CLIENT), Some(CLIENT.to_be_bytes().to_vec()));
        assert_eq!(jar.judge(NOW, &reply(0, &ours()), CookiePath::Datagram), CookieVerdict::Accept);
        jar
    }

    #[test]
    fn a_query_with_a_cookie_is_well_formed() {
        let message = with_cookie(&query(), &[1; 8]);
        let mut bytes = message.clone();
        bytes[2] |= 0x80;
        assert_eq!(cookie_in(&Reply::parse(bytes).unwrap()), Some(vec![1; 8]));
        assert_eq!(with_cookie(b"short", &[1; 8]), b"short");
    }

    #[test]
    fn the_server_cookie_is_returned() {
        let jar = supported();
        assert_eq!(jar.next(NOW, 7), Some(ours()), "the client cookie stays");
    }

    #[test]
    fn replies_without_cookies_are_used_until_the_upstream_has_returned_one() {
        let jar = CookieJar::default();
        _ = jar.next(NOW, CLIENT);
        assert_eq!(jar.judge(NOW, &reply(0, &[]), CookiePath::Datagram), CookieVerdict::Accept);
        // The client cookie alone proves something about this reply, and nothing about the next one.
        assert_eq!(jar.judge(NOW, &reply(0, &CLIENT.to_be_bytes()), CookiePath::Datagram), CookieVerdict::Accept);
        assert_eq!(jar.judge(NOW, &reply(0, &[]), CookiePath::Datagram), CookieVerdict::Accept);
        let jar = supported();
        for forged in [vec![], vec![7; 8], vec![7; 16], CLIENT.to_be_bytes()[..4].to_vec(), ours()[..12].to_vec()] {
            let verdict = jar.judge(NOW, &reply(0, &forged), CookiePath::Datagram);
            assert_eq!(verdict, CookieVerdict::Distrust, "{forged:?}");
        }
        assert_eq!(jar.judge(NOW, &reply(1, &[]), CookiePath::Datagram), CookieVerdict::Distrust, "a forged FORMERR");
    }

    #[test]
    fn a_wrong_client_cookie_is_not_used_even_if_nothing_is_known() {
        let jar = CookieJar::default();
        _ = jar.next(NOW, CLIENT);
        assert_eq!(jar.judge(NOW, &reply(0, &[7; 16]), CookiePath::Datagram), CookieVerdict::Distrust);
    }

    #[test]
    fn an_upstream_that_stops_using_cookies_is_believed_over_tcp() {
        let jar = supported();
        assert_eq!(jar.judge(NOW, &reply(0, &[]), CookiePath::Stream), CookieVerdict::Accept);
        assert_eq!(jar.judge(NOW, &reply(0, &[]), CookiePath::Datagram), CookieVerdict::Accept);
        assert_eq!(jar.next(NOW, 7), Some(CLIENT.to_be_bytes().to_vec()));
    }

    #[test]
    fn badcookie_has_the_cookie_for_the_next_attempt() {
        let jar = supported();
        let renewed = [&CLIENT.to_be_bytes()[..], &[5; 16]].concat();
        assert_eq!(jar.judge(NOW, &reply(23, &renewed), CookiePath::Datagram), CookieVerdict::Repeat);
        assert_eq!(jar.next(NOW, 7), Some(renewed));
    }

    #[test]
    fn an_upstream_that_fails_queries_with_cookies_gets_none_for_fifteen_minutes() {
        let jar = CookieJar::default();
        _ = jar.next(NOW, CLIENT);
        assert_eq!(jar.judge(NOW, &reply(1, &[]), CookiePath::Datagram), CookieVerdict::Repeat);
        assert_eq!(jar.next(NOW + UNSUPPORTED_FOR - Duration::from_secs(1), 7), None);
        assert_eq!(jar.next(NOW + UNSUPPORTED_FOR, 7), Some(CLIENT.to_be_bytes().to_vec()));
    }
}
