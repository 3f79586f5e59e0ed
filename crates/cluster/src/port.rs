//! The ports of Services and of their endpoints.

/// A port of a Service or of its endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// As in the object; empty if it has none.
    pub name: Box<str>,
    /// As in the object, so `TCP`, `UDP` or `SCTP`; empty if it has none.
    pub protocol: Box<str>,
    /// The number; without one it has addresses but no SRV record.
    pub number: Option<u16>,
}

impl Port {
    /// Whether a question for this port name and protocol means this port: an empty text means any, and case does not
    /// matter.
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
    fn empty_port_texts_match_anything() {
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
