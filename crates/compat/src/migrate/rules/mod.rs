//! Migration rules by directive: old syntax, new syntax, and the release of CoreDNS that changed it.
//!
//! A rule rewrites words and adds a note. It never guesses intentions.

mod kubernetes;
mod proxy;
mod zones;

use corefile::{Directive, ServerBlock, Token};

use crate::migrate::NoteKind;
use crate::migrate::draft::Draft;

/// Rule for one directive.
type Rule = fn(&ServerBlock, &Directive, &mut Draft<'_>);

/// Rules by directive. Other directives stay as they are.
static RULES: &[(&str, Rule)] = &[
    ("proxy", proxy::proxy),
    ("kubernetes", kubernetes::kubernetes),
    ("federation", kubernetes::federation),
    ("file", zones::file),
    ("auto", zones::auto),
    ("secondary", zones::secondary),
    ("etcd", zones::etcd),
    ("route53", zones::route53),
    ("reverse", reverse),
    ("startup", command),
    ("shutdown", command),
    ("prometheus", prometheus),
    ("health", health),
    ("forward", forward),
];

/// Applies the rule of a directive, if there is one.
pub(crate) fn apply(block: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    if let Some((_, rule)) = RULES.iter().find(|(name, _)| *name == directive.name.text) {
        rule(block, directive, draft);
    }
}

/// Note on a forward of `global` to another server.
pub(crate) const MESH: &str = "if istiocoredns answers for `global` here, replace it with `istio`: \
                               docs/from-istio-coredns-plugin.md";

/// Checks a block as a whole: plugins that newer installations have, and forwards for a mesh.
pub(crate) fn review_block(block: &ServerBlock, draft: &mut Draft<'_>) {
    let of = |name: &str| block.directives.iter().find(|directive| directive.name.text == name);
    if let (Some(kubernetes), None) = (of("kubernetes"), of("ready")) {
        add(kubernetes, "ready", "1.5.0", "a Pod gets no queries until it is ready", draft);
    }
    if let (Some(forward), None) = (of("forward").or(of("proxy")), of("loop")) {
        add(forward, "loop", "1.2.1", "it detects a server that forwards to itself", draft);
    }
    look_at_mesh(block, draft);
}

/// Notes directives that forward the names of a mesh to a second server, which `istio` can replace.
fn look_at_mesh(block: &ServerBlock, draft: &mut Draft<'_>) {
    let is_mesh = |zone: &Token| matches!(zone.text.split(':').next(), Some("global" | "global."));
    let is_block = block.keys.iter().any(is_mesh);
    for directive in &block.directives {
        let asks = matches!(directive.name.text.as_str(), "proxy" | "forward" | "grpc");
        if asks && (is_block || directive.args.first().is_some_and(is_mesh)) {
            draft.directive.clone_from(&directive.name.text);
            draft.note(NoteKind::Review, directive.name.span, None, MESH);
        }
    }
}

/// Adds a line that newer installations have, or only notes that it is missing.
fn add(below: &Directive, line: &str, since: &'static str, why: &str, draft: &mut Draft<'_>) {
    line.clone_into(&mut draft.directive);
    if draft.defaults {
        let text = format!("`{line}` is added, as in newer installations: {why}");
        draft.note(NoteKind::Changed, below.name.span, since, text);
        draft.add_below(below, &[line.to_owned()]);
    } else {
        draft.note(
            NoteKind::Advice,
            below.name.span,
            since,
            format!("newer installations have `{line}` here too: {why}"),
        );
    }
}

/// Adds an option to a directive, or only notes that it is missing.
fn add_option(directive: &Directive, option: &str, since: &'static str, why: &str, draft: &mut Draft<'_>) {
    if !draft.defaults {
        let text = format!("`{}` of newer installations has `{option}`: {why}", directive.name.text);
        return draft.note(NoteKind::Advice, directive.name.span, since, text);
    }
    let text = format!("`{option}` is added, as in newer installations: {why}");
    draft.note(NoteKind::Changed, directive.name.span, since, text);
    match &directive.block {
        Some(inner) => draft.replace(inner.open, &format!("{{\n    {option}")),
        None => draft.append(directive, &format!(" {{\n    {option}\n}}")),
    }
}

/// Returns true if a block has an option.
fn has(directive: &Directive, option: &str) -> bool {
    directive.lines().iter().any(|line| line.words.first().is_some_and(|word| word.text == option))
}

fn health(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    if !has(directive, "lameduck") {
        let why = "clients have time to switch to another server when this one ends";
        add_option(directive, "lameduck 5s", "1.6.5", why, draft);
    }
}

fn forward(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    if !has(directive, "max_concurrent") {
        add_option(directive, "max_concurrent 1000", "1.7.0", "it limits memory while upstreams are silent", draft);
    }
}

fn reverse(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    let text = "`reverse` is gone: use `template` for answers computed from the name, `hosts` or `file` for others";
    draft.note(NoteKind::Lost, directive.name.span, "1.3.0", text);
    draft.remove_span(directive.span());
}

fn command(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    let name = &directive.name;
    draft.replace(name.span, &format!("on {}", name.text));
    draft.note(NoteKind::Changed, name.span, "1.1.0", format!("`{0}` is written `on {0}`", name.text));
}

fn prometheus(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    let text = "names of metrics have changed (`coredns_dns_request_count_total` is `coredns_dns_requests_total` and \
                so on): update dashboards and alerts, see the list in docs/from-older-coredns.md";
    draft.note_once_per_file(NoteKind::Review, directive.name.span, "1.7.0", text);
}
