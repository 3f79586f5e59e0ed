//! `import`: which texts it names, and the files that were read for it.
//!
//! A snippet's name goes before a file's. A relative path starts at the directory of the file that holds the `import`,
//! so a snippet's imports do not depend on where the snippet is used. A file is read once, however often it is named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::complaints::{self, Problems};
use crate::lex::{Kind, Lexer, Word};
use crate::parse::Parser;
use crate::reader::{Origin, Reader, Runaway, Text, WORDS_MAX};
use crate::{Diagnostic, FileId, Sources, Span, Token};

/// Octets of the Corefile and all that it imports: four times the largest ConfigMap.
const OCTETS_MAX: usize = 4 << 20;
/// Files: a directory with one for each of a thousand tenants.
const FILES_MAX: usize = 1000;
/// `import` lines that are followed: each may list a directory.
const IMPORTS_MAX: usize = 10_000;

/// What was asked for, or why there is none; boxed because a problem has many words and is rare.
type Found<T> = Result<T, Box<Diagnostic>>;

/// The files read so far.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) sources: Sources,
    words: BTreeMap<FileId, Rc<[Word]>>,
    ids: BTreeMap<PathBuf, FileId>,
    octets: usize,
    imports: usize,
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

    fn load(&mut self, path: &Path, place: Span, reader: &mut Reader<'_>) -> Found<FileId> {
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

impl Parser<'_> {
    /// Reads an `import` line and lays what it names in front of the text.
    pub(crate) fn import(&mut self) {
        let Some(keyword) = self.reader.take() else { return };
        let arguments = self.import_arguments();
        self.files.imports += 1;
        let result = match arguments.as_slice() {
            [] => Err(complaints::import_without_argument(keyword.token.span).into()),
            [name] if self.files.imports > IMPORTS_MAX => {
                Err(complaints::too_many_imports(name.span, "`import` lines to follow", IMPORTS_MAX).into())
            }
            [name] => self.expand(name),
            [_, extra, ..] => Err(complaints::import_with_more(extra.span).into()),
        };
        if let Err(problem) = result {
            self.reader.problems.push(*problem);
        }
    }

    /// The words of the line. A brace has no place among them; what it opens is skipped.
    fn import_arguments(&mut self) -> Vec<Token> {
        let mut arguments = Vec::new();
        while let Some(ahead) = self.reader.peek_on_line() {
            match ahead.kind {
                Kind::Close => {
                    self.reader.problems.push(complaints::closing_brace_in_line(ahead.span));
                    break;
                }
                Kind::Open => {
                    self.reader.problems.push(complaints::import_with_more(ahead.span));
                    self.skip_block();
                    break;
                }
                Kind::Import | Kind::Plain => arguments.extend(self.reader.take().map(|word| word.token)),
            }
        }
        arguments
    }

    fn expand(&mut self, name: &Token) -> Found<()> {
        if name.text.is_empty() {
            return Err(complaints::import_of_nothing(name.span).into());
        }
        let texts = match self.snippets.get(&name.text) {
            Some(snippet) => vec![snippet.text.clone()],
            None => self.load_files(name)?,
        };
        self.reader.splice(texts).map_err(|runaway| {
            Box::new(match runaway {
                Runaway::TooDeep => complaints::import_too_deep(name.span),
                Runaway::Loop(chain) => complaints::import_loop(name.span, &self.named(&chain)),
            })
        })
    }

    fn load_files(&mut self, name: &Token) -> Found<Vec<Text>> {
        let mut texts = Vec::new();
        for path in self.paths(name)? {
            match self.files.load(&path, name.span, &mut self.reader) {
                Ok(id) => texts.push(self.files.text(id)),
                Err(problem) => self.reader.problems.push(*problem),
            }
        }
        Ok(texts)
    }

    /// The paths that `name` stands for, sorted, so that the order does not depend on the loader.
    fn paths(&mut self, name: &Token) -> Found<Vec<PathBuf>> {
        let directory = self.files.sources.name(name.span.file).parent().unwrap_or(Path::new(""));
        let path = directory.join(&name.text);
        if !is_pattern(name)? {
            return Ok(vec![path]);
        }
        let listed = self.reader.loader.glob(&path);
        let mut paths = listed.map_err(|error| complaints::import_unreadable(name.span, &path, &error))?;
        if paths.is_empty() {
            self.reader.problems.push(complaints::import_without_match(name.span, Path::new(&name.text)));
        }
        paths.sort_unstable();
        Ok(paths)
    }

    fn named(&self, chain: &[Origin]) -> Vec<String> {
        let name = |origin: &Origin| match origin {
            Origin::File(id) => self.files.sources.name(*id).display().to_string(),
            Origin::Snippet(name) => format!("({name})"),
        };
        chain.iter().map(name).collect()
    }
}

/// Whether `name` holds wildcards; CoreDNS allows one of each kind, and no sets.
fn is_pattern(name: &Token) -> Found<bool> {
    let count = |wildcard: char| name.text.matches(wildcard).count();
    let (stars, marks) = (count('*'), count('?'));
    if stars > 1 || marks > 1 || count('[') > 0 {
        return Err(complaints::import_pattern(name.span).into());
    }
    Ok(stars + marks > 0)
}
