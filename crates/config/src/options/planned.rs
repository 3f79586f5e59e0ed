//! Directives of CoreDNS that this build does not implement. They are checked against their usage lines, but not
//! served.

use core::net::IpAddr;

use corefile::{Diagnostic, Token, did_you_mean};

use super::args::{Args, Problem};
use super::manifest::{Directive, ParsedDirective, PropertyDoc};
use super::role::{Effect, PlacedRole, Role};
use super::usage::Usage;
use crate::codes;
use crate::setup::{BlockInfo, BlockSettings, Part, Setup, SetupError};
use gotext::parse_duration;
use metrics::Metric;

/// Directive that is not implemented yet.
pub struct PlannedDirective {
    /// Syntax of its own line, including the name.
    pub usage: Usage,
    /// True if it may occur more than once in a server block.
    pub repeated: bool,
    /// Effect in the chain.
    pub effect: Effect,
    /// Syntax of its properties.
    pub properties: &'static [&'static str],
}

impl Directive for PlannedDirective {
    fn name(&self) -> &'static str {
        self.usage.name()
    }

    fn summary(&self) -> &'static str {
        "not in this build"
    }

    fn changes_block_settings(&self) -> bool {
        false
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn properties(&self) -> Vec<PropertyDoc> {
        self.properties.iter().map(|usage| PropertyDoc { usage: Usage(usage), default: "", doc: "" }).collect()
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        &[]
    }

    fn read(
        &self,
        lines: &[&corefile::Directive],
        _: &BlockInfo,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Box<dyn ParsedDirective>> {
        let before = problems.len();
        if let Some(second) = lines.get(1).filter(|_| !self.repeated) {
            let message = format!("`{}` can only be used once in a server block", self.name());
            problems.push(Diagnostic::error(codes::REPEATED, second.name.span, message));
        }
        for line in lines {
            let message = format!("this build does not have the directive `{}` of CoreDNS yet", self.name());
            problems.push(codes::not_here(codes::DIRECTIVE_NOT_HERE, line.name.span, message));
            problems.extend(check_words(&line.name, &line.args, self.usage).err().map(|problem| *problem));
            let words = line.lines().iter().filter_map(|line| line.words.split_first());
            problems.extend(
                words.filter_map(|(name, words)| self.check_property(name, words).err()).map(|problem| *problem),
            );
        }
        let found_right = !problems[before..].iter().any(codes::is_mistake);
        let place = |line: &&corefile::Directive| PlacedRole::new(Role::new(self.effect, &[]), line);
        found_right.then(|| Box::new(NotHere(lines.iter().map(place).collect())) as Box<dyn ParsedDirective>)
    }
}

impl PlannedDirective {
    fn check_property(&self, name: &Token, words: &[Token]) -> Result<(), Problem> {
        let mut usages = self.properties.iter().map(|usage| Usage(usage));
        if let Some(usage) = usages.find(|usage| usage.name() == name.text) {
            return check_words(name, words, usage);
        }
        let message = format!("unknown property `{}` of `{}`", name.text, self.name());
        let problem = Diagnostic::error(codes::UNKNOWN_PROPERTY, name.span, message);
        let near = did_you_mean(&name.text, self.properties.iter().map(|usage| Usage(usage).name()));
        Err(Box::new(match near {
            Some(near) => problem.with_help(format!("did you mean `{near}`?")),
            None => problem,
        }))
    }
}

/// Checks the number of words against the usage line, and the values of numbers, durations, addresses and choices.
fn check_words(name: &Token, words: &[Token], usage: Usage) -> Result<(), Problem> {
    let mut args = Args::new(name, words, usage)?;
    for wanted in usage.arguments().split(' ') {
        let wanted = wanted.trim_matches(['[', ']']);
        let (Some(word), false) = (args.rest().first(), wanted.ends_with("...")) else { break };
        check_word(&args, word, wanted)?;
        args.next_word();
    }
    Ok(())
}

fn check_word(args: &Args<'_>, word: &Token, wanted: &str) -> Result<(), Problem> {
    let text = word.text.as_str();
    let is_choice = wanted.contains('|') && wanted.chars().all(|letter| letter == '|' || letter.is_lowercase());
    match wanted {
        "NUMBER" if text.parse::<u64>().is_err() => Err(args.bad(word, "a whole number")),
        "DURATION" if parse_duration(text).is_err() => Err(args.bad(word, "a duration such as `30s` or `1h20m`")),
        "SECONDS|DURATION" if text.parse::<u64>().is_err() && parse_duration(text).is_err() => {
            Err(args.bad(word, "a number of seconds or a duration"))
        }
        "IP" if text.parse::<IpAddr>().is_err() => Err(args.bad(word, "an IP address")),
        _ if is_choice && !wanted.split('|').any(|choice| choice == text) => {
            Err(args.bad(word, &format!("one of {}", wanted.replace('|', ", "))))
        }
        _ => Ok(()),
    }
}

/// Well-formed directive without an implementation. It is never built, because [`codes::not_here`] rejects the
/// Corefile.
struct NotHere(Vec<PlacedRole>);

impl ParsedDirective for NotHere {
    fn roles(&self) -> &[PlacedRole] {
        &self.0
    }

    fn settings(&self, _: &mut BlockSettings) {}

    fn build(self: Box<Self>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
        Err(SetupError::new("this build does not have it"))
    }
}
