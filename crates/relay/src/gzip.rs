//! gzip (RFC 1952) whose compressed data subscribers share.
//!
//! A response is one gzip member. Its data is a sequence of segments: each is compressed without what came before, and
//! ends with a synchronisation flush at a byte boundary, so that a segment can follow any other. The bytes of a segment
//! are made once; per subscriber there are only a header and, at the end, the checksum of what it got. One member in
//! place of one per segment keeps every client happy: curl stops after the first member, and the decoder of Go holds
//! the end of a member back until the next one begins.

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};
use host::invariant::holds;

/// Header of a member without name and time.
pub(crate) const HEADER: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x04\xff";
/// Final block without data (RFC 1951 §3.2.6, fixed codes).
const FINAL_BLOCK: &[u8] = b"\x03\0";
/// Time that compression may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// That of ticks, which saves a tenth of their bytes.
    More,
    /// That of lists, which would otherwise take too long.
    Less,
}

impl Effort {
    /// Returns the effort for something of this size in bytes.
    pub(crate) const fn of(size: usize) -> Effort {
        if size <= SHORT_MAX { Effort::More } else { Effort::Less }
    }

    const fn level(self) -> u32 {
        match self {
            Effort::More => 6,
            Effort::Less => 2,
        }
    }
}

/// Size from which a list or a tick is compressed with less effort, in bytes.
const SHORT_MAX: usize = 256 << 10;

/// Compressed data that any subscriber can get next.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) bytes: Bytes,
    crc: u32,
    length: usize,
    /// Operator that moves a checksum by the length of this data.
    shift: u32,
}

impl Segment {
    pub(crate) fn new(data: &[u8], effort: Effort) -> Segment {
        let mut crc = Crc::new();
        crc.update(data);
        let bytes = compress(data, effort).into();
        Segment { bytes, crc: crc.sum(), length: data.len(), shift: shift_by(data.len() as u64) }
    }
}

/// Compresses data, up to a byte boundary.
fn compress(data: &[u8], effort: Effort) -> Vec<u8> {
    let mut compress = Compress::new(Compression::new(effort.level()), false);
    let mut out = Vec::with_capacity(data.len() / 3 + 64);
    let mut read = 0;
    loop {
        out.reserve(data.len() / 8 + 64);
        let rest = data.get(read..).unwrap_or_default();
        let outcome = compress.compress_vec(rest, &mut out, FlushCompress::Sync);
        holds(outcome.is_ok(), "compression of bytes in memory does not fail");
        read = usize::try_from(compress.total_in()).unwrap_or(usize::MAX);
        holds(read <= data.len(), "no more is compressed than there is");
        // Room that is left means that everything has been written.
        if outcome.is_err() || read >= data.len() && out.len() < out.capacity() {
            return out;
        }
    }
}

/// Checksum and length of what a subscriber has got.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trailer {
    crc: u32,
    length: usize,
}

impl Trailer {
    /// Adds a segment.
    pub(crate) fn add(&mut self, segment: &Segment) {
        self.crc = multiply(segment.shift, self.crc) ^ segment.crc;
        self.length = self.length.wrapping_add(segment.length);
    }

    /// Returns the end of the member.
    pub(crate) fn end(self) -> Bytes {
        // The length is modulo 2^32 (RFC 1952 §2.3.1).
        let length = (self.length as u64 & 0xffff_ffff).to_le_bytes();
        [FINAL_BLOCK, &self.crc.to_le_bytes(), &length[..4]].concat().into()
    }
}

/// Returns a whole member.
pub(crate) fn member(data: &[u8]) -> Bytes {
    let (segment, mut trailer) = (Segment::new(data, Effort::of(data.len())), Trailer::default());
    trailer.add(&segment);
    [HEADER, &segment.bytes, &trailer.end()].concat().into()
}

/// Polynomial of CRC-32, with the lowest power in the highest bit.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// The polynomial 1.
const ONE: u32 = 1 << 31;
/// x^8: a byte.
const BYTE: u32 = ONE >> 8;

/// Multiplies two polynomials modulo that of CRC-32, as `crc32_combine` of zlib does.
const fn multiply(left: u32, mut right: u32) -> u32 {
    let (mut product, mut bit) = (0, ONE);
    while bit != 0 {
        if left & bit != 0 {
            product ^= right;
        }
        right = if right & 1 == 0 { right >> 1 } else { right >> 1 ^ POLYNOMIAL };
        bit >>= 1;
    }
    product
}

/// Returns x^(8 * length), which moves a checksum by this many bytes.
const fn shift_by(mut length: u64) -> u32 {
    let (mut result, mut power) = (ONE, BYTE);
    while length > 0 {
        if length & 1 == 1 {
            result = multiply(power, result);
        }
        power = multiply(power, power);
        length >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn decode(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn segments_make_one_member_in_any_order() {
        let texts = [b"".to_vec(), b"abc".repeat(1000), (0..=255).collect(), vec![7; 100_000]];
        let segments: Vec<Segment> = texts.iter().map(|text| Segment::new(text, Effort::Less)).collect();
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 3, 3]] {
            let (mut body, mut expected, mut trailer) = (HEADER.to_vec(), Vec::new(), Trailer::default());
            for at in order {
                body.extend_from_slice(&segments[at].bytes);
                expected.extend_from_slice(&texts[at]);
                trailer.add(&segments[at]);
            }
            body.extend_from_slice(&trailer.end());
            assert_eq!(decode(&body), expected);
        }
        assert_eq!(decode(&member(b"list")), b"list");
    }

    #[test]
    fn each_segment_can_be_read_before_the_next_one() {
        let (first, second) = (Segment::new(&b"one ".repeat(50), Effort::More), Segment::new(b"two", Effort::Less));
        let mut decoder = flate2::Decompress::new(false);
        for (segment, expected) in [(&first, &b"one ".repeat(50)[..]), (&second, b"two")] {
            let mut out = Vec::with_capacity(1000);
            decoder.decompress_vec(&segment.bytes, &mut out, flate2::FlushDecompress::Sync).unwrap();
            assert_eq!(out, expected);
        }
    }
}
