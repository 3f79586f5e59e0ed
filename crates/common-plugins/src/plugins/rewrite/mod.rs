//! Rewrites queries on their way down and responses on their way up.

mod answer;
mod edns;
mod labelled;
mod pattern;
mod rule;

use config::options::{Args, Effect, Manifest, Problem, Role};
use config::setup::{Part, Setup, SetupError};
use corefile::Token;
use engine::{Failure, Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use wire::{EdeCode, Mark, Name, NameError, Owner, Rcode, Section, Type};

use answer::Change;
use pattern::Pattern;
use rule::{Action, Renaming, Rule};

pub static MANIFEST: Manifest<Config> =
    Manifest::new("rewrite", "rewrite queries and responses according to rules", Config::default, build)
        .repeated()
        .arguments("rewrite [continue|stop] [FIELD [TYPE] FROM TO [OPTIONS...]]", |config, args| {
            config.words = args.take_rest().to_vec();
            Ok(())
        })
        .other_lines("FIELD [WORDS...]", add_line)
        .complete(complete)
        .asks_server()
        .role(|line| match line.config.rule.as_ref().map(|rule| &rule.action) {
            Some(Action::Name(_)) => Role::new(Effect::Renames, &[]),
            _ => Role::new(Effect::OnAnswers, &[]),
        });

/// Minimum number of words of a rule. With fewer, the line only has the mode, and the block has the rule.
const RULE_WORDS_MIN: usize = 2;

#[derive(Default)]
pub struct Config {
    /// Words of the rule, from the line or from the block.
    words: Vec<Token>,
    has_block: bool,
    rule: Option<Rule>,
}

fn add_line(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    if !config.has_block && config.words.len() >= RULE_WORDS_MIN {
        return Err(args.bad(args.name(), "allowed here: write the rule on the line or in the block, not both"));
    }
    config.has_block = true;
    config.words.push(args.name().clone());
    config.words.extend_from_slice(args.take_rest());
    Ok(())
}

fn complete(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let words = core::mem::take(&mut config.words);
    config.rule = args.read_words(&words, Rule::read)?;
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let labels = setup.labels();
    let mut rules: Vec<Rule> = configs.into_iter().filter_map(|config| config.rule).collect();
    for rule in &mut rules {
        match &mut rule.action {
            Action::Option(edit) => edit.bind(&labels),
            Action::Name(renaming) => renaming.to_labelled.iter_mut().for_each(|to| to.bind(&labels)),
            _ => {}
        }
    }
    Ok(Some(Part::new(Rewrite { stages: stages(&rules), rules }, Hooks::BOTH)))
}

/// Step in the search for matching rules.
enum Stage {
    /// Consecutive `stop` rules with an exact name each, combined into one lookup.
    Names(HashMap<Box<[u8]>, usize, RandomState>),
    /// Single rule.
    One(usize),
}

fn stages(rules: &[Rule]) -> Vec<Stage> {
    let mut stages = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let Some(exact) = rule.only_name().filter(|_| !rule.goes_on) else {
            stages.push(Stage::One(at));
            continue;
        };
        if !matches!(stages.last(), Some(Stage::Names(_))) {
            stages.push(Stage::Names(HashMap::default()));
        }
        if let Some(Stage::Names(names)) = stages.last_mut() {
            names.entry(exact.as_bytes().into()).or_insert(at);
        }
    }
    stages
}

struct Rewrite {
    rules: Vec<Rule>,
    stages: Vec<Stage>,
}

/// Values of the query note: no rule applied, or several. Otherwise the index of the only rule plus one.
const NOTHING: u64 = 0;
const SEVERAL: u64 = u64::MAX;

/// Rule that was applied to a query.
struct Applied {
    rule: usize,
    /// Query name before the rule.
    original: Name,
    /// Query name after the rule.
    rewritten: Name,
}

/// Alias of a response whose target a rule replaces.
struct Replaced {
    /// Index of the alias among the records of the response.
    record: usize,
    /// Target in the response.
    target: Name,
}

impl Plugin for Rewrite {
    fn reads_client(&self, _: &Query) -> bool {
        self.rules.iter().any(|rule| matches!(&rule.action, Action::Option(edit) if edit.reads_client()))
    }

    fn on_query(&self, query: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        let mut applied = AppliedRules::None;
        for stage in &self.stages {
            let at = match stage {
                Stage::Names(names) => match names.get(query.key().as_bytes()) {
                    Some(at) => *at,
                    None => continue,
                },
                Stage::One(at) => *at,
            };
            let original = query.key().to_name();
            match self.rules[at].action.apply(query) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(error) => {
                    query.restore_question();
                    return error.into_verdict();
                }
            }
            applied.add(at, original, query);
            if !self.rules[at].goes_on {
                break;
            }
        }
        applied.note(query);
        Verdict::Pass
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let (one, several);
        let applied: &[Applied] = match query.note() {
            NOTHING => return Verdict::Pass,
            SEVERAL => {
                several = query.take_kept::<Vec<Applied>>().unwrap_or_default();
                &several
            }
            rule => {
                let rule = usize::try_from(rule - 1).unwrap_or_default();
                one = [Applied { rule, original: query.request.name.clone(), rewritten: query.key().to_name() }];
                &one
            }
        };
        // Before names are restored: a rule for aliases sees the names as they were when it was applied.
        let alias = self.find_alias(applied, response);
        if let Err(error) = self.put_back(applied, query, response, worker) {
            return Verdict::Fail(unwritable(&error));
        }
        applied.iter().rev().for_each(|applied| self.rules[applied.rule].action.change_answer(response));
        match alias {
            None => Verdict::Pass,
            Some(Err(error)) => error.into_verdict(),
            Some(Ok((replaced, name))) => {
                query.keep(replaced);
                // The answer for the new target has rules of its own.
                Verdict::Subquery(Box::new(Subquery { name, qtype: query.qtype, target: SubqueryTarget::Top }))
            }
        }
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Verdict {
        let Some(replaced) = query.take_kept::<Replaced>() else { return Verdict::Pass };
        match follow_other(&replaced, query, sub, response, worker) {
            Ok(()) => Verdict::Pass,
            Err(error) => Verdict::Fail(unwritable(&error)),
        }
    }
}

/// Failure of a query whose answer cannot be rewritten.
fn unwritable(error: &NameError) -> Failure {
    Failure::servfail(EdeCode::INVALID_DATA, error.to_string()).with_text("the answer cannot be rewritten")
}

/// Result of a rewrite that is not a domain name.
#[derive(Debug, thiserror::Error)]
#[error("invalid name after rewrite: {text}")]
struct InvalidNameError {
    text: String,
    #[source]
    source: NameError,
}

impl InvalidNameError {
    fn into_verdict(self) -> Verdict {
        let failure = Failure::servfail(EdeCode::OTHER, self.to_string());
        Verdict::Fail(failure.with_text("the name cannot be rewritten to a valid name"))
    }
}

/// Rules applied to one query. Nearly always none or one, which need no allocation.
enum AppliedRules {
    None,
    One(usize),
    Several(Vec<Applied>),
}

impl AppliedRules {
    fn add(&mut self, rule: usize, original: Name, query: &Query) {
        let rewritten = || query.key().to_name();
        match self {
            AppliedRules::None => *self = AppliedRules::One(rule),
            AppliedRules::One(first) => {
                let first = Applied { rule: *first, original: query.request.name.clone(), rewritten: original.clone() };
                *self = AppliedRules::Several(vec![first, Applied { rule, original, rewritten: rewritten() }]);
            }
            AppliedRules::Several(rules) => rules.push(Applied { rule, original, rewritten: rewritten() }),
        }
    }

    /// Stores them in the query for the way up.
    fn note(self, query: &mut Query) {
        match self {
            AppliedRules::None => {}
            AppliedRules::One(rule) => query.set_note(rule as u64 + 1),
            AppliedRules::Several(rules) => {
                query.set_note(SEVERAL);
                query.keep(rules);
            }
        }
    }
}

impl Action {
    /// Applies the rule to a query. Returns true if the query matched.
    ///
    /// # Errors
    /// The rewritten name is not a valid name.
    fn apply(&self, query: &mut Query) -> Result<bool, InvalidNameError> {
        match self {
            Action::Name(renaming) => return renaming.apply(query),
            Action::Type(from, to) if query.qtype == *from => query.qtype = *to,
            Action::Class(from, to) if query.qclass == *from => query.qclass = *to,
            Action::Ttl(names, _) | Action::Rcode(names, ..) => return Ok(names.matches(query.key())),
            Action::Option(edit) => return Ok(edit.apply(query)),
            Action::Type(..) | Action::Class(..) => return Ok(false),
            // A match only shows in the response.
            Action::Alias(..) => {}
        }
        Ok(true)
    }

    /// Returns true if the rule changes the question.
    const fn asks_otherwise(&self) -> bool {
        matches!(self, Action::Name(_) | Action::Type(..) | Action::Class(..))
    }

    /// Applies the rule to the TTLs and the code of a response.
    fn change_answer(&self, response: &mut Response) {
        match self {
            Action::Ttl(_, times) => {
                for at in 0..response.message.marks().len() {
                    let mark = response.message.marks()[at];
                    let ttl = times.apply(response.message.ttl(mark));
                    response.message.set_ttl(mark, ttl);
                }
            }
            Action::Rcode(_, from, to) if response.rcode() == *from => response.set_rcode(*to),
            _ => {}
        }
    }
}

impl Renaming {
    fn apply(&self, query: &mut Query) -> Result<bool, InvalidNameError> {
        if let Some(name) = &self.to_name {
            let is_for = self.from.matches(query.key());
            if is_for {
                query.set_name(name.as_ref());
            }
            return Ok(is_for);
        }
        let text = match (&self.from, &self.to_labelled) {
            (Pattern::Regex(regex), Some(to)) => to.fill(regex, query.key(), query),
            _ => self.from.replace(query.key(), &self.to),
        };
        let Some(text) = text else { return Ok(false) };
        let name = pattern::name_of(&text).map_err(|source| InvalidNameError { text, source })?;
        query.set_name(name.as_ref());
        Ok(true)
    }
}

impl Rewrite {
    /// Finds the alias of a response that a rule replaces. Returns it with the name to ask for.
    fn find_alias(
        &self,
        applied: &[Applied],
        response: &Response,
    ) -> Option<Result<(Replaced, Name), InvalidNameError>> {
        // Rules are undone from the last one to the first.
        applied.iter().enumerate().rev().find_map(|(at, rule)| {
            let Action::Alias(from, to) = &self.rules[rule.rule].action else { return None };
            let (before, after) = (&applied[..at], &applied[at + 1..]);
            let marks = response.message.marks().iter().enumerate();
            let mut aliases = marks.filter(|(_, mark)| (mark.section, mark.rtype) == (Section::Answer, Type::CNAME));
            let (record, text) = aliases.find_map(|(record, mark)| {
                let target = response.message.name_in(*mark, 0).ok()?;
                let target = self.change(target, after, |renaming| &renaming.values).into_lowercase();
                Some((record, from.replace(target.as_ref(), to)?))
            })?;
            Some(match pattern::name_of(&text) {
                Ok(name) => {
                    let target = self.change(name.clone(), before, |renaming| &renaming.values);
                    Ok((Replaced { record, target }, name))
                }
                Err(source) => Err(InvalidNameError { text, source }),
            })
        })
    }

    /// Returns a name of a response as it is above these rules.
    fn change(&self, name: Name, applied: &[Applied], changes: fn(&Renaming) -> &[Change]) -> Name {
        applied.iter().rev().fold(name, |name, applied| match &self.rules[applied.rule].action {
            Action::Name(renaming) => {
                let (rewritten, original) = (applied.rewritten.as_ref(), applied.original.as_ref());
                changes(renaming).iter().rev().fold(name, |name, change| change.apply(name, rewritten, original))
            }
            _ => name,
        })
    }

    /// Restores the client's question, and changes the names in the response as the rules require.
    fn put_back(
        &self,
        applied: &[Applied],
        query: &mut Query,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Result<(), NameError> {
        if !applied.iter().any(|applied| self.rules[applied.rule].action.asks_otherwise()) {
            return Ok(());
        }
        query.restore_question();
        let change = |name, changes| self.change(name, applied, changes);
        let question = query.name().to_name();
        response.rewrite(query, &mut worker.scratch, |message, old| {
            old.marks().iter().try_for_each(|mark| {
                let record = old.record(*mark);
                let owner = change(record.owner()?, |renaming| &renaming.owners);
                let owner = if owner == question { Owner::Question } else { Owner::Name(owner.as_ref()) };
                let mut names = 0;
                let value = |name| {
                    names += 1;
                    // The second name of an SOA record is a mailbox, not a host.
                    let is_mailbox = mark.rtype == Type::SOA && names == 2;
                    if is_mailbox { name } else { change(name, |renaming| &renaming.values) }
                };
                message.push_record_mapped(mark.section, owner, record.ttl(), &record, value).map(drop)
            })
        })
    }
}

/// Replaces an alias and the records after it by another alias and the records of its target.
fn follow_other(
    replaced: &Replaced,
    query: &Query,
    sub: &Response,
    response: &mut Response,
    worker: &mut Worker,
) -> Result<(), NameError> {
    let Some(alias) = response.message.marks().get(replaced.record).copied() else { return Ok(()) };
    let (rcode, is_alias) = (response.rcode(), query.qtype == Type::CNAME);
    response.rewrite(query, &mut worker.scratch, |message, old| {
        for mark in old.section(Section::Answer).take_while(|mark| mark.start <= alias.start) {
            let record = old.record(mark);
            let owner = record.owner()?;
            let value = |name| if mark.start == alias.start { replaced.target.clone() } else { name };
            let owner = Owner::Name(owner.as_ref());
            message.push_record_mapped(Section::Answer, owner, record.ttl(), &record, value)?;
        }
        for mark in sub.message.section(Section::Answer).filter(|_| !is_alias) {
            message.push_record(Section::Answer, &sub.message.record(mark))?;
        }
        let is_positive = rcode == Rcode::NOERROR && sub.message.section(Section::Answer).next().is_some();
        let is_denial = |mark: &&Mark| is_positive && (mark.section, mark.rtype) == (Section::Authority, Type::SOA);
        let others = old.marks().iter().filter(|mark| mark.section > Section::Answer && !is_denial(mark));
        others
            .map(|mark| (mark.section, old.record(*mark)))
            .try_for_each(|(section, record)| message.push_record(section, &record).map(drop))
    })
}
