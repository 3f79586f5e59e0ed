//! Upstream clients: UDP from unpredictable source ports, and TCP with a connection pool per upstream.

pub(crate) mod fetch;
mod stream;
mod udp;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;

use engine::ExchangeError;
use tokio::sync::oneshot;
use transport::error_text;
use wire::{Header, Reply};

pub(crate) use stream::{Key, LOOK_EVERY, Route, StreamClient, Users, connect_http2, exchange_all};
pub(crate) use udp::UdpClient;

/// Attempts to find an unused random message ID. Few IDs are in use on a socket, so almost always the first one is
/// free.
const ID_TRIES: usize = 8;

/// Queries in flight on one socket, by message ID.
#[derive(Default)]
struct Waiting {
    by_id: RefCell<HashMap<u16, Waiter>>,
    /// Number of queries sent so far. Distinguishes a query from an earlier one that had the same ID and is not dropped
    /// yet.
    entered: Cell<u64>,
}

struct Waiter {
    /// Sequence number of the query on this socket.
    number: u64,
    /// Query as sent, except for its ID.
    query: Box<[u8]>,
    answer: oneshot::Sender<Result<Reply, ExchangeError>>,
}

/// Creates the error of an exchange that failed on the network.
pub(crate) fn network(during: &'static str, error: &io::Error) -> ExchangeError {
    ExchangeError::Network { during, error: error_text(error) }
}

type Answer = oneshot::Receiver<Result<Reply, ExchangeError>>;

impl Waiting {
    /// Registers `query` under an unused message ID. Returns a guard that holds the ID, and the receiver of the
    /// response.
    fn enter(&self, query: &[u8], mut random: impl FnMut() -> u16) -> Option<(Entered<'_>, Answer)> {
        let mut by_id = self.by_id.borrow_mut();
        let id = (0..ID_TRIES).map(|_| random()).find(|id| !by_id.contains_key(id))?;
        let (answer, waiting) = oneshot::channel();
        let number = self.entered.get();
        self.entered.set(number + 1);
        by_id.insert(id, Waiter { number, query: query.into(), answer });
        Some((Entered { waiting: self, id, number }, waiting))
    }

    /// Passes a message to the query that waits for it. Ignores messages that do not match a pending query (RFC 5452
    /// §9.1).
    fn deliver(&self, bytes: &[u8]) {
        let Some(header) = Header::read(bytes) else { return };
        let mut by_id = self.by_id.borrow_mut();
        let Some(waiter) = by_id.get(&header.id) else { return };
        if let Ok(reply) = Reply::parse(bytes.to_vec())
            && reply.responds_to(&waiter.query)
            && let Some(waiter) = by_id.remove(&header.id)
        {
            let _ = waiter.answer.send(Ok(reply));
        }
    }

    /// Fails all pending queries with `error`.
    fn fail_all(&self, error: &ExchangeError) {
        for (_, waiter) in self.by_id.borrow_mut().drain() {
            let _ = waiter.answer.send(Err(error.clone()));
        }
    }
}

/// Message ID of a pending query. Dropping it releases the ID.
struct Entered<'a> {
    waiting: &'a Waiting,
    id: u16,
    number: u64,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut by_id = self.waiting.by_id.borrow_mut();
        // After the response has arrived, another query may have taken the ID.
        if by_id.get(&self.id).is_some_and(|waiter| waiter.number == self.number) {
            by_id.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a query or a response for the root, with this message ID and `flags` as the third byte.
    fn message(id: u8, flags: u8) -> Vec<u8> {
        [&[0, id, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\0\0\x01\0\x01"].concat()
    }

    #[test]
    fn a_guard_dropped_late_keeps_the_next_query_with_its_id() {
        let waiting = Waiting::default();
        let (first, mut first_answer) = waiting.enter(&message(0, 0), || 7).expect("a free id");
        waiting.deliver(&message(7, 0x80));
        let (_second, mut second_answer) = waiting.enter(&message(0, 0), || 7).expect("a free id");
        drop(first);
        waiting.deliver(&message(7, 0x80));
        assert!(first_answer.try_recv().is_ok() && second_answer.try_recv().is_ok());
        let third = waiting.enter(&message(0, 0), || 7).expect("a free id");
        assert!(waiting.enter(&message(0, 0), || 7).is_none());
        drop(third);
        assert!(waiting.by_id.borrow().is_empty());
    }

    #[test]
    fn ignores_responses_with_another_opcode() {
        let waiting = Waiting::default();
        let (_entered, mut answer) = waiting.enter(&message(0, 0), || 7).expect("a free id");
        for flags in [0x80 | 4 << 3, 0x80 | 2 << 3, 0] {
            waiting.deliver(&message(7, flags));
            assert!(answer.try_recv().is_err(), "{flags:x}");
        }
        waiting.deliver(&message(7, 0x84));
        assert!(answer.try_recv().is_ok());
    }
}
