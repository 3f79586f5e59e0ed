//! Headers of the PROXY protocol, which the first bytes of a connection or a datagram may be.

use transport::proxy::{HeaderScan, TLVS_MAX, Tlvs, scan, tlvs_of};

/// The first bytes of a connection and of a datagram. A header lies within them, and has the same length whatever
/// follows it. A part of a header is never taken for a whole one.
pub fn header(input: &[u8]) {
    for is_stream in [true, false] {
        let found = scan(input, is_stream);
        let HeaderScan::Header(length, _) = found else { continue };
        assert!(length <= input.len(), "{length} of {} bytes", input.len());
        assert_eq!(scan(&input[..length], is_stream), found);
        for end in 0..length {
            assert_eq!(scan(&input[..end], is_stream), HeaderScan::Incomplete, "{end} of {length} bytes");
        }
    }
    keeps_tlvs(input);
}

/// The TLVs of a header are whole, bounded, and no longer than the header.
fn keeps_tlvs(input: &[u8]) {
    let HeaderScan::Header(length, Some(ends)) = scan(input, false) else { return };
    let Tlvs::Whole(kept) = tlvs_of(&input[..length], ends.tlvs_len) else { return };
    assert!(kept.len() <= TLVS_MAX.min(length), "{} bytes", kept.len());
    let mut left = &kept[..];
    while let [_, high, low, rest @ ..] = left {
        left = &rest[usize::from(u16::from_be_bytes([*high, *low]))..];
    }
    assert!(left.is_empty() && !kept.is_empty(), "{kept:?}");
}
