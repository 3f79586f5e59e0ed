//! Freshness lifetime of an answer in HTTP caches (RFC 8484 §5.1).

use wire::{Message, Rcode, Record, Section, Type};

/// Longest lifetime in seconds, as in CoreDNS.
const LONGEST: u32 = 3600;
/// Lifetime in seconds of errors and of answers without a TTL, as in CoreDNS.
const OF_ERRORS: u32 = 5;

/// Returns the seconds for `cache-control: max-age`: the least TTL of the records in `answer`, at most an hour.
///
/// A negative answer lives at most as long as the minimum of its SOA record says. An error, a referral and an answer
/// without records live five seconds.
#[must_use]
pub fn lifetime(answer: &[u8]) -> u32 {
    let Ok(message) = Message::parse(answer) else { return OF_ERRORS };
    if !is_cacheable(&message) {
        return OF_ERRORS;
    }
    let is_negative = message.header().answers == 0;
    let records = message.records().filter(|record| record.rtype() != Type::OPT);
    let least = records.map(|record| if is_negative { negative_ttl(&record) } else { record.ttl() }).min();
    least.map_or(OF_ERRORS, |least| least.min(LONGEST))
}

/// Returns true for positive answers, and for negative ones that prove it with an SOA record.
fn is_cacheable(message: &Message<'_>) -> bool {
    let header = message.header();
    let authority =
        |rtype| message.records().any(|record| record.section() == Section::Authority && record.rtype() == rtype);
    match header.flags.rcode() {
        Rcode::NOERROR => header.answers > 0 || authority(Type::SOA) || !authority(Type::NS),
        Rcode::NXDOMAIN => authority(Type::SOA),
        _ => false,
    }
}

/// Returns the TTL of a record in a negative answer: for the SOA record, the smaller of its TTL and its minimum field
/// (RFC 2308 §5).
fn negative_ttl(record: &Record<'_>) -> u32 {
    let minimum = (record.rtype() == Type::SOA).then(|| record.rdata().last_chunk().copied().map(u32::from_be_bytes));
    record.ttl().min(minimum.flatten().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Record as type, TTL and data, in the section that `at` names.
    type Fields = (Section, Type, u32, &'static [u8]);

    const SOA: &[u8] = b"\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x1e";
    const ANSWER: Section = Section::Answer;
    const AUTHORITY: Section = Section::Authority;
    const ADDITIONAL: Section = Section::Additional;

    fn answer(rcode: Rcode, records: &[Fields]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0x80, 0, 0, 1];
        bytes[3] |= u8::try_from(rcode.0).unwrap();
        for section in Section::ALL {
            let count = records.iter().filter(|record| record.0 == section).count();
            bytes.extend(u16::try_from(count).unwrap().to_be_bytes());
        }
        bytes.extend(b"\x01a\0\0\x01\0\x01");
        for (_, rtype, ttl, data) in records {
            bytes.push(0);
            bytes.extend(rtype.0.to_be_bytes());
            bytes.extend(1u16.to_be_bytes());
            bytes.extend(ttl.to_be_bytes());
            bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(data);
        }
        bytes
    }

    #[test]
    fn is_the_least_ttl_of_all_records_except_opt() {
        let a = |ttl| (ANSWER, Type::A, ttl, &[1, 2, 3, 4][..]);
        let rows: [(u32, Rcode, &[Fields]); 12] = [
            (30, Rcode::NOERROR, &[a(300), a(30)]),
            (20, Rcode::NOERROR, &[a(300), (AUTHORITY, Type::NS, 20, &[0])]),
            (300, Rcode::NOERROR, &[a(300), (ADDITIONAL, Type::OPT, 0, &[])]),
            (0, Rcode::NOERROR, &[a(0)]),
            (3600, Rcode::NOERROR, &[a(86_400)]),
            (5, Rcode::NOERROR, &[]),
            (5, Rcode::NOERROR, &[(ADDITIONAL, Type::OPT, 0, &[])]),
            (5, Rcode::NOERROR, &[(AUTHORITY, Type::NS, 300, &[0])]),
            (30, Rcode::NOERROR, &[(AUTHORITY, Type::SOA, 600, SOA)]),
            (10, Rcode::NXDOMAIN, &[(AUTHORITY, Type::SOA, 10, SOA)]),
            (5, Rcode::NXDOMAIN, &[]),
            (5, Rcode::SERVFAIL, &[a(300)]),
        ];
        for (number, (expected, rcode, records)) in rows.into_iter().enumerate() {
            assert_eq!(lifetime(&answer(rcode, records)), expected, "row {number}");
        }
    }

    #[test]
    fn is_short_for_what_is_no_message() {
        assert_eq!(lifetime(b""), OF_ERRORS);
        assert_eq!(lifetime(&[0xff; 40]), OF_ERRORS);
    }
}
