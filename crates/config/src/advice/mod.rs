//! Warnings about lines that are valid alone but probably a mistake together. They are derived from the roles
//! that directives say of themselves. No directive is known by name here.

mod chain;
mod circle;
mod shadow;

use corefile::{Diagnostic, Span};
use wire::Name;

use crate::options::{Effect, Role};
use crate::planned::{PlannedBlock, PlannedListener};

/// All that there is to say, block by block.
pub(crate) fn of(blocks: &[PlannedBlock], listeners: &[PlannedListener]) -> Vec<Diagnostic> {
    let chains: Vec<Vec<Line<'_>>> = (0..blocks.len()).map(|index| lines(index, blocks, listeners)).collect();
    let mut warnings = shadow::of_keys(blocks, listeners);
    for chain in &chains {
        warnings.extend(shadow::of_zones(chain));
        warnings.extend(chain::of(chain));
    }
    warnings.extend(circle::of(&chains, listeners));
    warnings
}

/// A line of a server block.
struct Line<'a> {
    directive: &'static str,
    role: &'a Role,
    /// Where its queries may lie: its own zones, as far as they come to its block.
    zones: Vec<Name>,
    name: Span,
    fallthrough: Span,
    /// The zones that it names, each with those of them that come to its block.
    named: Vec<(Span, Vec<Name>)>,
}

impl Line<'_> {
    fn answers(&self) -> bool {
        matches!(self.role.effect, Effect::AnswersSome | Effect::AnswersAll)
    }

    /// Whether it may answer something in this zone.
    fn answers_in(&self, zone: &Name) -> bool {
        self.answers() && self.zones.iter().any(|own| overlap(own, zone))
    }
}

/// The lines of a block, in the order of its chain.
fn lines<'a>(index: usize, blocks: &'a [PlannedBlock], listeners: &[PlannedListener]) -> Vec<Line<'a>> {
    let block = &blocks[index];
    let placed =
        || block.directives.iter().flat_map(|(name, _, parsed)| parsed.roles().iter().map(move |role| (*name, role)));
    let renamed = placed().any(|(_, placed)| placed.role.effect == Effect::Renames);
    let comes = |zone: &Name| if renamed { vec![zone.clone()] } else { shadow::coming(zone, index, blocks, listeners) };
    let line = |(directive, placed): (&'static str, &'a crate::options::PlacedRole)| {
        let wanted = if placed.role.zones.is_empty() { &block.info.zones } else { &placed.role.zones };
        Line {
            directive,
            role: &placed.role,
            zones: wanted.iter().flat_map(comes).collect(),
            name: placed.name,
            fallthrough: placed.fallthrough,
            named: placed.named.iter().map(|(span, zones)| (*span, zones.iter().flat_map(comes).collect())).collect(),
        }
    };
    placed().map(line).collect()
}

/// The names that two zones have in common, if there are any: one of the two.
fn common<'a>(one: &'a Name, other: &'a Name) -> Option<&'a Name> {
    if one.as_ref().is_within(other.as_ref()) {
        Some(one)
    } else {
        other.as_ref().is_within(one.as_ref()).then_some(other)
    }
}

fn overlap(one: &Name, other: &Name) -> bool {
    common(one, other).is_some()
}

fn within(name: &Name, zone: &Name) -> bool {
    name.as_ref().is_within(zone.as_ref())
}
