//! Router: selects the site for a query. The longest matching zone wins, and DS queries go to the parent zone.

use host::invariant::holds;
use wire::{NameRef, Type};

use crate::ids::SiteId;
use crate::zones::ZoneMap;

/// Zones that a listener serves.
#[derive(Clone, Default)]
pub struct Router {
    sites: ZoneMap<Sites>,
}

/// Sites of one zone. There are several if at most one of them has no view filter.
#[derive(Clone)]
struct Sites {
    first: SiteId,
    others: Vec<SiteId>,
}

impl Sites {
    fn iter(&self) -> impl Iterator<Item = SiteId> + '_ {
        core::iter::once(self.first).chain(self.others.iter().copied())
    }
}

impl Router {
    /// Adds a site for `zone`, after those added before.
    pub fn add(&mut self, zone: NameRef<'_>, site: SiteId) {
        let sites = self.sites.entry(zone, || Sites { first: site, others: Vec::new() });
        if sites.first != site {
            holds(!sites.others.contains(&site), "a site is added once for a zone");
            sites.others.push(site);
        }
    }

    /// Returns the site for a name (in lower case) and type: in the longest zone with a site that `wants` accepts, the
    /// first such site.
    ///
    /// A DS query for the apex of a zone goes to the enclosing zone, which is authoritative for that record (RFC 4035
    /// §3.1.4.1). The root zone is not considered an enclosing zone, because a block for it usually forwards. CoreDNS
    /// differs: it picks the topmost zone, also for names below an apex, so that a zone has no DS records for its own
    /// delegations.
    #[must_use]
    pub fn find(&self, key: NameRef<'_>, qtype: Type, wants: impl Fn(SiteId) -> bool) -> Option<SiteId> {
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
    fn routes_ds_queries_to_the_parent_zone() {
        let name = |text: &str| Name::from_text(text).unwrap();
        let mut router = Router::default();
        for (site, zone) in [".", "org.", "example.org.", "sub.example.org."].into_iter().enumerate() {
            router.add(name(zone).as_ref(), SiteId(site));
        }
        let find = |text: &str, qtype| router.find(name(text).as_ref(), qtype, |_| true).map(|SiteId(site)| site);
        assert_eq!(find("example.org.", Type::A), Some(2));
        assert_eq!(find("example.org.", Type::DS), Some(1));
        assert_eq!(find("sub.example.org.", Type::DS), Some(2));
        assert_eq!(find("www.example.org.", Type::DS), Some(2));
        assert_eq!(find("org.", Type::DS), Some(1));
        assert_eq!(find("net.", Type::DS), Some(0));
        assert_eq!(Router::default().find(NameRef::ROOT, Type::A, |_| true), None);
    }

    #[test]
    fn selects_the_first_site_that_accepts_the_query() {
        let name = |text: &str| Name::from_text(text).unwrap();
        let mut router = Router::default();
        for (site, zone) in [".", "org.", "org.", "ORG."].into_iter().enumerate() {
            router.add(name(zone).as_ref(), SiteId(site));
        }
        let find = |wanting: &[usize]| {
            let site = router.find(name("www.org.").as_ref(), Type::A, |SiteId(site)| wanting.contains(&site));
            site.map(|SiteId(site)| site)
        };
        assert_eq!(find(&[0, 1, 2, 3]), Some(1));
        assert_eq!(find(&[0, 2, 3]), Some(2));
        assert_eq!(find(&[0]), Some(0));
        assert_eq!(find(&[]), None);
    }
}
