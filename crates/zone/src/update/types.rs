//! Record types that updates may and may not contain.

use wire::Type;

/// Types whose records depend on other records of the zone, so that an update would make them wrong (DNSSEC and zone
/// digests), and their obsolete predecessors.
const UNSUPPORTED: [Type; 15] = [
    Type::SIG,
    Type::KEY,
    Type::NXT,
    Type::DS,
    Type::RRSIG,
    Type::NSEC,
    Type::DNSKEY,
    Type::NSEC3,
    Type::NSEC3PARAM,
    Type::TALINK,
    Type::CDS,
    Type::CDNSKEY,
    Type::TA,
    Type::DLV,
    Type::ZONEMD,
];

/// Types that no zone can have: only a question, the additional section or a type bitmap (NXNAME, RFC 9824 §2) can.
const QUERY_ONLY: [Type; 9] =
    [Type::ANY, Type::AXFR, Type::IXFR, Type::MAILA, Type::MAILB, Type::NXNAME, Type::OPT, Type::TKEY, Type::TSIG];

/// Returns true for types that no dynamic zone can have.
#[must_use]
pub fn is_unsupported(rtype: Type) -> bool {
    UNSUPPORTED.contains(&rtype)
}

/// Returns true for types that a rule can grant: those that an update can add or delete, and ANY, which deletes a name.
#[must_use]
pub fn is_grantable(rtype: Type) -> bool {
    rtype == Type::ANY || is_known(rtype) && !is_query_only(rtype) && !is_unsupported(rtype)
}

/// Returns true for types with a mnemonic. Others are refused, because nobody can tell if their RDATA is valid.
pub(super) fn is_known(rtype: Type) -> bool {
    rtype.mnemonic().is_some()
}

pub(super) fn is_query_only(rtype: Type) -> bool {
    QUERY_ONLY.contains(&rtype)
}
