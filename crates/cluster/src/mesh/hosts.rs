//! Tree of host names: the claimed names and all their ancestors. A look-up takes one probe for the name itself and,
//! if any wildcard exists, one for each of its ancestors.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use host::invariant::holds;
use rcu::{Entry as InTable, Seed, Shards};
use wire::NameRef;

use super::claim::Claim;
use super::read::Host;

/// Number of shards. A write copies 1/256 of the names: 50 pointers of 12,000.
const SHARDS: usize = 256;
/// Claims kept per host. More are likely a mistake, and each change costs time in proportion to their number.
const CLAIMS_MAX: usize = 1000;

/// Host names with the claims to them.
pub(crate) struct Hosts {
    nodes: Shards<Arc<Node>>,
    seed: Seed,
    /// Number of hosts with claims.
    claimed: AtomicUsize,
    /// Number of wildcard hosts with claims.
    wildcards: AtomicUsize,
}

/// Name that exists, because it or a name below it is claimed.
#[derive(Clone)]
struct Node {
    hash: u64,
    /// Wire format, in lower case.
    name: Box<[u8]>,
    /// Claims to the name itself, best first.
    exact: Box<[Claim]>,
    /// Claims to all names below it, best first.
    wild: Box<[Claim]>,
    /// Number of existing names one label below it.
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
        let same = |node: &Arc<Node>| *node.name == *name.as_bytes();
        self.nodes.read(self.seed.hash_one(name.as_bytes()), same, |node| read(node))
    }
}

/// Methods for the reducer.
impl Hosts {
    /// Adds a claim, or replaces the one of the same entry. Returns false, without adding it, if the host already has
    /// [`CLAIMS_MAX`] others.
    pub(crate) fn claim(&self, host: &Host, claim: Claim) -> bool {
        self.change(host, |claims| {
            claims.retain(|known| known.entry.key != claim.entry.key);
            let has_room = claims.len() < CLAIMS_MAX;
            if has_room {
                let at = claims.partition_point(|known| known.age() < claim.age());
                claims.insert(at, claim);
            }
            holds(claims.len() <= CLAIMS_MAX, "a host has a bounded number of claims");
            debug_assert!(claims.is_sorted_by(|one, next| one.age() <= next.age()), "the oldest claim is first");
            debug_assert!(
                claims.iter().zip(claims.iter().skip(1)).all(|(one, next)| one.entry.key != next.entry.key),
                "an entry claims a host once"
            );
            has_room
        })
    }

    /// Removes the claim of an entry.
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
        // Readers skip wildcards while the count is 0, so raise it before the first one is visible, and lower it
        // after the last one is gone.
        if host.is_wildcard && is && !was {
            count(&self.wildcards, true);
        }
        self.publish(name, node);
        if host.is_wildcard && was && !is {
            count(&self.wildcards, false);
        }
        let (wildcards, claimed) = (self.wildcards.load(Ordering::Relaxed), self.claimed.load(Ordering::Relaxed));
        holds(wildcards <= claimed, "each wildcard is a claimed name");
        result
    }

    /// Returns the node of a name, or an empty one if the name does not exist.
    fn node(&self, name: NameRef<'_>) -> Node {
        self.read(name, Node::clone).unwrap_or_else(|| Node {
            hash: self.seed.hash_one(name.as_bytes()),
            name: name.as_bytes().into(),
            exact: Box::default(),
            wild: Box::default(),
            children: 0,
        })
    }

    /// Publishes a node. If this creates or removes the name, updates its parent too.
    fn publish(&self, name: NameRef<'_>, node: Node) {
        let (hash, is_there) = (node.hash, !node.is_empty());
        let same = |known: &Arc<Node>| *known.name == *name.as_bytes();
        debug_assert_eq!(hash, self.seed.hash_one(name.as_bytes()), "a node is stored under its name");
        let before = if is_there { self.nodes.replace(Arc::new(node), same) } else { self.nodes.remove(hash, same) };
        let Some(above) = name.parent().filter(|_| before.is_some() != is_there) else { return };
        let mut parent = self.node(above);
        holds(is_there || parent.children > 0, "the parent of a name counts it");
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
        let before = counter.fetch_sub(1, Ordering::Release);
        holds(before > 0, "a name that loses its last claim was counted");
    }
}
