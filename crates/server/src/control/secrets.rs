//! Corefile without secrets, for reports.
//!
//! Words that may be secret are replaced where they were written. Variables stay as they were written too, so that
//! their values do not show.

use std::ops::Range;

use corefile::{Corefile, Directive, Token};

/// Text in place of a secret.
const REMOVED: &str = "[removed]";
/// Parts of the names of properties whose values may be secret.
const SECRET_NAMES: [&str; 6] = ["secret", "password", "token", "credential", "access_key", "apikey"];
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
        (name.clone(), text.split_inclusive('\n').map(|line| without_users(&without_values(line))).collect())
    };
    written.sources.files().map(file).collect()
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
    SECRET_NAMES.iter().any(|part| word.to_lowercase().contains(part))
}

/// Removes the words after one that names a secret. This covers text that is not parsed: comments, and snippets that
/// nothing imports.
fn without_values(line: &str) -> String {
    let (mut out, mut is_secret) = (String::with_capacity(line.len()), false);
    for word in line.split_inclusive(char::is_whitespace) {
        let text = word.trim_end();
        match text {
            "" | "{" | "}" => out.push_str(word),
            _ if is_secret => {
                out.push_str(REMOVED);
                out.push_str(&word[text.len()..]);
            }
            _ => {
                is_secret = names_secret(text);
                out.push_str(word);
            }
        }
    }
    out
}

/// Removes the user information of URLs: `http://user:password@host`.
fn without_users(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || c == '/' || c == '"').unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(at) => {
                out.push_str(REMOVED);
                &after[at..]
            }
            None => after,
        };
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
}
