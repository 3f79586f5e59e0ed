//! Secrets that the endpoints of a process share: the keys of stateless resets and of address validation tokens.
//!
//! Both are derived from the private key of the certificate. All workers, all reloads and, as long as the certificate
//! keeps its key, all restarts therefore compute the same values: after a restart, a stateless reset (RFC 9000 §10.3)
//! tells the clients of the former process at once that their connections are gone.

use std::sync::Arc;

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::hmac;
use host::invariant::holds;
use quinn_proto::TokenLog;

use crate::tokens::UsedTokens;

/// Length of the derived secrets in bytes.
const SECRET_LEN: usize = 32;

/// Keys that all endpoints of a listening address share.
#[derive(Clone)]
pub struct Keys {
    /// Key of stateless resets.
    pub(crate) reset: Arc<hmac::Key>,
    /// Key of the tokens in Retry packets and NEW_TOKEN frames.
    pub(crate) token: Arc<Prk>,
    /// Tokens that a client has used.
    pub(crate) used: Arc<dyn TokenLog>,
}

impl Keys {
    /// Derives the keys from a secret, such as the private key of the certificate (RFC 5869).
    #[must_use]
    pub fn derive(secret: &[u8]) -> Keys {
        let root = Salt::new(HKDF_SHA256, b"portolan quic").extract(secret);
        let reset = hmac::Key::new(hmac::HMAC_SHA256, &expand(&root, b"stateless reset"));
        let token = Salt::new(HKDF_SHA256, &[]).extract(&expand(&root, b"address token"));
        Keys { reset: Arc::new(reset), token: Arc::new(token), used: Arc::new(UsedTokens::default()) }
    }
}

impl core::fmt::Debug for Keys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Keys")
    }
}

/// Length of a secret, as HKDF asks for it.
struct SecretLength;

impl KeyType for SecretLength {
    fn len(&self) -> usize {
        SECRET_LEN
    }
}

fn expand(root: &Prk, label: &[u8]) -> [u8; SECRET_LEN] {
    let mut secret = [0; SECRET_LEN];
    // Fails only for secrets longer than 255 hashes. Without the check, all keys would be zero.
    let filled = root.expand(&[label], SecretLength).and_then(|expanded| expanded.fill(&mut secret));
    holds(filled.is_ok(), "a secret is shorter than 255 hashes");
    secret
}
