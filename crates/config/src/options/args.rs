//! Cursor over the arguments of a directive or a property. It parses them one by one and reports errors at their
//! position.

use core::fmt::Display;
use core::ops::RangeBounds;
use core::str::FromStr;
use core::time::Duration;

use corefile::{Code, Diagnostic, Span, Token};
use gotext::{DurationError, parse_duration};
use wire::Name;

use super::Usage;
use super::values::{zone_doubt, zone_names};
use crate::codes;

/// Error in an argument. Boxed, to keep `Result`s small: most calls succeed.
pub type Problem = Box<Diagnostic>;

/// Arguments of a line that have not been taken yet.
pub struct Args<'a> {
    name: &'a Token,
    words: &'a [Token],
    usage: Usage,
    warnings: Vec<Diagnostic>,
}

impl<'a> Args<'a> {
    /// Creates a cursor over the words after `name`.
    ///
    /// # Errors
    /// The usage line does not allow this number of words.
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

    /// Creates a cursor without words, even if the usage line requires some.
    pub(crate) const fn none(name: &'a Token, usage: Usage) -> Args<'a> {
        Args { name, words: &[], usage, warnings: Vec::new() }
    }

    /// Runs `read` on other words, such as those of several lines together, and collects its warnings.
    ///
    /// # Errors
    /// Returns the error of `read`.
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

    /// Returns the first word of the line.
    #[must_use]
    pub const fn name(&self) -> &'a Token {
        self.name
    }

    /// Returns the remaining words.
    #[must_use]
    pub const fn rest(&self) -> &'a [Token] {
        self.words
    }

    /// Takes all remaining words.
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
    /// No word remains.
    pub fn word(&mut self) -> Result<&'a Token, Problem> {
        let missing = || self.complain(codes::ARGUMENT_COUNT, self.name.span, "an argument is missing");
        let missing = if self.words.is_empty() { Some(missing()) } else { None };
        self.next_word().ok_or_else(|| missing.unwrap_or_else(|| self.problem("an argument is missing")))
    }

    /// Takes the next word as a number within `range`.
    ///
    /// # Errors
    /// No word remains, or it is not a number, or the number is out of range.
    pub fn number<T>(&mut self, range: impl RangeBounds<T>) -> Result<T, Problem>
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        let word = self.word()?;
        let number: i128 = word.text.parse().map_err(|_| self.bad(word, "a whole number"))?;
        let fitting = T::try_from(number).ok();
        // A positive number that the type cannot hold.
        let overflows = fitting.is_none() && number > 0;
        fitting.filter(|number| range.contains(number)).ok_or_else(|| self.out_of_range(word, overflows, &range))
    }

    fn out_of_range<T: Display>(&self, word: &Token, overflows: bool, range: &impl RangeBounds<T>) -> Problem {
        use core::ops::Bound::{Excluded, Included, Unbounded};
        let text = &word.text;
        let message = match (range.start_bound(), range.end_bound()) {
            (Included(least) | Excluded(least), Included(most)) => {
                format!("`{text}` is out of range; use {least}–{most}")
            }
            (Included(least) | Excluded(least), Excluded(end)) => {
                format!("`{text}` is out of range; use at least {least} and less than {end}")
            }
            (Included(least) | Excluded(least), Unbounded) if !overflows => {
                format!("`{text}` is too small; the minimum is {least}")
            }
            (Unbounded, Included(most)) => format!("`{text}` is too large; the maximum is {most}"),
            _ => format!("`{text}` is out of range"),
        };
        self.problem_at(word.span, message)
    }

    /// Takes the next word as a duration of zero or more.
    ///
    /// # Errors
    /// No word remains, or it is not such a duration.
    pub fn duration(&mut self) -> Result<Duration, Problem> {
        let word = self.word()?;
        parse_duration(&word.text).map_err(|error| match error {
            DurationError::Negative => {
                self.problem_at(word.span, format!("`{}` is negative; the minimum is 0s", word.text))
            }
            DurationError::NotADuration => self.bad(word, "a duration such as `30s` or `1h20m`"),
        })
    }

    /// Takes the next word as a duration above zero.
    ///
    /// # Errors
    /// No word remains, or it is not such a duration.
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
    /// No word remains, or it is not one of them.
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

    /// Takes the next word and parses it as a `T`. `wanted` describes a valid word, for the error message.
    ///
    /// # Errors
    /// No word remains, or it does not parse.
    pub fn parse<T: FromStr>(&mut self, wanted: &str) -> Result<T, Problem> {
        let word = self.word()?;
        word.text.parse().map_err(|_| self.bad(word, wanted))
    }

    /// Takes the remaining words as zones. Skips a word that is not a zone, with a warning, because CoreDNS accepts it.
    ///
    /// # Errors
    /// None of the words is a zone. An empty list would be wrong, because callers take it to mean all zones.
    pub fn zones(&mut self) -> Result<Vec<Name>, Problem> {
        self.zones_but(0)
    }

    /// Takes the remaining words as zones, like [`Args::zones`]. Returns the root zone if there are no words.
    ///
    /// # Errors
    /// Same as for [`Args::zones`].
    pub fn zones_or_all(&mut self) -> Result<Vec<Name>, Problem> {
        let zones = self.zones()?;
        Ok(if zones.is_empty() { vec![Name::root()] } else { zones })
    }

    /// Takes all remaining words but the last `left` as zones, like [`Args::zones`].
    ///
    /// # Errors
    /// Same as for [`Args::zones`].
    pub fn zones_but(&mut self, left: usize) -> Result<Vec<Name>, Problem> {
        let (words, rest) = self.words.split_at(self.words.len().saturating_sub(left));
        self.words = rest;
        let mut zones = Vec::new();
        for word in words {
            let named = zone_names(&word.text);
            if named.is_empty() {
                self.warn(
                    word,
                    format!("`{}` is not a zone and is ignored; use a domain name or a network", word.text),
                );
            }
            if let Some(doubt) = zone_doubt(&word.text).filter(|_| !named.is_empty()) {
                self.warn(word, format!("`{}` is probably not the intended zone: {doubt}", word.text));
            }
            zones.extend(named);
        }
        match words {
            [first, ..] if zones.is_empty() => Err(self.bad(first, "a zone")),
            _ => Ok(zones),
        }
    }

    /// Warns that a word is valid but probably not intended.
    pub fn warn(&mut self, word: &Token, message: impl Into<String>) {
        self.warnings.push(Diagnostic::warning(codes::VALUE, word.span, message).with_usage(self.usage.0));
    }

    /// Reports that the line requests a feature that CoreDNS has and this build does not have. The Corefile can be
    /// checked, but not served. `help` says what to write instead.
    pub fn line_not_here(&mut self, message: &str, help: &str) {
        let problem = codes::not_here(codes::OPTION_NOT_HERE, self.name.span, message);
        self.warnings.push(problem.with_help(format!("CoreDNS accepts this; {help}")));
    }

    /// Returns the warnings so far.
    pub(crate) fn into_warnings(self) -> Vec<Diagnostic> {
        self.warnings
    }

    /// Returns an error at a word. `wanted` describes a valid word.
    #[must_use]
    pub fn bad(&self, word: &Token, wanted: &str) -> Problem {
        let message = format!("`{}` is not {wanted}", word.text);
        self.problem_at(word.span, message)
    }

    /// Returns an error for the whole line.
    #[must_use]
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        self.problem_at(self.name.span, message)
    }

    /// Returns an error at a position in the line.
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
