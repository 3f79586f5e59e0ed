//! Migration in progress: the original text, the edits, and the notes.

use corefile::{Directive, FileId, Line, ServerBlock, Sources, Span, Token};

use crate::migrate::edits::{Edits, indentation};
use crate::migrate::{Migration, Note, NoteKind};

/// Original text with the edits and notes so far.
pub(crate) struct Draft<'a> {
    sources: &'a Sources,
    root: FileId,
    /// True if the options of newer installations are added.
    pub(crate) defaults: bool,
    /// Directive under review, which the notes refer to.
    pub(crate) directive: String,
    edits: Edits,
    notes: Vec<(Span, Note)>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(sources: &'a Sources, root: FileId, defaults: bool) -> Draft<'a> {
        Draft { sources, root, defaults, directive: String::new(), edits: Edits::default(), notes: Vec::new() }
    }

    /// Returns the new text, and the notes in the order of the original text.
    pub(crate) fn finish(self) -> Migration {
        let Draft { edits, mut notes, sources, root, .. } = self;
        notes.sort_by_key(|(span, _)| (span.file, span.start));
        let notes = notes.into_iter().map(|(_, note)| note).collect();
        Migration { text: edits.apply(sources.text(root)), notes }
    }

    /// Adds a note on a location, with the release that made the change.
    pub(crate) fn note(
        &mut self,
        kind: NoteKind,
        span: Span,
        since: impl Into<Option<&'static str>>,
        text: impl Into<String>,
    ) {
        let (place, directive) = (self.sources.place(span), Some(self.directive.clone()));
        let note = Note { kind, place, text: text.into(), directive, since: since.into() };
        // A snippet is visited once per import. Its notes are reported once.
        if self.notes.iter().all(|(_, known)| *known != note) {
            self.notes.push((span, note));
        }
    }

    /// Adds a note that applies to a whole file, at its first location there.
    pub(crate) fn note_once_per_file(&mut self, kind: NoteKind, span: Span, since: &'static str, text: &str) {
        let is_said = |(place, note): &(Span, Note)| place.file == span.file && note.text == text;
        if !self.notes.iter().any(is_said) {
            self.note(kind, span, since, text);
        }
    }

    /// Replaces words. Further lines get the indentation of the original line.
    pub(crate) fn replace(&mut self, span: Span, text: &str) {
        if let Some((start, end)) = self.here(span) {
            self.edits.replace(start, end, self.indented(start, text));
        }
    }

    /// Appends words to a directive.
    pub(crate) fn append(&mut self, directive: &Directive, text: &str) {
        if let Some((start, end)) = self.here(directive.span()) {
            self.edits.replace(end, end, self.indented(start, text));
        }
    }

    fn indented(&self, at: usize, text: &str) -> String {
        text.replace('\n', &format!("\n{}", indentation(self.sources.text(self.root), at)))
    }

    /// Removes a line of a block.
    pub(crate) fn remove(&mut self, line: &Line) {
        self.remove_words(&line.words);
    }

    /// Removes words that form a whole line, or a directive with its block.
    pub(crate) fn remove_span(&mut self, span: Span) {
        if let Some((start, end)) = self.here(span) {
            self.edits.remove_line(self.sources.text(self.root), start, end);
        }
    }

    /// Removes words at the end of a line, with the blanks before them.
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

    /// Returns words as written, with quotes and variables.
    pub(crate) fn written(&self, words: &[Token]) -> String {
        words.iter().map(|word| self.sources.slice(word.span)).collect::<Vec<_>>().join(" ")
    }

    /// Returns the zones of a directive as written: its own, or else the keys of its block.
    pub(crate) fn zones(&self, named: &[Token], block: &ServerBlock) -> String {
        self.written(if named.is_empty() { &block.keys } else { named })
    }

    /// Returns the byte range of a span in the file to change. For a span in an imported file, adds a note and returns
    /// `None`.
    fn here(&mut self, span: Span) -> Option<(usize, usize)> {
        if span.file == self.root {
            return Some((span.start as usize, span.end as usize));
        }
        let file = self.sources.name(span.file).display().to_string();
        self.note(
            NoteKind::Review,
            span,
            None,
            format!("this line is in an imported file, which is not changed: migrate `{file}` too"),
        );
        None
    }
}
