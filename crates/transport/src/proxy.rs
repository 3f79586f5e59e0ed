//! PROXY protocol, versions 1 and 2: the header that a proxy sends before the client's first byte, with the client's
//! address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use host::invariant::holds;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Length of the fixed part of version 2 in bytes.
const FIXED_LEN: usize = 16;
/// Maximum length of the rest of a version 2 header in bytes: two addresses and a few hundred bytes of TLVs.
const REST_MAX: usize = 2048;
/// Maximum length of a version 1 line in bytes, with its line end.
const LINE_MAX: usize = 107;
const LINE_START: &[u8] = b"PROXY ";
/// Maximum length in bytes of the TLVs that are kept for the queries of a connection: those of AWS, Azure and GCP have
/// up to 60 bytes, and those about a client certificate a few hundred. Each connection may hold that many.
pub const TLVS_MAX: usize = 512;
/// Type of a TLV that only pads the header. Its value is left out.
const NOOP: u8 = 4;

/// Result of looking for a header at the start of the data.
#[derive(Debug, PartialEq, Eq)]
pub enum HeaderScan {
    /// The data does not start with a header.
    NoHeader,
    /// The data is the beginning of a header.
    Incomplete,
    /// The data begins like a header but is malformed.
    Malformed,
    /// Length of the header in bytes, and the addresses that it names, if any.
    Header(usize, Option<ProxiedAddresses>),
}

/// Client address and the address that the client connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxiedAddresses {
    /// Address of the client.
    pub peer: SocketAddr,
    /// Address that the client connected to.
    pub local: SocketAddr,
    /// Length in bytes of the TLVs, which are at the end of the header.
    pub tlvs_len: usize,
}

/// Looks for a header: version 2, and on a stream also version 1.
#[must_use]
pub fn scan(bytes: &[u8], is_stream: bool) -> HeaderScan {
    let begins = |start: &[u8]| bytes.starts_with(start) || start.starts_with(bytes);
    if begins(SIGNATURE) {
        return version_2(bytes);
    }
    if is_stream && begins(LINE_START) { version_1(bytes) } else { HeaderScan::NoHeader }
}

fn version_2(bytes: &[u8]) -> HeaderScan {
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_LEN>() else { return HeaderScan::Incomplete };
    let [.., version, family, high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if version >> 4 != 2 || length > REST_MAX {
        return HeaderScan::Malformed;
    }
    let Some(rest) = rest.get(..length) else { return HeaderScan::Incomplete };
    let ends = match (version & 0xf, family >> 4) {
        // LOCAL command: the proxy itself is the client, for example for a health check.
        (0, _) => Ok(None),
        (1, 1) => read_addresses::<4>(rest).ok_or(()).map(Some),
        (1, 2) => read_addresses::<16>(rest).ok_or(()).map(Some),
        (1, _) => Ok(None),
        _ => Err(()),
    };
    ends.map_or(HeaderScan::Malformed, |ends| HeaderScan::Header(FIXED_LEN + length, ends))
}

/// Reads two addresses of `N` bytes each, and two ports.
fn read_addresses<const N: usize>(bytes: &[u8]) -> Option<ProxiedAddresses> {
    let (peer, rest) = bytes.split_first_chunk::<N>()?;
    let (local, rest) = rest.split_first_chunk::<N>()?;
    let ([peer_high, peer_low, local_high, local_low], tlvs) = rest.split_first_chunk::<4>()?;
    let port = |high: &u8, low: &u8| u16::from_be_bytes([*high, *low]);
    Some(ProxiedAddresses {
        peer: SocketAddr::new(address(peer)?, port(peer_high, peer_low)),
        local: SocketAddr::new(address(local)?, port(local_high, local_low)),
        tlvs_len: tlvs.len(),
    })
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).ok().map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
    v4.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes))))
}

fn version_1(bytes: &[u8]) -> HeaderScan {
    let start = &bytes[..bytes.len().min(LINE_MAX)];
    let Some(end) = start.windows(2).position(|pair| pair == b"\r\n") else {
        return if start.len() < LINE_MAX { HeaderScan::Incomplete } else { HeaderScan::Malformed };
    };
    // A line that is not text has no words, so it is malformed.
    let line = core::str::from_utf8(&bytes[..end]).unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["PROXY", "UNKNOWN", ..] => HeaderScan::Header(end + 2, None),
        ["PROXY", "TCP4" | "TCP6", peer, local, peer_port, local_port] => {
            let end_of = |ip: &str, port: &str| Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?));
            match (end_of(peer, peer_port), end_of(local, local_port)) {
                (Some(peer), Some(local)) => {
                    HeaderScan::Header(end + 2, Some(ProxiedAddresses { peer, local, tlvs_len: 0 }))
                }
                _ => HeaderScan::Malformed,
            }
        }
        _ => HeaderScan::Malformed,
    }
}

/// Type-length-value fields (TLVs) of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tlvs {
    /// There are none, or they are malformed.
    Absent,
    /// They are longer than [`TLVS_MAX`].
    TooLong,
    /// All fields, without the values of padding.
    Whole(Vec<u8>),
}

/// Copies the TLVs of a header, its last `tlvs_len` bytes.
#[must_use]
pub fn tlvs_of(header: &[u8], tlvs_len: usize) -> Tlvs {
    holds(tlvs_len <= header.len(), "the TLVs are a part of the header");
    let mut tlvs = header.len().checked_sub(tlvs_len).and_then(|at| header.get(at..)).unwrap_or_default();
    if tlvs.len() > TLVS_MAX {
        return Tlvs::TooLong;
    }
    let mut kept = Vec::with_capacity(tlvs.len());
    while let Some(([kind, high, low], rest)) = tlvs.split_first_chunk::<3>() {
        let Some((value, rest)) = rest.split_at_checked(u16::from_be_bytes([*high, *low]).into()) else {
            return Tlvs::Absent;
        };
        if *kind == NOOP {
            kept.extend_from_slice(&[NOOP, 0, 0]);
        } else {
            kept.extend_from_slice(&[*kind, *high, *low]);
            kept.extend_from_slice(value);
        }
        tlvs = rest;
    }
    holds(kept.len() <= TLVS_MAX, "the TLVs that are kept are bounded");
    if !tlvs.is_empty() || kept.is_empty() { Tlvs::Absent } else { Tlvs::Whole(kept) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_2_header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    fn ends(peer: &str, local: &str) -> Option<ProxiedAddresses> {
        Some(ProxiedAddresses { peer: peer.parse().unwrap(), local: local.parse().unwrap(), tlvs_len: 0 })
    }

    #[test]
    fn reads_headers_of_both_versions() {
        let v4 = version_2_header(0x21, 0x12, &[10, 0, 0, 1, 192, 0, 2, 1, 0x14, 0xe9, 0, 53]);
        assert_eq!(
            scan(&[&v4[..], b"query"].concat(), false),
            HeaderScan::Header(28, ends("10.0.0.1:5353", "192.0.2.1:53"))
        );
        let mut v6 = [0; 36];
        (v6[15], v6[31], v6[33], v6[35]) = (1, 2, 9, 53);
        let v6 = version_2_header(0x21, 0x21, &[&v6[..], b"more"].concat());
        let with_tlvs = ends("[::1]:9", "[::2]:53").map(|ends| ProxiedAddresses { tlvs_len: 4, ..ends });
        assert_eq!(scan(&v6, true), HeaderScan::Header(56, with_tlvs));
        assert_eq!(scan(&version_2_header(0x20, 0, b""), true), HeaderScan::Header(16, None));
        let line = b"PROXY TCP4 10.0.0.1 192.0.2.1 5353 53\r\nquery";
        assert_eq!(scan(line, true), HeaderScan::Header(39, ends("10.0.0.1:5353", "192.0.2.1:53")));
        assert_eq!(scan(b"PROXY UNKNOWN\r\n", true), HeaderScan::Header(15, None));
        assert_eq!(scan(line, false), HeaderScan::NoHeader);
        assert_eq!(scan(b"\0\x20query", true), HeaderScan::NoHeader);
        for bad in [
            version_2_header(0x11, 0x11, &[0; 12]),
            version_2_header(0x22, 0x11, &[0; 12]),
            version_2_header(0x21, 0x11, &[0; 11]),
            version_2_header(0x21, 0x11, &[0; 3000]),
            b"PROXY TCP4 10.0.0.1 192.0.2.1 5353\r\n".to_vec(),
            b"PROXY TCP4 10.0.0.1 192.0.2.1 5353 99999\r\n".to_vec(),
            [&b"PROXY "[..], &[b'x'; 200]].concat(),
        ] {
            assert_eq!(scan(&bad, true), HeaderScan::Malformed, "{bad:?}");
        }
        for whole in [&v4[..], &v6, line.split_at(38).0] {
            for length in 1..whole.len() {
                assert_eq!(scan(&whole[..length], true), HeaderScan::Incomplete);
            }
        }
    }
}
