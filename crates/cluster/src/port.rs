//! The ports of Services and of their endpoints.

/// Port of a Service or of its endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// Name as in the object; empty if it has none.
    pub name: Box<str>,
    /// Protocol as in the object (`TCP`, `UDP` or `SCTP`); empty if it has none.
    pub protocol: Box<str>,
    /// Port number. A port without one yields address records but no SRV record.
    pub number: Option<u16>,
}

impl Port {
    /// Returns true if a query for this port name and protocol matches. An empty text matches anything, and case is
    /// ignored.
    #[must_use]
    pub fn matches(&self, name: &[u8], protocol: &[u8]) -> bool {
        let same = |asked: &[u8], own: &str| asked.is_empty() || asked.eq_ignore_ascii_case(own.as_bytes());
        same(name, &self.name) && same(protocol, &self.protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_names_and_protocols_case_insensitively_and_empty_ones_always() {
        let port = Port { name: "http".into(), protocol: "TCP".into(), number: Some(80) };
        for (name, protocol, matches) in [
            ("http", "tcp", true),
            ("HTTP", "Tcp", true),
            ("", "", true),
            ("", "tcp", true),
            ("http", "", true),
            ("http", "udp", false),
            ("", "udp", false),
            ("httpx", "tcp", false),
        ] {
            assert_eq!(port.matches(name.as_bytes(), protocol.as_bytes()), matches, "{name} {protocol}");
        }
        let nameless = Port { name: "".into(), protocol: "TCP".into(), number: None };
        assert!(nameless.matches(b"", b"tcp") && !nameless.matches(b"http", b"tcp"));
    }
}
