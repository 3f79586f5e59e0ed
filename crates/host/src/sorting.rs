//! Stable sorts, sets and maps for places that run seldom.
//!
//! The sort of the standard library is compiled for each type and order, 4 KB each. These sort the places of the items,
//! so that the program has one copy for all. Sets and maps are filled by insertion, because `collect` sorts first.

use core::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Sorts a list and keeps the order of equal items, like [`slice::sort_by`]. Takes 16 bytes per item, and calls
/// `compare` through a pointer.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    if items.len() < 2 {
        return;
    }
    let mut places = places(items.len(), &|one, other| compare(&items[one], &items[other]));
    for at in 0..items.len() {
        while places[at] != at {
            let place = places[at];
            items.swap(at, place);
            places.swap(at, place);
        }
    }
}

/// Sorts a list by a key, like [`sort_by`].
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |one, other| key(one).cmp(&key(other)));
}

/// Collects items into a set.
pub fn set<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    set.extend(items);
    set
}

/// Collects pairs into a map. The last value of a key wins.
pub fn map<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(pairs);
    map
}

/// Returns the place of each item in the sorted list.
fn places(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| compare(*one, *other));
    let mut places = vec![0; count];
    for (place, at) in order.into_iter().enumerate() {
        places[at] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of up to five items with up to three different keys.
    fn lists() -> impl Iterator<Item = Vec<(u32, usize)>> {
        let of_length = |length| (0..3_u32.pow(length)).map(move |number| (number, length));
        (0..=5).flat_map(of_length).map(|(number, length)| {
            (0..length).map(|at| (number / 3_u32.pow(at) % 3, usize::try_from(at).unwrap())).collect()
        })
    }

    #[test]
    fn sorts_as_the_standard_library_does() {
        for list in lists() {
            let (mut expected, mut sorted, mut descending) = (list.clone(), list.clone(), list);
            expected.sort_by_key(|item| item.0);
            sort_by_key(&mut sorted, |item| item.0);
            assert_eq!(sorted, expected);
            expected.sort_by_key(|item| core::cmp::Reverse(item.0));
            sort_by(&mut descending, |one, other| other.0.cmp(&one.0));
            let keys = |list: &[(u32, usize)]| list.iter().map(|item| item.0).collect::<Vec<_>>();
            assert_eq!(keys(&descending), keys(&expected));
            assert!(descending.is_sorted_by_key(|(key, at)| (core::cmp::Reverse(*key), *at)));
        }
    }
}
