//! Rewrites a response with signatures after its record sets.

use core::cell::Cell;
use std::sync::Arc;

use engine::{Query, Response};
use wire::{Class, Mark, MessageBuf, Name, NameError, NameRef, Owner, Rcode, Section, Type};
use zone::text;

use super::denial::Says;
use super::store::{Entry, SignResult, Store};
use super::{ORIGINAL_TTL, ZoneKeys};
use crate::shared::signing::Set;

/// Maximum number of record sets per section that are signed. More occur only in the additional section of answers with
/// many servers, where the signatures are not needed.
const SETS_MAX: usize = 32;

/// Signer for responses of one zone at one time.
pub(super) struct Signer<'a> {
    pub(super) keys: &'a ZoneKeys,
    pub(super) store: &'a Store,
    /// Current time in seconds since 1970.
    pub(super) now: u64,
    pub(super) random: u64,
    /// Number of signatures found in the cache, and of those that were made.
    pub(super) hits: Cell<u64>,
    pub(super) misses: Cell<u64>,
}

/// Records with the same name and type in one section.
struct Group {
    owner: Name,
    rtype: Type,
    marks: Vec<Mark>,
}

impl Signer<'_> {
    /// Signs a response and adds the proof for its statement. A name that does not exist is presented as a name without
    /// records.
    pub(super) fn sign(&self, query: &Query, response: &mut Response, scratch: &mut MessageBuf, says: &Says) {
        let proof = says.proof(query.qtype, self.zone());
        let ttl = negative_ttl(&response.message);
        let rewritten = response.rewrite(query, scratch, |new, old| {
            self.copy_section(Section::Answer, new, old, says)?;
            let proof = proof.as_ref().map(|(owner, data)| (*owner, data.as_slice()));
            // If the proof itself is queried, it is the answer.
            let is_asked = proof.is_some() && query.qtype == Type::NSEC;
            if !is_asked {
                self.copy_section(Section::Authority, new, old, says)?;
            }
            if let Some(proof) = proof {
                self.push_proof(if is_asked { Section::Answer } else { Section::Authority }, new, proof, ttl);
            }
            self.copy_additional(new, old, says)
        });
        if rewritten.is_ok() && proof.is_some() {
            response.set_rcode(Rcode::NOERROR);
        }
    }

    /// Answers a DNSKEY query with the keys of the zone, and with signatures if `signed`.
    pub(super) fn push_keys(&self, message: &mut MessageBuf, signed: bool) {
        let fixed = (Type::DNSKEY, Class::IN, ORIGINAL_TTL);
        for key in &self.keys.keys {
            message.push_data(Section::Answer, Owner::Question, fixed, &key.rdata);
        }
        if signed {
            let rdatas = self.keys.keys.iter().map(|key| key.rdata.clone()).collect();
            let set = Set::new(self.zone(), (Type::DNSKEY, ORIGINAL_TTL), rdatas);
            self.push_signatures(Section::Answer, message, (Owner::Question, ORIGINAL_TTL), &set, Type::DNSKEY);
        }
    }

    fn zone(&self) -> NameRef<'_> {
        self.keys.zone.as_ref()
    }

    fn copy_section(
        &self,
        section: Section,
        new: &mut MessageBuf,
        old: &MessageBuf,
        says: &Says,
    ) -> Result<(), NameError> {
        let (groups, rest) = groups(section, old)?;
        for group in &groups {
            for mark in &group.marks {
                new.push_record(section, &old.record(*mark))?;
            }
            if self.is_signed_here(section, group, &groups, old, says) {
                self.sign_group(section, new, old, group);
            }
        }
        rest.iter().try_for_each(|mark| new.push_record(section, &old.record(*mark)).map(|_| ()))
    }

    /// Copies the additional section. It is dropped if its signatures do not fit (RFC 4035 §3.1.1), except for glue
    /// records, which must be present (RFC 9471 §2).
    fn copy_additional(&self, new: &mut MessageBuf, old: &MessageBuf, says: &Says) -> Result<(), NameError> {
        let was_truncated = new.is_truncated();
        self.copy_section(Section::Additional, new, old, says)?;
        if new.is_truncated() && !was_truncated && says.cut().is_none() {
            new.cut_from(Section::Additional);
            new.header.flags = new.header.flags.with_truncated(false);
        }
        Ok(())
    }

    /// Returns true if this zone has to sign a record set: it belongs to the zone and has no signature yet. The NS
    /// records of a subzone and its addresses are not signed (RFC 4035 §2.2).
    fn is_signed_here(&self, section: Section, group: &Group, all: &[Group], old: &MessageBuf, says: &Says) -> bool {
        let (owner, rtype) = (group.owner.as_ref(), group.rtype);
        let of_cut = says.cut().is_some_and(|cut| owner.is_within(cut) && rtype != Type::DS);
        let of_other_zone = section == Section::Authority && rtype == Type::NS && owner != self.zone();
        let covers = |mark: &Mark| {
            let data = old.bytes_at(mark.rdata_range());
            data.first_chunk().is_some_and(|covered| u16::from_be_bytes(*covered) == rtype.0)
        };
        let mut signatures = all.iter().filter(|other| other.rtype == Type::RRSIG && other.owner == group.owner);
        owner.is_within(self.zone())
            && !matches!(rtype, Type::RRSIG | Type::SIG | Type::OPT)
            && !of_cut
            && !of_other_zone
            && !signatures.any(|other| other.marks.iter().any(covers))
    }

    fn sign_group(&self, section: Section, new: &mut MessageBuf, old: &MessageBuf, group: &Group) {
        let expanded = |mark: &Mark| {
            let mut data = Vec::new();
            text::expand(&old.record(*mark), &mut data).ok().map(|()| data)
        };
        // Data that does not parse as its type cannot be signed.
        let Some(rdatas) = group.marks.iter().map(expanded).collect::<Option<Vec<_>>>() else { return };
        let set = Set::new(group.owner.as_ref(), (group.rtype, ORIGINAL_TTL), rdatas);
        let ttl = group.marks.first().map_or(0, |mark| old.ttl(*mark));
        self.push_signatures(section, new, (Owner::Name(group.owner.as_ref()), ttl), &set, group.rtype);
    }

    fn push_proof(&self, section: Section, new: &mut MessageBuf, (owner, data): (NameRef<'_>, &[u8]), ttl: u32) {
        new.push_data(section, Owner::Name(owner), (Type::NSEC, Class::IN, ttl), data);
        let set = Set::new(owner, (Type::NSEC, ORIGINAL_TTL), vec![data.to_vec()]);
        self.push_signatures(section, new, (Owner::Name(owner), ttl), &set, Type::NSEC);
    }

    fn push_signatures(
        &self,
        section: Section,
        message: &mut MessageBuf,
        (owner, ttl): (Owner<'_>, u32),
        set: &Set,
        rtype: Type,
    ) {
        let Some(entry) = self.signatures(set, rtype) else { return };
        for signature in &entry.signatures {
            message.push_data(section, owner, (Type::RRSIG, Class::IN, ttl), signature);
        }
    }

    fn signatures(&self, set: &Set, rtype: Type) -> Option<Arc<Entry>> {
        let (counter, entry) = match self.store.sign(set, self.keys.signers(rtype), self.now, self.random) {
            SignResult::Hit(entry) => (&self.hits, entry),
            SignResult::Miss(entry) => (&self.misses, entry),
            SignResult::Nothing => return None,
        };
        counter.set(counter.get() + 1);
        Some(entry)
    }
}

/// Groups the records of a section into record sets. Returns the records beyond [`SETS_MAX`] separately.
fn groups(section: Section, message: &MessageBuf) -> Result<(Vec<Group>, Vec<Mark>), NameError> {
    let (mut groups, mut rest) = (Vec::<Group>::new(), Vec::new());
    for mark in message.section(section) {
        let owner = message.owner(mark)?;
        // The records of a set are mostly adjacent.
        let known = groups.iter().rposition(|group| group.rtype == mark.rtype && group.owner == owner);
        match known {
            Some(at) => groups[at].marks.push(mark),
            None if groups.len() < SETS_MAX => groups.push(Group { owner, rtype: mark.rtype, marks: vec![mark] }),
            None => rest.push(mark),
        }
    }
    Ok((groups, rest))
}

/// Returns the TTL of a denial in seconds: the lower of the SOA record's TTL and its minimum field (RFC 9077 §3).
fn negative_ttl(message: &MessageBuf) -> u32 {
    let soa = message.section(Section::Authority).find(|mark| mark.rtype == Type::SOA);
    let of_soa = soa.and_then(|mark| {
        let minimum = u32::from_be_bytes(*message.bytes_at(mark.rdata_range()).last_chunk()?);
        Some(minimum.min(message.ttl(mark)))
    });
    // A referral has no SOA record: its proof gets the lowest TTL of the message.
    of_soa.or(message.ttl_min()).unwrap_or_default()
}
