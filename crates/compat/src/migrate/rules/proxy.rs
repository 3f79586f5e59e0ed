//! Rules for `proxy`, which *forward* and *grpc* replace. CoreDNS deprecated it in 1.4.0 and removed it in 1.5.0.

use corefile::{Directive, Line, ServerBlock};

use crate::migrate::NoteKind;
use crate::migrate::draft::Draft;

/// Release of CoreDNS that removed `proxy`.
const GONE: &str = "1.5.0";

pub(super) fn proxy(_: &ServerBlock, directive: &Directive, draft: &mut Draft<'_>) {
    let calls = directive.lines().iter().any(|line| matches!(words(line).as_slice(), ["protocol", "grpc", ..]));
    let name = if calls { "grpc" } else { "forward" };
    draft.replace(directive.name.span, name);
    draft.note(NoteKind::Changed, directive.name.span, GONE, format!("`proxy` is `{name}`"));
    for line in directive.lines() {
        option(line, calls, draft);
    }
}

fn words(line: &Line) -> Vec<&str> {
    line.words.iter().map(|word| word.text.as_str()).collect()
}

fn option(line: &Line, calls: bool, draft: &mut Draft<'_>) {
    match words(line).as_slice() {
        ["except", ..] | ["policy", "random" | "round_robin" | "sequential"] => {}
        ["policy", "first"] => write(line, "policy sequential", draft),
        ["policy", other, ..] => {
            lose(line, &format!("policy `{other}` does not exist: upstreams are chosen at random"), draft);
        }
        ["max_fails", _] if !calls => {}
        ["protocol", "dns"] | ["protocol", "grpc", "insecure"] => drop_line(line, "this is the default", draft),
        ["protocol", "dns", "force_tcp"] => write(line, "force_tcp", draft),
        ["protocol", "grpc", files @ ..] => {
            let files = draft.written(&line.words[line.words.len() - files.len()..]);
            write(line, format!("tls {files}").trim_end(), draft);
        }
        ["protocol", "https_google", ..] => {
            let why = "Google has shut this protocol down: `forward . tls://8.8.8.8 tls://8.8.4.4 {\n \
                       tls_servername dns.google\n}` queries the same servers over TLS";
            gone(NoteKind::Lost, line, "1.2.0", &why.replace('\n', ""), draft);
        }
        ["fail_timeout", ..] => {
            lose(line, "failing upstreams are probed every 0.5s instead (`health_check`)", draft);
        }
        ["health_check", ..] => {
            lose(line, "health checks use DNS instead of HTTP, and only for failing upstreams", draft);
        }
        ["spray", ..] => drop_line(line, "if all upstreams are down, a random one is tried anyway", draft),
        [name, ..] => lose(line, &format!("`{name}` is not an option here"), draft),
        [] => {}
    }
}

fn write(line: &Line, text: &str, draft: &mut Draft<'_>) {
    let [first, .., last] = line.words.as_slice() else { return };
    draft.replace(first.span.up_to(last.span), text);
    draft.note(NoteKind::Changed, first.span, GONE, format!("`{}` is written `{text}`", words(line).join(" ")));
}

fn drop_line(line: &Line, why: &str, draft: &mut Draft<'_>) {
    gone(NoteKind::Dropped, line, GONE, why, draft);
}

fn lose(line: &Line, why: &str, draft: &mut Draft<'_>) {
    gone(NoteKind::Lost, line, GONE, why, draft);
}

fn gone(kind: NoteKind, line: &Line, since: &'static str, why: &str, draft: &mut Draft<'_>) {
    if let Some(first) = line.words.first() {
        draft.note(kind, first.span, since, format!("`{}`: {why}", words(line).join(" ")));
    }
    draft.remove(line);
}
