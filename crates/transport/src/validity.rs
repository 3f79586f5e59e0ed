//! Validity of X.509 certificates (RFC 5280 §4.1). A library for all of X.509 would be a hundred times as long, and
//! rustls has no accessor for this field.

use std::str;
use std::time::Duration;

use host::tls::{CertificateTime, Validity};

/// Tags of ASN.1 (X.690).
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the validity of a certificate in DER; `None` if it is not X.509.
#[must_use]
pub fn validity(der: &[u8]) -> Option<Validity> {
    let (_, certificate, _) = element(der)?;
    let (_, mut fields, _) = element(certificate)?;
    if fields.first() == Some(&VERSION) {
        fields = element(fields)?.2;
    }
    // Serial number, algorithm of the signature, issuer.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (_, validity, _) = element(fields).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (first_kind, first, rest) = element(validity)?;
    let (last_kind, last, _) = element(rest)?;
    let not_before = time(first_kind, str::from_utf8(first).ok()?)?;
    Some(Validity { not_before, not_after: time(last_kind, str::from_utf8(last).ok()?)? })
}

/// Splits off an element in DER: its tag, its content, and what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([tag, first], rest) = der.split_first_chunk()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// Parses `YYMMDDHHMMSSZ` or, as generalized time, `YYYYMMDDHHMMSSZ`. A time before 1970 is 1970.
fn time(kind: u8, text: &str) -> Option<CertificateTime> {
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    let (year, rest) = match kind {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let part = |at: usize, bounds: std::ops::RangeInclusive<u64>| {
        number(rest.get(at..at + 2)?).filter(|number| bounds.contains(number))
    };
    let (month, day) = (part(0, 1..=12)?, part(2, 1..=31)?);
    let (hour, minute, second) = (part(4, 0..=23)?, part(6, 0..=59)?, part(8, 0..=60)?);
    let seconds = ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let date = format!("{year:04}-{month:02}-{day:02}");
    Some(CertificateTime { since_1970: Duration::from_secs(seconds), date })
}

/// Returns the number of days since 1970. Computes with years that begin in March, so that the leap day is last.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    // 400 years earlier or later, the calendar is the same.
    let year = year + 400 - u64::from(month <= 2);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year;
    days.saturating_sub(719_468 + 146_097)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(kind: u8, text: &str) -> Option<u64> {
        time(kind, text).map(|time| time.since_1970.as_secs())
    }

    #[test]
    fn reads_both_forms_of_time() {
        for (kind, text, expected) in [
            (UTC_TIME, "260101000000Z", 1_767_225_600),
            (GENERALIZED_TIME, "20260101000000Z", 1_767_225_600),
            (UTC_TIME, "700101000001Z", 1),
            (UTC_TIME, "000229000000Z", 951_782_400),
            (GENERALIZED_TIME, "21000301000000Z", 4_107_542_400),
            (GENERALIZED_TIME, "00000101000000Z", 0),
        ] {
            assert_eq!(seconds(kind, text), Some(expected), "{text}");
        }
        for (kind, text) in [
            (UTC_TIME, "26"),
            (UTC_TIME, "261301000000Z"),
            (UTC_TIME, "+60101000000Z"),
            (GENERALIZED_TIME, "é"),
            (1, "260101000000Z"),
        ] {
            assert_eq!(seconds(kind, text), None, "{text}");
        }
    }

    #[test]
    fn finds_the_validity_of_a_certificate_and_survives_any_cut() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["dns.test".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 11, 4);
        params.not_after = rcgen::date_time_ymd(2051, 5, 6);
        let certificate = params.self_signed(&key).unwrap();
        let der = certificate.der();
        let found = validity(der).unwrap();
        assert_eq!((found.not_before.date.as_str(), found.not_after.date.as_str()), ("2026-11-04", "2051-05-06"));
        assert_eq!(Some(found.not_after), time(GENERALIZED_TIME, "20510506000000Z"));
        for end in 0..der.len() {
            let _ = validity(&der[..end]);
        }
    }
}
