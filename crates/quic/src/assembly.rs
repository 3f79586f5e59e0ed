//! Bytes of a stream that arrived before the bytes in front of them.
//!
//! quinn-proto would keep them as slices of whole packets: a client that sends single bytes with gaps could make it
//! hold 32 KiB for each stream. Here they are copied out, counted, and few.

use std::collections::BTreeMap;

use host::invariant::holds;

/// Maximum number of separate pieces: the packets of the longest query, some of them lost.
const PIECES_MAX: usize = 64;
/// Estimated memory of a piece besides its bytes, in bytes.
const PIECE_COST: usize = 48;

/// The client leaves more gaps than any loss explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyPieces;

/// Early bytes, by their offset in the stream.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    /// Offset of the next byte that has not arrived or has not been taken.
    next: u64,
    early: BTreeMap<u64, Box<[u8]>>,
    bytes: usize,
}

impl Assembly {
    /// Memory for the early bytes, in bytes.
    pub(crate) fn cost(&self) -> usize {
        self.bytes + self.early.len() * PIECE_COST
    }

    /// Returns true if the next byte in order is at this offset, and nothing early waits.
    pub(crate) fn is_next(&self, offset: u64) -> bool {
        self.next == offset && self.early.is_empty()
    }

    /// Returns true if no early bytes wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.early.is_empty()
    }

    /// Records bytes that the caller has taken in order.
    pub(crate) fn advance(&mut self, bytes: usize) {
        holds(
            self.early.first_key_value().is_none_or(|(early, _)| self.next + bytes as u64 <= *early),
            "pieces do not overlap",
        );
        self.next += bytes as u64;
    }

    /// Keeps bytes for later. Pieces never overlap.
    pub(crate) fn keep(&mut self, offset: u64, bytes: &[u8]) -> Result<(), TooManyPieces> {
        holds(offset >= self.next, "bytes that were taken do not arrive again");
        if self.early.len() >= PIECES_MAX && offset != self.next {
            return Err(TooManyPieces);
        }
        self.bytes += bytes.len();
        let former = self.early.insert(offset, bytes.into());
        holds(former.is_none(), "pieces do not overlap");
        holds(self.early.len() <= PIECES_MAX + 1, "the number of pieces is bounded");
        holds(self.bytes >= bytes.len(), "the memory of a piece is counted");
        Ok(())
    }

    /// Returns the next piece in order, if it has arrived.
    pub(crate) fn take(&mut self) -> Option<Box<[u8]>> {
        let piece = self.early.remove(&self.next)?;
        holds(piece.len() <= self.bytes, "the memory of a piece is counted");
        self.bytes -= piece.len();
        self.advance(piece.len());
        holds(!self.early.is_empty() || self.bytes == 0, "without pieces there are no bytes");
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_pieces_in_order() {
        let mut assembly = Assembly::default();
        assembly.advance(2);
        assembly.keep(5, b"fg").unwrap();
        assembly.keep(4, b"e").unwrap();
        assert_eq!(assembly.take(), None);
        assert_eq!(assembly.cost(), 3 + 2 * PIECE_COST);
        assembly.keep(2, b"cd").unwrap();
        let taken: Vec<_> = std::iter::from_fn(|| assembly.take()).flat_map(Vec::from).collect();
        assert_eq!((taken.as_slice(), assembly.cost()), (&b"cdefg"[..], 0));
    }

    #[test]
    fn refuses_more_gaps_than_loss_explains() {
        let mut assembly = Assembly::default();
        for at in 0..PIECES_MAX as u64 {
            assembly.keep(2 * at + 1, b"x").unwrap();
        }
        assert_eq!(assembly.keep(1000, b"x"), Err(TooManyPieces));
        assembly.keep(0, b"x").unwrap();
        assert_eq!(assembly.take().as_deref(), Some(&b"x"[..]));
    }
}
