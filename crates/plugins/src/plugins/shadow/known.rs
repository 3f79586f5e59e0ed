//! Deliberate differences from CoreDNS, each with the section of `docs/differences.md` that gives the reason.
//!
//! The list is short on purpose: an entry hides what it matches from the person who decides about the replacement.

use wire::{Rcode, Type};

use super::compare::{Answer, Part};

/// Kind of deliberate difference.
#[derive(Debug)]
pub(super) struct Known {
    /// Stable code.
    pub(super) code: &'static str,
    /// Section of `docs/differences.md`.
    pub(super) section: &'static str,
    /// Parts of the answers that it explains.
    parts: &'static [Part],
    applies: fn(Type, &Answer, &Answer) -> bool,
}

/// All kinds, the most specific first.
static KNOWN: [Known; 4] = [
    // A name exists regardless of the type (RFC 8020 §2).
    Known {
        code: "nodata",
        section: "kubernetes",
        parts: &[Part::Rcode],
        applies: |_, theirs, ours| theirs.rcode == Rcode::NXDOMAIN && ours.is_nodata() && ours.is_authoritative(),
    },
    Known {
        code: "nxdomain-for-soa",
        section: "kubernetes",
        parts: &[Part::Rcode],
        applies: |qtype, theirs, ours| {
            qtype == Type::SOA && theirs.is_nodata() && ours.rcode == Rcode::NXDOMAIN && ours.is_authoritative()
        },
    },
    // Compression makes more answers fit (RFC 1035 §4.1.4).
    Known {
        code: "compression",
        section: "messages",
        parts: &[Part::Tc],
        applies: |_, theirs, ours| theirs.is_truncated() && !ours.is_truncated(),
    },
    Known {
        code: "soa-serial",
        section: "kubernetes",
        parts: &[Part::SoaSerial],
        applies: |_, _, ours| ours.is_authoritative(),
    },
];

/// Returns the first kind that explains a difference, if the kinds together explain all of them.
pub(super) fn known(qtype: Type, theirs: &Answer, ours: &Answer, differs: &[Part]) -> Option<&'static Known> {
    let applying = || KNOWN.iter().filter(|known| (known.applies)(qtype, theirs, ours));
    let explains = |known: &Known, part: &Part| known.parts.contains(part);
    let all = differs.iter().all(|part| applying().any(|known| explains(known, part)));
    applying().find(|known| all && differs.iter().any(|part| explains(known, part)))
}

#[cfg(test)]
mod tests {
    use wire::Flags;

    use super::super::compare::tests::answer;
    use super::*;

    const AA: Flags = Flags(0x0400);

    #[test]
    fn every_kind_names_a_section_of_the_differences() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differences.md");
        #[allow(clippy::disallowed_methods, reason = "a test reads the page")]
        let page = std::fs::read_to_string(path).unwrap();
        let sections: Vec<String> =
            page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_lowercase).collect();
        for known in &KNOWN {
            assert!(sections.iter().any(|section| section == known.section), "{}: {}", known.code, known.section);
        }
    }

    #[test]
    fn all_parts_must_be_explained() {
        let (denied, empty) = (answer(Rcode::NXDOMAIN, AA, &[]), answer(Rcode::NOERROR, AA, &[]));
        let code = |qtype, theirs, ours, differs: &[Part]| known(qtype, theirs, ours, differs).map(|known| known.code);
        assert_eq!(code(Type::TXT, &denied, &empty, &[Part::Rcode]), Some("nodata"));
        assert_eq!(code(Type::TXT, &denied, &empty, &[Part::Rcode, Part::SoaSerial]), Some("nodata"));
        assert_eq!(code(Type::TXT, &denied, &empty, &[Part::Rcode, Part::Authority]), None);
        assert_eq!(code(Type::A, &empty, &denied, &[Part::Rcode]), None);
        assert_eq!(code(Type::SOA, &empty, &denied, &[Part::Rcode]), Some("nxdomain-for-soa"));
        assert_eq!(code(Type::A, &empty, &empty, &[Part::SoaSerial]), Some("soa-serial"));
        assert_eq!(code(Type::A, &empty, &empty, &[Part::Answer]), None);
        let cut = answer(Rcode::NOERROR, AA.with_truncated(true), &[]);
        assert_eq!(code(Type::A, &cut, &empty, &[Part::Tc]), Some("compression"));
        assert_eq!(code(Type::A, &empty, &cut, &[Part::Tc]), None);
    }

    #[test]
    fn an_answer_from_elsewhere_is_not_ours_to_explain() {
        let (denied, empty) = (answer(Rcode::NXDOMAIN, AA, &[]), answer(Rcode::NOERROR, Flags(0), &[]));
        assert!(known(Type::TXT, &denied, &empty, &[Part::Rcode]).is_none());
        assert!(known(Type::A, &empty, &empty, &[Part::SoaSerial]).is_none());
    }
}
