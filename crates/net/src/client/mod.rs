//! Asking upstreams: datagrams from unpredictable ports, and streams that are kept and shared.

pub(crate) mod fetch;
mod stream;
mod udp;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use engine::ExchangeError;
use tokio::sync::oneshot;
use wire::{Flags, HEADER_LEN, Header, Opcode};

pub(crate) use stream::{Key, LOOK_EVERY, Route, StreamClient, Users, connect_http2, exchange_all};
pub(crate) use udp::UdpClient;

/// How often a random id is tried on a socket on which few are taken.
const ID_TRIES: usize = 8;

/// Queries in flight on one socket, by id.
#[derive(Default)]
struct Waiting {
    by_id: RefCell<HashMap<u16, Waiter>>,
    /// How many have waited here: an id may be taken again while its last holder has not left yet.
    entered: Cell<u64>,
}

struct Waiter {
    /// Which of those that have waited here it is.
    number: u64,
    opcode: Opcode,
    /// The question, as it was sent: name, type, class.
    question: Box<[u8]>,
    answer: oneshot::Sender<Result<Vec<u8>, ExchangeError>>,
}

type Answer = oneshot::Receiver<Result<Vec<u8>, ExchangeError>>;

impl Waiting {
    /// Waits for the answer to `query` under an id that is free here; gives the id, for as long as it is waited for.
    fn enter(&self, query: &[u8], mut random: impl FnMut() -> u16) -> Option<(Entered<'_>, Answer)> {
        let question = question_octets(query)?.into();
        let opcode = Header::read(query)?.flags.opcode();
        let mut by_id = self.by_id.borrow_mut();
        let id = (0..ID_TRIES).map(|_| random()).find(|id| !by_id.contains_key(id))?;
        let (answer, waiting) = oneshot::channel();
        let number = self.entered.get();
        self.entered.set(number + 1);
        by_id.insert(id, Waiter { number, opcode, question, answer });
        Some((Entered { waiting: self, id, number }, waiting))
    }

    /// Hands a message to the one who waits for it; what answers no question of ours is passed over, whoever sent it
    /// (RFC 5452 §9.1).
    fn deliver(&self, octets: &[u8]) {
        let Some(header) = Header::read(octets) else { return };
        let mut by_id = self.by_id.borrow_mut();
        let Some(waiter) = by_id.get(&header.id) else { return };
        if answers(header.flags, waiter, octets)
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
fn answers(flags: Flags, Waiter { opcode, question, .. }: &Waiter, octets: &[u8]) -> bool {
    let is_response = flags.is_response() && flags.opcode() == *opcode;
    let Some(theirs) = question_octets(octets).filter(|_| is_response) else { return false };
    let same_end = theirs.last_chunk::<TYPE_AND_CLASS_LEN>() == question.last_chunk::<TYPE_AND_CLASS_LEN>();
    same_end && theirs.eq_ignore_ascii_case(question)
}

/// Octets of type and class, behind the name of a question.
const TYPE_AND_CLASS_LEN: usize = 4;

/// The octets of the question section, if there is exactly one question.
fn question_octets(message: &[u8]) -> Option<&[u8]> {
    message.get(HEADER_LEN..wire::question_end(message)?)
}

/// An id under which an answer is waited for; dropping it makes it free again.
struct Entered<'a> {
    waiting: &'a Waiting,
    id: u16,
    number: u64,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut by_id = self.waiting.by_id.borrow_mut();
        // Once it is answered, the id may be another query's.
        if by_id.get(&self.id).is_some_and(|waiter| waiter.number == self.number) {
            by_id.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query or a response for the root with this id, and what is in the third byte.
    fn message(id: u8, flags: u8) -> Vec<u8> {
        [&[0, id, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\0\0\x01\0\x01"].concat()
    }

    #[test]
    fn an_id_that_is_taken_again_is_not_left_by_its_last_holder() {
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
    fn a_response_of_another_opcode_is_no_answer() {
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
