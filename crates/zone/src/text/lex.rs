//! Lexer for zone files: splits text into words. Handles quotes, parentheses and comments, but does not decode escapes.

use wire::{Name, NameError, NameRef};

use super::error::{ParseError, ParseErrorKind, Position, shown};

/// Word of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    /// Text of the word, with escapes. A word that is quoted as a whole is without its quotes.
    pub(crate) raw: &'a [u8],
    /// True if the word is quoted as a whole.
    pub(crate) quoted: bool,
    pub(crate) position: Position,
}

/// Lexical token.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Token<'a> {
    Word(Word<'a>),
    /// Line end outside of parentheses.
    LineEnd,
    End,
}

impl Word<'_> {
    /// Returns the error for this word if `what` is expected instead.
    pub(crate) fn unexpected(&self, what: &'static str) -> ParseError {
        self.position.error(ParseErrorKind::Expected { what, found: shown(self.raw) })
    }

    /// Returns the word as text, or `None` if it is not ASCII. Numbers, addresses and mnemonics are always ASCII.
    pub(crate) fn ascii(&self) -> Option<&str> {
        core::str::from_utf8(self.raw).ok().filter(|text| text.is_ascii())
    }

    /// Parses a number, an address or a mnemonic.
    pub(crate) fn parse<T: core::str::FromStr>(&self, what: &'static str) -> Result<T, ParseError> {
        self.ascii().and_then(|text| text.parse().ok()).ok_or_else(|| self.unexpected(what))
    }

    /// Passes each byte of the word to `take`, with escapes decoded.
    pub(crate) fn unescaped(&self, mut take: impl FnMut(u8)) -> Result<(), ParseError> {
        let mut at = 0;
        while let Some(&byte) = self.raw.get(at) {
            let (byte, width) = match byte {
                b'\\' => escape(&self.raw[at + 1..])
                    .ok_or_else(|| self.unexpected("an escape `\\X` or `\\DDD` (at most 255)"))?,
                _ => (byte, 1),
            };
            take(byte);
            at += width;
        }
        Ok(())
    }

    /// Parses a name into `name`. `@` is the origin, and a name without a final dot is relative to the origin.
    pub(crate) fn name(&self, origin: NameRef<'_>, name: &mut Name) -> Result<(), ParseError> {
        let named = self.try_name(origin, name);
        named.map_err(|error| self.position.error(ParseErrorKind::Name { found: shown(self.raw), error }))
    }

    fn try_name(&self, origin: NameRef<'_>, name: &mut Name) -> Result<(), NameError> {
        *name = Name::root();
        match self.raw {
            b"." => return Ok(()),
            b"@" => return name.append(origin),
            _ => {}
        }
        let (mut label, mut filled, mut at) = ([0; wire::LABEL_MAX], 0, 0);
        let mut ended = false;
        while let Some(&byte) = self.raw.get(at) {
            ended = byte == b'.';
            at += 1;
            if ended {
                name.push_label(&label[..filled])?;
                filled = 0;
                continue;
            }
            let mut byte = byte;
            if byte == b'\\' {
                let (escaped, width) = escape(&self.raw[at..]).ok_or(NameError::BadEscape)?;
                byte = escaped;
                at += width - 1;
            }
            *label.get_mut(filled).ok_or(NameError::BadLabel)? = byte;
            filled += 1;
        }
        if ended {
            return Ok(());
        }
        name.push_label(&label[..filled])?;
        name.append(origin)
    }
}

/// Decodes an escape after its backslash (RFC 1035 §5.1). Returns the byte and the length of the escape with the
/// backslash.
fn escape(after: &[u8]) -> Option<(u8, usize)> {
    let first = *after.first()?;
    if !first.is_ascii_digit() {
        return Some((first, 2));
    }
    let digits = after.first_chunk::<3>().filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number = digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    Some((u8::try_from(number).ok()?, 4))
}

/// Tokenizer for a text.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
    line_at: usize,
    /// Number of open parentheses. `opened` is the position of the outermost one.
    open: u32,
    opened: Position,
}

impl<'a> Lexer<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Lexer<'a> {
        Lexer { bytes, at: 0, line: 1, line_at: 0, open: 0, opened: Position { line: 1, column: 1 } }
    }

    /// Returns the position of the next byte.
    pub(crate) fn position(&self) -> Position {
        let column = u32::try_from(self.at - self.line_at + 1).unwrap_or(u32::MAX);
        Position { line: self.line, column }
    }

    /// Returns the next token.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, ParseError> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b';' => self.skip_comment(),
                b'\n' => {
                    self.at += 1;
                    self.begin_line();
                    if self.open == 0 {
                        return Ok(Token::LineEnd);
                    }
                }
                b'(' => {
                    if self.open == 0 {
                        self.opened = self.position();
                    }
                    self.open += 1;
                    self.at += 1;
                }
                b')' => {
                    self.open =
                        self.open.checked_sub(1).ok_or(self.position().error(ParseErrorKind::StrayParenthesis))?;
                    self.at += 1;
                }
                b'"' => return self.quoted().map(Token::Word),
                _ => return self.word().map(Token::Word),
            }
        }
        if self.open > 0 { Err(self.opened.error(ParseErrorKind::OpenParenthesis)) } else { Ok(Token::End) }
    }

    /// Returns the rest of the line without a comment, and stops before the line end.
    pub(crate) fn rest_of_line(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b';')).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn begin_line(&mut self) {
        self.line = self.line.saturating_add(1);
        self.line_at = self.at;
    }

    fn skip_comment(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    fn quoted(&mut self) -> Result<Word<'a>, ParseError> {
        let position = self.position();
        self.at += 1;
        let start = self.at;
        self.skip_quoted(position)?;
        Ok(Word { raw: &self.bytes[start..self.at - 1], quoted: true, position })
    }

    /// Skips to the quote that closes the string started at `position`. The string may span lines.
    fn skip_quoted(&mut self, position: Position) -> Result<(), ParseError> {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => self.at = (self.at + 1).min(self.bytes.len()),
                b'\n' => self.begin_line(),
                _ => {}
            }
        }
        Err(position.error(ParseErrorKind::OpenQuote))
    }

    /// Reads an unquoted word. `key="a value"` is a single word.
    fn word(&mut self) -> Result<Word<'a>, ParseError> {
        let (position, start) = (self.position(), self.at);
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'(' | b')' => break,
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                b'"' => {
                    let quote = self.position();
                    self.at += 1;
                    self.skip_quoted(quote)?;
                }
                _ => self.at += 1,
            }
        }
        Ok(Word { raw: &self.bytes[start..self.at], quoted: false, position })
    }
}
