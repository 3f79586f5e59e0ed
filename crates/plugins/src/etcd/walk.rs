//! From the records of a name to addresses and texts, along aliases within the zone.

use core::net::IpAddr;

use engine::Response;
use skydns::{LeaseBounds, Meaning, Record, Selection, Sought, View};
use wire::{Class, Name, NameRef, Owner, Section, Type};

use super::outside::Outside;
use super::wanted::Wanted;
use crate::seen::{Seen, is_address};
use crate::service_records::labels_of;

/// Where the addresses of a zone itself are, as labels in wire form before the zone.
const APEX: &[u8] = b"\x04apex\x03dns";
/// Aliases one behind the other, as in CoreDNS.
const CHAIN_MAX: usize = 11;
/// Aliases that are followed for one answer: each costs a look at all that its target has.
const ALIASES_MAX: usize = 64;
/// Maximum length of a character-string in bytes (RFC 1035 §3.3).
const PIECE: usize = 255;

/// Makes records of what names have.
pub(super) struct Walk<'a> {
    view: &'a View,
    /// Where aliases are followed; others are for somebody else.
    zone: NameRef<'a>,
    wanted: Wanted,
    now_nanos: u64,
    lease: LeaseBounds,
    /// What has been written.
    seen: Seen,
    /// Aliases followed so far.
    aliases: usize,
    outside: &'a mut Outside,
}

/// What a name has for a question of this type, or for any address. The addresses of a zone itself stand below it, if
/// there are any.
pub(super) fn select<'v>(view: &'v View, key: NameRef<'_>, before_zone: usize, qtype: Option<Type>) -> Selection<'v> {
    if qtype.is_none_or(Type::is_address) && before_zone == 0 {
        let apex = view.select(below(APEX, key).as_ref(), APEX.len(), Sought::Hosts);
        if !apex.is_empty() {
            return apex;
        }
    }
    view.select(key, before_zone, if qtype == Some(Type::TXT) { Sought::Texts } else { Sought::Hosts })
}

/// These labels before a zone; the zone itself where that is too long for a name.
pub(super) fn below(labels: &[u8], zone: NameRef<'_>) -> Name {
    let mut name = Name::root();
    let built = labels_of(labels).try_for_each(|label| name.push_label(label));
    if built.and_then(|()| name.append(zone)).is_err() {
        name.set(zone);
    }
    name
}

/// The owner of records, as they are written and as a name.
pub(super) type Owned<'a> = (Owner<'a>, NameRef<'a>);

/// An alias that is being followed, and those that led to it.
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
    /// From what a name in this zone has.
    pub(super) fn new(
        (view, selection): (&'a View, &Selection<'_>),
        zone: NameRef<'a>,
        wanted: Wanted,
        (now_nanos, lease): (u64, LeaseBounds),
        outside: &'a mut Outside,
    ) -> Walk<'a> {
        let leads_on = selection.records().any(|listed| listed.record.host.name().is_some());
        let seen = Seen::new(if leads_on { usize::MAX } else { selection.len() });
        Walk { view, zone, wanted, now_nanos, lease, seen, aliases: 0, outside }
    }

    /// Appends what a name has, and says whether there was anything. An alias that leads to nothing is left out.
    pub(super) fn push(
        &mut self,
        selection: &Selection<'_>,
        owned: Owned<'_>,
        link: Option<&Link<'_>>,
        response: &mut Response,
    ) -> bool {
        let ttl = self.ttl_min(selection, |record| self.wanted.wants(record));
        let mut has_any = false;
        for listed in selection.records() {
            has_any |= match listed.record.meaning() {
                _ if response.message.is_truncated() => return true,
                Meaning::Address(address) if self.wanted.wants_address(address) => {
                    self.push_address(owned, ttl, address, response);
                    true
                }
                Meaning::Text(text) if self.wanted.wants(listed.record) => {
                    self.push_text(owned, ttl, text, response);
                    true
                }
                Meaning::Alias(target) => {
                    let ttl = self.ttl(listed.record);
                    self.push_alias(owned, (ttl, target), link, response)
                }
                Meaning::Address(_) | Meaning::Text(_) | Meaning::Nothing => false,
            };
        }
        has_any
    }

    /// The shortest time to live of some records: those of one owner and type have the same (RFC 2181 §5.2).
    pub(super) fn ttl_min(&self, selection: &Selection<'_>, counts: impl Fn(&Record) -> bool) -> u32 {
        let counting = selection.records().filter(|listed| counts(listed.record));
        counting.map(|listed| self.ttl(listed.record)).min().unwrap_or_default()
    }

    /// The time to live of a record.
    pub(super) fn ttl(&self, record: &Record) -> u32 {
        record.ttl(self.now_nanos, self.lease)
    }

    /// Appends an address, unless its owner has it already: a name may be come by twice, along different aliases.
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

    /// Appends a text, unless its owner has it already.
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

    /// Appends an alias, and what it leads to in the zone; if that is nothing, neither.
    fn push_alias(
        &mut self,
        (owner, name): Owned<'_>,
        (ttl, target): (u32, NameRef<'_>),
        link: Option<&Link<'_>>,
        response: &mut Response,
    ) -> bool {
        let is_known = |link: &Link<'_>| link.target.same(target);
        let chain = || link.into_iter().flat_map(Link::chain);
        // What is below a name is among its records already.
        let loops = target.is_within(name) || chain().any(is_known) || chain().count() == CHAIN_MAX;
        if loops || self.aliases == ALIASES_MAX {
            return false;
        }
        if holds_alias(response, self.wanted.section, name, target) {
            // It has been followed, and led to something.
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

    /// Appends what a target has, if that is for us to say; says whether there is anything, or may be elsewhere.
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
                let selection = select(self.view, key.as_ref(), before_zone, self.wanted.qtype);
                self.push(&selection, (Owner::Name(target), target), Some(&Link { target, before }), response)
            }
        }
    }
}

impl Walk<'_> {
    /// Whether a name is in the zone.
    pub(super) fn is_within(&self, name: NameRef<'_>) -> bool {
        name.is_within(self.zone)
    }
}

/// Whether the data of a TXT record is this text, in pieces.
fn is_text(rdata: &[u8], text: &str) -> bool {
    let mut rest = rdata;
    let has_all = text.as_bytes().chunks(PIECE).all(|piece| {
        let after = rest.split_first().and_then(|(_, after)| after.strip_prefix(piece));
        rest = after.unwrap_or_default();
        after.is_some()
    });
    has_all && rest.is_empty()
}

/// Whether a section has a record of this owner and type with such data.
fn holds(
    response: &Response,
    section: Section,
    (owner, rtype): (NameRef<'_>, Type),
    is_it: impl Fn(&[u8]) -> bool,
) -> bool {
    let message = &response.message;
    message.section(section).any(|mark| {
        mark.rtype == rtype
            && is_it(message.octets_at(mark.rdata_range()))
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
