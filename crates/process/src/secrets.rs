//! Secrets of a Corefile, which messages about it must not show.
//!
//! A secret is known by its place in the source: the arguments of properties such as `secret` and `credentials`, also
//! if they are misspelled or outside their block, the arguments of the program of *on*, and parts of URLs. The lines
//! that a diagnostic shows are masked at these places, and messages where they quote such a word. This leaves the rest
//! readable, in contrast to masking the finished text.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use corefile::{Corefile, Diagnostic, FileId, Sources, Span, Style, Token, did_you_mean, lines_of_words};
use host::mask::{REMOVED, masked, masked_lines, masked_urls, names_secret};

/// Properties with a secret. Words that are nearly one of them are taken for it.
const SECRET_PROPERTIES: [&str; 3] = ["secret", "credentials", "password"];
/// Property of *tsig* with the name of a file.
const KEY_FILE: &str = "secrets";
/// Properties that are named like a secret, and whose only argument is the name of a file with one: of *tsig*, and of
/// *kubernetes*.
const SECRET_FILES: [&str; 2] = [KEY_FILE, "relay_token"];
/// Directive whose properties have secrets unless they are known.
const TSIG: &str = "tsig";
/// Directives that are not misspelled, although they are similar to `tsig`.
const NOT_TSIG: [&str; 2] = ["nsid", "sign"];
/// Properties of *tsig* without a secret.
const PLAIN_OF_TSIG: [&str; 4] = [KEY_FILE, "require", "require_opcode", "import"];
/// Directive whose arguments after the event and the program may be secret.
const ON: &str = "on";
/// Minimum length of a secret that is masked wherever a message about its line contains it. A shorter one is masked in
/// quotes, because it may be part of any word.
const LENGTH_IN_LINE_MIN: usize = 3;
/// The same for messages about other lines.
const LENGTH_ELSEWHERE_MIN: usize = 6;
/// Maximum number of secrets of other lines that a message is searched for. Messages quote words of their own line, so
/// this is a second net, and a Corefile may have many problems.
const ELSEWHERE_MAX: usize = 256;

/// Secrets in the files of a Corefile.
pub struct Secrets<'a> {
    sources: &'a Sources,
    /// The words, by file and position.
    words: Vec<SecretWord>,
    cuts: HashMap<FileId, Vec<Cut>>,
}

/// Word that contains a secret.
struct SecretWord {
    span: Span,
    /// The word, without quotes, and with variables substituted.
    text: String,
    /// The secret parts of the text.
    parts: Vec<Range<usize>>,
    /// True if it may be a common word, such as a key name or an argument of a program.
    is_common: bool,
}

/// Part of a file that is replaced.
struct Cut {
    range: Range<usize>,
    shown: String,
    /// Shift of the start because of the parts before.
    shift: isize,
}

impl Cut {
    /// Returns how far the text after this part moves.
    fn shift_after(&self) -> isize {
        self.shift + self.shown.len().cast_signed() - self.range.len().cast_signed()
    }
}

impl<'a> Secrets<'a> {
    /// Finds the secrets in the files of a Corefile.
    #[must_use]
    pub fn of(written: &'a Corefile) -> Secrets<'a> {
        let mut secrets = Secrets { sources: &written.sources, words: Vec::new(), cuts: HashMap::new() };
        let substituted = substituted(written);
        for file in written.sources.ids() {
            secrets.read_file(file, &substituted);
        }
        secrets
    }

    fn read_file(&mut self, file: FileId, substituted: &HashMap<(FileId, u32), &Token>) {
        let (mut owners, mut end) = (Vec::<String>::new(), 0);
        for line in lines_of_words(self.sources, file) {
            for part in line.split_inclusive(|word| matches!(word.text.as_str(), "{" | "}")) {
                let owner = owners.last().map_or("", String::as_str);
                let hidden = hidden_words(part, owner);
                let runs_program = is_like(&part[0].text, &[ON]);
                for (index, word) in part.iter().enumerate() {
                    self.cut_comment(file, end..word.span.start as usize);
                    end = word.span.end as usize;
                    let is_secret = hidden.is_some_and(|start| index >= start);
                    let is_common = index == 1 || runs_program;
                    let value = substituted.get(&(file, word.span.start)).copied();
                    self.add(word, value, is_secret && !is_brace(word), is_common);
                }
                match part.last().map(|word| word.text.as_str()) {
                    Some("{") => owners.push(part[0].text.clone()),
                    Some("}") => drop(owners.pop()),
                    _ => {}
                }
            }
        }
        self.cut_comment(file, end..self.sources.text(file).len());
    }

    /// Adds a word as written, and with its variables substituted.
    fn add(&mut self, word: &Token, value: Option<&Token>, is_secret: bool, is_common: bool) {
        let written = self.sources.slice(word.span);
        let value = value.filter(|value| value.text != word.text);
        for text in [Some(&word.text), value.map(|value| &value.text)].into_iter().flatten() {
            let parts = if is_secret { whole(text) } else { secret_parts(text) };
            if !parts.is_empty() && !is_reference(text) {
                self.words.push(SecretWord { span: word.span, text: text.clone(), parts, is_common });
            }
        }
        let shown = if is_secret { REMOVED.to_owned() } else { masked_lines(written) };
        // The name of a variable is no secret.
        if shown != written && !is_reference(written) {
            self.cut(word.span.file, word.span.start as usize..word.span.end as usize, shown);
        }
    }

    fn cut_comment(&mut self, file: FileId, range: Range<usize>) {
        let text = self.sources.text(file).get(range.clone()).unwrap_or_default();
        if text.contains('#') {
            let shown = masked_lines(text);
            if shown != text {
                self.cut(file, range, shown);
            }
        }
    }

    /// Replaces a range, and keeps the number of lines.
    fn cut(&mut self, file: FileId, range: Range<usize>, mut shown: String) {
        let breaks = |text: &str| text.matches('\n').count();
        let written = self.sources.text(file).get(range.clone()).map_or(0, breaks);
        shown.push_str(&"\n".repeat(written.saturating_sub(breaks(&shown))));
        let cuts = self.cuts.entry(file).or_default();
        let shift = cuts.last().map_or(0, Cut::shift_after);
        cuts.push(Cut { range, shown, shift });
    }

    /// Formats problems without the secrets.
    #[must_use]
    pub fn render(&self, problems: &[Diagnostic], style: Style) -> String {
        let mut shown = Sources::default();
        for (name, text) in self.files() {
            shown.add(name, text);
        }
        let moved = |problem: &Diagnostic| {
            let mut problem = self.masked(problem);
            problem.span = self.moved(problem.span);
            problem.other = problem.other.map(|(span, note)| (self.moved(span), note));
            problem
        };
        corefile::render(&problems.iter().map(moved).collect::<Vec<_>>(), &shown, style)
    }

    /// Returns the names of the files, and their texts without the secrets.
    pub fn files(&self) -> impl Iterator<Item = (&Path, String)> {
        let files = self.sources.ids().zip(self.sources.files());
        files.map(|(file, (name, text))| (name, self.shown(file, text)))
    }

    /// Returns the text of a file without the secrets.
    fn shown(&self, file: FileId, text: &str) -> String {
        let (mut out, mut end) = (String::with_capacity(text.len()), 0);
        for cut in self.cuts.get(&file).into_iter().flatten() {
            out.push_str(text.get(end..cut.range.start).unwrap_or_default());
            out.push_str(&cut.shown);
            end = cut.range.end;
        }
        out + text.get(end..).unwrap_or_default()
    }

    /// Returns where a span is in the text without the secrets.
    fn moved(&self, span: Span) -> Span {
        let cuts = self.cuts.get(&span.file).map_or(&[][..], Vec::as_slice);
        let moved = |at: u32, is_end: bool| {
            let at = at as usize;
            let before = cuts[..cuts.partition_point(|cut| cut.range.start < at)].last();
            let moved = match before {
                None => at,
                Some(cut) if at >= cut.range.end => at.saturating_add_signed(cut.shift_after()),
                Some(cut) => {
                    let start = cut.range.start.saturating_add_signed(cut.shift);
                    if is_end { start + cut.shown.len() } else { start }
                }
            };
            u32::try_from(moved).unwrap_or(u32::MAX)
        };
        Span { start: moved(span.start, false), end: moved(span.end, true), ..span }
    }

    /// Returns a problem whose texts quote no secret. Its positions are those in the source.
    #[must_use]
    pub fn masked(&self, problem: &Diagnostic) -> Diagnostic {
        let text = |text: &str| self.masked_text(problem.span, text);
        Diagnostic {
            message: text(&problem.message),
            label: text(&problem.label),
            help: problem.help.as_deref().map(text),
            other: problem.other.as_ref().map(|(span, note)| (*span, self.masked_text(*span, note))),
            ..problem.clone()
        }
    }

    /// Returns a message about a place without the secrets that it quotes.
    #[must_use]
    pub fn masked_text(&self, place: Span, message: &str) -> String {
        let near = self.near(place);
        let mut text = message.to_owned();
        for word in &self.words[near.clone()] {
            text = word.without_secret(&text, LENGTH_IN_LINE_MIN);
            text = word.without_parts(&text);
        }
        let elsewhere = self.words[..near.start].iter().chain(&self.words[near.end..]);
        for word in elsewhere.filter(|word| !word.is_common).take(ELSEWHERE_MAX) {
            text = word.without_secret(&text, LENGTH_ELSEWHERE_MIN);
        }
        let text = masked_urls(&text);
        // A word that spans lines contains other lines of the Corefile.
        if text.contains('\n') { masked_lines(&text) } else { text }
    }

    /// Returns the words in the line where a place starts, and within the place.
    fn near(&self, place: Span) -> Range<usize> {
        let line = |span: Span| (span.file, self.sources.line(span));
        let first = line(place);
        let is_up_to =
            |word: &SecretWord| line(word.span) <= first || word.span.file == place.file && word.span.start < place.end;
        let start = self.words.partition_point(|word| line(word.span) < first);
        start..self.words.partition_point(is_up_to).max(start)
    }
}

impl SecretWord {
    /// Returns a message without the secret parts of this word. A part that is shorter than a minimum is only removed
    /// in quotes.
    fn without_secret(&self, message: &str, length_min: usize) -> String {
        let mut text = message.to_owned();
        for secret in self.parts.iter().filter_map(|part| self.text.get(part.clone())) {
            // A message about a URL may quote the password alone.
            let password = secret.split_once(':').map(|(_, password)| password);
            for secret in [Some(secret), password].into_iter().flatten() {
                text = match secret.len() {
                    0 => text,
                    length if length < length_min => text.replace(&format!("`{secret}`"), &format!("`{REMOVED}`")),
                    _ => replaced(&text, secret),
                };
            }
        }
        text
    }

    /// Returns a message whose quotes have no piece of the secret parts of this word.
    fn without_parts(&self, message: &str) -> String {
        let quotes = message.split('`').enumerate().map(|(index, text)| match index % 2 {
            0 => text.to_owned(),
            _ => self.without_overlap(text),
        });
        quotes.collect::<Vec<_>>().join("`")
    }

    /// Returns a quote without what it has in common with a secret part of this word.
    fn without_overlap(&self, quote: &str) -> String {
        let piece = quote.trim_end_matches('…');
        let found = (piece.len() >= LENGTH_IN_LINE_MIN).then(|| find(&self.text, piece)).flatten();
        let Some(at) = found else { return quote.to_owned() };
        let overlap = self.parts.iter().find(|part| part.start < at + piece.len() && at < part.end);
        match overlap {
            Some(part) => {
                let (start, end) = (part.start.saturating_sub(at), part.end.min(at + piece.len()) - at);
                [&piece[..start], REMOVED, &piece[end..]].concat()
            }
            None => quote.to_owned(),
        }
    }
}

/// Returns where a text contains a piece, without regard to the case of ASCII letters.
fn find(text: &str, piece: &str) -> Option<usize> {
    text.to_ascii_lowercase().find(&piece.to_ascii_lowercase())
}

/// Replaces a secret in a text.
fn replaced(text: &str, secret: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = find(rest, secret) {
        out.push_str(&rest[..at]);
        out.push_str(REMOVED);
        rest = &rest[at + secret.len()..];
    }
    out + rest
}

/// Returns the words of a Corefile by their positions, with their variables substituted.
fn substituted(written: &Corefile) -> HashMap<(FileId, u32), &Token> {
    let of_blocks = written.blocks.iter().flat_map(|block| {
        let names = block.directives.iter().map(|directive| &directive.name);
        block.keys.iter().chain(names).chain(block.words())
    });
    of_blocks.map(|word| ((word.span.file, word.span.start), word)).collect()
}

/// Returns the index of the first secret word of a line, after which all are secret. `owner` is the first word of the
/// line whose block contains it.
fn hidden_words(line: &[Token], owner: &str) -> Option<usize> {
    let name = line[0].text.as_str();
    let values = line.iter().skip(1).filter(|word| !is_brace(word)).count();
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || "-_:=".contains(c));
    let is_secret = is_plain && names_secret(name) || is_like(name, &SECRET_PROPERTIES);
    let is_of_tsig = is_like(owner, &[TSIG]) && !NOT_TSIG.contains(&owner) && !is_like(name, &PLAIN_OF_TSIG);
    if is_like(name, &[ON]) {
        return Some(3);
    }
    if SECRET_FILES.contains(&name) && values == 1 || !is_secret && !is_of_tsig {
        // A property may be in the line of its directive, if the brace is missing.
        let property = line.iter().skip(1).position(|word| SECRET_PROPERTIES.contains(&word.text.as_str()));
        return property.map(|index| index + 2);
    }
    // The name of a key is public. No base64 has a dot at its end.
    let has_key_name = values > 1 && line[1].text.ends_with('.');
    Some(if has_key_name { 2 } else { 1 })
}

/// Returns true for one of some words, also if it is misspelled.
fn is_like(word: &str, known: &[&str]) -> bool {
    did_you_mean(word, known.iter().copied()).is_some()
}

fn is_brace(word: &Token) -> bool {
    matches!(word.text.as_str(), "{" | "}")
}

/// Returns true for `{$NAME}` and `{%NAME%}`.
fn is_reference(word: &str) -> bool {
    (word.starts_with("{$") || word.starts_with("{%")) && word.find('}') == Some(word.len() - 1)
}

/// Returns a word as its only part.
fn whole(word: &str) -> Vec<Range<usize>> {
    std::iter::once(0..word.len()).collect()
}

/// Returns the parts of a word that may be secret, such as the user of a URL.
fn secret_parts(word: &str) -> Vec<Range<usize>> {
    let shown = masked(word);
    if shown == word {
        return Vec::new();
    }
    let mut kept: Vec<&str> = shown.split(REMOVED).collect();
    let last = kept.pop().unwrap_or_default();
    let (mut parts, mut end) = (Vec::new(), 0);
    for (index, piece) in kept.into_iter().enumerate() {
        let Some(at) = word.get(end..).and_then(|rest| rest.find(piece)) else { return whole(word) };
        if index > 0 {
            parts.push(end..end + at);
        }
        end += at + piece.len();
    }
    parts.push(end..word.len().saturating_sub(last.len()).max(end));
    parts
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
