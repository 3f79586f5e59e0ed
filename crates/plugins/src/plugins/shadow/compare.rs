//! Comparison of two answers to the same question: response code, flags, the records of the answer and the authority
//! section as sets, their TTLs, and the presence of EDNS.
//!
//! EDNS options are not compared. They belong to one hop, such as cookies, or to one server, such as errors (RFC 8914).

use core::time::Duration;

use config::setup::ShadowAnswer;
use wire::{EdeCode, Flags, Message, Opt, OptionCode, Rcode, Record, Section, Type, options};
use zone::text::{Data, expand};

/// Maximum number of records of a section in a brief answer.
const SHOWN_MAX: usize = 4;
/// Position of the serial in the data of an SOA record.
const SERIAL_WORD: usize = 2;

/// Parts that are not compared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ignored {
    pub(super) ttl: bool,
    pub(super) order: bool,
    pub(super) ra: bool,
}

/// Part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Rcode,
    Aa,
    Tc,
    Ra,
    Ad,
    Answer,
    Authority,
    /// The serial of an SOA record, and nothing else in its section.
    SoaSerial,
    Ttl,
    Order,
    Edns,
}

impl Part {
    /// Returns the name of the part in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Part::Rcode => "rcode",
            Part::Aa => "aa",
            Part::Tc => "tc",
            Part::Ra => "ra",
            Part::Ad => "ad",
            Part::Answer => "answer",
            Part::Authority => "authority",
            Part::SoaSerial => "soa-serial",
            Part::Ttl => "ttl",
            Part::Order => "order",
            Part::Edns => "edns",
        }
    }
}

/// Answer in the form in which it is compared.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) rcode: Rcode,
    flags: Flags,
    pub(super) answer: Vec<Comparable>,
    pub(super) authority: Vec<Comparable>,
    /// True if records are missing.
    is_cut: bool,
    has_opt: bool,
    ede: Option<(EdeCode, String)>,
}

/// Record as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Comparable {
    owner: String,
    /// Class and type.
    kind: String,
    data: String,
    ttl: u32,
    is_soa: bool,
}

impl Answer {
    /// Reads a message. `None` if a record is malformed.
    pub(super) fn read(bytes: &[u8]) -> Option<Answer> {
        let message = Message::parse(bytes).ok()?;
        let flags = message.header().flags;
        let mut answer = Answer { rcode: flags.rcode(), flags, is_cut: flags.truncated(), ..Answer::default() };
        for record in message.records() {
            match record.section() {
                _ if record.rtype() == Type::OPT => answer.read_opt(&record),
                Section::Answer => answer.answer.push(Comparable::of(&record)?),
                Section::Authority => answer.authority.push(Comparable::of(&record)?),
                Section::Additional => {}
            }
        }
        Some(answer)
    }

    fn read_opt(&mut self, record: &Record<'_>) {
        let opt = Opt::from_fields(record.class().0, record.raw_ttl());
        self.has_opt = true;
        self.rcode = Rcode(u16::from(opt.extended_rcode) << 4 | self.rcode.0);
        let mut errors = options(record.rdata()).filter(|(code, _)| *code == OptionCode::EXTENDED_ERROR);
        self.ede = errors.next().and_then(|(_, data)| {
            let (code, text) = data.split_first_chunk()?;
            Some((EdeCode(u16::from_be_bytes(*code)), String::from_utf8_lossy(text).into_owned()))
        });
    }

    pub(super) const fn is_truncated(&self) -> bool {
        self.flags.truncated()
    }

    pub(super) const fn is_authoritative(&self) -> bool {
        self.flags.authoritative()
    }

    /// Returns true for NOERROR without answers.
    pub(super) fn is_nodata(&self) -> bool {
        self.rcode == Rcode::NOERROR && self.answer.is_empty()
    }

    /// Takes the records of the same answer over TCP. The flag TC stays.
    pub(super) fn complete_with(&mut self, whole: Answer) {
        (self.answer, self.authority, self.is_cut) = (whole.answer, whole.authority, whole.is_cut);
    }

    /// Returns the answer in brief.
    pub(super) fn brief(&self) -> ShadowAnswer {
        let flags = [
            ("aa", self.flags.authoritative()),
            ("tc", self.flags.truncated()),
            ("rd", self.flags.recursion_desired()),
            ("ra", self.flags.recursion_available()),
            ("ad", self.flags.authentic_data()),
            ("cd", self.flags.checking_disabled()),
        ];
        let shown = |records: &[Comparable]| records.iter().take(SHOWN_MAX).map(Comparable::text).collect();
        ShadowAnswer {
            rcode: self.rcode,
            flags: flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect(),
            answer: shown(&self.answer),
            authority: shown(&self.authority),
            more: [&self.answer, &self.authority].map(|records| records.len().saturating_sub(SHOWN_MAX)).iter().sum(),
            ede: self.ede.clone(),
        }
    }
}

impl Comparable {
    fn of(record: &Record<'_>) -> Option<Comparable> {
        let mut rdata = Vec::new();
        expand(record, &mut rdata).ok()?;
        let rtype = record.rtype();
        Some(Comparable {
            owner: record.owner().ok()?.to_string(),
            kind: format!("{} {rtype}", record.class()),
            data: Data { rtype, rdata: &rdata }.to_string(),
            ttl: record.ttl(),
            is_soa: rtype == Type::SOA,
        })
    }

    fn text(&self) -> String {
        let Comparable { owner, kind, data, ttl, .. } = self;
        format!("{owner} {ttl} {kind} {data}")
    }
}

/// Rules of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) ignored: Ignored,
    /// Maximum difference of TTLs.
    pub(super) tolerance: Duration,
    /// True if the question has upper-case letters, which a server may repeat or not (RFC 4343 §4.1).
    pub(super) is_mixed_case: bool,
}

/// Returns the parts in which two answers differ.
pub(super) fn differences(theirs: &Answer, ours: &Answer, rules: &Rules) -> Vec<Part> {
    let flag = |get: fn(Flags) -> bool| get(theirs.flags) != get(ours.flags);
    let differs = [
        (Part::Rcode, theirs.rcode != ours.rcode),
        (Part::Aa, flag(Flags::authoritative)),
        (Part::Tc, flag(Flags::truncated)),
        (Part::Ra, flag(Flags::recursion_available) && !rules.ignored.ra),
        (Part::Ad, flag(Flags::authentic_data)),
        (Part::Edns, theirs.has_opt != ours.has_opt),
    ];
    let mut parts: Vec<Part> = differs.into_iter().filter(|(_, differs)| *differs).map(|(part, _)| part).collect();
    // The records that fit into a truncated answer are arbitrary.
    if !ours.is_cut && !theirs.is_cut {
        compare_section(Part::Answer, &theirs.answer, &ours.answer, rules, &mut parts);
        compare_section(Part::Authority, &theirs.authority, &ours.authority, rules, &mut parts);
    }
    parts
}

/// Compares the record sets of a section.
fn compare_section(part: Part, theirs: &[Comparable], ours: &[Comparable], rules: &Rules, parts: &mut Vec<Part>) {
    let texts = |records: &[Comparable], without_serial| -> Vec<(String, u32)> {
        records.iter().map(|record| (text(record, rules, without_serial), record.ttl)).collect()
    };
    let sorted = |mut texts: Vec<(String, u32)>| {
        texts.sort_unstable();
        texts
    };
    let same = |one: &[(String, u32)], other: &[(String, u32)]| {
        one.iter().map(|(text, _)| text).eq(other.iter().map(|(text, _)| text))
    };
    let mut add = |part| {
        if !parts.contains(&part) {
            parts.push(part);
        }
    };
    let (old, new) = (texts(theirs, false), texts(ours, false));
    let is_ordered = same(&old, &new);
    let (mut old, mut new) = (sorted(old), sorted(new));
    if !same(&old, &new) {
        (old, new) = (sorted(texts(theirs, true)), sorted(texts(ours, true)));
        if !same(&old, &new) {
            return add(part);
        }
        add(Part::SoaSerial);
    } else if !is_ordered && !rules.ignored.order {
        add(Part::Order);
    }
    let mut ttls = old.iter().zip(&new).map(|((_, old), (_, new))| old.abs_diff(*new));
    if !rules.ignored.ttl && ttls.any(|difference| Duration::from_secs(difference.into()) > rules.tolerance) {
        add(Part::Ttl);
    }
}

/// Returns the text of a record without its TTL.
fn text(record: &Comparable, rules: &Rules, without_serial: bool) -> String {
    let Comparable { owner, kind, data, .. } = record;
    let data = match without_serial && record.is_soa {
        true => without_word(data, SERIAL_WORD),
        false => data.clone(),
    };
    let text = format!("{owner} {kind} {data}");
    if rules.is_mixed_case { text.to_ascii_lowercase() } else { text }
}

fn without_word(text: &str, index: usize) -> String {
    let words = text.split(' ').enumerate().filter(|(at, _)| *at != index);
    words.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
pub(super) mod tests {
    use wire::{Class, Header, MessageBuf, Name, Owner};

    use super::*;

    /// Returns an answer to `a.test. A`. `!` before a record puts it into the authority section.
    pub(in super::super) fn answer(rcode: Rcode, flags: Flags, records: &[&str]) -> Answer {
        let mut message = MessageBuf::new();
        let name = Name::from_text("a.test.").unwrap();
        message.start(Header::default(), Some((name.as_ref(), Type::A, Class::IN)));
        for text in records {
            let (section, text) =
                text.strip_prefix('!').map_or((Section::Answer, *text), |text| (Section::Authority, text));
            let record = zone::text::record(text, Name::root().as_ref(), 0).unwrap();
            let fixed = (record.rtype, record.class, record.ttl);
            message.push_data(section, Owner::Name(record.owner.as_ref()), fixed, &record.rdata);
        }
        let mut bytes = message.finish(None, core::iter::empty()).to_vec();
        bytes[2..4].copy_from_slice(&flags.with_response(true).with_rcode(rcode).0.to_be_bytes());
        Answer::read(&bytes).unwrap()
    }

    const RULES: Rules = Rules {
        ignored: Ignored { ttl: false, order: true, ra: false },
        tolerance: Duration::from_secs(30),
        is_mixed_case: false,
    };
    const NONE: Flags = Flags(0);

    fn compare(theirs: &[&str], ours: &[&str], rules: &Rules) -> Vec<Part> {
        differences(&answer(Rcode::NOERROR, NONE, theirs), &answer(Rcode::NOERROR, NONE, ours), rules)
    }

    #[test]
    fn compares_sections_as_sets() {
        let (theirs, ours) =
            (["a.test. 5 A 192.0.2.1", "a.test. 5 A 192.0.2.2"], ["a.test. 5 A 192.0.2.2", "a.test. 5 A 192.0.2.1"]);
        assert_eq!(compare(&theirs, &ours, &RULES), []);
        let ordered = Rules { ignored: Ignored { order: false, ..RULES.ignored }, ..RULES };
        assert_eq!(compare(&theirs, &ours, &ordered), [Part::Order]);
        assert_eq!(compare(&theirs, &ours[..1], &RULES), [Part::Answer]);
        assert_eq!(compare(&theirs[..1], &["a.test. 5 A 192.0.2.1", "a.test. 5 A 192.0.2.1"], &RULES), [Part::Answer]);
        assert_eq!(compare(&["!a.test. 5 NS b.test."], &["!a.test. 5 NS c.test."], &RULES), [Part::Authority]);
    }

    #[test]
    fn tolerates_the_age_of_a_ttl() {
        let compare =
            |ttl: &str, rules| compare(&["a.test. 60 A 192.0.2.1"], &[&format!("a.test. {ttl} A 192.0.2.1")], rules);
        assert_eq!(compare("30", &RULES), []);
        assert_eq!(compare("90", &RULES), []);
        assert_eq!(compare("29", &RULES), [Part::Ttl]);
        assert_eq!(compare("29", &Rules { ignored: Ignored { ttl: true, ..RULES.ignored }, ..RULES }), []);
    }

    #[test]
    fn tells_the_serial_from_the_rest_of_an_soa_record() {
        let soa = |serial, minimum| format!("!test. 5 SOA ns.test. h.test. {serial} 1 2 3 {minimum}");
        assert_eq!(compare(&[&soa(1, 4)], &[&soa(2, 4)], &RULES), [Part::SoaSerial]);
        assert_eq!(compare(&[&soa(1, 4)], &[&soa(2, 5)], &RULES), [Part::Authority]);
    }

    #[test]
    fn ignores_the_case_of_letters_if_the_question_mixes_it() {
        let (theirs, ours) = (["a.test. 5 CNAME b.test."], ["A.test. 5 CNAME B.test."]);
        assert_eq!(compare(&theirs, &ours, &RULES), [Part::Answer]);
        assert_eq!(compare(&theirs, &ours, &Rules { is_mixed_case: true, ..RULES }), []);
    }

    #[test]
    fn compares_response_code_and_flags() {
        let flags = NONE.with_authoritative(true).with_recursion_available(true).with_authentic_data(true);
        let (theirs, ours) = (answer(Rcode::NXDOMAIN, NONE, &[]), answer(Rcode::NOERROR, flags, &[]));
        let parts = [Part::Rcode, Part::Aa, Part::Ra, Part::Ad];
        assert_eq!(differences(&theirs, &ours, &RULES), parts);
        let without_ra = Rules { ignored: Ignored { ra: true, ..RULES.ignored }, ..RULES };
        assert_eq!(differences(&theirs, &ours, &without_ra), [Part::Rcode, Part::Aa, Part::Ad]);
        let truncated = answer(Rcode::NOERROR, NONE.with_truncated(true), &["a.test. 5 A 192.0.2.1"]);
        assert_eq!(differences(&truncated, &truncated, &RULES), []);
        assert_eq!(differences(&answer(Rcode::NOERROR, NONE, &[]), &truncated, &RULES), [Part::Tc]);
    }

    #[test]
    fn shows_an_answer_in_brief() {
        let records: Vec<String> = (1..=6).map(|last| format!("a.test. 5 A 192.0.2.{last}")).collect();
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let brief = answer(Rcode::NOERROR, NONE.with_authoritative(true), &records).brief();
        assert_eq!((brief.answer.len(), brief.more, brief.flags), (SHOWN_MAX, 2, vec!["aa"]));
        assert_eq!(brief.answer[0], "a.test. 5 IN A 192.0.2.1");
    }
}
