//! Files of a Corefile. Each file is read only once, no matter how often it is imported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::complaints::{self, Problems};
use crate::lex::{Lexer, Word};
use crate::reader::{Origin, Reader, Text, WORDS_MAX};
use crate::{Diagnostic, FileId, Sources, Span};

/// Maximum length in bytes of the Corefile with all imported files: four times the largest ConfigMap.
const BYTES_MAX: usize = 4 << 20;
/// Maximum number of files, enough for a directory with one file for each of a thousand tenants.
const FILES_MAX: usize = 1000;

/// Result with a diagnostic as the error. Boxed because diagnostics are large and rare.
pub(crate) type Found<T> = Result<T, Box<Diagnostic>>;

/// Files read so far.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) sources: Sources,
    words: BTreeMap<FileId, Rc<[Word]>>,
    ids: BTreeMap<PathBuf, FileId>,
    bytes: usize,
    /// Number of `import` lines so far.
    pub(crate) imports: usize,
}

impl Files {
    /// Adds a file that the `import` at `place` names, or the main file if `place` is `None`.
    pub(crate) fn add(&mut self, path: &Path, text: String, place: Option<Span>, problems: &mut Problems) -> FileId {
        self.bytes = self.bytes.saturating_add(text.len());
        let fits = self.bytes <= BYTES_MAX;
        let id = self.sources.add(path, if fits { text } else { String::new() });
        if !fits {
            let place = place.unwrap_or(Span { file: id, start: 0, end: 0 });
            problems.push(complaints::file_too_large(place, BYTES_MAX));
        }
        let mut lexer = Lexer::new(id, self.sources.text(id));
        // The parser stops after `WORDS_MAX` words in total, so the rest of a longer file is not needed.
        self.words.insert(id, lexer.by_ref().take(WORDS_MAX).collect());
        if let Some(quote) = lexer.unclosed_quote {
            problems.push(complaints::unclosed_quote(quote));
        }
        self.ids.insert(path.to_owned(), id);
        id
    }

    pub(crate) fn text(&self, id: FileId) -> Text {
        Text { origin: Origin::File(id), words: self.words.get(&id).cloned().unwrap_or_default() }
    }

    pub(crate) fn load(&mut self, path: &Path, place: Span, reader: &mut Reader<'_>) -> Found<FileId> {
        if let Some(&id) = self.ids.get(path) {
            return Ok(id);
        }
        if self.ids.len() >= FILES_MAX {
            return Err(complaints::too_many_imports(place, "files", FILES_MAX).into());
        }
        let text = reader.loader.read(path).map_err(|error| complaints::import_unreadable(place, path, &error))?;
        Ok(self.add(path, text, Some(place), &mut reader.problems))
    }
}
