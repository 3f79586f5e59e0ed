//! TSIG records (RFC 8945): reading one off a query, and what is signed.

use aws_lc_rs::hmac;
use wire::{Message, Name, NameRef, Section, Type};

/// Octets of a header; the count of additional records is its last two, the id its first two.
const HEADER_LEN: usize = 12;
/// Octets in the data of a record before and behind its MAC, without the name of the algorithm and other data.
const FIXED_LEN: usize = 16;

/// The algorithms, by the names of RFC 8945 §6. MD5 is not among them.
const ALGORITHMS: [(&str, &hmac::Algorithm); 5] = [
    ("hmac-sha1.", &hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
    ("hmac-sha224.", &hmac::HMAC_SHA224),
    ("hmac-sha256.", &hmac::HMAC_SHA256),
    ("hmac-sha384.", &hmac::HMAC_SHA384),
    ("hmac-sha512.", &hmac::HMAC_SHA512),
];

/// What a TSIG record says, and over what.
pub(super) struct Signed {
    /// The key, in lower case.
    pub(super) key: Name,
    /// The algorithm, in lower case.
    pub(super) algorithm: Name,
    /// Seconds since 1970.
    pub(super) time: u64,
    /// How far clocks may be apart, in seconds.
    pub(super) fudge: u16,
    /// The signature.
    pub(super) mac: Vec<u8>,
    /// The message without the record, as it was when it was signed.
    message: Vec<u8>,
    error: u16,
    other: Vec<u8>,
}

impl Signed {
    /// The TSIG record of a message; `None` if it has none at its end.
    pub(super) fn read(packet: &[u8]) -> Option<Signed> {
        let message = Message::parse(packet).ok()?;
        let record = message.records().last().filter(|record| record.rtype() == Type::TSIG)?;
        if record.section() != Section::Additional {
            return None;
        }
        let rdata = record.rdata();
        let (algorithm, at) = Name::read(rdata, 0).ok()?;
        let (time, rest) = rdata.get(at..)?.split_first_chunk::<6>()?;
        let (fudge, rest) = rest.split_first_chunk::<2>()?;
        let (mac, rest) = counted(rest)?;
        let (id, rest) = rest.split_first_chunk::<2>()?;
        let (error, rest) = rest.split_first_chunk::<2>()?;
        let (other, _) = counted(rest)?;
        let mut unsigned = packet.get(..record.start())?.to_vec();
        unsigned.get_mut(..2)?.copy_from_slice(id);
        let count = message.header().additionals.checked_sub(1)?;
        unsigned.get_mut(HEADER_LEN - 2..HEADER_LEN)?.copy_from_slice(&count.to_be_bytes());
        Some(Signed {
            key: record.owner().ok()?.into_lowercase(),
            algorithm: algorithm.into_lowercase(),
            time: time.iter().fold(0, |time, octet| time << 8 | u64::from(*octet)),
            fudge: u16::from_be_bytes(*fudge),
            mac: mac.to_vec(),
            message: unsigned,
            error: u16::from_be_bytes(*error),
            other: other.to_vec(),
        })
    }

    /// Whether the signature is by this key.
    pub(super) fn is_by(&self, key: &hmac::Key) -> bool {
        let mut text = self.message.clone();
        Variables { time: self.time, fudge: self.fudge, error: self.error, other: &self.other }.write(
            self.key.as_ref(),
            self.algorithm.as_ref(),
            &mut text,
        );
        hmac::verify(key, &text, &self.mac).is_ok()
    }

    /// The key of this secret, for the algorithm that is used; `None` if that is unknown.
    pub(super) fn key_of(&self, secret: &[u8]) -> Option<hmac::Key> {
        let named = |(name, _): &&(&str, _)| self.algorithm.to_string() == *name;
        ALGORITHMS.iter().find(named).map(|(_, algorithm)| hmac::Key::new(**algorithm, secret))
    }
}

/// What is signed of a TSIG record beside the names.
pub(super) struct Variables<'a> {
    pub(super) time: u64,
    pub(super) fudge: u16,
    pub(super) error: u16,
    pub(super) other: &'a [u8],
}

impl Variables<'_> {
    /// Appends all that is signed of a record (RFC 8945 §4.3.3).
    pub(super) fn write(&self, key: NameRef<'_>, algorithm: NameRef<'_>, text: &mut Vec<u8>) {
        text.extend(key.octets());
        text.extend([0, 255, 0, 0, 0, 0]);
        text.extend(algorithm.octets());
        self.write_times(text);
        text.extend(self.error.to_be_bytes());
        text.extend(length(self.other));
        text.extend(self.other);
    }

    /// Appends what is signed of a record behind the first of an answer (RFC 8945 §5.3.1).
    pub(super) fn write_times(&self, text: &mut Vec<u8>) {
        text.extend(&self.time.to_be_bytes()[2..]);
        text.extend(self.fudge.to_be_bytes());
    }

    /// Appends the whole record, in wire form.
    pub(super) fn write_record(
        &self,
        key: NameRef<'_>,
        algorithm: NameRef<'_>,
        mac: &[u8],
        id: [u8; 2],
        record: &mut Vec<u8>,
    ) {
        let rdata_len = algorithm.len() + FIXED_LEN + mac.len() + self.other.len();
        record.extend(key.octets());
        record.extend(Type::TSIG.0.to_be_bytes());
        record.extend([0, 255, 0, 0, 0, 0]);
        record.extend(u16::try_from(rdata_len).unwrap_or(u16::MAX).to_be_bytes());
        record.extend(algorithm.octets());
        self.write_times(record);
        record.extend(length(mac));
        record.extend(mac);
        record.extend(id);
        record.extend(self.error.to_be_bytes());
        record.extend(length(self.other));
        record.extend(self.other);
    }
}

fn counted(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = octets.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

fn length(octets: &[u8]) -> [u8; 2] {
    u16::try_from(octets.len()).unwrap_or(u16::MAX).to_be_bytes()
}
