//! Syntax tree of a Corefile: server blocks, directives, lines and words, each with its position.
//!
//! The tree keeps the order and the repetitions of the text. Plugins decide what a directive means and if it may be
//! repeated.

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

impl ServerBlock {
    /// Returns the words of all directives, with those of their sub-blocks.
    pub fn words(&self) -> impl Iterator<Item = &Token> {
        self.directives.iter().flat_map(|directive| {
            let lines = directive.lines().iter().flat_map(|line| &line.words);
            directive.args.iter().chain(lines)
        })
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
}

#[cfg(test)]
mod tests {
    use crate::test_support::accepted;

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
