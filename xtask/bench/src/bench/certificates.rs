//! Certificate of the measured servers, and its authority.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::Folder;
use xtask::Failed;

/// Name in the certificate of the servers.
pub(crate) const SERVER_NAME: &str = "dns.example.org";
/// File of the authority's certificate.
pub(crate) const AUTHORITY: &str = "ca.pem";
pub(crate) const CERTIFICATE: &str = "cert.pem";
pub(crate) const KEY: &str = "key.pem";

/// Certificate of the servers with a P-256 key, and its authority.
pub(crate) struct Certificates {
    folder: Folder,
}

impl Certificates {
    pub(crate) fn make() -> Result<Certificates, Failed> {
        let folder = Folder::make("certificates")?;
        let write = |name: &str, text: String| {
            std::fs::write(folder.path().join(name), text).map_err(|error| format!("{name}: {error}"))
        };
        for (name, text) in pem_files().map_err(|error| format!("cannot make a certificate: {error}"))? {
            write(name, text)?;
        }
        Ok(Certificates { folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn pem_files() -> Result<[(&'static str, String); 3], rcgen::Error> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "benchmark");
    // Keys are P-256 unless another algorithm is given.
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new([SERVER_NAME.to_owned()])?.signed_by(&key, &issuer)?.pem();
    Ok([(AUTHORITY, authority), (CERTIFICATE, certificate), (KEY, key.serialize_pem())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_files_until_they_are_dropped() {
        let paths = Certificates::make().map(|certificates| {
            let paths = [AUTHORITY, CERTIFICATE, KEY].map(|name| certificates.path(name));
            assert!(paths.iter().all(|path| path.exists()));
            paths
        });
        assert_eq!(paths.map(|paths| paths.iter().any(|path| path.exists())), Ok(false));
    }
}
