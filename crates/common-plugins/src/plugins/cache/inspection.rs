//! View into a cache, for people who look at the server from outside.

use std::sync::Arc;

use config::setup::{BlockInfo, CacheScope, CachedEntry, InspectCache, Kept};
use engine::{Instant, Query, Response};
use host::invariant::Expected as _;
use wire::{NameRef, Section, Type};

use super::class::{Class, PerClass};
use super::entry::Entry;
use super::store::Store;
use crate::shared::option_helpers::block_name;
use crate::shared::record_text::record_text;

/// View into the stores of a server block.
pub(super) struct CacheView {
    block: String,
    capacity: usize,
    stores: Arc<Kept<PerClass<Store>>>,
}

impl CacheView {
    pub(super) fn new(block: &BlockInfo, capacity: usize, stores: &Arc<Kept<PerClass<Store>>>) -> CacheView {
        CacheView { block: block_name(block), capacity, stores: Arc::clone(stores) }
    }
}

impl InspectCache for CacheView {
    fn block(&self) -> &str {
        &self.block
    }

    fn size(&self) -> (usize, usize) {
        (self.stores.values().map(Store::len).sum(), self.capacity)
    }

    fn find(&self, name: NameRef<'_>, qtype: Option<Type>, now: Instant) -> Vec<CachedEntry> {
        let mut found = Vec::new();
        for class in Class::ALL {
            self.stores[class].for_each(|entry| {
                if entry.name() == name.as_bytes() && qtype.is_none_or(|qtype| qtype == entry.qtype()) {
                    found.push(shown(entry, class, name, now));
                }
            });
        }
        found
    }

    fn flush(&self, scope: &CacheScope) -> usize {
        let is_meant = |entry: &Entry| match scope {
            CacheScope::Name(name) => entry.name() == name.as_ref().as_bytes(),
            CacheScope::Below(name) => {
                let known = NameRef::from_bytes(entry.name()).ok().expected("the name of an entry");
                known.is_some_and(|known| known.is_within(name.as_ref()))
            }
            CacheScope::All => true,
        };
        self.stores.values().map(|store| store.remove_if(is_meant)).sum()
    }
}

fn shown(entry: &Entry, class: Class, name: NameRef<'_>, now: Instant) -> CachedEntry {
    let key = entry.key();
    CachedEntry {
        qtype: entry.qtype(),
        rcode: entry.rcode(),
        denial: class == Class::Denial,
        dnssec_ok: key.dnssec_ok,
        checking_disabled: key.checking_disabled,
        ttl: entry.ttl(),
        age: entry.age(now),
        bytes: entry.size(),
        records: records(entry, name, entry.left(now).unwrap_or(0)),
    }
}

/// Returns the records in presentation format, all with this TTL.
fn records(entry: &Entry, name: NameRef<'_>, ttl: u32) -> Vec<String> {
    let mut query = Query::default();
    query.set_name(name);
    query.qtype = entry.qtype();
    let mut response = Response::default();
    response.begin(&query);
    // There is no client whose size limits the response.
    response.message.set_limit(usize::from(u16::MAX));
    entry.restore(&mut response, ttl);
    let message = &response.message;
    let owner = |mark| message.owner(mark).ok().expected("the owner of a record in the cache");
    let text = |mark| record_text(&owner(mark)?, &message.record(mark));
    let sections = [Section::Answer, Section::Authority, Section::Additional];
    sections.into_iter().flat_map(|section| message.section(section).collect::<Vec<_>>()).filter_map(text).collect()
}
