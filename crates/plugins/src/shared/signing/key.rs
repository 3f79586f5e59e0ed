//! DNSSEC keys in the file pairs of BIND's tools: `Kexample.org.+013+45330.key` and `.private`.

use std::path::{Path, PathBuf};

use config::setup::Files;
use wire::{Name, NameRef, Type};
use zone::dnssec::{Dnskey, Terms, signed_labels, write_canonical};
use zone::text;

use super::private::{Private, PrivateKeyError};
use common_plugins::shared::open_error::{self, OpenError};

/// Signing key of a zone.
pub(crate) struct Key {
    /// Zone name, in lowercase.
    pub(crate) zone: Name,
    /// Data of the DNSKEY record.
    pub(crate) rdata: Vec<u8>,
    /// Key tag.
    pub(crate) tag: u16,
    /// True for a key-signing key (SEP flag).
    pub(crate) is_entry_point: bool,
    /// Algorithm number.
    pub(crate) algorithm: u8,
    private: Private,
}

/// Reason why a key cannot be loaded. The operator must change one of its two files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    /// A file cannot be read.
    #[error("{0}")]
    Open(#[source] OpenError),
    /// The public file does not consist of one record.
    #[error("{}:{}", .0.display(), .1)]
    Text(PathBuf, #[source] text::ParseError),
    /// The record, on this line, is not a DNSKEY record of a zone key.
    #[error("{}:{}: expected a DNSKEY record of a zone key", .0.display(), .1)]
    NoKey(PathBuf, usize),
    /// The private file is invalid, on this line if known.
    #[error("{}{}: {}", .0.display(), .1.map_or_else(String::new, |line| format!(":{line}")), .2)]
    Private(PathBuf, Option<usize>, #[source] PrivateKeyError),
}

impl Key {
    /// Loads a key by the common name of its two files, optionally with `.key` or `.private`.
    pub(crate) fn load(files: &dyn Files, path: &Path) -> Result<Key, KeyError> {
        let text = path.to_string_lossy();
        let base = text.strip_suffix(".key").or_else(|| text.strip_suffix(".private")).unwrap_or(&text);
        let paths = [".key", ".private"].map(|suffix| PathBuf::from(format!("{base}{suffix}")));
        let read = |path: &PathBuf| open_error::read(files, path).map_err(KeyError::Open);
        let (public, private) = (read(&paths[0])?, read(&paths[1])?);
        Key::read([&public, &private], &paths)
    }

    /// Parses the contents of the two files. `paths` are for error messages.
    pub(crate) fn read([public, private]: [&[u8]; 2], paths: &[PathBuf; 2]) -> Result<Key, KeyError> {
        let public = String::from_utf8_lossy(public);
        let record = text::record(&public, NameRef::ROOT, 0);
        let record = record.map_err(|error| KeyError::Text(paths[0].clone(), error))?;
        let no_key = || KeyError::NoKey(paths[0].clone(), first_line(&public));
        let dnskey = Dnskey::read(&record.rdata).filter(|_| record.rtype == Type::DNSKEY).ok_or_else(no_key)?;
        let unusable = |error: PrivateKeyError| KeyError::Private(paths[1].clone(), error.line(private), error);
        Ok(Key {
            private: Private::read(private, dnskey.algorithm, dnskey.key).map_err(unusable)?,
            zone: record.owner.into_lowercase(),
            tag: dnskey.tag(),
            is_entry_point: dnskey.is_entry_point(),
            algorithm: dnskey.algorithm,
            rdata: record.rdata,
        })
    }

    /// Returns the data of an RRSIG record over an RRset. `None` if signing fails.
    pub(crate) fn sign(&self, set: &Set, period: ValidityPeriod) -> Option<Vec<u8>> {
        let terms = Terms {
            covered: set.rtype,
            algorithm: self.algorithm,
            labels: set.labels,
            original_ttl: set.ttl,
            expiration: period.expiration,
            inception: period.inception,
            key_tag: self.tag,
            signer: self.zone.as_ref(),
        };
        let mut rdata = Vec::with_capacity(256);
        terms.write(&mut rdata);
        let signature = self.private.sign(&[&*rdata, &*set.bytes].concat())?;
        rdata.extend(signature);
        Some(rdata)
    }
}

/// Number of the first line that is not a comment, counted from 1.
fn first_line(text: &str) -> usize {
    let says_something = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with(';');
    text.lines().position(says_something).unwrap_or_default() + 1
}

/// Validity period of a signature in seconds since the Unix epoch, modulo 2^32 (RFC 4034 §3.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValidityPeriod {
    pub(crate) inception: u32,
    pub(crate) expiration: u32,
}

/// RRset in the form that is signed.
pub(crate) struct Set {
    /// Records in canonical form: the signed data after the RRSIG fields.
    pub(crate) bytes: Vec<u8>,
    rtype: Type,
    ttl: u32,
    labels: u8,
}

impl Set {
    /// Creates a set with the original TTL in seconds. Names in `rdatas` must not be compressed.
    pub(crate) fn new(owner: NameRef<'_>, (rtype, ttl): (Type, u32), mut rdatas: Vec<Vec<u8>>) -> Set {
        let mut bytes = Vec::new();
        write_canonical(owner, (rtype, ttl), &mut rdatas, &mut bytes);
        Set { bytes, rtype, ttl, labels: signed_labels(owner) }
    }
}
