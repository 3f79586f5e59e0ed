//! Text that is generated from the code. Most of it is committed, and a test checks that it is up to date. The man
//! pages and completion scripts are made for a release only.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use config::DirectiveEntry;
use config::options::Directive;
use engine::SERVER_METRICS;
use metrics::{Kind, Metric};
use portolan::manual;

use crate::markdown::{escaped, read, with_block};
use crate::{man, monitoring};
use xtask::{Failed, root};

/// Completion scripts, with the names that the shells expect.
const COMPLETIONS: [(Shell, &str); 3] =
    [(Shell::Bash, "portolan.bash"), (Shell::Zsh, "_portolan"), (Shell::Fish, "portolan.fish")];

/// Returns the definition of the command line of `gen`.
pub(crate) fn command() -> Command {
    Command::new("gen")
        .about("Write the text that is generated from the code: READMEs, metrics, diagnostics, alerts")
        .arg(Arg::new("check").long("check").action(ArgAction::SetTrue).help("Only check that it is up to date"))
}

/// Returns the definition of the command line that `cargo xtask release` uses.
pub(crate) fn release_command() -> Command {
    let output = Arg::new("output").required(true).value_parser(value_parser!(PathBuf));
    Command::new("release-texts").about("Write the texts of a release into a directory").hide(true).arg(output)
}

/// Writes man pages and completion scripts below `manual`, and the dashboards.
pub(crate) fn write_release_texts(options: &ArgMatches) -> Result<(), Failed> {
    let output = options.get_one::<PathBuf>("output").map_or(Path::new(""), PathBuf::as_path);
    let manual = manual_files()?.into_iter().map(|(path, text)| (Path::new("manual").join(path), text));
    for (path, text) in manual.chain([(PathBuf::from("dashboards.yaml"), monitoring::config_maps()?)]) {
        write(&output.join(path), &text)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failed> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes the texts that are out of date. With `check`, returns them as an error instead.
pub(crate) fn run(check: bool) -> Result<(), Failed> {
    let mut stale = Vec::new();
    for (path, text) in texts()? {
        let place = root().join(&path);
        if std::fs::read(&place).ok().as_deref() == Some(text.as_bytes()) {
            continue;
        }
        if check {
            stale.push(format!("{}: out of date; run `cargo xtask gen`", path.display()));
            continue;
        }
        write(&place, &text)?;
        println!("wrote {}", path.display());
    }
    if stale.is_empty() { Ok(()) } else { Err(stale.join("\n")) }
}

/// Returns all generated files, and the files with generated blocks, with their expected content.
fn texts() -> Result<Vec<(PathBuf, String)>, Failed> {
    let mut texts = vec![(PathBuf::from("docs/metrics.md"), metrics_page())];
    texts.push((PathBuf::from("docs/openapi.json"), control::document()));
    let plugins = read(Path::new("docs/plugins.md"))?;
    texts.push((PathBuf::from("docs/plugins.md"), with_block(&plugins, "plugins", &plugins_table())?));
    let summary = read(Path::new("docs/SUMMARY.md"))?;
    texts.push((PathBuf::from("docs/SUMMARY.md"), with_block(&summary, "plugins", &plugin_chapters())?));
    let diagnostics = read(Path::new("docs/diagnostics.md"))?;
    texts.push((PathBuf::from("docs/diagnostics.md"), with_block(&diagnostics, "codes", &codes_table())?));
    let doctor = read(Path::new("docs/doctor.md"))?;
    texts.push((PathBuf::from("docs/doctor.md"), with_block(&doctor, "checks", &checks_tables())?));
    let explain = read(Path::new("docs/explain.md"))?;
    texts.push((PathBuf::from("docs/explain.md"), with_block(&explain, "reasons", &reasons_table())?));
    for directive in plugins::DIRECTIVES.available() {
        texts.push(plugin_readme(directive)?);
    }
    texts.extend(monitoring::texts()?);
    Ok(texts)
}

/// Returns the man pages and completion scripts, with their paths in a release.
fn manual_files() -> Result<Vec<(PathBuf, String)>, Failed> {
    let mut files: Vec<_> =
        manual::man_pages().into_iter().map(|(name, page)| (Path::new("man").join(name), page)).collect();
    let language = read(Path::new("docs/corefile.md"))?;
    files.push(man_file("portolan-corefile", 5, "the configuration language", &language));
    let keeper = section(&read(Path::new("docs/deploy.md"))?, "### The keeper")?;
    files.push(man_file("portolan-keeper", 1, "start the server, and start it again after a crash", &keeper));
    for directive in plugins::DIRECTIVES.available() {
        let (_, readme) = plugin_readme(directive)?;
        files.push(man_file(&format!("portolan-{}", directive.name()), 7, directive.summary(), &readme));
    }
    files.extend(COMPLETIONS.map(|(shell, name)| (Path::new("completions").join(name), manual::completions(shell))));
    files.sort();
    Ok(files)
}

/// Returns a section of a page: from its heading to the next one.
///
/// # Errors
/// The page does not have the heading.
fn section(page: &str, heading: &str) -> Result<String, Failed> {
    let missing = || format!("docs: the heading `{heading}` is missing");
    let (_, rest) = page.split_once(&format!("\n{heading}\n")).ok_or_else(missing)?;
    Ok(format!("{heading}\n{}", rest.split("\n#").next().unwrap_or(rest)))
}

/// Folders with a folder for each plugin.
const PLUGIN_FOLDERS: [&str; 2] = ["crates/common-plugins/src/plugins", "crates/plugins/src/plugins"];

/// Returns the path of the README of a directive.
pub(crate) fn readme_path(directive: &dyn Directive) -> PathBuf {
    readme_of(directive.name())
}

/// Returns the path of the README of a plugin: that in the last folder, unless an earlier one has it.
fn readme_of(plugin: &str) -> PathBuf {
    let [first, last] = PLUGIN_FOLDERS.map(|folder| Path::new(folder).join(plugin).join("README.md"));
    if xtask::root().join(&first).exists() { first } else { last }
}

fn plugin_readme(directive: &dyn Directive) -> Result<(PathBuf, String), Failed> {
    let path = readme_path(directive);
    let in_file = |error| format!("{}: {error}", path.display());
    let mut text = with_block(&read(&path)?, "syntax", &syntax(directive)).map_err(in_file)?;
    if !directive.metrics().is_empty() {
        text = with_block(&text, "metrics", &metrics_table(directive.metrics())).map_err(in_file)?;
    }
    Ok((path, text))
}

/// Formats the syntax of a directive with a table of its properties.
fn syntax(directive: &dyn Directive) -> String {
    let properties = directive.properties();
    let mut text = format!("## Syntax\n\n~~~ txt\n{}", directive.usage());
    if properties.is_empty() {
        text.push_str("\n~~~\n");
        return text;
    }
    text.push_str(" {\n");
    for property in &properties {
        let _ = writeln!(text, "    {}", property.usage);
    }
    text.push_str("}\n~~~\n\n| property | default | meaning |\n|---|---|---|\n");
    for property in &properties {
        let default = if property.default.is_empty() { "" } else { &format!("`{}`", property.default) };
        let _ = writeln!(text, "| `{}` | {default} | {} |", escaped(property.usage.0), escaped(property.doc));
    }
    text
}

fn metrics_table(metrics: &[&Metric]) -> String {
    let mut text = "## Metrics\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for metric in metrics {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let _ = writeln!(text, "| `{}` | {kind} | {} | {} |", metric.name, labels.join(", "), escaped(metric.help));
    }
    text
}

fn metrics_page() -> String {
    let mut text =
        "# Metrics\n\nGenerated by `cargo xtask gen`. CoreDNS's metrics keep their names and labels. Portolan's own \
                    metrics start with `portolan_`.\n"
            .to_owned();
    for (title, metrics) in metrics_by_part() {
        let table = metrics_table(&metrics);
        let _ = write!(text, "\n{}", table.replacen("## Metrics", &format!("## {title}"), 1));
    }
    text
}

/// Returns all metrics by the part of the server that has them.
pub(crate) fn metrics_by_part() -> Vec<(&'static str, Vec<&'static Metric>)> {
    let mut parts = vec![
        ("Server", SERVER_METRICS.to_vec()),
        ("Build and configuration", portolan::BUILD_METRICS.iter().chain(&plugins::ENABLED_METRICS).copied().collect()),
        ("Responses over HTTP and QUIC", portolan::RESPONSE_METRICS.to_vec()),
        ("Limits", portolan::LIMIT_METRICS.to_vec()),
        ("Process", [&portolan::PROCESS_METRICS[..], &portolan::INTERNAL_ERROR_METRICS].concat()),
        ("Keeper", portolan::KEEPER_METRICS.to_vec()),
        ("Log", portolan::LOG_METRICS.to_vec()),
        ("Kubernetes API server", portolan::CLUSTER_METRICS.to_vec()),
        ("portolan kube-dns", portolan::KUBE_DNS_METRICS.to_vec()),
        ("etcd", portolan::ETCD_METRICS.to_vec()),
        ("portolan node", portolan::NODE_METRICS.to_vec()),
        ("portolan relay", portolan::RELAY_METRICS.to_vec()),
    ];
    for entry in plugins::DIRECTIVES.entries() {
        if let DirectiveEntry::Available(directive) = entry
            && !directive.metrics().is_empty()
            && directive.name() != "prometheus"
        {
            parts.push((directive.name(), directive.metrics().to_vec()));
        }
    }
    parts
}

/// Formats a table of the directives of this build, with a list of planned ones below.
fn plugins_table() -> String {
    let mut text = "| plugin | what it does |\n|---|---|\n".to_owned();
    let mut later = Vec::new();
    for entry in plugins::DIRECTIVES.entries() {
        match entry {
            DirectiveEntry::Available(directive) => {
                let name = directive.name();
                let _ = writeln!(text, "| [{name}](../{}) | {} |", readme_of(name).display(), directive.summary());
            }
            DirectiveEntry::Planned(_) => later.push(entry.name()),
            DirectiveEntry::Removed(_) => {}
        }
    }
    let _ = writeln!(
        text,
        "\nPlanned, but not in this build: {}. A Corefile with one of them is refused.",
        later.join(", ")
    );
    text
}

/// Formats the chapters of the book for the plugins of this build.
fn plugin_chapters() -> String {
    let mut names: Vec<&str> = plugins::DIRECTIVES
        .entries()
        .iter()
        .filter(|entry| matches!(entry, DirectiveEntry::Available(_)))
        .map(DirectiveEntry::name)
        .collect();
    names.sort_unstable();
    names.iter().map(|name| format!("  - [{name}](../{})\n", readme_of(name).display())).collect()
}

/// Formats a table of all diagnostic codes, each with a link to its section.
fn codes_table() -> String {
    let mut text = "| code | what is wrong |\n|---|---|\n".to_owned();
    for code in portolan::diagnostics::codes() {
        let _ = writeln!(text, "| [{code}](#{}) | {} |", code.name().replace('/', ""), escaped(code.summary()));
    }
    text
}

/// Formats the checks of `portolan doctor`, a table for each area.
fn checks_tables() -> String {
    let mut text = String::new();
    for area in doctor::Area::ALL {
        let _ = write!(
            text,
            "### {}: `--only {}`\n\n| code | all is well if | how it looks | fix | sources | permissions |\n\
             |---|---|---|---|---|---|\n",
            area.title(),
            area.name()
        );
        for check in doctor::all().filter(|check| check.area == area) {
            let sources: Vec<&str> = check.needs.iter().map(|need| need.name()).collect();
            let cells = [check.title, check.meaning, check.fix].map(escaped);
            let last = [sources.join(", "), check.rights.join(", ")].join(" | ");
            let _ = writeln!(text, "| {} | {} | {last} |", check.code, cells.join(" | "));
        }
        text.push('\n');
    }
    text
}

/// Formats a table of the codes of `portolan explain`: those of the server, then those of plugins.
fn reasons_table() -> String {
    let mut text = "| code | meaning | what to do |\n|---|---|---|\n".to_owned();
    let own = control::explain::Code::ALL.into_iter().map(|code| (code.name(), code.meaning(), code.advice()));
    let plugins = plugins::reason_codes().map(|code| (code.code, code.meaning, code.advice));
    for (code, meaning, advice) in own.chain(plugins) {
        let _ = writeln!(text, "| {code} | {} | {} |", escaped(meaning), escaped(advice));
    }
    text
}

fn man_file(name: &str, section: u8, about: &str, markdown: &str) -> (PathBuf, String) {
    let path = Path::new("man").join(format!("{name}.{section}"));
    (path, man::page(name, section, about, markdown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_text_is_up_to_date() {
        assert_eq!(run(true), Ok(()));
    }

    #[test]
    fn manual_has_pages_of_commands_and_plugins_and_completions() {
        let files = manual_files().unwrap();
        for name in [
            "man/portolan.1",
            "man/portolan-keeper.1",
            "man/portolan-check.1",
            "man/portolan-cache.7",
            "completions/_portolan",
        ] {
            assert!(files.iter().any(|(path, text)| path == Path::new(name) && !text.is_empty()), "{name}");
        }
    }
}
