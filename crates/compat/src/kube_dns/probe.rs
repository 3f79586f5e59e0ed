//! Flag `--probe LABEL,SERVER,NAME[,SECONDS[,TYPE]]` of the sidecar.

use core::net::{Ipv4Addr, SocketAddr};

use crate::kube_dns::name_server::read_address;
use crate::kube_dns::names::is_loose_domain;

/// Default interval in seconds.
const SECONDS: u32 = 5;
/// Supported query types.
const TYPES: [&str; 4] = ["ANY", "A", "AAAA", "SRV"];

/// Periodic query of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Label in metrics: letters, digits and `_`.
    pub label: String,
    /// Server to query.
    pub server: SocketAddr,
    /// Name to query.
    pub name: String,
    /// Interval in seconds.
    pub seconds: u32,
    /// Query type. The default is ANY.
    pub qtype: &'static str,
}

/// Invalid part of a probe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// Too few parts.
    #[error("'{0}' is not LABEL,SERVER,NAME[,SECONDS[,TYPE]]")]
    Form(String),
    /// More than five parts.
    #[error("'{0}' has more than five parts")]
    TooManyParts(String),
    /// Label with other characters than letters, digits and `_`.
    #[error("label '{0}' may contain only letters, digits and _")]
    Label(String),
    /// Server that is not an IP address.
    #[error("'{0}' is not an IP address")]
    Server(String),
    /// Name that is not a domain name.
    #[error("'{0}' is not a domain name")]
    Name(String),
    /// Interval that is not a positive number.
    #[error("'{0}' is not a number of seconds above 0")]
    Seconds(String),
    /// Unsupported query type.
    #[error("'{}' is not a supported type; use one of {}", .0, TYPES.join(", "))]
    Type(String),
    /// Label of another probe.
    #[error("label '{0}' is used twice")]
    Duplicate(String),
}

impl Probe {
    /// Parses a probe.
    ///
    /// # Errors
    /// The first invalid part.
    pub fn read(text: &str) -> Result<Probe, ProbeError> {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let [label, server, name, rest @ ..] = fields.as_slice() else {
            return Err(ProbeError::Form(text.to_owned()));
        };
        if rest.len() > 2 {
            return Err(ProbeError::TooManyParts(text.to_owned()));
        }
        if label.is_empty() || !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(ProbeError::Label((*label).to_owned()));
        }
        let server = server_of(server).ok_or_else(|| ProbeError::Server((*server).to_owned()))?;
        if !is_loose_domain(name) {
            return Err(ProbeError::Name((*name).to_owned()));
        }
        let seconds = rest.first().map_or(Ok(SECONDS), |text| match text.parse() {
            Ok(seconds) if seconds > 0 => Ok(seconds),
            _ => Err(ProbeError::Seconds((*text).to_owned())),
        })?;
        let qtype = rest.get(1).map_or(Ok("ANY"), |text| {
            TYPES.into_iter().find(|known| known == text).ok_or_else(|| ProbeError::Type((*text).to_owned()))
        })?;
        let name = name.trim_end_matches('.').to_owned();
        Ok(Probe { label: (*label).to_owned(), server, name, seconds, qtype })
    }
}

/// Parses an address with an optional port. As in Go, an IPv4 address may have brackets too.
fn server_of(text: &str) -> Option<SocketAddr> {
    let in_brackets = text.strip_prefix('[').and_then(|text| text.split_once(']'));
    let v4 = in_brackets.and_then(|(ip, port)| Some((ip.parse::<Ipv4Addr>().ok()?, port.strip_prefix(':')?)));
    match v4 {
        Some((ip, port)) => Some(SocketAddr::from((ip, port.parse().ok()?))),
        None => read_address(text, ':'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_probes_as_the_sidecar_does() {
        for (text, read) in [
            ("kubedns,127.0.0.1:10053,kubernetes.default.svc.cluster.local,5,SRV", Some((5, "SRV"))),
            ("dnsmasq,127.0.0.1,kubernetes.default.svc.cluster.local.,10", Some((10, "ANY"))),
            ("a_1,[::1]:53,example.org", Some((5, "ANY"))),
            ("a,[127.0.0.1]:10053,example.org,5,A", Some((5, "A"))),
            ("a,::1,example.org,5,ANY", Some((5, "ANY"))),
            ("a,::1,example.org,5,A", Some((5, "A"))),
            ("a,127.0.0.1", None),
            ("a-b,127.0.0.1,x", None),
            (",127.0.0.1,x", None),
            ("a,localhost,x", None),
            ("a,127.0.0.1,", None),
            ("a,127.0.0.1,x,0", None),
            ("a,127.0.0.1,x,many", None),
            ("a,127.0.0.1,x,5,TXT", None),
            ("a,127.0.0.1,x,5,A,more", None),
        ] {
            let got = Probe::read(text);
            assert_eq!(got.clone().ok().map(|probe| (probe.seconds, probe.qtype)), read, "{text}: {got:?}");
        }
    }
}
