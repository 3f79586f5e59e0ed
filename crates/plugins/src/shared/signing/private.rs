//! Private keys in the files of BIND's tools: `Private-key-format: v1.3`, then one line per part.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RsaEncoding,
};
use zone::text;

/// Algorithm numbers (IANA "DNS Security Algorithm Numbers").
const RSASHA256: u8 = 8;
const RSASHA512: u8 = 10;
const ECDSAP256SHA256: u8 = 13;
const ECDSAP384SHA384: u8 = 14;
const ED25519: u8 = 15;

/// Private key.
pub(super) enum Private {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
}

/// Reason why a private key file cannot be used. The operator must replace the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PrivateKeyError {
    /// Part that is missing or not base64.
    #[error("`{0}:` is missing or not base64")]
    Part(&'static str),
    /// The algorithm differs from that of the public key.
    #[error("the algorithm differs from that of the public key")]
    OtherAlgorithm,
    /// Unsupported algorithm.
    #[error("algorithm {0} is not supported; use 8 or 10 (RSA), 13 or 14 (ECDSA), or 15 (Ed25519)")]
    Algorithm(u8),
    /// The parts do not form the private key of the public key.
    #[error("the private key does not match the public key")]
    Mismatch,
    /// The parts do not form the private key of the public key, or the size is not 2048 to 8192 bits.
    #[error("the private key does not match the public key, or its size is not 2048 to 8192 bits")]
    RsaMismatch,
}

impl PrivateKeyError {
    /// Line of the file that the error is about, counted from 1; `None` if the line is missing.
    pub(super) fn line(&self, file: &[u8]) -> Option<usize> {
        let part = match self {
            PrivateKeyError::Part(part) => part,
            PrivateKeyError::OtherAlgorithm | PrivateKeyError::Algorithm(_) => "Algorithm",
            PrivateKeyError::Mismatch => "PrivateKey",
            PrivateKeyError::RsaMismatch => "Modulus",
        };
        let file = String::from_utf8_lossy(file);
        let line = file.lines().position(|line| line.split_once(':').is_some_and(|(name, _)| name.trim() == part));
        line.map(|at| at + 1)
    }
}

impl Private {
    /// Parses the private key for a public key, which is given as in DNSKEY records.
    pub(super) fn read(file: &[u8], algorithm: u8, public: &[u8]) -> Result<Private, PrivateKeyError> {
        let file = String::from_utf8_lossy(file);
        let parts = Parts(&file);
        if parts.algorithm() != Some(algorithm) {
            return Err(PrivateKeyError::OtherAlgorithm);
        }
        match algorithm {
            RSASHA256 => Ok(Private::Rsa(rsa(&parts, public)?, &RSA_PKCS1_SHA256)),
            RSASHA512 => Ok(Private::Rsa(rsa(&parts, public)?, &RSA_PKCS1_SHA512)),
            ECDSAP256SHA256 => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, &parts, public),
            ECDSAP384SHA384 => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING, &parts, public),
            ED25519 => {
                let pair = Ed25519KeyPair::from_seed_and_public_key(&parts.bytes("PrivateKey")?, public);
                Ok(Private::Ed25519(pair.map_err(|_| PrivateKeyError::Mismatch)?))
            }
            other => Err(PrivateKeyError::Algorithm(other)),
        }
    }

    /// Signs a message. Returns the signature in the form of RRSIG records; `None` if signing fails.
    pub(super) fn sign(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Private::Ecdsa(pair) => Some(pair.sign(&SystemRandom::new(), bytes).ok()?.as_ref().to_vec()),
            Private::Ed25519(pair) => Some(pair.try_sign(bytes).ok()?.as_ref().to_vec()),
            Private::Rsa(pair, encoding) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(*encoding, &SystemRandom::new(), bytes, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

/// Lines of a key file, `NAME: VALUE`.
struct Parts<'a>(&'a str);

impl Parts<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        let lines = self.0.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(known, _)| known.trim() == name).map(|(_, value)| value.trim()).next()
    }

    fn bytes(&self, name: &'static str) -> Result<Vec<u8>, PrivateKeyError> {
        self.value(name).and_then(text::base64).ok_or(PrivateKeyError::Part(name))
    }

    /// Number in `Algorithm: 13 (ECDSAP256SHA256)`.
    fn algorithm(&self) -> Option<u8> {
        self.value("Algorithm")?.split_whitespace().next()?.parse().ok()
    }
}

fn ecdsa(
    algorithm: &'static EcdsaSigningAlgorithm,
    parts: &Parts<'_>,
    public: &[u8],
) -> Result<Private, PrivateKeyError> {
    /// Prefix of an uncompressed point (SEC 1 §2.3.3).
    const UNCOMPRESSED: &[u8] = &[4];
    let private = parts.bytes("PrivateKey")?;
    let public = [UNCOMPRESSED, public].concat();
    let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, &private, &public);
    Ok(Private::Ecdsa(pair.map_err(|_| PrivateKeyError::Mismatch)?))
}

/// Names of the parts in the file, in the order of RFC 8017 appendix A.1.2.
const RSA_PARTS: [&str; 8] =
    ["Modulus", "PublicExponent", "PrivateExponent", "Prime1", "Prime2", "Exponent1", "Exponent2", "Coefficient"];

fn rsa(parts: &Parts<'_>, public: &[u8]) -> Result<RsaKeyPair, PrivateKeyError> {
    let mut numbers = der(INTEGER, &[0]);
    let mut values = RSA_PARTS.map(|_| Vec::new());
    for (value, name) in values.iter_mut().zip(RSA_PARTS) {
        *value = parts.bytes(name)?;
        numbers.extend(integer(value));
    }
    let [modulus, exponent, ..] = &values;
    let (its_exponent, its_modulus) = rsa_public(public).ok_or(PrivateKeyError::RsaMismatch)?;
    if unsigned(its_modulus) != unsigned(modulus) || unsigned(its_exponent) != unsigned(exponent) {
        return Err(PrivateKeyError::RsaMismatch);
    }
    RsaKeyPair::from_der(&der(SEQUENCE, &numbers)).map_err(|_| PrivateKeyError::RsaMismatch)
}

/// Exponent and modulus of a public key in a DNSKEY record (RFC 3110 §2).
fn rsa_public(public: &[u8]) -> Option<(&[u8], &[u8])> {
    match public {
        [0, high, low, rest @ ..] => rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low]))),
        [length, rest @ ..] => rest.split_at_checked(usize::from(*length)),
        [] => None,
    }
}

/// ASN.1 tags.
const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;

/// Strips leading zeros.
fn unsigned(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

/// DER encoding of a non-negative integer.
fn integer(bytes: &[u8]) -> Vec<u8> {
    let bytes = unsigned(bytes);
    let sign: &[u8] = if bytes.first().is_none_or(|first| *first >= 0x80) { &[0] } else { &[] };
    der(INTEGER, &[sign, bytes].concat())
}

/// DER encoding of a value with tag and length.
fn der(tag: u8, value: &[u8]) -> Vec<u8> {
    /// Lengths below this take one byte.
    const LONG: usize = 0x80;
    let mut bytes = vec![tag];
    match u8::try_from(value.len()) {
        Ok(length) if value.len() < LONG => bytes.push(length),
        _ => {
            let length = value.len().to_be_bytes();
            let length = unsigned(&length);
            let count = u8::try_from(length.len());
            debug_assert!(count.is_ok(), "a length has at most 8 bytes");
            bytes.push(0x80 | count.unwrap_or_default());
            bytes.extend(length);
        }
    }
    bytes.extend(value);
    bytes
}
