//! Zones and the longest match among them (RFC 1034 §4.3.2 step 2).

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use wire::{Name, NameRef};

/// Values by zone; a name finds that of the longest zone it lies in.
#[derive(Clone, Debug)]
pub struct ZoneMap<T> {
    by_zone: HashMap<Box<[u8]>, T, RandomState>,
    /// The label counts that occur, longest first: only these ancestors of a name can be found.
    depths: Vec<usize>,
}

impl<T> Default for ZoneMap<T> {
    fn default() -> Self {
        ZoneMap { by_zone: HashMap::with_hasher(RandomState::default()), depths: Vec::new() }
    }
}

impl<T> ZoneMap<T> {
    /// No zones.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a zone, made by `new` if the zone is not there yet.
    pub fn entry(&mut self, zone: NameRef<'_>, new: impl FnOnce() -> T) -> &mut T {
        let depth = zone.labels().count();
        if let Err(at) = self.depths.binary_search_by(|known| depth.cmp(known)) {
            self.depths.insert(at, depth);
        }
        let key: Box<[u8]> = zone.octets().to_ascii_lowercase().into();
        self.by_zone.entry(key).or_insert_with(new)
    }

    /// The value of exactly this zone, which is in lower case.
    #[must_use]
    pub fn get(&self, zone: NameRef<'_>) -> Option<&T> {
        self.by_zone.get(zone.octets())
    }

    /// The zones in which `name` (in lower case) lies, longest first, with their values.
    pub fn matches<'a>(&'a self, name: NameRef<'a>) -> impl Iterator<Item = (NameRef<'a>, &'a T)> {
        let labels = name.labels().count();
        let (mut at, mut depth) = (name, labels);
        self.depths.iter().filter(move |wanted| **wanted <= labels).filter_map(move |wanted| {
            while depth > *wanted {
                at = at.parent()?;
                depth -= 1;
            }
            self.by_zone.get(at.octets()).map(|value| (at, value))
        })
    }

    /// The longest zone in which `name` (in lower case) lies.
    #[must_use]
    pub fn longest<'a>(&'a self, name: NameRef<'a>) -> Option<(NameRef<'a>, &'a T)> {
        self.matches(name).next()
    }

    /// All zones with their values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, &T)> {
        self.by_zone.iter().filter_map(|(zone, value)| Some((NameRef::from_octets(zone).ok()?, value)))
    }

    /// Whether there is no zone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_zone.is_empty()
    }
}

/// A set of zones, in the order in which they were written.
#[derive(Clone, Debug, Default)]
pub struct Zones {
    names: Vec<Name>,
    map: ZoneMap<usize>,
}

impl Zones {
    /// The zone that holds every name.
    #[must_use]
    pub fn all() -> Zones {
        [Name::root()].into_iter().collect()
    }

    /// The zones in lower case, in the order in which they were written.
    #[must_use]
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether every name lies in one of them.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.map.get(NameRef::ROOT).is_some()
    }

    /// The longest zone that holds `name` (in lower case), as index into [`Zones::names`].
    #[must_use]
    pub fn find(&self, name: NameRef<'_>) -> Option<usize> {
        self.map.longest(name).map(|(_, index)| *index)
    }

    /// Whether one of them holds `name` (in lower case).
    #[must_use]
    pub fn contain(&self, name: NameRef<'_>) -> bool {
        self.find(name).is_some()
    }
}

impl FromIterator<Name> for Zones {
    fn from_iter<I: IntoIterator<Item = Name>>(names: I) -> Zones {
        let mut zones = Zones::default();
        for name in names {
            let next = zones.names.len();
            if *zones.map.entry(name.as_ref(), || next) == next {
                zones.names.push(name.into_lowercase());
            }
        }
        zones
    }
}

impl Extend<Name> for Zones {
    fn extend<I: IntoIterator<Item = Name>>(&mut self, names: I) {
        *self = self.names.drain(..).chain(names).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(texts: &[&str]) -> Zones {
        texts.iter().map(|text| Name::from_text(text).unwrap()).collect()
    }

    #[test]
    fn the_longest_zone_wins() {
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
    fn a_name_outside_finds_nothing() {
        let zones = zones(&["cluster.local.", "cluster.local."]);
        assert_eq!(zones.names().len(), 1);
        assert!(!zones.contain(Name::from_text("mycluster.local.").unwrap().as_ref()));
        assert!(!zones.contain(Name::from_text("local.").unwrap().as_ref()));
        assert!(!Zones::default().contain(NameRef::ROOT));
    }
}
