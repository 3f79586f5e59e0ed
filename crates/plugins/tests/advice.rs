//! Checks warnings about whole Corefiles against `advice.txt`: each expected one appears at its word, and no other.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use config::{Planning, plan};
use corefile::{Diagnostic, NoFiles, Span};

/// Prefixes of the diagnostic codes to compare.
const ROOMS: [&str; 4] = ["chain/", "keys/", "directives/", "options/"];

#[test]
fn each_corefile_has_exactly_the_marked_warnings() {
    let cases = include_str!("advice.txt").split("\n== ").skip(1);
    let wrong: Vec<String> = cases.filter_map(|case| check(case).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(case: &str) -> Result<(), String> {
    let (title, marked) = case.split_once('\n').unwrap_or((case, ""));
    let (text, mut wanted) = unmark(marked);
    let mut said: Vec<_> = problems(&text).iter().flat_map(|problem| say(problem, &text)).collect();
    said.sort();
    wanted.sort();
    if said == wanted { Ok(()) } else { Err(format!("{title}:\n  marked {wanted:?}\n  said   {said:?}")) }
}

/// Returns the offset and mark of a problem, and of the other word that it points at.
fn say(problem: &Diagnostic, text: &str) -> Vec<(usize, String)> {
    let at = |code: &str, span: Span| {
        let (start, end) = (span.start as usize, span.end as usize);
        (start, format!("{code} {}", &text[start..end]))
    };
    let other = problem.other.iter().map(|(span, _)| at("other", *span));
    std::iter::once(at(problem.code.name(), problem.span)).chain(other).collect()
}

/// Removes the marks `«CODE: WORD»` from the text, and returns them with their offsets.
fn unmark(marked: &str) -> (String, Vec<(usize, String)>) {
    let (mut text, mut wanted) = (String::new(), Vec::new());
    for (at, part) in marked.split('«').enumerate() {
        let (mark, rest) = if at == 0 { ("", part) } else { part.split_once('»').unwrap_or((part, "")) };
        if let Some((code, word)) = mark.split_once(": ") {
            wanted.push((text.len(), format!("{code} {word}")));
            text.push_str(word);
        }
        text.push_str(rest);
    }
    (text, wanted)
}

fn problems(text: &str) -> Vec<Diagnostic> {
    let parsed = corefile::parse(Path::new("Corefile"), text.to_owned(), &NoFiles);
    let mut problems = parsed.diagnostics;
    let interface = |name: &str| (name == "lo").then(|| vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    let planning =
        Planning { entries: plugins::DIRECTIVES.entries(), dns_port: 53, interface: &interface, memory: None };
    plan(&parsed.corefile, &planning, &mut problems);
    problems.retain(|problem| ROOMS.iter().any(|room| problem.code.name().starts_with(room)));
    problems
}
