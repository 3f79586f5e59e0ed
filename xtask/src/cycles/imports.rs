//! Imports between the modules of a crate, read from its source.
//!
//! The reader walks the module tree from the crate's root file, along the `mod` declarations, and collects the paths
//! that start with `crate`, `self` or `super`. It reads tokens, so comments and links in docstrings do not count, and
//! paths in the bodies of macros do. Code under `#[cfg(test)]` is skipped.
//!
//! A path to a name that a module imports (`crate::Name` after `pub use x::Name`) leads to the module that it takes the
//! name from. Method calls name no module, so they are not seen.
//!
//! An import counts between siblings: `a::b` that uses `a::c::Thing` is above `a::c`, and `a::b` that uses `d::Thing`
//! puts `a` above `d`. Between a module and those in it, nothing is above.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

use crate::Failed;

/// Reader of source files; `None` for a missing file.
pub(super) type Read<'r> = &'r dyn Fn(&Path) -> Option<String>;

/// Import of a module by another one with the same parent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// Path of the module that imports: `a::b`.
    pub(super) from: String,
    pub(super) to: String,
    pub(super) file: PathBuf,
    pub(super) line: usize,
}

/// Returns the imports between the modules of the crate with this root file.
///
/// # Errors
/// Fails if a module has no file, if a file is no Rust source, or if a glob hides what is imported.
pub(super) fn imports(root: &Path, read: Read<'_>) -> Result<Vec<Import>, Failed> {
    let mut reader = Reader { read, references: Vec::new(), modules: BTreeSet::new(), macros: BTreeMap::new() };
    let folder = root.parent().unwrap_or(Path::new("")).to_owned();
    reader.file(&Module { path: Vec::new(), file: root.to_owned(), children: folder })?;
    reader.resolve()
}

/// Module that is being read.
struct Module {
    /// Names from the crate's root to the module. Empty for the root.
    path: Vec<String>,
    file: PathBuf,
    /// Folder of the files of its child modules.
    children: PathBuf,
}

/// Path in a module, from the crate's root.
struct Reference {
    /// Module that has the path. Empty for the root file.
    from: Vec<String>,
    path: Vec<String>,
    /// Name that a `use` gives to the target; `None` for a path in code.
    name: Option<String>,
    is_macro: bool,
    /// True for `use child::Name`, and for a `use` of another crate.
    is_local: bool,
    file: PathBuf,
    line: usize,
}

struct Reader<'r> {
    read: Read<'r>,
    references: Vec<Reference>,
    modules: BTreeSet<Vec<String>>,
    /// Macros with the modules that define them.
    macros: BTreeMap<String, Vec<String>>,
}

/// Attributes before an item, as far as they matter here.
#[derive(Default)]
struct Attributes {
    is_test: bool,
    /// `#[path = "…"]`.
    path: Option<String>,
}

impl Attributes {
    fn add(&mut self, attribute: &TokenStream) {
        let text: String = attribute.to_string().split_whitespace().collect();
        self.is_test |= text == "cfg(test)" || text.starts_with("cfg(all(test,");
        let path = text.strip_prefix("path=").map(|path| path.trim_matches('"').to_owned());
        self.path = path.or(self.path.take());
    }
}

impl Reader<'_> {
    fn file(&mut self, module: &Module) -> Result<(), Failed> {
        let file = module.file.display();
        let text = (self.read)(&module.file).ok_or_else(|| format!("{file}: the file of a module is missing"))?;
        let tokens: TokenStream = text.parse().map_err(|error| format!("{file}: not Rust source: {error}"))?;
        self.scan(tokens, module)
    }

    fn scan(&mut self, tokens: TokenStream, module: &Module) -> Result<(), Failed> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let (mut rest, mut attributes) = (&tokens[..], Attributes::default());
        while !rest.is_empty() {
            rest = self.step(rest, &mut attributes, module)?;
        }
        Ok(())
    }

    /// Reads one token or one construct, and returns the tokens after it.
    fn step<'t>(
        &mut self,
        tokens: &'t [TokenTree],
        attributes: &mut Attributes,
        module: &Module,
    ) -> Result<&'t [TokenTree], Failed> {
        if let Some((attribute, is_inner, rest)) = attribute(tokens) {
            attributes.add(&attribute);
            // An inner `#![cfg(test)]` covers the rest of the file or block.
            return Ok(if is_inner && attributes.is_test { &[] } else { rest });
        }
        let given = std::mem::take(attributes);
        if given.is_test {
            return Ok(after_item(tokens));
        }
        match tokens {
            [TokenTree::Ident(word), rest @ ..] if word == "pub" => {
                *attributes = given;
                return Ok(after_scope(rest));
            }
            [TokenTree::Ident(word), TokenTree::Ident(name), rest @ ..] if word == "mod" => {
                return self.module(&plain(name), given.path, rest, module);
            }
            [TokenTree::Ident(word), rest @ ..] if word == "use" => {
                let end = rest.iter().position(|token| is_punct(token, ';')).unwrap_or(rest.len());
                self.uses(&rest[..end], &[], module);
                return Ok(&rest[end..]);
            }
            [TokenTree::Ident(word), TokenTree::Punct(_), TokenTree::Ident(name), ..] if word == "macro_rules" => {
                self.macros.insert(plain(name), module.path.clone());
            }
            [TokenTree::Ident(_), ..] => return Ok(self.path(tokens, module)),
            [TokenTree::Group(group), ..] => self.scan(group.stream(), module)?,
            _ => {}
        }
        Ok(&tokens[1..])
    }

    /// Reads `mod NAME;` or `mod NAME { … }`; `rest` starts after the name.
    fn module<'t>(
        &mut self,
        name: &str,
        path_attribute: Option<String>,
        rest: &'t [TokenTree],
        parent: &Module,
    ) -> Result<&'t [TokenTree], Failed> {
        let path: Vec<String> = parent.path.iter().cloned().chain([name.to_owned()]).collect();
        self.modules.insert(path.clone());
        let children = parent.children.join(name);
        if let [TokenTree::Group(body), rest @ ..] = rest {
            self.scan(body.stream(), &Module { path, file: parent.file.clone(), children })?;
            return Ok(rest);
        }
        let in_folder = children.join("mod.rs");
        let (file, children) = match path_attribute {
            Some(path) => {
                let file = parent.file.with_file_name(path);
                (file.clone(), file.parent().unwrap_or(Path::new("")).to_owned())
            }
            None if (self.read)(&in_folder).is_some() => (in_folder, children),
            None => (children.with_extension("rs"), children),
        };
        self.file(&Module { path, file, children })?;
        Ok(rest)
    }

    /// Collects the paths of a `use`, which may be a tree.
    fn uses(&mut self, tree: &[TokenTree], prefix: &[String], module: &Module) {
        for branch in tree.split(|token| is_punct(token, ',')) {
            let (mut path, mut name, mut is_tree) = (prefix.to_vec(), None, false);
            for token in branch {
                match token {
                    TokenTree::Ident(word) if word == "as" => name = Some(String::new()),
                    TokenTree::Ident(word) if name.is_some() => name = Some(plain(word)),
                    TokenTree::Ident(word) => path.push(plain(word)),
                    TokenTree::Punct(punct) if punct.as_char() == '*' => path.push("*".to_owned()),
                    TokenTree::Group(group) => {
                        is_tree = true;
                        self.uses(&group.stream().into_iter().collect::<Vec<_>>(), &path, module);
                    }
                    _ => {}
                }
            }
            if let Some(first) = branch.first().filter(|_| !is_tree) {
                let name = name.or_else(|| path.iter().rfind(|word| *word != "self").cloned());
                self.refer(path, name, false, first, module);
            }
        }
    }

    /// Reads a path in code, or a single word, and returns the tokens after it.
    fn path<'t>(&mut self, tokens: &'t [TokenTree], module: &Module) -> &'t [TokenTree] {
        let (mut path, mut rest) = (Vec::new(), tokens);
        while let [TokenTree::Ident(word), after @ ..] = rest {
            path.push(plain(word));
            rest = after;
            match after {
                [first, second, TokenTree::Ident(_), ..] if is_punct(first, ':') && is_punct(second, ':') => {
                    rest = &after[2..];
                }
                _ => break,
            }
        }
        let is_macro = matches!(rest, [bang, TokenTree::Group(_), ..] if is_punct(bang, '!'));
        if path.len() > 1 && !module.path.is_empty() {
            self.refer(path, None, is_macro, &tokens[0], module);
        }
        rest
    }

    /// Records a path if it leads into the crate.
    fn refer(&mut self, path: Vec<String>, name: Option<String>, is_macro: bool, first: &TokenTree, module: &Module) {
        let local = [&module.path[..], &path].concat();
        let absolute = from_root(path, &module.path);
        let is_local = absolute.is_none();
        let Some(path) = absolute.or_else(|| name.is_some().then_some(local)) else { return };
        let (from, file, line) = (module.path.clone(), module.file.clone(), first.span().start().line);
        self.references.push(Reference { from, path, name, is_macro, is_local, file, line });
    }

    fn resolve(mut self) -> Result<Vec<Import>, Failed> {
        // All modules are known now, so those of other crates can be told from children.
        let modules = &self.modules;
        self.references.retain(|one| !one.is_local || modules.contains(&one.path[..=one.from.len()]));
        let (mut imports, mut names) = (Vec::new(), Names::new());
        for Reference { from, path, name, file, line, .. } in &self.references {
            if self.is_hidden(from, path) {
                let place = format!("{}:{line}", file.display());
                return Err(format!("{place}: a glob hides which modules are imported; name the items"));
            }
            if let Some(name) = name {
                names.insert(from.iter().cloned().chain([name.clone()]).collect(), path);
            }
        }
        for Reference { from, path, is_macro, file, line, .. } in &self.references {
            let Some(to) = self.target(path, *is_macro, &names) else { continue };
            if let Some((from, to)) = siblings(from, &to) {
                imports.push(Import { from, to, file: file.clone(), line: *line });
            }
        }
        Ok(imports)
    }

    /// Returns true for a glob whose items may come from other modules: that of a module around this one, and that of a
    /// module in this one, whose items get a second path by it.
    fn is_hidden(&self, from: &[String], path: &[String]) -> bool {
        let Some((star, module)) = path.split_last() else { return false };
        star == "*" && (from.len() > module.len() && from.starts_with(module) || self.is_within(module, from))
    }

    fn is_within(&self, module: &[String], around: &[String]) -> bool {
        module.len() > around.len() && module.starts_with(around) && self.modules.contains(module)
    }

    /// Returns the module that a path leads to.
    fn target(&self, path: &[String], is_macro: bool, names: &Names<'_>) -> Option<Vec<String>> {
        let mut path = path.to_vec();
        // A name may stand for another one, but not more often than there are names.
        for _ in 0..=names.len() {
            let end = (0..=path.len()).rfind(|end| *end == 0 || self.modules.contains(&path[..*end])).unwrap_or(0);
            let Some(item) = path.get(end) else { return Some(path) };
            if let Some(definer) = self.macros.get(item).filter(|_| is_macro || end == 0) {
                return Some(definer.clone());
            }
            match names.get(&path[..=end]) {
                Some(other) if other[..] != path[..=end] => path = [other, &path[end + 1..]].concat(),
                _ => {
                    path.truncate(end);
                    return Some(path);
                }
            }
        }
        None
    }
}

/// Names that modules import, each with its path and what it stands for.
type Names<'r> = BTreeMap<Vec<String>, &'r [String]>;

/// Returns the two modules below the lowest one that contains both; `None` if one of them contains the other.
fn siblings(from: &[String], to: &[String]) -> Option<(String, String)> {
    let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    let below = |path: &[String]| path.get(common).map(|_| path[..=common].join("::"));
    Some((below(from)?, below(to)?))
}

/// Makes a path absolute. Returns `None` if it starts outside the crate or with a local name.
fn from_root(path: Vec<String>, module: &[String]) -> Option<Vec<String>> {
    let mut base = module;
    let mut path = path.into_iter().peekable();
    match path.peek()?.as_str() {
        "crate" => base = &[],
        "self" | "super" => {}
        _ if module.is_empty() => return Some(path.collect()),
        _ => return None,
    }
    while let Some(word) = path.next_if(|word| matches!(word.as_str(), "crate" | "self" | "super")) {
        if word == "super" {
            base = base.split_last().map_or(base, |(_, above)| above);
        }
    }
    // The last word of `use crate::x::{self, Y}` names the module itself.
    Some(base.iter().cloned().chain(path.filter(|word| word != "self")).collect())
}

/// Splits off an attribute. Returns its tokens, true if it is an inner one, and the tokens after it.
fn attribute(tokens: &[TokenTree]) -> Option<(TokenStream, bool, &[TokenTree])> {
    let rest = tokens.split_first().filter(|(first, _)| is_punct(first, '#'))?.1;
    let inner = rest.split_first().filter(|(first, _)| is_punct(first, '!')).map(|(_, rest)| rest);
    match inner.unwrap_or(rest) {
        [TokenTree::Group(group), rest @ ..] if group.delimiter() == Delimiter::Bracket => {
            Some((group.stream(), inner.is_some(), rest))
        }
        _ => None,
    }
}

/// Returns the tokens after the scope of a `pub(…)`, if there is one.
fn after_scope(tokens: &[TokenTree]) -> &[TokenTree] {
    match tokens {
        [TokenTree::Group(scope), rest @ ..] if is_scope(&scope.stream().to_string()) => rest,
        _ => tokens,
    }
}

fn is_scope(text: &str) -> bool {
    matches!(text, "crate" | "self" | "super") || text.starts_with("in ")
}

/// Returns the tokens after an item, or after a field, an arm or a statement.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let words = tokens.iter().map_while(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        TokenTree::Group(scope) if is_scope(&scope.stream().to_string()) => Some("pub".to_owned()),
        _ => None,
    });
    let words: Vec<String> = words.filter(|word| word != "pub").take(2).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_constant = matches!(words[..], ["const", name, ..] if !["fn", "unsafe", "async", "extern"].contains(&name));
    let has_body = !is_constant && !matches!(words[..], ["use" | "static" | "type", ..]);
    let is_item = matches!(
        words[..],
        ["fn" | "mod" | "struct" | "enum" | "union" | "impl" | "const" | "trait" | "unsafe" | "async" | "extern", ..]
    );
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';' || has_body && !is_item && punct.as_char() == ',',
        TokenTree::Group(group) => has_body && group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    tokens.iter().position(ends).map_or(&[], |end| &tokens[end + 1..])
}

fn is_punct(token: &TokenTree, expected: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == expected)
}

/// Returns the name without the `r#` of a raw identifier.
fn plain(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
}
