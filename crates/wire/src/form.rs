//! Validation of record data that came from another server: valid names, and data of the length that the type requires.
//!
//! [`Message::parse`](crate::Message::parse) only checks where records start and end. Records that are forwarded or
//! cached must be valid to the last name. Otherwise a client, or this server later, may fail on them.

use crate::message::Record;
use crate::{Class, Type};

/// Field of a record's data.
#[derive(Clone, Copy)]
enum Part {
    /// Fixed number of bytes.
    Bytes(usize),
    /// Name, compressed or not.
    Name,
    /// Character string: a length byte and as many bytes.
    Text,
    /// Character strings up to the end.
    Texts,
    /// Any bytes up to the end.
    Rest,
}

use Part::{Bytes, Name, Rest, Text, Texts};

impl Record<'_> {
    /// Returns true if the owner and the names in the data can be parsed, and the data have the length that their type
    /// requires. Accepts any data of other types and of classes other than IN.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        if self.owner().is_err() {
            return false;
        }
        let data = self.rdata();
        let mut at = 0;
        for part in if self.class() == Class::IN { parts(self.rtype()) } else { &[Rest] } {
            let next = match part {
                Bytes(length) => Some(at + length),
                Name => self.name_at(at).ok().map(|(_, end)| end),
                Text => text_end(data, at),
                Texts => {
                    core::iter::successors(Some(at), |at| text_end(data, *at)).skip(1).find(|at| *at >= data.len())
                }
                Rest => Some(data.len()),
            };
            let Some(next) = next.filter(|next| *next <= data.len()) else { return false };
            at = next;
        }
        at == data.len()
    }
}

fn text_end(data: &[u8], at: usize) -> Option<usize> {
    data.get(at).map(|length| at + 1 + usize::from(*length))
}

/// Returns the fields of a type: types with names in their data (RFC 3597 §4 lists most), and common types.
fn parts(rtype: Type) -> &'static [Part] {
    match rtype {
        Type::A => &[Bytes(4)],
        Type::AAAA => &[Bytes(16)],
        Type::NS | Type::CNAME | Type::PTR | Type::DNAME => &[Name],
        Type::MD | Type::MF | Type::MB | Type::MG | Type::MR => &[Name],
        Type::SOA => &[Name, Name, Bytes(20)],
        Type::MX | Type::AFSDB | Type::RT | Type::KX => &[Bytes(2), Name],
        Type::SRV => &[Bytes(6), Name],
        Type::RP | Type::MINFO => &[Name, Name],
        Type::PX => &[Bytes(2), Name, Name],
        Type::NAPTR => &[Bytes(4), Text, Text, Text, Name],
        Type::HINFO => &[Text, Text],
        Type::TXT | Type::SPF => &[Texts],
        Type::RRSIG | Type::SIG => &[Bytes(18), Name, Rest],
        Type::NSEC | Type::NXT => &[Name, Rest],
        Type::SVCB | Type::HTTPS => &[Bytes(2), Name, Rest],
        _ => &[Rest],
    }
}

#[cfg(test)]
mod tests {
    use crate::Message;

    /// Returns true if a record of this type and data is well formed, in a message whose question is `a.`, at byte 12.
    fn is_well_formed(rtype: u8, class: u8, data: &[u8]) -> bool {
        let length = u8::try_from(data.len()).expect("short data");
        let packet = [
            &[0, 1, 0x80, 0, 0, 1, 0, 1, 0, 0, 0, 0][..],
            b"\x01a\0\0\x01\0\x01\xc0\x0c",
            &[0, rtype, 0, class, 0, 0, 0, 60, 0, length],
            data,
        ]
        .concat();
        let message = Message::parse(&packet).expect("a message");
        message.records().all(|record| record.is_well_formed())
    }

    #[test]
    fn rejects_data_of_the_wrong_length_for_its_type() {
        for (rtype, good, bad) in [
            (1, &b"\xc0\0\x02\x01"[..], &b"\xc0\0\x02"[..]),
            (1, b"\xc0\0\x02\x01", b"\xc0\0\x02\x01\0"),
            (28, &[0; 16], &[0; 15]),
            (2, b"\xc0\x0c", b"\xc0\x0c\0"),
            (5, b"\x01b\xc0\x0c", b""),
            (15, b"\0\x0a\xc0\x0c", b"\0\x0a"),
            (33, b"\0\0\0\0\0\x35\xc0\x0c", b"\0\0\0\0\0\x35"),
            (16, b"\x01a\x02bc", b"\x01a\x02b"),
            (16, b"\0", b""),
            (99, b"\x01a\x02bc", b"\x01a\x02b"),
            (13, b"\x01a\x02bc", b"\x01a"),
            (35, b"\0\x01\0\x01\x01u\0\0\0", b"\0\x01\0\x01\x01u\0\0"),
            (64, b"\0\x01\0anything", b"\0\x01"),
        ] {
            assert!(is_well_formed(rtype, 1, good), "{rtype} {good:x?}");
            assert!(!is_well_formed(rtype, 1, bad), "{rtype} {bad:x?}");
        }
        for rtype in [2, 3, 4, 5, 7, 8, 9, 12, 39] {
            assert!(is_well_formed(rtype, 1, b"\xc0\x0c") && !is_well_formed(rtype, 1, b"\xc0\x0c\0"), "{rtype}");
        }
        for rtype in [15, 18, 21, 36] {
            assert!(is_well_formed(rtype, 1, b"\0\x0a\xc0\x0c") && !is_well_formed(rtype, 1, b"\0\x0a"), "{rtype}");
        }
        for (rtype, before) in [(14, &b""[..]), (17, b""), (26, b"\0\x0a")] {
            assert!(is_well_formed(rtype, 1, &[before, b"\xc0\x0c\x01b\0"].concat()), "{rtype}");
            assert!(!is_well_formed(rtype, 1, &[before, b"\xc0\x0c"].concat()), "{rtype}");
        }
        for (rtype, before) in [(24, 18), (46, 18), (30, 0), (47, 0), (64, 2), (65, 2)] {
            let before = vec![0; before];
            assert!(is_well_formed(rtype, 1, &[&before, &b"\xc0\x0cany"[..]].concat()), "{rtype}");
            assert!(!is_well_formed(rtype, 1, &[&before, &b"\xc0\xff"[..]].concat()), "{rtype}");
        }
        let soa = [&b"\xc0\x0c\xc0\x0c"[..], &[0; 20]].concat();
        assert!(is_well_formed(6, 1, &soa) && !is_well_formed(6, 1, &soa[..23]));
        assert!(is_well_formed(1, 3, b"\xc0\x0c\0\x01") && is_well_formed(200, 1, b"\xc0\xff"));
    }

    #[test]
    fn rejects_names_that_do_not_point_backwards() {
        // The data begin at byte 31.
        for pointer in [&b"\xc0\x1f"[..], b"\xc0\x21", b"\xc0\xff", b"\x01b\xc0\x1f"] {
            assert!(!is_well_formed(5, 1, pointer), "{pointer:x?}");
        }
        let owner = b"\0\x01\x80\0\0\0\0\x01\0\0\0\0\xc0\x0c\0\x10\0\x01\0\0\0\0\0\0";
        assert!(!Message::parse(owner).expect("a message").records().all(|record| record.is_well_formed()));
    }
}
