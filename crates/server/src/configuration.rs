//! Which Corefile, and reading it from the disk.

use std::cell::RefCell;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use corefile::{Corefile, Diagnostic, Loader, Parsed, Sources, Style};
use engine::{Plan, Planning};

/// What is served when there is no Corefile: CoreDNS's choice.
const BUILT_IN: &str = "\n    whoami\n    log\n}\n";
/// Octets of the longest Corefile that is read: as much as all its imports may have.
const COREFILE_MAX: u64 = 4 << 20;

/// Where a Corefile comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A file.
    File(PathBuf),
    /// Text that was read once: standard input, or a Corefile from a manifest. The name is for messages.
    Text { name: PathBuf, text: String },
    /// Made by this process, anew when what it is made of changes.
    Made(Made),
    /// None: the built-in one.
    BuiltIn,
}

/// A Corefile that this process makes: its name, and the present text.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) name: &'static str,
    pub(crate) text: Rc<RefCell<String>>,
}

impl Origin {
    /// The Corefile that `-conf` names, or the one in the working directory.
    pub(crate) fn find(conf: Option<&Path>) -> io::Result<Origin> {
        match conf {
            Some(name) if is_standard_input(name) => {
                let mut text = String::new();
                io::stdin().take(COREFILE_MAX).read_to_string(&mut text)?;
                if text.trim().is_empty() {
                    return Err(io::Error::other("standard input is empty: did the command before the pipe fail?"));
                }
                Ok(Origin::Text { name: "stdin".into(), text })
            }
            Some(name) => Ok(Origin::File(name.to_owned())),
            None if Path::new("Corefile").exists() => Ok(Origin::File("Corefile".into())),
            None => Ok(Origin::BuiltIn),
        }
    }

    /// Returns the name and the text; `port` is that of the built-in Corefile.
    pub(crate) fn read(&self, port: u16) -> io::Result<(PathBuf, String)> {
        match self {
            Origin::File(path) => Disk.read(path).map(|text| (path.clone(), text)),
            Origin::Text { name, text } => Ok((name.clone(), text.clone())),
            Origin::Made(made) => Ok((made.name.into(), made.text.borrow().clone())),
            Origin::BuiltIn => Ok(("built-in".into(), format!(".:{port} {{{BUILT_IN}"))),
        }
    }
}

/// Returns true for the names of standard input: CoreDNS's `stdin`, and `-` as in most commands.
fn is_standard_input(name: &Path) -> bool {
    name == Path::new("stdin") || name == Path::new("-")
}

/// A configuration that was read, and what it means if nothing in it is wrong.
pub(crate) struct Configuration {
    /// What it means.
    pub(crate) plan: Option<Plan>,
    /// What is wrong with it, or looks so.
    pub(crate) problems: Vec<Diagnostic>,
    /// The texts, to show problems in.
    pub(crate) sources: Sources,
    /// What changes when its meaning may have changed.
    pub(crate) fingerprint: String,
}

impl Configuration {
    /// Reads a Corefile and what it imports.
    ///
    /// # Errors
    /// If the file itself cannot be read.
    pub(crate) fn read(origin: &Origin, port: u16) -> io::Result<Configuration> {
        let (name, text) = origin.read(port)?;
        let parsed = corefile::parse(&name, text.clone(), &Disk);
        let lacks_brace = parsed.has_unclosed_block();
        let configuration = Configuration::from_parsed(parsed, port)?;
        if configuration.plan.is_some() || !lacks_brace {
            return Ok(configuration);
        }
        // The missing brace makes the lines after it look wrong. If the indentation shows where it belongs, only it is reported.
        let explained = Configuration::from_parsed(corefile::parse_by_indentation(&name, text, &Disk), port)?;
        let is_better = explained.plan.is_none() && explained.errors() <= configuration.errors();
        Ok(if is_better { explained } else { configuration })
    }

    fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.is_error()).count()
    }

    fn from_parsed(parsed: Parsed, port: u16) -> io::Result<Configuration> {
        let Parsed { corefile: written, diagnostics: mut problems } = parsed;
        let served = match written.blocks.is_empty() && !problems.iter().any(Diagnostic::is_error) {
            // A file that serves nothing serves the built-in configuration.
            true => built_in(port)?,
            false => written.clone(),
        };
        let planning =
            Planning { slots: plugins::DIRECTIVES, dns_port: port, interface: &crate::local::interface_addresses };
        let plan = engine::plan(&served, &planning, &mut problems);
        let plan = plan.filter(|_| !problems.iter().any(Diagnostic::is_error));
        // A snippet is read at each of its uses, and what is wrong in it is said once.
        sort(&mut problems);
        problems.dedup_by(|one, other| (one.span, one.code, &one.message) == (other.span, other.code, &other.message));
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Configuration { plan, problems, fingerprint: served.fingerprint_text(&absolute), sources: written.sources })
    }

    /// The problems, as they are shown to people.
    pub(crate) fn render_problems(&self, style: Style) -> String {
        corefile::render(&self.problems, &self.sources, style)
    }
}

/// Puts problems in the order of their places.
pub(crate) fn sort(problems: &mut [Diagnostic]) {
    problems.sort_by_key(|problem| (problem.span.file, problem.span.start, problem.code));
}

/// What is served without a Corefile; nothing in it is wrong.
fn built_in(port: u16) -> io::Result<Corefile> {
    let (name, text) = Origin::BuiltIn.read(port)?;
    Ok(corefile::parse(&name, text, &Disk).corefile)
}

/// Files and environment of this machine.
pub(crate) struct Disk;

impl Loader for Disk {
    fn read(&self, path: &Path) -> io::Result<String> {
        let mut text = String::new();
        std::fs::File::open(path)?.take(COREFILE_MAX).read_to_string(&mut text)?;
        Ok(text)
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        crate::files::glob(pattern)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}
