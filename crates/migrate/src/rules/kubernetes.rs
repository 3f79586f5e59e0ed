//! Options of `kubernetes` that are gone, and `federation`.

use corefile::{Directive, ServerBlock};

use super::zones::{move_transfer, take_away};
use crate::What;
use crate::corefile::Draft;

/// Options that do nothing, and since when.
const GONE: &[(&str, &str)] = &[
    ("upstream", "names outside are always asked for by this server itself (ignored since 1.5.0, removed in 1.7.0)"),
    ("resyncperiod", "objects are watched, not listed again and again (ignored since 1.6.0, removed in 1.7.0)"),
];

pub(super) fn kubernetes(block: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    take_away(GONE, directive, draft);
    move_transfer(&draft.zones(&directive.args, block), directive, draft);
    for line in directive.lines() {
        if let [name, _, rest @ ..] = line.words.as_slice()
            && name.text == "endpoint"
            && !rest.is_empty()
        {
            let text = "only the first URL of `endpoint` counts (since 1.4.0): a load balancer in front of API servers has one";
            draft.note(What::Dropped, name.span, text);
            draft.remove_words(rest);
        }
    }
    let text =
        "`*` and `any` in names stand for nothing any more (removed in 1.9.0): `compat kube-dns` answers `*` again";
    draft.note(What::Look, directive.name.span, text);
}

pub(super) fn federation(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    let why = "aliases are always followed by asking this server";
    take_away(&[("upstream", why)], directive, draft);
    let text = "`federation` (removed in 1.7.0) is `federations` here; it watches Nodes for their zone and region: \
                `portolan check --rbac` prints the right that it needs";
    draft.replace(directive.name.span, "federations");
    draft.note(What::Changed, directive.name.span, text);
}
