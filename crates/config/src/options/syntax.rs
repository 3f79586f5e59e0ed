//! Parser of a directive's lines, without the type of the configuration.
//!
//! [`Syntax::read`] is compiled once for all directives. What depends on the type is behind [`Configs`], which a
//! manifest implements with a few calls of its functions.

use corefile::{Diagnostic, Line, Token, did_you_mean};

use super::args::{Args, Problem};
use super::role::{PlacedRole, Role};
use super::usage::Usage;
use crate::codes;
use crate::setup::BlockInfo;

/// Property of an older version of CoreDNS.
pub struct RemovedProperty {
    /// Name.
    pub name: &'static str,
    /// Version of the change, and what to do, as a sentence without a full stop.
    pub instead: &'static str,
}

/// Number of lines that a directive may have in a server block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// One line.
    Once,
    /// Several lines, of which only the first has an effect.
    FirstWins,
    /// Several lines, each with its own configuration, in order.
    Many,
}

/// Part of a manifest that does not depend on the type of the configuration.
pub(super) struct Syntax {
    pub name: &'static str,
    pub usage: Usage,
    pub repeat: Repeat,
    pub other_lines: Option<Usage>,
    pub removed: &'static [RemovedProperty],
    pub deprecated: &'static [RemovedProperty],
}

/// Words that a setter gets.
#[derive(Clone, Copy)]
pub(super) enum Words {
    /// Arguments of the directive.
    Arguments,
    /// Arguments of the property with this index.
    Property(usize),
    /// Line that does not start with the name of a property.
    OtherLine,
    /// No words: the configuration is complete.
    Complete,
}

/// Configurations of the lines of a directive, without their type.
pub(super) trait Configs {
    /// Adds the initial configuration of the next line.
    fn start(&mut self);
    /// Returns the syntax of a property.
    fn property(&self, index: usize) -> Option<Usage>;
    /// Passes words to a setter of the last configuration.
    fn set(&mut self, words: Words, args: &mut Args<'_>) -> Result<(), Problem>;
    /// Checks the last configuration.
    fn check(&self, written: &corefile::Directive, block: &BlockInfo) -> Result<(), Problem>;
    /// Returns the role of the configuration with this index, which must exist.
    fn role(&self, index: usize, written: &corefile::Directive, block: &BlockInfo) -> Role;
}

impl Syntax {
    /// Reads all lines of the directive in a server block into `configs`, and returns their roles. `None` if there is
    /// an error, which is added to `problems`.
    pub(super) fn read(
        &self,
        lines: &[&corefile::Directive],
        block: &BlockInfo,
        configs: &mut dyn Configs,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Vec<PlacedRole>> {
        let before = problems.len();
        problems.extend(lines.get(1).and_then(|second| self.refuse_repeated(second)));
        let counting = if self.repeat == Repeat::FirstWins { lines.len().min(1) } else { lines.len() };
        for line in &lines[..counting] {
            self.read_line(line, block, configs, problems);
        }
        if problems[before..].iter().any(codes::is_mistake) {
            return None;
        }
        let place = |(index, written): (usize, &&corefile::Directive)| {
            PlacedRole::new(configs.role(index, written, block), written)
        };
        Some(lines[..counting].iter().enumerate().map(place).collect())
    }

    /// Returns the diagnostic for a second line, if the directive does not allow it.
    fn refuse_repeated(&self, second: &corefile::Directive) -> Option<Diagnostic> {
        let (name, span) = (self.name, second.name.span);
        match self.repeat {
            Repeat::Many => None,
            Repeat::Once => {
                let message = format!("`{name}` can only be used once in a server block");
                Some(Diagnostic::error(codes::REPEATED, span, message))
            }
            Repeat::FirstWins => {
                let message =
                    format!("`{name}` occurs more than once in this server block; only its first line counts");
                Some(Diagnostic::warning(codes::REPEATED, span, message))
            }
        }
    }

    fn read_line(
        &self,
        written: &corefile::Directive,
        block: &BlockInfo,
        configs: &mut dyn Configs,
        problems: &mut Vec<Diagnostic>,
    ) {
        let before = problems.len();
        configs.start();
        take(problems, configs, Args::new(&written.name, &written.args, self.usage), Words::Arguments);
        for line in written.lines() {
            self.read_property(line, configs, problems);
        }
        if !problems[before..].iter().any(codes::is_mistake) {
            take(problems, configs, Ok(Args::none(&written.name, self.usage)), Words::Complete);
        }
        if !problems[before..].iter().any(codes::is_mistake) {
            problems.extend(configs.check(written, block).err().map(|problem| *problem));
        }
    }

    fn read_property(&self, line: &Line, configs: &mut dyn Configs, problems: &mut Vec<Diagnostic>) {
        let Some((name, words)) = line.words.split_first() else { return };
        let old = |known: &'static [RemovedProperty]| known.iter().find(|old| old.name == name.text);
        if let Some(old) = old(self.removed) {
            let message = format!("`{}` has no property `{}` any more", self.name, name.text);
            problems.push(Diagnostic::error(codes::REMOVED_PROPERTY, name.span, message).with_help(old.instead));
            return;
        }
        if let Some(old) = old(self.deprecated) {
            let message = format!("`{}` of `{}` has no effect any more", name.text, self.name);
            problems.push(Diagnostic::warning(codes::DEPRECATED_PROPERTY, name.span, message).with_help(old.instead));
        }
        let property = properties(configs).enumerate().find(|(_, usage)| usage.name() == name.text);
        match (property, self.other_lines) {
            (Some((index, usage)), _) => {
                take(problems, configs, Args::new(name, words, usage), Words::Property(index));
            }
            (None, Some(usage)) => take(problems, configs, Args::new(name, words, usage), Words::OtherLine),
            (None, None) => problems.push(self.unknown_property(name, configs)),
        }
    }

    fn unknown_property(&self, name: &Token, configs: &dyn Configs) -> Diagnostic {
        let message = format!("unknown property `{}` of `{}`", name.text, self.name);
        let problem = Diagnostic::error(codes::UNKNOWN_PROPERTY, name.span, message);
        let names: Vec<&str> = properties(configs).map(Usage::name).collect();
        match did_you_mean(&name.text, names.iter().copied()) {
            Some(near) => problem.with_help(format!("did you mean `{near}`?")),
            None if names.is_empty() => problem.with_help(format!("`{}` has no properties", self.name)),
            None => problem.with_help(format!("valid properties: {}", names.join(", "))),
        }
    }
}

fn properties(configs: &dyn Configs) -> impl Iterator<Item = Usage> {
    (0..).map_while(|index| configs.property(index))
}

/// Passes the words of a line to a setter and collects errors and warnings.
fn take(problems: &mut Vec<Diagnostic>, configs: &mut dyn Configs, args: Result<Args<'_>, Problem>, words: Words) {
    let taken = args.and_then(|mut args| configs.set(words, &mut args).map(|()| args.into_warnings()));
    match taken {
        Ok(warnings) => problems.extend(warnings),
        Err(problem) => problems.push(*problem),
    }
}
