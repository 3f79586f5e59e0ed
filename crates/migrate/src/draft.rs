//! What rules write on: the text that was read, what is to be changed in it, and what there is to say.

use corefile::{Directive, FileId, Line, ServerBlock, Sources, Span, Token};

use crate::edits::{Edits, indentation};
use crate::{Migration, Note, What};

/// What was read and what is to become of it.
pub(crate) struct Draft<'a> {
    sources: &'a Sources,
    root: FileId,
    /// Add what newer installations have.
    pub(crate) defaults: bool,
    /// Whom the notes are about: the directive that is looked at.
    pub(crate) directive: String,
    edits: Edits,
    notes: Vec<(Span, Note)>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(sources: &'a Sources, root: FileId, defaults: bool) -> Draft<'a> {
        Draft { sources, root, defaults, directive: String::new(), edits: Edits::default(), notes: Vec::new() }
    }

    /// The new text, and the notes in the order of the old one.
    pub(crate) fn finish(self) -> Migration {
        let Draft { edits, mut notes, sources, root, .. } = self;
        notes.sort_by_key(|(span, _)| (span.file, span.start));
        let notes = notes.into_iter().map(|(_, note)| note).collect();
        Migration { text: edits.apply(sources.text(root)), notes }
    }

    /// Says something about a place, and since which release it is so.
    pub(crate) fn note(
        &mut self,
        what: What,
        span: Span,
        since: impl Into<Option<&'static str>>,
        text: impl Into<String>,
    ) {
        let (place, directive) = (self.sources.place(span), Some(self.directive.clone()));
        let note = Note { what, place, text: text.into(), directive, since: since.into() };
        // A snippet is met wherever it is imported, and spoken of once.
        if self.notes.iter().all(|(_, known)| *known != note) {
            self.notes.push((span, note));
        }
    }

    /// The same about what holds for a whole file: at the first place there that shows it.
    pub(crate) fn note_once_per_file(&mut self, what: What, span: Span, since: &'static str, text: &str) {
        let is_said = |(place, note): &(Span, Note)| place.file == span.file && note.text == text;
        if !self.notes.iter().any(is_said) {
            self.note(what, span, since, text);
        }
    }

    /// Writes something else in place of words. Lines below the first are indented as the old ones are.
    pub(crate) fn replace(&mut self, span: Span, text: &str) {
        if let Some((start, end)) = self.here(span) {
            self.edits.replace(start, end, self.indented(start, text));
        }
    }

    /// Adds words behind a directive.
    pub(crate) fn append(&mut self, directive: &Directive, text: &str) {
        if let Some((start, end)) = self.here(directive.span()) {
            self.edits.replace(end, end, self.indented(start, text));
        }
    }

    fn indented(&self, at: usize, text: &str) -> String {
        text.replace('\n', &format!("\n{}", indentation(self.sources.text(self.root), at)))
    }

    /// Takes a line of a sub-block away.
    pub(crate) fn remove(&mut self, line: &Line) {
        self.remove_words(&line.words);
    }

    /// Takes words away that are a whole line, or a directive with its block.
    pub(crate) fn remove_span(&mut self, span: Span) {
        if let Some((start, end)) = self.here(span) {
            self.edits.remove_line(self.sources.text(self.root), start, end);
        }
    }

    /// Takes words at the end of a line away, with the blanks before them.
    pub(crate) fn remove_words(&mut self, words: &[Token]) {
        if let [first, .., last] | [first @ last] = words {
            self.remove_span(first.span.up_to(last.span));
        }
    }

    /// Adds lines below a directive.
    pub(crate) fn add_below(&mut self, directive: &Directive, lines: &[String]) {
        if let Some(place) = self.here(directive.span()) {
            self.edits.add_below(self.sources.text(self.root), place, lines);
        }
    }

    /// Words as they were written, quotes and variables and all.
    pub(crate) fn written(&self, words: &[Token]) -> String {
        words.iter().map(|word| self.sources.slice(word.span)).collect::<Vec<_>>().join(" ")
    }

    /// The zones of a directive as they were written: those that it names, or else the keys of its block.
    pub(crate) fn zones(&self, named: &[Token], block: &ServerBlock) -> String {
        self.written(if named.is_empty() { &block.keys } else { named })
    }

    /// The octets of a place of the text that is changed; others are only spoken of.
    fn here(&mut self, span: Span) -> Option<(usize, usize)> {
        if span.file == self.root {
            return Some((span.start as usize, span.end as usize));
        }
        let file = self.sources.name(span.file).display().to_string();
        self.note(
            What::Look,
            span,
            None,
            format!("this stands in an imported file, which is not changed: migrate `{file}` too"),
        );
        None
    }
}
