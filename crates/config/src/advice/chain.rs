//! Warnings about lines of one chain that have no effect.
//!
//! The order of the chain is not the order of the lines, so messages name the other line and do not say "above".

use corefile::Diagnostic;
use wire::Name;

use super::{Line, common, overlap, within};
use crate::codes;
use crate::options::Effect;

/// Zones of the names of addresses.
const REVERSE: [&str; 2] = ["in-addr.arpa.", "ip6.arpa."];

pub(super) fn of(chain: &[Line<'_>]) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for (at, line) in chain.iter().enumerate() {
        let (earlier, later) = (&chain[..at], &chain[at + 1..]);
        warnings.extend(never_asked(line, earlier));
        warnings.extend(fallthrough_to_nothing(line, later));
        warnings.extend(nothing_later(line, later));
        warnings.extend(nothing_to_use(line, chain));
    }
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
fn never_asked(line: &Line<'_>, earlier: &[Line<'_>]) -> Option<Diagnostic> {
    if !line.answers() {
        return None;
    }
    let is_separate = |other: &&Line<'_>, zone: &Name| {
        other.directive != line.directive || !line.role.longest_zone || other.zones.contains(zone)
    };
    let holders = line.zones.iter().map(|zone| {
        let earlier = earlier.iter().filter(|other| is_separate(other, zone));
        earlier.map(|other| (past(other, zone), other)).min_by_key(|(past, _)| *past)
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
    let ends = line.role.effect == Effect::AnswersAll && line.zones.iter().any(|own| within(zone, own));
    if !ends || line.role.fallthrough.iter().any(|through| overlap(through, zone)) {
        return Past::Something;
    }
    let is_reverse =
        |name: &Name| REVERSE.iter().any(|reverse| Name::from_text(reverse).is_ok_and(|zone| within(name, &zone)));
    let left_alone: Vec<_> = line.role.except.iter().filter(|except| overlap(except, zone)).collect();
    match left_alone.as_slice() {
        [] => Past::Nothing,
        names if !is_reverse(zone) && names.iter().all(|name| is_reverse(name)) => Past::Addresses,
        _ => Past::Something,
    }
}

fn fallthrough_to_nothing(line: &Line<'_>, later: &[Line<'_>]) -> Option<Diagnostic> {
    let through = &line.role.fallthrough;
    let mut zones =
        line.zones.iter().flat_map(|own| through.iter().filter_map(|through| common(through, own))).peekable();
    zones.peek()?;
    if zones.any(|zone| later.iter().any(|other| other.answers_in(zone))) {
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

fn nothing_later(line: &Line<'_>, later: &[Line<'_>]) -> Option<Diagnostic> {
    let is_served = |zone: &Name| later.iter().any(|other| other.answers_in(zone));
    if line.role.effect != Effect::OnAnswers || line.zones.is_empty() || line.zones.iter().any(is_served) {
        return None;
    }
    let message = format!("`{}` has no effect: no later directive of the chain gives answers", line.directive);
    let help =
        "the order of the chain is fixed and does not depend on the order of the lines: see the table of plugins";
    Some(Diagnostic::warning(codes::NOTHING_BELOW, line.name, message).with_help(help))
}

fn nothing_to_use(line: &Line<'_>, chain: &[Line<'_>]) -> Option<Diagnostic> {
    let used = line.role.uses.filter(|used| !chain.iter().any(|other| other.directive == *used))?;
    let message = format!("`{}` has no effect: there is no `{used}` in this server block", line.directive);
    Some(
        Diagnostic::warning(codes::NOTHING_TO_USE, line.name, message)
            .with_help(format!("move it to the block with `{used}`")),
    )
}
