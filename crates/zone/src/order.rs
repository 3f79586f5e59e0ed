//! All of a zone in canonical order (RFC 4034 §6.1), and what of it is the zone's own: what signing goes by.

use wire::Name;

use crate::canonical;
use crate::store::{BELOW, CUT, RecordSet, Zone};

/// A name with its records.
pub struct Owner<'z> {
    /// The name.
    pub name: Name,
    /// What the zone has to say about it.
    pub standing: Standing,
    node: u32,
    zone: &'z Zone,
}

/// What a zone has to say about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All.
    Own,
    /// Whose it is, and whether that is signed: another zone begins here.
    Cut,
    /// Nothing: it is below a cut or a DNAME record. Addresses of name servers (glue) are such.
    Beyond,
}

impl<'z> Owner<'z> {
    /// Its record sets; signatures are a set for each type that they cover.
    pub fn sets(&self) -> impl Iterator<Item = RecordSet<'z>> + use<'z> {
        self.zone.all(self.node)
    }
}

impl Zone {
    /// The names that own records, in canonical order: the zone's own name is the first.
    pub fn in_order(&self) -> impl Iterator<Item = Owner<'_>> {
        let all = (0..self.nodes.len()).filter_map(|node| u32::try_from(node).ok());
        let mut nodes: Vec<u32> = all.filter(|node| self.node(*node).sets > 0).collect();
        nodes.sort_unstable_by(|one, other| canonical::compare(self.labels(*one), self.labels(*other)));
        nodes.into_iter().map(|node| {
            let flags = self.node(node).flags;
            let standing = match (flags & BELOW != 0, flags & CUT != 0) {
                (true, _) => Standing::Beyond,
                (false, true) => Standing::Cut,
                (false, false) => Standing::Own,
            };
            Owner { name: self.name(node), standing, node, zone: self }
        })
    }
}
