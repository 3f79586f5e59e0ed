//! The query, and the check of its answer.

use super::super::super::load::packet;
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
}
