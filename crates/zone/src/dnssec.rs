//! What DNSSEC makes of records (RFC 4034): the octets that are signed, the data of RRSIG, NSEC and DNSKEY records.
//!
//! Nothing is signed or verified here: keys and their algorithms are for others.

use wire::{Class, Name, NameRef, Type};

use crate::text::{lowercase_names, write_bitmaps};

/// The flag of a DNSKEY record whose key signs zone data (RFC 4034 §2.1.1).
const ZONE_KEY: u16 = 0x0100;
/// The flag of a key that signs keys: a secure entry point.
const ENTRY_POINT: u16 = 0x0001;
/// The only protocol (RFC 4034 §2.1.2).
const PROTOCOL: u8 = 3;
/// Octets before the key in the data of a DNSKEY record.
const DNSKEY_FIXED_LEN: usize = 4;

/// The data of a DNSKEY record (RFC 4034 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dnskey<'a> {
    /// Which keys it is.
    pub flags: u16,
    /// The number of its algorithm.
    pub algorithm: u8,
    /// The public key, as its algorithm writes it.
    pub key: &'a [u8],
    rdata: &'a [u8],
}

impl<'a> Dnskey<'a> {
    /// Reads the data of a DNSKEY record; `None` if it is none that may sign records of a zone.
    #[must_use]
    pub fn read(rdata: &'a [u8]) -> Option<Dnskey<'a>> {
        let (fixed, key) = rdata.split_first_chunk::<DNSKEY_FIXED_LEN>()?;
        let [high, low, protocol, algorithm] = *fixed;
        let flags = u16::from_be_bytes([high, low]);
        (flags & ZONE_KEY != 0 && protocol == PROTOCOL).then_some(Dnskey { flags, algorithm, key, rdata })
    }

    /// Whether it is meant to sign keys, so that the parent zone points at it.
    #[must_use]
    pub const fn is_entry_point(self) -> bool {
        self.flags & ENTRY_POINT != 0
    }

    /// The number by which signatures name it (RFC 4034 appendix B).
    #[must_use]
    pub fn tag(self) -> u16 {
        let sum: u32 = self
            .rdata
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)))
            .sum();
        ((sum + (sum >> 16)) & 0xffff) as u16
    }
}

/// What a signature says beside itself: the data of its RRSIG record (RFC 4034 §3.1).
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The type that is signed.
    pub covered: Type,
    /// The algorithm of the key.
    pub algorithm: u8,
    /// Labels of the owner ([`signed_labels`]).
    pub labels: u8,
    /// The time to live that the records had when they were signed, in seconds.
    pub original_ttl: u32,
    /// Until when it is good, in seconds since 1970 modulo 2^32.
    pub expiration: u32,
    /// From when on it is good.
    pub inception: u32,
    /// The tag of the key.
    pub key_tag: u16,
    /// The zone whose key it is.
    pub signer: NameRef<'a>,
}

impl Terms<'_> {
    /// Appends the data of the RRSIG record up to the signature, which is also what the signature covers first.
    pub fn write(&self, data: &mut Vec<u8>) {
        data.extend(self.covered.0.to_be_bytes());
        data.extend([self.algorithm, self.labels]);
        data.extend(self.original_ttl.to_be_bytes());
        data.extend(self.expiration.to_be_bytes());
        data.extend(self.inception.to_be_bytes());
        data.extend(self.key_tag.to_be_bytes());
        data.extend(self.signer.to_name().into_lowercase().octets());
    }
}

/// Labels of an owner as RRSIG records count them: neither the root nor a wildcard's asterisk (RFC 4034 §3.1.3).
#[must_use]
pub fn signed_labels(owner: NameRef<'_>) -> u8 {
    let wildcard = usize::from(owner.labels().next() == Some(b"*"));
    u8::try_from(owner.labels().count() - wildcard).unwrap_or(u8::MAX)
}

/// Appends the records of a set in the form that is signed (RFC 4034 §6): owners and names in the data in lower case,
/// sorted, each once. The data come with their names in full.
pub fn write_canonical(owner: NameRef<'_>, (rtype, ttl): (Type, u32), rdatas: &mut Vec<Vec<u8>>, octets: &mut Vec<u8>) {
    rdatas.iter_mut().for_each(|rdata| lowercase_names(rtype, rdata));
    rdatas.sort_unstable();
    rdatas.dedup();
    let mut head: Vec<u8> = owner.to_name().into_lowercase().octets().to_vec();
    head.extend(rtype.0.to_be_bytes());
    head.extend(Class::IN.0.to_be_bytes());
    head.extend(ttl.to_be_bytes());
    for rdata in rdatas {
        octets.extend_from_slice(&head);
        octets.extend(u16::try_from(rdata.len()).unwrap_or(u16::MAX).to_be_bytes());
        octets.extend_from_slice(rdata);
    }
}

/// The data of an NSEC record (RFC 4034 §4.1): the next name, and the types that are there.
#[must_use]
pub fn nsec(next: NameRef<'_>, types: &[Type]) -> Vec<u8> {
    let mut data = next.octets().to_vec();
    let mut types: Vec<u16> = types.iter().map(|rtype| rtype.0).collect();
    write_bitmaps(&mut types, &mut data);
    data
}

/// The first name behind this one in canonical order, names below it included: what an NSEC record names that says
/// nothing about any other name (RFC 4470 §3, RFC 7129 appendix B). `None` if the name is too long for one.
#[must_use]
pub fn next_name(name: NameRef<'_>) -> Option<Name> {
    let mut next = Name::root();
    next.push_label(&[0]).and_then(|()| next.append(name)).ok()?;
    Some(next)
}

/// A name behind this one and all that may be below it: as [`next_name`], for a zone cut, below which names are another
/// zone's.
#[must_use]
pub fn next_beside(name: NameRef<'_>) -> Option<Name> {
    let (first, above) = (name.labels().next()?, name.parent()?);
    let mut next = Name::root();
    next.push_label(&[first, &[0]].concat()).and_then(|()| next.append(above)).ok()?;
    Some(next)
}

#[cfg(test)]
#[path = "dnssec_tests.rs"]
mod tests;
