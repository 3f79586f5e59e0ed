//! Syntax tree of a Corefile: server blocks, directives, lines and words, each with its position.
//!
//! The tree keeps the order and the repetitions of the text. Plugins decide what a directive means and if it may be
//! repeated.

use std::fmt::Write as _;

use crate::{Sources, Span};

/// Corefile with everything that it imports.
#[derive(Clone, Debug, Default)]
pub struct Corefile {
    /// Server blocks in order. Empty for an empty file.
    pub blocks: Vec<ServerBlock>,
    /// Files from which the text was read.
    pub sources: Sources,
}

/// Server block: keys and the directives that serve them.
#[derive(Clone, Debug)]
pub struct ServerBlock {
    /// Keys as written, without the commas between them. There is at least one, and none is empty.
    pub keys: Vec<Token>,
    /// Directives, one per written line.
    pub directives: Vec<Directive>,
    /// Range from the first key to the closing brace.
    pub span: Span,
}

/// Directive: a line of a server block, with the sub-block that it opens.
#[derive(Clone, Debug)]
pub struct Directive {
    /// First word of the line.
    pub name: Token,
    /// Remaining words of the line.
    pub args: Vec<Token>,
    /// Sub-block in braces.
    pub block: Option<Block>,
}

/// Sub-block of a directive. It has lines, but no further blocks.
#[derive(Clone, Debug)]
pub struct Block {
    /// Opening brace.
    pub open: Span,
    /// Lines between the braces.
    pub lines: Vec<Line>,
    /// Closing brace.
    pub close: Span,
}

/// Line of a sub-block.
#[derive(Clone, Debug)]
pub struct Line {
    /// Words of the line. Never empty.
    pub words: Vec<Token>,
}

/// Word of a Corefile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Value of the word, without quotes and escapes, with variables substituted.
    pub text: String,
    /// Position of the word as written.
    pub span: Span,
}

impl Corefile {
    /// Returns the tokens with their line numbers as text. Edits of white space and comments that leave each token on
    /// its line do not change the result. The server hashes it to decide if a reload is necessary.
    #[must_use]
    pub fn fingerprint_text(&self) -> String {
        let mut print = Fingerprint { sources: &self.sources, text: String::new() };
        for block in &self.blocks {
            print.tokens("keys", block.keys.iter());
            block.directives.iter().for_each(|directive| print.directive(directive));
        }
        print.text
    }
}

impl Directive {
    /// Returns the lines of the sub-block, or an empty slice without one.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        self.block.as_ref().map_or(&[], |block| &block.lines)
    }

    /// Returns the range from the name to the last word or closing brace.
    #[must_use]
    pub fn span(&self) -> Span {
        let last = self.block.as_ref().map(|block| block.close).or(self.args.last().map(|token| token.span));
        self.name.span.up_to(last.unwrap_or(self.name.span))
    }

    /// Returns the words without their positions, in an unambiguous form. Directives with the same text are equivalent.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        let mut text = quoted(std::iter::once(&self.name).chain(&self.args));
        if let Some(block) = &self.block {
            let lines = block.lines.iter().map(|line| quoted(line.words.iter()) + "\n");
            text.extend([" {\n".to_owned()].into_iter().chain(lines).chain(["}".to_owned()]));
        }
        text
    }
}

fn quoted<'a>(words: impl Iterator<Item = &'a Token>) -> String {
    words.map(|token| format!("{:?}", token.text)).collect::<Vec<_>>().join(" ")
}

struct Fingerprint<'a> {
    sources: &'a Sources,
    text: String,
}

impl Fingerprint<'_> {
    fn directive(&mut self, directive: &Directive) {
        self.tokens("directive", std::iter::once(&directive.name).chain(&directive.args));
        let Some(block) = &directive.block else { return };
        self.brace("open", block.open);
        block.lines.iter().for_each(|line| self.tokens("line", line.words.iter()));
        self.brace("close", block.close);
    }

    fn tokens<'a>(&mut self, what: &str, tokens: impl Iterator<Item = &'a Token>) {
        self.text.push_str(what);
        for token in tokens {
            self.place(token.span);
            let _ = write!(self.text, " {:?}", token.text);
        }
        self.text.push('\n');
    }

    fn brace(&mut self, what: &str, span: Span) {
        self.text.push_str(what);
        self.place(span);
        self.text.push('\n');
    }

    /// Writes the file's name instead of its number, because importing another file with only comments would renumber
    /// the files.
    fn place(&mut self, span: Span) {
        let _ = write!(self.text, " {}:{}", self.sources.name(span.file).display(), self.sources.line(span));
    }
}

#[cfg(test)]
mod tests {
    use crate::test_support::{World, accepted};

    fn fingerprint(text: &str) -> String {
        accepted(text).fingerprint_text()
    }

    #[test]
    fn fingerprint_ignores_white_space_and_comments() {
        let plain = fingerprint(". x.test {\n  cache 30 {\n    success 9\n  }\n}\n");
        for same in [
            ". x.test {#c\n\tcache   30 {\n success 9 # c\n}\n\n\n}\n\n# c",
            "\u{feff}.   x.test\t{\r\n  cache 30 {\r\n    \"success\" 9\r\n  }\r\n}",
        ] {
            assert_eq!(fingerprint(same), plain, "{same:?}");
        }
        for other in [
            "\n. x.test {\n  cache 30 {\n    success 9\n  }\n}\n",
            ". x.test {\n  cache 30 {\n    success 9\n\n  }\n}\n",
            ". x.test {\n  cache 31 {\n    success 9\n  }\n}\n",
            ". x.test {\n  cache 30\n  success 9\n}\n",
            ". \"x test\" {\n  cache 30 {\n    success 9\n  }\n}\n",
        ] {
            assert_ne!(fingerprint(other), plain, "{other:?}");
        }
    }

    #[test]
    fn fingerprint_depends_on_variables_but_not_on_files_of_comments() {
        let text = "import d/*\n. {\n cache {$TTL}\n}\n";
        let world = World::default().file("d/b", "x.test {\n log\n}\n").variable("TTL", "5");
        let before = world.accepted(text).fingerprint_text();
        assert_ne!(world.clone().variable("TTL", "6").accepted(text).fingerprint_text(), before);
        assert_eq!(world.clone().file("d/a", "# nothing\n").accepted(text).fingerprint_text(), before);
    }

    #[test]
    fn canonical_text_does_not_depend_on_formatting() {
        let text_of = |text: &str| accepted(text).blocks[0].directives[0].canonical_text();
        let one = text_of(". {\nforward . 10.0.0.1 {\n policy random\n}\n}");
        assert_eq!(one, "\"forward\" \".\" \"10.0.0.1\" {\n\"policy\" \"random\"\n}");
        assert_eq!(text_of("\n.  {\n\n\"forward\" .\t10.0.0.1 { policy random\n\n}\n}"), one);
        assert_ne!(text_of(". {\nforward \". 10.0.0.1\" {\n policy random\n}\n}"), one);
        assert_ne!(text_of(". {\nforward . 10.0.0.1 {\n policy\nrandom\n}\n}"), one);
    }

    #[test]
    fn spans_cover_keys_directives_and_blocks() {
        let file = accepted("a.test, b.test {\n cache 30 {\n  success 9\n }\n log . \"x\ny\"\n}\n");
        let block = &file.blocks[0];
        let spans = [block.span, block.directives[0].span(), block.directives[1].span(), block.keys[0].span];
        let written = spans.map(|span| file.sources.slice(span));
        assert!(written[0].starts_with("a.test,") && written[0].ends_with("\"\n}"));
        assert_eq!(written[1..], ["cache 30 {\n  success 9\n }", "log . \"x\ny\"", "a.test"]);
        assert_eq!(block.directives[0].lines().len(), 1);
    }
}
