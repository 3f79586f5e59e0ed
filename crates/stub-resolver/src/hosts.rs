//! Host names in hosts(5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the addresses of a host in the text of a hosts file. `localhost` and names below it have the loopback
/// addresses even if the file does not say so (RFC 6761 §6.3).
pub(crate) fn addresses(text: &[u8], host: &str) -> Vec<IpAddr> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let listed: Vec<IpAddr> = String::from_utf8_lossy(text).lines().filter_map(|line| address(line, host)).collect();
    if listed.is_empty() && is_localhost(host) {
        return vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
    }
    listed
}

/// Returns the address of a line if one of its names is `host`.
fn address(line: &str, host: &str) -> Option<IpAddr> {
    let mut words = line.split('#').next()?.split_whitespace();
    // A link-local address may have a zone identifier, which these callers cannot use.
    let address = words.next()?.parse().ok()?;
    words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
}

fn is_localhost(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    last.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_and_aliases() {
        let text = b"127.0.0.1 localhost\n# 192.0.2.9 a.test\n192.0.2.1\tA.test b # b2\n2001:db8::1 a.test\nfe80::1%lo a.test\nx a.test\n\xff";
        for (host, expected) in [
            ("a.test", "[192.0.2.1, 2001:db8::1]"),
            ("B.", "[192.0.2.1]"),
            ("b2", "[]"),
            ("localhost", "[127.0.0.1]"),
            ("x.localhost", "[::1, 127.0.0.1]"),
            ("nolocalhost", "[]"),
        ] {
            assert_eq!(format!("{:?}", addresses(text, host)), expected, "{host}");
        }
    }
}
