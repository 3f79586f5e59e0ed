//! Rules for plugins that serve zones: options that moved to `transfer`, and options without effect.

use corefile::{Directive, Line, ServerBlock};

use crate::migrate::NoteKind;
use crate::migrate::draft::Draft;

/// Option without effect: name, release, reason.
pub(super) type Gone = (&'static str, &'static str, &'static str);

pub(super) const UPSTREAM: Gone = ("upstream", "1.5.0", "this server always resolves outside names itself");
const STUBZONES: Gone = ("stubzones", "1.5.0", "use `forward ZONE ADDRESS` in the Corefile");

pub(super) fn file(block: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    remove_options(&[UPSTREAM], directive, draft);
    no_reload(directive, draft);
    let named = directive.args.get(1..).unwrap_or_default();
    move_transfer(&draft.zones(named, block), directive, draft);
}

pub(super) fn auto(block: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    remove_options(&[UPSTREAM], directive, draft);
    no_reload(directive, draft);
    for line in directive.lines() {
        directory_timeout(line, draft);
    }
    move_transfer(&draft.zones(&directive.args, block), directive, draft);
}

pub(super) fn secondary(block: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    remove_options(&[UPSTREAM], directive, draft);
    move_transfer(&draft.zones(&directive.args, block), directive, draft);
}

pub(super) fn etcd(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    remove_options(&[UPSTREAM, STUBZONES], directive, draft);
}

pub(super) fn route53(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    remove_options(&[UPSTREAM], directive, draft);
}

/// Removes options without effect.
pub(super) fn remove_options(gone: &[Gone], directive: &Directive, draft: &mut Draft<'_>) {
    for line in directive.lines() {
        let Some(name) = line.words.first() else { continue };
        if let Some((option, since, why)) = gone.iter().find(|(option, ..)| *option == name.text) {
            draft.note(NoteKind::Dropped, name.span, *since, format!("`{option}` of `{}`: {why}", directive.name.text));
            draft.remove(line);
        }
    }
}

/// Moves `transfer to` into the directive `transfer`, which exists since 1.8.0.
pub(super) fn move_transfer(zones: &str, directive: &Directive, draft: &mut Draft<'_>) {
    let is_out =
        |line: &&Line| matches!(line.words.as_slice(), [one, two, ..] if one.text == "transfer" && two.text == "to");
    let lines: Vec<&Line> = directive.lines().iter().filter(is_out).collect();
    let Some(first) = lines.first().and_then(|line| line.words.first()) else { return };
    let mut written = vec![format!("transfer {zones} {{")];
    for line in &lines {
        written.push(format!("    to {}", draft.written(line.words.get(2..).unwrap_or_default())));
        draft.remove(line);
    }
    written.push("}".to_owned());
    let text = format!("`transfer to` of `{}` is the directive `transfer`", directive.name.text);
    draft.note(NoteKind::Changed, first.span, "1.8.0", text);
    draft.add_below(directive, &written);
}

/// Replaces `no_reload` with `reload 0`.
fn no_reload(directive: &Directive, draft: &mut Draft<'_>) {
    for word in directive.lines().iter().filter_map(|line| line.words.first()).filter(|word| word.text == "no_reload") {
        draft.replace(word.span, "reload 0");
        draft.note(NoteKind::Changed, word.span, "1.5.0", "`no_reload` is written `reload 0`");
    }
}

/// Replaces the number of seconds at the end of `directory` with the option `reload`.
fn directory_timeout(line: &Line, draft: &mut Draft<'_>) {
    let [name, .., seconds] = line.words.as_slice() else { return };
    if name.text != "directory" || line.words.len() < 3 || seconds.text.parse::<u32>().is_err() {
        return;
    }
    let text = format!("the `{0}` at the end of `directory` is written `reload {0}s`", seconds.text);
    draft.note(NoteKind::Changed, seconds.span, "1.5.0", text);
    draft.replace(name.span, &format!("reload {}s\ndirectory", seconds.text));
    draft.remove_words(core::slice::from_ref(seconds));
}
