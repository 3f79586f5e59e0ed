//! Names of a zone in canonical order (RFC 4034 §6.1), with the distinction between authoritative data and glue for
//! signing.

use wire::Name;

use crate::canonical;
use crate::store::{BELOW, CUT, RecordSet, Zone};

/// Name with its records.
pub struct Owner<'z> {
    /// Owner name.
    pub name: Name,
    /// Relation of the name to the zone.
    pub authority: Authority,
    node: u32,
    zone: &'z Zone,
}

/// Relation of a name to a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The zone is authoritative for all records of the name.
    Own,
    /// The name is a zone cut. The zone is authoritative only for DS.
    Cut,
    /// The name is below a zone cut or a DNAME record, such as glue. The zone is not authoritative for it.
    Beyond,
}

impl<'z> Owner<'z> {
    /// Returns the RRsets of the name. Signatures form one set per covered type.
    pub fn sets(&self) -> impl Iterator<Item = RecordSet<'z>> + use<'z> {
        self.zone.all(self.node)
    }
}

impl Zone {
    /// Returns the names that own records in canonical order. The first is the apex.
    pub fn in_order(&self) -> impl Iterator<Item = Owner<'_>> {
        let all = (0..self.nodes.len()).filter_map(|node| u32::try_from(node).ok());
        let mut nodes: Vec<u32> = all.filter(|node| self.node(*node).sets > 0).collect();
        nodes.sort_unstable_by(|one, other| canonical::compare(self.labels(*one), self.labels(*other)));
        nodes.into_iter().map(|node| {
            let flags = self.node(node).flags;
            let authority = match (flags & BELOW != 0, flags & CUT != 0) {
                (true, _) => Authority::Beyond,
                (false, true) => Authority::Cut,
                (false, false) => Authority::Own,
            };
            Owner { name: self.name(node), authority, node, zone: self }
        })
    }
}
