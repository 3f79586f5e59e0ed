//! Writes a zone as text in canonical order, with keys, NSEC records (RFC 4034 §4) and signatures.

use std::io::{self, Write};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use wire::{Name, NameRef, Type};
use zone::dnssec::nsec;
use zone::text::Data;
use zone::{Authority, Owner, RecordSet, Zone};

use crate::shared::signing::{Key, Set, ValidityPeriod};

/// Types that signing creates, and removes when a zone is signed again. A zone digest (RFC 8976) becomes invalid.
const REPLACED: [Type; 7] =
    [Type::RRSIG, Type::NSEC, Type::NSEC3, Type::NSEC3PARAM, Type::CDS, Type::CDNSKEY, Type::ZONEMD];
/// Digest type of SHA-256 in DS records (RFC 4509 §2.1).
const DIGEST_SHA256: u8 = 2;

/// Zone to sign while writing it.
pub(super) struct Signed<'a> {
    pub(super) zone: &'a Zone,
    pub(super) keys: &'a [Arc<Key>],
    pub(super) serial: u32,
    pub(super) period: ValidityPeriod,
}

/// RRset.
struct Records {
    rtype: Type,
    ttl: u32,
    rdatas: Vec<Vec<u8>>,
}

impl Signed<'_> {
    /// Writes the zone, starting with its SOA record and the signatures over it.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        // Names that get NSEC records, one ahead of the loop below.
        let mut ahead = self.owners().filter(|owner| owner.authority != Authority::Beyond).skip(1);
        for owner in self.owners() {
            let mut sets = self.records(&owner);
            if owner.authority != Authority::Beyond {
                let next = ahead.next().map_or_else(|| self.zone.origin().to_name(), |next| next.name);
                sets.push(self.proof(&owner, &sets, next.as_ref()));
            }
            sets.iter().try_for_each(|set| self.write_set(&owner, set, out))?;
        }
        Ok(())
    }

    /// Names that own records after signing.
    fn owners(&self) -> impl Iterator<Item = Owner<'_>> {
        self.zone.in_order().filter(|owner| owner.sets().any(|set| is_kept(&set)))
    }

    /// RRsets of a name after signing, without NSEC and RRSIG records.
    fn records(&self, owner: &Owner<'_>) -> Vec<Records> {
        let records = owner.sets().filter(is_kept).map(|set| Records {
            rtype: set.rtype,
            ttl: set.ttl,
            rdatas: set.data().map(<[u8]>::to_vec).collect(),
        });
        let mut sets: Vec<Records> = records.collect();
        if owner.name.as_ref() == self.zone.origin() {
            self.add_keys(&mut sets);
            self.set_serial(&mut sets);
            host::sorting::sort_by_key(&mut sets, |set| set.rtype != Type::SOA);
        }
        sets
    }

    /// Adds the keys, and the CDS and CDNSKEY records for the parent zone (RFC 7344 §3).
    fn add_keys(&self, sets: &mut Vec<Records>) {
        let ttl = self.zone.soa_set().map_or(0, |set| set.ttl);
        let own = self.keys.iter().map(|key| key.rdata.clone());
        let digests = self.keys.iter().map(|key| cds(&key.zone, key)).collect();
        sets.push(Records { rtype: Type::CDS, ttl, rdatas: digests });
        sets.push(Records { rtype: Type::CDNSKEY, ttl, rdatas: own.clone().collect() });
        match sets.iter_mut().find(|set| set.rtype == Type::DNSKEY) {
            Some(set) => {
                set.rdatas.retain(|rdata| !self.keys.iter().any(|key| key.rdata == *rdata));
                set.rdatas.extend(own);
            }
            None => sets.push(Records { rtype: Type::DNSKEY, ttl, rdatas: own.collect() }),
        }
    }

    fn set_serial(&self, sets: &mut [Records]) {
        /// Bytes from the serial to the end of the SOA data.
        const NUMBERS_LEN: usize = 20;
        let soa = sets.iter_mut().filter(|set| set.rtype == Type::SOA).flat_map(|set| &mut set.rdatas);
        for rdata in soa {
            if let Some(bytes) = rdata.last_chunk_mut::<NUMBERS_LEN>().and_then(|numbers| numbers.first_chunk_mut()) {
                *bytes = self.serial.to_be_bytes();
            }
        }
    }

    /// NSEC record of a name. Its TTL is that of negative answers (RFC 9077 §3).
    fn proof(&self, owner: &Owner<'_>, sets: &[Records], next: NameRef<'_>) -> Records {
        let is_told = |rtype: &Type| owner.authority == Authority::Own || matches!(*rtype, Type::NS | Type::DS);
        let own = sets.iter().map(|set| set.rtype).filter(is_told);
        let types: Vec<Type> = own.chain([Type::RRSIG, Type::NSEC]).collect();
        let soa_ttl = self.zone.soa_set().map_or(0, |set| set.ttl);
        let ttl = self.zone.soa().map_or(0, |soa| soa.minimum).min(soa_ttl);
        Records { rtype: Type::NSEC, ttl, rdatas: vec![nsec(next, &types)] }
    }

    fn write_set(&self, owner: &Owner<'_>, set: &Records, out: &mut dyn Write) -> io::Result<()> {
        for rdata in &set.rdatas {
            write_record(&owner.name, (set.rtype, set.ttl), rdata, out)?;
        }
        // Delegation NS records and glue are not signed (RFC 4035 §2.2).
        let is_signed = match owner.authority {
            Authority::Own => true,
            Authority::Cut => matches!(set.rtype, Type::DS | Type::NSEC),
            Authority::Beyond => false,
        };
        if !is_signed {
            return Ok(());
        }
        let signed = Set::new(owner.name.as_ref(), (set.rtype, set.ttl), set.rdatas.clone());
        for key in self.keys {
            let signature = key.sign(&signed, self.period).ok_or_else(|| io::Error::other("the system cannot sign"))?;
            write_record(&owner.name, (Type::RRSIG, set.ttl), &signature, out)?;
        }
        Ok(())
    }
}

fn is_kept(set: &RecordSet<'_>) -> bool {
    !REPLACED.contains(&set.rtype)
}

fn write_record(owner: &Name, (rtype, ttl): (Type, u32), rdata: &[u8], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{owner}\t{ttl}\tIN\t{rtype}\t{}", Data { rtype, rdata })
}

/// Data of a CDS record (RFC 4034 §5.1): tag, algorithm and digest of a key.
fn cds(zone: &Name, key: &Key) -> Vec<u8> {
    let digest = digest(&SHA256, &[zone.as_bytes(), &key.rdata].concat());
    let head = [&key.tag.to_be_bytes()[..], &[key.algorithm, DIGEST_SHA256]].concat();
    [&head, digest.as_ref()].concat()
}
