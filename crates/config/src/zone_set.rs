//! Set of names with a logarithmic search for the ancestors and descendants of a name: advice compares each zone of a
//! Corefile with all others.

use core::ops::Bound;
use std::collections::BTreeMap;

use engine::Zones;
use wire::{Name, NameRef};

/// Zones, in the order of the Corefile, with an index of the names below each.
#[derive(Debug, Default)]
pub(crate) struct ZoneSet {
    zones: Zones,
    /// Keys of the zones, each with its index. The names below a zone are one range.
    sorted: BTreeMap<Box<[u8]>, usize>,
}

impl ZoneSet {
    /// Names in lower case, in the order in which they were added, each once.
    pub(crate) fn names(&self) -> &[Name] {
        self.zones.names()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }

    /// Returns true if this name is in the set.
    pub(crate) fn has(&self, name: &Name) -> bool {
        self.sorted.contains_key(&key(name.as_ref()))
    }

    /// Returns true if the name or one of its ancestors is in the set.
    pub(crate) fn contains(&self, name: &Name) -> bool {
        self.zones.contain(name.clone().into_lowercase().as_ref())
    }

    /// Returns true if a name of the set contains this one, or lies within it.
    pub(crate) fn overlaps(&self, name: &Name) -> bool {
        self.contains(name) || self.indexes_within(name).next().is_some()
    }

    /// Returns the parts that the set and a zone have in common, in the order of the set: the zone if the set contains
    /// it, and the names within the zone.
    pub(crate) fn common<'a>(&'a self, zone: &'a Name) -> Vec<&'a Name> {
        let mut within: Vec<usize> = self.indexes_within(zone).collect();
        within.sort_unstable();
        let mut parts: Vec<&Name> = within.into_iter().map(|at| &self.names()[at]).collect();
        if !self.has(zone) && self.contains(zone) {
            parts.insert(0, zone);
        }
        parts
    }

    /// Returns the names of the set within a zone.
    pub(crate) fn within(&self, zone: &Name) -> impl Iterator<Item = &Name> {
        self.indexes_within(zone).map(|at| &self.names()[at])
    }

    fn indexes_within(&self, zone: &Name) -> impl Iterator<Item = usize> {
        let key = key(zone.as_ref());
        let from = self.sorted.range::<[u8], _>((Bound::Included(&*key), Bound::Unbounded));
        from.take_while(move |(known, _)| known.starts_with(&key)).map(|(_, at)| *at)
    }
}

impl FromIterator<Name> for ZoneSet {
    fn from_iter<I: IntoIterator<Item = Name>>(names: I) -> ZoneSet {
        let mut set = ZoneSet::default();
        set.extend(names);
        set
    }
}

impl Extend<Name> for ZoneSet {
    fn extend<I: IntoIterator<Item = Name>>(&mut self, names: I) {
        let known = self.names().len();
        self.zones.extend(names);
        for (at, name) in self.zones.names().iter().enumerate().skip(known) {
            self.sorted.insert(key(name.as_ref()), at);
        }
    }
}

/// Returns the labels from the root down, each with its length, in lower case. The key of a zone is a prefix of the
/// keys of the names within it, and of no others.
fn key(name: NameRef<'_>) -> Box<[u8]> {
    let labels: Vec<&[u8]> = name.labels().collect();
    let mut key = Vec::with_capacity(name.len());
    for label in labels.into_iter().rev() {
        key.extend(u8::try_from(label.len()));
        key.extend(label.to_ascii_lowercase());
    }
    key.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::from_text(text).unwrap()
    }

    #[test]
    fn compares_names_like_the_tree() {
        let texts = ["b.test.", "a.b.test.", "test.org.", "B.test.", "x.y.z.", "ab.test."];
        let set: ZoneSet = texts.map(name).into_iter().collect();
        assert_eq!(set.names().len(), 5, "each once, whatever its case");
        for asked in [".", "test.", "b.test.", "A.b.TEST.", "c.a.b.test.", "org.", "z.", "b.z.", "xb.test.", "y.z."] {
            let asked = name(asked);
            let is_within = |one: &Name, other: &Name| one.as_ref().is_within(other.as_ref());
            let contains = set.names().iter().any(|known| is_within(&asked, known));
            let within: Vec<&Name> = set.names().iter().filter(|known| is_within(known, &asked)).collect();
            assert_eq!(set.contains(&asked), contains, "{asked}");
            assert_eq!(set.overlaps(&asked), contains || !within.is_empty(), "{asked}");
            let mut found: Vec<&Name> = set.within(&asked).collect();
            found.sort_by_key(|found| set.names().iter().position(|known| known == *found));
            assert_eq!(found, within, "{asked}");
            let whole = (contains && !set.has(&asked)).then_some(&asked);
            assert_eq!(set.common(&asked), whole.into_iter().chain(within).collect::<Vec<_>>(), "{asked}");
        }
    }
}
