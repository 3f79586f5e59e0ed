//! Constructors for all diagnostics of this crate, one function per problem, so that codes and wording are in one
//! place.

use std::fmt::Display;
use std::io;
use std::path::Path;

use crate::{Diagnostic, Severity, Span, codes};

/// Maximum number of problems of one severity to report, which is more than anyone reads.
const KEPT_MAX: usize = 50;
/// Maximum number of characters of a word to quote in a message.
const SHOWN_MAX: usize = 40;

/// Problems found so far. A problem at the same position is reported once, even if a snippet is expanded several times.
#[derive(Default)]
pub(crate) struct Problems {
    kept: Vec<Diagnostic>,
}

impl Problems {
    pub(crate) fn push(&mut self, problem: Diagnostic) {
        let is_same = |kept: &Diagnostic| (kept.code, kept.span) == (problem.code, problem.span);
        let count = self.kept.iter().filter(|kept| kept.severity == problem.severity).count();
        if count > KEPT_MAX || self.kept.iter().any(is_same) {
            return;
        }
        self.kept.push(if count == KEPT_MAX { and_more(&problem) } else { problem });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns the problems in the order of the text, starting with the main file.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.kept.sort_by_key(|problem| (problem.span.file, problem.span.start));
        self.kept
    }
}

fn and_more(next: &Diagnostic) -> Diagnostic {
    let message = format!("more than {KEPT_MAX} problems of this kind; the others are not shown");
    Diagnostic { severity: next.severity, ..Diagnostic::error(codes::TOO_MANY_PROBLEMS, next.span, message) }
}

/// Quotes a word for a message: shortened, on one line and in backticks.
fn shown(text: &str) -> String {
    let visible = |character: char| if character.is_control() { '\u{fffd}' } else { character };
    let short: String = text.chars().take(SHOWN_MAX).map(visible).collect();
    let dots = if text.chars().nth(SHOWN_MAX).is_some() { "…" } else { "" };
    format!("`{short}{dots}`")
}

// Words.

pub(crate) fn unclosed_quote(quote: Span) -> Diagnostic {
    Diagnostic::warning(codes::UNCLOSED_QUOTE, quote, "a quoted word is never closed")
        .with_label("everything from here to the end of the file is one word")
        .with_help("add the closing `\"`")
}

pub(crate) fn glued_brace(word: Span, text: &str) -> Diagnostic {
    Diagnostic::warning(codes::GLUED_BRACE, word, format!("{} is a word, not a brace", shown(text)))
        .with_label("the brace belongs to the word")
        .with_help("put white space on both sides of a brace; quote the word if the brace is part of it")
}

pub(crate) fn endless_variable(word: Span, name: &str) -> Diagnostic {
    let message = format!("variable {} refers to itself", shown(name));
    Diagnostic::error(codes::ENDLESS_VARIABLE, word, message)
        .with_label("too many replacements in this word")
        .with_help("remove the cycle: its value must not refer to the variable, directly or through others")
}

pub(crate) fn unset_variable(word: Span, name: &str) -> Diagnostic {
    let message = format!("environment variable {} is not set", shown(name));
    Diagnostic::warning(codes::UNSET_VARIABLE, word, message)
        .with_label("empty here")
        .with_help("set it in the environment of the server, or write the value")
}

pub(crate) fn typographic_quote(word: Span) -> Diagnostic {
    Diagnostic::warning(codes::TYPOGRAPHIC_QUOTE, word, "a typographic quote is an ordinary character")
        .with_label("part of the word")
        .with_help("quote with `\"`")
}

pub(crate) fn too_much_text(word: Span) -> Diagnostic {
    Diagnostic::error(codes::TOO_MUCH_TEXT, word, "this file is too long after imports and variables are expanded")
        .with_label("the rest of the file is not read")
        .with_help("look for snippets that import other snippets many times")
}

pub(crate) fn file_too_large(place: Span, bytes_max: usize) -> Diagnostic {
    let message = format!("the Corefile and its imports have more than {bytes_max} bytes");
    Diagnostic::error(codes::FILE_TOO_LARGE, place, message).with_label("not read")
}

// Blocks.

pub(crate) fn extra_comma(place: Span) -> Diagnostic {
    Diagnostic::error(codes::EXTRA_COMMA, place, "a comma must be between two keys")
        .with_label("expected a key here")
        .with_help("remove the comma, or write the missing key")
}

pub(crate) fn key_expected_at_end(comma: Span) -> Diagnostic {
    Diagnostic::error(codes::EXTRA_COMMA, comma, "the file ends after a comma")
        .with_label("expected another key after this comma")
        .with_help("remove the comma, or write the missing key")
}

pub(crate) fn no_server_block(start: Span) -> Diagnostic {
    Diagnostic::warning(codes::NO_SERVER_BLOCK, start, "this Corefile has no server block, so it serves nothing")
        .with_help("write a zone and its directives in braces, or check that this is the right file")
}

pub(crate) fn block_without_keys(place: Span) -> Diagnostic {
    Diagnostic::warning(codes::BLOCK_WITHOUT_KEYS, place, "a server block without keys serves nothing")
        .with_label("this block is ignored")
        .with_help("write a zone before the `{`; a key that consists of an unset variable is empty")
}

pub(crate) fn stray_closing_brace(brace: Span) -> Diagnostic {
    Diagnostic::warning(codes::STRAY_BRACE, brace, "unmatched `}`")
        .with_label("there is no open block here")
        .with_help("remove it: in place of a key it is read as a zone named `}`")
}

/// Builds the diagnostic for an unclosed block. `sooner` is the position of a block that was probably closed too late.
/// The missing brace is then likely the one of that block.
fn unclosed(severity: Severity, open: Span, sooner: Option<String>) -> Diagnostic {
    let help = sooner.map_or("add a `}` on a separate line".to_owned(), |place| {
        format!("the indentation suggests that the missing `}}` is that of the block opened at {place}")
    });
    let error = Diagnostic::error(codes::UNCLOSED_BLOCK, open, "this block is never closed");
    Diagnostic { severity, ..error }.with_label("opened here").with_help(help)
}

pub(crate) fn unclosed_block(open: Span, sooner: Option<String>) -> Diagnostic {
    unclosed(Severity::Error, open, sooner)
}

/// CoreDNS considers a server block closed if the last word of the file is a `}`, no matter which block it closes.
pub(crate) fn block_closed_by_end(open: Span, sooner: Option<String>) -> Diagnostic {
    unclosed(Severity::Warning, open, sooner)
}

/// `owner` is the directive or the first key whose block lacks its `}`; the indentation returns at `line`.
pub(crate) fn block_closed_by_indentation(open: Span, owner: &str, line: u32) -> Diagnostic {
    Diagnostic::error(codes::UNCLOSED_BLOCK, open, format!("block of {} is never closed", shown(owner)))
        .with_label("opened here")
        .with_help(format!("add `}}` before line {line}, where the indentation returns to the outer block"))
}

pub(crate) fn closing_brace_in_line(brace: Span) -> Diagnostic {
    Diagnostic::error(codes::BRACE_IN_LINE, brace, "a closing brace needs its own line")
        .with_label("after another word, `}` does not close the block")
        .with_help("put a line break before the `}`")
}

pub(crate) fn flag_before_closing_brace(brace: Span) -> Diagnostic {
    Diagnostic::warning(
        codes::BRACE_IN_LINE,
        brace,
        "a closing brace needs its own line, except after a property without arguments",
    )
    .with_label("closes the block, because the property before it has no arguments")
    .with_help("put a line break before the `}`")
}

pub(crate) fn word_behind_block(word: Span) -> Diagnostic {
    Diagnostic::error(codes::WORD_BEHIND_BLOCK, word, "a directive ends with the `}` of its block")
        .with_label("this is on the same line")
        .with_help("put a line break after the `}`")
}

pub(crate) fn nested_block(open: Span) -> Diagnostic {
    Diagnostic::error(codes::NESTED_BLOCK, open, "a block inside a directive's block")
        .with_label("blocks of directives do not nest")
        .with_help("is the `}` of the directive before this line missing?")
}

pub(crate) fn opening_brace_alone(open: Span) -> Diagnostic {
    Diagnostic::error(codes::BRACE_ALONE, open, "the `{` of a directive must be on the line of the directive")
        .with_label("at the start of a line")
        .with_help("move it to the end of the line before")
}

// Snippets and imports.

pub(crate) fn snippet_without_braces(name: Span) -> Diagnostic {
    Diagnostic::error(codes::SNIPPET_WITHOUT_BRACES, name, "a snippet needs braces")
        .with_label("expected `{` after this")
        .with_usage("(NAME) {\n    LINES\n}")
}

pub(crate) fn snippet_redefined(name: Span, text: &str, first: &str) -> Diagnostic {
    Diagnostic::error(codes::SNIPPET_REDEFINED, name, format!("snippet {} is defined twice", shown(text)))
        .with_label("the second definition")
        .with_help(format!("the first is at {first}; was a file imported twice?"))
}

const IMPORT_USAGE: &str = "import SNIPPET|FILE|PATTERN";

pub(crate) fn import_without_argument(keyword: Span) -> Diagnostic {
    Diagnostic::error(codes::IMPORT_ARGUMENTS, keyword, "`import` needs an argument")
        .with_label("nothing follows on this line")
        .with_usage(IMPORT_USAGE)
}

pub(crate) fn import_with_more(extra: Span) -> Diagnostic {
    Diagnostic::error(codes::IMPORT_ARGUMENTS, extra, "`import` takes only one argument")
        .with_label("one too many")
        .with_usage(IMPORT_USAGE)
        .with_help("snippets have no parameters")
}

pub(crate) fn import_of_nothing(argument: Span) -> Diagnostic {
    Diagnostic::error(codes::IMPORT_EMPTY, argument, "the argument of `import` is empty")
        .with_label("is the variable set?")
        .with_usage(IMPORT_USAGE)
}

pub(crate) fn import_pattern(argument: Span) -> Diagnostic {
    Diagnostic::error(codes::IMPORT_PATTERN, argument, "an import pattern may contain one `*` and one `?`, and no `[`")
        .with_label("too many wildcards")
        .with_help("write one `import` line for each directory")
}

pub(crate) fn import_without_match(argument: Span, pattern: &Path) -> Diagnostic {
    let message = format!("no file matches {}", shown(&pattern.to_string_lossy()));
    Diagnostic::warning(codes::IMPORT_WITHOUT_MATCH, argument, message).with_label("nothing is imported")
}

pub(crate) fn import_unreadable(argument: Span, path: &Path, error: &io::Error) -> Diagnostic {
    let path = shown(&path.to_string_lossy());
    let error_at = |code, message: String| Diagnostic::error(code, argument, message);
    match error.kind() {
        io::ErrorKind::NotFound => error_at(codes::IMPORT_NOT_FOUND, format!("no snippet and no file {path}"))
            .with_label("not found")
            .with_help("a snippet must be defined above its use; a pattern such as `*.conf` may match nothing"),
        io::ErrorKind::IsADirectory => error_at(codes::IMPORT_UNREADABLE, format!("{path} is a directory"))
            .with_label("only files can be imported"),
        _ => error_at(codes::IMPORT_UNREADABLE, format!("cannot read {path}: {error}")).with_label("not read"),
    }
}

pub(crate) fn import_loop(argument: Span, chain: &[impl Display]) -> Diagnostic {
    let chain = chain.iter().map(|text| shown(&text.to_string())).collect::<Vec<_>>().join(" → ");
    Diagnostic::error(codes::IMPORT_LOOP, argument, "this text imports itself")
        .with_label("imported while it is being read")
        .with_help(format!("the cycle is {chain}"))
}

pub(crate) fn import_too_deep(argument: Span, depth_max: usize) -> Diagnostic {
    let message = format!("imports are nested more than {depth_max} deep");
    Diagnostic::error(codes::IMPORT_TOO_DEEP, argument, message).with_label("not imported")
}

pub(crate) fn too_many_imports(argument: Span, what: &str, count_max: usize) -> Diagnostic {
    let message = format!("the Corefile has more than {count_max} {what}");
    Diagnostic::error(codes::TOO_MANY_IMPORTS, argument, message).with_label("not imported")
}
