//! Lexer: splits text into words.
//!
//! Words are separated by white space. A line feed ends a line. Carriage returns outside quotes are ignored. `#` starts
//! a comment anywhere outside quotes, even inside a word. A word that starts with `"` extends to the next `"`, even
//! over several lines. The lexer does not substitute variables. The reader does that later, word by word.

use std::str::Chars;

use crate::{FileId, Span, Token};

/// Word of a file.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) token: Token,
    pub(crate) kind: Kind,
    /// True if the word is the first of its line. Words after a quoted word with line feeds belong to the same line.
    pub(crate) starts_line: bool,
}

/// Kind of a word by its spelling, before variables are substituted. Quotes make no difference: `"{"` is a brace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `{`
    Open,
    /// `}`
    Close,
    /// `import`
    Import,
    /// Any other word.
    Plain,
}

impl Kind {
    fn of(text: &str) -> Kind {
        match text {
            "{" => Kind::Open,
            "}" => Kind::Close,
            "import" => Kind::Import,
            _ => Kind::Plain,
        }
    }
}

/// Iterator over the words of a file.
pub(crate) struct Lexer<'a> {
    file: FileId,
    length: usize,
    rest: Chars<'a>,
    starts_line: bool,
    /// Opening quote of the last word, if the file ends before the closing quote.
    pub(crate) unclosed_quote: Option<Span>,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(file: FileId, text: &'a str) -> Self {
        Lexer { file, length: text.len(), rest: text.chars(), starts_line: true, unclosed_quote: None }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        self.skip_blanks();
        let start = self.at();
        let (text, end) = if self.peek()? == '"' { self.quoted()? } else { self.bare() };
        let kind = Kind::of(&text);
        let span = self.span(start, end);
        let starts_line = std::mem::take(&mut self.starts_line);
        Some(Word { token: Token { text, span }, kind, starts_line })
    }
}

impl Lexer<'_> {
    fn skip_blanks(&mut self) {
        while let Some(next) = self.peek() {
            if next == '#' {
                self.skip_comment();
            } else if next.is_whitespace() {
                self.starts_line |= next == '\n';
                self.rest.next();
            } else {
                return;
            }
        }
    }

    /// Skips to the end of the line. The line feed remains.
    fn skip_comment(&mut self) {
        let rest = self.rest.as_str();
        self.rest = rest.find('\n').map_or("", |end| &rest[end..]).chars();
    }

    /// Reads an unquoted word. Returns it with its end, which excludes trailing carriage returns.
    fn bare(&mut self) -> (String, usize) {
        let mut text = String::new();
        let mut end = self.at();
        while let Some(next) = self.peek() {
            if next == '#' || next.is_whitespace() && next != '\r' {
                break;
            }
            self.rest.next();
            if next != '\r' {
                text.push(next);
                end = self.at();
            }
        }
        (text, end)
    }

    /// Reads a quoted word. Only `\"` is an escape. Any other backslash is kept with the following character, so `\\`
    /// never escapes a following quote. At the end of the file, the word may lack its closing quote. It is dropped if
    /// it is empty then.
    fn quoted(&mut self) -> Option<(String, usize)> {
        let start = self.at();
        self.rest.next();
        let mut text = String::new();
        while let Some(next) = self.rest.next() {
            match next {
                '"' => return Some((text, self.at())),
                '\\' => text.push_str(&self.escaped()),
                other => text.push(other),
            }
        }
        self.unclosed_quote = Some(self.span(start, start + 1));
        (!text.is_empty()).then_some((text, self.length))
    }

    fn escaped(&mut self) -> String {
        match self.rest.next() {
            Some('"') => "\"".to_owned(),
            Some(other) => format!("\\{other}"),
            None => "\\".to_owned(),
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.as_str().chars().next()
    }

    fn at(&self) -> usize {
        self.length - self.rest.as_str().len()
    }

    fn span(&self, start: usize, end: usize) -> Span {
        let offset = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Span { file: self.file, start: offset(start), end: offset(end) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Sources;

    /// Formats the words of `text`, with `|` before the first word of a line and `_` before all others.
    fn lexed(text: &str) -> String {
        let file = Sources::default().add(Path::new("f"), String::new());
        let mut shown = String::new();
        for word in Lexer::new(file, text) {
            shown.push(if word.starts_line { '|' } else { '_' });
            shown.push_str(&word.token.text);
        }
        shown
    }

    #[test]
    fn splits_text_into_words() {
        for (text, expected) in [
            ("", ""),
            ("a b\tc\u{a0}d\u{2028}e\u{b}f", "|a_b_c_d_e_f"),
            ("a\n\n \nb", "|a|b"),
            ("a b\r\nc\r\n", "|a_b|c"),
            ("a\rb\r c", "|ab_c"),
            ("a\u{200b}b \u{feff}c", "|a\u{200b}b_\u{feff}c"),
            ("foo{ }x {", "|foo{_}x_{"),
            ("'a b' `c d`", "|'a_b'_`c_d`"),
            ("a\\\nb", "|a\\|b"),
        ] {
            assert_eq!(lexed(text), expected, "{text:?}");
        }
    }

    #[test]
    fn starts_comments_anywhere_outside_quotes() {
        for (text, expected) in [
            ("cache 30#x", "|cache_30"),
            ("cache#30\nlog", "|cache|log"),
            ("# a\n  #b\nc # \"d\ne", "|c|e"),
            ("\"a#b\" c", "|a#b_c"),
            ("\"a\"#b", "|a"),
            ("a #", "|a"),
            ("# \r x\ny", "|y"),
        ] {
            assert_eq!(lexed(text), expected, "{text:?}");
        }
    }

    #[test]
    fn reads_quoted_words() {
        for (text, expected) in [
            (r#""a \"b\" c""#, r#"|a "b" c"#),
            (r#""\." "a\n""#, r"|\._a\n"),
            (r#""a\\"b"#, r"|a\\_b"),
            (r#""" x"#, "|_x"),
            (r#""a"b"c""#, "|a_b\"c\""),
            (r#"a"b c"#, "|a\"b_c"),
            (r#"\"a b"#, "|\\\"a_b"),
            ("a \"b\nc\" d\ne", "|a_b\nc_d|e"),
            ("\"a\r\nb\"", "|a\r\nb"),
            ("a \"b c", "|a_b c"),
            ("a \"", "|a"),
            ("\"a\\", "|a\\"),
        ] {
            assert_eq!(lexed(text), expected, "{text:?}");
        }
    }

    #[test]
    fn spans_cover_words_as_written() {
        let mut sources = Sources::default();
        let file = sources.add(Path::new("f"), "é \"a\\\" b\"\r\n x\ry\r\n{#".to_owned());
        let text = sources.text(file).to_owned();
        let written: Vec<_> = Lexer::new(file, &text).map(|word| sources.slice(word.token.span)).collect();
        assert_eq!(written, ["é", "\"a\\\" b\"", "x\ry", "{"]);
    }

    #[test]
    fn records_an_unclosed_quote() {
        let file = Sources::default().add(Path::new("f"), String::new());
        let mut lexer = Lexer::new(file, "a \"b\nc");
        assert_eq!(lexer.by_ref().count(), 2);
        assert_eq!(lexer.unclosed_quote, Some(Span { file, start: 2, end: 3 }));
    }
}
