use super::*;
use crate::{Rcode, Request};

fn name(text: &str) -> Name {
    Name::from_text(text).unwrap()
}

fn started(text: &str, rtype: Type) -> MessageBuf {
    let mut buf = MessageBuf::new();
    let header = Header { id: 7, flags: Flags::default().with_response(true), ..Header::default() };
    buf.start(header, Some((name(text).as_ref(), rtype, Class::IN)));
    buf
}

fn finished(buf: &mut MessageBuf) -> Vec<u8> {
    buf.finish(None, core::iter::empty()).to_vec()
}

#[test]
fn round_trips_an_answer_with_an_opt_record() {
    let mut buf = started("Web.prod.svc.cluster.local.", Type::A);
    buf.push_a(Section::Answer, Owner::Question, 30, Ipv4Addr::new(10, 96, 0, 1)).unwrap();
    let opt = Opt { udp_size: 1232, extended_rcode: 0, version: 0, dnssec_ok: false };
    let packet = buf.finish(Some(opt), [(OptionCode::NSID, &b"x"[..])].into_iter()).to_vec();
    let message = Message::parse(&packet).unwrap();
    assert_eq!((message.header().answers, message.header().additionals), (1, 1));
    let records: Vec<_> = message.records().collect();
    assert_eq!(records[0].owner().unwrap().to_string(), "Web.prod.svc.cluster.local.");
    assert_eq!((records[0].ttl(), records[0].rdata()), (30, &[10, 96, 0, 1][..]));
    let mut request = Request::default();
    request.read(Header { answers: 0, ..message.header() }, &packet[..message.records_at()]).unwrap_err();
    assert_eq!(records[1].rtype(), Type::OPT);
    assert_eq!(records[1].rdata(), [0, 3, 0, 1, b'x']);
}

#[test]
fn omits_whole_records_past_the_limit_and_sets_tc() {
    let mut buf = started("big.", Type::A);
    buf.set_limit(64);
    for last in 0..10 {
        buf.push_a(Section::Answer, Owner::Question, 5, Ipv4Addr::new(10, 0, 0, last));
    }
    let packet = finished(&mut buf);
    assert!(packet.len() <= 64);
    let message = Message::parse(&packet).unwrap();
    assert!(message.header().flags.truncated());
    assert_eq!(message.records().count(), 2);
}

#[test]
fn writes_srv_targets_uncompressed_and_lets_later_owners_point_at_them() {
    let mut buf = started("_http._tcp.web.x.test.", Type::SRV);
    let target = name("w0.web.x.test.");
    let mark = buf
        .push(Section::Answer, Owner::Question, (Type::SRV, Class::IN, 5), |rdata| {
            rdata.bytes(&[0, 0, 0, 100, 0, 80]);
            rdata.plain_name(target.as_ref());
        })
        .unwrap();
    assert_eq!(mark.rdata_range().len(), 6 + target.as_bytes().len());
    buf.push_a(Section::Additional, Owner::At(usize::from(mark.rdata) + 6), 5, Ipv4Addr::LOCALHOST).unwrap();
    buf.push_a(Section::Additional, Owner::Name(target.as_ref()), 5, Ipv4Addr::LOCALHOST).unwrap();
    let packet = finished(&mut buf);
    let message = Message::parse(&packet).unwrap();
    let owners: Vec<String> = message.records().map(|record| record.owner().unwrap().to_string()).collect();
    assert_eq!(owners[1..], ["w0.web.x.test.", "w0.web.x.test."]);
    assert_eq!(packet.len(), message.records_at() + 2 + 10 + 6 + 15 + 2 * 16);
}

#[test]
fn adopts_an_answer_for_the_same_or_a_longer_question() {
    let mut from = started("a.test.", Type::A);
    from.push_name(Section::Answer, Owner::Question, (Type::CNAME, 9), name("b.test.").as_ref()).unwrap();
    from.push_a(Section::Answer, Owner::Name(name("b.test.").as_ref()), 9, Ipv4Addr::LOCALHOST).unwrap();
    let opt = Opt { udp_size: 4096, extended_rcode: 0, version: 0, dnssec_ok: false };
    let packet = from.finish(Some(opt), core::iter::empty()).to_vec();
    let message = Message::parse(&packet).unwrap();

    let mut same = started("A.test.", Type::A);
    same.adopt(&message).unwrap();
    assert_eq!(same.records_bytes(), &packet[message.records_at()..packet.len() - OPT_FIXED_LEN]);

    let mut longer = started("other.question.test.", Type::A);
    longer.adopt(&message).unwrap();
    let texts: Vec<String> = longer.marks().iter().map(|mark| longer.owner(*mark).unwrap().to_string()).collect();
    assert_eq!(texts, ["a.test.", "b.test."]);
    assert_eq!(longer.name_in(longer.marks()[0], 0).unwrap().to_string(), "b.test.");
}

#[test]
fn removes_sections_and_sets_ttls() {
    let mut buf = started("x.test.", Type::A);
    buf.push_a(Section::Answer, Owner::Question, 9, Ipv4Addr::new(1, 1, 1, 1));
    buf.push_a(Section::Answer, Owner::Question, 7, Ipv4Addr::new(2, 2, 2, 2));
    buf.push_name(Section::Authority, Owner::Question, (Type::NS, 5), name("ns.x.test.").as_ref());
    assert_eq!(buf.ttl_min(), Some(5));
    buf.swap_rdata(0, 1);
    buf.cut_from(Section::Authority);
    buf.set_ttls(3);
    let packet = finished(&mut buf);
    let message = Message::parse(&packet).unwrap();
    let records: Vec<_> = message.records().map(|record| (record.ttl(), record.rdata().to_vec())).collect();
    assert_eq!(records, [(3, vec![2, 2, 2, 2]), (3, vec![1, 1, 1, 1])]);
}

#[test]
fn splits_the_extended_rcode_between_header_and_opt() {
    let mut buf = started("x.", Type::A);
    buf.header.flags = buf.header.flags.with_rcode(Rcode::BADVERS);
    let opt = Opt { udp_size: 1232, extended_rcode: 1, version: 0, dnssec_ok: false };
    let packet = buf.finish(Some(opt), core::iter::empty()).to_vec();
    assert_eq!(packet[3] & 0xf, 0);
    assert_eq!(packet[packet.len() - OPT_FIXED_LEN + 5], 1);
}

#[test]
fn counts_a_record_appended_to_a_finished_message() {
    let mut message = MessageBuf::new();
    message.start(Header::default(), Some((NameRef::ROOT, Type::A, Class::IN)));
    message.push_a(Section::Answer, Owner::Question, 1, Ipv4Addr::LOCALHOST);
    let opt = Opt { udp_size: 1232, extended_rcode: 0, version: 0, dnssec_ok: false };
    let finished = message.finish(Some(opt), core::iter::empty()).len();
    message.push_behind(b"\x00\x00\xfa\x00\xff\x00\x00\x00\x00\x00\x00");
    let message = Message::parse(message.bytes_at(0..message.len())).unwrap();
    assert_eq!(message.records().map(|record| record.rtype()).collect::<Vec<_>>(), [Type::A, Type::OPT, Type::TSIG]);
    assert_eq!((message.header().additionals, message.as_bytes().len()), (2, finished + 11));
}

#[test]
fn maps_names_in_rdata() {
    let mut from = started("a.test.", Type::MX);
    let mx = (Type::MX, Class::IN, 9);
    from.push(Section::Answer, Owner::Question, mx, |rdata| {
        rdata.u16(10);
        rdata.name(name("b.test.").as_ref());
    });
    from.push_a(Section::Answer, Owner::Question, 9, Ipv4Addr::LOCALHOST);
    assert_eq!(from.name_in(from.marks()[0], 2).unwrap().to_string(), "b.test.");
    let mut to = started("a.test.", Type::MX);
    for mark in from.marks() {
        to.push_record_mapped(Section::Answer, Owner::Question, 5, &from.record(*mark), |_| name("c.org.")).unwrap();
    }
    assert_eq!(to.bytes_at(to.marks()[0].rdata_range()), b"\0\x0a\x01c\x03org\0");
    assert_eq!(to.bytes_at(to.marks()[1].rdata_range()), [127, 0, 0, 1]);
    assert_eq!(to.ttl_min(), Some(5));
}

#[test]
fn repeats_names_that_a_pointer_cannot_reach() {
    let mut buf = started("a.test.", Type::TXT);
    let filler = [b'x'; 250];
    while buf.len() <= 0x3fff {
        buf.push(Section::Answer, Owner::Question, (Type::TXT, Class::IN, 5), |rdata| rdata.character_string(&filler))
            .unwrap();
    }
    let far = buf.len() + 12;
    let target = (Type::NS, Class::IN, 5);
    buf.push(Section::Answer, Owner::Question, target, |rdata| rdata.plain_name(name("b.test.").as_ref())).unwrap();
    buf.push(Section::Answer, Owner::Question, target, |rdata| rdata.labels_to(b"\x02ns", far)).unwrap();
    let packet = finished(&mut buf);
    let message = Message::parse(&packet).unwrap();
    let last = message.records().last().unwrap();
    assert_eq!(last.name_at(0).unwrap().0.to_string(), "ns.b.test.");
}

#[test]
fn restores_records_within_the_limit_for_a_question_in_another_case() {
    let mut from = started("a.test.", Type::A);
    for last in 0..3 {
        from.push_a(Section::Answer, Owner::Question, 9, Ipv4Addr::new(10, 0, 0, last));
    }
    let (bytes, marks) = (from.records_bytes().to_vec(), from.marks().to_vec());
    let whole = from.len();
    for (limit, kept) in [(whole + 1, 3), (whole, 3), (whole - 1, 2), (whole - 16, 2), (whole - 17, 1)] {
        let mut buf = started("A.test.", Type::A);
        buf.set_limit(limit);
        buf.restore(&bytes, &marks);
        let packet = finished(&mut buf);
        let message = Message::parse(&packet).unwrap();
        let last: Vec<u8> = message.records().map(|record| record.rdata()[3]).collect();
        assert_eq!(last, [0, 1, 2][..kept], "{limit}");
        assert_eq!(message.header().flags.truncated(), kept < 3, "{limit}");
        assert_eq!(message.header().flags, buf.flags(), "{limit}");
        let (owner, rtype, class) = message.question().unwrap();
        assert_eq!((owner.to_string().as_str(), rtype, class), ("A.test.", Type::A, Class::IN));
    }
}

#[test]
fn swaps_only_rdata_of_equal_length() {
    let mut buf = started("a.test.", Type::A);
    buf.push_a(Section::Answer, Owner::Question, 9, Ipv4Addr::new(1, 1, 1, 1));
    buf.push_address(Section::Answer, Owner::Question, 9, Ipv6Addr::LOCALHOST.into());
    buf.push_a(Section::Answer, Owner::Question, 9, Ipv4Addr::new(2, 2, 2, 2));
    let before = buf.records_bytes().to_vec();
    for (one, other) in [(0, 0), (0, 1), (1, 0), (0, 3), (3, 0)] {
        buf.swap_rdata(one, other);
        assert_eq!(buf.records_bytes(), before, "{one} and {other}");
    }
    for expected in [[2, 2, 2, 2], [1, 1, 1, 1]] {
        buf.swap_rdata(2, 0);
        assert_eq!(buf.bytes_at(buf.marks()[0].rdata_range()), expected);
    }
}

#[test]
fn points_at_the_question_if_there_is_one() {
    let owner = name("b.test.");
    let mut buf = started("a.test.", Type::A);
    buf.push_a(Section::Answer, Owner::Name(owner.as_ref()), 9, Ipv4Addr::LOCALHOST);
    assert_eq!(buf.records_bytes()[..4], [1, b'b', 0xc0, 14]);
    buf.start(Header::default(), None);
    buf.push_a(Section::Answer, Owner::Name(owner.as_ref()), 9, Ipv4Addr::LOCALHOST);
    buf.push_a(Section::Answer, Owner::Question, 9, Ipv4Addr::LOCALHOST);
    let packet = finished(&mut buf);
    let message = Message::parse(&packet).unwrap();
    let owners: Vec<String> = message.records().map(|record| record.owner().unwrap().to_string()).collect();
    assert_eq!((message.question(), owners), (None, vec!["b.test.".to_owned(), ".".to_owned()]));
}

#[test]
fn lists_the_records_of_one_section() {
    let mut buf = started("a.test.", Type::A);
    for section in [Section::Answer, Section::Answer, Section::Authority, Section::Additional] {
        buf.push_a(section, Owner::Question, 9, Ipv4Addr::LOCALHOST);
    }
    let count = |section| buf.section(section).inspect(|mark| assert_eq!(mark.section, section)).count();
    assert_eq!([Section::Answer, Section::Authority, Section::Additional].map(count), [2, 1, 1]);
}

#[test]
fn a_ttl_with_the_top_bit_set_counts_as_zero() {
    for (raw, ttl) in [(0, 0), (1, 1), (0x7fff_ffff, 0x7fff_ffff), (0x8000_0000, 0), (u32::MAX, 0)] {
        let mut buf = started("a.test.", Type::A);
        buf.push_a(Section::Answer, Owner::Question, raw, Ipv4Addr::LOCALHOST);
        let packet = finished(&mut buf);
        let record = Message::parse(&packet).unwrap().records().next().unwrap();
        assert_eq!((record.raw_ttl(), record.ttl()), (raw, ttl));
    }
}

/// Types, whether names are compressed, the bytes before the names, the number of names, the bytes after them.
type NamesInData<'a> = (&'a [Type], bool, &'a [u8], usize, &'a [u8]);

/// RFC 3597 §4: receivers decompress these types, and senders compress only the first four rows.
#[test]
fn decompresses_names_in_rdata_and_compresses_those_of_rfc_1035() {
    let one_name = [Type::NS, Type::CNAME, Type::PTR, Type::MB, Type::MD, Type::MF, Type::MG, Type::MR];
    let signature = [7u8; 18];
    let rows: [NamesInData<'_>; 11] = [
        (&one_name, true, b"", 1, b""),
        (&[Type::SOA], true, b"", 2, &[9; 20]),
        (&[Type::MINFO], true, b"", 2, b""),
        (&[Type::MX], true, b"\0\x0a", 1, b""),
        (&[Type::RP], false, b"", 2, b""),
        (&[Type::AFSDB, Type::RT, Type::KX], false, b"\0\x0a", 1, b""),
        (&[Type::PX], false, b"\0\x0a", 2, b""),
        (&[Type::SRV], false, b"\0\x0a\0\0\0\x35", 1, b""),
        (&[Type::NAPTR], false, b"\0\x01\0\x02\x01u\x02ab\0", 1, b""),
        (&[Type::DNAME, Type::NXT, Type::NSEC], false, b"", 1, b""),
        (&[Type::SIG, Type::RRSIG], false, &signature, 1, b"signature"),
    ];
    let plain = name("a.test.");
    for (types, is_compressed, before, names, after) in rows {
        for rtype in types {
            let mut from = started("a.test.", *rtype);
            from.push(Section::Answer, Owner::Question, (*rtype, Class::IN, 5), |rdata| {
                rdata.bytes(&[before, &b"\xc0\x0c".repeat(names), after].concat());
            });
            let mut to = started("b.a.test.", *rtype);
            let record = from.record(from.marks()[0]);
            let mark = to.push_record_as(Section::Answer, Owner::Question, 5, &record).unwrap().unwrap();
            let name = if is_compressed { b"\xc0\x0e" } else { plain.as_bytes() };
            let expected = [before, &name.repeat(names), after].concat();
            assert_eq!(to.bytes_at(mark.rdata_range()), expected, "{rtype}");
        }
    }
}
