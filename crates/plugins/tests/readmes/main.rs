//! Runs the examples in the READMEs of the plugins as scenarios, in the world of `world.scn`.
//!
//! A README must have the sections Description and Examples, the generated block `<!-- syntax -->`, and a Corefile.
//!
//! Every ```` ~~~ corefile ```` block must be served without warnings. A block with a name after its kind
//! (```` ~~~ zone db.example.org ````) is a file of that name. A ```` ~~~ console ```` block after a Corefile has
//! commands with their output:
//!
//! ```text
//! $ dig www.example.org AAAA +dnssec
//! ;; status: NXDOMAIN
//! ;; AUTHORITY SECTION:
//! example.org. 300 IN SOA …
//! ```
//!
//! The status is NOERROR unless stated. Records of the answer section come first. Other sections are compared if their
//! heading is there. `; EDE: CODE` is an Extended DNS Error, and `;; connection timed out` means that the server does
//! not answer. Any word of a record may be `*`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test reads its files and may fail"
)]

mod console;
#[path = "../words/mod.rs"]
mod words;

use std::fs;
use std::path::Path;

use config::{Planning, plan};
use corefile::{Style, render};
use testkit::World;

/// Scenario text before the Corefile of each example.
const WORLD: &str = include_str!("world.scn");
/// Parts that each README must have.
const PARTS: [&str; 4] = ["\n## Description\n", "<!-- syntax -->\n", "\n## Examples\n", "~~~ corefile\n"];

#[test]
fn examples_in_readmes_work() {
    let mut wrong = Vec::new();
    let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let folders =
        ["common-plugins", "plugins"].map(|name| fs::read_dir(crates.join(name).join("src/plugins")).unwrap());
    let mut readmes: Vec<_> =
        folders.into_iter().flatten().map(|folder| folder.unwrap().path().join("README.md")).collect();
    readmes.sort();
    for path in readmes.iter().filter(|path| path.exists()) {
        let readme = fs::read_to_string(path).unwrap();
        let missing = PARTS.iter().filter(|part| !readme.contains(*part));
        wrong.extend(missing.map(|part| format!("{}: there is no {part:?}", path.display())));
        wrong.extend(failures(path, &readme));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_in_the_corefile_page_work() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/corefile.md"));
    let wrong = failures(path, &fs::read_to_string(path).unwrap());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Failures of the examples on a page.
fn failures(path: &Path, page: &str) -> Vec<String> {
    let failed = |example: &Example| Some(format!("{}: {}", path.display(), run(example).err()?));
    examples(page).iter().filter_map(failed).collect()
}

/// Fenced block of a README.
struct Block<'a> {
    kind: &'a str,
    name: &'a str,
    text: &'a str,
}

fn blocks(readme: &str) -> Vec<Block<'_>> {
    let fenced = readme.split("\n~~~").skip(1).step_by(2);
    fenced
        .filter_map(|block| {
            let (head, text) = block.split_once('\n')?;
            let (kind, name) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
            Some(Block { kind, name, text })
        })
        .collect()
}

/// Corefile of a README with the files and commands of its example.
struct Example {
    corefile: String,
    files: Vec<(String, String)>,
    scenario: String,
}

fn examples(readme: &str) -> Vec<Example> {
    let blocks = blocks(readme);
    let named = blocks.iter().filter(|block| !block.name.is_empty());
    let files: Vec<_> = named.map(|file| (file.name.to_owned(), file.text.to_owned())).collect();
    let written: String = files.iter().map(|(name, text)| statement(&format!("file {name}"), text)).collect();
    let mut examples: Vec<Example> = Vec::new();
    for block in blocks.iter().filter(|block| block.name.is_empty()) {
        match (block.kind, examples.last_mut()) {
            ("corefile", _) => examples.push(Example {
                corefile: block.text.to_owned(),
                files: files.clone(),
                scenario: format!("{WORLD}{written}{}", statement("corefile", block.text)),
            }),
            ("console", Some(example)) => example.scenario.push_str(&statement("console", block.text)),
            _ => {}
        }
    }
    examples
}

/// Statement of a scenario with its body.
fn statement(head: &str, body: &str) -> String {
    let lines: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!("{head}\n{lines}")
}

fn run(example: &Example) -> Result<(), String> {
    let warnings = warnings(example);
    if !warnings.is_empty() {
        return Err(warnings);
    }
    let problems = testkit::run_text(
        &example.scenario,
        plugins::DIRECTIVES,
        &[
            || Box::<words::Cluster>::default(),
            || Box::<words::Etcd>::default(),
            || Box::new(words::Database),
            || Box::new(console::Console),
        ],
    );
    let texts: Vec<_> = problems.into_iter().map(|problem| problem.text).collect();
    if texts.is_empty() { Ok(()) } else { Err(texts.join("\n")) }
}

/// Warnings that a user would see for the Corefile.
fn warnings(example: &Example) -> String {
    let world = World::default();
    example.files.iter().for_each(|(name, text)| world.write(name, text.as_str()));
    let parsed = corefile::parse(Path::new("Corefile"), example.corefile.clone(), &world);
    let mut problems = parsed.diagnostics;
    let planning =
        Planning { entries: plugins::DIRECTIVES.entries(), dns_port: 53, interface: &|_| None, memory: None };
    plan(&parsed.corefile, &planning, &mut problems);
    render(&problems, &parsed.corefile.sources, Style::Plain)
}
