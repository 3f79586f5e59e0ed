//! Reply of another server: the bytes, with everything that parsing has found in them.

use crate::{HEADER_LEN, Header, Message, MessageError, Rcode, question_end};

/// Reply of another server, parsed once.
///
/// It carries the boundaries of its question and records, so that whoever reads it next does not parse them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    bytes: Vec<u8>,
    header: Header,
    /// Offset after the question section.
    records_at: usize,
    /// Offset after the last record, or the error of the first record that cannot be read.
    end: Result<usize, MessageError>,
}

impl Reply {
    /// Parses a message. The records may be incomplete or malformed; [`Reply::message`] reports that.
    ///
    /// # Errors
    /// The header or the question section is malformed.
    pub fn parse(bytes: Vec<u8>) -> Result<Reply, MessageError> {
        let (header, records_at) = Message::parse_questions(&bytes)?;
        let end = Message::parse_records(&bytes, header, records_at);
        debug_assert!(end.is_ok_and(|end| end >= records_at) || end.is_err(), "records follow the question");
        Ok(Reply { bytes, header, records_at, end })
    }

    /// Header.
    #[must_use]
    pub const fn header(&self) -> Header {
        self.header
    }

    /// Returns the lower four bits of the response code.
    #[must_use]
    pub const fn rcode(&self) -> Rcode {
        self.header.flags.rcode()
    }

    /// Returns true if the reply is truncated (TC).
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.header.flags.truncated()
    }

    /// Returns true if the reply is NOERROR without answers.
    #[must_use]
    pub fn is_nodata(&self) -> bool {
        self.rcode() == Rcode::NOERROR && self.header.answers == 0
    }

    /// Message in wire form, with any trailing bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the parsed message.
    ///
    /// # Errors
    /// A record is incomplete or its owner is malformed.
    pub fn message(&self) -> Result<Message<'_>, MessageError> {
        self.end.map(|end| Message::from_parts(&self.bytes, self.header, self.records_at, end))
    }

    /// Returns true if the reply has QR set, and the opcode and the question of `query`. The case of the name may
    /// differ, because some servers change it. The message ID is not compared.
    #[must_use]
    pub fn responds_to(&self, query: &[u8]) -> bool {
        let (Some(asked), Some(end)) = (Header::read(query), question_end(query)) else { return false };
        let (flags, ours) = (self.header.flags, &query[HEADER_LEN..end]);
        let Some(theirs) = self.bytes.get(HEADER_LEN..self.records_at) else { return false };
        let same_end = theirs.last_chunk::<TYPE_AND_CLASS_LEN>() == ours.last_chunk::<TYPE_AND_CLASS_LEN>();
        self.header.questions == 1
            && flags.is_response()
            && flags.opcode() == asked.flags.opcode()
            && same_end
            && theirs.eq_ignore_ascii_case(ours)
    }

    /// Returns this reply with the name in the question written as in the query, which is the same name in another
    /// case. Compressed names in records that point to it follow.
    #[must_use]
    pub fn with_case_of(mut self, query: &[u8]) -> Reply {
        let question = query.get(HEADER_LEN..self.records_at).filter(|_| self.responds_to(query));
        if let (Some(wanted), Some(ours)) = (question, self.bytes.get_mut(HEADER_LEN..self.records_at)) {
            debug_assert!(ours.eq_ignore_ascii_case(wanted), "the question stays the same up to case");
            ours.copy_from_slice(wanted);
        }
        self
    }

    /// Returns this reply without its records, and with TC.
    #[must_use]
    pub fn truncated(mut self) -> Reply {
        let flags = self.header.flags.with_truncated(true);
        self.header = Header { flags, answers: 0, authorities: 0, additionals: 0, ..self.header };
        self.bytes.truncate(self.records_at);
        self.bytes[..HEADER_LEN].copy_from_slice(&self.header.to_bytes());
        debug_assert!(self.bytes.len() == self.records_at, "the question stays whole");
        self.end = Ok(self.records_at);
        self
    }
}

/// Length of type and class, which follow the name of a question, in bytes.
const TYPE_AND_CLASS_LEN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(flags: u8, question: &[u8]) -> Vec<u8> {
        [&[0, 7, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0], question].concat()
    }

    #[test]
    fn a_reply_has_the_opcode_and_the_question_of_its_query() {
        let query = message(0, b"\x01a\0\0\x01\0\x01");
        for (flags, question, expected) in [
            (0x80, &b"\x01a\0\0\x01\0\x01"[..], true),
            (0x84, b"\x01A\0\0\x01\0\x01", true),
            (0x00, b"\x01a\0\0\x01\0\x01", false),
            (0x80 | 4 << 3, b"\x01a\0\0\x01\0\x01", false),
            (0x80, b"\x01b\0\0\x01\0\x01", false),
            (0x80, b"\x01a\0\0\x1c\0\x01", false),
            (0x80, b"\x01a\0\0\x01\0\x03", false),
        ] {
            let reply = Reply::parse(message(flags, question)).expect("a question");
            assert_eq!(reply.responds_to(&query), expected, "{flags:x} {question:x?}");
            assert!(!reply.responds_to(&query[..11]));
        }
        let two = [&[0, 7, 0x80, 0, 0, 2, 0, 0, 0, 0, 0, 0][..], &b"\x01a\0\0\x01\0\x01".repeat(2)].concat();
        assert!(!Reply::parse(two).expect("two questions").responds_to(&query));
    }

    #[test]
    fn refuses_a_reply_without_its_question() {
        for short in [&b"\0\x07\x80"[..], &message(0x80, b"\x01a\0\0\x01\0"), &message(0x80, b"\x01a\xc0\xff\0\x01")] {
            assert!(Reply::parse(short.to_vec()).is_err(), "{short:x?}");
        }
    }

    #[test]
    fn keeps_the_header_of_a_reply_with_missing_records() {
        let mut bytes = message(0x80, b"\x01a\0\0\x01\0\x01");
        (bytes[3], bytes[7]) = (3, 1);
        let reply = Reply::parse(bytes).expect("a question");
        assert_eq!((reply.rcode(), reply.message().err()), (Rcode::NXDOMAIN, Some(MessageError::Short)));
        let cut = reply.truncated();
        assert!(cut.is_truncated() && cut.rcode() == Rcode::NXDOMAIN);
        assert_eq!(cut.message().expect("no records").records().count(), 0);
        assert_eq!(Reply::parse(cut.bytes().to_vec()).as_ref(), Ok(&cut));
    }

    #[test]
    fn a_success_without_answers_has_no_data() {
        for (rcode, answers, expected) in [(0, 0, true), (0, 1, false), (3, 0, false), (3, 1, false)] {
            let mut bytes = message(0x80, b"\x01a\0\0\x01\0\x01");
            (bytes[3], bytes[7]) = (rcode, answers);
            assert_eq!(Reply::parse(bytes).expect("a question").is_nodata(), expected, "{rcode} {answers}");
        }
    }
}
