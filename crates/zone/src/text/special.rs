//! Fields with their own notation: durations, points in time, type bitmaps, algorithms and EUIs.

use wire::Type;

use super::error::ParseError;
use super::lex::Word;
use super::line::Line;

/// Mnemonics of DNSSEC algorithms (IANA "DNS Security Algorithm Numbers").
const ALGORITHMS: [(&str, u8); 17] = [
    ("RSAMD5", 1),
    ("DH", 2),
    ("DSA", 3),
    ("RSASHA1", 5),
    ("DSA-NSEC3-SHA1", 6),
    ("RSASHA1-NSEC3-SHA1", 7),
    ("RSASHA256", 8),
    ("RSASHA512", 10),
    ("ECC-GOST", 12),
    ("ECDSAP256SHA256", 13),
    ("ECDSAP384SHA384", 14),
    ("ED25519", 15),
    ("ED448", 16),
    ("DELETE", 0),
    ("INDIRECT", 252),
    ("PRIVATEDNS", 253),
    ("PRIVATEOID", 254),
];

/// Mnemonics of certificate types (RFC 4398 §2.1).
const CERTIFICATES: [(&str, u16); 10] = [
    ("PKIX", 1),
    ("SPKI", 2),
    ("PGP", 3),
    ("IPKIX", 4),
    ("ISPKI", 5),
    ("IPGP", 6),
    ("ACPKIX", 7),
    ("IACPKIX", 8),
    ("URI", 253),
    ("OID", 254),
];

fn number_or<T: Copy + core::str::FromStr>(word: &Word<'_>, mnemonics: &[(&str, T)]) -> Option<T> {
    let text = word.ascii()?;
    let known = mnemonics.iter().find(|(mnemonic, _)| text.eq_ignore_ascii_case(mnemonic));
    known.map(|(_, number)| *number).or_else(|| text.parse().ok())
}

pub(super) fn algorithm(word: &Word<'_>) -> Option<u8> {
    number_or(word, &ALGORITHMS)
}

pub(super) fn certificate(word: &Word<'_>) -> Option<u16> {
    number_or(word, &CERTIFICATES)
}

/// Parses a duration in seconds, as a number or with units: `3600`, `1h30m`, `2w`. Accepts values above the maximum of
/// 2^31 - 1 (RFC 2181 §8).
pub(super) fn seconds(word: &Word<'_>) -> Option<u32> {
    let (mut total, mut number, mut digits) = (0u32, 0u32, false);
    for byte in word.raw {
        let unit = match byte.to_ascii_lowercase() {
            digit @ b'0'..=b'9' => {
                number = number.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
                digits = true;
                continue;
            }
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            b'w' => 604_800,
            _ => return None,
        };
        if !digits {
            return None;
        }
        total = total.checked_add(number.checked_mul(unit)?)?;
        (number, digits) = (0, false);
    }
    (!word.raw.is_empty()).then(|| total.checked_add(number)).flatten()
}

/// Parses a point in time, as a number of seconds or as `YYYYMMDDHHmmSS` (RFC 4034 §3.2). Returns seconds since 1970,
/// modulo 2^32.
pub(super) fn time(word: &Word<'_>) -> Option<u32> {
    const DATE_LEN: usize = 14;
    let text = word.ascii()?;
    if text.len() != DATE_LEN {
        return text.parse().ok();
    }
    let part = |from: usize, to: usize, low: i64, high: i64| {
        let number = text.get(from..to)?.parse().ok()?;
        (low..=high).contains(&number).then_some(number)
    };
    let days = days_since_1970(part(0, 4, 1970, 9999)?, part(4, 6, 1, 12)?, part(6, 8, 1, 31)?);
    let seconds = days * 86_400 + part(8, 10, 0, 23)? * 3600 + part(10, 12, 0, 59)? * 60 + part(12, 14, 0, 60)?;
    u32::try_from(seconds & i64::from(u32::MAX)).ok()
}

/// Prints a point in time as `YYYYMMDDHHmmSS`. Since the number is modulo 2^32, picks the first match from 1970 on.
pub(super) fn date(seconds: u32) -> String {
    let (day, seconds) = (i64::from(seconds / 86_400), seconds % 86_400);
    // The year starts in March, as in `days_since_1970`.
    let mut year = (day + 719_468) * 400 / 146_097;
    while days_since_1970(year + 1, 3, 1) <= day {
        year += 1;
    }
    while days_since_1970(year, 3, 1) > day {
        year -= 1;
    }
    let of_year = day - days_since_1970(year, 3, 1);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{of_month:02}{hour:02}{minute:02}{second:02}")
}

/// Returns the days from 1 January 1970 to a day of the Gregorian calendar. Years start in March here, so that the leap
/// day is the last day of a year.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469
}

/// Parses the types from `first` to the end of the line and encodes them as bitmaps.
pub(super) fn types<'a>(first: &Word<'a>, line: &mut Line<'a>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut types = Vec::new();
    line.each_from(first, |word| {
        types.push(word.parse::<Type>("a type")?.0);
        Ok(())
    })?;
    write_bitmaps(&mut types, data);
    Ok(())
}

/// Encodes types as bitmaps, one window per 256 types (RFC 4034 §4.1.2). Sorts `types`.
pub(crate) fn write_bitmaps(types: &mut [u16], data: &mut Vec<u8>) {
    types.sort_unstable();
    for window in types.chunk_by(|one, other| one >> 8 == other >> 8) {
        let Some(last) = window.last() else { continue };
        let [high, last] = last.to_be_bytes();
        let bytes = last / 8 + 1;
        data.extend([high, bytes]);
        let start = data.len();
        data.resize(start + usize::from(bytes), 0);
        for rtype in window {
            let low = usize::from(rtype & 0xff);
            data[start + low / 8] |= 0x80 >> (low % 8);
        }
    }
}

/// Returns the length of the bitmaps if they fill `data` and are valid.
pub(super) fn bitmaps(data: &[u8]) -> Option<usize> {
    let mut rest = data;
    while let [_, length, after @ ..] = rest {
        let length = usize::from(*length);
        if length == 0 || length > 32 {
            return None;
        }
        rest = after.get(length..)?;
    }
    rest.is_empty().then_some(data.len())
}

/// Returns the types in valid bitmaps, in ascending order.
pub(crate) fn types_of(data: &[u8]) -> impl Iterator<Item = Type> {
    let mut rest = data;
    let windows = core::iter::from_fn(move || {
        let ([window, length], after) = rest.split_first_chunk()?;
        let (bits, after) = after.split_at_checked(usize::from(*length))?;
        rest = after;
        Some((*window, bits))
    });
    windows.flat_map(|(window, bits)| {
        let numbers = (0..=u8::MAX).take(bits.len() * 8);
        let set = numbers.filter(|low| bits[usize::from(low / 8)] & 0x80 >> (low % 8) != 0);
        set.map(move |low| Type(u16::from_be_bytes([window, low])))
    })
}

/// Parses an EUI of `bytes` bytes, such as `00-00-5e-00-53-2a`.
pub(super) fn eui(word: &Word<'_>, bytes: usize, data: &mut Vec<u8>) -> Option<()> {
    let text = word.ascii()?;
    if text.len() != bytes * 3 - 1 {
        return None;
    }
    for pair in text.split('-') {
        data.push(u8::from_str_radix(pair, 16).ok().filter(|_| pair.len() == 2)?);
    }
    Some(())
}

/// Parses four groups, such as `0014:4fff:ff20:ee64`.
pub(super) fn groups(word: &Word<'_>, data: &mut Vec<u8>) -> Option<()> {
    let text = word.ascii()?;
    if text.split(':').count() != 4 {
        return None;
    }
    for group in text.split(':') {
        data.extend(u16::from_str_radix(group, 16).ok()?.to_be_bytes());
    }
    Some(())
}
