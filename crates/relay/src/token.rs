//! ServiceAccount tokens: JSON Web Tokens (RFC 7519) that the API server signs, checked with its published keys
//! (RFC 7517) and without asking it.

use core::time::Duration;
use std::collections::HashMap;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// Maximum length of a token in bytes. Tokens of ServiceAccounts have about 1 KiB.
pub const TOKEN_MAX: usize = 8 * 1024;
/// Maximum number of keys.
pub const KEYS_MAX: usize = 64;
/// Tolerance for the clocks of relay and API server.
pub const LEEWAY: Duration = Duration::from_secs(60);

/// Public keys by which tokens are checked.
#[derive(Default)]
pub struct Keys(HashMap<String, Key>);

enum Key {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
}

/// Document that is not a set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// The text is not a JSON Web Key Set.
    #[error("it is not a JSON Web Key Set")]
    Syntax,
    /// No key of the set can be used.
    #[error("it has no key for RS256, ES256 or ES384")]
    NoKey,
}

/// Reason why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is not a signed JSON Web Token, or too long.
    #[error("the token is not a signed JSON Web Token")]
    Syntax,
    /// The key of the token is not among the known ones, or its algorithm is another one. New keys may have it.
    #[error("the key of the token is not known")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the signature of the token is wrong")]
    Signature,
    /// Another issuer.
    #[error("the token is from another issuer")]
    Issuer,
    /// The token is not for a relay.
    #[error("the token is for another audience")]
    Audience,
    /// The token has expired or is not valid yet.
    #[error("the token has expired or is not valid yet")]
    Time,
    /// The account may not use the relay.
    #[error("the account of the token is not allowed")]
    Subject,
}

/// Claims that a token must have (RFC 7519).
#[derive(Clone, Debug)]
pub struct Rules {
    /// Issuer of the cluster.
    pub issuer: String,
    /// Audience that the token must name.
    pub audience: String,
    /// Subjects that may use the relay, such as `system:serviceaccount:kube-system:portolan-every-node`.
    pub subjects: Vec<String>,
}

impl Keys {
    /// Parses a JSON Web Key Set.
    ///
    /// # Errors
    /// Another document, or one without a key that can be used.
    pub fn parse(text: &[u8]) -> Result<Keys, KeysError> {
        let set: Value = serde_json::from_slice(text).map_err(|_| KeysError::Syntax)?;
        let all = set.get("keys").and_then(Value::as_array).ok_or(KeysError::Syntax)?;
        let keys: HashMap<String, Key> = all.iter().take(KEYS_MAX).filter_map(key).collect();
        if keys.is_empty() { Err(KeysError::NoKey) } else { Ok(Keys(keys)) }
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks a token. `since_1970` is the time of the wall clock. Returns the subject.
    ///
    /// # Errors
    /// The reason why the token is refused.
    pub fn check(&self, token: &str, rules: &Rules, since_1970: Duration) -> Result<String, TokenError> {
        if token.len() > TOKEN_MAX {
            return Err(TokenError::Syntax);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Syntax)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Syntax)?;
        let (header, signature) = (json(header)?, bytes(signature).ok_or(TokenError::Syntax)?);
        let id = header.get("kid").and_then(Value::as_str).unwrap_or_default();
        let key = self.0.get(id).ok_or(TokenError::UnknownKey)?;
        let algorithm = header.get("alg").and_then(Value::as_str).unwrap_or_default();
        if algorithm != key.algorithm() {
            return Err(TokenError::UnknownKey);
        }
        if !key.verifies(signed.as_bytes(), &signature) {
            return Err(TokenError::Signature);
        }
        rules.check(&json(claims)?, since_1970)
    }
}

impl Rules {
    fn check(&self, claims: &Value, since_1970: Duration) -> Result<String, TokenError> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
        let time = |name: &str| claims.get(name).and_then(Value::as_f64);
        if text("iss") != self.issuer {
            return Err(TokenError::Issuer);
        }
        let is_for_us = match claims.get("aud") {
            Some(Value::String(audience)) => *audience == self.audience,
            Some(Value::Array(all)) => all.iter().any(|audience| audience.as_str() == Some(&self.audience)),
            _ => false,
        };
        if !is_for_us {
            return Err(TokenError::Audience);
        }
        let (now, leeway) = (since_1970.as_secs_f64(), LEEWAY.as_secs_f64());
        // A token without an expiry is a legacy one, which nothing revokes.
        let is_alive = time("exp").is_some_and(|expiry| now < expiry + leeway);
        if !is_alive || time("nbf").is_some_and(|begin| now + leeway < begin) {
            return Err(TokenError::Time);
        }
        let subject = text("sub");
        if !self.subjects.iter().any(|allowed| allowed == subject) {
            return Err(TokenError::Subject);
        }
        Ok(subject.to_owned())
    }
}

impl Key {
    const fn algorithm(&self) -> &'static str {
        match self {
            Key::Rsa { .. } => "RS256",
            Key::P256(_) => "ES256",
            Key::P384(_) => "ES384",
        }
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Key::Rsa { modulus, exponent } => RsaPublicKeyComponents { n: modulus, e: exponent }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            Key::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            Key::P384(point) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature).is_ok()
            }
        }
    }
}

/// Returns a key with its ID, or `None` for one that is not for signatures that are known here.
fn key(value: &Value) -> Option<(String, Key)> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let point = |size: usize| {
        let (x, y) = (bytes(text("x")?)?, bytes(text("y")?)?);
        (x.len() == size && y.len() == size).then(|| [&[4][..], &x, &y].concat())
    };
    let key = match (text("kty")?, text("crv")) {
        ("RSA", _) => Key::Rsa { modulus: bytes(text("n")?)?, exponent: bytes(text("e")?)? },
        ("EC", Some("P-256")) => Key::P256(point(32)?),
        ("EC", Some("P-384")) => Key::P384(point(48)?),
        _ => return None,
    };
    Some((text("kid").unwrap_or_default().to_owned(), key))
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn json(part: &str) -> Result<Value, TokenError> {
    let bytes = bytes(part).ok_or(TokenError::Syntax)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenError::Syntax)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use serde_json::json;

    const NOW: Duration = Duration::from_secs(1_800_000_000);
    const SUBJECT: &str = "system:serviceaccount:kube-system:portolan-every-node";

    fn part(value: &Value) -> String {
        URL_SAFE_NO_PAD.encode(value.to_string())
    }

    struct Issuer(EcdsaKeyPair);

    impl Issuer {
        fn new() -> Issuer {
            Issuer(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
        }

        fn keys(&self) -> Value {
            let point = self.0.public_key().as_ref();
            let [x, y] = [&point[1..33], &point[33..]].map(|half| URL_SAFE_NO_PAD.encode(half));
            json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "a", "x": x, "y": y, "use": "sig" }] })
        }

        fn sign(&self, header: &Value, claims: &Value) -> String {
            let signed = format!("{}.{}", part(header), part(claims));
            let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    fn rules() -> Rules {
        Rules { issuer: "https://k".into(), audience: "portolan-relay".into(), subjects: vec![SUBJECT.into()] }
    }

    fn claims() -> Value {
        let (now, audiences) = (NOW.as_secs(), ["other", "portolan-relay"]);
        json!({ "iss": "https://k", "aud": audiences, "exp": now + 600, "nbf": now, "sub": SUBJECT })
    }

    #[test]
    fn accepts_a_token_of_the_cluster_and_refuses_others() {
        let issuer = Issuer::new();
        let keys = Keys::parse(issuer.keys().to_string().as_bytes()).unwrap();
        let header = json!({ "alg": "ES256", "kid": "a" });
        let with = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            issuer.sign(&header, &claims)
        };
        let check = |token: &str| keys.check(token, &rules(), NOW);
        assert_eq!(check(&issuer.sign(&header, &claims())), Ok(SUBJECT.to_owned()));
        assert_eq!(check(&with("aud", json!("portolan-relay"))), Ok(SUBJECT.to_owned()));
        let now = NOW.as_secs();
        assert_eq!(check(&with("exp", json!(now - 59))), Ok(SUBJECT.to_owned()));
        for (token, error) in [
            (with("exp", json!(now - 60)), TokenError::Time),
            (with("exp", Value::Null), TokenError::Time),
            (with("nbf", json!(now + 61)), TokenError::Time),
            (with("iss", json!("https://other")), TokenError::Issuer),
            (with("aud", json!(["other"])), TokenError::Audience),
            (with("sub", json!("system:serviceaccount:default:default")), TokenError::Subject),
            (issuer.sign(&json!({ "alg": "ES256", "kid": "b" }), &claims()), TokenError::UnknownKey),
            (issuer.sign(&json!({ "alg": "none", "kid": "a" }), &claims()), TokenError::UnknownKey),
            (issuer.sign(&json!({ "alg": "HS256", "kid": "a" }), &claims()), TokenError::UnknownKey),
            (Issuer::new().sign(&header, &claims()), TokenError::Signature),
            ("a.b".to_owned(), TokenError::Syntax),
            (String::new(), TokenError::Syntax),
            ("a".repeat(TOKEN_MAX + 1), TokenError::Syntax),
        ] {
            assert_eq!(check(&token), Err(error), "{token}");
        }
    }

    #[test]
    fn refuses_a_changed_token() {
        let issuer = Issuer::new();
        let keys = Keys::parse(issuer.keys().to_string().as_bytes()).unwrap();
        let token = issuer.sign(&json!({ "alg": "ES256", "kid": "a" }), &claims());
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last character of a part may have bits that base64 ignores; then it does not decode.
            assert!(keys.check(&changed, &rules(), NOW).is_err(), "{at}");
        }
    }

    #[test]
    fn reads_keys() {
        assert_eq!(Keys::parse(b"{").err(), Some(KeysError::Syntax));
        assert_eq!(Keys::parse(b"{}").err(), Some(KeysError::Syntax));
        assert_eq!(Keys::parse(b"{\"keys\":[{\"kty\":\"oct\"}]}").err(), Some(KeysError::NoKey));
        let rsa = Keys::parse(b"{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"r\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}").unwrap();
        assert_eq!((rsa.len(), rsa.is_empty()), (1, false));
    }
}
