//! Message header: the first 12 bytes of every message (RFC 1035 §4.1.1, flags of RFC 4035 §3.1.6 and §3.2.2).

use crate::{Opcode, Rcode};

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 12;

/// The 16 flag bits, which include opcode and response code.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

macro_rules! bits {
    ($($(#[$doc:meta])* $get:ident $set:ident = $bit:literal;)*) => {
        impl Flags {
            $($(#[$doc])* #[must_use] pub const fn $get(self) -> bool { self.0 & $bit != 0 }
            #[doc = concat!("Returns these flags with `", stringify!($get), "` set or cleared.")]
            #[must_use]
            pub const fn $set(self, on: bool) -> Flags {
                if on { Flags(self.0 | $bit) } else { Flags(self.0 & !$bit) }
            })*
        }
    };
}

bits! {
    /// QR: the message is a response.
    is_response with_response = 0x8000;
    /// AA: the responder is authoritative for the name.
    authoritative with_authoritative = 0x0400;
    /// TC: the message is truncated.
    truncated with_truncated = 0x0200;
    /// RD: the client asks for recursion.
    recursion_desired with_recursion_desired = 0x0100;
    /// RA: recursion is available.
    recursion_available with_recursion_available = 0x0080;
    /// Z: reserved, must be zero.
    reserved with_reserved = 0x0040;
    /// AD: the data is authentic (DNSSEC-validated).
    authentic_data with_authentic_data = 0x0020;
    /// CD: the client validates DNSSEC signatures itself.
    checking_disabled with_checking_disabled = 0x0010;
}

impl Flags {
    /// Returns the operation code.
    #[must_use]
    pub const fn opcode(self) -> Opcode {
        Opcode((self.0 >> 11) as u8 & 0xf)
    }

    /// Returns the lower four bits of the response code.
    #[must_use]
    pub const fn rcode(self) -> Rcode {
        Rcode(self.0 & 0xf)
    }

    /// Returns these flags with the lower four bits of `rcode`. The upper bits belong in the OPT record.
    #[must_use]
    pub const fn with_rcode(self, rcode: Rcode) -> Flags {
        Flags(self.0 & !0xf | rcode.0 & 0xf)
    }

    /// Returns these flags with another operation code.
    #[must_use]
    pub const fn with_opcode(self, opcode: Opcode) -> Flags {
        Flags(self.0 & !0x7800 | ((opcode.0 & 0xf) as u16) << 11)
    }
}

impl core::fmt::Debug for Flags {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {}", self.opcode(), self.rcode())?;
        let named = [
            (self.is_response(), "qr"),
            (self.authoritative(), "aa"),
            (self.truncated(), "tc"),
            (self.recursion_desired(), "rd"),
            (self.recursion_available(), "ra"),
            (self.reserved(), "z"),
            (self.authentic_data(), "ad"),
            (self.checking_disabled(), "cd"),
        ];
        named.iter().filter(|(on, _)| *on).try_for_each(|(_, name)| write!(f, " {name}"))
    }
}

/// Decoded message header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// ID that matches a response to its query.
    pub id: u16,
    /// The flag bits.
    pub flags: Flags,
    /// Number of entries in the question section.
    pub questions: u16,
    /// Number of records in the answer section.
    pub answers: u16,
    /// Number of records in the authority section.
    pub authorities: u16,
    /// Number of records in the additional section.
    pub additionals: u16,
}

impl Header {
    /// Decodes the first 12 bytes. Returns `None` if the packet is shorter.
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER_LEN] = packet.first_chunk()?;
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Some(Header {
            id: word(0),
            flags: Flags(word(2)),
            questions: word(4),
            answers: word(6),
            authorities: word(8),
            additionals: word(10),
        })
    }

    /// Encodes the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let words = [self.id, self.flags.0, self.questions, self.answers, self.authorities, self.additionals];
        for (pair, word) in bytes.chunks_exact_mut(2).zip(words) {
            pair.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_a_header() {
        let flags = Flags::default()
            .with_response(true)
            .with_opcode(Opcode::NOTIFY)
            .with_rcode(Rcode::REFUSED)
            .with_truncated(true);
        let header = Header { id: 0x1234, flags, questions: 1, answers: 2, authorities: 3, additionals: 4 };
        assert_eq!(Header::read(&header.to_bytes()), Some(header));
        assert_eq!(format!("{flags:?}"), "NOTIFY REFUSED qr tc");
        assert_eq!(Header::read(&[0; 11]), None);
    }
}
