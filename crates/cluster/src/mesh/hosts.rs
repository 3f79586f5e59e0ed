//! The tree of names: those that entries claim, and those above them. A look-up is one for the name itself and, where
//! there are wildcards, one for each name above it.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcu::{Entry as InTable, Seed, Shards};
use wire::NameRef;

use super::claim::Claim;
use super::read::Host;

/// A write copies 1/256 of the names: 50 pointers of 12,000.
const SHARDS: usize = 256;
/// Entries that may claim one host. More are a mistake, and each change would cost all of them.
const CLAIMS_MAX: usize = 1000;

/// Names, and what is claimed of them.
pub(crate) struct Hosts {
    nodes: Shards<Arc<Node>>,
    seed: Seed,
    /// Names with claims.
    claimed: AtomicUsize,
    /// Names with claims to all below them.
    wildcards: AtomicUsize,
}

/// A name that exists: it is claimed, or one below it is.
#[derive(Clone)]
struct Node {
    hash: u64,
    /// Wire form, in lower case.
    name: Box<[u8]>,
    /// Claims to the name itself, best first.
    exact: Box<[Claim]>,
    /// Claims to all names below it, best first.
    wild: Box<[Claim]>,
    /// Names right below it that exist.
    children: usize,
}

impl InTable for Node {
    fn hash(&self, _: &Seed) -> u64 {
        self.hash
    }
}

impl Hosts {
    pub(crate) fn new() -> Hosts {
        let (claimed, wildcards) = Default::default();
        Hosts { nodes: Shards::new(SHARDS), seed: Seed::default(), claimed, wildcards }
    }

    pub(crate) fn find<R>(&self, name: NameRef<'_>, mut read: impl FnMut(&[Claim]) -> Option<R>) -> Option<R> {
        let exact = self.read(name, |node| read(&node.exact)).flatten();
        if exact.is_some() || self.wildcards.load(Ordering::Acquire) == 0 {
            return exact;
        }
        name.ancestors().skip(1).find_map(|above| self.read(above, |node| read(&node.wild)).flatten())
    }

    pub(crate) fn has_below(&self, name: NameRef<'_>) -> bool {
        self.read(name, |node| node.children > 0 || !node.wild.is_empty()).unwrap_or_default()
    }

    pub(crate) fn claimed(&self) -> usize {
        self.claimed.load(Ordering::Relaxed)
    }

    fn read<R>(&self, name: NameRef<'_>, read: impl FnOnce(&Node) -> R) -> Option<R> {
        let same = |node: &Arc<Node>| *node.name == *name.octets();
        self.nodes.read(self.seed.hash_one(name.octets()), same, |node| read(node))
    }
}

/// What the reducer does to the names.
impl Hosts {
    /// Puts a claim in the place of the one that the same entry has laid to this host. Says whether it could: a host has
    /// at most [`CLAIMS_MAX`].
    pub(crate) fn claim(&self, host: &Host, claim: Claim) -> bool {
        self.change(host, |claims| {
            claims.retain(|known| known.entry.key != claim.entry.key);
            let has_room = claims.len() < CLAIMS_MAX;
            if has_room {
                let at = claims.partition_point(|known| known.age() < claim.age());
                claims.insert(at, claim);
            }
            has_room
        })
    }

    /// Takes away the claim of an entry.
    pub(crate) fn withdraw(&self, host: &Host, entry: u64) {
        self.change(host, |claims| claims.retain(|known| known.entry.key != entry));
    }

    fn change<R>(&self, host: &Host, change: impl FnOnce(&mut Vec<Claim>) -> R) -> R {
        let name = host.name();
        let mut node = self.node(name);
        let list = if host.is_wildcard { &mut node.wild } else { &mut node.exact };
        let mut claims = std::mem::take(list).into_vec();
        let (was, result) = (!claims.is_empty(), change(&mut claims));
        *list = claims.into();
        let is = !list.is_empty();
        if was != is {
            count(&self.claimed, is);
        }
        // The count is up before a reader can see the first, and down after it could see the last.
        if host.is_wildcard && is && !was {
            count(&self.wildcards, true);
        }
        self.publish(name, node);
        if host.is_wildcard && was && !is {
            count(&self.wildcards, false);
        }
        result
    }

    /// The node of a name as it is; an empty one if it does not exist.
    fn node(&self, name: NameRef<'_>) -> Node {
        self.read(name, Node::clone).unwrap_or_else(|| Node {
            hash: self.seed.hash_one(name.octets()),
            name: name.octets().into(),
            exact: Box::default(),
            wild: Box::default(),
            children: 0,
        })
    }

    /// Lets readers see a node. One that comes to be, or ceases to, changes the one above it too.
    fn publish(&self, name: NameRef<'_>, node: Node) {
        let (hash, is_there) = (node.hash, !node.is_empty());
        let same = |known: &Arc<Node>| *known.name == *name.octets();
        let before = if is_there { self.nodes.replace(Arc::new(node), same) } else { self.nodes.remove(hash, same) };
        let Some(above) = name.parent().filter(|_| before.is_some() != is_there) else { return };
        let mut parent = self.node(above);
        parent.children = if is_there { parent.children + 1 } else { parent.children.saturating_sub(1) };
        self.publish(above, parent);
    }
}

impl Node {
    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.wild.is_empty() && self.children == 0
    }
}

fn count(counter: &AtomicUsize, up: bool) {
    if up {
        counter.fetch_add(1, Ordering::Release);
    } else {
        counter.fetch_sub(1, Ordering::Release);
    }
}
