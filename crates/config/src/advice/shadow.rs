//! Zones whose queries go elsewhere.

use std::collections::HashSet;

use corefile::{Diagnostic, Span};
use wire::Name;

use super::Line;
use crate::Key;
use crate::codes;
use crate::options::Effect;
use crate::planned::{PlannedBlock, PlannedListener};
use crate::served::Served;
use crate::zone_set::ZoneSet;

/// Returns the parts of a zone of which queries come to a block: each that one of its keys takes and no longer key of
/// another block. `keys` are the zones of the block.
pub(super) fn coming(zone: &Name, block: usize, keys: &ZoneSet, served: &Served) -> Vec<Name> {
    keys.common(zone).into_iter().filter(|part| served.reaches(part, block)).cloned().collect()
}

/// Reports keys that an earlier block of the same zone takes, since it is no view.
pub(super) fn of_keys(blocks: &[PlannedBlock], listeners: &[PlannedListener], served: &Served) -> Vec<Diagnostic> {
    let (mut warnings, mut reported) = (Vec::new(), HashSet::new());
    for (at, listener) in listeners.iter().enumerate() {
        let key_of = |zone: &Name, block: usize| {
            blocks[block].keys.iter().find(|key| key.zone == *zone && key.port == listener.port)
        };
        for (zone, block) in &listener.zones {
            let taker = served.servers(at, zone).and_then(|servers| servers.taker);
            let Some(taker) = taker.filter(|taker| taker < block) else { continue };
            let (Some(key), Some(taker)) = (key_of(zone, *block), key_of(zone, taker)) else { continue };
            if reported.insert(key.span) {
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
    let used: HashSet<&str> = chain.iter().filter_map(|line| line.role.uses).collect();
    let lines = chain.iter().filter(|line| !used.contains(line.directive));
    let elsewhere = lines.flat_map(|line| line.named.iter().filter(|(_, comes)| !comes));
    elsewhere.map(|(span, _)| zone_elsewhere(*span)).collect()
}

fn zone_elsewhere(zone: Span) -> Diagnostic {
    Diagnostic::warning(codes::ZONE_ELSEWHERE, zone, "no query for this zone comes to this server block")
        .with_label("the block's keys leave it out, or another block has a longer one")
        .with_help("move the line to the block whose key holds the zone, or add a key")
}
