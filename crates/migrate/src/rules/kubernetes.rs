//! Options of `kubernetes` that are gone, and `federation`.

use corefile::{Directive, ServerBlock};

use super::zones::{Gone, UPSTREAM, move_transfer, take_away};
use crate::What;
use crate::corefile::Draft;

/// Options that do nothing, since when, and why.
const GONE: &[Gone] = &[UPSTREAM, ("resyncperiod", "1.6.0", "objects are watched, not listed again and again")];

pub(super) fn kubernetes(block: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    take_away(GONE, directive, draft);
    move_transfer(&draft.zones(&directive.args, block), directive, draft);
    for line in directive.lines() {
        if let [name, _, rest @ ..] = line.words.as_slice()
            && name.text == "endpoint"
            && !rest.is_empty()
        {
            let text = "only the first URL of `endpoint` counts: a load balancer in front of API servers has one";
            draft.note(What::Dropped, name.span, "1.4.0", text);
            draft.remove_words(rest);
        }
    }
    let text = "`*` and `any` in names stand for nothing any more: `compat kube-dns` answers `*` again";
    draft.note(What::Look, directive.name.span, "1.9.0", text);
}

pub(super) fn federation(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    let why = "aliases are always followed by asking this server";
    take_away(&[("upstream", "1.5.0", why)], directive, draft);
    let text = "`federation` is `federations` here; it watches Nodes for their zone and region: \
                `portolan check --rbac` prints the right that it needs";
    draft.replace(directive.name.span, "federations");
    draft.note(What::Changed, directive.name.span, "1.7.0", text);
}
