//! Query decoder for the hot path: one pass over the packet that decodes only the question and EDNS.

use core::fmt;
use core::ops::Range;

use crate::edns::Options;
use crate::message::word;
use crate::{Class, HEADER_LEN, Header, Message, Name, NameError, Opcode, Opt, OptionCode, Section, Type};

/// Reason why a packet is not a valid query. The response is FORMERR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The packet ends before the last record that the header counts.
    Short,
    /// The query does not have exactly one question (RFC 9619 §4), or has more records than any query needs.
    Counts,
    /// A name is invalid.
    Name(NameError),
    /// The packet has two OPT records, one outside the additional section, one not owned by the root, or one whose
    /// option lengths do not match its data (RFC 6891 §6.1.1).
    Opt,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Short => f.write_str("message is too short for the counts in its header"),
            Malformed::Counts => {
                f.write_str("expected one question and at most 1 answer, 1 authority and 2 additional records")
            }
            Malformed::Name(error) => error.fmt(f),
            Malformed::Opt => f.write_str("OPT record is malformed, duplicated or misplaced"),
        }
    }
}

/// Decoded query: header, question and EDNS.
#[derive(Clone, Debug)]
pub struct Request {
    /// The received header.
    pub header: Header,
    /// QNAME in its original case.
    pub name: Name,
    /// QTYPE.
    pub qtype: Type,
    /// QCLASS.
    pub qclass: Class,
    /// Offset after the question section. The section starts after the header.
    pub question_end: usize,
    /// Fixed part of the OPT record, if the query has one.
    pub opt: Option<Opt>,
    /// Offsets of the OPT record's options in the packet.
    options: Range<usize>,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            header: Header::default(),
            name: Name::root(),
            qtype: Type(0),
            qclass: Class::IN,
            question_end: HEADER_LEN,
            opt: None,
            options: 0..0,
        }
    }
}

impl Request {
    /// Decodes a query whose header the caller has already decoded. Overwrites `self`.
    ///
    /// # Errors
    /// The query is malformed. The contents of `self` are then unspecified.
    pub fn read(&mut self, header: Header, packet: &[u8]) -> Result<(), Malformed> {
        // A NOTIFY has one answer, an IXFR one authority record, and OPT and TSIG are additional. No query has more. An
        // UPDATE has prerequisites as answers and updates as authority records (RFC 2136 §2).
        let is_update = header.flags.opcode() == Opcode::UPDATE;
        let is_long = !is_update && (header.answers > 1 || header.authorities > 1);
        if header.questions != 1 || is_long || header.additionals > 2 {
            return Err(Malformed::Counts);
        }
        self.header = header;
        let at = self.name.read_from(packet, HEADER_LEN).map_err(Malformed::Name)?;
        self.qtype = Type(word(packet, at).ok_or(Malformed::Short)?);
        self.qclass = Class(word(packet, at + 2).ok_or(Malformed::Short)?);
        self.question_end = at + 4;
        self.opt = None;
        self.options = 0..0;
        if header.answers | header.authorities | header.additionals == 0 { Ok(()) } else { self.read_opt(packet) }
    }

    fn read_opt(&mut self, packet: &[u8]) -> Result<(), Malformed> {
        if self.read_lone_opt(packet) {
            return Ok(());
        }
        let message = Message::parse(packet).map_err(|_| Malformed::Short)?;
        for record in message.records().filter(|record| record.rtype() == Type::OPT) {
            let at_root = packet.get(record.start()) == Some(&0);
            let in_place = record.section() == Section::Additional;
            if self.opt.is_some() || !at_root || !in_place || Options::new(record.rdata()).is_none() {
                return Err(Malformed::Opt);
            }
            self.opt = Some(Opt::from_fields(record.class().0, record.raw_ttl()));
            self.options = record.rdata_at()..record.end();
            debug_assert!(self.options.start >= self.question_end, "options follow the question");
        }
        Ok(())
    }

    /// Fast path for the usual case: one OPT record without options and nothing else after the question. Returns false
    /// if the query is different.
    fn read_lone_opt(&mut self, packet: &[u8]) -> bool {
        let Header { answers, authorities, additionals, .. } = self.header;
        let Some(&[0, 0, 41, size_high, size_low, rcode, version, flags, _, 0, 0]) =
            packet.get(self.question_end..).and_then(|rest| rest.first_chunk())
        else {
            return false;
        };
        if answers | authorities != 0 || additionals != 1 {
            return false;
        }
        let udp_size = u16::from_be_bytes([size_high, size_low]);
        self.opt = Some(Opt { udp_size, extended_rcode: rcode, version, dnssec_ok: flags & 0x80 != 0 });
        true
    }

    /// Forgets where the options are: the request has no packet any more.
    pub fn clear_options(&mut self) {
        self.options = 0..0;
    }

    /// Returns the options of the OPT record. `packet` must be the packet that [`Request::read`] decoded.
    pub fn options<'p>(&self, packet: &'p [u8]) -> impl Iterator<Item = (OptionCode, &'p [u8])> + use<'p> {
        debug_assert!(self.options.end <= packet.len(), "the packet is the one that was read");
        packet.get(self.options.clone()).and_then(Options::new).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: &[u8] = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x03www\x01x\x00\x00\x01\x00\x01";
    const OPT: &[u8] = b"\x00\x00\x29\x04\xd0\x00\x00\x80\x00\x00\x00";

    fn read(packet: &[u8]) -> Result<Request, Malformed> {
        let mut request = Request::default();
        request.read(Header::read(packet).unwrap(), packet).map(|()| request)
    }

    #[test]
    fn reads_the_question_and_edns() {
        let packet = [QUERY, OPT].concat();
        let request = read(&packet).unwrap();
        assert_eq!(request.name.to_string(), "www.x.");
        assert_eq!((request.qtype, request.qclass), (Type::A, Class::IN));
        assert_eq!(request.question_end, QUERY.len());
        assert_eq!(request.opt, Some(Opt { udp_size: 1232, extended_rcode: 0, version: 0, dnssec_ok: true }));
        assert_eq!(request.options(&packet).count(), 0);
    }

    /// RFC 1995 §3: the authority section of an IXFR query has the SOA record of the client's version.
    #[test]
    fn reads_edns_of_a_query_with_an_authority_record() {
        let soa = [&b"\x00\x00\x06\x00\x01\x00\x00\x00\x00\x00\x16"[..], &[0; 22]].concat();
        let mut packet = [QUERY, &soa, OPT].concat();
        packet[9] = 1;
        assert_eq!(read(&packet).unwrap().opt.map(|opt| opt.udp_size), Some(1232));
    }

    #[test]
    fn reads_options() {
        let packet = [QUERY, b"\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x06\x00\x0a\x00\x02ab"].concat();
        let request = read(&packet).unwrap();
        assert_eq!(request.options(&packet).collect::<Vec<_>>(), [(OptionCode::COOKIE, &b"ab"[..])]);
    }

    #[test]
    fn reads_thousands_of_repeated_options() {
        // As many NSID options of four bytes as a message has room for.
        let count = 16_000_u16;
        let options = b"\x00\x03\x00\x00".repeat(count.into());
        let head = [QUERY, b"\x00\x00\x29\x04\xd0\x00\x00\x00\x00"].concat();
        let packet = [&head[..], &(4 * count).to_be_bytes(), &options].concat();
        assert_eq!(read(&packet).unwrap().options(&packet).count(), count.into());
    }

    #[test]
    fn rejects_malformed_queries() {
        let counts = |at: usize, value: u8| {
            let mut packet = [QUERY, OPT].concat();
            packet[at] = value;
            packet
        };
        assert_eq!(read(&counts(5, 0)).err(), Some(Malformed::Counts));
        assert_eq!(read(&counts(5, 2)).err(), Some(Malformed::Counts));
        assert_eq!(read(&counts(7, 2)).err(), Some(Malformed::Counts));
        assert_eq!(read(&counts(9, 2)).err(), Some(Malformed::Counts));
        assert_eq!(read(&counts(11, 3)).err(), Some(Malformed::Counts));
        // An UPDATE has any number of prerequisites and updates, and no more additional records than a query.
        let update = |at: usize, value: u8| {
            let mut packet = counts(at, value);
            packet[2] = 5 << 3;
            packet
        };
        assert_eq!(read(&update(5, 2)).err(), Some(Malformed::Counts));
        assert_eq!(read(&update(9, 2)).err(), Some(Malformed::Short));
        assert_eq!(read(&update(11, 3)).err(), Some(Malformed::Counts));
        // The header counts one record, but the packet has none.
        assert_eq!(read(QUERY).err(), Some(Malformed::Short));
        let mut two_opts = [QUERY, OPT, OPT].concat();
        two_opts[11] = 2;
        assert_eq!(read(&two_opts).err(), Some(Malformed::Opt));
        let mut opt_in_answer = [QUERY, OPT].concat();
        (opt_in_answer[7], opt_in_answer[11]) = (1, 0);
        assert_eq!(read(&opt_in_answer).err(), Some(Malformed::Opt));
        let named = [QUERY, b"\x01a\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"].concat();
        assert_eq!(read(&named).err(), Some(Malformed::Opt));
        let broken_option = [QUERY, b"\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x03\x00\x0a\x00"].concat();
        assert_eq!(read(&broken_option).err(), Some(Malformed::Opt));
    }
}
