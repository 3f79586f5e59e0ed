//! Rules as they are written.

use core::str::FromStr;

use engine::options::{Args, Problem};
use wire::{Class, Name, Rcode, Type};

use crate::goregexp::Regexp;

use super::answer::{Change, Times};
use super::edns::Edit;
use super::pattern::{Pattern, Template, absolute, name_of};

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// The rules behind it are tried although it was for the query.
    pub(super) goes_on: bool,
    pub(super) action: Action,
}

/// What a rule does.
#[derive(Debug)]
pub(super) enum Action {
    Name(Box<Renaming>),
    Type(Type, Type),
    Class(Class, Class),
    /// Sets times to live in the answers for these names.
    Ttl(Pattern, Times),
    /// Changes a response code into another for these names.
    Rcode(Pattern, Rcode, Rcode),
    /// Follows another alias in the place of such ones.
    Alias(Pattern, Template),
    Option(Edit),
}

/// Another name is asked for, and the answer is changed so that nobody sees it.
#[derive(Debug)]
pub(super) struct Renaming {
    pub(super) from: Pattern,
    pub(super) to: Template,
    /// The same if it does not depend on the name asked.
    pub(super) to_name: Option<Name>,
    /// What becomes of owner names, the last one first: names are put back at last, after what is written out.
    pub(super) owners: Vec<Change>,
    /// What becomes of names in data, the last one first.
    pub(super) values: Vec<Change>,
}

/// The words for the kinds of patterns.
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
    /// The name that it is for, if it asks for another one in the place of only this.
    pub(super) fn only_name(&self) -> Option<&Name> {
        match &self.action {
            Action::Name(renaming) => match &renaming.from {
                Pattern::Exact(name) => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Reads a rule; `None` if it is well formed but can never be for a query, which is warned of.
    pub(super) fn read(args: &mut Args<'_>) -> Result<Option<Rule>, Problem> {
        let mode = args.rest().first().map(|word| word.text.to_ascii_lowercase());
        let goes_on = mode.as_deref() == Some("continue");
        if goes_on || mode.as_deref() == Some("stop") {
            args.next_word();
        }
        let Some(field) = args.next_word() else {
            return Err(args.problem("a rule is missing: what it changes, such as `name`, `type` or `ttl`"));
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
                let problem = args.bad(field, "where a rule may begin: response rewrites must begin with a name rule");
                return Err(Box::new(problem.with_help("write `name FROM TO` before it, in the same rule")));
            }
            _ => {
                let wanted = "a type of rule: one of `name`, `type`, `class`, `ttl`, `rcode`, `cname`, `edns0`";
                let problem = args.bad(field, wanted);
                let help = "the old form `rewrite TYPE TYPE` is written `rewrite type TYPE TYPE`";
                let is_type = Type::from_str(&field.text).is_ok();
                return Err(if is_type { Box::new(problem.with_help(help)) } else { problem });
            }
        };
        match args.next_word() {
            Some(word) => Err(args.bad(word, "wanted here: the rule is complete before it")),
            None => Ok(action.map(|action| Rule { goes_on, action })),
        }
    }
}

/// Reads two mnemonics.
fn two<T: FromStr>(args: &mut Args<'_>, what: &str) -> Result<(T, T), Problem> {
    let wanted = format!("a {what} by its mnemonic");
    Ok((args.parse(&wanted)?, args.parse(&wanted)?))
}

/// Reads a response code by mnemonic or number.
fn read_rcode(args: &mut Args<'_>) -> Result<Rcode, Problem> {
    let word = args.word()?;
    let number = word.text.parse().ok().map(Rcode).filter(|code| code.mnemonic().is_some());
    number.or(word.text.parse().ok()).ok_or_else(|| args.bad(word, "a response code by its mnemonic or number"))
}

/// Takes the kind of a pattern, if it stands before at least `behind` words and the pattern.
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

/// Takes a pattern that stands before `behind` words at least; `None` if it can never match.
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
                args.warn(word, format!("`{}` is not a name, so the rule is never for a query: {error}", word.text));
            }
            name.ok().map(|name| Pattern::Exact(Box::new(name)))
        }
    })
}

fn read_regex(args: &mut Args<'_>) -> Result<Regexp, Problem> {
    let word = args.word()?;
    crate::regular_expression(args, word)
}

/// Takes what a pattern's names become.
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
        let wanted = "usable: it names more groups than the regular expression has";
        let help = "put parentheses around what `{0}`, `{1}` stand for";
        Box::new(args.bad(word, wanted).with_help(help))
    })
}

fn read_renaming(args: &mut Args<'_>) -> Result<Option<Renaming>, Problem> {
    let kind = read_kind(args, 1)?;
    let from = read_from(args, kind)?;
    let to = read_to(args, from.as_ref())?;
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
    Ok(Some(Renaming { from, to, to_name, owners, values }))
}

/// What stands behind `name FROM TO`.
#[derive(Default)]
struct Answers {
    is_auto: bool,
    owners: Vec<Change>,
    values: Vec<Change>,
}

impl Answers {
    /// Reads `answer auto`, `[answer] name FROM TO` and `[answer] value FROM TO`, `answer` standing first of all.
    fn read(&mut self, args: &mut Args<'_>) -> Result<(), Problem> {
        let Some(first) = args.rest().first() else { return Ok(()) };
        if first.text != "answer" {
            return Err(args.bad(first, "`answer`, with which rules for the answer begin"));
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
                let wanted = "possible here: `answer auto` cannot be combined with `answer name`";
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

/// Reads what is another alias in the place of which. Beginnings and parts of names are meant as they are written here: only
/// names and their ends get a final dot.
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
