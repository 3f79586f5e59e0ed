//! Master-file text as words: quotes, parentheses and comments are dealt with here, escapes are not.

use wire::{Name, NameError, NameRef};

use super::error::{Error, Fault, Place, shown};

/// A word of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    /// As it stands there: without its quotes if it is quoted as a whole, its escapes not read.
    pub(crate) raw: &'a [u8],
    /// Whether it was quoted as a whole.
    pub(crate) quoted: bool,
    pub(crate) place: Place,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Token<'a> {
    Word(Word<'a>),
    /// A line end that is not within parentheses.
    LineEnd,
    End,
}

impl Word<'_> {
    /// It is not what should stand there.
    pub(crate) fn unexpected(&self, what: &'static str) -> Error {
        self.place.error(Fault::Expected { what, found: shown(self.raw) })
    }

    /// The word as text, if it is ASCII: what is none is no number, no address and no mnemonic.
    pub(crate) fn ascii(&self) -> Option<&str> {
        core::str::from_utf8(self.raw).ok().filter(|text| text.is_ascii())
    }

    /// A number, an address, a mnemonic.
    pub(crate) fn parse<T: core::str::FromStr>(&self, what: &'static str) -> Result<T, Error> {
        self.ascii().and_then(|text| text.parse().ok()).ok_or_else(|| self.unexpected(what))
    }

    /// Gives the octets of the word, its escapes read, one after the other.
    pub(crate) fn unescaped(&self, mut take: impl FnMut(u8)) -> Result<(), Error> {
        let mut at = 0;
        while let Some(&octet) = self.raw.get(at) {
            let (octet, width) = match octet {
                b'\\' => escape(&self.raw[at + 1..]).ok_or_else(|| self.unexpected("an escape, `\\X` or `\\DDD`"))?,
                _ => (octet, 1),
            };
            take(octet);
            at += width;
        }
        Ok(())
    }

    /// Reads a name into `name`: `@` is the origin, and what does not end in a dot ends in it.
    pub(crate) fn name(&self, origin: NameRef<'_>, name: &mut Name) -> Result<(), Error> {
        let named = self.try_name(origin, name);
        named.map_err(|error| self.place.error(Fault::Name { found: shown(self.raw), error }))
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
        while let Some(&octet) = self.raw.get(at) {
            ended = octet == b'.';
            at += 1;
            if ended {
                name.push_label(&label[..filled])?;
                filled = 0;
                continue;
            }
            let mut octet = octet;
            if octet == b'\\' {
                let (escaped, width) = escape(&self.raw[at..]).ok_or(NameError::BadEscape)?;
                octet = escaped;
                at += width - 1;
            }
            *label.get_mut(filled).ok_or(NameError::BadLabel)? = octet;
            filled += 1;
        }
        if ended {
            return Ok(());
        }
        name.push_label(&label[..filled])?;
        name.append(origin)
    }
}

/// The octet that an escape means, and the octets of the escape with its backslash (RFC 1035 §5.1).
fn escape(after: &[u8]) -> Option<(u8, usize)> {
    let first = *after.first()?;
    if !first.is_ascii_digit() {
        return Some((first, 2));
    }
    let digits = after.first_chunk::<3>().filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number = digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    Some((u8::try_from(number).ok()?, 4))
}

/// Takes words from a text.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    octets: &'a [u8],
    at: usize,
    line: u32,
    line_at: usize,
    /// The parentheses that are open: how many, and where the first is.
    open: u32,
    opened: Place,
}

impl<'a> Lexer<'a> {
    pub(crate) const fn new(octets: &'a [u8]) -> Lexer<'a> {
        Lexer { octets, at: 0, line: 1, line_at: 0, open: 0, opened: Place { line: 1, column: 1 } }
    }

    /// Where the next octet stands.
    pub(crate) fn place(&self) -> Place {
        let column = u32::try_from(self.at - self.line_at + 1).unwrap_or(u32::MAX);
        Place { line: self.line, column }
    }

    /// What comes next.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, Error> {
        while let Some(&octet) = self.octets.get(self.at) {
            match octet {
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
                        self.opened = self.place();
                    }
                    self.open += 1;
                    self.at += 1;
                }
                b')' => {
                    self.open = self.open.checked_sub(1).ok_or(self.place().error(Fault::StrayParenthesis))?;
                    self.at += 1;
                }
                b'"' => return self.quoted().map(Token::Word),
                _ => return self.word().map(Token::Word),
            }
        }
        if self.open > 0 { Err(self.opened.error(Fault::OpenParenthesis)) } else { Ok(Token::End) }
    }

    /// The rest of the line, without a comment; the line end comes next.
    pub(crate) fn rest_of_line(&mut self) -> &'a [u8] {
        let rest = &self.octets[self.at..];
        let end = rest.iter().position(|octet| matches!(octet, b'\n' | b';')).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn begin_line(&mut self) {
        self.line = self.line.saturating_add(1);
        self.line_at = self.at;
    }

    fn skip_comment(&mut self) {
        let rest = &self.octets[self.at..];
        self.at += rest.iter().position(|octet| *octet == b'\n').unwrap_or(rest.len());
    }

    fn quoted(&mut self) -> Result<Word<'a>, Error> {
        let place = self.place();
        self.at += 1;
        let start = self.at;
        self.skip_quoted(place)?;
        Ok(Word { raw: &self.octets[start..self.at - 1], quoted: true, place })
    }

    /// Goes past the quote that ends what began at `place`; lines may end within it.
    fn skip_quoted(&mut self, place: Place) -> Result<(), Error> {
        while let Some(&octet) = self.octets.get(self.at) {
            self.at += 1;
            match octet {
                b'"' => return Ok(()),
                b'\\' => self.at = (self.at + 1).min(self.octets.len()),
                b'\n' => self.begin_line(),
                _ => {}
            }
        }
        Err(place.error(Fault::OpenQuote))
    }

    /// A word that is not quoted as a whole; `key="a value"` is one word.
    fn word(&mut self) -> Result<Word<'a>, Error> {
        let (place, start) = (self.place(), self.at);
        while let Some(&octet) = self.octets.get(self.at) {
            match octet {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'(' | b')' => break,
                b'\\' => self.at = (self.at + 2).min(self.octets.len()),
                b'"' => {
                    let quote = self.place();
                    self.at += 1;
                    self.skip_quoted(quote)?;
                }
                _ => self.at += 1,
            }
        }
        Ok(Word { raw: &self.octets[start..self.at], quoted: false, place })
    }
}
