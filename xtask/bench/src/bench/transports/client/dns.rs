//! Messages on TCP and TLS streams (RFC 1035 §4.2.2).

use super::protocol::{Protocol, Taken};
use super::question::query;
use super::tally::Tally;
use xtask::Failed;

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

#[cfg(test)]
mod tests {
    use super::super::question::answer;
    use super::*;

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
