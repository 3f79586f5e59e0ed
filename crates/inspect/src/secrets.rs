//! Corefile without secrets, for reports.
//!
//! Words that may be secret are replaced where they were written. Variables stay as they were written too, so that
//! their values do not show.

use std::ops::Range;

use corefile::{Corefile, Directive, Token};
use host::mask::{REMOVED, masked_lines, names_secret};

/// Directives whose arguments run a program, which may contain anything.
const PROGRAMS: [&str; 1] = ["on"];

/// Returns the files of a Corefile, each with its name and its text without secrets.
pub fn without_secrets(written: &Corefile) -> Vec<(String, String)> {
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
        (name.clone(), masked_lines(&text))
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
