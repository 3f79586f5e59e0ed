//! Keys of zones, from pairs of files as BIND's tools write them: `Kexample.org.+013+45330.key` and `.private`.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use engine::setup::Files;
use wire::{Name, NameRef, Type};
use zone::dnssec::{Dnskey, Terms, signed_labels, write_canonical};
use zone::text;

use super::private::{Private, Unusable};

/// A key, and the zone whose records it signs.
pub(crate) struct Key {
    /// The zone, in lower case.
    pub(crate) zone: Name,
    /// The data of the DNSKEY record.
    pub(crate) rdata: Vec<u8>,
    /// The number by which signatures name it.
    pub(crate) tag: u16,
    /// Whether it is meant to sign keys (a KSK).
    pub(crate) is_entry_point: bool,
    /// The number of its algorithm.
    pub(crate) algorithm: u8,
    private: Private,
}

/// Why files are no key.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// One cannot be read.
    Io(PathBuf, io::Error),
    /// The first is not one record.
    Text(PathBuf, text::Error),
    /// It is another record, on this line, than a DNSKEY record of a zone key.
    NoKey(PathBuf, usize),
    /// The second is not its private half, by this line if it is by one.
    Private(PathBuf, Option<usize>, Unusable),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Unreadable::Text(path, error) => {
                write!(f, "{}:{error}", path.display())
            }
            Unreadable::NoKey(path, line) => {
                write!(f, "{}:{line}: no DNSKEY record of a key that signs a zone", path.display())
            }
            Unreadable::Private(path, Some(line), unusable) => write!(f, "{}:{line}: {unusable}", path.display()),
            Unreadable::Private(path, None, unusable) => write!(f, "{}: {unusable}", path.display()),
        }
    }
}

impl Key {
    /// Reads a pair of files by what their names have in common; `.key` or `.private` may stand behind it.
    pub(crate) fn load(files: &dyn Files, path: &Path) -> Result<Key, Unreadable> {
        let text = path.to_string_lossy();
        let base = text.strip_suffix(".key").or_else(|| text.strip_suffix(".private")).unwrap_or(&text);
        let paths = [".key", ".private"].map(|suffix| PathBuf::from(format!("{base}{suffix}")));
        let read = |path: &PathBuf| files.read(path).map_err(|error| Unreadable::Io(path.clone(), error));
        let (public, private) = (read(&paths[0])?, read(&paths[1])?);
        Key::read([&public, &private], &paths)
    }

    /// Reads what the two files say, which errors name so.
    pub(crate) fn read([public, private]: [&[u8]; 2], paths: &[PathBuf; 2]) -> Result<Key, Unreadable> {
        let public = String::from_utf8_lossy(public);
        let record = text::record(&public, NameRef::ROOT, 0);
        let record = record.map_err(|error| Unreadable::Text(paths[0].clone(), error))?;
        let no_key = || Unreadable::NoKey(paths[0].clone(), first_line(&public));
        let dnskey = Dnskey::read(&record.rdata).filter(|_| record.rtype == Type::DNSKEY).ok_or_else(no_key)?;
        let unusable = |unusable: Unusable| Unreadable::Private(paths[1].clone(), unusable.line(private), unusable);
        Ok(Key {
            private: Private::read(private, dnskey.algorithm, dnskey.key).map_err(unusable)?,
            zone: record.owner.into_lowercase(),
            tag: dnskey.tag(),
            is_entry_point: dnskey.is_entry_point(),
            algorithm: dnskey.algorithm,
            rdata: record.rdata,
        })
    }

    /// The data of an RRSIG record over a set; `None` if the system cannot sign.
    pub(crate) fn sign(&self, set: &Set, life: Life) -> Option<Vec<u8>> {
        let terms = Terms {
            covered: set.rtype,
            algorithm: self.algorithm,
            labels: set.labels,
            original_ttl: set.ttl,
            expiration: life.expiration,
            inception: life.inception,
            key_tag: self.tag,
            signer: self.zone.as_ref(),
        };
        let mut rdata = Vec::with_capacity(256);
        terms.write(&mut rdata);
        let signature = self.private.sign(&[&*rdata, &*set.octets].concat())?;
        rdata.extend(signature);
        Some(rdata)
    }
}

/// The first line, counted from 1, that is no comment.
fn first_line(text: &str) -> usize {
    let says_something = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with(';');
    text.lines().position(says_something).unwrap_or_default() + 1
}

/// From when to when a signature is good, in seconds since 1970 modulo 2^32 (RFC 4034 §3.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) inception: u32,
    pub(crate) expiration: u32,
}

/// Records of one name and type, as they are signed.
pub(crate) struct Set {
    /// Its records in canonical form: what is signed beside the terms.
    pub(crate) octets: Vec<u8>,
    rtype: Type,
    ttl: u32,
    labels: u8,
}

impl Set {
    /// A set with this original time to live, in seconds; the data come with their names in full.
    pub(crate) fn new(owner: NameRef<'_>, (rtype, ttl): (Type, u32), mut rdatas: Vec<Vec<u8>>) -> Set {
        let mut octets = Vec::new();
        write_canonical(owner, (rtype, ttl), &mut rdatas, &mut octets);
        Set { octets, rtype, ttl, labels: signed_labels(owner) }
    }
}
