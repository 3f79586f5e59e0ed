//! The diagnostics of `portolan check` about CoreDNS: what a release does not know, and since when it knows a word.

use compat::coredns::{Known, Release, unknown_to};
use corefile::{Diagnostic, Span};

use process::configuration::Configuration;

/// Errors about parts that this build lacks. CoreDNS starts with such a Corefile.
const NOT_HERE: [&str; 2] = ["directives/not-here", "options/not-here"];
/// Errors about limits of this server.
const LIMITS: [&str; 2] = ["setup/too-large", "corefile/file-too-large"];
/// Errors that CoreDNS reports since [`CHECKS_LISTENERS`].
const LISTENERS: [&str; 2] = ["keys/tls-conflict", "keys/streams-conflict"];
/// First release that refuses server blocks with different settings on one encrypted address.
const CHECKS_LISTENERS: Release = Release::new(1, 15, 0);
/// Errors about words that this build does not know.
const UNKNOWN: [&str; 2] = ["directives/unknown", "options/unknown-property"];

/// Replaces the errors of this server by those that a release of CoreDNS would have. Both have most in common.
pub(crate) fn judge(configuration: &mut Configuration, release: Release) {
    let known = Known::of(&configuration.written);
    let is_known = |place: Span| known.since(place).is_some();
    configuration.problems.retain(|problem| {
        let code = problem.code.name();
        let is_only_here = NOT_HERE.contains(&code)
            || LIMITS.contains(&code)
            || (release < CHECKS_LISTENERS && LISTENERS.contains(&code))
            || (UNKNOWN.contains(&code) && is_known(problem.span));
        !is_only_here
    });
    // A word can be wrong here and unknown there. One error says it.
    let wrong: Vec<Span> = configuration.problems.iter().filter(|problem| problem.is_error()).map(|p| p.span).collect();
    let unknown = unknown_to(release, &configuration.written);
    let further: Vec<Diagnostic> = unknown.into_iter().filter(|problem| !wrong.contains(&problem.span)).collect();
    configuration.add_problems(&further);
    // A snippet is in the tree once for each use.
    configuration.problems.dedup_by(|one, other| (one.span, one.code) == (other.span, other.code));
}

/// Adds to errors about words that this build does not have since when CoreDNS has them.
pub(crate) fn add_releases(configuration: &mut Configuration) {
    let is_missing = |problem: &Diagnostic| {
        let code = problem.code.name();
        NOT_HERE.contains(&code) || UNKNOWN.contains(&code)
    };
    if !configuration.problems.iter().any(is_missing) {
        return;
    }
    let known = Known::of(&configuration.written);
    for problem in configuration.problems.iter_mut().filter(|problem| is_missing(problem)) {
        match known.since(problem.span) {
            Some(Release::OLDEST) | None => {}
            Some(since) => problem.help = Some(format!("CoreDNS accepts this since {since}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use compat::coredns::{Known, unknown_to};
    use config::DirectiveEntry;

    use super::Release;

    #[test]
    fn every_directive_is_either_coredns_or_unknown_to_it() {
        let names = plugins::DIRECTIVES.entries().iter().filter(|entry| !matches!(entry, DirectiveEntry::Removed(_)));
        for name in names.map(DirectiveEntry::name) {
            let text = format!(". {{\n {name}\n}}\n");
            let file = corefile::parse("Corefile".as_ref(), text, &corefile::NoFiles).corefile;
            let is_known = Known::of(&file).since(file.blocks[0].directives[0].name.span).is_some();
            assert_ne!(is_known, !unknown_to(Release::NEWEST, &file).is_empty(), "{name}: list it in compat::coredns");
        }
    }
}
