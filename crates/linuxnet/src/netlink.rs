//! Netlink messages to and from the kernel (RFC 3549 §2): a header, a part specific to the message type, and
//! attributes.
//!
//! Only a dozen message types of two netlink families are needed. A library for both would bring far more.

use crate::uapi::{NLA_ALIGNTO, NLA_F_NESTED, NLMSG_ALIGNTO, NLMSG_ERROR, NLMSG_HDRLEN};

/// One or more messages under construction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages(Vec<u8>);

impl Messages {
    /// Returns the bytes.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }

    /// Appends a message.
    pub fn message(&mut self, kind: u16, flags: u16, number: u32, write: impl FnOnce(&mut Body<'_>)) {
        let start = self.0.len();
        self.0.extend([0; 4]);
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(flags.to_ne_bytes());
        self.0.extend(number.to_ne_bytes());
        self.0.extend([0; 4]);
        write(&mut Body(&mut self.0));
        let length = u32::try_from(self.0.len() - start).unwrap_or(u32::MAX);
        if let Some(place) = self.0.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
    }
}

/// Writer for the content after a header or within an attribute.
#[derive(Debug)]
pub struct Body<'a>(&'a mut Vec<u8>);

impl Body<'_> {
    /// Appends raw bytes.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }

    /// Appends an attribute.
    pub fn attribute(&mut self, kind: u16, bytes: &[u8]) -> &mut Self {
        self.around(kind, |body| {
            body.raw(bytes);
        })
    }

    /// Appends an attribute with a zero-terminated string.
    pub fn text(&mut self, kind: u16, text: &str) -> &mut Self {
        self.around(kind, |body| {
            body.raw(text.as_bytes()).raw(&[0]);
        })
    }

    /// Appends an attribute that contains attributes.
    pub fn nested(&mut self, kind: u16, write: impl FnOnce(&mut Body<'_>)) -> &mut Self {
        self.around(kind | NLA_F_NESTED, write)
    }

    fn around(&mut self, kind: u16, write: impl FnOnce(&mut Body<'_>)) -> &mut Self {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend(kind.to_ne_bytes());
        write(&mut Body(self.0));
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        if let Some(place) = self.0.get_mut(start..start + 2) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
        self.0.resize(self.0.len().next_multiple_of(NLA_ALIGNTO), 0);
        self
    }
}

/// Message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Message type.
    pub kind: u16,
    /// Sequence number of the request.
    pub number: u32,
    /// Content after the header.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// Returns the result of the request, if this message is an acknowledgement: 0, or an error number.
    #[must_use]
    pub fn outcome(&self) -> Option<i32> {
        (self.kind == NLMSG_ERROR).then_some(())?;
        let bytes = self.body.get(..4)?.try_into().ok()?;
        Some(i32::from_ne_bytes(bytes).saturating_neg())
    }
}

/// Splits a datagram into its messages. Stops at a truncated one.
pub fn read(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    core::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(rest.get(..4)?.try_into().ok()?)).ok()?;
        let kind = u16::from_ne_bytes(rest.get(4..6)?.try_into().ok()?);
        let number = u32::from_ne_bytes(rest.get(8..12)?.try_into().ok()?);
        let body = rest.get(NLMSG_HDRLEN..length)?;
        rest = rest.get(length.next_multiple_of(NLMSG_ALIGNTO)..).unwrap_or_default();
        Some(Message { kind, number, body })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uapi::{NLM_F_ACK, NLM_F_REQUEST};

    #[test]
    fn writes_lengths_and_padding() {
        let mut messages = Messages::default();
        messages.message(16, NLM_F_REQUEST | NLM_F_ACK, 7, |body| {
            body.raw(&[9; 4]).text(3, "abc").nested(1, |body| {
                body.attribute(2, &[5]);
            });
        });
        let bytes = messages.octets();
        assert_eq!(bytes.len(), NLMSG_HDRLEN + 4 + 8 + 12);
        assert_eq!(bytes[..4], 40_u32.to_ne_bytes());
        assert_eq!(bytes[20..24], [8_u16.to_ne_bytes(), 3_u16.to_ne_bytes()].concat());
        assert_eq!(bytes[28..30], 12_u16.to_ne_bytes(), "a nested one has its contents' padding");
        let read: Vec<Message<'_>> = read(bytes).collect();
        assert_eq!((read.len(), read[0].kind, read[0].number), (1, 16, 7));
        assert_eq!(read[0].outcome(), None);
    }

    #[test]
    fn reads_results_and_stops_at_a_truncated_message() {
        let mut messages = Messages::default();
        messages.message(NLMSG_ERROR, 0, 1, |body| {
            body.raw(&(-17_i32).to_ne_bytes());
        });
        messages.message(NLMSG_ERROR, 0, 2, |body| {
            body.raw(&0_i32.to_ne_bytes());
        });
        let bytes = messages.octets();
        let outcomes = |bytes: &[u8]| read(bytes).map(|message| message.outcome()).collect::<Vec<_>>();
        assert_eq!(outcomes(bytes), [Some(17), Some(0)]);
        assert_eq!(outcomes(&bytes[..bytes.len() - 1]), [Some(17)]);
        for end in 0..bytes.len() {
            let _ = outcomes(&bytes[..end]);
        }
        assert_eq!(outcomes(&[0; 64]), [] as [Option<i32>; 0], "a length of nothing ends it");
    }
}
