//! The files that were read for a Corefile. Each is read once, however often it is named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::complaints::{self, Problems};
use crate::lex::{Lexer, Word};
use crate::reader::{Origin, Reader, Text, WORDS_MAX};
use crate::{Diagnostic, FileId, Sources, Span};

/// Octets of the Corefile and all that it imports: four times the largest ConfigMap.
const OCTETS_MAX: usize = 4 << 20;
/// Files: a directory with one for each of a thousand tenants.
const FILES_MAX: usize = 1000;

/// What was asked for, or why there is none; boxed because a problem has many words and is rare.
pub(crate) type Found<T> = Result<T, Box<Diagnostic>>;

/// The files read so far.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) sources: Sources,
    words: BTreeMap<FileId, Rc<[Word]>>,
    ids: BTreeMap<PathBuf, FileId>,
    octets: usize,
    /// The `import` lines so far.
    pub(crate) imports: usize,
}

impl Files {
    /// Takes in a text that `place` asked for, or that is the main file.
    pub(crate) fn add(&mut self, path: &Path, text: String, place: Option<Span>, problems: &mut Problems) -> FileId {
        self.octets = self.octets.saturating_add(text.len());
        let fits = self.octets <= OCTETS_MAX;
        let id = self.sources.add(path, if fits { text } else { String::new() });
        if !fits {
            let place = place.unwrap_or(Span { file: id, start: 0, end: 0 });
            problems.push(complaints::file_too_large(place, OCTETS_MAX));
        }
        let mut lexer = Lexer::new(id, self.sources.text(id));
        // One more file with so many words, and reading ends at that bound: the rest need not be kept.
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
