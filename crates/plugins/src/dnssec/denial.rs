//! What an answer says that is to be signed: records only, that there is none, or that another zone begins.

use engine::{Query, Response};
use wire::{Mark, MessageBuf, Name, NameRef, Rcode, Section, Type};
use zone::dnssec::{next_beside, next_name, nsec};

/// Aliases that are followed from the question to the name that an answer is about.
const ALIASES_MAX: usize = 16;

/// Types that any name may own, as far as our denials say: whoever draws conclusions from one (RFC 8198) must not miss
/// records that are there. Not among them is what would change the meaning: CNAME, DNAME, DS, NS and SOA.
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
/// Types that only the name of a zone may own.
const AT_APEX: [Type; 6] = [Type::NS, Type::SOA, Type::DNSKEY, Type::CDS, Type::CDNSKEY, Type::ZONEMD];
/// Types of a name that is another zone's, but for DS (RFC 4035 §2.3).
const AT_CUT: [Type; 3] = [Type::NS, Type::RRSIG, Type::NSEC];

/// What an answer says beside its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// Nothing that needs a proof.
    Records,
    /// The name has no records of the type, or does not exist.
    Nothing(Name),
    /// Another zone begins at this name, and the answer has its DS records.
    SignedCut(Name),
    /// Another zone begins at this name, and it is not signed.
    UnsignedCut(Name),
}

impl Says {
    /// What an answer of a zone says. What carries proofs already says nothing more.
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

    /// The name of the zone that begins where this one ends.
    pub(super) fn cut(&self) -> Option<NameRef<'_>> {
        match self {
            Says::SignedCut(cut) | Says::UnsignedCut(cut) => Some(cut.as_ref()),
            Says::Records | Says::Nothing(_) => None,
        }
    }

    /// Owner and data of the NSEC record that proves it; `None` if nothing is to be proven, or the name is too long.
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

/// The data of an NSEC record by which a name owns all but this type: a "black lie" (RFC 9824 says how it came about).
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

/// Whether there is a record of the type in the answer.
fn is_answered(query: &Query, message: &MessageBuf) -> bool {
    let is_any = query.qtype == Type::ANY;
    message.section(Section::Answer).any(|mark| mark.rtype == query.qtype || is_any)
}

/// The name that the aliases of an answer lead to.
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
