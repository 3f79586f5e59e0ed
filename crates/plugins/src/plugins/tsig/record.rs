//! TSIG records (RFC 8945): parsing, and the data that is signed.

use aws_lc_rs::hmac;
use wire::{Message, Name, NameRef, Section, Type};

/// Length of a message header in bytes. The first two are the ID, the last two the count of additional records.
const HEADER_LEN: usize = 12;
/// Bytes of record data besides the algorithm name, the MAC and the other data.
const FIXED_LEN: usize = 16;

/// Algorithms by their names in RFC 8945 §6. MD5 is not supported.
const ALGORITHMS: [(&str, &hmac::Algorithm); 5] = [
    ("hmac-sha1.", &hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
    ("hmac-sha224.", &hmac::HMAC_SHA224),
    ("hmac-sha256.", &hmac::HMAC_SHA256),
    ("hmac-sha384.", &hmac::HMAC_SHA384),
    ("hmac-sha512.", &hmac::HMAC_SHA512),
];

/// Returns true if a TSIG record of the additional section is not the last record (RFC 8945 §5.1).
pub(super) fn is_misplaced(packet: &[u8]) -> bool {
    let Ok(message) = Message::parse(packet) else { return false };
    let additional = message.records().filter(|record| record.section() == Section::Additional);
    let mut signed = false;
    additional.fold(false, |misplaced, record| {
        let misplaced = misplaced || signed;
        signed = record.rtype() == Type::TSIG;
        misplaced
    })
}

/// Parsed TSIG record, with the message it signs.
pub(super) struct Signed {
    /// Key name in lowercase.
    pub(super) key: Name,
    /// Algorithm name in lowercase.
    pub(super) algorithm: Name,
    /// Signing time in seconds since the Unix epoch.
    pub(super) time: u64,
    /// Permitted clock difference in seconds.
    pub(super) fudge: u16,
    /// Signature.
    pub(super) mac: Vec<u8>,
    /// Message without the TSIG record, as it was signed.
    message: Vec<u8>,
    error: u16,
    /// Other data: the server's time in a BADTIME response.
    pub(super) other: Vec<u8>,
}

impl Signed {
    /// Parses the TSIG record of a message. `None` if the last record is not one.
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
            time: time.iter().fold(0, |time, byte| time << 8 | u64::from(*byte)),
            fudge: u16::from_be_bytes(*fudge),
            mac: mac.to_vec(),
            message: unsigned,
            error: u16::from_be_bytes(*error),
            other: other.to_vec(),
        })
    }

    /// Returns true if the signature was made with this key.
    pub(super) fn is_by(&self, key: &hmac::Key) -> bool {
        let mut text = self.message.clone();
        Variables { time: self.time, fudge: self.fudge, error: self.error, other: &self.other }.write(
            self.key.as_ref(),
            self.algorithm.as_ref(),
            &mut text,
        );
        hmac::verify(key, &text, &self.mac).is_ok()
    }

    /// Key with this secret for the algorithm of the record; `None` if the algorithm is unknown.
    pub(super) fn key_of(&self, secret: &[u8]) -> Option<hmac::Key> {
        let named = |(name, _): &&(&str, _)| self.algorithm.to_string() == *name;
        ALGORITHMS.iter().find(named).map(|(_, algorithm)| hmac::Key::new(**algorithm, secret))
    }
}

/// Signed fields of a TSIG record besides the names.
pub(super) struct Variables<'a> {
    pub(super) time: u64,
    pub(super) fudge: u16,
    pub(super) error: u16,
    pub(super) other: &'a [u8],
}

impl Variables<'_> {
    /// Appends all signed fields of a record (RFC 8945 §4.3.3).
    pub(super) fn write(&self, key: NameRef<'_>, algorithm: NameRef<'_>, text: &mut Vec<u8>) {
        text.extend(key.as_bytes());
        text.extend([0, 255, 0, 0, 0, 0]);
        text.extend(algorithm.as_bytes());
        self.write_times(text);
        text.extend(self.error.to_be_bytes());
        text.extend(length(self.other));
        text.extend(self.other);
    }

    /// Appends the signed fields for messages after the first of a response (RFC 8945 §5.3.1).
    pub(super) fn write_times(&self, text: &mut Vec<u8>) {
        text.extend(&self.time.to_be_bytes()[2..]);
        text.extend(self.fudge.to_be_bytes());
    }

    /// Appends the whole record in wire format.
    pub(super) fn write_record(
        &self,
        key: NameRef<'_>,
        algorithm: NameRef<'_>,
        mac: &[u8],
        id: [u8; 2],
        record: &mut Vec<u8>,
    ) {
        let rdata_len = algorithm.len() + FIXED_LEN + mac.len() + self.other.len();
        record.extend(key.as_bytes());
        record.extend(Type::TSIG.0.to_be_bytes());
        record.extend([0, 255, 0, 0, 0, 0]);
        record.extend(number(rdata_len));
        record.extend(algorithm.as_bytes());
        self.write_times(record);
        record.extend(length(mac));
        record.extend(mac);
        record.extend(id);
        record.extend(self.error.to_be_bytes());
        record.extend(length(self.other));
        record.extend(self.other);
    }
}

fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

fn length(bytes: &[u8]) -> [u8; 2] {
    number(bytes.len())
}

fn number(length: usize) -> [u8; 2] {
    let length = u16::try_from(length);
    debug_assert!(length.is_ok(), "a TSIG record consists of a name, a MAC and a few numbers");
    length.unwrap_or(u16::MAX).to_be_bytes()
}
