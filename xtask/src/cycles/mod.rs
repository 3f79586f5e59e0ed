//! Import cycles between the modules of each crate: between its top-level modules, and between those of each folder.
//!
//! A module that imports another one is above it. In a cycle nothing is above and nothing below, so no module can be
//! read, tested or moved without the others. The check covers each library and each program of the workspace. Among
//! its siblings, a module with a folder counts as one module; the root file (`lib.rs`, `mod.rs`) does not count.

mod imports;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use imports::{Import, Read, imports};
use serde_json::Value;

use crate::arrows::{packages, room};
use crate::{Failed, root};

/// Modules with the modules that they import, and the places of these imports.
type Graph = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// Checks all crates.
pub(crate) fn run() -> Result<(), Failed> {
    let mut wrong = Vec::new();
    for package in packages()? {
        for target in roots(&package) {
            let read: Read<'_> = &|path| std::fs::read_to_string(root().join(path)).ok();
            wrong.extend(problems(&room(&package), target, read)?);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Returns the root files of the libraries and programs of a package, relative to the project.
fn roots(package: &Value) -> impl Iterator<Item = &Path> {
    let targets = package["targets"].as_array().map_or(&[][..], Vec::as_slice);
    let kinds = |target: &Value| target["kind"].as_array().cloned().unwrap_or_default();
    let is_code = move |target: &&Value| kinds(target).iter().any(|kind| kind == "lib" || kind == "bin");
    let paths = targets.iter().filter(is_code).filter_map(|target| Some(Path::new(target["src_path"].as_str()?)));
    let project = root();
    paths.map(move |path| path.strip_prefix(&project).unwrap_or(path))
}

/// Describes the cycles of the crate with this root file.
fn problems(room: &str, root: &Path, read: Read<'_>) -> Result<Vec<String>, Failed> {
    let graph = graph(imports(root, read)?);
    Ok(cycles(&graph).iter().map(|cycle| described(room, cycle, &graph)).collect())
}

fn graph(imports: Vec<Import>) -> Graph {
    let mut graph = Graph::new();
    for Import { from, to, file, line } in imports {
        let places = graph.entry(from).or_default().entry(to).or_default();
        let place = format!("{}:{line}", file.display());
        if places.last() != Some(&place) {
            places.push(place);
        }
    }
    graph
}

/// Returns a short cycle of each group of modules that import each other, or several of a large group. A cycle can hide
/// others with the same modules.
fn cycles(graph: &Graph) -> Vec<Vec<&str>> {
    let (mut cycles, mut seen) = (Vec::new(), BTreeSet::new());
    for module in graph.keys() {
        if seen.contains(module.as_str()) {
            continue;
        }
        if let Some(cycle) = shortest(graph, module) {
            seen.extend(cycle.iter().copied());
            cycles.push(cycle);
        }
    }
    cycles
}

/// Returns the shortest cycle through a module: its modules in order, from this one.
fn shortest<'g>(graph: &'g Graph, module: &'g str) -> Option<Vec<&'g str>> {
    let (mut paths, mut seen) = (VecDeque::from([vec![module]]), BTreeSet::new());
    while let Some(path) = paths.pop_front() {
        for next in path.last().and_then(|last| graph.get(*last)).into_iter().flat_map(BTreeMap::keys) {
            if next == module {
                return Some(path);
            }
            if seen.insert(next) {
                paths.push_back(path.iter().copied().chain([next.as_str()]).collect());
            }
        }
    }
    None
}

fn described(room: &str, cycle: &[&str], graph: &Graph) -> String {
    let around: Vec<&str> = cycle.iter().chain(cycle.first()).copied().collect();
    let mut text = format!("`{room}` has the import cycle {}:", around.join(" → "));
    for pair in around.windows(2) {
        let places = graph.get(pair[0]).and_then(|imports| imports.get(pair[1])).map_or(&[][..], Vec::as_slice);
        text += &format!("\n    {} → {}: {}", pair[0], pair[1], places.join(", "));
    }
    text + "\n    move what both sides need into a module below them"
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "mod a;\nmod b;\npub use b::{Name as Other, inner::Deep};\nuse b::f;\nfn own() {}\n";
    const B: &str = "use crate::a;\npub mod inner { pub struct Deep; }\n#[macro_export] macro_rules! m { () => {} }\n";

    /// Returns the problems of an invented crate: pairs of a path and a text.
    fn checked(files: &[(&str, &str)]) -> Result<Vec<String>, Failed> {
        let files: BTreeMap<&Path, &str> = files.iter().map(|(path, text)| (Path::new(*path), *text)).collect();
        problems("x", Path::new("lib.rs"), &|path| files.get(path).map(|text| (*text).to_owned()))
    }

    #[test]
    fn the_crates_have_no_import_cycle() {
        assert_eq!(run(), Ok(()));
    }

    #[test]
    fn shows_a_cycle_with_the_place_of_each_import() {
        let problems = checked(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
            ("a.rs", "use crate::b;\n"),
            ("b/mod.rs", "mod part;\nuse crate::d;\n"),
            ("b/part.rs", "\nuse crate::c::{C, D};\nfn f() -> crate::c::C { C }\n"),
            ("c.rs", "use crate::d;\nuse crate::a::A;\n"),
            ("d.rs", ""),
        ]);
        let expected = "`x` has the import cycle a → b → c → a:\n    a → b: a.rs:1\n    b → c: b/part.rs:2, b/part.rs:3\n    \
                        c → a: c.rs:2\n    move what both sides need into a module below them";
        assert_eq!(problems, Ok(vec![expected.to_owned()]));
    }

    #[test]
    fn reports_separate_cycles() {
        let lib = ("lib.rs", "mod a;\nmod b;\nmod c { use crate::d; }\nmod d { use crate::c; }\n");
        let problems = checked(&[lib, ("a.rs", "use crate::b;"), ("b.rs", "use crate::a;\nuse crate::c;")]).unwrap();
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn sees_each_form_of_an_import() {
        for a in [
            "use crate::b;",
            "use crate::b::{self};",
            "use crate::{own, b::f};",
            "use std::fmt;\nuse {crate::b as other};",
            "pub(crate) use crate::b::f;",
            "fn g() { crate::b::f() }",
            "fn g() { if x != crate::b::X { } }",
            "fn g(b: &mut crate::b::B<'_>) {}",
            "fn g() { println!(\"{}\", crate::b::f()) }",
            "macro_rules! m { () => { $crate::b::f() } }",
            "fn g() { crate::m!{} }",
            "use crate::m;",
            "use crate::Other;",
            "use crate::{Deep, own};",
            "fn g() { crate::f() }",
            "use super::b;",
            "use self::super::b::f;",
            "mod part { use super::super::b::f; }",
            "mod part { fn g() { use crate::b::f; } }",
            "#[cfg(test)] mod tests { }\nuse crate::b;",
            "#[cfg(test)] fn t<A, B>() { }\nuse crate::b;",
            "#[cfg(test)] use crate::{a, own};\nuse crate::b;",
            "#[cfg(test)] pub(crate) const A: T = T { a: 1 };\nuse crate::b;",
            "struct S { #[cfg(test)] a: u8, b: crate::b::B }",
            "#[cfg(any(test, feature = \"x\"))] use crate::b;",
        ] {
            let problems = checked(&[("lib.rs", LIB), ("a.rs", a), ("b.rs", B)]).unwrap();
            assert_eq!(problems.len(), 1, "{a}");
        }
    }

    #[test]
    fn ignores_tests_comments_and_paths_within_the_module() {
        for a in [
            "// use crate::b;",
            "//! [`b`](crate::b)\n/// [`crate::b`]\nfn g() {}",
            "fn g() -> &'static str { \"crate::b::f\" }",
            "#[cfg(test)] mod tests { use crate::b; }",
            "#[cfg(test)]\n#[path = \"nosuch.rs\"]\nmod tests;",
            "#[cfg(all(test, unix))] use crate::b::{f, g};",
            "#[cfg(test)] fn t<A, B>() { crate::b::f() }",
            "#[cfg(test)] const fn t() -> u8 { crate::b::f() }",
            "#[cfg(test)] pub(crate) static A: T = T { a: crate::b::X };",
            "mod part { #![cfg(test)] use crate::b; }",
            "struct S { #[cfg(test)] a: crate::b::B, b: u8 }",
            "use b::f; use crate::own; use ::b::g; fn g() { b::f() }",
            "mod b {} mod part { use super::b; } use self::b as c;",
            "use crate::a::own; mod part { use super::own; use crate::a::own; }",
        ] {
            assert_eq!(checked(&[("lib.rs", LIB), ("a.rs", a), ("b.rs", B)]), Ok(Vec::new()), "{a}");
        }
    }

    #[test]
    fn sees_cycles_between_the_modules_of_a_folder() {
        let folder = |parent: &str, b: &str, c: &str| {
            checked(&[("lib.rs", "mod a;"), ("a/mod.rs", parent), ("a/b.rs", b), ("a/c.rs", c)]).unwrap()
        };
        let parent = "mod b;\nmod c;\npub(crate) use c::C;\nstruct A;\n";
        let problems = folder(parent, "use super::C;", "use crate::a::b::B;");
        assert!(problems[0].starts_with("`x` has the import cycle a::b → a::c → a::b:"), "{problems:?}");
        // Between a module and those in it, nothing is above.
        assert_eq!(folder(parent, "use super::A;", "use crate::a::b::B;"), Vec::<String>::new());
    }

    #[test]
    fn follows_modules_to_their_files() {
        for (lib, a, d) in [
            ("mod a;", "a.rs", "a/c/d.rs"),
            ("pub(crate) mod r#a;", "a/mod.rs", "a/c/d.rs"),
            ("#[path = \"other.rs\"] pub(crate) mod a;", "other.rs", "c/d.rs"),
        ] {
            let lib = format!("{lib}\nmod b;\n");
            let b = ("b.rs", "use crate::a;");
            let problems = checked(&[("lib.rs", &lib), (a, "mod c { mod d; }"), b, (d, "use crate::b;")]);
            assert_eq!(problems.unwrap().len(), 1, "{a}");
        }
        assert_eq!(checked(&[("lib.rs", "mod a;")]), Err("a.rs: the file of a module is missing".to_owned()));
    }

    #[test]
    fn refuses_globs_that_hide_a_module() {
        let glob = |lib: &str, a: &str| checked(&[("lib.rs", &format!("mod a;\n{lib}")), ("a.rs", a)]);
        assert!(glob("", "use crate::*;").unwrap_err().starts_with("a.rs:1: a glob hides"));
        assert!(glob("", "\nuse super::*;").unwrap_err().starts_with("a.rs:2: "));
        assert!(glob("pub use a::*;", "").unwrap_err().starts_with("lib.rs:2: "));
        assert!(glob("", "mod b { use super::*; }").unwrap_err().starts_with("a.rs:1: "));
        assert_eq!(glob("use other::*;", "use other::*;"), Ok(Vec::new()));
    }
}
