//! Lines of one chain that have nothing to do.

use corefile::Diagnostic;
use wire::Name;

use super::{Line, common, overlap, within};
use crate::codes;
use crate::options::Acts;

/// Where the names of addresses are.
const REVERSE: [&str; 2] = ["in-addr.arpa.", "ip6.arpa."];

pub(super) fn of(chain: &[Line<'_>]) -> Vec<Diagnostic> {
    let mut said = Vec::new();
    for (at, line) in chain.iter().enumerate() {
        let (above, below) = (&chain[..at], &chain[at + 1..]);
        said.extend(never_asked(line, above));
        said.extend(fallthrough_to_nothing(line, below));
        said.extend(nothing_below(line, below));
        said.extend(nothing_to_use(line, chain));
    }
    said
}

/// What of a zone comes past a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Past {
    Nothing,
    /// Names of addresses, and no others.
    Addresses,
    Something,
}

/// A line that answers, but all of its zones are answered above.
fn never_asked(line: &Line<'_>, above: &[Line<'_>]) -> Option<Diagnostic> {
    if !line.answers() {
        return None;
    }
    let holders = line
        .zones
        .iter()
        .map(|zone| above.iter().map(|other| (past(other, zone), other)).min_by_key(|(past, _)| *past));
    let holders: Option<Vec<_>> = holders.collect();
    let (past, holder) = holders?.into_iter().max_by_key(|(past, _)| *past)?;
    let (rest, all) = match past {
        Past::Nothing => ("is never asked", "all that it could"),
        Past::Addresses => ("is asked for names of addresses only", "all others"),
        Past::Something => return None,
    };
    let message = format!("`{}` {rest}: `{}` above answers or denies {all}", line.directive, holder.directive);
    let help = if holder.directive == line.directive {
        "lines of one directive are tried from the top: put the one for the shorter zone last, or make one line of two for \
         the same zone"
            .to_owned()
    } else {
        format!("let names go on with `fallthrough` if `{}` has it, or remove one of the two", holder.directive)
    };
    Some(Diagnostic::warning(codes::NEVER_ASKED, line.name, message).with_help(help))
}

/// What of a zone comes past a line above.
fn past(line: &Line<'_>, zone: &Name) -> Past {
    let ends = line.role.acts == Acts::AnswersAll && line.zones.iter().any(|own| within(zone, own));
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

fn fallthrough_to_nothing(line: &Line<'_>, below: &[Line<'_>]) -> Option<Diagnostic> {
    let through = &line.role.fallthrough;
    let mut zones =
        line.zones.iter().flat_map(|own| through.iter().filter_map(|through| common(through, own))).peekable();
    zones.peek()?;
    if zones.any(|zone| below.iter().any(|other| other.answers_in(zone))) {
        return None;
    }
    let message = format!("what `{}` does not have falls through to nothing", line.directive);
    let problem = Diagnostic::warning(codes::FALLTHROUGH_TO_NOTHING, line.fallthrough, message)
        .with_label("no directive below answers these names: they end with SERVFAIL")
        .with_help("add a directive that answers them; or remove it, so that names in the zones of such a directive are denied");
    Some(problem)
}

fn nothing_below(line: &Line<'_>, below: &[Line<'_>]) -> Option<Diagnostic> {
    let is_served = |zone: &Name| below.iter().any(|other| other.answers_in(zone));
    if line.role.acts != Acts::OnAnswers || line.zones.is_empty() || line.zones.iter().any(is_served) {
        return None;
    }
    let message = format!("`{}` has nothing to do: no directive below it gives answers", line.directive);
    let help = "the order of a chain is fixed, whatever the order of the lines: see the table of plugins";
    Some(Diagnostic::warning(codes::NOTHING_BELOW, line.name, message).with_help(help))
}

fn nothing_to_use(line: &Line<'_>, chain: &[Line<'_>]) -> Option<Diagnostic> {
    let used = line.role.uses.filter(|used| !chain.iter().any(|other| other.directive == *used))?;
    let message = format!("`{}` has nothing to do: there is no `{used}` in this server block", line.directive);
    Some(
        Diagnostic::warning(codes::NOTHING_TO_USE, line.name, message)
            .with_help(format!("move it to the block with `{used}`")),
    )
}
