//! Parser: builds server blocks from words.
//!
//! The parser never stops at a mistake. It reports the mistake, assumes the most likely intention and continues, so
//! that one run reports all mistakes. It accepts everything that CoreDNS accepts, with a warning if that is probably
//! not intended.

use std::collections::BTreeMap;
use std::path::Path;

use crate::files::Files;
use crate::import::{Importer, Snippet};
use crate::lex::{Kind, Word};
use crate::reader::{Ahead, Origin, Reader, Text};
use crate::{Block, Corefile, Diagnostic, Directive, Line, Loader, ServerBlock, Span, Token};
use crate::{codes, complaints};

/// Result of [`parse`].
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree. If there are errors, it has the parts that could be parsed: enough to find more mistakes, but not to
    /// run.
    pub corefile: Corefile,
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Returns true if the Corefile cannot be used.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Returns true if a block is not closed. Then [`parse_by_indentation`] may explain the Corefile better.
    #[must_use]
    pub fn has_unclosed_block(&self) -> bool {
        self.diagnostics.iter().any(|problem| problem.code == codes::UNCLOSED_BLOCK)
    }
}

/// Parses a Corefile. `name` is its path, which appears in messages, and relative imports start at its directory. For
/// standard input, use any name without a directory. An empty file is valid, with a warning, and has no blocks.
pub fn parse(name: &Path, text: String, loader: &dyn Loader) -> Parsed {
    parse_with(name, text, loader, Indentation::Ignored)
}

/// Parses a Corefile as if it had a `}` where the indentation first returns to that of an outer block.
///
/// Use the result for diagnostics only. [`parse`] reads a Corefile as CoreDNS does, without regard to indentation. A
/// missing `}` then causes errors in the rest of the file. Here it causes a single error at the block that lacks it.
pub fn parse_by_indentation(name: &Path, text: String, loader: &dyn Loader) -> Parsed {
    parse_with(name, text, loader, Indentation::ClosesOneBlock)
}

fn parse_with(name: &Path, text: String, loader: &dyn Loader, indentation: Indentation) -> Parsed {
    let mut parser = Parser::new(loader);
    parser.indentation = indentation;
    let id = parser.files.add(name, text, None, &mut parser.reader.problems);
    // Cannot fail: nothing is being read yet, so there is no loop and no depth.
    let _ = parser.reader.splice(vec![parser.files.text(id)]);
    parser.file();
    if parser.blocks.is_empty() && parser.reader.problems.is_empty() {
        parser.reader.problems.push(complaints::no_server_block(Span { file: id, start: 0, end: 0 }));
    }
    let corefile = Corefile { blocks: parser.blocks, sources: parser.files.sources };
    Parsed { corefile, diagnostics: parser.reader.problems.into_sorted() }
}

/// Effect of indentation on the parser.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Indentation {
    /// No effect, as in CoreDNS.
    Ignored,
    /// A line that is indented no deeper than the directive or the keys that opened its block closes this block. The
    /// parser then switches to [`Indentation::Ignored`], because only one `}` is assumed to be missing.
    ClosesOneBlock,
}

struct Parser<'a> {
    reader: Reader<'a>,
    files: Files,
    snippets: BTreeMap<String, Snippet>,
    blocks: Vec<ServerBlock>,
    /// Opening brace of the first sub-block whose `}` is indented less than its directive. If the file turns out to
    /// lack a `}`, this block probably lacks it.
    suspect: Option<Span>,
    indentation: Indentation,
}

/// Keys of a server block, before its `{`.
struct Keys {
    tokens: Vec<Token>,
    /// Range from the first to the last written key, including empty ones.
    span: Option<Span>,
    /// Comma after the last key.
    comma: Option<Span>,
}

impl<'a> Parser<'a> {
    fn new(loader: &'a dyn Loader) -> Self {
        let (files, snippets) = (Files::default(), BTreeMap::new());
        Parser {
            reader: Reader::new(loader),
            files,
            snippets,
            blocks: Vec::new(),
            suspect: None,
            indentation: Indentation::Ignored,
        }
    }

    fn file(&mut self) {
        while let Some(ahead) = self.reader.peek() {
            match ahead.kind {
                Kind::Import if ahead.starts_line => self.import(),
                _ => self.server_block(ahead.span),
            }
        }
    }

    fn import(&mut self) {
        Importer { reader: &mut self.reader, files: &mut self.files, snippets: &self.snippets }.import();
    }

    fn server_block(&mut self, start: Span) {
        let keys = self.keys();
        if let Some((name, token)) = snippet_name(&keys.tokens) {
            return self.snippet(name.to_owned(), token.span);
        }
        let open = self.reader.peek().filter(|ahead| ahead.kind == Kind::Open).map(|ahead| ahead.span);
        let (directives, end) = match open {
            Some(open) => self.braced_directives(open, start),
            None => self.bare_directives(),
        };
        if keys.tokens.is_empty() {
            return self.reader.problems.push(complaints::block_without_keys(start));
        }
        let last = end.or(directives.last().map(Directive::span)).or(keys.span);
        let span = start.up_to(last.unwrap_or(start));
        self.blocks.push(ServerBlock { keys: keys.tokens, directives, span });
    }

    /// Parses keys up to a `{`, or to the end of a line without a comma at its end.
    fn keys(&mut self) -> Keys {
        let mut keys = Keys { tokens: Vec::new(), span: None, comma: None };
        while let Some(ahead) = self.reader.peek() {
            match (ahead.kind, keys.comma) {
                (Kind::Open, Some(_)) => {
                    self.reader.problems.push(complaints::extra_comma(ahead.span));
                    return keys;
                }
                (Kind::Open, None) => break,
                (_, None) if ahead.starts_line && keys.span.is_some() => break,
                (Kind::Import, Some(_)) if ahead.starts_line => self.import(),
                _ => self.key(ahead, &mut keys),
            }
        }
        match (keys.comma, self.reader.peek()) {
            (Some(comma), None) if !self.reader.end_reported => {
                self.reader.problems.push(complaints::key_expected_at_end(comma));
            }
            _ => self.warn_of_glued_brace(keys.tokens.last()),
        }
        keys
    }

    fn key(&mut self, ahead: Ahead, keys: &mut Keys) {
        if ahead.kind == Kind::Close {
            self.reader.problems.push(complaints::stray_closing_brace(ahead.span));
        }
        let Some(Word { mut token, .. }) = self.reader.take() else { return };
        keys.span = Some(keys.span.map_or(token.span, |first| first.up_to(token.span)));
        // An unset variable makes the key empty. Such a key is ignored.
        if token.text.is_empty() {
            return;
        }
        keys.comma = self.strip_comma(&mut token);
        match token.text.is_empty() {
            true => self.reader.problems.push(complaints::extra_comma(ahead.span)),
            false => keys.tokens.push(token),
        }
    }

    /// Removes the comma at the end of a key. Also removes it from the span, unless the comma comes from a variable.
    fn strip_comma(&self, token: &mut Token) -> Option<Span> {
        if !token.text.ends_with(',') {
            return None;
        }
        token.text.pop();
        if !self.files.sources.slice(token.span).ends_with(',') {
            return Some(token.span);
        }
        let comma = Span { start: token.span.end - 1, ..token.span };
        token.span.end = comma.start;
        Some(comma)
    }

    /// Parses a snippet `(NAME) { … }` and stores its words without substituting variables.
    fn snippet(&mut self, name: String, defined: Span) {
        let Some(open) = self.reader.peek().filter(|ahead| ahead.kind == Kind::Open) else {
            return self.reader.problems.push(complaints::snippet_without_braces(defined));
        };
        let Some(words) = self.reader.balanced_words() else { return self.report_unclosed(open.span, false) };
        if let Some(place) = own_import(&words, &name) {
            let chain = [format!("({name})"), format!("({name})")];
            self.reader.problems.push(complaints::import_loop(place, &chain));
        }
        match self.snippets.get(&name) {
            Some(first) => {
                let first = self.files.sources.place(first.defined);
                self.reader.problems.push(complaints::snippet_redefined(defined, &name, &first));
            }
            None => {
                let text = Text { origin: Origin::Snippet(name.clone()), words: words.into() };
                self.snippets.insert(name, Snippet { defined, text });
            }
        }
    }

    /// Takes the block of the server block that begins at `owner`.
    fn braced_directives(&mut self, open: Span, owner: Span) -> (Vec<Directive>, Option<Span>) {
        self.reader.take();
        let (directives, end) = self.directives(Some((owner, open)));
        if end.is_none() {
            self.report_unclosed(open, self.reader.previous == Kind::Close);
        }
        (directives, end)
    }

    /// Parses directives up to the end of the file: a block without braces.
    fn bare_directives(&mut self) -> (Vec<Directive>, Option<Span>) {
        let (directives, end) = self.directives(None);
        if let Some(brace) = end {
            self.reader.problems.push(complaints::stray_closing_brace(brace));
        }
        (directives, end)
    }

    /// Parses directives up to a `}`. Returns them with the position of that brace.
    fn directives(&mut self, block: Option<(Span, Span)>) -> (Vec<Directive>, Option<Span>) {
        let mut directives = Vec::new();
        while let Some(ahead) = self.reader.peek() {
            if let Some((owner, open)) = block
                && self.closes_by_indentation(ahead, owner, open)
            {
                return (directives, Some(open));
            }
            match ahead.kind {
                Kind::Close => {
                    self.reader.take();
                    return (directives, Some(ahead.span));
                }
                Kind::Import => self.import(),
                Kind::Open => self.misplaced_block(ahead.span, directives.last_mut()),
                Kind::Plain => directives.extend(self.directive()),
            }
        }
        (directives, None)
    }

    fn directive(&mut self) -> Option<Directive> {
        let name = self.reader.take()?.token;
        let mut directive = Directive { name, args: Vec::new(), block: None };
        while let Some(ahead) = self.reader.peek_on_line() {
            match ahead.kind {
                Kind::Open => {
                    directive.block = Some(self.block(ahead.span, directive.name.span));
                    self.suspect_block(&directive);
                    self.refuse_more_on_line();
                    return Some(directive);
                }
                Kind::Close => {
                    self.reader.problems.push(complaints::closing_brace_in_line(ahead.span));
                    return Some(directive);
                }
                Kind::Import | Kind::Plain => directive.args.extend(self.reader.take().map(|word| word.token)),
            }
        }
        self.warn_of_glued_brace(directive.args.last().or(Some(&directive.name)));
        Some(directive)
    }

    /// Handles a `{` at the start of a line as the block of the preceding directive.
    fn misplaced_block(&mut self, open: Span, directive: Option<&mut Directive>) {
        self.reader.problems.push(complaints::opening_brace_alone(open));
        let block = self.block(open, open);
        if let Some(directive) = directive {
            directive.block.get_or_insert(block);
        }
    }

    /// Parses the block of a directive from its `{` to its `}`.
    fn block(&mut self, open: Span, owner: Span) -> Block {
        self.reader.take();
        let mut block = Block { open, lines: Vec::new(), close: open };
        while let Some(ahead) = self.reader.peek() {
            if self.closes_by_indentation(ahead, owner, open) {
                return block;
            }
            match ahead.kind {
                Kind::Close => {
                    self.reader.take();
                    block.close = ahead.span;
                    return block;
                }
                Kind::Import if ahead.starts_line => self.import(),
                Kind::Open => self.refuse_nested(ahead.span),
                Kind::Import | Kind::Plain => block.lines.push(self.line()),
            }
        }
        self.report_unclosed(open, false);
        block
    }

    fn line(&mut self) -> Line {
        let mut words: Vec<Token> = self.reader.take().map(|word| word.token).into_iter().collect();
        while let Some(ahead) = self.reader.peek_on_line() {
            match ahead.kind {
                Kind::Open => self.refuse_nested(ahead.span),
                Kind::Close => {
                    // In CoreDNS a property without arguments leaves the brace alone, and others take it as an
                    // argument.
                    self.reader.problems.push(match words.len() {
                        1 => complaints::flag_before_closing_brace(ahead.span),
                        _ => complaints::closing_brace_in_line(ahead.span),
                    });
                    break;
                }
                Kind::Import | Kind::Plain => words.extend(self.reader.take().map(|word| word.token)),
            }
        }
        self.warn_of_glued_brace(words.last());
        Line { words }
    }

    /// Returns true if a `}` is missing before the next word, and reports the block that lacks it. `owner` is the first
    /// word of the line that opened the block with the brace `open`.
    fn closes_by_indentation(&mut self, ahead: Ahead, owner: Span, open: Span) -> bool {
        if self.indentation == Indentation::Ignored
            || !ahead.starts_line
            || ahead.kind == Kind::Close
            || ahead.span.file != owner.file
        {
            return false;
        }
        let sources = &self.files.sources;
        let ((line, column), (_, outer)) = (sources.position(ahead.span), sources.position(owner));
        if column > outer {
            return false;
        }
        self.indentation = Indentation::Ignored;
        self.reader.problems.push(complaints::block_closed_by_indentation(open, sources.slice(owner), line));
        true
    }

    fn refuse_nested(&mut self, open: Span) {
        self.reader.problems.push(complaints::nested_block(open));
        self.reader.skip_block();
    }

    fn refuse_more_on_line(&mut self) {
        let problem = match self.reader.peek_on_line() {
            Some(Ahead { kind: Kind::Close, span, .. }) => complaints::closing_brace_in_line(span),
            Some(Ahead { span, .. }) => complaints::word_behind_block(span),
            None => return,
        };
        self.reader.problems.push(problem);
    }

    fn suspect_block(&mut self, directive: &Directive) {
        let Some(block) = &directive.block else { return };
        let sources = &self.files.sources;
        // A brace on the directive's own line is no evidence. Skipping it also avoids counting columns of one long line
        // repeatedly.
        if self.suspect.is_some() || sources.line(block.close) == sources.line(block.open) {
            return;
        }
        if sources.position(block.close).1 < sources.position(directive.name.span).1 {
            self.suspect = Some(block.open);
        }
    }

    /// Reports the innermost block that is open at the end of the file. The outer blocks are open only because of it.
    fn report_unclosed(&mut self, open: Span, ends_with_brace: bool) {
        if std::mem::replace(&mut self.reader.end_reported, true) {
            return;
        }
        let sooner = self.suspect.map(|span| self.files.sources.place(span));
        self.reader.problems.push(match ends_with_brace {
            true => complaints::block_closed_by_end(open, sooner),
            false => complaints::unclosed_block(open, sooner),
        });
    }

    /// Warns about words such as `example.org{` and `{}`. They are valid words, but rarely intended unless quoted.
    fn warn_of_glued_brace(&mut self, last: Option<&Token>) {
        let Some(last) = last else { return };
        let written = self.files.sources.slice(last.span);
        if written.len() > 1 && (written.ends_with('{') || written == "{}") {
            self.reader.problems.push(complaints::glued_brace(last.span, written));
        }
    }
}

/// Finds an `import` of a snippet within itself. This is an error even if the snippet is never used.
fn own_import(words: &[Word], name: &str) -> Option<Span> {
    let is_own = |pair: &&[Word]| {
        let [keyword, argument] = pair else { return false };
        keyword.kind == Kind::Import && keyword.starts_line && !argument.starts_line && argument.token.text == name
    };
    words.windows(2).find(is_own).map(|pair| pair[1].token.span)
}

/// Returns the name if `(NAME)` is the only key.
fn snippet_name(keys: &[Token]) -> Option<(&str, &Token)> {
    let [key] = keys else { return None };
    Some((key.text.strip_prefix('(')?.strip_suffix(')')?, key))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
