//! Address of an etcd member, with or without TLS.

use std::fmt;

use http::Uri;

use crate::error::StoreError;

/// Default client port of etcd.
const PORT_DEFAULT: u16 = 2379;

/// Address of an etcd member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Host name or IP address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) has_tls: bool,
    /// Scheme, host and port, for requests.
    pub(crate) origin: Uri,
}

impl Endpoint {
    /// Parses a URL. Without a scheme, `has_tls` decides on TLS.
    ///
    /// # Errors
    /// [`StoreError::Endpoint`].
    pub(crate) fn read(text: &str, has_tls: bool) -> Result<Endpoint, StoreError> {
        let wrong = |reason: &str| StoreError::Endpoint { endpoint: text.to_owned(), reason: reason.to_owned() };
        let (has_tls, authority) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some((scheme, _)) => return Err(wrong(&format!("unsupported scheme {scheme}; use http or https"))),
            None => (has_tls, text),
        };
        let authority = authority.trim_end_matches('/');
        let uri = Uri::builder().scheme("http").authority(authority).path_and_query("/").build();
        let uri = uri.map_err(|_| wrong("not a host with a port"))?;
        let host = uri.host().ok_or_else(|| wrong("not a host with a port"))?;
        let port = match authority.strip_prefix(host) {
            Some("") if !host.is_empty() => Some(PORT_DEFAULT),
            _ => uri.port_u16(),
        };
        let port = port.ok_or_else(|| wrong("not a host with a port"))?;
        let scheme = if has_tls { "https" } else { "http" };
        let origin = Uri::builder().scheme(scheme).authority(format!("{host}:{port}")).path_and_query("/").build();
        let origin = origin.map_err(|_| wrong("not a host with a port"))?;
        Ok(Endpoint { host: host.trim_matches(['[', ']']).to_owned(), port, has_tls, origin })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.origin.to_string().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_endpoint_urls() {
        for (text, has_tls, expected) in [
            ("http://localhost:2379", false, "http://localhost:2379"),
            ("http://localhost:2379/", true, "http://localhost:2379"),
            ("https://etcd.example", false, "https://etcd.example:2379"),
            ("10.0.0.1:4001", false, "http://10.0.0.1:4001"),
            ("10.0.0.1", true, "https://10.0.0.1:2379"),
            ("https://[fd00::1]:2380", false, "https://[fd00::1]:2380"),
        ] {
            let endpoint = Endpoint::read(text, has_tls);
            assert_eq!(endpoint.unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "http://", "unix:///run/etcd", "http://a b", "http://[", "http://u@h", "http://h:99999"] {
            assert!(Endpoint::read(text, false).is_err(), "{text}");
        }
    }
}
