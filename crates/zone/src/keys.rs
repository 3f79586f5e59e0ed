//! Case-insensitive hash for names.

/// Multiplier with good mixing: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Mask that sets the lower-case bit of each byte. Other bytes become equal, too, which only causes collisions.
const LOWER: u64 = 0x2020_2020_2020_2020;

/// Hashes the bytes of a name. Zone contents come from the zone's owner, so the hash need not resist attacks.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let all = words.iter().chain(core::iter::once(&last));
    all.fold(bytes.len() as u64, |hash, word| {
        let mixed = (hash ^ u64::from_le_bytes(*word) | LOWER).wrapping_mul(FACTOR);
        mixed ^ mixed >> 29
    })
    .wrapping_mul(FACTOR)
}
