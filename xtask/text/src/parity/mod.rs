//! `cargo xtask parity VERSION`: what a release of CoreDNS documents and Portolan does not have.
//!
//! Sources are the list of plugins, the README of each plugin and the release notes in the Go module of CoreDNS. Words
//! that Portolan lacks on purpose are in `explained.txt`, with the reason.

mod readme;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Arg, ArgMatches, value_parser};
use config::DirectiveEntry;
use config::options::Directive;

use crate::generate::readme_path;
use crate::markdown::read;
use readme::Readme;
use xtask::Failed;

/// Go module of CoreDNS.
const MODULE: &str = "github.com/coredns/coredns";
/// Words that Portolan lacks on purpose: `PLUGIN WORD: reason` per line. `*` instead of the word is the whole plugin.
const EXPLAINED: &str = include_str!("explained.txt");

/// Returns the command line of `parity`.
pub(crate) fn command() -> clap::Command {
    clap::Command::new("parity")
        .about("List what a release of CoreDNS documents and Portolan does not have")
        .arg(Arg::new("version").required(true).help("Release of CoreDNS: 1.15.0"))
        .arg(
            Arg::new("sources")
                .long("sources")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Directory with the sources of that release [default: the Go module, which is downloaded]"),
        )
}

/// Prints the missing words, those with a reason, and the release notes about plugins.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let version = options.get_one::<String>("version").map_or("", String::as_str).trim_start_matches('v');
    let sources = match options.get_one::<PathBuf>("sources") {
        Some(folder) => std::path::absolute(folder).map_err(|error| error.to_string())?,
        None => download(version)?,
    };
    let ours = Ours::new()?;
    let missing = ours.missing(&plugins(&sources)?)?;
    let (explained, open): (Vec<Missing>, Vec<Missing>) =
        missing.into_iter().partition(|missing| missing.reason(EXPLAINED).is_some());
    for missing in &explained {
        println!("{missing}: {}", missing.reason(EXPLAINED).unwrap_or_default());
    }
    println!("\nRelease notes about plugins:\n");
    notes(&sources, version)?.iter().for_each(|line| println!("{line}"));
    println!();
    if open.is_empty() {
        println!("Portolan has every other word that the READMEs of CoreDNS {version} document");
        return Ok(());
    }
    let lines: Vec<String> = open.iter().map(|missing| format!("missing: {missing}")).collect();
    Err(lines.join("\n"))
}

/// Returns the directory of the Go module, which `go` downloads if it is not in its cache.
fn download(version: &str) -> Result<PathBuf, Failed> {
    let module = format!("{MODULE}@v{version}");
    let arguments = ["mod", "download", "-json", &module];
    let output = Command::new("go").args(arguments).current_dir(std::env::temp_dir()).output();
    let output = output.map_err(|error| format!("go: {error}; install Go, or use `--sources DIR`"))?;
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match said["Dir"].as_str() {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Err(format!("go mod download {module}: {}", said["Error"].as_str().unwrap_or("no directory"))),
    }
}

/// Plugin that the sources of CoreDNS contain.
struct Plugin {
    name: String,
    readme: Readme,
}

/// Reads the READMEs of all plugins that the default build contains. Plugins of other modules have none here.
fn plugins(sources: &Path) -> Result<Vec<Plugin>, Failed> {
    let mut plugins = Vec::new();
    for line in read(&sources.join("plugin.cfg"))?.lines() {
        let Some((name, path)) = line.split('#').next().and_then(|line| line.trim().split_once(':')) else { continue };
        if !path.contains('.') {
            let readme = read(&sources.join("plugin").join(path).join("README.md"))?;
            plugins.push(Plugin { name: name.to_owned(), readme: Readme::parse(name, &readme) });
        }
    }
    Ok(plugins)
}

/// Returns the lines of the release notes about plugins.
fn notes(sources: &Path, version: &str) -> Result<Vec<String>, Failed> {
    let text = read(&sources.join(format!("notes/coredns-{version}.md")))?;
    let about = |line: &&str| line.trim_start_matches(['*', '-', ' ']).starts_with("plugin/");
    Ok(text.lines().filter(about).map(str::to_owned).collect())
}

/// Word of CoreDNS that Portolan lacks.
#[derive(Debug, PartialEq, Eq)]
struct Missing {
    plugin: String,
    /// `None` if the whole plugin is missing.
    word: Option<String>,
}

impl Missing {
    /// Returns the reason in a list, if there is one.
    fn reason<'a>(&self, list: &'a str) -> Option<&'a str> {
        let reasons = list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "));
        let words = [self.word.as_deref().unwrap_or("*"), "*"];
        let mut known = reasons.filter_map(|(what, reason)| Some((what.split_once(' ')?, reason)));
        known.find(|((plugin, word), _)| *plugin == self.plugin && words.contains(word)).map(|(_, reason)| reason)
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.word {
            Some(word) => write!(out, "{}: `{word}`", self.plugin),
            None => write!(out, "plugin `{}`", self.plugin),
        }
    }
}

/// Metrics that Portolan documents.
struct Ours {
    metrics: BTreeSet<String>,
}

impl Ours {
    fn new() -> Result<Ours, Failed> {
        Ok(Ours { metrics: readme::metrics(&read(Path::new("docs/metrics.md"))?) })
    }

    /// Returns the words of plugins that Portolan lacks.
    fn missing(&self, plugins: &[Plugin]) -> Result<Vec<Missing>, Failed> {
        let mut missing = Vec::new();
        for Plugin { name, readme } in plugins {
            let Some(directive) = directive(name) else {
                missing.push(Missing { plugin: name.clone(), word: None });
                continue;
            };
            let known = words(directive)?;
            let words = readme.words.iter().filter(|word| !known.contains(word.as_str()));
            let metrics = readme.metrics.iter().filter(|metric| !self.metrics.contains(metric.as_str()));
            let lacks = words.chain(metrics).cloned();
            missing.extend(lacks.map(|word| Missing { plugin: name.clone(), word: Some(word) }));
        }
        Ok(missing)
    }
}

fn directive(name: &str) -> Option<&'static dyn Directive> {
    plugins::DIRECTIVES.entries().iter().find_map(|entry| match entry {
        DirectiveEntry::Available(directive) if directive.name() == name => Some(*directive),
        _ => None,
    })
}

/// Returns the words that a directive documents: those of its syntax and of its README.
fn words(directive: &'static dyn Directive) -> Result<BTreeSet<String>, Failed> {
    let usages = directive.properties().into_iter().map(|property| property.usage.0);
    let readme = read(&readme_path(directive))?;
    let texts = usages.chain([directive.usage().0, readme.as_str()]);
    Ok(texts.flat_map(readme::words).map(str::to_owned).collect())
}
