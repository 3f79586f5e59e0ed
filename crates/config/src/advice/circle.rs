//! Queries that are passed on to where they came from, by this Corefile alone.

use std::collections::HashSet;

use corefile::Diagnostic;
use wire::Name;

use super::Line;
use crate::codes;
use crate::options::{Effect, QueriedUpstream};
use crate::served::Served;

/// Maximum number of blocks in a circle that is found. A query passes fewer before its time is over.
const CIRCLE_MAX: usize = 64;

pub(super) fn of(chains: &[Vec<Line<'_>>], served: &Served) -> Vec<Diagnostic> {
    let map = Map { chains, served };
    let mut warnings = Vec::new();
    for (block, chain) in chains.iter().enumerate() {
        for line in chain {
            let comes_back =
                |asked: &&QueriedUpstream| line.zones.names().iter().any(|zone| map.comes_back(block, zone, asked));
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
    served: &'a Served,
}

impl Map<'_> {
    /// Whether what is asked there of a zone leads to this block, directly or by others.
    fn comes_back(&self, home: usize, zone: &Name, asked: &QueriedUpstream) -> bool {
        let mut seen = HashSet::new();
        let mut open: Vec<usize> = self.block_at(asked, zone).into_iter().collect();
        while let Some(block) = open.pop() {
            if seen.len() >= CIRCLE_MAX || !seen.insert(block) {
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
                && line.zones.contains(zone)
                && !line.except.contains(zone)
                && !line.through.overlaps(zone)
        };
        let renames = chain.iter().any(|line| line.role.effect == Effect::Renames);
        chain.iter().find(takes).filter(|line| !renames && !line.role.asks.is_empty())
    }

    /// The block that has a zone on the address that is asked; none if it depends on the query.
    fn block_at(&self, asked: &QueriedUpstream, zone: &Name) -> Option<usize> {
        let (ip, port) = (asked.address.ip(), asked.address.port());
        let own = self.served.at(asked.scheme, port, Some(ip));
        let is_local = ip.is_loopback() || ip.is_unspecified();
        let everywhere = || self.served.at(asked.scheme, port, None).filter(|_| is_local);
        let servers = self.served.longest(own.or_else(everywhere)?, zone)?;
        let [block] = servers.blocks[..] else { return None };
        Some(block)
    }
}
