//! Fuzz target for compressed responses of relays.

use kubeapi::gzip::{Gunzip, GzipError};

/// Chunk size in bytes of the second run.
const SIZE: usize = 3;
/// Maximum size of a piece of the output.
const PIECE_MAX: usize = 64 * 1024;

/// Gzip stream. The output must not depend on the size of the chunks, and comes in pieces of bounded size.
pub fn members(input: &[u8]) {
    let (whole, parts) = (decode(input, input.len().max(1)), decode(input, SIZE));
    // The ratio is looked at after each piece, which end elsewhere.
    let is_bomb = |result: &Result<_, GzipError>| matches!(result, Err(GzipError::Ratio));
    if !is_bomb(&whole) && !is_bomb(&parts) {
        assert_eq!(whole, parts);
    }
}

/// Returns the output, and whether the stream ended after a member.
fn decode(input: &[u8], size: usize) -> Result<(Vec<u8>, bool), GzipError> {
    let (mut gzip, mut out) = (Gunzip::default(), Vec::new());
    for mut chunk in input.chunks(size) {
        loop {
            let piece = gzip.next_piece(&mut chunk)?;
            assert!(piece.len() <= PIECE_MAX);
            if piece.is_empty() {
                break;
            }
            out.extend(piece);
        }
        assert!(chunk.is_empty(), "input without output is consumed");
    }
    Ok((out, gzip.is_between_members()))
}
