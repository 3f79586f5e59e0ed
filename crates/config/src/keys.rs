//! Keys of server blocks: `[SCHEME://]ZONE[:PORT]`, where the zone may also be a CIDR prefix.

use core::fmt;

use corefile::{Diagnostic, Span, Token};
use wire::Name;

use crate::codes;
use crate::options::{Usage, cidr_zones, zone_doubt};
use engine::Scheme;

/// Syntax of a key.
const USAGE: Usage = Usage("[SCHEME://]ZONE[:PORT]");

/// Zone served on a port.
#[derive(Clone, Debug)]
pub struct Key {
    /// Transport.
    pub scheme: Scheme,
    /// Zone, in lower case.
    pub zone: Name,
    /// Port.
    pub port: u16,
    /// Position in the Corefile.
    pub span: Span,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme.name(), self.zone, self.port)
    }
}

/// Parses a key. A CIDR prefix that does not end at a label boundary yields several keys.
///
/// # Errors
/// The port is out of range, or the zone is not a domain name.
pub(crate) fn read_key(token: &Token, dns_port: u16) -> Result<Vec<Key>, Box<Diagnostic>> {
    let (scheme, rest) = split_scheme(&token.text);
    let problem =
        |message: String| Box::new(Diagnostic::error(codes::KEY_INVALID, token.span, message).with_usage(USAGE.0));
    if rest.ends_with(':') {
        return Err(problem(format!("expecting data after last colon: `{}`", token.text)));
    }
    let (zone, port) = match rest.rsplit_once(':').and_then(|(zone, port)| Some((zone, read_port(port)?))) {
        Some((zone, port)) => (zone, Some(port)),
        None => (rest, None),
    };
    let port = match port.map(u16::try_from) {
        None => scheme.port(dns_port),
        Some(Ok(port)) => port,
        Some(Err(_)) => return Err(problem(format!("port of `{}` is out of range; the maximum is 65535", token.text))),
    };
    let zones = match cidr_zones(zone) {
        Some(zones) => zones,
        None => {
            let name = Name::from_text(zone).map_err(|error| {
                let help = if zone.is_empty() { " (the root zone is written `.`)" } else { "" };
                problem(format!("zone is not a valid domain name: `{zone}`: {error}{help}"))
            })?;
            vec![name.into_lowercase()]
        }
    };
    Ok(zones.into_iter().map(|zone| Key { scheme, zone, port, span: token.span }).collect())
}

/// Returns a warning if the key is valid, but probably not what its author meant.
pub(crate) fn doubt_key(token: &Token) -> Option<Diagnostic> {
    let rest = split_scheme(&token.text).1;
    let doubt = match rest.contains("://") {
        true => "the text before `://` is not a DNS transport",
        false => zone_doubt(rest)?,
    };
    let message = format!("`{}` is probably not meant as a zone: {doubt}", token.text);
    Some(Diagnostic::warning(codes::KEY_UNLIKELY, token.span, message).with_usage(USAGE.0))
}

fn split_scheme(text: &str) -> (Scheme, &str) {
    let found = Scheme::ALL.into_iter().find_map(|scheme| {
        let rest = text.strip_prefix(scheme.name())?.strip_prefix("://")?;
        Some((scheme, rest))
    });
    found.unwrap_or((Scheme::Dns, text))
}

/// Parses a port like Go's `strconv.Atoi`: a sign and leading zeros are allowed. Any other text is part of the zone.
fn read_port(text: &str) -> Option<i64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let file = corefile::Sources::default().add("Corefile".as_ref(), text.to_owned());
        let token = Token { text: text.to_owned(), span: Span { file, start: 0, end: 0 } };
        let keys = read_key(&token, 53).map_err(|problem| problem.message)?;
        Ok(keys.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn parses_and_normalises_keys() {
        let cases = [
            ("LAB.Test", "dns://lab.test.:53"),
            ("lab.test:1053", "dns://lab.test.:1053"),
            ("lab.test.:1053", "dns://lab.test.:1053"),
            (".", "dns://.:53"),
            (".:053", "dns://.:53"),
            ("tls://lab.test", "tls://lab.test.:853"),
            ("quic://lab.test", "quic://lab.test.:853"),
            ("https://.", "https://.:443"),
            ("https3://.", "https3://.:443"),
            ("grpc://.", "grpc://.:443"),
            ("10.0.0.0/8:1053", "dns://10.in-addr.arpa.:1053"),
            ("192.0.2.1", "dns://192.0.2.1.:53"),
            ("lab.test:dns", "dns://lab.test:dns.:53"),
            ("x://lab.test", "dns://x://lab.test.:53"),
            ("32/27.104.21.172.in-addr.arpa", "dns://32/27.104.21.172.in-addr.arpa.:53"),
        ];
        for (text, key) in cases {
            assert_eq!(read(text), Ok(vec![key.to_owned()]), "{text}");
        }
        assert_eq!(read("10.9.3.0/18").unwrap().len(), 64);
        assert_eq!(read("2001:db8::/29").unwrap().len(), 8);
    }

    #[test]
    fn refuses_invalid_keys() {
        for (text, part) in [
            (":53", "not a valid domain name"),
            ("lab.test:", "after last colon"),
            ("a..b", "not a valid domain name"),
            (".:99999", "maximum is 65535"),
            (".:-1", "maximum is 65535"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
