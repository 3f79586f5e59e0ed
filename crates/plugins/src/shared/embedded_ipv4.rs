//! IPv4 addresses embedded in IPv6 addresses (RFC 6052 §2), which *dns64* writes and *siit* reads.

use core::net::{Ipv4Addr, Ipv6Addr};

use ipnet::Ipv6Net;

/// Lengths of a prefix in bits (RFC 6052 §2.2).
const LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];
/// Index of the byte that is always zero in such an address (RFC 6052 §2.2).
const ZERO_BYTE: usize = 8;
/// Requirement of a prefix, for error messages.
pub(crate) const PREFIX: &str = "an IPv6 network of 32, 40, 48, 56, 64 or 96 bits, such as `64:ff9b::/96`";

/// IPv6 prefix that IPv4 addresses are embedded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    bytes: [u8; 16],
    /// Length in bytes.
    length: usize,
}

impl Prefix {
    /// The well-known prefix `64:ff9b::/96` (RFC 6052 §2.1).
    pub(crate) const WELL_KNOWN: Prefix =
        Prefix { bytes: [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], length: 12 };

    /// Parses a prefix such as `64:ff9b::/96`. Returns `None` for other texts and lengths.
    pub(crate) fn parse(text: &str) -> Option<Prefix> {
        let network: Ipv6Net = text.parse().ok()?;
        let length = LENGTHS.contains(&network.prefix_len()).then_some(network.prefix_len() / 8)?;
        Some(Prefix { bytes: network.network().octets(), length: length.into() })
    }

    /// Returns true if bits 64 to 71 are zero, as RFC 6052 §2.2 requires.
    pub(crate) const fn has_zero_byte(&self) -> bool {
        self.bytes[ZERO_BYTE] == 0
    }

    /// Embeds an IPv4 address.
    pub(crate) fn embed(&self, address: Ipv4Addr) -> Ipv6Addr {
        let mut bytes = self.bytes;
        for (at, byte) in self.places().zip(address.octets()) {
            bytes[at] = byte;
        }
        bytes.into()
    }

    /// Returns the IPv4 address in an IPv6 address, if that has this prefix and a zero where RFC 6052 requires it.
    pub(crate) fn extract(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let bytes = address.octets();
        let fits = bytes[..self.length] == self.bytes[..self.length] && bytes[ZERO_BYTE] == 0;
        let mut octets = [0; 4];
        self.places().zip(&mut octets).for_each(|(at, byte)| *byte = bytes[at]);
        fits.then(|| octets.into())
    }

    /// Returns the indexes of the bytes after the prefix that an IPv4 address may take.
    fn places(&self) -> impl Iterator<Item = usize> {
        (self.length..self.bytes.len()).filter(|at| *at != ZERO_BYTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of RFC 6052 §2.4.
    #[test]
    fn embeds_and_extracts_the_examples_of_rfc_6052() {
        let cases = [
            ("2001:db8::/32", "2001:db8:c000:221::"),
            ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
        ];
        for (text, address) in cases {
            let (prefix, address): (_, Ipv6Addr) = (Prefix::parse(text).unwrap(), address.parse().unwrap());
            assert_eq!(prefix.embed([192, 0, 2, 33].into()), address, "{text}");
            assert_eq!(prefix.extract(address), Some([192, 0, 2, 33].into()), "{text}");
            assert_eq!(prefix.extract(Ipv6Addr::LOCALHOST), None, "{text}");
            assert!(prefix.has_zero_byte());
        }
    }

    #[test]
    fn refuses_other_lengths_and_addresses() {
        for text in ["64:ff9b::/72", "64:ff9b::/97", "64:ff9b::", "10.0.0.0/8", "x"] {
            assert_eq!(Prefix::parse(text), None, "{text}");
        }
        assert_eq!(Prefix::parse("64:ff9b::/96"), Some(Prefix::WELL_KNOWN));
        assert!(!Prefix::parse("64:ff9b:0:0:ff00::/96").unwrap().has_zero_byte());
        let short = Prefix::parse("2001:db8::/32").unwrap();
        assert_eq!(short.extract("2001:db8:c000:221:ff00::".parse().unwrap()), None, "byte 8 is not zero");
    }
}
