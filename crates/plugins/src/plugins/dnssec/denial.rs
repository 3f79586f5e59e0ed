//! Classification of a response that is to be signed: records only, a denial, or a referral to a subzone.

use engine::{Query, Response};
use wire::{Mark, MessageBuf, Name, NameRef, Rcode, Section, Type};
use zone::dnssec::{next_beside, next_name, nsec};

/// Maximum length of a CNAME chain from the query name to the name that a response is about.
const ALIASES_MAX: usize = 16;

/// Types that our denials list for every name. A resolver that draws conclusions from a denial (RFC 8198) must not miss
/// records that exist. Types that would change the meaning are not listed: CNAME, DNAME, DS, NS and SOA.
const ANYWHERE: [Type; 27] = [
    Type::A,
    Type::PTR,
    Type::HINFO,
    Type::MX,
    Type::TXT,
    Type::RP,
    Type::AFSDB,
    Type::AAAA,
    Type::LOC,
    Type::SRV,
    Type::NAPTR,
    Type::CERT,
    Type::APL,
    Type::SSHFP,
    Type::IPSECKEY,
    Type::RRSIG,
    Type::NSEC,
    Type::TLSA,
    Type::SMIMEA,
    Type::HIP,
    Type::OPENPGPKEY,
    Type::SVCB,
    Type::HTTPS,
    Type::SPF,
    Type::EUI48,
    Type::URI,
    Type::CAA,
];
/// Types that only the apex of a zone can own.
const AT_APEX: [Type; 6] = [Type::NS, Type::SOA, Type::DNSKEY, Type::CDS, Type::CDNSKEY, Type::ZONEMD];
/// Types at the name of a subzone that has no DS records (RFC 4035 §2.3).
const AT_CUT: [Type; 3] = [Type::NS, Type::RRSIG, Type::NSEC];

/// Statement of a response that its records alone do not prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// No statement that needs a proof.
    Records,
    /// The name has no records of the type, or does not exist.
    Nothing(Name),
    /// Referral to the signed subzone of this name. The response has its DS records.
    SignedCut(Name),
    /// Referral to the unsigned subzone of this name.
    UnsignedCut(Name),
}

impl Says {
    /// Classifies the response of a zone. A response that already carries proofs needs no other.
    pub(super) fn of(query: &Query, response: &Response, zone: NameRef<'_>) -> Says {
        let message = &response.message;
        let authority = |rtype: Type| message.section(Section::Authority).find(move |mark| mark.rtype == rtype);
        if is_answered(query, message) || authority(Type::NSEC).is_some() || authority(Type::NSEC3).is_some() {
            return Says::Records;
        }
        if let Some(soa) = authority(Type::SOA) {
            let name = end_of_aliases(query.name(), message);
            let is_ours = message.owner(soa).is_ok_and(|owner| owner.as_ref().is_within(zone));
            return if is_ours && name.as_ref().is_within(zone) { Says::Nothing(name) } else { Says::Records };
        }
        let cut = authority(Type::NS).and_then(|mark| message.owner(mark).ok());
        match cut.filter(|cut| cut.as_ref() != zone && cut.as_ref().is_within(zone)) {
            Some(cut) if response.rcode() != Rcode::NOERROR || authority(Type::DS).is_some() => Says::SignedCut(cut),
            Some(cut) => Says::UnsignedCut(cut),
            None => Says::Records,
        }
    }

    /// Returns the name of the subzone that a referral points to.
    pub(super) fn cut(&self) -> Option<NameRef<'_>> {
        match self {
            Says::SignedCut(cut) | Says::UnsignedCut(cut) => Some(cut.as_ref()),
            Says::Records | Says::Nothing(_) => None,
        }
    }

    /// Returns the owner and the data of the NSEC record that proves the statement. Returns `None` if there is nothing
    /// to prove or the name is too long.
    pub(super) fn proof(&self, qtype: Type, zone: NameRef<'_>) -> Option<(NameRef<'_>, Vec<u8>)> {
        match self {
            Says::Records | Says::SignedCut(_) => None,
            Says::Nothing(name) => Some((name.as_ref(), deny(name, qtype, zone)?)),
            Says::UnsignedCut(cut) => {
                let next = next_beside(lower(cut).as_ref()).or_else(|| next_name(lower(cut).as_ref()))?;
                Some((cut.as_ref(), nsec(next.as_ref(), &AT_CUT)))
            }
        }
    }
}

/// Returns the data of an NSEC record that lists all types except the denied one: a "black lie" (background in RFC
/// 9824).
fn deny(name: &Name, qtype: Type, zone: NameRef<'_>) -> Option<Vec<u8>> {
    let name = lower(name);
    let next = next_name(name.as_ref()).or_else(|| next_beside(name.as_ref()))?;
    let at_apex: &[Type] = if name.as_ref() == zone { &AT_APEX } else { &[] };
    let is_there = |rtype: &Type| *rtype != qtype || matches!(*rtype, Type::RRSIG | Type::NSEC);
    let types: Vec<Type> = ANYWHERE.iter().chain(at_apex).copied().filter(is_there).collect();
    Some(nsec(next.as_ref(), &types))
}

fn lower(name: &Name) -> Name {
    name.clone().into_lowercase()
}

/// Returns true if the answer section has a record of the queried type.
fn is_answered(query: &Query, message: &MessageBuf) -> bool {
    let is_any = query.qtype == Type::ANY;
    message.section(Section::Answer).any(|mark| mark.rtype == query.qtype || is_any)
}

/// Returns the end of the CNAME chain of a response.
fn end_of_aliases(name: NameRef<'_>, message: &MessageBuf) -> Name {
    let mut name = name.to_name();
    for _ in 0..ALIASES_MAX {
        let leads_on = |mark: &Mark| mark.rtype == Type::CNAME && message.owner(*mark).is_ok_and(|owner| owner == name);
        let alias = message.section(Section::Answer).find(leads_on);
        let Some(target) = alias.and_then(|mark| message.name_in(mark, 0).ok()) else { break };
        name = target;
    }
    name
}
