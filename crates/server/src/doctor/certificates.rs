//! Certificates in the files that `tls` in a Corefile names.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::str;
use std::time::{SystemTime, UNIX_EPOCH};

use corefile::{Line, Token};
use doctor::{Certificate, CorefileFacts, Unknown};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Maximum number of bytes that are read of a file.
const FILE_MAX: u64 = 4 << 20;
/// Maximum number of files.
const FILES_MAX: usize = 64;
/// Directive and property with paths of certificates and keys.
const TLS: &str = "tls";

/// Reads the certificates.
pub(super) fn certificates(corefile: &CorefileFacts) -> Vec<Certificate> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    paths(corefile).into_iter().take(FILES_MAX).filter_map(|path| certificate(path, now)).collect()
}

/// Returns the words after `tls` that are absolute paths.
fn paths(corefile: &CorefileFacts) -> BTreeSet<String> {
    let directives = corefile.written.blocks.iter().flat_map(|block| &block.directives);
    let words = directives.flat_map(|directive| {
        let own = if directive.name.text == TLS { &directive.args[..] } else { &[] };
        own.iter().chain(directive.lines().iter().flat_map(tls_words))
    });
    words.map(|word| word.text.clone()).filter(|path| path.starts_with('/')).collect()
}

fn tls_words(line: &Line) -> &[Token] {
    match line.words.split_first() {
        Some((name, words)) if name.text == TLS => words,
        _ => &[],
    }
}

/// Reads a file; `None` if it has no certificate, but a key.
fn certificate(file: String, now: f64) -> Option<Certificate> {
    let mut bytes = Vec::new();
    let read = File::open(&file).and_then(|open| open.take(FILE_MAX).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Some(Certificate { expires_in: Err(Unknown::new(io_text::describe(&error))), file });
    }
    let certificates = CertificateDer::pem_slice_iter(&bytes).flatten();
    let ends: Option<Vec<f64>> = certificates.map(|der| not_after(&der)).collect();
    let first = match ends {
        None => Err(Unknown::new("a certificate in it is not X.509")),
        Some(ends) => Ok(ends.into_iter().reduce(f64::min)? - now),
    };
    Some(Certificate { file, expires_in: first })
}

/// Tags of ASN.1 (X.690).
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the end of the validity of a certificate in seconds since 1970 (RFC 5280 §4.1). A library for all of X.509
/// would be a hundred times as long, and rustls has no accessor for this field.
fn not_after(der: &[u8]) -> Option<f64> {
    let (_, certificate, _) = element(der)?;
    let (_, mut fields, _) = element(certificate)?;
    if fields.first() == Some(&VERSION) {
        fields = element(fields)?.2;
    }
    // Serial number, algorithm of the signature, issuer.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (tag, validity, _) = element(fields)?;
    let (_, _, rest) = element(validity)?;
    let (kind, text, _) = element(rest).filter(|_| tag == SEQUENCE)?;
    time(kind, str::from_utf8(text).ok()?)
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

/// Parses `YYMMDDHHMMSSZ` or, as generalized time, `YYYYMMDDHHMMSSZ`.
fn time(kind: u8, text: &str) -> Option<f64> {
    let (year, rest) = match kind {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
    let time = DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
    let end = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(end.as_duration().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_of_time() {
        assert_eq!(time(UTC_TIME, "260101000000Z"), Some(1_767_225_600.0));
        assert_eq!(time(GENERALIZED_TIME, "20260101000000Z"), Some(1_767_225_600.0));
        assert_eq!(time(UTC_TIME, "700101000001Z"), Some(1.0));
        for (kind, text) in
            [(UTC_TIME, "26"), (UTC_TIME, "261301000000Z"), (GENERALIZED_TIME, "é"), (1, "260101000000Z")]
        {
            assert_eq!(time(kind, text), None, "{text}");
        }
    }

    #[test]
    fn finds_the_end_of_a_certificate_and_survives_any_cut() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["dns.test".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2031, 5, 6);
        let certificate = params.self_signed(&key).unwrap();
        let der = certificate.der();
        assert_eq!(not_after(der), time(UTC_TIME, "310506000000Z"));
        for end in 0..der.len() {
            let _ = not_after(&der[..end]);
        }
    }
}
