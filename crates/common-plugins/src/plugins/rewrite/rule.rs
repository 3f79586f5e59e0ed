//! Parser for rewrite rules.

use core::str::FromStr;

use config::options::{Args, Problem};
use gotext::regexp::Regexp;
use wire::{Class, Name, Rcode, Type};

use crate::shared::option_helpers::regular_expression;

use super::answer::{Change, Times};
use super::edns::Edit;
use super::labelled::Labelled;
use super::pattern::{Pattern, Template, absolute, name_of};

/// Rewrite rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// True for `continue`: the following rules are tried even if this one matched.
    pub(super) goes_on: bool,
    pub(super) action: Action,
}

/// Effect of a rule.
#[derive(Debug)]
pub(super) enum Action {
    Name(Box<Renaming>),
    Type(Type, Type),
    Class(Class, Class),
    /// Sets TTLs in responses for these names.
    Ttl(Pattern, Times),
    /// Replaces a response code for these names.
    Rcode(Pattern, Rcode, Rcode),
    /// Replaces CNAME targets that match.
    Alias(Pattern, Template),
    Option(Edit),
}

/// Rewrite of the query name. The response is rewritten so that the client sees its own name.
#[derive(Debug)]
pub(super) struct Renaming {
    pub(super) from: Pattern,
    pub(super) to: Template,
    /// Replacement as a name, if it does not depend on the query name.
    pub(super) to_name: Option<Name>,
    /// Replacement in place of `to`, if it may contain metadata labels.
    pub(super) to_labelled: Option<Labelled>,
    /// Changes to owner names, applied from last to first: explicit `answer` rules first, then restoring the query
    /// name.
    pub(super) owners: Vec<Change>,
    /// Changes to names in record data, applied from last to first.
    pub(super) values: Vec<Change>,
}

/// Keywords for the kinds of patterns.
const KINDS: [(&str, Kind); 5] = [
    ("exact", Kind::Exact),
    ("prefix", Kind::Prefix),
    ("suffix", Kind::Suffix),
    ("substring", Kind::Substring),
    ("regex", Kind::Regex),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Exact,
    Prefix,
    Suffix,
    Substring,
    Regex,
}

impl Kind {
    fn of(text: &str) -> Option<Kind> {
        KINDS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
    }
}

impl Rule {
    /// Returns the name of an exact-match name rule.
    pub(super) fn only_name(&self) -> Option<&Name> {
        match &self.action {
            Action::Name(renaming) => match &renaming.from {
                Pattern::Exact(name) => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Parses a rule. Returns `None` with a warning if the rule is well-formed but can never match.
    pub(super) fn read(args: &mut Args<'_>) -> Result<Option<Rule>, Problem> {
        let mode = args.rest().first().map(|word| word.text.to_ascii_lowercase());
        let goes_on = mode.as_deref() == Some("continue");
        if goes_on || mode.as_deref() == Some("stop") {
            args.next_word();
        }
        let Some(field) = args.next_word() else {
            return Err(args.problem("missing rule: expected a field such as `name`, `type` or `ttl`"));
        };
        let action = match field.text.to_ascii_lowercase().as_str() {
            "name" => read_renaming(args)?.map(|renaming| Action::Name(Box::new(renaming))),
            "type" => Some(two(args, "type").map(|(from, to)| Action::Type(from, to))?),
            "class" => Some(two(args, "class").map(|(from, to)| Action::Class(from, to))?),
            "ttl" => {
                let from = read_pattern(args, 1)?;
                let times = Times::read(args)?;
                from.map(|from| Action::Ttl(from, times))
            }
            "rcode" => {
                let from = read_pattern(args, 2)?;
                let (code, other) = (read_rcode(args)?, read_rcode(args)?);
                from.map(|from| Action::Rcode(from, code, other))
            }
            "cname" => read_alias(args)?,
            "edns0" => Some(Action::Option(Edit::read(args)?)),
            "answer" => {
                let problem = args.bad(field, "a type of rule: response rewrites must begin with a name rule");
                return Err(Box::new(problem.with_help("write `name FROM TO` before it, in the same rule")));
            }
            _ => {
                let wanted = "a type of rule: one of `name`, `type`, `class`, `ttl`, `rcode`, `cname`, `edns0`";
                let problem = args.bad(field, wanted);
                let help = "write the old form `rewrite TYPE TYPE` as `rewrite type TYPE TYPE`";
                let is_type = Type::from_str(&field.text).is_ok();
                return Err(if is_type { Box::new(problem.with_help(help)) } else { problem });
            }
        };
        match args.next_word() {
            Some(word) => Err(args.bad(word, "allowed here: the rule is already complete")),
            None => Ok(action.map(|action| Rule { goes_on, action })),
        }
    }
}

/// Parses two mnemonics.
fn two<T: FromStr>(args: &mut Args<'_>, what: &str) -> Result<(T, T), Problem> {
    let wanted = format!("a {what} by its mnemonic");
    Ok((args.parse(&wanted)?, args.parse(&wanted)?))
}

/// Parses a response code by mnemonic or number.
fn read_rcode(args: &mut Args<'_>) -> Result<Rcode, Problem> {
    let word = args.word()?;
    let number = word.text.parse().ok().map(Rcode).filter(|code| code.mnemonic().is_some());
    number.or(word.text.parse().ok()).ok_or_else(|| args.bad(word, "a response code by its mnemonic or number"))
}

/// Takes the kind of a pattern, if it is followed by the pattern and at least `behind` words.
fn read_kind(args: &mut Args<'_>, behind: usize) -> Result<Kind, Problem> {
    if args.rest().len() <= behind + 1 {
        return Ok(Kind::Exact);
    }
    let word = args.word()?;
    let wanted = "one of `exact`, `prefix`, `suffix`, `substring`, `regex`";
    Kind::of(&word.text).ok_or_else(|| {
        let problem = args.bad(word, wanted);
        match word.text.as_str() {
            "stop" | "continue" => Box::new(problem.with_help(format!("write `rewrite {} name ...`", word.text))),
            _ => problem,
        }
    })
}

/// Takes a pattern that is followed by at least `behind` words. `None` if it can never match.
fn read_pattern(args: &mut Args<'_>, behind: usize) -> Result<Option<Pattern>, Problem> {
    let kind = read_kind(args, behind)?;
    read_from(args, kind)
}

fn read_from(args: &mut Args<'_>, kind: Kind) -> Result<Option<Pattern>, Problem> {
    if kind == Kind::Regex {
        return read_regex(args).map(Pattern::Regex).map(Some);
    }
    let word = args.word()?;
    let text = absolute(&word.text);
    Ok(match kind {
        Kind::Prefix => Some(Pattern::Prefix(text)),
        Kind::Suffix => Some(Pattern::Suffix(text)),
        Kind::Substring => Some(Pattern::Substring(text)),
        Kind::Exact | Kind::Regex => {
            let name = name_of(&word.text);
            if let Err(error) = &name {
                args.warn(word, format!("`{}` is not a name, so the rule never matches: {error}", word.text));
            }
            name.ok().map(|name| Pattern::Exact(Box::new(name)))
        }
    })
}

fn read_regex(args: &mut Args<'_>) -> Result<Regexp, Problem> {
    let word = args.word()?;
    regular_expression(args, word)
}

/// Takes the replacement for a pattern.
fn read_to(args: &mut Args<'_>, from: Option<&Pattern>) -> Result<Template, Problem> {
    let word = args.word()?;
    match from {
        Some(Pattern::Regex(regex)) => read_template(args, word, regex),
        Some(Pattern::Exact(_)) | None => {
            name_of(&word.text).map_err(|error| args.bad(word, &format!("a name: {error}")))?;
            Ok(Template::plain(absolute(&word.text)))
        }
        Some(_) => Ok(Template::plain(absolute(&word.text))),
    }
}

fn read_template(args: &Args<'_>, word: &corefile::Token, regex: &Regexp) -> Result<Template, Problem> {
    Template::with_groups(&word.text, regex.groups()).map_err(|_| {
        let wanted = "valid: it refers to more groups than the regular expression has";
        let help = "put parentheses around the parts that `{0}`, `{1}` refer to";
        Box::new(args.bad(word, wanted).with_help(help))
    })
}

fn read_renaming(args: &mut Args<'_>) -> Result<Option<Renaming>, Problem> {
    let kind = read_kind(args, 1)?;
    let from = read_from(args, kind)?;
    let to_labelled = read_labelled(args, from.as_ref())?;
    let to = if to_labelled.is_some() { Template::plain(String::new()) } else { read_to(args, from.as_ref())? };
    let mut renaming = Answers::default();
    renaming.read(args)?;
    let Some(from) = from else { return Ok(None) };
    let Answers { is_auto, mut owners, mut values } = renaming;
    let back = match (&from, is_auto) {
        (Pattern::Exact(_), _) | (Pattern::Prefix(_) | Pattern::Substring(_) | Pattern::Regex(_), true) => {
            Some([Change::Back, Change::Back])
        }
        (Pattern::Suffix(suffix), true) => {
            let swap = || Change::Suffix { from: to.text().to_owned(), to: suffix.clone() };
            Some([swap(), swap()])
        }
        (_, false) => None,
    };
    if let Some([owner, value]) = back {
        owners.insert(0, owner);
        values.insert(0, value);
    }
    let to_name = if let Pattern::Exact(_) = from { name_of(to.text()).ok() } else { None };
    Ok(Some(Renaming { from, to, to_name, to_labelled, owners, values }))
}

/// Takes `TO metadata`, if that word follows.
fn read_labelled(args: &mut Args<'_>, from: Option<&Pattern>) -> Result<Option<Labelled>, Problem> {
    let Some(word) = args.rest().get(1).filter(|word| word.text == "metadata") else { return Ok(None) };
    let Some(Pattern::Regex(regex)) = from else {
        return Err(args.bad(word, "allowed here: `metadata` is only supported for `name regex` rules"));
    };
    let to = args.word()?;
    args.next_word();
    let parsed = Labelled::parse(&absolute_as_written(&to.text), regex.groups());
    parsed.map(Some).map_err(|reason| Box::new(args.bad(to, "a replacement").with_help(reason.to_string())))
}

/// Returns a text with a final dot.
fn absolute_as_written(text: &str) -> String {
    if text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

/// Response rules after `name FROM TO`.
#[derive(Default)]
struct Answers {
    is_auto: bool,
    owners: Vec<Change>,
    values: Vec<Change>,
}

impl Answers {
    /// Parses `answer auto`, `[answer] name FROM TO` and `[answer] value FROM TO`. The first one must start with
    /// `answer`.
    fn read(&mut self, args: &mut Args<'_>) -> Result<(), Problem> {
        let Some(first) = args.rest().first() else { return Ok(()) };
        if first.text != "answer" {
            return Err(args.bad(first, "`answer`, which starts a response rule"));
        }
        while let Some(first) = args.next_word() {
            let word = if first.text == "answer" { args.word()? } else { first };
            match word.text.as_str() {
                "auto" => self.is_auto = true,
                "name" => self.owners.push(read_change(args)?),
                "value" => self.values.push(read_change(args)?),
                _ => return Err(args.bad(word, "one of `auto`, `name`, `value`")),
            }
            if self.is_auto && !self.owners.is_empty() {
                let wanted = "allowed here: `answer auto` cannot be combined with `answer name`";
                return Err(args.bad(word, wanted));
            }
        }
        Ok(())
    }
}

fn read_change(args: &mut Args<'_>) -> Result<Change, Problem> {
    let regex = read_regex(args)?;
    let word = args.word()?;
    let to = read_template(args, word, &regex)?;
    Ok(Change::Matching(Pattern::Regex(regex), to))
}

/// Parses a `cname` rule. Unlike exact names and suffixes, prefixes and substrings are used as written, without adding
/// a final dot.
fn read_alias(args: &mut Args<'_>) -> Result<Option<Action>, Problem> {
    let kind = read_kind(args, 1)?;
    let part: fn(String) -> Pattern = match kind {
        Kind::Prefix => Pattern::Prefix,
        Kind::Substring => Pattern::Substring,
        Kind::Exact | Kind::Suffix | Kind::Regex => {
            let from = read_from(args, kind)?;
            let to = read_to(args, from.as_ref())?;
            return Ok(from.map(|from| Action::Alias(from, to)));
        }
    };
    let from = args.word()?.text.to_lowercase();
    let to = args.word()?.text.to_lowercase();
    Ok(Some(Action::Alias(part(from), Template::plain(to))))
}
