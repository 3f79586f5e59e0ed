//! Runs the examples in the READMEs of the plugins as scenarios, in the world of `world.scn`.
//!
//! Of the blocks of a README, each ```` ~~~ corefile ```` must be served and give no warning; a block with a name behind its
//! kind (```` ~~~ zone db.example.org ````) is the file of that name; and ```` ~~~ console ```` below a Corefile has commands
//! and what they print:
//!
//! ```text
//! $ dig www.example.org AAAA +dnssec
//! ;; status: NXDOMAIN
//! ;; AUTHORITY SECTION:
//! example.org. 300 IN SOA …
//! ```
//!
//! A `status` other than NOERROR is said; records of the answer stand first; other sections are looked at where their
//! heading is; `; EDE: CODE` is an Extended DNS Error; `;; connection timed out` is what a silent server looks like. Any
//! word of a record may be `*`.
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

use corefile::{Style, render};
use engine::{Planning, plan};
use testkit::World;

/// What stands before the Corefile of each example.
const WORLD: &str = include_str!("world.scn");
/// What each README has.
const PARTS: [&str; 4] = ["\n## Description\n", "<!-- syntax -->\n", "\n## Examples\n", "~~~ corefile\n"];

#[test]
fn examples_do_what_they_say() {
    let mut wrong = Vec::new();
    let folders = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap();
    let mut readmes: Vec<_> = folders.map(|folder| folder.unwrap().path().join("README.md")).collect();
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
fn the_page_about_the_language_is_right() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/corefile.md"));
    let wrong = failures(path, &fs::read_to_string(path).unwrap());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with the examples of a page.
fn failures(path: &Path, page: &str) -> Vec<String> {
    let failed = |example: &Example| Some(format!("{}: {}", path.display(), run(example).err()?));
    examples(page).iter().filter_map(failed).collect()
}

/// A block of a README between fences.
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

/// A Corefile of a README, with the files and the questions of its example.
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

/// A statement of a scenario with its body.
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

/// What a user would be told of a Corefile.
fn warnings(example: &Example) -> String {
    let world = World::default();
    example.files.iter().for_each(|(name, text)| world.write(name, text.as_str()));
    let parsed = corefile::parse(Path::new("Corefile"), example.corefile.clone(), &world);
    let mut problems = parsed.diagnostics;
    let planning = Planning { slots: plugins::DIRECTIVES, dns_port: 53, interface: &|_| None };
    plan(&parsed.corefile, &planning, &mut problems);
    render(&problems, &parsed.corefile.sources, Style::Plain)
}
