//! DNSSEC record formats (RFC 4034): canonical RRset form and RDATA of DNSKEY, RRSIG and NSEC.
//!
//! The module neither signs nor verifies. Callers bring the keys and algorithms.

use wire::{Class, Name, NameRef, Type};

use crate::text::{lowercase_names, write_bitmaps};

/// Zone Key flag of a DNSKEY record: the key signs zone data (RFC 4034 §2.1.1).
const ZONE_KEY: u16 = 0x0100;
/// Secure Entry Point flag: the key signs keys.
const ENTRY_POINT: u16 = 0x0001;
/// Only valid value of the Protocol field (RFC 4034 §2.1.2).
const PROTOCOL: u8 = 3;
/// Number of bytes before the public key in the RDATA of a DNSKEY record.
const DNSKEY_FIXED_LEN: usize = 4;

/// Decoded RDATA of a DNSKEY record (RFC 4034 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dnskey<'a> {
    /// Flags field.
    pub flags: u16,
    /// Algorithm number.
    pub algorithm: u8,
    /// Public key in the format of its algorithm.
    pub key: &'a [u8],
    rdata: &'a [u8],
}

impl<'a> Dnskey<'a> {
    /// Decodes RDATA. Returns `None` if the key may not sign zone data.
    #[must_use]
    pub fn read(rdata: &'a [u8]) -> Option<Dnskey<'a>> {
        let (fixed, key) = rdata.split_first_chunk::<DNSKEY_FIXED_LEN>()?;
        let [high, low, protocol, algorithm] = *fixed;
        let flags = u16::from_be_bytes([high, low]);
        (flags & ZONE_KEY != 0 && protocol == PROTOCOL).then_some(Dnskey { flags, algorithm, key, rdata })
    }

    /// Returns true if the key is a secure entry point: it signs keys, and the parent zone's DS records refer to it.
    #[must_use]
    pub const fn is_entry_point(self) -> bool {
        self.flags & ENTRY_POINT != 0
    }

    /// Returns the key tag, by which signatures refer to the key (RFC 4034 appendix B).
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

/// RDATA of an RRSIG record without the signature (RFC 4034 §3.1).
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Type Covered: the type of the signed records.
    pub covered: Type,
    /// Algorithm number of the key.
    pub algorithm: u8,
    /// Number of labels of the owner ([`signed_labels`]).
    pub labels: u8,
    /// TTL of the records when they were signed, in seconds.
    pub original_ttl: u32,
    /// End of validity, in seconds since 1970 modulo 2^32.
    pub expiration: u32,
    /// Start of validity, in seconds since 1970 modulo 2^32.
    pub inception: u32,
    /// Tag of the key.
    pub key_tag: u16,
    /// Name of the zone that owns the key.
    pub signer: NameRef<'a>,
}

impl Terms<'_> {
    /// Appends RDATA up to the signature. The signature covers the same bytes first, followed by the records.
    pub fn write(&self, data: &mut Vec<u8>) {
        data.extend(self.covered.0.to_be_bytes());
        data.extend([self.algorithm, self.labels]);
        data.extend(self.original_ttl.to_be_bytes());
        data.extend(self.expiration.to_be_bytes());
        data.extend(self.inception.to_be_bytes());
        data.extend(self.key_tag.to_be_bytes());
        data.extend(self.signer.to_name().into_lowercase().as_bytes());
    }
}

/// Returns the number of labels of an owner as RRSIG counts them: without the root and a leading `*` (RFC 4034 §3.1.3).
#[must_use]
pub fn signed_labels(owner: NameRef<'_>) -> u8 {
    let wildcard = usize::from(owner.labels().next() == Some(b"*"));
    u8::try_from(owner.labels().count() - wildcard).unwrap_or(u8::MAX)
}

/// Appends the records of an RRset in canonical form (RFC 4034 §6): names in lower case, sorted, without duplicates.
/// The names in `rdatas` must be uncompressed.
pub fn write_canonical(owner: NameRef<'_>, (rtype, ttl): (Type, u32), rdatas: &mut Vec<Vec<u8>>, bytes: &mut Vec<u8>) {
    rdatas.iter_mut().for_each(|rdata| lowercase_names(rtype, rdata));
    rdatas.sort_unstable();
    rdatas.dedup();
    let mut head: Vec<u8> = owner.to_name().into_lowercase().as_bytes().to_vec();
    head.extend(rtype.0.to_be_bytes());
    head.extend(Class::IN.0.to_be_bytes());
    head.extend(ttl.to_be_bytes());
    for rdata in rdatas {
        bytes.extend_from_slice(&head);
        let length = u16::try_from(rdata.len());
        debug_assert!(length.is_ok(), "RDATA has at most 65,535 bytes");
        bytes.extend(length.unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend_from_slice(rdata);
    }
}

/// Returns the RDATA of an NSEC record (RFC 4034 §4.1) with the next name and the existing types.
#[must_use]
pub fn nsec(next: NameRef<'_>, types: &[Type]) -> Vec<u8> {
    let mut data = next.as_bytes().to_vec();
    let mut types: Vec<u16> = types.iter().map(|rtype| rtype.0).collect();
    write_bitmaps(&mut types, &mut data);
    data
}

/// Returns the name directly after `name` in canonical order, which is below it. An NSEC record up to this name covers
/// no other name (RFC 4470 §3, RFC 7129 appendix B). Returns `None` if the result would be too long.
#[must_use]
pub fn next_name(name: NameRef<'_>) -> Option<Name> {
    let mut next = Name::root();
    next.push_label(&[0]).and_then(|()| next.append(name)).ok()?;
    Some(next)
}

/// Returns a name after `name` and all names that may be below it, like [`next_name`]. A proof for a zone cut needs it,
/// because names below the cut belong to another zone.
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
