//! Messages on a byte stream: each has its length as a prefix of two bytes (RFC 1035 §4.2.2).

use host::invariant::holds;

/// Length of the prefix in bytes.
const PREFIX_LEN: usize = 2;
/// Capacity in bytes that a reader keeps after a long message. Most messages are shorter.
const KEPT_MAX: usize = 4096;

/// Appends a message with its length prefix and with this message ID. `None` if it is too long.
pub fn append_frame(out: &mut Vec<u8>, id: u16, message: &[u8]) -> Option<()> {
    let rest = message.get(PREFIX_LEN..)?;
    let length = u16::try_from(message.len()).ok()?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(rest);
    Some(())
}

/// Splits a byte stream into messages. It copies only those that arrive in several reads.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// Prefix and beginning of a message that has not arrived completely.
    partial: Vec<u8>,
    /// True if `partial` is a whole message, which the last call has returned.
    is_returned: bool,
}

impl FrameReader {
    /// Takes the next message from `input`. Keeps the beginning of an incomplete one for the next call, and returns
    /// `None`.
    ///
    /// ```
    /// let mut reader = upstream::FrameReader::default();
    /// let mut input = &b"\0\x01a\0\x02b"[..];
    /// assert_eq!(reader.next_frame(&mut input), Some(&b"a"[..]));
    /// assert_eq!(reader.next_frame(&mut input), None);
    /// assert_eq!(reader.next_frame(&mut &b"c"[..]), Some(&b"bc"[..]));
    /// ```
    pub fn next_frame<'a, 'b: 'a>(&'a mut self, input: &mut &'b [u8]) -> Option<&'a [u8]> {
        if core::mem::take(&mut self.is_returned) {
            self.partial.clear();
            self.partial.shrink_to(KEPT_MAX);
        }
        if self.partial.is_empty()
            && let Some((frame, rest)) = split_frame(input)
        {
            *input = rest;
            return Some(frame);
        }
        self.fill_to(PREFIX_LEN, input);
        let length = *self.partial.first_chunk::<PREFIX_LEN>()?;
        let end = PREFIX_LEN + usize::from(u16::from_be_bytes(length));
        self.fill_to(end, input);
        holds(self.partial.len() <= end, "a message ends where its length says");
        self.is_returned = self.partial.len() == end;
        self.is_returned.then(|| &self.partial[PREFIX_LEN..])
    }

    /// Returns the bytes that are kept of a message that has not arrived completely.
    pub(crate) const fn incomplete_len(&self) -> usize {
        if self.is_returned { 0 } else { self.partial.len() }
    }

    /// Moves bytes from `input` to the partial message until it has `length` bytes.
    fn fill_to(&mut self, length: usize, input: &mut &[u8]) {
        let missing = length.saturating_sub(self.partial.len()).min(input.len());
        let (head, rest) = input.split_at(missing);
        self.partial.extend_from_slice(head);
        *input = rest;
    }
}

/// Returns the message at the beginning of `input` and the bytes after it.
fn split_frame(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = input.split_first_chunk::<PREFIX_LEN>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_messages_in_pieces_of_any_size() {
        let messages = [&b"id and a body"[..], b"", b"x", &[7; 65_535]];
        let mut stream = Vec::new();
        for message in messages {
            stream.extend_from_slice(&u16::try_from(message.len()).expect("a short message").to_be_bytes());
            stream.extend_from_slice(message);
        }
        for size in [1, 2, 3, 5, 17, 1000, stream.len()] {
            let (mut reader, mut read) = (FrameReader::default(), Vec::new());
            for mut piece in stream.chunks(size) {
                while let Some(frame) = reader.next_frame(&mut piece) {
                    read.push(frame.to_vec());
                }
            }
            assert_eq!(read, messages, "in pieces of {size}");
            reader.next_frame(&mut &b""[..]);
            assert!(reader.partial.capacity() <= KEPT_MAX);
        }
    }

    /// Splits a whole stream. Returns the messages, and the number of bytes after the last one.
    fn reference(mut stream: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let mut messages = Vec::new();
        while let [high, low, rest @ ..] = stream
            && let length = usize::from(*high) * 256 + usize::from(*low)
            && length <= rest.len()
        {
            messages.push(rest[..length].to_vec());
            stream = &rest[length..];
        }
        (messages, stream.len())
    }

    #[test]
    fn reads_all_short_streams_in_all_pieces() {
        let streams = (0..=7).flat_map(|len| {
            (0..3_usize.pow(len)).map(move |number| {
                (0..len).map(|at| u8::try_from(number / 3_usize.pow(at) % 3).unwrap()).collect::<Vec<_>>()
            })
        });
        for stream in streams {
            let expected = reference(&stream);
            for splits in 0..1_u32 << stream.len().saturating_sub(1) {
                let (mut reader, mut read, mut start) = (FrameReader::default(), Vec::new(), 0);
                for end in 1..=stream.len() {
                    if end < stream.len() && splits >> (end - 1) & 1 == 0 {
                        continue;
                    }
                    let mut piece = &stream[start..end];
                    while let Some(frame) = reader.next_frame(&mut piece) {
                        read.push(frame.to_vec());
                    }
                    assert!(piece.is_empty(), "the reader takes all bytes");
                    start = end;
                }
                assert_eq!((read, reader.incomplete_len()), expected, "{stream:?} split at {splits:b}");
            }
        }
    }

    #[test]
    fn writes_the_length_and_the_message_id() {
        let mut out = Vec::new();
        assert_eq!(append_frame(&mut out, 0x0102, b"\0\0rest"), Some(()));
        assert_eq!(out, b"\0\x06\x01\x02rest");
        assert_eq!((append_frame(&mut out, 1, &[0; 65_536]), append_frame(&mut out, 1, b"x")), (None, None));
        assert_eq!(out.len(), 8);
    }
}
