//! Comparison of our parser for messages with that of hickory-proto.
//!
//! A message that hickory-proto accepts must be accepted here, with the same header, question and records. The other
//! direction does not hold, on purpose: hickory-proto decodes all RDATA and refuses a second OPT record, OPT and TSIG
//! outside of the additional section, and records after a signature. Here, parsing checks record boundaries only;
//! plugins decode the RDATA that they use. Differences that are taken into account:
//!
//! - The response code of hickory-proto includes the upper bits of the OPT record (RFC 6891 §6.1.3).
//! - The OPT record is not among its additional records, and the last of several would win.
//! - It keeps a TTL above 2^31 - 1; here the raw field is compared.

use hickory_proto::op::{Message as Theirs, MessageType};
use hickory_proto::rr::Name as TheirName;
use hickory_proto::serialize::binary::BinEncodable;
use wire::{Message, Name, Section, Type};

/// Parses a packet with both libraries and panics if they disagree.
pub fn compare(packet: &[u8]) {
    let Ok(theirs) = Theirs::from_vec(packet) else { return };
    let ours = Message::parse(packet).expect("hickory-proto accepts the message");
    let header = ours.header();
    let metadata = &theirs.metadata;
    assert_eq!(header.id, metadata.id);
    assert_eq!(header.flags.is_response(), metadata.message_type == MessageType::Response);
    assert_eq!(header.flags.opcode().0, u8::from(metadata.op_code));
    assert_eq!(header.flags.rcode().0 & 0x0f, u16::from(metadata.response_code.low()));
    assert_eq!(usize::from(header.questions), theirs.queries.len());
    if let [query] = theirs.queries.as_slice() {
        let (name, qtype, class) = ours.question().expect("one question");
        same_name(&name, query.name());
        assert_eq!((qtype.0, class.0), (query.query_type().into(), query.query_class().into()));
    }
    let sections = [&theirs.answers, &theirs.authorities, &theirs.additionals];
    for (section, theirs) in Section::ALL.into_iter().zip(sections) {
        let records = ours.records().filter(|record| record.section() == section && record.rtype() != Type::OPT);
        let records: Vec<_> = records.collect();
        assert_eq!(records.len(), theirs.len(), "{section:?}");
        for (record, their) in records.iter().zip(theirs) {
            same_name(&record.owner().expect("hickory-proto reads the name"), &their.name);
            let fields = (record.rtype().0, record.class().0, record.raw_ttl());
            assert_eq!(fields, (their.record_type().into(), their.dns_class.into(), their.ttl));
        }
    }
}

fn same_name(ours: &Name, theirs: &TheirName) {
    assert_eq!(Ok(ours.as_bytes()), theirs.to_bytes().as_deref().map_err(ToString::to_string), "{ours} {theirs}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares a response with compressed names, and every prefix and single-byte change of it.
    #[test]
    fn both_parsers_agree_on_a_response_and_its_mutations() {
        let response: &[u8] = b"\x12\x34\x81\x83\x00\x01\x00\x02\x00\x01\x00\x01\x03WWW\x07example\x03org\x00\x00\x01\x00\x01\
            \xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x04\x01a\xc0\x10\xc0\x2d\x00\x01\x00\x01\xff\xff\xff\xff\x00\x04\x01\x02\x03\x04\
            \xc0\x10\x00\x02\x00\x01\x00\x00\x00\x05\x00\x05\x02ns\xc0\x10\x00\x00\x29\x04\xd0\x01\x00\x80\x00\x00\x00";
        assert_eq!(Theirs::from_vec(response).map(|message| message.answers.len()).ok(), Some(2));
        for end in 0..=response.len() {
            compare(&response[..end]);
        }
        for at in 0..response.len() {
            for value in 0..=u8::MAX {
                let mut changed = response.to_vec();
                changed[at] = value;
                compare(&changed);
            }
        }
    }
}
