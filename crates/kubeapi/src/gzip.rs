//! Decompression of a response body, incrementally: a gzip stream of any number of members (RFC 1952 §2.2).
//!
//! A relay compresses the events of a tick once, as a member, for all its watches. What a member has is available as
//! soon as its bytes have arrived, without the next one. The output comes in pieces of bounded size, so that memory
//! does not depend on what is sent. A member that expands more than objects do is refused before it costs time.

use flate2::{Crc, Decompress, FlushDecompress, Status};
use host::invariant::holds;

/// Maximum size of a piece of the output in bytes.
const PIECE: usize = 64 * 1024;
/// Maximum ratio of the output of a member to its input. Lists of objects that differ only in their names reach 60.
const RATIO_MAX: u64 = 200;
/// Number of bytes of the output of a member that may exceed the ratio.
const ALLOWANCE: u64 = 1024 * 1024;
/// Maximum size of the header of a member in bytes: it may have a name and a comment.
const HEADER_MAX: usize = 1024;
/// Size of the fixed part of the header, and of the trailer with checksum and length.
const FIXED: usize = 10;
const TRAILER: usize = 8;

/// Flags of the header, with the field that each of them announces.
const FLAG_CHECKSUM: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;
const FLAGS_RESERVED: u8 = 0b1110_0000;

/// Error in a gzip stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GzipError {
    /// Header that is not one of gzip, is too long, or has reserved flags.
    #[error("invalid gzip header")]
    Header,
    /// Data that are not deflated data.
    #[error("invalid deflate data")]
    Data,
    /// Checksum or length that is not that of the data.
    #[error("wrong gzip checksum")]
    Checksum,
    /// Member that expands more than [`RATIO_MAX`] times.
    #[error("gzip data that expand more than {RATIO_MAX} times")]
    Ratio,
}

/// Decoder of a gzip stream.
pub struct Gunzip {
    part: Part,
    /// Bytes of a header or a trailer that is not complete.
    held: Vec<u8>,
    inflate: Decompress,
    checksum: Crc,
    /// Number of bytes of the current member, before and after decompression.
    sizes: (u64, u64),
}

/// Part of a member that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Header,
    Data,
    Trailer,
}

impl Default for Gunzip {
    fn default() -> Gunzip {
        Gunzip {
            part: Part::Header,
            held: Vec::new(),
            inflate: Decompress::new(false),
            checksum: Crc::new(),
            sizes: (0, 0),
        }
    }
}

impl Gunzip {
    /// Decodes input, which advances, up to one piece of output. Returns an empty piece if the input has no more.
    ///
    /// # Errors
    /// The input is not a gzip stream, or expands too much. The stream ends there.
    pub fn next_piece(&mut self, input: &mut &[u8]) -> Result<Vec<u8>, GzipError> {
        let mut piece = Vec::new();
        holds(self.part != Part::Data || self.held.is_empty(), "bytes of header and trailer are held back, not data");
        // Inflated data may be held back although the input is consumed.
        while piece.is_empty() && (!input.is_empty() || self.part == Part::Data) {
            let before = (input.len(), self.part);
            match self.part {
                Part::Header => self.header(input)?,
                Part::Data => piece = self.data(input)?,
                Part::Trailer => self.trailer(input)?,
            }
            if piece.is_empty() && before == (input.len(), self.part) {
                break;
            }
        }
        Ok(piece)
    }

    /// Returns true at the begin of the stream and after a complete member.
    #[must_use]
    pub fn is_between_members(&self) -> bool {
        self.part == Part::Header && self.held.is_empty()
    }

    fn header(&mut self, input: &mut &[u8]) -> Result<(), GzipError> {
        let held = self.held.len();
        let (now, rest) = input.split_at(input.len().min(HEADER_MAX - held));
        self.held.extend_from_slice(now);
        match header_len(&self.held)? {
            Some(len) => {
                holds(held < len && len <= self.held.len(), "a header ends in the bytes that are new");
                *input = &input[len - held..];
                (self.part, self.sizes) = (Part::Data, (0, 0));
                self.held.clear();
                self.inflate.reset(false);
                self.checksum.reset();
                Ok(())
            }
            None if self.held.len() == HEADER_MAX => Err(GzipError::Header),
            None => {
                holds(rest.is_empty(), "an incomplete header takes all bytes up to its maximum");
                *input = rest;
                Ok(())
            }
        }
    }

    fn data(&mut self, input: &mut &[u8]) -> Result<Vec<u8>, GzipError> {
        let mut piece = vec![0; PIECE];
        let before = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, &mut piece, FlushDecompress::None);
        let status = status.map_err(|_| GzipError::Data)?;
        let (used, made) = (self.inflate.total_in() - before.0, self.inflate.total_out() - before.1);
        holds(used <= input.len() as u64, "no more is read than there is");
        holds(made <= PIECE as u64, "no more is inflated than there is room for");
        *input = input.get(usize::try_from(used).unwrap_or(usize::MAX)..).ok_or(GzipError::Data)?;
        piece.truncate(usize::try_from(made).unwrap_or(0));
        self.sizes = (self.inflate.total_in(), self.inflate.total_out());
        if self.sizes.1 > ALLOWANCE && self.sizes.1 / RATIO_MAX > self.sizes.0 {
            return Err(GzipError::Ratio);
        }
        self.checksum.update(&piece);
        if status == Status::StreamEnd {
            self.part = Part::Trailer;
        }
        Ok(piece)
    }

    fn trailer(&mut self, input: &mut &[u8]) -> Result<(), GzipError> {
        holds(self.held.len() < TRAILER, "a trailer is checked as soon as it is complete");
        let (now, rest) = input.split_at(input.len().min(TRAILER.saturating_sub(self.held.len())));
        self.held.extend_from_slice(now);
        *input = rest;
        let Some((checksum, len)) = self.held.first_chunk::<4>().zip(self.held.last_chunk::<4>()) else {
            return Ok(());
        };
        if self.held.len() < TRAILER {
            return Ok(());
        }
        let expected = (self.checksum.sum(), self.checksum.amount());
        if expected != (u32::from_le_bytes(*checksum), u32::from_le_bytes(*len)) {
            return Err(GzipError::Checksum);
        }
        self.held.clear();
        self.part = Part::Header;
        Ok(())
    }
}

/// Returns the length of the header at the begin of some bytes, or `None` if it is longer than they are.
fn header_len(bytes: &[u8]) -> Result<Option<usize>, GzipError> {
    let magic = [0x1f, 0x8b, 8];
    if bytes.iter().zip(magic).any(|(byte, expected)| *byte != expected) {
        return Err(GzipError::Header);
    }
    let (Some(flags), true) = (bytes.get(3), bytes.len() >= FIXED) else { return Ok(None) };
    if flags & FLAGS_RESERVED != 0 {
        return Err(GzipError::Header);
    }
    let mut len = FIXED;
    if flags & FLAG_EXTRA != 0 {
        let Some(extra) = bytes.get(len..len + 2) else { return Ok(None) };
        len += 2 + usize::from(u16::from_le_bytes([extra[0], extra[1]]));
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            let Some(text) = bytes.get(len..) else { return Ok(None) };
            let Some(end) = memchr::memchr(0, text) else { return Ok(None) };
            len += end + 1;
        }
    }
    len += if flags & FLAG_CHECKSUM != 0 { 2 } else { 0 };
    Ok(Some(len).filter(|len| *len <= bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, GzBuilder, write::GzEncoder};
    use std::io::Write;

    fn member(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Decodes input that arrives in pieces of this many bytes.
    fn decode(gzip: &mut Gunzip, input: &[u8], size: usize) -> Result<Vec<u8>, GzipError> {
        let mut out = Vec::new();
        for mut chunk in input.chunks(size) {
            loop {
                let piece = gzip.next_piece(&mut chunk)?;
                assert!(piece.len() <= PIECE);
                if piece.is_empty() {
                    break;
                }
                out.extend(piece);
            }
            assert!(chunk.is_empty());
        }
        Ok(out)
    }

    #[test]
    fn decodes_members_in_pieces_of_any_size() {
        let texts: [&[u8]; 4] = [b"one", b"", &[7; 300_000], b"{\"type\":\"ADDED\"}\n"];
        let stream: Vec<u8> = texts.iter().flat_map(|text| member(text)).collect();
        for size in [1, 2, 7, 9, 10, 11, 100, usize::MAX] {
            let mut gzip = Gunzip::default();
            assert_eq!(decode(&mut gzip, &stream, size.min(stream.len())).unwrap(), texts.concat(), "{size}");
            assert!(gzip.is_between_members());
        }
    }

    #[test]
    fn bounds_the_header_for_pieces_of_any_size() {
        for (name, is_accepted) in
            [(HEADER_MAX - FIXED - 1, true), (HEADER_MAX - FIXED, false), (3 * HEADER_MAX, false)]
        {
            let mut encoder = GzBuilder::new().filename(vec![b'n'; name]).write(Vec::new(), Compression::default());
            encoder.write_all(b"text").unwrap();
            let stream = encoder.finish().unwrap();
            for size in [1, 3, 1000, stream.len()] {
                let expected = if is_accepted { Ok(b"text".to_vec()) } else { Err(GzipError::Header) };
                assert_eq!(decode(&mut Gunzip::default(), &stream, size), expected, "{name} {size}");
            }
        }
    }

    #[test]
    fn a_member_is_available_before_the_next_one_begins() {
        let mut gzip = Gunzip::default();
        for number in 0..1000 {
            let text = format!("event {number}\n");
            assert_eq!(decode(&mut gzip, &member(text.as_bytes()), usize::MAX).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn decodes_what_is_flushed_within_a_member() {
        let mut gzip = Gunzip::default();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        for number in 0..100 {
            let text = format!("event {number}\n");
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.flush().unwrap();
            let bytes = core::mem::take(encoder.get_mut());
            assert_eq!(decode(&mut gzip, &bytes, usize::MAX).unwrap(), text.as_bytes());
            assert!(!gzip.is_between_members());
        }
    }

    #[test]
    fn skips_all_fields_of_the_header() {
        let builder = GzBuilder::new().extra(vec![1; 300]).filename("name").comment("comment");
        let mut encoder = builder.write(Vec::new(), Compression::fast());
        encoder.write_all(b"text").unwrap();
        let bytes = encoder.finish().unwrap();
        for size in [1, 13, usize::MAX] {
            assert_eq!(decode(&mut Gunzip::default(), &bytes, size.min(bytes.len())).unwrap(), b"text");
        }
    }

    #[test]
    fn refuses_what_is_not_gzip() {
        let good = member(b"some text");
        let broken = |change: fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            decode(&mut Gunzip::default(), &bytes, usize::MAX).unwrap_err()
        };
        assert_eq!(broken(|bytes| bytes[0] = 0), GzipError::Header);
        assert_eq!(broken(|bytes| bytes[3] = 0x80), GzipError::Header);
        assert_eq!(broken(|bytes| bytes[10] = 0xff), GzipError::Data);
        assert_eq!(broken(|bytes| *bytes.last_mut().unwrap() = 1), GzipError::Checksum);
        assert_eq!(broken(|bytes| bytes.extend_from_slice(b"plain text")), GzipError::Header);
        let long = [&[0x1f, 0x8b, 8, FLAG_NAME, 0, 0, 0, 0, 0, 0][..], &[b'a'; 2 * HEADER_MAX]].concat();
        assert_eq!(decode(&mut Gunzip::default(), &long, 100), Err(GzipError::Header));
    }

    #[test]
    fn refuses_a_bomb_early() {
        let bomb = member(&vec![0; 64 << 20]);
        let mut gzip = Gunzip::default();
        let (mut input, mut len) = (bomb.as_slice(), 0);
        let error = loop {
            match gzip.next_piece(&mut input) {
                Ok(piece) => len += piece.len(),
                Err(error) => break error,
            }
        };
        assert_eq!(error, GzipError::Ratio);
        assert!(len < 2 << 20, "{len}");
    }
}
