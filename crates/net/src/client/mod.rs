//! Asking upstreams: datagrams from unpredictable ports, and streams that are kept and shared.

pub(crate) mod fetch;
mod stream;
mod udp;

use std::cell::RefCell;
use std::collections::HashMap;

use engine::ExchangeError;
use tokio::sync::oneshot;
use wire::{Flags, HEADER_LEN, Header};

pub(crate) use stream::{Key, LOOK_EVERY, Route, StreamClient, Users, connect_http2, exchange_all};
pub(crate) use udp::UdpClient;

/// How often a random id is tried on a socket on which few are taken.
const ID_TRIES: usize = 8;

/// Queries in flight on one socket, by id.
#[derive(Default)]
struct Waiting {
    by_id: RefCell<HashMap<u16, Waiter>>,
}

struct Waiter {
    /// The question, as it was sent: name, type, class.
    question: Box<[u8]>,
    answer: oneshot::Sender<Result<Vec<u8>, ExchangeError>>,
}

type Answer = oneshot::Receiver<Result<Vec<u8>, ExchangeError>>;

impl Waiting {
    /// Waits for the answer to `query` under an id that is free here; gives the id.
    fn enter(&self, query: &[u8], mut random: impl FnMut() -> u16) -> Option<(u16, Answer)> {
        let question = question_octets(query)?.into();
        let mut by_id = self.by_id.borrow_mut();
        let id = (0..ID_TRIES).map(|_| random()).find(|id| !by_id.contains_key(id))?;
        let (answer, waiting) = oneshot::channel();
        by_id.insert(id, Waiter { question, answer });
        Some((id, waiting))
    }

    fn leave(&self, id: u16) {
        self.by_id.borrow_mut().remove(&id);
    }

    /// Hands a message to the one who waits for it; what answers no question of ours is passed over, whoever sent it
    /// (RFC 5452 §9.1).
    fn deliver(&self, octets: &[u8]) {
        let Some(header) = Header::read(octets) else { return };
        let mut by_id = self.by_id.borrow_mut();
        let Some(waiter) = by_id.get(&header.id) else { return };
        if answers(header.flags, &waiter.question, octets)
            && let Some(waiter) = by_id.remove(&header.id)
        {
            let _ = waiter.answer.send(Ok(octets.to_vec()));
        }
    }

    /// Tells all that wait that nothing will come.
    fn fail_all(&self, error: &ExchangeError) {
        for (_, waiter) in self.by_id.borrow_mut().drain() {
            let _ = waiter.answer.send(Err(error.clone()));
        }
    }
}

/// Whether a message is a response to this question; the case of the name may have been lost on the way.
fn answers(flags: Flags, question: &[u8], octets: &[u8]) -> bool {
    let Some(theirs) = question_octets(octets).filter(|_| flags.is_response()) else { return false };
    let same_end = theirs.last_chunk::<TYPE_AND_CLASS_LEN>() == question.last_chunk::<TYPE_AND_CLASS_LEN>();
    same_end && theirs.eq_ignore_ascii_case(question)
}

/// Octets of type and class, behind the name of a question.
const TYPE_AND_CLASS_LEN: usize = 4;

/// The octets of the question section, if there is exactly one question.
fn question_octets(message: &[u8]) -> Option<&[u8]> {
    message.get(HEADER_LEN..wire::question_end(message)?)
}

/// Takes the waiting away when the one who waits goes.
struct Leave<'a> {
    waiting: &'a Waiting,
    id: u16,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.waiting.leave(self.id);
    }
}
