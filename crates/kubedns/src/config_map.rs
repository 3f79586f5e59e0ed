//! The ConfigMap `kube-dns`: three keys, each of them checked; one that is wrong makes all of it void, and what was in
//! force stays so.

use core::fmt;
use core::net::SocketAddr;
use std::collections::BTreeMap;

use crate::name_server::{NameServer, read_address};
use crate::names::{is_domain, is_label};

/// Upstreams of one domain: as many as *forward* asks. kube-dns had three.
pub const SERVERS_MAX: usize = 15;
/// Stub domains: each is a server block with a cache of its own.
pub const STUB_DOMAINS_MAX: usize = 1000;
/// Federations: more than a project that has ended can have had.
pub const FEDERATIONS_MAX: usize = 100;

const STUB_DOMAINS: &str = "stubDomains";
const UPSTREAMS: &str = "upstreamNameservers";
const FEDERATIONS: &str = "federations";

/// What the ConfigMap says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// Domains and who is asked about them.
    pub stub_domains: BTreeMap<String, Vec<NameServer>>,
    /// Who is asked about everything outside; nobody in particular if empty.
    pub upstreams: Vec<SocketAddr>,
    /// Names of federations and their domains.
    pub federations: Vec<(String, String)>,
}

/// Why a ConfigMap is refused: the key, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The key.
    pub key: &'static str,
    /// What is wrong.
    pub wrong: Wrong,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is not the JSON that it must be.
    Json(String),
    /// This is no domain.
    Domain(String),
    /// This is no name server that can stand here.
    Server(String),
    /// This is no pair `NAME=DOMAIN`.
    Pair(String),
    /// There are more of something than can be served.
    TooMany(&'static str, usize),
}

impl Dynamic {
    /// Reads the keys of the ConfigMap; those that are not known are ignored.
    ///
    /// # Errors
    /// The first value that cannot be used.
    pub fn read(data: &BTreeMap<String, String>) -> Result<Dynamic, Refused> {
        let value = |key: &'static str| data.get(key).map(String::as_str).filter(|text| !text.trim().is_empty());
        fn of_key<T>(key: &'static str, read: Result<T, Wrong>) -> Result<T, Refused> {
            read.map_err(|wrong| Refused { key, wrong })
        }
        let mut dynamic = Dynamic::default();
        if let Some(text) = value(STUB_DOMAINS) {
            dynamic.stub_domains = of_key(STUB_DOMAINS, stub_domains(text))?;
        }
        if let Some(text) = value(UPSTREAMS) {
            dynamic.upstreams = of_key(UPSTREAMS, upstreams(text))?;
        }
        if let Some(text) = value(FEDERATIONS) {
            dynamic.federations = of_key(FEDERATIONS, federations(text))?;
        }
        Ok(dynamic)
    }
}

fn stub_domains(text: &str) -> Result<BTreeMap<String, Vec<NameServer>>, Wrong> {
    let written: BTreeMap<String, Vec<String>> = json(text)?;
    if written.len() > STUB_DOMAINS_MAX {
        return Err(Wrong::TooMany("domains", STUB_DOMAINS_MAX));
    }
    let read = written.into_iter().map(|(domain, servers)| {
        if !is_domain(&domain) {
            return Err(Wrong::Domain(domain));
        }
        if servers.len() > SERVERS_MAX {
            return Err(Wrong::TooMany("name servers of one domain", SERVERS_MAX));
        }
        let servers: Result<_, _> =
            servers.into_iter().map(|text| NameServer::read(&text).ok_or(Wrong::Server(text))).collect();
        Ok((domain.trim_end_matches('.').to_owned(), servers?))
    });
    read.collect()
}

fn upstreams(text: &str) -> Result<Vec<SocketAddr>, Wrong> {
    let written: Vec<String> = json(text)?;
    if written.len() > SERVERS_MAX {
        return Err(Wrong::TooMany("name servers", SERVERS_MAX));
    }
    written.into_iter().map(|text| read_address(&text, ':').ok_or(Wrong::Server(text))).collect()
}

/// Reads a list of addresses with commas between them, as flags have it.
///
/// # Errors
/// The first that is none.
pub fn name_servers(text: &str) -> Result<Vec<SocketAddr>, Wrong> {
    let each = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    each.map(|text| read_address(text, ':').ok_or_else(|| Wrong::Server(text.to_owned()))).collect()
}

/// Reads `NAME=DOMAIN,NAME=DOMAIN`; or a JSON object, which kube-dns refuses although the documentation of Kubernetes shows one.
///
/// # Errors
/// The first pair that is none.
pub fn federations(text: &str) -> Result<Vec<(String, String)>, Wrong> {
    if text.trim_start().starts_with('{') {
        let written: BTreeMap<String, String> = json(text)?;
        let pairs: Vec<String> = written.into_iter().map(|(name, domain)| format!("{name}={domain}")).collect();
        return federations(&pairs.join(","));
    }
    let pairs: Vec<&str> = text.split(',').map(str::trim).filter(|pair| !pair.is_empty()).collect();
    if pairs.len() > FEDERATIONS_MAX {
        return Err(Wrong::TooMany("federations", FEDERATIONS_MAX));
    }
    pairs.into_iter().map(|text| pair(text).ok_or_else(|| Wrong::Pair(text.to_owned()))).collect()
}

fn pair(text: &str) -> Option<(String, String)> {
    let (name, domain) = text.split_once('=')?;
    let (name, domain) = (name.trim(), domain.trim());
    (is_label(name) && is_domain(domain)).then(|| (name.to_owned(), domain.trim_end_matches('.').to_owned()))
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Wrong> {
    serde_json::from_str(text).map_err(|error| Wrong::Json(error.to_string()))
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}`: {}", self.key, self.wrong)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Json(problem) => write!(out, "not the JSON that it must be: {problem}"),
            Wrong::Domain(text) => write!(out, "'{text}' is no domain in lower case"),
            Wrong::Server(text) => write!(out, "'{text}' is no name server that can stand here"),
            Wrong::Pair(text) => write!(out, "'{text}' is no pair NAME=DOMAIN"),
            Wrong::TooMany(what, most) => write!(out, "more than {most} {what}"),
        }
    }
}

impl core::error::Error for Refused {}

#[cfg(test)]
#[path = "config_map_tests.rs"]
mod tests;
