//! Migration of an older Corefile: applies the rules to each directive and server block.

use std::io;
use std::path::{Path, PathBuf};

use corefile::{Corefile, Diagnostic, Loader, Sources, Style};

use crate::migrate::draft::Draft;
use crate::migrate::{Migration, rules};

/// Text that cannot be parsed as a Corefile.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", corefile::render(.problems, .sources, Style::Plain))]
pub struct CorefileError {
    /// Errors.
    pub problems: Vec<Diagnostic>,
    /// Source texts that the errors refer to.
    pub sources: Sources,
}

/// Updates a Corefile of CoreDNS 1.1 or later to the current syntax. With `defaults`, also adds the options that newer
/// installations have by default. Checks imported files, but does not change them.
///
/// # Errors
/// Fails if the text cannot be parsed.
pub fn migrate_corefile(
    name: &Path,
    text: &str,
    loader: &dyn Loader,
    defaults: bool,
) -> Result<Migration, CorefileError> {
    let parsed = corefile::parse(name, text.to_owned(), &Verbatim(loader));
    if parsed.has_errors() {
        return Err(CorefileError { problems: parsed.diagnostics, sources: parsed.corefile.sources });
    }
    let Corefile { blocks, sources } = parsed.corefile;
    let Some(root) = sources.first() else {
        return Ok(Migration { text: text.to_owned(), notes: Vec::new() });
    };
    let mut draft = Draft::new(&sources, root, defaults);
    for block in &blocks {
        for directive in &block.directives {
            draft.directive.clone_from(&directive.name.text);
            rules::apply(block, directive, &mut draft);
        }
        rules::review_block(block, &mut draft);
    }
    Ok(draft.finish())
}

/// Loader that leaves variables as they are written, because their values belong to another environment.
struct Verbatim<'a>(&'a dyn Loader);

impl Loader for Verbatim<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.0.read(path)
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.glob(pattern)
    }

    fn variable(&self, name: &str) -> Option<String> {
        Some(format!("${name}"))
    }
}
