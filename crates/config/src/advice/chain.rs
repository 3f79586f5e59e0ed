//! Warnings about lines of one chain that have no effect.
//!
//! The order of the chain is not the order of the lines, so messages name the other line and do not say "above".

use std::collections::HashSet;

use corefile::Diagnostic;
use engine::ZoneMap;
use wire::Name;

use super::{Line, within};
use crate::codes;
use crate::options::Effect;
use crate::zone_set::ZoneSet;

/// Zones of the names of addresses.
const REVERSE: [&str; 2] = ["in-addr.arpa.", "ip6.arpa."];

/// Lines of a zone that are compared with another line. More lines for the same zone are all shadowed by the first.
const COMPARED_MAX: usize = 64;

pub(super) fn of(chain: &[Line<'_>]) -> Vec<Diagnostic> {
    let mut without_effect = without_effect(chain);
    let directives: HashSet<&str> = chain.iter().map(|line| line.directive).collect();
    // Lines so far that answer all names of their zones.
    let mut takers: ZoneMap<Vec<usize>> = ZoneMap::new();
    let mut warnings = Vec::new();
    for (at, line) in chain.iter().enumerate() {
        warnings.extend(never_asked(line, chain, &takers));
        warnings.append(&mut without_effect[at]);
        warnings.extend(nothing_to_use(line, &directives));
        if line.role.effect == Effect::AnswersAll {
            for zone in line.zones.names() {
                takers.entry(zone.as_ref(), Vec::new).push(at);
            }
        }
    }
    warnings
}

/// Returns the warnings about each line that depend on the later ones.
fn without_effect(chain: &[Line<'_>]) -> Vec<Vec<Diagnostic>> {
    // Names of one zone can become names of another one, so that any later line may answer them.
    let renames = chain.iter().any(|line| line.role.effect == Effect::Renames);
    let mut answered_later = ZoneSet::default();
    let mut is_answered = false;
    let mut warnings: Vec<Vec<Diagnostic>> = Vec::new();
    for line in chain.iter().rev() {
        let nothing = if renames && is_answered { None } else { nothing_later(line, &answered_later) };
        let found = [fallthrough_to_nothing(line, &answered_later), nothing];
        warnings.push(found.into_iter().flatten().collect());
        if line.answers() {
            is_answered = true;
            answered_later.extend(line.zones.names().iter().cloned());
        }
    }
    warnings.reverse();
    warnings
}

/// Part of a zone that a line passes on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Past {
    Nothing,
    /// Only names of addresses.
    Addresses,
    Something,
}

/// Reports a line that answers, but all of its zones are answered earlier in the chain.
fn never_asked(line: &Line<'_>, chain: &[Line<'_>], takers: &ZoneMap<Vec<usize>>) -> Option<Diagnostic> {
    if !line.answers() {
        return None;
    }
    let is_separate = |other: &Line<'_>, zone: &Name| {
        other.directive != line.directive || !line.role.longest_zone || other.zones.has(zone)
    };
    let holders = line.zones.names().iter().map(|zone| {
        let earlier = takers.matches(zone.as_ref()).flat_map(|(_, lines)| lines.iter().take(COMPARED_MAX));
        let earlier = earlier.filter(|at| is_separate(&chain[**at], zone));
        let (past, at) = earlier.map(|at| (past(&chain[*at], zone), *at)).min()?;
        Some((past, &chain[at]))
    });
    let holders: Option<Vec<_>> = holders.collect();
    let (past, holder) = holders?.into_iter().max_by_key(|(past, _)| *past)?;
    let (receives, handled) = match past {
        Past::Nothing => ("never receives a query", ""),
        Past::Addresses => ("receives only queries for reverse names", " except reverse names"),
        Past::Something => return None,
    };
    let help = if holder.directive == line.directive {
        "lines of the same directive are tried in the order of the Corefile: put the one for the shorter zone last, or \
         merge two lines for the same zone"
            .to_owned()
    } else {
        format!("add `fallthrough` to `{}` if it has that option, or remove one of the two", holder.directive)
    };
    let note = format!("comes earlier in the chain and answers or denies all names of its zones{handled}");
    let problem = Diagnostic::warning(codes::NEVER_ASKED, line.name, format!("`{}` {receives}", line.directive));
    Some(problem.with_other(holder.name, note).with_help(help))
}

/// Returns the names of a zone that an earlier line of the chain passes on.
fn past(line: &Line<'_>, zone: &Name) -> Past {
    let ends = line.role.effect == Effect::AnswersAll && line.zones.contains(zone);
    if !ends || line.through.overlaps(zone) {
        return Past::Something;
    }
    if !line.except.overlaps(zone) {
        return Past::Nothing;
    }
    let is_reverse =
        |name: &Name| REVERSE.iter().any(|reverse| Name::from_text(reverse).is_ok_and(|zone| within(name, &zone)));
    // A name that contains a zone is a reverse name only if the zone is one.
    let leaves_addresses = !is_reverse(zone) && !line.except.contains(zone) && line.except.within(zone).all(is_reverse);
    if leaves_addresses { Past::Addresses } else { Past::Something }
}

fn fallthrough_to_nothing(line: &Line<'_>, answered_later: &ZoneSet) -> Option<Diagnostic> {
    let mut zones = line.zones.names().iter().flat_map(|own| line.through.common(own)).peekable();
    zones.peek()?;
    if zones.any(|zone| answered_later.overlaps(zone)) {
        return None;
    }
    let message = format!("names that `{}` does not have fall through, but nothing answers them", line.directive);
    let problem = Diagnostic::warning(codes::FALLTHROUGH_TO_NOTHING, line.fallthrough, message)
        .with_label("no later directive of the chain answers these names: they end with SERVFAIL")
        .with_help(
            "add a directive that answers them, or remove this option: then names that do not exist get NXDOMAIN",
        );
    Some(problem)
}

fn nothing_later(line: &Line<'_>, answered_later: &ZoneSet) -> Option<Diagnostic> {
    let is_served = |zone: &Name| answered_later.overlaps(zone);
    if line.role.effect != Effect::OnAnswers || line.zones.is_empty() || line.zones.names().iter().any(is_served) {
        return None;
    }
    let message = format!("`{}` has no effect: no later directive of the chain gives answers", line.directive);
    let help =
        "the order of the chain is fixed and does not depend on the order of the lines: see the table of plugins";
    Some(Diagnostic::warning(codes::NOTHING_BELOW, line.name, message).with_help(help))
}

fn nothing_to_use(line: &Line<'_>, directives: &HashSet<&str>) -> Option<Diagnostic> {
    let used = line.role.uses.filter(|used| !directives.contains(used))?;
    let message = format!("`{}` has no effect: there is no `{used}` in this server block", line.directive);
    Some(
        Diagnostic::warning(codes::NOTHING_TO_USE, line.name, message)
            .with_help(format!("move it to the block with `{used}`")),
    )
}
