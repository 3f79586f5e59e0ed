//! A hash of names in which upper and lower case are the same.

/// Multiplies well: the fraction of the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// With these bits set a letter is in lower case; that other octets become the same too only makes them collide.
const LOWER: u64 = 0x2020_2020_2020_2020;

/// The hash of octets of a name. What is in a zone is its owner's: it need not withstand an attack.
pub(crate) fn hash(octets: &[u8]) -> u64 {
    let (words, rest) = octets.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let all = words.iter().chain(core::iter::once(&last));
    all.fold(octets.len() as u64, |hash, word| {
        let mixed = (hash ^ u64::from_le_bytes(*word) | LOWER).wrapping_mul(FACTOR);
        mixed ^ mixed >> 29
    })
    .wrapping_mul(FACTOR)
}
