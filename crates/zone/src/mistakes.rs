//! Mistakes in a zone that can be served, but contradicts itself: the ones that the zone checkers of BIND, NSD, Knot
//! and PowerDNS refuse.

use core::fmt;

use wire::{Name, NameRef, Type};

use crate::find::Lookup;
use crate::store::{APEX, BELOW, CUT, DNAME, Node, Zone};
use crate::text::name_at_start;

/// Kind of a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MistakeKind {
    /// CNAME records beside records of other types (RFC 1034 §3.6.2, RFC 2181 §10.1).
    CnameAndOtherData,
    /// Several CNAME records with one owner (RFC 2181 §10.1).
    MultipleCname,
    /// Several DNAME records with one owner (RFC 6672 §2.4).
    MultipleDname,
    /// NS records beside a DNAME record, other than at the apex (RFC 6672 §2.3).
    NsAndDname,
    /// Records below the owner of a DNAME record (RFC 6672 §2.4).
    BelowDname,
    /// A name server in the zone without an address (RFC 1034 §4.2.1).
    MissingAddress,
}

impl MistakeKind {
    /// All kinds.
    pub const ALL: [MistakeKind; 6] = [
        MistakeKind::CnameAndOtherData,
        MistakeKind::MultipleCname,
        MistakeKind::MultipleDname,
        MistakeKind::NsAndDname,
        MistakeKind::BelowDname,
        MistakeKind::MissingAddress,
    ];
}

/// Mistake of one kind in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Kind.
    pub kind: MistakeKind,
    /// First name that has it; of a missing address, the owner of the NS record.
    pub name: Name,
    /// Name server that has no address.
    pub server: Option<Name>,
    /// Number of names that have it.
    pub count: usize,
}

impl Mistake {
    /// Returns the type of the record that the mistake is about.
    pub(crate) fn rtype(&self) -> Option<Type> {
        match self.kind {
            MistakeKind::CnameAndOtherData | MistakeKind::MultipleCname => Some(Type::CNAME),
            MistakeKind::MultipleDname | MistakeKind::NsAndDname => Some(Type::DNAME),
            MistakeKind::MissingAddress => Some(Type::NS),
            MistakeKind::BelowDname => None,
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.kind {
            MistakeKind::CnameAndOtherData => write!(f, "`{name}` has a CNAME record and other data"),
            MistakeKind::MultipleCname => write!(f, "`{name}` has multiple CNAME records; the first one is used"),
            MistakeKind::MultipleDname => write!(f, "`{name}` has multiple DNAME records; the first one is used"),
            MistakeKind::NsAndDname => write!(f, "`{name}` has NS records and a DNAME record"),
            MistakeKind::BelowDname => {
                write!(f, "`{name}` is below a DNAME record, which hides its records")
            }
            MistakeKind::MissingAddress => {
                let server = self.server.as_ref().unwrap_or(name);
                write!(f, "the name server `{server}` of `{name}` has no address (A or AAAA): missing glue")
            }
        }?;
        if self.count > 1 { write!(f, " (and {} more names)", self.count - 1) } else { Ok(()) }
    }
}

impl Zone {
    /// Returns the mistakes of the zone, one of each kind.
    #[must_use]
    pub fn mistakes(&self) -> Vec<Mistake> {
        let mut found: [Option<Mistake>; MistakeKind::ALL.len()] = Default::default();
        for node in (0..self.nodes.len()).filter_map(|node| u32::try_from(node).ok()) {
            let mut note = |kind: MistakeKind, server: Option<Name>| match found.get_mut(kind as usize) {
                Some(Some(known)) => known.count += 1,
                Some(slot) => *slot = Some(Mistake { kind, name: self.name(node), server, count: 1 }),
                None => {}
            };
            self.aliases_at(node, &mut note);
            if let Some(server) = self.server_without_address(node) {
                note(MistakeKind::MissingAddress, Some(server));
            }
        }
        found.into_iter().flatten().collect()
    }

    /// Finds the mistakes with CNAME and DNAME records that concern a node.
    fn aliases_at(&self, node: u32, note: &mut impl FnMut(MistakeKind, Option<Name>)) {
        let count = |rtype| self.set(node, rtype).map_or(0, |set| set.data().count());
        let (aliases, renamers) = (count(Type::CNAME), count(Type::DNAME));
        // DNSSEC has its records at every name (RFC 4035 §2.5).
        let is_other = |rtype| !matches!(rtype, Type::CNAME | Type::RRSIG | Type::NSEC | KEY);
        if aliases > 0 && self.all(node).any(|set| is_other(set.rtype)) {
            note(MistakeKind::CnameAndOtherData, None);
        }
        if aliases > 1 {
            note(MistakeKind::MultipleCname, None);
        }
        if renamers > 1 {
            note(MistakeKind::MultipleDname, None);
        }
        if renamers > 0 && self.node(node).flags & CUT != 0 {
            note(MistakeKind::NsAndDname, None);
        }
        if self.all(node).next().is_some() && self.is_renamed(node) {
            note(MistakeKind::BelowDname, None);
        }
    }

    /// Returns true if an ancestor of a node owns a DNAME record.
    fn is_renamed(&self, mut node: u32) -> bool {
        while node != APEX {
            let parent = self.node(node).parent;
            if self.node(parent).flags & DNAME != 0 {
                return true;
            }
            if self.node(node).flags & BELOW == 0 {
                return false;
            }
            node = parent;
        }
        false
    }

    /// Returns the first name server of a node that this zone must know the address of, and does not. Only NS records
    /// of the apex and of delegations count.
    fn server_without_address(&self, node: u32) -> Option<Name> {
        if self.node(node).flags & BELOW != 0 {
            return None;
        }
        let servers = self.set(node, Type::NS)?;
        let mut targets = servers.data().filter_map(name_at_start);
        targets.find(|target| self.lacks_address(*target, node)).map(NameRef::to_name)
    }

    fn lacks_address(&self, target: NameRef<'_>, delegation: u32) -> bool {
        let Some(labels_len) = target.prefix_len(self.origin()) else { return false };
        let has_address = |node: u32| [Type::A, Type::AAAA].iter().any(|rtype| self.set(node, *rtype).is_some());
        match self.find(target, Type::A) {
            Some(Lookup::Name(Node(node)) | Lookup::Wildcard { at: Node(node), .. }) => !has_address(node),
            Some(Lookup::Nothing(_)) => true,
            // Below another delegation, its servers know the address.
            Some(Lookup::Cut(Node(cut))) => {
                let glue = target.as_bytes().get(..labels_len).and_then(|labels| self.find_labels(labels));
                cut == delegation && !glue.is_some_and(has_address)
            }
            Some(Lookup::Renamed(_)) | None => false,
        }
    }
}

/// Key of dynamic updates, which may be beside a CNAME record (RFC 4035 §2.5).
const KEY: Type = Type(25);
