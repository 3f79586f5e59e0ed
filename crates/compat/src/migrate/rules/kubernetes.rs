//! Rules for removed options of `kubernetes`, and for `federation`.

use corefile::{Directive, Line, ServerBlock};

use super::zones::{Gone, UPSTREAM, move_transfer, remove_options};
use crate::migrate::NoteKind;
use crate::migrate::draft::Draft;

/// Options without effect: name, release, reason.
const GONE: &[Gone] = &[UPSTREAM, ("resyncperiod", "1.6.0", "objects are watched, not listed periodically")];
/// Requirement of *federations*, for notes.
const WATCHES_NODES: &str =
    "it watches Nodes for their zone and region: `portolan check --rbac` prints the permission that it needs";

pub(super) fn kubernetes(block: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    remove_options(GONE, directive, draft);
    move_transfer(&draft.zones(&directive.args, block), directive, draft);
    move_federations(directive, draft);
    for line in directive.lines() {
        if let [name, _, rest @ ..] = line.words.as_slice()
            && name.text == "endpoint"
            && !rest.is_empty()
        {
            let text = "only the first URL of `endpoint` is used: put a load balancer in front of several API servers";
            draft.note(NoteKind::Dropped, name.span, "1.4.0", text);
            draft.remove_words(rest);
        }
    }
    let text = "`*` and `any` in names no longer match anything: `compat kube-dns` answers `*` again";
    draft.note(NoteKind::Review, directive.name.span, "1.9.0", text);
}

/// Moves `federation NAME DOMAIN` out of `kubernetes` into the directive `federations`.
fn move_federations(directive: &Directive, draft: &mut Draft<'_>) {
    let is_one = |line: &&Line| matches!(line.words.as_slice(), [name, _, _] if name.text == "federation");
    let lines: Vec<&Line> = directive.lines().iter().filter(is_one).collect();
    let Some(first) = lines.first().and_then(|line| line.words.first()) else { return };
    // Services have no names in reverse zones. Without zones of its own, `federations` uses those of the block, like
    // `kubernetes`.
    let zones = directive.args.iter().filter(|zone| !zone.text.trim_end_matches('.').ends_with(".arpa"));
    let zones: String = zones.map(|zone| format!("{} ", draft.written(core::slice::from_ref(zone)))).collect();
    let mut written = vec![format!("federations {zones}{{")];
    for line in &lines {
        written.push(format!("    {}", draft.written(line.words.get(1..).unwrap_or_default())));
        draft.remove(line);
    }
    written.push("}".to_owned());
    let text = format!("`federation` of `kubernetes` is the directive `federations` here; {WATCHES_NODES}");
    draft.note(NoteKind::Changed, first.span, "1.7.0", text);
    draft.add_below(directive, &written);
}

pub(super) fn federation(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    let why = "this server always resolves the targets of aliases itself";
    remove_options(&[("upstream", "1.5.0", why)], directive, draft);
    let text = format!("`federation` is `federations` here; {WATCHES_NODES}");
    draft.replace(directive.name.span, "federations");
    draft.note(NoteKind::Changed, directive.name.span, "1.7.0", text);
}
