//! Translates Go's syntax into that of the crate `regex`.
//!
//! Flags are resolved here instead of passed on: each translated item carries the flags that apply to it and does not
//! depend on what precedes it. Groups keep their numbers. Their names stay here because Go allows names that the crate
//! does not.

use core::fmt::Write;

use super::class;
use super::error::{DEPTH_MAX, REPEAT_MAX, RegexpError};
use crate::cursor::Cursor;

/// Expression in the syntax of the crate.
pub(super) struct Translated {
    pub(super) text: String,
    /// Group names; the first entry is the whole expression.
    pub(super) names: Vec<Option<String>>,
}

/// Translates an expression.
///
/// # Errors
/// The first error in the expression.
pub(super) fn translate(text: &str) -> Result<Translated, RegexpError> {
    let level = Level { repeats: 1, ..Level::default() };
    let mut translator = Translator { cursor: Cursor::new(text), outer: Vec::new(), level, names: vec![None] };
    translator.run()?;
    let Translator { outer, level, names, .. } = translator;
    if outer.is_empty() { Ok(Translated { text: level.text, names }) } else { Err(RegexpError::UnclosedGroup) }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flags {
    any_case: bool,
    lines: bool,
    dot_is_all: bool,
    ungreedy: bool,
}

/// Open group, or the whole expression.
#[derive(Default)]
struct Level {
    /// Translation so far.
    text: String,
    flags: Flags,
    /// Text that opens the group in the translation.
    opening: &'static str,
    /// Number of group names before this group.
    names: usize,
    /// Largest product of nested repeat counts inside, without the last item.
    repeats: u32,
    /// Item that a repetition operator would apply to. `None` at the start and after `|`.
    last: Option<Item>,
}

#[derive(Clone, Copy)]
struct Item {
    /// Start of the item in the translation.
    start: usize,
    /// Number of group names before the item.
    names: usize,
    /// Largest product of nested repeat counts inside the item.
    repeats: u32,
}

impl Level {
    /// Marks the last item as complete: no repetition operator follows it.
    fn settle(&mut self) {
        if let Some(item) = self.last.take() {
            self.repeats = self.repeats.max(item.repeats);
        }
    }
}

struct Translator<'t> {
    cursor: Cursor<'t>,
    /// Open groups that enclose the current one.
    outer: Vec<Level>,
    level: Level,
    names: Vec<Option<String>>,
}

impl<'t> Translator<'t> {
    fn run(&mut self) -> Result<(), RegexpError> {
        let mut repeated = false;
        while !self.cursor.rest().is_empty() {
            match self.repetition()? {
                Some(repetition) if repeated => return Err(RegexpError::RepeatsTwice(repetition.written)),
                Some(repetition) => {
                    self.repeat(repetition)?;
                    repeated = true;
                }
                None => {
                    self.item()?;
                    repeated = false;
                }
            }
        }
        Ok(())
    }

    /// Parses one item that is not a repetition operator.
    fn item(&mut self) -> Result<(), RegexpError> {
        let before = self.cursor.rest();
        let Some(next) = self.cursor.next() else { return Ok(()) };
        let Flags { any_case, lines, dot_is_all, .. } = self.level.flags;
        match next {
            '(' => return self.open(before),
            ')' => return self.close(),
            '|' => {
                self.level.settle();
                self.level.text.push('|');
            }
            '[' => {
                let class = class::bracketed(&mut self.cursor)?;
                self.push_folded(&class, any_case);
            }
            '.' => self.push(if dot_is_all { "(?s:.)" } else { r"[^\n]" }),
            '^' => self.push(if lines { "(?m:^)" } else { r"\A" }),
            '$' => self.push(if lines { "(?m:$)" } else { r"\z" }),
            '\\' => return self.escape(before),
            next => self.push_character(u32::from(next)),
        }
        Ok(())
    }

    /// Parses an escape sequence.
    fn escape(&mut self, before: &'t str) -> Result<(), RegexpError> {
        if self.cursor.take("Q") {
            let (literal, rest) = self.cursor.rest().split_once(r"\E").unwrap_or((self.cursor.rest(), ""));
            self.cursor.move_to(rest);
            literal.chars().for_each(|character| self.push_character(u32::from(character)));
            return Ok(());
        }
        let assertions = [("A", r"\A"), ("z", r"\z"), ("b", r"(?-u:\b)"), ("B", r"(?-u:\B)")];
        if let Some((_, assertion)) = assertions.iter().find(|(name, _)| self.cursor.take(name)) {
            self.push(assertion);
            return Ok(());
        }
        self.cursor.move_to(before);
        match class::named(&mut self.cursor)? {
            Some(class) => self.push_folded(&class, self.level.flags.any_case),
            None => {
                let character = class::character(&mut self.cursor)?;
                self.push_character(character);
            }
        }
        Ok(())
    }

    /// Parses the text after the opening parenthesis of a group.
    fn open(&mut self, before: &str) -> Result<(), RegexpError> {
        if !self.cursor.take("?") {
            return self.enter_numbered(None);
        }
        let error = |cursor: &Cursor<'_>| RegexpError::Group(cursor.since(before));
        if ["<=", "<!"].iter().any(|look| self.cursor.take(look)) {
            return Err(error(&self.cursor));
        }
        if self.cursor.take("P<") || self.cursor.take("<") {
            let name = self.group_name().ok_or(RegexpError::GroupName)?;
            return self.enter_numbered(Some(name));
        }
        let (mut flags, mut sets, mut any) = (self.level.flags, true, false);
        loop {
            match self.cursor.next() {
                Some('i') => flags.any_case = sets,
                Some('m') => flags.lines = sets,
                Some('s') => flags.dot_is_all = sets,
                Some('U') => flags.ungreedy = sets,
                Some('-') if sets => {
                    (sets, any) = (false, false);
                    continue;
                }
                Some(':') if sets || any => return self.enter("(?:", flags),
                Some(')') if sets || any => {
                    self.level.flags = flags;
                    return Ok(());
                }
                _ => return Err(error(&self.cursor)),
            }
            any = true;
        }
    }

    fn group_name(&mut self) -> Option<String> {
        let (name, rest) = self.cursor.rest().split_once('>')?;
        let fits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        self.cursor.move_to(rest);
        fits.then(|| name.to_owned())
    }

    fn enter_numbered(&mut self, name: Option<String>) -> Result<(), RegexpError> {
        self.enter("(", self.level.flags)?;
        self.names.push(name);
        Ok(())
    }

    fn enter(&mut self, opening: &'static str, flags: Flags) -> Result<(), RegexpError> {
        if self.outer.len() >= DEPTH_MAX as usize {
            return Err(RegexpError::TooDeep);
        }
        let inner = Level { opening, flags, names: self.names.len(), repeats: 1, ..Level::default() };
        self.outer.push(core::mem::replace(&mut self.level, inner));
        Ok(())
    }

    fn close(&mut self) -> Result<(), RegexpError> {
        self.level.settle();
        let outer = self.outer.pop().ok_or(RegexpError::UnopenedGroup)?;
        let Level { text, opening, names, repeats, .. } = core::mem::replace(&mut self.level, outer);
        self.push_item(&format!("{opening}{text})"), names, repeats);
        Ok(())
    }

    fn push_character(&mut self, character: u32) {
        let any_case = self.level.flags.any_case;
        match char::from_u32(character) {
            Some(character) if !any_case || (character.is_ascii() && !character.is_ascii_alphabetic()) => {
                self.push(&regex::escape(character.encode_utf8(&mut [0; 4])));
            }
            _ => self.push_folded(&class::range(character, character), any_case),
        }
    }

    /// Appends an item, case-insensitive if `any_case` is set.
    fn push_folded(&mut self, item: &str, any_case: bool) {
        if any_case { self.push(&format!("(?i:{item})")) } else { self.push(item) }
    }

    fn push(&mut self, item: &str) {
        self.push_item(item, self.names.len(), 1);
    }

    fn push_item(&mut self, item: &str, names: usize, repeats: u32) {
        let level = &mut self.level;
        level.settle();
        level.last = Some(Item { start: level.text.len(), names, repeats });
        level.text.push_str(item);
    }
}

/// Repetition operator.
struct Repetition {
    least: u32,
    /// `None` if unbounded.
    most: Option<u32>,
    /// Prefers fewer repetitions.
    lazy: bool,
    written: String,
}

impl Translator<'_> {
    /// Parses a repetition operator, if the input starts with one. A brace that does not form one is a literal.
    fn repetition(&mut self) -> Result<Option<Repetition>, RegexpError> {
        let before = self.cursor.rest();
        let counts = [("*", (0, None)), ("+", (1, None)), ("?", (0, Some(1)))];
        let simple = counts.iter().find(|(mark, _)| self.cursor.take(mark)).map(|(_, counts)| *counts);
        let Some((least, most)) = simple.or_else(|| self.braces()) else { return Ok(None) };
        if least.max(most.unwrap_or(0)) > REPEAT_MAX || most.is_some_and(|most| most < least) {
            return Err(RegexpError::RepeatCount(self.cursor.since(before)));
        }
        let lazy = self.cursor.take("?");
        Ok(Some(Repetition { least, most, lazy, written: self.cursor.since(before) }))
    }

    /// Parses `{N}`, `{N,}` or `{N,M}`. Any other text in braces is literal.
    fn braces(&mut self) -> Option<(u32, Option<u32>)> {
        let (inner, rest) = self.cursor.rest().strip_prefix('{')?.split_once('}')?;
        let counts = match inner.split_once(',') {
            None => number(inner).map(|times| (times, Some(times)))?,
            Some((least, "")) => (number(least)?, None),
            Some((least, most)) => (number(least)?, Some(number(most)?)),
        };
        self.cursor.move_to(rest);
        Some(counts)
    }

    /// Applies a repetition operator to the last item.
    fn repeat(&mut self, repetition: Repetition) -> Result<(), RegexpError> {
        let Repetition { least, most, lazy, written } = repetition;
        let level = &mut self.level;
        let Some(Item { start, names, repeats }) = level.last else { return Err(RegexpError::RepeatsNothing(written)) };
        let repeats = match most {
            Some(0) => 1,
            most => repeats.saturating_mul(most.unwrap_or(least).max(1)),
        };
        if least.max(most.unwrap_or(0)) >= 2 && repeats > REPEAT_MAX {
            return Err(RegexpError::RepeatCount(written));
        }
        let item = level.text.split_off(start);
        let _ = match (least, most) {
            // Zero repetitions match nothing, but the groups inside keep their numbers.
            (_, Some(0)) => write!(level.text, "(?:{}{})?", class::NOTHING, "()".repeat(self.names.len() - names)),
            (0, None) => write!(level.text, "(?:{item})*"),
            (least, None) => write!(level.text, "(?:{item}){{{least},}}"),
            (least, Some(most)) => write!(level.text, "(?:{item}){{{least},{most}}}"),
        };
        if lazy != level.flags.ungreedy {
            level.text.push('?');
        }
        level.last = Some(Item { start, names, repeats });
        Ok(())
    }
}

/// Parses a number without leading zeros. One that overflows becomes `u32::MAX`, which exceeds every limit.
fn number(digits: &str) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let fits = is_number && (digits.len() == 1 || !digits.starts_with('0'));
    fits.then(|| digits.parse().unwrap_or(u32::MAX))
}
