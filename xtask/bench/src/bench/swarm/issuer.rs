//! Issuer of ServiceAccount tokens, whose keys the API server publishes.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fakeapi::FakeApi;
use serde_json::json;

use xtask::Failed;

/// Account of the nodes, which relays admit without an option.
const SUBJECT: &str = "system:serviceaccount:kube-system:portolan-every-node";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Validity of a token in seconds, longer than any measurement.
const VALID: u64 = 24 * 3600;

/// Publishes the key of a new issuer at an API server, and returns a token of the account of nodes.
pub(crate) fn token(api: &FakeApi) -> Result<String, Failed> {
    let failed = |_| "cannot make a key for tokens".to_owned();
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(failed)?;
    // The uncompressed point: a byte 4, x and y (SEC 1 §2.3.3).
    let [_, point @ ..] = pair.public_key().as_ref() else { return Err("a public key is empty".to_owned()) };
    let (x, y) = point.split_at(point.len() / 2);
    let [x, y] = [x, y].map(|half| URL_SAFE_NO_PAD.encode(half));
    let key = json!({ "kty": "EC", "crv": "P-256", "kid": "a", "x": x, "y": y, "use": "sig", "alg": "ES256" });
    api.put_document("/openid/v1/jwks", json!({ "keys": [key] }));
    api.put_document("/.well-known/openid-configuration", json!({ "issuer": ISSUER }));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let claims = json!({ "iss": ISSUER, "aud": ["portolan-relay"], "exp": now + VALID, "sub": SUBJECT });
    let [header, claims] = [json!({ "alg": "ES256", "kid": "a" }), claims].map(|part| part.to_string());
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).map_err(failed)?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
