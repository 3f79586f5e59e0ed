//! Texts that were read, and positions in them.
//!
//! Spans are byte offsets. Lines and columns are computed on demand.

use std::path::{Path, PathBuf};

/// Handle of a file in [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// Range of bytes in a file: from `start` up to, but excluding, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the range from the start of this span to the end of `last`. If they are in different files, because an
    /// `import` closed a block of another file, returns this span unchanged.
    #[must_use]
    pub fn up_to(self, last: Span) -> Span {
        if self.file == last.file { Span { end: self.end.max(last.end), ..self } } else { self }
    }
}

/// All files that were read, in the order of reading. Used for rendering, and by `reload` to watch for changes.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

#[derive(Clone, Debug)]
struct Source {
    name: PathBuf,
    text: String,
    /// Offset of the first byte of each line. Never empty.
    lines: Vec<u32>,
}

impl Sources {
    /// Adds a text. Drops a byte-order mark at its start, because it is not part of the first line.
    pub fn add(&mut self, name: &Path, mut text: String) -> FileId {
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| offset(at + 1));
        let lines = std::iter::once(0).chain(breaks).collect();
        self.files.push(Source { name: name.to_owned(), text, lines });
        FileId(offset(self.files.len() - 1))
    }

    /// Returns the path as requested. Returns an empty path for the handle of other [`Sources`].
    #[must_use]
    pub fn name(&self, id: FileId) -> &Path {
        self.get(id).map_or(Path::new(""), |source| &source.name)
    }

    /// Returns the text. Returns an empty text for the handle of other [`Sources`].
    #[must_use]
    pub fn text(&self, id: FileId) -> &str {
        self.get(id).map_or("", |source| &source.text)
    }

    /// Returns the text at `span`.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text(span.file).get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Returns the line of the start of `span`, from 1.
    #[must_use]
    pub fn line(&self, span: Span) -> u32 {
        let lines = self.get(span.file).map_or(&[][..], |source| &source.lines);
        offset(lines.partition_point(|&start| start <= span.start)).max(1)
    }

    /// Returns the line and column of the start of `span`, both from 1. Columns count characters.
    #[must_use]
    pub fn position(&self, span: Span) -> (u32, u32) {
        let line = self.line(span);
        let before = self.text(span.file).get(self.line_start(span.file, line)..span.start as usize);
        (line, offset(before.unwrap_or("").chars().count() + 1))
    }

    /// Returns the start of `span` as `FILE:LINE:COLUMN`, for messages.
    #[must_use]
    pub fn place(&self, span: Span) -> String {
        let (line, column) = self.position(span);
        format!("{}:{line}:{column}", self.name(span.file).display())
    }

    /// Returns the file that was read first, which imports the others.
    #[must_use]
    pub fn first(&self) -> Option<FileId> {
        (!self.files.is_empty()).then_some(FileId(0))
    }

    /// Returns the name and text of all files.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.files.iter().map(|source| (source.name.as_path(), source.text.as_str()))
    }

    /// Returns the handles of all files, in the order of reading.
    pub fn ids(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..offset(self.files.len())).map(FileId)
    }

    /// Returns the line in which `span` starts, without its line feed, and the offset of its first byte.
    pub(crate) fn line_around(&self, span: Span) -> (&str, usize) {
        let start = self.line_start(span.file, self.line(span));
        let rest = self.text(span.file).get(start..).unwrap_or("");
        (rest.split('\n').next().unwrap_or(""), start)
    }

    fn line_start(&self, file: FileId, line: u32) -> usize {
        let start = self.get(file).and_then(|source| source.lines.get(line as usize - 1));
        start.map_or(0, |&start| start as usize)
    }

    fn get(&self, id: FileId) -> Option<&Source> {
        self.files.get(id.0 as usize)
    }
}

/// Converts an offset to 32 bits. The parser reads no file near 4 GiB. In a larger file passed to
/// [`Sources::add`], the text beyond has no line numbers.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_of(text: &str, start: u32) -> (u32, u32) {
        let mut sources = Sources::default();
        let file = sources.add(Path::new("f"), text.to_owned());
        sources.position(Span { file, start, end: start })
    }

    #[test]
    fn counts_columns_in_characters_and_lines_by_line_feeds() {
        for (text, start, expected) in [
            ("", 0, (1, 1)),
            ("ab", 1, (1, 2)),
            ("a\nb", 1, (1, 2)),
            ("a\nb", 2, (2, 1)),
            ("a\n", 2, (2, 1)),
            ("é\té x", 6, (1, 5)),
            ("\u{feff}ab", 1, (1, 2)),
            ("a", 99, (1, 1)),
        ] {
            assert_eq!(place_of(text, start), expected, "{text:?} at {start}");
        }
    }

    #[test]
    fn returns_empty_text_for_spans_of_other_sources() {
        let mut other = Sources::default();
        let file = other.add(Path::new("f"), "text".into());
        let span = Span { file, start: 1, end: 3 };
        let none = Sources::default();
        assert_eq!((none.slice(span), none.text(file), none.place(span)), ("", "", ":1:1".to_owned()));
    }
}
