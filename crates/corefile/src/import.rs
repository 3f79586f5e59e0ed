//! Expansion of `import` lines.
//!
//! A snippet takes precedence over a file of the same name. Relative paths start at the directory of the file that has
//! the `import` line, so the imports of a snippet do not depend on where the snippet is used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::complaints;
use crate::files::{Files, Found};
use crate::lex::Kind;
use crate::reader::{DEPTH_MAX, Origin, Reader, Runaway, Text};
use crate::{Span, Token};

/// Maximum number of `import` lines to expand. Each of them can list a directory.
const IMPORTS_MAX: usize = 10_000;

/// Words to insert for `import NAME`.
pub(crate) struct Snippet {
    /// Position of the definition.
    pub(crate) defined: Span,
    pub(crate) text: Text,
}

/// State of the parser that an `import` line reads and changes.
pub(crate) struct Importer<'p, 'l> {
    pub(crate) reader: &'p mut Reader<'l>,
    pub(crate) files: &'p mut Files,
    pub(crate) snippets: &'p BTreeMap<String, Snippet>,
}

impl Importer<'_, '_> {
    /// Parses an `import` line and inserts the imported words before the rest of the text.
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

    /// Parses the arguments of the line. Reports braces as errors and skips the block that an opening brace starts.
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
                    self.reader.skip_block();
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
                Runaway::TooDeep => complaints::import_too_deep(name.span, DEPTH_MAX),
                Runaway::Loop(chain) => complaints::import_loop(name.span, &self.named(&chain)),
            })
        })
    }

    fn load_files(&mut self, name: &Token) -> Found<Vec<Text>> {
        let mut texts = Vec::new();
        for path in self.paths(name)? {
            match self.files.load(&path, name.span, self.reader) {
                Ok(id) => texts.push(self.files.text(id)),
                Err(problem) => self.reader.problems.push(*problem),
            }
        }
        Ok(texts)
    }

    /// Returns the paths that `name` refers to, sorted so that the order does not depend on the loader.
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

/// Returns true if `name` has wildcards. CoreDNS allows one `*`, one `?` and no `[`.
fn is_pattern(name: &Token) -> Found<bool> {
    let count = |wildcard: char| name.text.matches(wildcard).count();
    let (stars, marks) = (count('*'), count('?'));
    if stars > 1 || marks > 1 || count('[') > 0 {
        return Err(complaints::import_pattern(name.span).into());
    }
    Ok(stars + marks > 0)
}
