//! Canonical DNS name order (RFC 4034 §6.1).

use core::cmp::Ordering;

/// Maximum number of labels in a name.
const LABELS_MAX: usize = 128;

/// Compares two sequences of length-prefixed labels from right to left, ignoring case.
pub(crate) fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let (mut starts, mut other_starts) = ([0; LABELS_MAX], [0; LABELS_MAX]);
    let mine = labels(one, &mut starts).iter().rev().map(|at| label(one, *at));
    let others = labels(other, &mut other_starts).iter().rev().map(|at| label(other, *at));
    mine.cmp_by_lowercase(others)
}

trait CompareLabels<'a>: Iterator<Item = &'a [u8]> + Sized {
    fn cmp_by_lowercase(mut self, mut others: impl Iterator<Item = &'a [u8]>) -> Ordering {
        loop {
            let order = match (self.next(), others.next()) {
                (Some(one), Some(other)) => {
                    one.iter().map(u8::to_ascii_lowercase).cmp(other.iter().map(u8::to_ascii_lowercase))
                }
                (one, other) => return one.is_some().cmp(&other.is_some()),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
    }
}

impl<'a, I: Iterator<Item = &'a [u8]>> CompareLabels<'a> for I {}

/// Stores the offset of each label in `starts` and returns the used part of it.
fn labels<'s>(bytes: &[u8], starts: &'s mut [usize; LABELS_MAX]) -> &'s [usize] {
    let (mut at, mut count) = (0, 0);
    while let (Some(length), Some(start)) = (bytes.get(at), starts.get_mut(count)) {
        *start = at;
        count += 1;
        at += 1 + usize::from(*length);
    }
    &starts[..count]
}

fn label(bytes: &[u8], at: usize) -> &[u8] {
    let length = bytes.get(at).copied().map_or(0, usize::from);
    bytes.get(at + 1..at + 1 + length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_names_as_in_the_rfc_example() {
        let order = ["", "a", "yljkjljk.a", "Z.a", "zABC.a", "z", "\u{1}.z", "*.z"];
        let bytes = |text: &str| -> Vec<u8> {
            let labels = text.split('.').filter(|label| !label.is_empty());
            labels.flat_map(|label| core::iter::once(u8::try_from(label.len()).unwrap()).chain(label.bytes())).collect()
        };
        for (at, one) in order.iter().enumerate() {
            for (other_at, other) in order.iter().enumerate() {
                assert_eq!(compare(&bytes(one), &bytes(other)), at.cmp(&other_at), "{one} {other}");
            }
        }
    }
}
