//! Machine-readable diagnostics of a Corefile: Portolan's own JSON, and SARIF 2.1.0 (OASIS).

use compat::coredns::Release;
use corefile::{Code, Corefile, Diagnostic, Severity, Sources, Span};
use serde_json::{Value, json};

use crate::diagnostics;
use process::configuration::Configuration;

/// Version of the JSON format. It increases when fields are removed or change their meaning.
const FORMAT_VERSION: u32 = 1;

/// Returns one JSON document with the files that were read, the diagnostics, and the numbers of errors and warnings.
/// With a release of CoreDNS, the document names it.
pub(crate) fn json(configuration: &Configuration, coredns: Option<Release>) -> Value {
    let Configuration { problems, written: Corefile { sources, .. }, .. } = configuration;
    let count = |severity| problems.iter().filter(|problem| problem.severity == severity).count();
    let mut document = json!({
        "form": FORMAT_VERSION,
        "version": process::version::VERSION,
        "files": sources.files().map(|(name, _)| name.to_string_lossy()).collect::<Vec<_>>(),
        "errors": count(Severity::Error),
        "warnings": count(Severity::Warning),
        "diagnostics": problems.iter().map(|problem| diagnostic(problem, sources)).collect::<Vec<_>>(),
    });
    if let Some(release) = coredns {
        document["for"] = format!("coredns@{release}").into();
    }
    document
}

fn diagnostic(problem: &Diagnostic, sources: &Sources) -> Value {
    let mut object = location(problem.span, sources);
    object["code"] = problem.code.name().into();
    object["severity"] = word(problem.severity).into();
    object["message"] = problem.message.as_str().into();
    if let Some((span, note)) = &problem.other {
        object["other"] = location(*span, sources);
        object["other"]["label"] = note.as_str().into();
    }
    let label = (!problem.label.is_empty()).then_some(&problem.label);
    for (name, text) in [("label", label), ("usage", problem.usage.as_ref()), ("help", problem.help.as_ref())] {
        if let Some(text) = text {
            object[name] = text.as_str().into();
        }
    }
    object
}

fn location(span: Span, sources: &Sources) -> Value {
    let ((line, column), (end_line, end_column)) = place(span, sources);
    json!({
        "file": sources.name(span.file).to_string_lossy(),
        "line": line,
        "column": column,
        "end": { "line": end_line, "column": end_column },
    })
}

/// Returns a SARIF log with one run. Lists only the rules that have results.
pub(crate) fn sarif(configuration: &Configuration) -> Value {
    let Configuration { problems, written: Corefile { sources, .. }, .. } = configuration;
    let mut codes: Vec<Code> = problems.iter().map(|problem| problem.code).collect();
    codes.sort_unstable();
    codes.dedup();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "portolan",
                "version": process::version::VERSION,
                "rules": codes.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "artifacts": sources.files().map(|(name, _)| json!({ "location": { "uri": uri(&name.to_string_lossy()) } }))
                .collect::<Vec<_>>(),
            "results": problems.iter().map(|problem| result(problem, &codes, sources)).collect::<Vec<_>>(),
        }],
    })
}

fn rule(code: Code) -> Value {
    json!({
        "id": code.name(),
        "shortDescription": { "text": code.summary() },
        "help": { "text": diagnostics::page(code.name()).unwrap_or(code.summary()) },
    })
}

fn result(problem: &Diagnostic, codes: &[Code], sources: &Sources) -> Value {
    let help = problem.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
    let rule = codes.binary_search(&problem.code);
    debug_assert!(rule.is_ok(), "`codes` has the codes of all problems");
    let mut object = json!({
        "ruleId": problem.code.name(),
        "ruleIndex": rule.unwrap_or_default(),
        "level": word(problem.severity),
        "message": { "text": format!("{}{help}", problem.message) },
        "locations": [physical_location(problem.span, sources)],
    });
    if let Some((span, note)) = &problem.other {
        let mut other = physical_location(*span, sources);
        other["message"] = json!({ "text": note });
        object["relatedLocations"] = json!([other]);
    }
    object
}

fn physical_location(span: Span, sources: &Sources) -> Value {
    let ((line, column), (end_line, end_column)) = place(span, sources);
    json!({ "physicalLocation": {
        "artifactLocation": { "uri": uri(&sources.name(span.file).to_string_lossy()) },
        "region": { "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column },
    } })
}

/// Returns the name of a severity, which is the same in both formats.
fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// Returns line and column of the first character and of the one after the last, counted from 1. Columns count
/// characters.
fn place(span: Span, sources: &Sources) -> ((u32, u32), (u32, u32)) {
    (sources.position(span), sources.position(Span { start: span.end.max(span.start), ..span }))
}

/// Converts a path to a URI reference (RFC 3986 §4.1). Percent-encodes all but unreserved characters and `/`. An
/// absolute path gets the scheme `file`.
fn uri(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let encode = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let encoded: String = path.bytes().map(encode).collect();
    if encoded.starts_with('/') { format!("file://{encoded}") } else { encoded }
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn converts_paths_to_uri_references() {
        for (path, reference) in [
            ("Corefile", "Corefile"),
            ("/etc/coredns/Corefile", "file:///etc/coredns/Corefile"),
            ("my files/a:b%", "my%20files/a%3Ab%25"),
        ] {
            assert_eq!(uri(path), reference);
        }
    }
}
