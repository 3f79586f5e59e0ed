//! Certificates in the files that `tls` in a Corefile names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use corefile::{Line, ServerBlock, Token};
use doctor::{Certificate, CorefileFacts, Known, Unknown};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use transport::files::{PEM_FILE_MAX, read_file};

/// Maximum number of files.
const FILES_MAX: usize = 64;
/// Directive and property with paths of certificates and keys.
const TLS: &str = "tls";
/// Directive with the directory of relative names.
const ROOT: &str = "root";

/// Reads the certificates.
///
/// # Errors
/// There are more files than are read.
pub(super) fn certificates(corefile: &CorefileFacts) -> Known<Vec<Certificate>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let paths = paths(corefile);
    if paths.len() > FILES_MAX {
        return Err(Unknown::new(format!("the Corefile names more than {FILES_MAX} files with certificates")));
    }
    Ok(paths.into_iter().filter_map(|path| certificate(path, now)).collect())
}

/// Returns the files after `tls`. Like the server, resolves relative names against *root* of the block, and without it
/// against the working directory.
fn paths(corefile: &CorefileFacts) -> BTreeSet<PathBuf> {
    host::sorting::set(corefile.written.blocks.iter().flat_map(paths_in))
}

fn paths_in(block: &ServerBlock) -> impl Iterator<Item = PathBuf> {
    let root = block.directives.iter().rfind(|directive| directive.name.text == ROOT);
    let root = root.and_then(|directive| directive.args.first()).map_or("", |word| &word.text);
    let words = block.directives.iter().flat_map(|directive| {
        let own = if directive.name.text == TLS { &directive.args[..] } else { &[] };
        own.iter().chain(directive.lines().iter().flat_map(tls_words))
    });
    words.map(|word| Path::new(root).join(&word.text))
}

fn tls_words(line: &Line) -> &[Token] {
    match line.words.split_first() {
        Some((name, words)) if name.text == TLS => words,
        _ => &[],
    }
}

/// Reads a file; `None` if it has no certificate, but a key.
fn certificate(path: PathBuf, now: f64) -> Option<Certificate> {
    let file = path.display().to_string();
    let bytes = match read_file(path, PEM_FILE_MAX) {
        Ok(bytes) => bytes,
        Err(error) => return Some(Certificate { expires_in: Err(Unknown::new(host::errors::describe(&error))), file }),
    };
    let certificates = CertificateDer::pem_slice_iter(&bytes).flatten();
    let ends: Option<Vec<f64>> =
        certificates.map(|der| Some(transport::validity(&der)?.not_after.since_1970.as_secs_f64())).collect();
    let first = match ends {
        None => Err(Unknown::new("a certificate in it is not X.509")),
        Some(ends) => Ok(ends.into_iter().reduce(f64::min)? - now),
    };
    Some(Certificate { file, expires_in: first })
}
