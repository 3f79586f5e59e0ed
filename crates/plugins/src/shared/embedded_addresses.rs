//! IPv4 addresses embedded in IPv6 addresses (RFC 6052), and responses made of the answer to a question for the other
//! kind of address (*dns64*, *siit*).

use core::net::{Ipv4Addr, Ipv6Addr};

use config::options::{Args, Problem};
use engine::Response;
use ipnet::Ipv6Net;
use wire::{Mark, NameError, Record, Section, Type};

/// Lengths of a prefix in bits (RFC 6052 §2.2).
const PREFIX_LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];
/// Index of the byte that is always zero in an address with an embedded one (RFC 6052 §2.2).
const ZERO_OCTET: usize = 8;
/// Maximum TTL in seconds of a translated record if no SOA record limits the TTL of the missing records (RFC 6147
/// §5.1.7).
const TTL_MAX: u32 = 600;

/// IPv6 prefix that IPv4 addresses are embedded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    bytes: [u8; 16],
    /// Length in bytes.
    length: usize,
}

impl Prefix {
    /// The well-known prefix, 64:ff9b::/96 (RFC 6052 §2.1).
    pub(crate) const WELL_KNOWN: Prefix =
        Prefix { bytes: [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], length: 12 };

    /// Reads a prefix from a directive.
    ///
    /// # Errors
    /// The next word is not a network with one of the lengths of RFC 6052.
    pub(crate) fn read(args: &mut Args<'_>) -> Result<Prefix, Problem> {
        let word = args.word()?;
        let network: Option<Ipv6Net> = word.text.parse().ok();
        let network = network.filter(|network| PREFIX_LENGTHS.contains(&network.prefix_len()));
        let wanted = "an IPv6 network of 32, 40, 48, 56, 64 or 96 bits, such as `64:ff9b::/96`";
        let network = network.ok_or_else(|| args.bad(word, wanted))?;
        Ok(Prefix { bytes: network.network().octets(), length: usize::from(network.prefix_len() / 8) })
    }

    /// Embeds an IPv4 address (RFC 6052 §2.2).
    pub(crate) fn embed(&self, address: Ipv4Addr) -> Ipv6Addr {
        let mut bytes = self.bytes;
        for (at, byte) in self.places().zip(address.octets()) {
            bytes[at] = byte;
        }
        bytes.into()
    }

    /// Returns the IPv4 address that is embedded in `address`, or `None` if it has another prefix or is not of this
    /// form (RFC 6052 §2.3).
    pub(crate) fn extract(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let bytes = address.octets();
        if bytes[..self.length] != self.bytes[..self.length] || bytes[ZERO_OCTET] != 0 {
            return None;
        }
        let mut found = [0; 4];
        for (byte, at) in found.iter_mut().zip(self.places()) {
            *byte = bytes[at];
        }
        Some(found.into())
    }

    /// Returns true if the byte that must be zero is not.
    pub(crate) const fn is_reserved(&self) -> bool {
        self.bytes[ZERO_OCTET] != 0
    }

    /// Indexes of the bytes after the prefix that hold the IPv4 address.
    fn places(&self) -> impl Iterator<Item = usize> {
        (self.length..self.bytes.len()).filter(|at| *at != ZERO_OCTET)
    }
}

/// Makes a response of the answer to a question for the other kind of address: its code, flags and records. `translate`
/// writes the records of the answer section that it translates, with at most the TTL that it is given, and returns
/// false for the others.
pub(crate) fn translate_response(
    sub: &Response,
    response: &mut Response,
    ttl_max: Option<u32>,
    translate: impl FnMut(&Record<'_>, u32, &mut Response) -> Result<bool, NameError>,
) {
    let theirs = sub.message.flags();
    let flags = &mut response.message.header.flags;
    *flags = flags
        .with_authoritative(theirs.authoritative())
        .with_recursion_available(theirs.recursion_available())
        .with_truncated(theirs.truncated());
    response.set_rcode(sub.rcode());
    // Records that cannot be parsed are left out.
    let _ = copy_translated(sub, response, ttl_max.unwrap_or(TTL_MAX), translate);
}

/// Copies a response with records of its answer section translated. CNAME records and the other sections stay as they
/// are (RFC 6147 §5.4).
fn copy_translated(
    sub: &Response,
    response: &mut Response,
    ttl_max: u32,
    mut translate: impl FnMut(&Record<'_>, u32, &mut Response) -> Result<bool, NameError>,
) -> Result<(), NameError> {
    for mark in sub.message.section(Section::Answer) {
        let record = sub.message.record(mark);
        if !translate(&record, ttl_max, response)? {
            response.message.push_record(Section::Answer, &record)?;
        }
    }
    for section in [Section::Authority, Section::Additional] {
        for mark in sub.message.section(section) {
            response.message.push_record(section, &sub.message.record(mark))?;
        }
    }
    Ok(())
}

/// Returns true if the answer section has records of this type.
pub(crate) fn has(response: &Response, rtype: Type) -> bool {
    response.message.section(Section::Answer).any(|mark: Mark| mark.rtype == rtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of RFC 6052 §2.4.
    #[test]
    fn embeds_the_examples_of_rfc_6052() {
        let cases = [
            ("2001:db8::/32", "2001:db8:c000:221::"),
            ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
        ];
        for (prefix, address) in cases {
            let network: Ipv6Net = prefix.parse().unwrap();
            let length = usize::from(network.prefix_len() / 8);
            let prefix = Prefix { bytes: network.network().octets(), length };
            let address: Ipv6Addr = address.parse().unwrap();
            assert_eq!(prefix.embed([192, 0, 2, 33].into()), address, "{network}");
            assert_eq!(prefix.extract(address), Some([192, 0, 2, 33].into()), "{network}");
            assert_eq!(prefix.extract("2002:db8::1".parse().unwrap()), None, "{network}");
        }
    }
}
