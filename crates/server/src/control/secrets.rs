//! Corefile without secrets, for reports.
//!
//! Words that may be secret are replaced where they were written. Variables stay as they were written too, so that
//! their values do not show.

use std::ops::Range;

use corefile::{Corefile, Directive, Token};

/// Text in place of a secret.
const REMOVED: &str = "[removed]";
/// Parts of the names of properties and options whose values may be secret, without `-` and `_`.
const SECRET_NAMES: [&str; 10] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "credential",
    "accesskey",
    "apikey",
    "bearer",
    "authorization",
];
/// Parts of names that are too common to remove the words after them, such as `key` in `tls cert key`. They count in
/// `name=value`, in `name: value` and in options.
const SECRET_PARTS: [&str; 7] = ["key", "pwd", "pass", "auth", "sig", "signature", "psk"];
/// Directives whose arguments run a program, which may contain anything.
const PROGRAMS: [&str; 1] = ["on"];

/// Returns the files of a Corefile, each with its name and its text without secrets.
pub(crate) fn without_secrets(written: &Corefile) -> Vec<(String, String)> {
    let mut secrets: Vec<(String, Range<usize>)> = Vec::new();
    for directive in written.blocks.iter().flat_map(|block| &block.directives) {
        for token in secret_words(directive) {
            secrets.push((written.sources.name(token.span.file).display().to_string(), range(token)));
        }
    }
    let file = |(name, text): (&std::path::Path, &str)| {
        let name = name.display().to_string();
        let own = secrets.iter().filter(|(file, _)| *file == name).map(|(_, range)| range.clone());
        let text = cut(text, own.collect());
        (name.clone(), text.split_inclusive('\n').map(hide).collect())
    };
    written.sources.files().map(file).collect()
}

/// Returns a line of configuration, a command line or a message without what may be secret in it.
fn hide(line: &str) -> String {
    without_values(&without_url_secrets(line))
}

fn range(token: &Token) -> Range<usize> {
    token.span.start as usize..token.span.end as usize
}

/// Returns the words of a directive that may be secret.
fn secret_words(directive: &Directive) -> Vec<&Token> {
    let mut words: Vec<&Token> = Vec::new();
    if PROGRAMS.contains(&directive.name.text.as_str()) {
        words.extend(directive.args.iter().skip(2));
    }
    for line in directive.lines() {
        if let Some((name, values)) = line.words.split_first()
            && names_secret(&name.text)
        {
            words.extend(values);
        }
    }
    words
}

/// Replaces the ranges of a text.
fn cut(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_by_key(|range| range.start);
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        if range.start >= end {
            out.push_str(text.get(end..range.start).unwrap_or_default());
            out.push_str(REMOVED);
            end = range.end;
        }
    }
    out.push_str(text.get(end..).unwrap_or_default());
    out
}

fn names_secret(word: &str) -> bool {
    let plain: String = word.to_lowercase().chars().filter(|c| !matches!(c, '-' | '_')).collect();
    SECRET_NAMES.iter().any(|part| plain.contains(part))
}

/// Returns true if the value that is attached to this name may be secret: `name=value`, `name: value`, `--name value`.
fn names_attached_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    names_secret(name) || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| SECRET_PARTS.contains(&part))
}

/// Removes the words after one that names a secret, and the values of `name=value`. This covers text that is not
/// parsed: comments, and snippets that nothing imports.
fn without_values(line: &str) -> String {
    let (mut out, mut is_secret, mut last) = (String::with_capacity(line.len()), false, "");
    for word in line.split_inclusive(char::is_whitespace) {
        let text = word.trim_end();
        match text {
            "" | "{" | "}" => out.push_str(word),
            "=" | ":" => {
                is_secret |= names_attached_secret(last);
                out.push_str(word);
            }
            _ if is_secret => {
                out.push_str(REMOVED);
                out.push_str(&word[text.len()..]);
            }
            _ => {
                let value = attached_value(text);
                // Without a value, or with one that is quoted and goes on, the next words belong to it.
                is_secret = value.map_or_else(|| names_next_words(text), |start| is_open(&text[start..]));
                out.push_str(&text[..value.unwrap_or(text.len())]);
                out.push_str(value.map_or("", |_| REMOVED));
                out.push_str(&word[text.len()..]);
            }
        }
        last = if text.is_empty() { last } else { text };
    }
    out
}

/// Returns true if the words after this one may be secret.
fn names_next_words(word: &str) -> bool {
    let is_option = word.starts_with('-') || word.ends_with([':', '=']);
    names_secret(word) || is_option && names_attached_secret(word)
}

/// Returns true if a value starts with a quote that is not closed.
fn is_open(value: &str) -> bool {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    quote.is_some_and(|quote| value.len() == 1 || !value.ends_with(quote))
}

/// Returns where the first value in `name=value` or `name:value` starts whose name is that of a secret.
fn attached_value(word: &str) -> Option<usize> {
    let mut start = 0;
    for (at, separator) in word.match_indices(['=', ':', '&', '?', ';', ',']) {
        let value = at + separator.len();
        let is_assignment = matches!(separator, "=" | ":") && value < word.len();
        if is_assignment && !word[value..].starts_with("//") && names_attached_secret(&word[start..at]) {
            return Some(value);
        }
        start = if separator == ":" { start } else { value };
    }
    None
}

/// Removes the user information, the query and the fragment of URLs: `http://user:password@host/path?query`.
fn without_url_secrets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`')).unwrap_or(after.len());
        let (url, next) = after.split_at(end);
        // The template of DNS over HTTPS (RFC 8484 §4.1) has no value.
        let query = url.find(['?', '#']).filter(|_| !url.ends_with("{?dns}"));
        let authority = url.find(['/', '?', '#']).unwrap_or(url.len());
        let host = url[..authority].rfind('@').unwrap_or(0);
        out.push_str(if host == 0 { "" } else { REMOVED });
        out.push_str(&url[host..query.map_or(url.len(), |at| at + 1)]);
        out.push_str(query.map_or("", |_| REMOVED));
        rest = next;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_values_that_may_be_secret() {
        let text = "\
. {
    tsig {
        secret key. \"NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=\"
    }
    etcd {
        credentials user hunter2
        endpoint http://user:hunter3@10.0.0.1:2379 http://10.0.0.2:2379/a@b
    }
    on startup notify --token hunter4
    forward . {$UPSTREAM}
}
(unused) {
    tsig {
        secret key. hunter5
    }
}
# password: hunter6
";
        let parsed = corefile::parse("Corefile".as_ref(), text.to_owned(), &corefile::NoFiles);
        let files = without_secrets(&parsed.corefile);
        let expected = "\
. {
    tsig {
        secret [removed] [removed]
    }
    etcd {
        credentials [removed] [removed]
        endpoint http://[removed]@10.0.0.1:2379 http://10.0.0.2:2379/a@b
    }
    on startup notify [removed] [removed]
    forward . {$UPSTREAM}
}
(unused) {
    tsig {
        secret [removed] [removed]
    }
}
# password: [removed]
";
        assert_eq!(files, [("Corefile".to_owned(), expected.to_owned())]);
    }

    #[test]
    fn hides_what_may_be_secret_in_a_line() {
        for (line, expected) in [
            ("trace zipkin http://h/api?apikey=S", "trace zipkin http://h/api?[removed]"),
            ("trace zipkin \"http://h/api?a=1&x=S#S\" b", "trace zipkin \"http://h/api?[removed]\" b"),
            ("forward . https://h/dns-query#S", "forward . https://h/dns-query#[removed]"),
            ("HTTPS://user:S@h:1/a https://S@h", "HTTPS://[removed]@h:1/a https://[removed]@h"),
            ("forward . https://h/dns-query{?dns}", "forward . https://h/dns-query{?dns}"),
            ("http://u:S@h?q", "http://[removed]@h?[removed]"),
            ("run --token=S --port=5", "run --token=[removed] --port=5"),
            ("run --API-KEY S", "run --API-KEY [removed]"),
            ("run -pwd 'S S'", "run -pwd [removed] [removed]"),
            ("run --auth=\"S S\"", "run --auth=[removed] [removed]"),
            ("Password = S", "Password = [removed]"),
            ("key: S", "key: [removed]"),
            ("AWS_SECRET_ACCESS_KEY=S X_SIG=S", "AWS_SECRET_ACCESS_KEY=[removed] X_SIG=[removed]"),
            ("h/api?a=1&token=S", "h/api?a=1&token=[removed]"),
            ("Authorization: Bearer S", "Authorization: [removed] [removed]"),
            ("tls cert.pem key.pem ca.pem", "tls cert.pem key.pem ca.pem"),
            ("forward . 10.0.0.1:53 [::1]:53", "forward . 10.0.0.1:53 [::1]:53"),
        ] {
            assert_eq!(hide(line), expected);
        }
    }
}
