//! Netlink messages to and from the kernel (RFC 3549 §2): a header, a part specific to the message type, and
//! attributes.
//!
//! Only a dozen message types of two netlink families are needed. A library for both would bring far more.

use crate::net::uapi::{NLA_ALIGNTO, NLA_F_NESTED, NLMSG_ALIGNTO, NLMSG_ERROR, NLMSG_HDRLEN};

/// One or more messages under construction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageBuffer(Vec<u8>);

impl MessageBuffer {
    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends a message.
    pub fn push(&mut self, message_type: u16, flags: u16, sequence: u32, write: impl FnOnce(&mut PayloadWriter<'_>)) {
        let start = self.0.len();
        self.0.extend([0; 4]);
        self.0.extend(message_type.to_ne_bytes());
        self.0.extend(flags.to_ne_bytes());
        self.0.extend(sequence.to_ne_bytes());
        self.0.extend([0; 4]);
        write(&mut PayloadWriter(&mut self.0));
        let length = u32::try_from(self.0.len() - start);
        debug_assert!(length.is_ok(), "messages are built from names and addresses, so they are short");
        if let (Ok(length), Some(field)) = (length, self.0.get_mut(start..start + 4)) {
            field.copy_from_slice(&length.to_ne_bytes());
        }
    }
}

/// Writer for the content after a header or within an attribute.
#[derive(Debug)]
pub struct PayloadWriter<'a>(&'a mut Vec<u8>);

impl PayloadWriter<'_> {
    /// Appends raw bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }

    /// Appends an attribute.
    pub fn attribute(&mut self, kind: u16, bytes: &[u8]) -> &mut Self {
        self.write_attribute(kind, |body| {
            body.bytes(bytes);
        })
    }

    /// Appends an attribute with a zero-terminated string.
    pub fn string(&mut self, kind: u16, text: &str) -> &mut Self {
        self.write_attribute(kind, |body| {
            body.bytes(text.as_bytes()).bytes(&[0]);
        })
    }

    /// Appends an attribute that contains attributes.
    pub fn nested(&mut self, kind: u16, write: impl FnOnce(&mut PayloadWriter<'_>)) -> &mut Self {
        self.write_attribute(kind | NLA_F_NESTED, write)
    }

    fn write_attribute(&mut self, kind: u16, write: impl FnOnce(&mut PayloadWriter<'_>)) -> &mut Self {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend(kind.to_ne_bytes());
        write(&mut PayloadWriter(self.0));
        let length = u16::try_from(self.0.len() - start);
        debug_assert!(length.is_ok(), "attributes are built from names and addresses, so they are short");
        if let (Ok(length), Some(field)) = (length, self.0.get_mut(start..start + 2)) {
            field.copy_from_slice(&length.to_ne_bytes());
        }
        self.0.resize(self.0.len().next_multiple_of(NLA_ALIGNTO), 0);
        self
    }
}

/// Message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Message type.
    pub message_type: u16,
    /// Sequence number of the request.
    pub sequence: u32,
    /// Content after the header.
    pub payload: &'a [u8],
}

impl Message<'_> {
    /// Returns the result of the request, if this message is an acknowledgement: 0, or an error number.
    #[must_use]
    pub fn error_code(&self) -> Option<i32> {
        (self.message_type == NLMSG_ERROR).then_some(())?;
        let bytes = self.payload.get(..4)?.try_into().ok()?;
        Some(i32::from_ne_bytes(bytes).saturating_neg())
    }
}

/// Splits a datagram into its messages. Stops at a truncated one.
pub fn split_messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    core::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(rest.get(..4)?.try_into().ok()?)).ok()?;
        let message_type = u16::from_ne_bytes(rest.get(4..6)?.try_into().ok()?);
        let sequence = u32::from_ne_bytes(rest.get(8..12)?.try_into().ok()?);
        let payload = rest.get(NLMSG_HDRLEN..length)?;
        rest = rest.get(length.next_multiple_of(NLMSG_ALIGNTO)..).unwrap_or_default();
        Some(Message { message_type, sequence, payload })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::uapi::{NLM_F_ACK, NLM_F_REQUEST};

    #[test]
    fn writes_lengths_and_padding() {
        let mut messages = MessageBuffer::default();
        messages.push(16, NLM_F_REQUEST | NLM_F_ACK, 7, |body| {
            body.bytes(&[9; 4]).string(3, "abc").nested(1, |body| {
                body.attribute(2, &[5]);
            });
        });
        let bytes = messages.as_bytes();
        assert_eq!(bytes.len(), NLMSG_HDRLEN + 4 + 8 + 12);
        assert_eq!(bytes[..4], 40_u32.to_ne_bytes());
        assert_eq!(bytes[20..24], [8_u16.to_ne_bytes(), 3_u16.to_ne_bytes()].concat());
        assert_eq!(bytes[28..30], 12_u16.to_ne_bytes(), "a nested one has its contents' padding");
        let read: Vec<Message<'_>> = split_messages(bytes).collect();
        assert_eq!((read.len(), read[0].message_type, read[0].sequence), (1, 16, 7));
        assert_eq!(read[0].error_code(), None);
    }

    #[test]
    fn reads_results_and_stops_at_a_truncated_message() {
        let mut messages = MessageBuffer::default();
        messages.push(NLMSG_ERROR, 0, 1, |body| {
            body.bytes(&(-17_i32).to_ne_bytes());
        });
        messages.push(NLMSG_ERROR, 0, 2, |body| {
            body.bytes(&0_i32.to_ne_bytes());
        });
        let bytes = messages.as_bytes();
        let outcomes = |bytes: &[u8]| split_messages(bytes).map(|message| message.error_code()).collect::<Vec<_>>();
        assert_eq!(outcomes(bytes), [Some(17), Some(0)]);
        assert_eq!(outcomes(&bytes[..bytes.len() - 1]), [Some(17)]);
        for end in 0..bytes.len() {
            let _ = outcomes(&bytes[..end]);
        }
        assert_eq!(outcomes(&[0; 64]), [] as [Option<i32>; 0], "a length of nothing ends it");
    }
}
