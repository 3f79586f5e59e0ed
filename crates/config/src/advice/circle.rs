//! Queries that are passed on to where they came from, by this Corefile alone.

use corefile::Diagnostic;
use wire::Name;

use super::{Line, overlap, within};
use crate::codes;
use crate::options::{Effect, QueriedUpstream};
use crate::planned::PlannedListener;

pub(super) fn of(chains: &[Vec<Line<'_>>], listeners: &[PlannedListener]) -> Vec<Diagnostic> {
    let map = Map { chains, listeners };
    let mut warnings = Vec::new();
    for (block, chain) in chains.iter().enumerate() {
        for line in chain {
            let comes_back =
                |asked: &&QueriedUpstream| line.zones.iter().any(|zone| map.comes_back(block, zone, asked));
            warnings.extend(line.role.asks.iter().filter(comes_back).map(|asked| circle(line, asked)));
        }
    }
    warnings
}

fn circle(line: &Line<'_>, asked: &QueriedUpstream) -> Diagnostic {
    let message = format!("what `{}` passes on to {} comes back to this server block", line.directive, asked.address);
    Diagnostic::warning(codes::FORWARD_LOOP, asked.span, message)
        .with_label("this is an address of this server")
        .with_help("name another server; looping queries time out and return SERVFAIL")
}

/// The ways that queries take between the blocks of a Corefile.
struct Map<'a> {
    chains: &'a [Vec<Line<'a>>],
    listeners: &'a [PlannedListener],
}

impl Map<'_> {
    /// Whether what is asked there of a zone leads to this block, directly or by others.
    fn comes_back(&self, home: usize, zone: &Name, asked: &QueriedUpstream) -> bool {
        let mut seen = vec![false; self.chains.len()];
        let mut open: Vec<usize> = self.block_at(asked, zone).into_iter().collect();
        while let Some(block) = open.pop() {
            if core::mem::replace(&mut seen[block], true) {
                continue;
            }
            let Some(line) = self.passing(block, zone) else { continue };
            if block == home {
                return true;
            }
            open.extend(line.role.asks.iter().filter_map(|asked| self.block_at(asked, zone)));
        }
        false
    }

    /// The line of a block that passes a zone on, if nothing answers it before; none where names are changed on the
    /// way.
    fn passing(&self, block: usize, zone: &Name) -> Option<&Line<'_>> {
        let chain = &self.chains[block];
        let takes = |line: &&Line<'_>| {
            line.role.effect == Effect::AnswersAll
                && line.zones.iter().any(|own| within(zone, own))
                && !line.role.except.iter().any(|except| within(zone, except))
                && !line.role.fallthrough.iter().any(|through| overlap(through, zone))
        };
        let renames = chain.iter().any(|line| line.role.effect == Effect::Renames);
        chain.iter().find(takes).filter(|line| !renames && !line.role.asks.is_empty())
    }

    /// The block that has a zone on the address that is asked; none if it depends on the query.
    fn block_at(&self, asked: &QueriedUpstream, zone: &Name) -> Option<usize> {
        let of_port = || {
            let same = |known: &&PlannedListener| (known.scheme, known.port) == (asked.scheme, asked.address.port());
            self.listeners.iter().filter(same)
        };
        let ip = asked.address.ip();
        let own = of_port().find(|known| known.ip == Some(ip));
        let everywhere = || of_port().find(|known| known.ip.is_none() && (ip.is_loopback() || ip.is_unspecified()));
        let listener = own.or_else(everywhere)?;
        let holding = listener.zones.iter().filter(|(known, _)| within(zone, known));
        let longest = holding.max_by_key(|(known, _)| known.as_ref().labels().count())?;
        let mut blocks = listener.zones.iter().filter(|(known, _)| *known == longest.0);
        blocks.next().filter(|_| blocks.next().is_none()).map(|(_, block)| *block)
    }
}
