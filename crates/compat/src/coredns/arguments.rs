//! Arguments that not every release of CoreDNS accepts, although all know the word before them.

use corefile::{Directive, Token};

use super::Release;

/// Form of a line.
pub(super) struct Form {
    directive: &'static str,
    /// Finds the argument in the words of a line: the arguments of the directive, or a line of its block.
    find: fn(&[Token]) -> Option<&Token>,
    /// First release that accepts it; `None` if no release does.
    pub(super) since: Option<Release>,
    /// What to do without it, as a sentence without a full stop.
    pub(super) instead: &'static str,
}

/// All forms.
static FORMS: &[Form] = &[
    Form {
        directive: "trace",
        find: |line| line.first().filter(|word| word.text.eq_ignore_ascii_case("otlp")),
        since: None,
        instead: "CoreDNS sends traces as `zipkin` or `datadog` only",
    },
    Form {
        directive: "hosts",
        find: |line| value(line, "ttl").filter(|word| word.text.parse() == Ok(0)),
        since: None,
        instead: "use a TTL of at least 1",
    },
    Form {
        directive: "siit",
        find: |line| value(line, "eam").filter(|_| line.iter().any(|word| word.text.contains('/'))),
        since: None,
        instead: "write one `eam` line for each address",
    },
    Form {
        directive: "forward",
        find: |line| line.iter().find(|word| word.text.starts_with("https://")),
        since: Some(Release::new(1, 14, 5)),
        instead: "use an upstream over `tls://`",
    },
    Form {
        directive: "forward",
        find: |line| line.iter().find(|word| word.text.starts_with("quic://")),
        since: Some(Release::new(1, 15, 0)),
        instead: "use an upstream over `tls://`",
    },
    Form {
        directive: "rewrite",
        find: |line| rewritten(line, "rcode").and_then(<[Token]>::first),
        since: Some(Release::new(1, 11, 2)),
        instead: "remove the rule",
    },
    Form {
        directive: "rewrite",
        find: |line| rewritten(line, "edns0")?.iter().find(|word| word.text == "unset"),
        since: Some(Release::new(1, 12, 3)),
        instead: "remove the rule",
    },
    Form {
        directive: "rewrite",
        find: |line| match rewritten(line, "name")? {
            [_, kind, _, _, word, ..] if kind.text == "regex" && word.text == "metadata" => Some(word),
            _ => None,
        },
        since: Some(Release::new(1, 15, 0)),
        instead: "remove the rule",
    },
    Form {
        directive: "errors",
        find: |line| line.iter().skip(1).find(|word| word.text == "show_first"),
        since: Some(Release::new(1, 14, 0)),
        instead: "remove this word",
    },
    Form {
        directive: "cache",
        find: |line| line.get(3).filter(|_| line[0].text == "serve_stale"),
        since: Some(Release::new(1, 14, 4)),
        instead: "remove this word and the ones after it",
    },
];

/// Returns the arguments of a directive that not every release accepts.
pub(super) fn of(directive: &Directive) -> impl Iterator<Item = (&'static Form, &Token)> {
    let forms = FORMS.iter().filter(|form| form.directive == directive.name.text);
    forms.flat_map(|form| {
        let lines = directive.lines().iter().map(|line| line.words.as_slice());
        core::iter::once(directive.args.as_slice())
            .chain(lines)
            .filter_map(move |line| Some((form, (form.find)(line)?)))
    })
}

/// Returns the first value of a property.
fn value<'a>(line: &'a [Token], property: &str) -> Option<&'a Token> {
    line.get(1).filter(|_| line[0].text == property)
}

/// Returns the rule of a `rewrite` line from its field on, if it is a rule for `field`.
fn rewritten<'a>(line: &'a [Token], field: &str) -> Option<&'a [Token]> {
    let is_flow = |word: &Token| matches!(word.text.as_str(), "continue" | "stop");
    let rule = if line.first().is_some_and(is_flow) { &line[1..] } else { line };
    rule.first().is_some_and(|word| word.text == field).then_some(rule)
}
