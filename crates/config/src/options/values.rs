//! Parsers for values in Corefiles.

use core::net::IpAddr;

use wire::{Name, reverse_name};

/// Returns the zones that a word names, in lower case.
///
/// A domain name yields one zone. A CIDR prefix yields its reverse zones: several if it does not end at a byte (IPv4)
/// or nibble (IPv6) boundary. Empty if the word is neither.
#[must_use]
pub fn zone_names(word: &str) -> Vec<Name> {
    if let Some(zones) = cidr_zones(word) {
        return zones;
    }
    Name::from_text(without_port(word)).map(Name::into_lowercase).into_iter().collect()
}

/// Removes a transport and a port.
fn without_port(word: &str) -> &str {
    let zone = word.split_once("://").map_or(word, |(_, zone)| zone);
    match zone.rsplit_once(':') {
        Some((zone, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => zone,
        _ => zone,
    }
}

/// Returns the reason why a word is probably not meant as a zone, although CoreDNS accepts nearly any word as one.
pub(crate) fn zone_doubt(word: &str) -> Option<&'static str> {
    let zone = without_port(word);
    if cidr_zones(zone).is_some() {
        return None;
    }
    if [word, zone].iter().any(|text| text.parse::<IpAddr>().is_ok()) {
        return Some("an address is read as a domain name; append `/32` or `/128` for its reverse zone");
    }
    if zone.split_once('/').is_some_and(|(address, _)| address.parse::<IpAddr>().is_ok()) {
        return Some("not a valid prefix length, so the word is read as a domain name");
    }
    if !zone.is_ascii() {
        return Some("queries contain internationalized names in their ASCII form, `xn--...` (RFC 5890 §2.3.2.1)");
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*\\/".contains(&byte);
    (!zone.bytes().all(plain))
        .then_some("names of hosts and zones consist of letters, digits and hyphens (RFC 1123 §2.1)")
}

/// Returns the reverse zones that cover a CIDR prefix; `None` if the text is not one.
pub(crate) fn cidr_zones(text: &str) -> Option<Vec<Name>> {
    let (address, bits) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let bits: u32 = bits.parse().ok()?;
    let (width, step, value) = match address {
        IpAddr::V4(v4) => (32, 8, u128::from(v4.to_bits()) << 96),
        IpAddr::V6(v6) => (128, 4, v6.to_bits()),
    };
    if bits > width {
        return None;
    }
    // Splits the prefix into prefixes that end at label boundaries.
    let whole = bits.div_ceil(step) * step;
    let first = if bits == 0 { 0 } else { value >> (128 - bits) << (128 - bits) };
    let zones = (0..1u128 << (whole - bits)).map(|number| {
        let shift = 128 - whole;
        let part = if shift == 128 { first } else { first | number << shift };
        let part = if width == 32 {
            let [a, b, c, d, ..] = part.to_be_bytes();
            IpAddr::from([a, b, c, d])
        } else {
            IpAddr::V6(core::net::Ipv6Addr::from_bits(part))
        };
        let labels_off = (width - whole) / step;
        let name = reverse_name(part);
        name.as_ref().ancestors().nth(labels_off as usize).map_or(Name::root(), wire::NameRef::to_name)
    });
    Some(zones.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(word: &str) -> Vec<String> {
        zone_names(word).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn doubts_words_that_are_unlikely_to_be_zones() {
        let cases = [
            ("lab.test", ""),
            (".", ""),
            ("dns://lab.test:53", ""),
            ("_tcp.*.lab.test", ""),
            ("10.0.0.0/8:53", ""),
            ("32/27.104.21.172.in-addr.arpa", ""),
            ("192.0.2.1:53", "an address"),
            ("::1", "an address"),
            ("10.0.0.0/33", "not a valid prefix"),
            ("10.0.0.0/", "not a valid prefix"),
            ("a,b", "letters"),
            ("30;", "letters"),
            ("lab.test:dns", "letters"),
            ("b\u{fc}ro.test", "internationalized"),
        ];
        for (word, part) in cases {
            let doubt = zone_doubt(word).unwrap_or_default();
            assert!(doubt.contains(part) && doubt.is_empty() == part.is_empty(), "{word}: {doubt}");
        }
    }

    #[test]
    fn converts_words_to_zones() {
        assert_eq!(zones("Lab.Test"), ["lab.test."]);
        assert_eq!(zones("dns://lab.test:1053"), ["lab.test."]);
        assert_eq!(zones("10.0.0.0/8"), ["10.in-addr.arpa."]);
        assert_eq!(zones("172.20.0.0/16"), ["20.172.in-addr.arpa."]);
        assert_eq!(zones("10.0.0.0/15"), ["0.10.in-addr.arpa.", "1.10.in-addr.arpa."]);
        assert_eq!(zones("2001:db8::/31"), ["8.b.d.0.1.0.0.2.ip6.arpa.", "9.b.d.0.1.0.0.2.ip6.arpa."]);
        assert_eq!(zones("192.0.2.1"), ["192.0.2.1."]);
        assert_eq!(zones("0.0.0.0/0"), ["in-addr.arpa."]);
        assert!(zones("a..b").is_empty());
        let eighteen = zones("10.9.3.0/18");
        assert_eq!((eighteen.len(), eighteen[63].as_str()), (64, "63.9.10.in-addr.arpa."));
        assert_eq!(zones("192.168.1.0/25").len(), 128);
        assert_eq!(zones("192.168.1.0/25")[127], "127.1.168.192.in-addr.arpa.");
        assert_eq!(zones("2001:db8::/112")[0].matches('.').count(), 28 + 2);
    }
}
