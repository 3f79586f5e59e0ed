//! Which site serves a name: the longest zone wins, and a DS record belongs to the parent.

use wire::{NameRef, Type};

use crate::zones::ZoneMap;

/// The zones that one listening address serves.
#[derive(Default)]
pub struct Router {
    sites: ZoneMap<Sites>,
}

/// The sites of one zone: several if all but one of them are views.
struct Sites {
    first: usize,
    others: Vec<usize>,
}

impl Sites {
    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        core::iter::once(self.first).chain(self.others.iter().copied())
    }
}

impl Router {
    /// Serves `zone` by the site of this index too, after those that were added before.
    pub fn add(&mut self, zone: NameRef<'_>, site: usize) {
        let sites = self.sites.entry(zone, || Sites { first: site, others: Vec::new() });
        if sites.first != site {
            sites.others.push(site);
        }
    }

    /// The site for a name (in lower case) and type: the first one that wants the query, as `wants` says, of the longest
    /// zone that has one.
    ///
    /// Where a name is the apex of one zone and lies in another, DS is answered by the next zone up, which alone has it
    /// (RFC 4035 §3.1.4.1); the root does not count as such here: it is there to forward. CoreDNS takes the topmost zone,
    /// and takes it for names inside a zone too, which then has no DS for its own delegations.
    #[must_use]
    pub fn find(&self, key: NameRef<'_>, qtype: Type, wants: impl Fn(usize) -> bool) -> Option<usize> {
        let wanting = |sites: &Sites| sites.iter().find(|site| wants(*site));
        let mut matches = self.sites.matches(key).filter_map(|(zone, sites)| Some((zone, wanting(sites)?)));
        let (zone, site) = matches.next()?;
        let parent = if qtype == Type::DS && zone == key { matches.next() } else { None };
        Some(parent.filter(|(zone, _)| !zone.is_root()).map_or(site, |(_, site)| site))
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
            router.add(name(zone).as_ref(), site);
        }
        let find = |text: &str, qtype| router.find(name(text).as_ref(), qtype, |_| true);
        assert_eq!(find("example.org.", Type::A), Some(2));
        assert_eq!(find("example.org.", Type::DS), Some(1));
        assert_eq!(find("sub.example.org.", Type::DS), Some(2));
        assert_eq!(find("www.example.org.", Type::DS), Some(2));
        assert_eq!(find("org.", Type::DS), Some(1));
        assert_eq!(find("net.", Type::DS), Some(0));
        assert_eq!(Router::default().find(NameRef::ROOT, Type::A, |_| true), None);
    }

    #[test]
    fn the_first_site_that_wants_it_gets_it() {
        let name = |text: &str| Name::from_text(text).unwrap();
        let mut router = Router::default();
        for (site, zone) in [".", "org.", "org.", "ORG."].into_iter().enumerate() {
            router.add(name(zone).as_ref(), site);
        }
        let find = |wanting: &[usize]| router.find(name("www.org.").as_ref(), Type::A, |site| wanting.contains(&site));
        assert_eq!(find(&[0, 1, 2, 3]), Some(1));
        assert_eq!(find(&[0, 2, 3]), Some(2));
        assert_eq!(find(&[0]), Some(0));
        assert_eq!(find(&[]), None);
    }
}
