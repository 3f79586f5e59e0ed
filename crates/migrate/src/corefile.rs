//! An older Corefile, line by line: which rule holds for which directive.

use std::io;
use std::path::{Path, PathBuf};

use corefile::{Corefile, Diagnostic, Loader, Sources};

use crate::draft::Draft;
use crate::{Migration, rules};

/// A text that is no Corefile: what is wrong, and where.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// What is wrong.
    pub problems: Vec<Diagnostic>,
    /// The texts that it is wrong with.
    pub sources: Sources,
}

/// Brings a Corefile of CoreDNS 1.1 or later to what is written today. With `defaults`, what newer installations have and
/// this one has not is added too. Files that it imports are looked at and not changed.
///
/// # Errors
/// If it is no Corefile.
pub fn corefile(name: &Path, text: &str, loader: &dyn Loader, defaults: bool) -> Result<Migration, Unreadable> {
    let parsed = corefile::parse(name, text.to_owned(), &Verbatim(loader));
    if parsed.has_errors() {
        return Err(Unreadable { problems: parsed.diagnostics, sources: parsed.corefile.sources });
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
        rules::look_at_block(block, &mut draft);
    }
    Ok(draft.finish())
}

/// Files as they are, and variables by their names: their values are those of another place.
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
