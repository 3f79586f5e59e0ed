//! EDNS: the OPT record (RFC 6891) and the numbers of its options.

use core::fmt;

/// Octets of an OPT record without options: root owner, type, class, TTL and length.
pub const OPT_FIXED_LEN: usize = 11;

/// An option code (IANA "DNS EDNS0 Option Codes").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OptionCode(pub u16);

impl OptionCode {
    /// Name server identifier (RFC 5001).
    pub const NSID: OptionCode = OptionCode(3);
    /// Client subnet (RFC 7871).
    pub const CLIENT_SUBNET: OptionCode = OptionCode(8);
    /// Zone expiry (RFC 7314).
    pub const EXPIRE: OptionCode = OptionCode(9);
    /// Cookies (RFC 7873).
    pub const COOKIE: OptionCode = OptionCode(10);
    /// TCP keepalive (RFC 7828).
    pub const TCP_KEEPALIVE: OptionCode = OptionCode(11);
    /// Padding (RFC 7830).
    pub const PADDING: OptionCode = OptionCode(12);
    /// Extended DNS Error (RFC 8914).
    pub const EXTENDED_ERROR: OptionCode = OptionCode(15);
}

/// An Extended DNS Error code (RFC 8914 §4): why an answer is as it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EdeCode(pub u16);

impl EdeCode {
    /// 0: no other code fits.
    pub const OTHER: EdeCode = EdeCode(0);
    /// 3: the answer is past its time to live.
    pub const STALE_ANSWER: EdeCode = EdeCode(3);
    /// 13: a failure that was cached.
    pub const CACHED_ERROR: EdeCode = EdeCode(13);
    /// 14: the server is not up to it yet.
    pub const NOT_READY: EdeCode = EdeCode(14);
    /// 15: blocked by the operator.
    pub const BLOCKED: EdeCode = EdeCode(15);
    /// 17: filtered as the client asked.
    pub const FILTERED: EdeCode = EdeCode(17);
    /// 18: the client may not ask here.
    pub const PROHIBITED: EdeCode = EdeCode(18);
    /// 19: a denial past its time to live.
    pub const STALE_NXDOMAIN: EdeCode = EdeCode(19);
    /// 20: not an authority for the name and no recursion.
    pub const NOT_AUTHORITATIVE: EdeCode = EdeCode(20);
    /// 21: the operation is not supported.
    pub const NOT_SUPPORTED: EdeCode = EdeCode(21);
    /// 22: no upstream could be reached.
    pub const NO_REACHABLE_AUTHORITY: EdeCode = EdeCode(22);
    /// 23: the network failed on the way to an upstream.
    pub const NETWORK_ERROR: EdeCode = EdeCode(23);
    /// 24: an upstream gave data that cannot be used.
    pub const INVALID_DATA: EdeCode = EdeCode(24);
}

/// The fixed part of an OPT record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opt {
    /// Octets that the sender can take over UDP.
    pub udp_size: u16,
    /// Upper eight bits of the response code.
    pub extended_rcode: u8,
    /// EDNS version; only 0 exists.
    pub version: u8,
    /// DO: the sender wants DNSSEC records (RFC 3225).
    pub dnssec_ok: bool,
}

impl Opt {
    /// Reads the class and TTL fields of an OPT record.
    #[must_use]
    pub fn from_fields(class: u16, ttl: u32) -> Opt {
        let [extended_rcode, version, flags, _] = ttl.to_be_bytes();
        Opt { udp_size: class, extended_rcode, version, dnssec_ok: flags & 0x80 != 0 }
    }

    /// The eleven octets of the record up to its options, which are `options_len` octets long.
    #[must_use]
    pub fn to_octets(self, options_len: u16) -> [u8; OPT_FIXED_LEN] {
        let [size_high, size_low] = self.udp_size.to_be_bytes();
        let [len_high, len_low] = options_len.to_be_bytes();
        let flags = if self.dnssec_ok { 0x80 } else { 0 };
        [0, 0, 41, size_high, size_low, self.extended_rcode, self.version, flags, 0, len_high, len_low]
    }
}

/// The options of an OPT record, as code and data.
#[derive(Clone)]
pub(crate) struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// Takes the data of an OPT record; `None` if the lengths in it do not add up.
    #[must_use]
    pub(crate) fn new(data: &'a [u8]) -> Option<Options<'a>> {
        let mut options = Options { rest: data };
        while options.next().is_some() {}
        options.rest.is_empty().then_some(Options { rest: data })
    }
}

/// The options in the data of an OPT record (RFC 6891 §6.1.2); none if they do not add up.
pub fn options(data: &[u8]) -> impl Iterator<Item = (OptionCode, &[u8])> {
    Options::new(data).into_iter().flatten()
}

impl<'a> Iterator for Options<'a> {
    type Item = (OptionCode, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let ([code_high, code_low, len_high, len_low], rest) = self.rest.split_first_chunk()?;
        let (data, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*len_high, *len_low])))?;
        self.rest = rest;
        Some((OptionCode(u16::from_be_bytes([*code_high, *code_low])), data))
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_part_reads_back() {
        let opt = Opt { udp_size: 1232, extended_rcode: 1, version: 0, dnssec_ok: true };
        assert_eq!(opt.to_octets(0), [0, 0, 41, 4, 208, 1, 0, 0x80, 0, 0, 0]);
        assert_eq!(Opt::from_fields(1232, 0x0100_8000), opt);
    }

    #[test]
    fn options_must_add_up() {
        let data = [0, 10, 0, 2, 7, 7, 0, 3, 0, 0];
        let listed: Vec<_> = Options::new(&data).unwrap().collect();
        assert_eq!(listed, [(OptionCode::COOKIE, &[7u8, 7][..]), (OptionCode::NSID, &[][..])]);
        assert!(Options::new(&data[..5]).is_none());
        assert!(Options::new(&[0, 10, 0]).is_none());
    }
}
