//! Certificates, keys and tokens of a cluster.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use aws_lc_rs::rand;

use super::home::Home;
use super::network;
use xtask::Failed;

/// Certificate of the authority that signs all others.
pub(crate) const AUTHORITY: &str = "pki/ca.crt";
pub(crate) const AUTHORITY_KEY: &str = "pki/ca.key";
pub(crate) const API_CERTIFICATE: &str = "pki/api.crt";
pub(crate) const API_KEY: &str = "pki/api.key";
/// Key that signs the tokens of ServiceAccounts, and its public half.
pub(crate) const ACCOUNT_KEY: &str = "pki/sa.key";
pub(crate) const ACCOUNT_PUBLIC_KEY: &str = "pki/sa.pub";
/// Static tokens of the API server.
pub(crate) const TOKENS: &str = "pki/tokens.csv";

/// Tokens of the users with static tokens.
pub(crate) struct Tokens {
    pub(crate) administrator: String,
    /// One for each node.
    pub(crate) kubelets: [String; 2],
}

/// Writes all certificates, keys and tokens. Returns the tokens.
pub(crate) fn write(home: &Home) -> Result<Tokens, Failed> {
    for (name, text) in pem_files().map_err(|error| format!("cannot make a certificate: {error}"))? {
        home.write(name, text)?;
    }
    let tokens = Tokens { administrator: token()?, kubelets: [token()?, token()?] };
    let mut users = format!("{},admin,admin,\"system:masters\"\n", tokens.administrator);
    for (network::Node { name, .. }, token) in [network::FIRST, network::SECOND].iter().zip(&tokens.kubelets) {
        users.push_str(&format!("{token},system:node:{name},{name},\"system:nodes\"\n"));
    }
    home.write(TOKENS, users)?;
    Ok(tokens)
}

fn token() -> Result<String, Failed> {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).map_err(|_| "no random numbers".to_owned())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn pem_files() -> Result<[(&'static str, String); 6], rcgen::Error> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params.distinguished_name.push(DnType::CommonName, "kubernetes");
    let key = KeyPair::generate()?;
    let (authority, authority_key) = (params.self_signed(&key)?.pem(), key.serialize_pem());
    let issuer = Issuer::new(params, key);

    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(network::API_NAMES.map(str::to_owned))?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    let certificate = params.signed_by(&key, &issuer)?.pem();

    let account = KeyPair::generate()?;
    Ok([
        (AUTHORITY, authority),
        (AUTHORITY_KEY, authority_key),
        (API_CERTIFICATE, certificate),
        (API_KEY, key.serialize_pem()),
        (ACCOUNT_KEY, account.serialize_pem()),
        (ACCOUNT_PUBLIC_KEY, account.public_key_pem()),
    ])
}
