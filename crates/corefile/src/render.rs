//! Text output of diagnostics: message, position, source line with the word underlined, usage and help.
//!
//! The `annotate-snippets` library, which the Rust compiler also uses, does the formatting. It gets only one line of
//! the file per diagnostic, so that the cost does not depend on the size of the file.

use std::borrow::Cow;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str};

use crate::{Diagnostic, Severity, Sources, Span};

/// Output style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// No escape sequences, for a file or a pipe.
    Plain,
    /// Colors, for a terminal.
    Color,
}

/// Formats `diagnostics` in their order, separated by empty lines. Ends with a line feed. Control characters in files
/// or names appear as visible symbols.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Color => Renderer::styled(),
    };
    let drawn = diagnostics.iter().map(|diagnostic| renderer.render(&[group(diagnostic, sources)]) + "\n");
    drawn.collect::<Vec<_>>().join("\n")
}

fn group<'a>(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = level.primary_title(&diagnostic.message).id(diagnostic.code.name()).element(snippet(
        AnnotationKind::Primary,
        diagnostic.span,
        &diagnostic.label,
        sources,
    ));
    if let Some((span, note)) = &diagnostic.other {
        group = group.element(snippet(AnnotationKind::Context, *span, note, sources));
    }
    if let Some(usage) = &diagnostic.usage {
        group = group.element(Level::NOTE.with_name("usage").message(normalize_untrusted_str(usage)));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
    }
    group
}

/// Returns the first line of the position with the underline. A quoted word may continue for pages, but its start is
/// enough to find it.
fn snippet<'a>(
    kind: AnnotationKind,
    span: Span,
    label: &str,
    sources: &'a Sources,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let (line, line_start) = sources.line_around(span);
    let within = |offset: u32| boundary_before(line, (offset as usize).saturating_sub(line_start));
    let mut annotation = kind.span(within(span.start)..within(span.end.max(span.start)));
    if !label.is_empty() {
        annotation = annotation.label(Cow::Owned(normalize_untrusted_str(label)));
    }
    Snippet::source(line)
        .path(sources.name(span.file).to_string_lossy())
        .line_start(sources.line(span) as usize)
        .annotation(annotation)
}

/// Returns the last character boundary of `line` at or before `at`.
fn boundary_before(line: &str, at: usize) -> usize {
    (0..=at.min(line.len())).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{World, rendered};

    #[test]
    fn renders_diagnostics_of_the_parser() {
        let parsed = World::default().parse("example.org {\n    health { lameduck 5s }\n    import a b\n}\n}\n");
        let expected = "\
error[corefile/brace-in-line]: a closing brace needs its own line
 --> Corefile:2:26
  |
2 |     health { lameduck 5s }
  |                          ^ after another word, `}` does not close the block
  |
  = help: put a line break before the `}`

error[corefile/import-arguments]: `import` takes only one argument
 --> Corefile:3:14
  |
3 |     import a b
  |              ^ one too many
  |
  = usage: import SNIPPET|FILE|PATTERN
  = help: snippets have no parameters

warning[corefile/stray-brace]: unmatched `}`
 --> Corefile:5:1
  |
5 | }
  | ^ there is no open block here
  |
  = help: remove it: in place of a key it is read as a zone named `}`
";
        assert_eq!(rendered(&parsed), expected);
    }

    fn drawn(text: &str, (start, end): (u32, u32), style: Style) -> String {
        let mut sources = Sources::default();
        let file = sources.add(std::path::Path::new("d/f"), text.to_owned());
        let span = Span { file, start, end };
        let problem = Diagnostic::warning(crate::Code::declared("test/code", ""), span, "no \u{1b}[2J such\tthing")
            .with_label("this\u{7}");
        render(&[problem.with_usage("x {\n    y\n}").with_help("\u{1b}help")], &sources, style)
    }

    #[test]
    fn renders_tabs_wide_and_control_characters() {
        let expected = "\
warning[test/code]: no ␛[2J such    thing
 --> d/f:2:6
  |
2 |     é日 ␛\"x\"
  |          ^^^ this␇
  |
  = usage: x {
               y
           }
  = help: ␛help
";
        assert_eq!(drawn("a\n\té日 \u{1b}\"x\"\n", (10, 13), Style::Plain), expected);
    }

    #[test]
    fn underlines_only_the_first_line_of_a_multiline_word() {
        let text = drawn("log \"a\nb\nc\" d\n", (4, 11), Style::Plain);
        assert!(text.contains("\n1 | log \"a\n  |     ^^ this"), "{text}");
    }

    #[test]
    fn renders_the_line_of_another_directive() {
        let mut sources = Sources::default();
        let mut add = |name: &str, text: &str| sources.add(std::path::Path::new(name), text.to_owned());
        let (file, imported) = (add("Corefile", ". {\n    whoami\n    erratic\n}\n"), add("more", "hosts\n"));
        let first = "\
warning[test/code]: never asked
 --> Corefile:3:5
  |
3 |     erratic
  |     ^^^^^^^ here
  |
";
        for (other, rest) in [
            (Span { file, start: 8, end: 14 }, " ::: Corefile:2:5\n  |\n2 |     whoami\n  |     ------ taken\n"),
            (Span { file: imported, start: 0, end: 5 }, " ::: more:1:1\n  |\n1 | hosts\n  | ----- taken\n"),
        ] {
            let span = Span { file, start: 19, end: 26 };
            let problem = Diagnostic::warning(crate::Code::declared("test/code", ""), span, "never asked");
            let text = render(&[problem.with_label("here").with_other(other, "taken")], &sources, Style::Plain);
            assert_eq!(text, format!("{first}{rest}"));
        }
    }

    #[test]
    fn renders_colors_on_request() {
        assert!(!drawn("abc", (0, 3), Style::Plain).contains('\u{1b}'));
        assert!(drawn("abc", (0, 3), Style::Color).contains("\u{1b}[1m"));
    }

    #[test]
    fn does_not_panic_on_invalid_spans() {
        for span in [(0, 0), (3, 3), (9, 99), (2, 1), (1, 2), (2, u32::MAX)] {
            for text in ["日b", "abc", "a\nb\n", "\n", ""] {
                assert!(drawn(text, span, Style::Plain).contains("d/f:"), "{text:?} {span:?}");
            }
        }
        assert!(drawn("", (0, 0), Style::Plain).contains("d/f:1:1"));
        assert_eq!(render(&[], &Sources::default(), Style::Plain), "");
    }
}
