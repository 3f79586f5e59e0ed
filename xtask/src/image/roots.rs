//! Certificate authorities for upstreams over TLS: Mozilla's, at the version of the crate `webpki-root-certs`. The
//! bundle of the build machine would make the image depend on that machine.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use crate::Failed;
use crate::archive::Entry;
use crate::dependencies::source_of;

/// Path at which Debian has the bundle, and at which TLS libraries look first.
const BUNDLE: &str = "etc/ssl/certs/ca-certificates.crt";
/// Length of a line of PEM (RFC 7468 §2).
const LINE: usize = 64;

/// Returns the bundle with its directories, and its licence.
pub(crate) fn entries() -> Result<Vec<Entry>, Failed> {
    let directories = ["etc", "etc/ssl", "etc/ssl/certs"].map(Entry::directory);
    let licence = source_of("webpki-root-certs")?.join("LICENSE");
    let licence = std::fs::read(&licence).map_err(|error| format!("{}: {error}", licence.display()))?;
    let files = [Entry::file(BUNDLE, pem()), Entry::file("licenses/ca-certificates", licence)];
    Ok(directories.into_iter().chain(files).collect())
}

/// Returns all certificates as PEM.
fn pem() -> String {
    let mut text = String::new();
    for certificate in TLS_SERVER_ROOT_CERTS {
        text += "-----BEGIN CERTIFICATE-----\n";
        let encoded = BASE64_STANDARD.encode(certificate);
        for start in (0..encoded.len()).step_by(LINE) {
            let _ = writeln!(text, "{}", &encoded[start..encoded.len().min(start + LINE)]);
        }
        text += "-----END CERTIFICATE-----\n";
    }
    text
}
