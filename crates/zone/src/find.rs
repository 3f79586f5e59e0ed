//! Name lookup in a zone (RFC 1034 §4.3.2, RFC 4592, RFC 6672).

use wire::{NameRef, Type};

use crate::canonical;
use crate::store::{APEX, BELOW, CUT, DNAME, Node, WILDCARD, Zone};

/// Result of a name lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The name exists.
    Name(Node),
    /// The name does not exist, but a wildcard matches it.
    Wildcard {
        /// The wildcard.
        at: Node,
        /// The closest encloser.
        encloser: Node,
    },
    /// The name is at or below this zone cut.
    Cut(Node),
    /// The name is below the owner of this DNAME record.
    Renamed(Node),
    /// The name does not exist. This is its closest encloser.
    Nothing(Node),
}

impl Zone {
    /// Looks up `name`. Returns `None` if it is not in this zone. A zone cut belongs to the child zone, except for DS
    /// queries.
    #[must_use]
    pub fn find(&self, name: NameRef<'_>, qtype: Type) -> Option<Lookup> {
        let labels = &name.as_bytes()[..name.prefix_len(self.origin())?];
        let (encloser, exact) = self.closest(labels);
        let flags = self.node(encloser).flags;
        let is_cut = flags & CUT != 0 && !(exact && qtype == Type::DS);
        if flags & BELOW != 0 || is_cut || flags & DNAME != 0 && !exact {
            return Some(self.border(encloser, exact, qtype));
        }
        if exact {
            return Some(Lookup::Name(Node(encloser)));
        }
        let wildcard = (flags & WILDCARD != 0).then(|| self.wildcard(encloser)).flatten();
        Some(match wildcard {
            Some(at) => Lookup::Wildcard { at: Node(at), encloser: Node(encloser) },
            None => Lookup::Nothing(Node(encloser)),
        })
    }

    /// Returns the closest existing ancestor, and true if it is the name itself.
    fn closest(&self, labels: &[u8]) -> (u32, bool) {
        let mut rest = labels;
        loop {
            if let Some(node) = self.find_labels(rest) {
                return (node, rest.len() == labels.len());
            }
            let Some((length, after)) = rest.split_first() else { return (APEX, labels.is_empty()) };
            rest = after.get(usize::from(*length)..).unwrap_or_default();
        }
    }

    /// Returns the topmost zone cut or DNAME owner between the apex and a node.
    fn border(&self, encloser: u32, exact: bool, qtype: Type) -> Lookup {
        let mut lookup = Lookup::Name(Node(encloser));
        let (mut node, mut itself) = (encloser, exact);
        loop {
            let flags = self.node(node).flags;
            if flags & CUT != 0 && !(itself && qtype == Type::DS) {
                lookup = Lookup::Cut(Node(node));
            } else if flags & DNAME != 0 && !itself {
                lookup = Lookup::Renamed(Node(node));
            }
            if node == APEX {
                return lookup;
            }
            (node, itself) = (self.node(node).parent, false);
        }
    }

    fn wildcard(&self, encloser: u32) -> Option<u32> {
        let above = self.labels(encloser);
        let mut labels = [0; wire::NAME_MAX];
        labels[..2].copy_from_slice(b"\x01*");
        labels.get_mut(2..2 + above.len())?.copy_from_slice(above);
        self.find_labels(&labels[..2 + above.len()])
    }

    /// Returns the node whose NSEC record matches or covers a name: its own, or the previous one in canonical order.
    pub(crate) fn nsec_for(&self, labels: &[u8]) -> Option<u32> {
        let after = self.chain.partition_point(|node| canonical::compare(self.labels(*node), labels).is_le());
        self.chain.get(after.checked_sub(1)?).copied()
    }
}
