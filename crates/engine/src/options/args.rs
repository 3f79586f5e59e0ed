//! The words after a directive or a property, taken one by one, each wrong one reported where it stands.

use core::fmt::Display;
use core::ops::RangeBounds;
use core::str::FromStr;
use core::time::Duration;

use corefile::{Code, Diagnostic, Span, Token};
use wire::Name;

use super::Usage;
use super::values::{DurationError, duration, zone_doubt, zone_names};
use crate::codes;

/// What is wrong with a word; small, since it is returned often and made seldom.
pub type Problem = Box<Diagnostic>;

/// The words of one line after its first.
pub struct Args<'a> {
    name: &'a Token,
    words: &'a [Token],
    usage: Usage,
    warnings: Vec<Diagnostic>,
}

impl<'a> Args<'a> {
    /// Takes the words after `name`.
    ///
    /// # Errors
    /// Their number does not fit the usage line.
    pub(crate) fn new(name: &'a Token, words: &'a [Token], usage: Usage) -> Result<Args<'a>, Problem> {
        let args = Args { name, words, usage, warnings: Vec::new() };
        if usage.takes(words.len()) {
            return Ok(args);
        }
        let (least, most) = usage.arity();
        let span = words.get(most.unwrap_or(usize::MAX)).or(words.last()).unwrap_or(name).span;
        let count = match (least, most) {
            (0, Some(0)) => "no arguments".to_owned(),
            (least, Some(most)) if least == most => plural(least),
            (least, Some(most)) => format!("{least} to {most} arguments"),
            (least, None) => format!("at least {}", plural(least)),
        };
        let message = format!("`{}` takes {count}, but {} given", name.text, were(words.len()));
        Err(args.complain(codes::ARGUMENT_COUNT, span, message))
    }

    /// No words after `name`, whatever the usage line says.
    pub(crate) const fn none(name: &'a Token, usage: Usage) -> Args<'a> {
        Args { name, words: &[], usage, warnings: Vec::new() }
    }

    /// Lets `read` take other words, such as those of several lines together.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read_words<T>(
        &mut self,
        words: &[Token],
        read: impl FnOnce(&mut Args<'_>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let warnings = core::mem::take(&mut self.warnings);
        let mut args = Args { name: self.name, words, usage: self.usage, warnings };
        let outcome = read(&mut args);
        self.warnings = args.into_warnings();
        outcome
    }

    /// The first word of the line.
    #[must_use]
    pub const fn name(&self) -> &'a Token {
        self.name
    }

    /// The words that are left.
    #[must_use]
    pub const fn rest(&self) -> &'a [Token] {
        self.words
    }

    /// Takes all words that are left.
    pub fn take_rest(&mut self) -> &'a [Token] {
        core::mem::take(&mut self.words)
    }

    /// Takes the next word, if there is one.
    pub fn next_word(&mut self) -> Option<&'a Token> {
        let (word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(word)
    }

    /// Takes the next word.
    ///
    /// # Errors
    /// No word is left.
    pub fn word(&mut self) -> Result<&'a Token, Problem> {
        let missing = || self.complain(codes::ARGUMENT_COUNT, self.name.span, "a word is missing here");
        let missing = if self.words.is_empty() { Some(missing()) } else { None };
        self.next_word().ok_or_else(|| missing.unwrap_or_else(|| self.problem("a word is missing here")))
    }

    /// Takes the next word as a number within `range`.
    ///
    /// # Errors
    /// No word is left, or it is not valid.
    pub fn number<T>(&mut self, range: impl RangeBounds<T>) -> Result<T, Problem>
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        let word = self.word()?;
        let number: i128 = word.text.parse().map_err(|_| self.bad(word, "a whole number"))?;
        let fitting = T::try_from(number).ok();
        if fitting.is_none() && number > 0 {
            return Err(self.bad(word, "so small as it must be here"));
        }
        fitting.filter(|number| range.contains(number)).ok_or_else(|| self.out_of_range(word, &range))
    }

    fn out_of_range<T: Display>(&self, word: &Token, range: &impl RangeBounds<T>) -> Problem {
        use core::ops::Bound::{Excluded, Included, Unbounded};
        let least = match range.start_bound() {
            Included(least) | Excluded(least) => format!("at least {least}"),
            Unbounded => String::new(),
        };
        let most = match range.end_bound() {
            Included(most) => format!("at most {most}"),
            Excluded(most) => format!("below {most}"),
            Unbounded => String::new(),
        };
        let and = if least.is_empty() || most.is_empty() { "" } else { " and " };
        self.bad(word, &format!("{least}{and}{most}"))
    }

    /// Takes the next word as a duration, zero or more.
    ///
    /// # Errors
    /// No word is left, or it is not valid.
    pub fn duration(&mut self) -> Result<Duration, Problem> {
        let word = self.word()?;
        duration(&word.text).map_err(|error| match error {
            DurationError::Negative => self.bad(word, "a duration that is not below zero"),
            DurationError::NotADuration => self.bad(word, "a duration such as `30s` or `1h20m`"),
        })
    }

    /// Takes the next word as a duration, more than zero.
    ///
    /// # Errors
    /// No word is left, or it is not valid.
    pub fn duration_above_zero(&mut self) -> Result<Duration, Problem> {
        let word = self.words.first();
        let span = self.duration()?;
        match word {
            Some(word) if span.is_zero() => Err(self.bad(word, "a duration above zero")),
            _ => Ok(span),
        }
    }

    /// Takes the next word as one of `choices`.
    ///
    /// # Errors
    /// No word is left, or it is not one of them.
    pub fn choice<T: Copy>(&mut self, choices: &[(&'static str, T)]) -> Result<T, Problem> {
        let word = self.word()?;
        let chosen = choices.iter().find(|(name, _)| *name == word.text);
        chosen.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<String> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
            let problem = self.bad(word, &format!("one of {}", names.join(", ")));
            let near = corefile::did_you_mean(&word.text, choices.iter().map(|(name, _)| *name));
            match near {
                Some(near) => Box::new(problem.with_help(format!("did you mean `{near}`?"))),
                None => problem,
            }
        })
    }

    /// Takes the next word as something that parses.
    ///
    /// # Errors
    /// No word is left, or it does not parse; `wanted` names what was expected.
    pub fn parse<T: FromStr>(&mut self, wanted: &str) -> Result<T, Problem> {
        let word = self.word()?;
        word.text.parse().map_err(|_| self.bad(word, wanted))
    }

    /// Takes the words that are left as zones. What is no name is passed over with a warning, since CoreDNS takes it.
    ///
    /// # Errors
    /// If there are words but no zone among them: none given usually stands for all.
    pub fn zones(&mut self) -> Result<Vec<Name>, Problem> {
        self.zones_but(0)
    }

    /// As [`Args::zones`], and none given stands for all: the root.
    ///
    /// # Errors
    /// As [`Args::zones`].
    pub fn zones_or_all(&mut self) -> Result<Vec<Name>, Problem> {
        let zones = self.zones()?;
        Ok(if zones.is_empty() { vec![Name::root()] } else { zones })
    }

    /// As [`Args::zones`], and leaves the last `left` words for other things.
    ///
    /// # Errors
    /// As [`Args::zones`].
    pub fn zones_but(&mut self, left: usize) -> Result<Vec<Name>, Problem> {
        let (words, rest) = self.words.split_at(self.words.len().saturating_sub(left));
        self.words = rest;
        let mut zones = Vec::new();
        for word in words {
            let named = zone_names(&word.text);
            if named.is_empty() {
                self.warn(word, format!("`{}` is not a zone: no name lies in it", word.text));
            }
            if let Some(doubt) = zone_doubt(&word.text).filter(|_| !named.is_empty()) {
                self.warn(word, format!("`{}` is hardly a zone: {doubt}", word.text));
            }
            zones.extend(named);
        }
        match words {
            [first, ..] if zones.is_empty() => Err(self.bad(first, "a zone")),
            _ => Ok(zones),
        }
    }

    /// Says that a word can be taken, but hardly means what its author meant.
    pub fn warn(&mut self, word: &Token, message: impl Into<String>) {
        self.warnings.push(Diagnostic::warning(codes::VALUE, word.span, message).with_usage(self.usage.0));
    }

    /// Says that a word asks for what CoreDNS has and this build has not: it can be checked, but not served.
    pub fn not_here(&mut self, word: &Token, message: impl Into<String>) {
        self.warnings.push(codes::not_here(codes::OPTION_NOT_HERE, word.span, message));
    }

    /// Says that the line as a whole asks for that, and what to write in its place.
    pub fn line_not_here(&mut self, message: &str, help: &str) {
        let problem = codes::not_here(codes::OPTION_NOT_HERE, self.name.span, message);
        self.warnings.push(problem.with_help(format!("CoreDNS accepts this; {help}")));
    }

    /// The warnings so far.
    pub(crate) fn into_warnings(self) -> Vec<Diagnostic> {
        self.warnings
    }

    /// A problem with a word: what was wanted in its place.
    #[must_use]
    pub fn bad(&self, word: &Token, wanted: &str) -> Problem {
        let message = format!("`{}` is not {wanted}", word.text);
        self.problem_at(word.span, message)
    }

    /// A problem with the whole line.
    #[must_use]
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        self.problem_at(self.name.span, message)
    }

    /// A problem at a place of the line.
    #[must_use]
    pub fn problem_at(&self, span: Span, message: impl Into<String>) -> Problem {
        self.complain(codes::VALUE, span, message)
    }

    fn complain(&self, code: Code, span: Span, message: impl Into<String>) -> Problem {
        Box::new(Diagnostic::error(code, span, message).with_usage(self.usage.0))
    }
}

fn plural(count: usize) -> String {
    if count == 1 { "1 argument".to_owned() } else { format!("{count} arguments") }
}

fn were(count: usize) -> String {
    match count {
        0 => "none were".to_owned(),
        1 => "1 was".to_owned(),
        _ => format!("{count} were"),
    }
}
