//! Test loader with files, directories and variables in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::{Corefile, Directive, Loader, Parsed, Style, Token, parse, render};

#[derive(Clone, Default)]
pub(crate) struct World {
    files: BTreeMap<PathBuf, String>,
    directories: BTreeSet<PathBuf>,
    variables: BTreeMap<String, String>,
}

impl World {
    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    pub(crate) fn directory(mut self, path: &str) -> Self {
        self.directories.insert(path.into());
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    pub(crate) fn parse(&self, text: &str) -> Parsed {
        parse(Path::new("Corefile"), text.to_owned(), self)
    }

    /// Parses a text that must have no errors. Warnings are allowed.
    pub(crate) fn accepted(&self, text: &str) -> Corefile {
        let parsed = self.parse(text);
        assert!(!parsed.has_errors(), "{text}\n{}", rendered(&parsed));
        parsed.corefile
    }

    /// Formats the tree in one line: `key key [name arg {word word; word}; name]`, with blocks separated by spaces.
    pub(crate) fn shape(&self, text: &str) -> String {
        shape(&self.accepted(text))
    }

    /// Formats each problem as `code@line:column`, with `?` before warnings.
    pub(crate) fn problems(&self, text: &str) -> String {
        let Parsed { corefile, diagnostics } = self.parse(text);
        let shown = diagnostics.iter().map(|problem| {
            let (line, column) = corefile.sources.position(problem.span);
            let code = problem.code.name().strip_prefix("corefile/").unwrap();
            format!("{}{code}@{line}:{column}", if problem.is_error() { "" } else { "?" })
        });
        shown.collect::<Vec<_>>().join(" ")
    }
}

impl Loader for World {
    fn read(&self, path: &Path) -> io::Result<String> {
        if self.directories.contains(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let paths = self.files.keys().chain(&self.directories).rev();
        let pattern: Vec<char> = pattern.to_string_lossy().chars().collect();
        let is_match = |path: &&PathBuf| matches(&pattern, &path.to_string_lossy().chars().collect::<Vec<_>>());
        Ok(paths.filter(is_match).cloned().collect())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
}

fn matches(pattern: &[char], path: &[char]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (['*', rest @ ..], _) if matches(rest, path) => true,
        (['*', ..], [first, path @ ..]) => *first != '/' && matches(pattern, path),
        (['?', pattern @ ..], [first, path @ ..]) => *first != '/' && matches(pattern, path),
        ([wanted, pattern @ ..], [first, path @ ..]) => wanted == first && matches(pattern, path),
        _ => false,
    }
}

pub(crate) fn accepted(text: &str) -> Corefile {
    World::default().accepted(text)
}

pub(crate) fn rendered(parsed: &Parsed) -> String {
    render(&parsed.diagnostics, &parsed.corefile.sources, Style::Plain)
}

pub(crate) fn shape(corefile: &Corefile) -> String {
    let blocks = corefile.blocks.iter().map(|block| {
        let directives: Vec<_> = block.directives.iter().map(shape_of_directive).collect();
        format!("{} [{}]", texts(block.keys.iter()), directives.join("; "))
    });
    blocks.collect::<Vec<_>>().join(" ")
}

fn shape_of_directive(directive: &Directive) -> String {
    let mut shape = texts(std::iter::once(&directive.name).chain(&directive.args));
    if let Some(block) = &directive.block {
        let lines: Vec<_> = block.lines.iter().map(|line| texts(line.words.iter())).collect();
        shape += &format!(" {{{}}}", lines.join("; "));
    }
    shape
}

fn texts<'a>(tokens: impl Iterator<Item = &'a Token>) -> String {
    tokens.map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ")
}
