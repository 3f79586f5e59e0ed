//! EDNS(0): OPT record (RFC 6891), option codes and Extended DNS Error codes.

use core::fmt;

/// Length in bytes of an OPT record without options: root owner, type, class, TTL and RDLENGTH.
pub const OPT_FIXED_LEN: usize = 11;

/// Option code (IANA "DNS EDNS0 Option Codes").
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
    /// Mark of a probe, without data: a query that Portolan sends to itself, for the views of the queries of clients.
    /// The code is one of those for local use (RFC 6891 §9).
    pub const PROBE: OptionCode = OptionCode(65_353);
}

/// Extended DNS Error code (RFC 8914 §4): the reason for a response.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EdeCode(pub u16);

impl EdeCode {
    /// 0: no other code fits.
    pub const OTHER: EdeCode = EdeCode(0);
    /// 3: the answer comes from the cache after its TTL expired.
    pub const STALE_ANSWER: EdeCode = EdeCode(3);
    /// 13: the failure comes from the cache.
    pub const CACHED_ERROR: EdeCode = EdeCode(13);
    /// 14: the server is not yet ready to answer.
    pub const NOT_READY: EdeCode = EdeCode(14);
    /// 15: blocked by the operator.
    pub const BLOCKED: EdeCode = EdeCode(15);
    /// 17: filtered at the client's request.
    pub const FILTERED: EdeCode = EdeCode(17);
    /// 18: the client is not authorized to query this server.
    pub const PROHIBITED: EdeCode = EdeCode(18);
    /// 19: the NXDOMAIN comes from the cache after its TTL expired.
    pub const STALE_NXDOMAIN: EdeCode = EdeCode(19);
    /// 20: the server is not authoritative for the name and does not recurse.
    pub const NOT_AUTHORITATIVE: EdeCode = EdeCode(20);
    /// 21: the operation is not supported.
    pub const NOT_SUPPORTED: EdeCode = EdeCode(21);
    /// 22: no upstream could be reached.
    pub const NO_REACHABLE_AUTHORITY: EdeCode = EdeCode(22);
    /// 23: a network error occurred on the way to an upstream.
    pub const NETWORK_ERROR: EdeCode = EdeCode(23);
    /// 24: an upstream returned unusable data.
    pub const INVALID_DATA: EdeCode = EdeCode(24);
}

/// Fixed part of an OPT record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opt {
    /// Largest UDP payload in bytes that the sender accepts.
    pub udp_size: u16,
    /// Upper eight bits of the response code.
    pub extended_rcode: u8,
    /// EDNS version. Only version 0 exists.
    pub version: u8,
    /// DO bit: the sender wants DNSSEC records (RFC 3225).
    pub dnssec_ok: bool,
}

impl Opt {
    /// Decodes the class and TTL fields of an OPT record.
    #[must_use]
    pub fn from_fields(class: u16, ttl: u32) -> Opt {
        let [extended_rcode, version, flags, _] = ttl.to_be_bytes();
        Opt { udp_size: class, extended_rcode, version, dnssec_ok: flags & 0x80 != 0 }
    }

    /// Encodes the 11 bytes before the options, which are `options_len` bytes long.
    #[must_use]
    pub fn to_bytes(self, options_len: u16) -> [u8; OPT_FIXED_LEN] {
        let [size_high, size_low] = self.udp_size.to_be_bytes();
        let [len_high, len_low] = options_len.to_be_bytes();
        let flags = if self.dnssec_ok { 0x80 } else { 0 };
        [0, 0, 41, size_high, size_low, self.extended_rcode, self.version, flags, 0, len_high, len_low]
    }
}

/// Iterator over the options of an OPT record, as code and data.
#[derive(Clone)]
pub(crate) struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// Creates an iterator over the RDATA of an OPT record. Returns `None` if the option lengths do not match the data.
    #[must_use]
    pub(crate) fn new(data: &'a [u8]) -> Option<Options<'a>> {
        let mut options = Options { rest: data };
        while options.next().is_some() {}
        options.rest.is_empty().then_some(Options { rest: data })
    }
}

/// Returns the options in the RDATA of an OPT record (RFC 6891 §6.1.2). Yields nothing if the option lengths do not
/// match the data.
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
    fn round_trips_the_fixed_part() {
        let opt = Opt { udp_size: 1232, extended_rcode: 1, version: 0, dnssec_ok: true };
        assert_eq!(opt.to_bytes(0), [0, 0, 41, 4, 208, 1, 0, 0x80, 0, 0, 0]);
        assert_eq!(Opt::from_fields(1232, 0x0100_8000), opt);
    }

    #[test]
    fn rejects_options_whose_lengths_do_not_match_the_data() {
        let data = [0, 10, 0, 2, 7, 7, 0, 3, 0, 0];
        let listed: Vec<_> = Options::new(&data).unwrap().collect();
        assert_eq!(listed, [(OptionCode::COOKIE, &[7u8, 7][..]), (OptionCode::NSID, &[][..])]);
        assert!(Options::new(&data[..5]).is_none());
        assert!(Options::new(&[0, 10, 0]).is_none());
    }

    #[test]
    fn only_the_top_bit_of_the_flags_is_do() {
        for (ttl, expected) in [(0, false), (0x8000, true), (0x7fff, false), (0xffff_7fff, false), (u32::MAX, true)] {
            assert_eq!(Opt::from_fields(1232, ttl).dnssec_ok, expected, "{ttl:x}");
        }
    }
}
