//! ConfigMap `kube-dns` with its three keys. Each is validated. If one is invalid, the whole ConfigMap is rejected and
//! the previous one stays in effect.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use crate::kube_dns::name_server::{NameServer, read_address};
use crate::kube_dns::names::{is_domain, is_label};

/// Maximum number of upstreams of one domain, as in *forward*. kube-dns allowed three.
pub(crate) const SERVERS_MAX: usize = 15;
/// Maximum number of stub domains. Each is a server block with its own cache.
pub(crate) const STUB_DOMAINS_MAX: usize = 1000;
/// Maximum number of federations. The project has ended, so no cluster needs more.
pub const FEDERATIONS_MAX: usize = 100;

const STUB_DOMAINS: &str = "stubDomains";
const UPSTREAMS: &str = "upstreamNameservers";
const FEDERATIONS: &str = "federations";

/// Content of the ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigMapSettings {
    /// Stub domains with their name servers.
    pub stub_domains: BTreeMap<String, Vec<NameServer>>,
    /// Upstreams for outside names, or empty for the default.
    pub upstreams: Vec<SocketAddr>,
    /// Federations with their domains.
    pub federations: Vec<(String, String)>,
}

/// Reason to reject a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {error}")]
pub struct ConfigMapError {
    /// Invalid key.
    pub key: &'static str,
    /// Error in its value.
    #[source]
    pub error: ConfigMapValueError,
}

/// Error in a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigMapValueError {
    /// Invalid JSON, or JSON of another shape.
    #[error("invalid JSON: {0}")]
    Json(String),
    /// Another quote than those of JSON.
    #[error("invalid JSON: `{0}` is an ordinary character there; use the straight quotes `\"`")]
    Quote(char),
    /// Invalid domain.
    #[error("'{0}' is not a domain in lower case")]
    Domain(String),
    /// Invalid name server.
    #[error("'{0}' is not a valid name server")]
    Server(String),
    /// Text that is not a pair `NAME=DOMAIN`.
    #[error("'{0}' is not a pair NAME=DOMAIN")]
    Pair(String),
    /// Too many elements: kind and maximum.
    #[error("more than {1} {0}")]
    TooMany(&'static str, usize),
}

impl ConfigMapSettings {
    /// Parses the keys of the ConfigMap. Ignores unknown keys.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn parse(data: &BTreeMap<String, String>) -> Result<ConfigMapSettings, ConfigMapError> {
        let value = |key: &'static str| data.get(key).map(String::as_str).filter(|text| !text.trim().is_empty());
        fn of_key<T>(key: &'static str, read: Result<T, ConfigMapValueError>) -> Result<T, ConfigMapError> {
            read.map_err(|error| ConfigMapError { key, error })
        }
        let mut config_map = ConfigMapSettings::default();
        if let Some(text) = value(STUB_DOMAINS) {
            config_map.stub_domains = of_key(STUB_DOMAINS, stub_domains(text))?;
        }
        if let Some(text) = value(UPSTREAMS) {
            config_map.upstreams = of_key(UPSTREAMS, upstreams(text))?;
        }
        if let Some(text) = value(FEDERATIONS) {
            config_map.federations = of_key(FEDERATIONS, federations(text))?;
        }
        Ok(config_map)
    }
}

fn stub_domains(text: &str) -> Result<BTreeMap<String, Vec<NameServer>>, ConfigMapValueError> {
    let written: BTreeMap<String, Vec<String>> = json(text)?;
    if written.len() > STUB_DOMAINS_MAX {
        return Err(ConfigMapValueError::TooMany("domains", STUB_DOMAINS_MAX));
    }
    let read = written.into_iter().map(|(domain, servers)| {
        if !is_domain(&domain) {
            return Err(ConfigMapValueError::Domain(domain));
        }
        if servers.len() > SERVERS_MAX {
            return Err(ConfigMapValueError::TooMany("name servers of one domain", SERVERS_MAX));
        }
        let servers: Result<_, _> =
            servers.into_iter().map(|text| NameServer::read(&text).ok_or(ConfigMapValueError::Server(text))).collect();
        Ok((domain.trim_end_matches('.').to_owned(), servers?))
    });
    read.collect()
}

fn upstreams(text: &str) -> Result<Vec<SocketAddr>, ConfigMapValueError> {
    let written: Vec<String> = json(text)?;
    if written.len() > SERVERS_MAX {
        return Err(ConfigMapValueError::TooMany("name servers", SERVERS_MAX));
    }
    written.into_iter().map(|text| read_address(&text, ':').ok_or(ConfigMapValueError::Server(text))).collect()
}

/// Parses a comma-separated list of addresses, as used in flags.
///
/// # Errors
/// The first invalid address.
pub fn name_servers(text: &str) -> Result<Vec<SocketAddr>, ConfigMapValueError> {
    let each = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    each.map(|text| read_address(text, ':').ok_or_else(|| ConfigMapValueError::Server(text.to_owned()))).collect()
}

/// Parses `NAME=DOMAIN,NAME=DOMAIN`, or a JSON object. kube-dns rejects the latter, although the Kubernetes
/// documentation shows it.
///
/// # Errors
/// The first invalid pair.
pub fn federations(text: &str) -> Result<Vec<(String, String)>, ConfigMapValueError> {
    if text.trim_start().starts_with('{') {
        let written: BTreeMap<String, String> = json(text)?;
        let pairs: Vec<String> = written.into_iter().map(|(name, domain)| format!("{name}={domain}")).collect();
        return federations(&pairs.join(","));
    }
    let pairs: Vec<&str> = text.split(',').map(str::trim).filter(|pair| !pair.is_empty()).collect();
    if pairs.len() > FEDERATIONS_MAX {
        return Err(ConfigMapValueError::TooMany("federations", FEDERATIONS_MAX));
    }
    pairs.into_iter().map(|text| pair(text).ok_or_else(|| ConfigMapValueError::Pair(text.to_owned()))).collect()
}

fn pair(text: &str) -> Option<(String, String)> {
    let (name, domain) = text.split_once('=')?;
    let (name, domain) = (name.trim(), domain.trim());
    (is_label(name) && is_domain(domain)).then(|| (name.to_owned(), domain.trim_end_matches('.').to_owned()))
}

/// Quotes that word processors and chat programs put in place of `"`, and the one that JSON does not have.
const QUOTES: [char; 7] = ['“', '”', '„', '‘', '’', '«', '\''];

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ConfigMapValueError> {
    serde_json::from_str(text).map_err(|error| match text.chars().find(|letter| QUOTES.contains(letter)) {
        Some(quote) => ConfigMapValueError::Quote(quote),
        None => ConfigMapValueError::Json(error.to_string()),
    })
}

#[cfg(test)]
#[path = "config_map_tests.rs"]
mod tests;
