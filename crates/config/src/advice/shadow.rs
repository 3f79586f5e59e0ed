//! Zones whose queries go elsewhere.

use corefile::{Diagnostic, Span};
use wire::Name;

use super::{Line, common, within};
use crate::Key;
use crate::codes;
use crate::options::Effect;
use crate::planned::{PlannedBlock, PlannedListener};

/// What of a zone comes to a block: each part that one of its keys takes and no longer key of another block.
pub(super) fn coming(zone: &Name, block: usize, blocks: &[PlannedBlock], listeners: &[PlannedListener]) -> Vec<Name> {
    let mut parts: Vec<Name> = Vec::new();
    for key in blocks[block].info.zones.iter().filter_map(|key| common(key, zone)) {
        let comes = |listener: &PlannedListener| comes_by(key, block, blocks, listener);
        if !parts.contains(key) && listeners.iter().any(comes) {
            parts.push(key.clone());
        }
    }
    parts
}

/// Whether queries for a zone that come in on this address go to a block, or may if views do not want them.
fn comes_by(zone: &Name, block: usize, blocks: &[PlannedBlock], listener: &PlannedListener) -> bool {
    let holding = |known: &&(Name, usize)| within(zone, &known.0);
    let mut known: Vec<_> = listener.zones.iter().filter(holding).collect();
    known.sort_by_key(|(zone, _)| core::cmp::Reverse(zone.as_ref().labels().count()));
    let Some(first) = known.iter().position(|(_, other)| *other == block) else { return false };
    // A block of the same zone that takes all is spoken of where its key is.
    let takes_all = |(longer, other): &(Name, usize)| *longer != known[first].0 && blocks[*other].info.view.is_empty();
    !known[..first].iter().any(|known| takes_all(known))
}

/// Reports keys that an earlier block of the same zone takes, since it is no view.
pub(super) fn of_keys(blocks: &[PlannedBlock], listeners: &[PlannedListener]) -> Vec<Diagnostic> {
    let mut warnings: Vec<Diagnostic> = Vec::new();
    for listener in listeners {
        let key_of = |zone: &Name, block: usize| {
            blocks[block].keys.iter().find(|key| key.zone == *zone && key.port == listener.port)
        };
        for (at, (zone, block)) in listener.zones.iter().enumerate() {
            let takes_all = |(earlier, other): &&(Name, usize)| {
                earlier == zone && other != block && blocks[*other].info.view.is_empty()
            };
            let Some((_, other)) = listener.zones[..at].iter().find(takes_all) else { continue };
            let (Some(key), Some(taker)) = (key_of(zone, *block), key_of(zone, *other)) else { continue };
            if !warnings.iter().any(|problem| problem.span == key.span) {
                warnings.push(shadowed(key, taker));
            }
        }
    }
    warnings
}

fn shadowed(key: &Key, taker: &Key) -> Diagnostic {
    Diagnostic::warning(codes::KEY_SHADOWED, key.span, format!("this server block receives no query for `{key}`"))
        .with_other(taker.span, "this block is tried first and has no `view`, so it takes all of them")
        .with_help("blocks of the same zone are tried in the order of the Corefile: put the one without `view` last")
}

/// Zones that lines name although their queries do not come to the block.
pub(super) fn of_zones(chain: &[Line<'_>]) -> Vec<Diagnostic> {
    if chain.iter().any(|line| line.role.effect == Effect::Renames) {
        return Vec::new();
    }
    let is_used = |line: &&Line<'_>| chain.iter().any(|other| other.role.uses == Some(line.directive));
    let lines = chain.iter().filter(|line| !is_used(line));
    let elsewhere = lines.flat_map(|line| line.named.iter().filter(|(_, zones)| zones.is_empty()));
    elsewhere.map(|(span, _)| zone_elsewhere(*span)).collect()
}

fn zone_elsewhere(zone: Span) -> Diagnostic {
    Diagnostic::warning(codes::ZONE_ELSEWHERE, zone, "no query for this zone comes to this server block")
        .with_label("the block's keys leave it out, or another block has a longer one")
        .with_help("move the line to the block whose key holds the zone, or add a key")
}
