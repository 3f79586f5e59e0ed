//! Converts the records of a name to address and TXT records, and follows CNAMEs within the zone.

use core::net::IpAddr;

use engine::Response;
use skydns::{LeaseBounds, Record, RecordFilter, RecordRole, Selection, View};
use wire::{Class, Name, NameRef, Owner, Section, Type};

use super::outside::Outside;
use super::wanted::Wanted;
use common_plugins::shared::seen_records::{Seen, is_address};
use common_plugins::shared::service_records::labels_of;

/// Labels, in wire format, of the name below a zone that has the addresses of the zone's apex.
const APEX: &[u8] = b"\x04apex\x03dns";
/// Maximum length of a CNAME chain, as in CoreDNS.
const CHAIN_MAX: usize = 11;
/// Maximum number of CNAMEs followed for one answer. Each costs a lookup of all records below its target.
const ALIASES_MAX: usize = 64;
/// Maximum length of a character-string in bytes (RFC 1035 §3.3).
const PIECE: usize = 255;

/// State while the records of an answer are built.
pub(super) struct Walk<'a> {
    view: &'a View,
    fallback: ApexFallback,
    /// Zone within which CNAMEs are followed. Targets outside of it go to `outside`.
    zone: NameRef<'a>,
    wanted: Wanted,
    now_nanos: u64,
    lease: LeaseBounds,
    /// Hashes of the records written so far, to detect duplicates.
    seen: Seen,
    /// Number of CNAMEs followed so far.
    aliases: usize,
    outside: &'a mut Outside,
}

/// Addresses of the apex of a zone that has no records below [`APEX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApexFallback {
    /// Those of all records of the zone.
    Zone,
    /// None.
    Nothing,
}

/// Returns the records of a name for a query of this type, or for both address types. The addresses of the apex are
/// those below [`APEX`], if any.
pub(super) fn select<'v>(
    (view, fallback): (&'v View, ApexFallback),
    key: NameRef<'_>,
    before_zone: usize,
    qtype: Option<Type>,
) -> Selection<'v> {
    if qtype.is_none_or(Type::is_address) && before_zone == 0 {
        let apex = view.select(below(APEX, key).as_ref(), APEX.len(), RecordFilter::Hosts);
        if !apex.is_empty() || fallback == ApexFallback::Nothing {
            return apex;
        }
    }
    view.select(key, before_zone, if qtype == Some(Type::TXT) { RecordFilter::Texts } else { RecordFilter::Hosts })
}

/// Returns the name of these labels below a zone, or the zone itself if the name would be too long.
pub(super) fn below(labels: &[u8], zone: NameRef<'_>) -> Name {
    let mut name = Name::root();
    let built = labels_of(labels).try_for_each(|label| name.push_label(label));
    if built.and_then(|()| name.append(zone)).is_err() {
        name.set(zone);
    }
    name
}

/// Owner of records, for the message writer and as a name.
pub(super) type Owned<'a> = (Owner<'a>, NameRef<'a>);

/// CNAME that is being followed, linked to those that led to it.
pub(super) struct Link<'l> {
    target: NameRef<'l>,
    before: Option<&'l Link<'l>>,
}

impl Link<'_> {
    fn chain(&self) -> impl Iterator<Item = &Link<'_>> {
        core::iter::successors(Some(self), |link| link.before)
    }
}

impl<'a> Walk<'a> {
    /// Creates the state for a name with these records.
    pub(super) fn new(
        (view, fallback, selection): (&'a View, ApexFallback, &Selection<'_>),
        zone: NameRef<'a>,
        wanted: Wanted,
        (now_nanos, lease): (u64, LeaseBounds),
        outside: &'a mut Outside,
    ) -> Walk<'a> {
        let leads_on = selection.records().any(|keyed| keyed.record.host.name().is_some());
        let seen = Seen::new(if leads_on { usize::MAX } else { selection.len() });
        Walk { view, fallback, zone, wanted, now_nanos, lease, seen, aliases: 0, outside }
    }

    /// Appends the records of a name. Returns false if there are none. Omits a CNAME that leads to no record.
    pub(super) fn push(
        &mut self,
        selection: &Selection<'_>,
        owned: Owned<'_>,
        link: Option<&Link<'_>>,
        response: &mut Response,
    ) -> bool {
        let ttl = self.ttl_min(selection, |record| self.wanted.wants(record));
        let mut has_any = false;
        for keyed in selection.records() {
            has_any |= match keyed.record.role(self.wanted.filter()) {
                _ if response.message.is_truncated() => return true,
                RecordRole::Address(address) if self.wanted.wants_address(address) => {
                    self.push_address(owned, ttl, address, response);
                    true
                }
                RecordRole::Text(text) => {
                    self.push_text(owned, ttl, text, response);
                    true
                }
                RecordRole::Alias(target) => {
                    let ttl = self.ttl(keyed.record);
                    self.push_alias(owned, (ttl, target), link, response)
                }
                RecordRole::Address(_) | RecordRole::Nothing => false,
            };
        }
        has_any
    }

    /// Returns the lowest TTL of the records for which `counts` is true, because all records of an RRset have the same
    /// TTL (RFC 2181 §5.2).
    pub(super) fn ttl_min(&self, selection: &Selection<'_>, counts: impl Fn(&Record) -> bool) -> u32 {
        let counting = selection.records().filter(|keyed| counts(keyed.record));
        counting.map(|keyed| self.ttl(keyed.record)).min().unwrap_or_default()
    }

    /// Returns the TTL of a record.
    pub(super) fn ttl(&self, record: &Record) -> u32 {
        record.ttl(self.now_nanos, self.lease)
    }

    /// Appends an address, unless its owner already has it. Several CNAMEs can lead to the same name.
    pub(super) fn push_address(
        &mut self,
        (owner, name): Owned<'_>,
        ttl: u32,
        address: IpAddr,
        response: &mut Response,
    ) {
        let section = self.wanted.section;
        let rtype = if address.is_ipv4() { Type::A } else { Type::AAAA };
        let is_known = || holds(response, section, (name, rtype), |rdata| is_address(rdata, address));
        if self.seen.is_new(&(name.len(), address), is_known) {
            response.message.push_address(section, owner, ttl, address);
        }
    }

    /// Appends a text, unless its owner already has it.
    fn push_text(&mut self, (owner, name): Owned<'_>, ttl: u32, text: &str, response: &mut Response) {
        let section = self.wanted.section;
        let is_known = || holds(response, section, (name, Type::TXT), |rdata| is_text(rdata, text));
        if !self.seen.is_new(&(name.len(), text), is_known) {
            return;
        }
        let fields = (Type::TXT, Class::IN, ttl);
        response.message.push(section, owner, fields, |rdata| {
            text.as_bytes().chunks(PIECE).for_each(|piece| rdata.character_string(piece));
        });
    }

    /// Appends a CNAME record and the records of its target. Appends nothing if the target has no records.
    fn push_alias(
        &mut self,
        (owner, name): Owned<'_>,
        (ttl, target): (u32, NameRef<'_>),
        link: Option<&Link<'_>>,
        response: &mut Response,
    ) -> bool {
        let is_known = |link: &Link<'_>| link.target.same(target);
        let chain = || link.into_iter().flat_map(Link::chain);
        // The records below a name are among its own records.
        let loops = target.is_within(name) || chain().any(is_known) || chain().count() == CHAIN_MAX;
        if loops || self.aliases == ALIASES_MAX {
            return false;
        }
        if holds_alias(response, self.wanted.section, name, target) {
            // It has been followed before, and its target has records.
            return true;
        }
        self.aliases += 1;
        let before = response.message.marks().len();
        response.message.push_name(self.wanted.section, owner, (Type::CNAME, ttl), target);
        let has_any = self.push_target(target, link, response);
        if !has_any {
            response.message.keep(before);
        }
        has_any
    }

    /// Appends the records of a target in the zone, or adds another target to `outside`. Returns false if a target in
    /// the zone has no records.
    pub(super) fn push_target(
        &mut self,
        target: NameRef<'_>,
        before: Option<&Link<'_>>,
        response: &mut Response,
    ) -> bool {
        let mut key = Name::root();
        key.set_lowercase(target);
        match key.as_ref().prefix_len(self.zone) {
            None => {
                self.outside.add(target, self.wanted);
                true
            }
            Some(before_zone) => {
                let selection = select((self.view, self.fallback), key.as_ref(), before_zone, self.wanted.qtype);
                self.push(&selection, (Owner::Name(target), target), Some(&Link { target, before }), response)
            }
        }
    }
}

impl Walk<'_> {
    /// Returns true if a name is in the zone.
    pub(super) fn is_within(&self, name: NameRef<'_>) -> bool {
        name.is_within(self.zone)
    }
}

/// Returns true if the data of a TXT record is this text, split into character strings.
fn is_text(rdata: &[u8], text: &str) -> bool {
    let mut rest = rdata;
    let has_all = text.as_bytes().chunks(PIECE).all(|piece| {
        let after = rest.split_first().and_then(|(_, after)| after.strip_prefix(piece));
        rest = after.unwrap_or_default();
        after.is_some()
    });
    has_all && rest.is_empty()
}

/// Returns true if a section has a record with this owner and type, and data for which `is_it` returns true.
fn holds(
    response: &Response,
    section: Section,
    (owner, rtype): (NameRef<'_>, Type),
    is_it: impl Fn(&[u8]) -> bool,
) -> bool {
    let message = &response.message;
    message.section(section).any(|mark| {
        mark.rtype == rtype
            && is_it(message.bytes_at(mark.rdata_range()))
            && message.owner(mark).is_ok_and(|known| known.as_ref().same(owner))
    })
}

fn holds_alias(response: &Response, section: Section, owner: NameRef<'_>, target: NameRef<'_>) -> bool {
    let message = &response.message;
    message.section(section).any(|mark| {
        mark.rtype == Type::CNAME
            && message.name_in(mark, 0).is_ok_and(|known| known.as_ref().same(target))
            && message.owner(mark).is_ok_and(|known| known.as_ref().same(owner))
    })
}
