//! The query and the check of its answer, and messages on TCP and TLS streams (RFC 1035 §4.2.2).

use super::super::super::load::packet;
use super::stream::{Protocol, Taken};
use super::tally::Tally;
use xtask::Failed;

/// Query that all clients ask, with the type.
pub(crate) const QUESTION: &str = "www.example.org. A";
/// Bytes of the header and the question of [`QUESTION`].
const QUESTION_END: usize = 33;

/// Returns the query, with the ID 0.
pub(crate) fn query() -> Vec<u8> {
    packet(QUESTION).unwrap_or_default()
}

/// Checks that a message answers the query: a response with the code NOERROR, the question and one answer record.
///
/// # Errors
/// Fails with the first mistake in the message.
pub(crate) fn check(message: &[u8]) -> Result<(), Failed> {
    let Some(header) = message.first_chunk::<12>() else {
        return Err(format!("the response has {} bytes, which is no DNS message", message.len()));
    };
    let [_, _, flags, codes, _, _, answers_high, answers, ..] = *header;
    if flags & 0x80 == 0 || codes & 15 != 0 || (answers_high, answers) != (0, 1) {
        let code = wire::Rcode(u16::from(codes & 15));
        return Err(format!("the response has the code {code} and {answers} answer records, not NOERROR and one"));
    }
    let rest = message.get(QUESTION_END..);
    rest.map(|_| ()).ok_or_else(|| "the response has no question".to_owned())
}

/// Messages on a TCP or TLS stream, each preceded by its length.
pub(crate) struct Dns {
    query: Vec<u8>,
    id: u16,
}

impl Dns {
    pub(crate) fn new() -> Dns {
        Dns { query: query(), id: 0 }
    }
}

impl Protocol for Dns {
    fn ask(&mut self, out: &mut Vec<u8>) -> bool {
        self.id = self.id.wrapping_add(1);
        self.query[..2].copy_from_slice(&self.id.to_be_bytes());
        frame(&self.query, out);
        true
    }

    fn take(&mut self, input: &[u8], _: &mut Vec<u8>, tally: &Tally) -> Result<Taken, Failed> {
        let (mut rest, mut answers) = (input, 0);
        while let Some((message, after)) = split(rest) {
            tally.count(message)?;
            (rest, answers) = (after, answers + 1);
        }
        Ok(Taken { bytes: input.len() - rest.len(), answers })
    }
}

/// Appends a message, preceded by its length.
pub(crate) fn frame(message: &[u8], out: &mut Vec<u8>) {
    // The query is short.
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(message);
}

/// Splits off the first message, if it is complete.
pub(crate) fn split(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = input.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// Returns an answer to the query, for tests.
#[cfg(test)]
pub(crate) fn answer() -> Vec<u8> {
    let mut answer = query();
    answer.truncate(QUESTION_END);
    answer[2] |= 0x80;
    answer[6..12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
    answer.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01");
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_complete_answers() {
        assert_eq!(check(&answer()), Ok(()));
        let refused = |change: fn(&mut Vec<u8>)| {
            let mut changed = answer();
            change(&mut changed);
            check(&changed).is_err()
        };
        assert!(refused(|answer| answer[2] = 0), "a query");
        assert!(refused(|answer| answer[3] |= 2), "SERVFAIL");
        assert!(refused(|answer| answer[7] = 0), "no record");
        assert!(refused(|answer| answer.truncate(20)), "no question");
        assert!(refused(Vec::clear), "nothing");
    }

    #[test]
    fn counts_complete_messages_and_leaves_the_rest() {
        let (mut input, tally) = (Vec::new(), Tally::default());
        frame(&answer(), &mut input);
        let first = input.len();
        frame(&answer(), &mut input);
        let taken = Dns::new().take(&input[..input.len() - 1], &mut Vec::new(), &tally);
        assert_eq!(taken, Ok(Taken { bytes: first, answers: 1 }));
        assert_eq!(tally.answers(), 1);
    }

    #[test]
    fn each_query_has_its_own_id() {
        let (mut dns, mut out) = (Dns::new(), Vec::new());
        assert!(dns.ask(&mut out) && dns.ask(&mut out));
        let (first, rest) = split(&out).unwrap_or_default();
        let (second, rest) = split(rest).unwrap_or_default();
        assert_eq!((&first[..2], &second[..2], rest), (&[0, 1][..], &[0, 2][..], &[][..]));
        assert_eq!(first[2..], second[2..]);
    }
}
