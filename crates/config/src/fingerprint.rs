//! Fingerprints of server blocks, for state that outlives a reload.
//!
//! A fingerprint covers everything that determines the answers below a directive, and so what it stores of them:
//!
//! - the words of the directives below it, with imports and variables expanded, and the files that they read,
//! - the directives that set labels, because those below may use them,
//! - if one of them asks the whole server for other names (the target of a CNAME record, for example): all blocks on
//!   the same addresses, with everything that these reach in turn,
//! - if one of them forwards to an address of this server: all blocks there.
//!
//! A fingerprint is a hash of all that. Blocks that reach each other are merged into groups, so the fingerprints of
//! many blocks take linear time.

use core::cell::RefCell;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};
use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::directive_print::DirectivePrint;
use crate::planned::{PlannedBlock, PlannedListener};
use crate::setup::{FileStamp, Files};

/// Port of DNS. A forwarder to this port of another machine is usual.
const PORT: u16 = 53;

/// Blocks of a plan as far as fingerprints need them while the blocks themselves are being built.
pub(crate) struct Outline {
    blocks: Vec<BlockPrint>,
    /// Group of each listener. Blocks on listeners of one group may reach each other.
    groups: Vec<usize>,
}

struct BlockPrint {
    /// Hash of the keys.
    keys: u64,
    directives: Vec<DirectivePrint>,
    /// Hash of the files that each directive has read so far.
    files: Vec<u64>,
    /// Listeners that serve the block.
    listeners: Vec<usize>,
    /// Listeners that directives forward to, one of each group, with the position of the directive.
    forwards: Vec<(usize, usize)>,
}

impl Outline {
    pub(crate) fn new(blocks: &[PlannedBlock], listeners: &[PlannedListener]) -> Outline {
        let mut reachable = Reachable::new(listeners);
        let mut prints: Vec<BlockPrint> =
            blocks.iter().map(|block| BlockPrint::new(block, |upstream| reachable.through(upstream))).collect();
        for (at, listener) in listeners.iter().enumerate() {
            for (_, block) in &listener.zones {
                let known = &mut prints[*block].listeners;
                if known.last() != Some(&at) {
                    known.push(at);
                }
            }
        }
        let mut groups = reachable.groups;
        for block in &prints {
            let reached = block.listeners.iter().copied().chain(block.forwards.iter().map(|(_, listener)| *listener));
            reached.reduce(|one, other| {
                join(&mut groups, one, other);
                one
            });
        }
        let groups = (0..groups.len()).map(|at| root(&groups, at)).collect();
        Outline { blocks: prints, groups }
    }

    /// Records what a directive has read.
    pub(crate) fn note_files(&mut self, block: usize, directive: usize, files: u64) {
        self.blocks[block].files[directive] = files;
    }

    /// Returns the fingerprints of all blocks, once everything is built.
    pub(crate) fn finish(self) -> Fingerprints {
        let mut groups: HashMap<usize, DefaultHasher> = HashMap::new();
        for block in &self.blocks {
            let whole = block.hash_from(0);
            let mut known: Vec<usize> = block.listeners.iter().map(|listener| self.groups[*listener]).collect();
            known.dedup();
            known.into_iter().for_each(|group| whole.hash(groups.entry(group).or_default()));
        }
        let groups = groups.into_iter().map(|(group, hasher)| (group, hasher.finish())).collect();
        Fingerprints { outline: self, groups }
    }
}

/// Fingerprints of all blocks of a configuration.
pub(crate) struct Fingerprints {
    outline: Outline,
    /// Hash of all blocks of each group.
    groups: HashMap<usize, u64>,
}

impl Fingerprints {
    /// Returns the hash of everything that the answers below a directive depend on, and the directive itself.
    pub(crate) fn of(&self, block: usize, directive: usize) -> u64 {
        let print = &self.outline.blocks[block];
        let mut hasher = DefaultHasher::new();
        print.hash_from(directive).hash(&mut hasher);
        let asks_server = print.directives[directive..].iter().any(|below| below.traits.asks_server);
        let serving = print.listeners.iter().filter(|_| asks_server);
        let forwards = print.forwards.iter().filter(|(at, _)| *at >= directive).map(|(_, listener)| listener);
        for listener in serving.chain(forwards) {
            self.groups.get(&self.outline.groups[*listener]).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl BlockPrint {
    /// `own` returns a listener that a packet to an address may reach. Its group has the others.
    fn new(block: &PlannedBlock, mut own: impl FnMut(SocketAddr) -> Option<usize>) -> BlockPrint {
        let mut hasher = DefaultHasher::new();
        block.keys.iter().for_each(|key| key.to_string().hash(&mut hasher));
        let upstreams = block.directives.iter().enumerate().flat_map(|(at, (_, _, parsed))| {
            let asks = parsed.roles().iter().flat_map(|placed| &placed.role.asks);
            asks.map(move |upstream| (at, upstream.address))
        });
        let forwards = upstreams.filter_map(|(at, address)| own(address).map(|own| (at, own))).collect();
        BlockPrint {
            keys: hasher.finish(),
            directives: block.prints.clone(),
            files: vec![0; block.prints.len()],
            listeners: Vec::new(),
            forwards,
        }
    }

    /// Returns the hash of the keys, of a directive and those below it, and of those above it that set labels.
    fn hash_from(&self, directive: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.keys.hash(&mut hasher);
        for (at, (print, files)) in self.directives.iter().zip(&self.files).enumerate() {
            if at >= directive || print.traits.sets_labels {
                (print.words, files).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

/// Listeners that packets of forwarders may reach, and their groups. All that one packet may reach are in one group,
/// so that a forwarder needs to know only one of them: thousands of blocks may forward to thousands of listeners.
struct Reachable {
    by_port: HashMap<u16, Vec<usize>>,
    by_address: HashMap<(IpAddr, u16), Vec<usize>>,
    groups: Vec<usize>,
}

impl Reachable {
    fn new(listeners: &[PlannedListener]) -> Reachable {
        let groups = (0..listeners.len()).collect();
        let mut reachable = Reachable { by_port: HashMap::new(), by_address: HashMap::new(), groups };
        for (at, listener) in listeners.iter().enumerate() {
            reachable.by_port.entry(listener.port).or_default().push(at);
            if let Some(ip) = listener.ip {
                reachable.by_address.entry((ip, listener.port)).or_default().push(at);
            }
        }
        reachable
    }

    /// Merges the groups of all listeners that a packet to an address may reach, and returns the first of them.
    fn through(&mut self, upstream: SocketAddr) -> Option<usize> {
        let (ip, port) = (upstream.ip(), upstream.port());
        let is_here = port != PORT || ip.is_loopback() || ip.is_unspecified();
        let reached = match is_here {
            true => self.by_port.get_mut(&port),
            false => self.by_address.get_mut(&(ip, port)),
        }?;
        let first = *reached.first()?;
        // The next forwarder finds them merged.
        reached.drain(1..).for_each(|other| join(&mut self.groups, first, other));
        Some(first)
    }
}

/// Merges the groups of two listeners. The smaller number stays the root, so that the roots do not depend on the order.
fn join(groups: &mut [usize], one: usize, other: usize) {
    let (one, other) = (shorten(groups, one), shorten(groups, other));
    groups[one.max(other)] = one.min(other);
}

/// Returns the root of a group and halves the path to it.
fn shorten(groups: &mut [usize], mut at: usize) -> usize {
    while groups[at] != at {
        groups[at] = groups[groups[at]];
        at = groups[at];
    }
    at
}

fn root(groups: &[usize], mut at: usize) -> usize {
    while groups[at] != at {
        at = groups[at];
    }
    at
}

/// File system that records what is read from it.
pub(crate) struct RecordedFiles<'a> {
    files: &'a dyn Files,
    seen: RefCell<DefaultHasher>,
}

impl<'a> RecordedFiles<'a> {
    pub(crate) fn new(files: &'a dyn Files) -> RecordedFiles<'a> {
        RecordedFiles { files, seen: RefCell::default() }
    }

    /// Returns the hash of everything read since the last call.
    pub(crate) fn take(&self) -> u64 {
        self.seen.take().finish()
    }

    fn note<T: Hash>(&self, path: &Path, found: &io::Result<T>) {
        let mut seen = self.seen.borrow_mut();
        path.hash(&mut *seen);
        found.as_ref().map_err(io::Error::kind).hash(&mut *seen);
    }
}

impl Files for RecordedFiles<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let read = self.files.read(path);
        self.note(path, &read);
        read
    }

    fn is_file(&self, path: &Path) -> bool {
        let is_file = self.files.is_file(path);
        self.note(path, &Ok(is_file));
        is_file
    }

    fn stamp(&self, path: &Path) -> io::Result<FileStamp> {
        self.files.stamp(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let listed = self.files.list(directory);
        self.note(directory, &listed);
        listed
    }

    fn replace(&self, path: &Path, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        self.files.replace(path, write)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.files.append(path, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forwarder_knows_one_of_the_listeners_that_it_reaches() {
        const LISTENERS: usize = 20_000;
        let by_port = HashMap::from([(5301, (0..LISTENERS).collect()), (53, vec![LISTENERS, LISTENERS + 1])]);
        let by_address = HashMap::from([((IpAddr::from([192, 0, 2, 1]), 53), vec![LISTENERS + 1])]);
        let mut reachable = Reachable { by_port, by_address, groups: (0..LISTENERS + 2).collect() };
        for _ in 0..LISTENERS {
            assert_eq!(reachable.through(([127, 0, 0, 1], 5301).into()), Some(0));
        }
        assert!((0..LISTENERS).all(|at| root(&reachable.groups, at) == 0));
        assert_eq!(reachable.through(([192, 0, 2, 1], 53).into()), Some(LISTENERS + 1));
        assert_eq!(root(&reachable.groups, LISTENERS + 1), LISTENERS + 1, "another address of the port");
        assert_eq!(reachable.through(([192, 0, 2, 2], 53).into()), None, "another machine");
    }
}
