//! Which site serves a name: the longest zone wins, and a DS record belongs to the parent.

use wire::{NameRef, Type};

use crate::zones::ZoneMap;

/// The zones that one listening address serves.
#[derive(Default)]
pub struct Router {
    sites: ZoneMap<usize>,
}

impl Router {
    /// Serves `zone` by the site of this index; gives the site that had it before, if one did.
    pub fn add(&mut self, zone: NameRef<'_>, site: usize) -> Option<usize> {
        let found = *self.sites.entry(zone, || site);
        (found != site).then_some(found)
    }

    /// The site for a name (in lower case) and type.
    ///
    /// Where a name is the apex of one zone and lies in another, DS is answered by the next zone up, which alone has it
    /// (RFC 4035 §3.1.4.1); the root does not count as such here: it is there to forward. CoreDNS takes the topmost zone,
    /// and takes it for names inside a zone too, which then has no DS for its own delegations.
    #[must_use]
    pub fn find(&self, key: NameRef<'_>, qtype: Type) -> Option<usize> {
        let mut matches = self.sites.matches(key);
        let (zone, site) = matches.next()?;
        let parent = if qtype == Type::DS && zone == key { matches.next() } else { None };
        Some(parent.filter(|(zone, _)| !zone.is_root()).map_or(*site, |(_, site)| *site))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Name;

    #[test]
    fn ds_goes_to_the_parent() {
        let name = |text: &str| Name::from_text(text).unwrap();
        let mut router = Router::default();
        for (site, zone) in [".", "org.", "example.org.", "sub.example.org."].into_iter().enumerate() {
            assert_eq!(router.add(name(zone).as_ref(), site), None);
        }
        assert_eq!(router.add(name("ORG.").as_ref(), 7), Some(1));
        let find = |text: &str, qtype| router.find(name(text).as_ref(), qtype);
        assert_eq!(find("example.org.", Type::A), Some(2));
        assert_eq!(find("example.org.", Type::DS), Some(1));
        assert_eq!(find("sub.example.org.", Type::DS), Some(2));
        assert_eq!(find("www.example.org.", Type::DS), Some(2));
        assert_eq!(find("org.", Type::DS), Some(1));
        assert_eq!(find("net.", Type::DS), Some(0));
        assert_eq!(Router::default().find(NameRef::ROOT, Type::A), None);
    }
}
