//! Certificates in the files that `tls` in a Corefile names.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use corefile::{Line, Token};
use doctor::{Certificate, CorefileFacts, Unknown};
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
    let ends: Option<Vec<f64>> =
        certificates.map(|der| Some(transport::validity(&der)?.not_after.since_1970.as_secs_f64())).collect();
    let first = match ends {
        None => Err(Unknown::new("a certificate in it is not X.509")),
        Some(ends) => Ok(ends.into_iter().reduce(f64::min)? - now),
    };
    Some(Certificate { file, expires_in: first })
}
