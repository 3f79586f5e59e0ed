//! Warnings about lines that are valid alone but probably a mistake together. They are derived from the roles
//! that directives say of themselves. No directive is known by name here.

mod chain;
mod circle;
mod shadow;

use corefile::{Diagnostic, Span};
use wire::Name;

use crate::options::{Effect, Role};
use crate::planned::{PlannedBlock, PlannedListener};
use crate::served::Served;
use crate::zone_set::ZoneSet;

/// All that there is to say, block by block.
pub(crate) fn of(blocks: &[PlannedBlock], listeners: &[PlannedListener]) -> Vec<Diagnostic> {
    let served = Served::new(blocks, listeners);
    let chains: Vec<Vec<Line<'_>>> = blocks.iter().enumerate().map(|(at, block)| lines(at, block, &served)).collect();
    let mut warnings = shadow::of_keys(blocks, listeners, &served);
    for chain in &chains {
        warnings.extend(shadow::of_zones(chain));
        warnings.extend(chain::of(chain));
    }
    warnings.extend(circle::of(&chains, &served));
    warnings
}

/// A line of a server block.
struct Line<'a> {
    directive: &'static str,
    role: &'a Role,
    /// Where its queries may lie: its own zones, as far as they come to its block.
    zones: ZoneSet,
    /// Zones of the role in which names fall through.
    through: ZoneSet,
    /// Names of the role that it ignores.
    except: ZoneSet,
    name: Span,
    fallthrough: Span,
    /// Arguments that name zones, each with whether one of these zones comes to its block.
    named: Vec<(Span, bool)>,
}

impl Line<'_> {
    fn answers(&self) -> bool {
        matches!(self.role.effect, Effect::AnswersSome | Effect::AnswersAll)
    }
}

/// The lines of a block, in the order of its chain.
fn lines<'a>(index: usize, block: &'a PlannedBlock, served: &Served) -> Vec<Line<'a>> {
    let placed =
        || block.directives.iter().flat_map(|(name, _, parsed)| parsed.roles().iter().map(move |role| (*name, role)));
    let renamed = placed().any(|(_, placed)| placed.role.effect == Effect::Renames);
    let keys: ZoneSet = block.info.zones.iter().cloned().collect();
    let comes = |zone: &Name| if renamed { vec![zone.clone()] } else { shadow::coming(zone, index, &keys, served) };
    let line = |(directive, placed): (&'static str, &'a crate::options::PlacedRole)| {
        let wanted = if placed.role.zones.is_empty() { &block.info.zones } else { &placed.role.zones };
        Line {
            directive,
            role: &placed.role,
            zones: wanted.iter().flat_map(comes).collect(),
            through: placed.role.fallthrough.iter().cloned().collect(),
            except: placed.role.except.iter().cloned().collect(),
            name: placed.name,
            fallthrough: placed.fallthrough,
            named: placed
                .named
                .iter()
                .map(|(span, zones)| (*span, zones.iter().any(|zone| !comes(zone).is_empty())))
                .collect(),
        }
    };
    placed().map(line).collect()
}

fn within(name: &Name, zone: &Name) -> bool {
    name.as_ref().is_within(zone.as_ref())
}
