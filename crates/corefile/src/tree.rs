//! What a Corefile says: server blocks, directives, lines, words, each with its place.
//!
//! The tree keeps the order of the text and repeats what the text repeats; what a directive means, and whether it may
//! be repeated, is for its plugin.

use std::fmt::Write as _;

use crate::{Sources, Span};

/// A whole Corefile with everything that it imports.
#[derive(Clone, Debug, Default)]
pub struct Corefile {
    /// The server blocks, in order; none for an empty file.
    pub blocks: Vec<ServerBlock>,
    /// The files that the text came from.
    pub sources: Sources,
}

/// Keys and the directives that serve them.
#[derive(Clone, Debug)]
pub struct ServerBlock {
    /// What is served, as written: at least one, none empty, without the commas between them.
    pub keys: Vec<Token>,
    /// One entry for each written line.
    pub directives: Vec<Directive>,
    /// From the first key to the closing brace.
    pub span: Span,
}

/// One line of a server block and the sub-block that it opens.
#[derive(Clone, Debug)]
pub struct Directive {
    /// The first word.
    pub name: Token,
    /// The other words of the line.
    pub args: Vec<Token>,
    /// What stands in braces after them.
    pub block: Option<Block>,
}

/// A sub-block. It holds lines and never blocks.
#[derive(Clone, Debug)]
pub struct Block {
    /// The opening brace.
    pub open: Span,
    /// The lines in between.
    pub lines: Vec<Line>,
    /// The closing brace.
    pub close: Span,
}

/// One line of a sub-block.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its words; never empty.
    pub words: Vec<Token>,
}

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it means: without quotes and escapes, with variables filled in.
    pub text: String,
    /// Where it was written.
    pub span: Span,
}

impl Corefile {
    /// The token structure as text, line numbers included: the same text for two versions of a file whose edits (blanks,
    /// comments) leave each token on its line. The server hashes it to tell whether a reload has anything to do.
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
    /// The lines of its sub-block; none without one.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        self.block.as_ref().map_or(&[], |block| &block.lines)
    }

    /// From its name to its last word or closing brace.
    #[must_use]
    pub fn span(&self) -> Span {
        let last = self.block.as_ref().map(|block| block.close).or(self.args.last().map(|token| token.span));
        self.name.span.up_to(last.unwrap_or(self.name.span))
    }

    /// The words without their places, unambiguously: two directives with the same text ask for the same thing.
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

    /// The name and not the number of the file: one more import that holds only comments renumbers them.
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
    fn blanks_and_comments_do_not_change_the_fingerprint() {
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
    fn a_variable_changes_the_fingerprint_and_a_file_of_comments_does_not() {
        let text = "import d/*\n. {\n cache {$TTL}\n}\n";
        let world = World::default().file("d/b", "x.test {\n log\n}\n").variable("TTL", "5");
        let before = world.accepted(text).fingerprint_text();
        assert_ne!(world.clone().variable("TTL", "6").accepted(text).fingerprint_text(), before);
        assert_eq!(world.clone().file("d/a", "# nothing\n").accepted(text).fingerprint_text(), before);
    }

    #[test]
    fn a_directive_has_one_text_wherever_it_stands() {
        let text_of = |text: &str| accepted(text).blocks[0].directives[0].canonical_text();
        let one = text_of(". {\nforward . 10.0.0.1 {\n policy random\n}\n}");
        assert_eq!(one, "\"forward\" \".\" \"10.0.0.1\" {\n\"policy\" \"random\"\n}");
        assert_eq!(text_of("\n.  {\n\n\"forward\" .\t10.0.0.1 { policy random\n\n}\n}"), one);
        assert_ne!(text_of(". {\nforward \". 10.0.0.1\" {\n policy random\n}\n}"), one);
        assert_ne!(text_of(". {\nforward . 10.0.0.1 {\n policy\nrandom\n}\n}"), one);
    }

    #[test]
    fn spans_cover_what_was_written() {
        let file = accepted("a.test, b.test {\n cache 30 {\n  success 9\n }\n log . \"x\ny\"\n}\n");
        let block = &file.blocks[0];
        let spans = [block.span, block.directives[0].span(), block.directives[1].span(), block.keys[0].span];
        let written = spans.map(|span| file.sources.slice(span));
        assert!(written[0].starts_with("a.test,") && written[0].ends_with("\"\n}"));
        assert_eq!(written[1..], ["cache 30 {\n  success 9\n }", "log . \"x\ny\"", "a.test"]);
        assert_eq!(block.directives[0].lines().len(), 1);
    }
}
