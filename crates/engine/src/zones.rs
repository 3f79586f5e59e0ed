//! Zones, and the longest match of a name among them (RFC 1034 §4.3.2 step 2).

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use host::invariant::holds;
use wire::{Name, NameRef};

/// Map from zones to values. A lookup finds the longest zone that contains a name, with one hash lookup for each
/// distinct label count.
#[derive(Clone, Debug)]
pub struct ZoneMap<T> {
    by_zone: HashMap<Box<[u8]>, T, RandomState>,
    /// Label counts of the zones, in descending order. Other ancestors of a name need no lookup.
    depths: Vec<usize>,
}

impl<T> Default for ZoneMap<T> {
    fn default() -> Self {
        ZoneMap { by_zone: HashMap::with_hasher(RandomState::default()), depths: Vec::new() }
    }
}

impl<T> ZoneMap<T> {
    /// Creates an empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the value of a zone, inserted with `new` if it is absent.
    pub fn entry(&mut self, zone: NameRef<'_>, new: impl FnOnce() -> T) -> &mut T {
        let depth = zone.labels().count();
        if let Err(at) = self.depths.binary_search_by(|known| depth.cmp(known)) {
            self.depths.insert(at, depth);
            holds(self.depths.is_sorted_by(|one, next| one > next), "the label counts are in descending order");
        }
        let key: Box<[u8]> = zone.as_bytes().to_ascii_lowercase().into();
        self.by_zone.entry(key).or_insert_with(new)
    }

    /// Returns the value of exactly this zone (in lower case).
    #[must_use]
    pub fn get(&self, zone: NameRef<'_>) -> Option<&T> {
        self.by_zone.get(zone.as_bytes())
    }

    /// Iterates over the zones that contain `name` (in lower case), longest first, with their values.
    pub fn matches<'a>(&'a self, name: NameRef<'a>) -> impl Iterator<Item = (NameRef<'a>, &'a T)> {
        let labels = name.labels().count();
        let (mut at, mut depth) = (name, labels);
        self.depths.iter().filter(move |wanted| **wanted <= labels).filter_map(move |wanted| {
            while depth > *wanted {
                at = at.parent()?;
                depth -= 1;
            }
            self.by_zone.get(at.as_bytes()).map(|value| (at, value))
        })
    }

    /// Returns the longest zone that contains `name` (in lower case), and its value.
    #[must_use]
    pub fn longest<'a>(&'a self, name: NameRef<'a>) -> Option<(NameRef<'a>, &'a T)> {
        self.matches(name).next()
    }

    /// Iterates over all zones and their values, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, &T)> {
        self.by_zone.iter().filter_map(|(zone, value)| Some((NameRef::from_bytes(zone).ok()?, value)))
    }

    /// Returns true if the map is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_zone.is_empty()
    }
}

/// Set of zones, in the order of the Corefile.
#[derive(Clone, Debug, Default)]
pub struct Zones {
    names: Vec<Name>,
    map: ZoneMap<usize>,
}

impl Zones {
    /// Returns the set of the root zone, which contains every name.
    #[must_use]
    pub fn all() -> Zones {
        [Name::root()].into_iter().collect()
    }

    /// Zones in lower case, in the order of the Corefile.
    #[must_use]
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns true if the set contains the root zone, and therefore every name.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.map.get(NameRef::ROOT).is_some()
    }

    /// Returns the index in [`Zones::names`] of the longest zone that contains `name` (in lower case).
    #[must_use]
    pub fn find(&self, name: NameRef<'_>) -> Option<usize> {
        self.map.longest(name).map(|(_, index)| *index)
    }

    /// Returns true if one of the zones contains `name` (in lower case).
    #[must_use]
    pub fn contain(&self, name: NameRef<'_>) -> bool {
        self.find(name).is_some()
    }
}

impl FromIterator<Name> for Zones {
    fn from_iter<I: IntoIterator<Item = Name>>(names: I) -> Zones {
        let mut zones = Zones::default();
        zones.extend(names);
        zones
    }
}

impl Extend<Name> for Zones {
    fn extend<I: IntoIterator<Item = Name>>(&mut self, names: I) {
        for name in names {
            let next = self.names.len();
            if *self.map.entry(name.as_ref(), || next) == next {
                self.names.push(name.into_lowercase());
            }
            holds(self.names.len() == self.map.by_zone.len(), "each zone has a name");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(texts: &[&str]) -> Zones {
        texts.iter().map(|text| Name::from_text(text).unwrap()).collect()
    }

    #[test]
    fn finds_the_longest_matching_zone() {
        let zones = zones(&["org.", "Example.ORG.", ".", "a.b.example.org."]);
        let cases = [
            ("www.example.org.", "example.org."),
            ("example.org.", "example.org."),
            ("example.net.", "."),
            ("org.", "org."),
            (".", "."),
            ("x.a.b.example.org.", "a.b.example.org."),
            ("b.example.org.", "example.org."),
        ];
        for (name, zone) in cases {
            let found = zones.find(Name::from_text(name).unwrap().as_ref()).unwrap();
            assert_eq!(zones.names()[found].to_string(), zone, "{name}");
        }
        assert!(zones.is_everything());
    }

    #[test]
    fn finds_no_zone_for_a_name_outside_all_zones() {
        let zones = zones(&["cluster.local.", "cluster.local."]);
        assert_eq!(zones.names().len(), 1);
        assert!(!zones.contain(Name::from_text("mycluster.local.").unwrap().as_ref()));
        assert!(!zones.contain(Name::from_text("local.").unwrap().as_ref()));
        assert!(!Zones::default().contain(NameRef::ROOT));
    }
}
