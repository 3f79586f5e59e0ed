//! The words of one entry of a master file, one after the other: who reads a part of it takes those that are its own.

use wire::{Name, NameRef};

use super::error::{Error, Fault, Place};
use super::lex::{Lexer, Token, Word};

/// The words of one entry.
pub(crate) struct Line<'a> {
    lexer: Lexer<'a>,
    pub(crate) origin: Name,
    /// The entry has ended.
    ended: bool,
    end: Place,
}

impl<'a> Line<'a> {
    /// The words of a text, before its first entry.
    pub(super) fn new(text: &'a [u8], origin: NameRef<'_>) -> Line<'a> {
        let lexer = Lexer::new(text);
        let end = lexer.place();
        Line { lexer, origin: origin.to_name(), ended: true, end }
    }

    /// How far it has been read.
    pub(super) const fn place(&self) -> Place {
        self.end
    }

    /// The next word of the entry, if there is one.
    pub(crate) fn maybe(&mut self) -> Result<Option<Word<'a>>, Error> {
        if self.ended {
            return Ok(None);
        }
        self.end = self.lexer.place();
        match self.lexer.next()? {
            Token::Word(word) => Ok(Some(word)),
            Token::LineEnd | Token::End => {
                self.ended = true;
                Ok(None)
            }
        }
    }

    /// The next word of the entry, which is to be `what`.
    pub(crate) fn word(&mut self, what: &'static str) -> Result<Word<'a>, Error> {
        self.maybe()?.ok_or_else(|| self.missing(what))
    }

    /// The entry ends where `what` should stand.
    pub(crate) const fn missing(&self, what: &'static str) -> Error {
        self.end.error(Fault::Missing(what))
    }

    /// The rest of the line as it stands there, without a comment.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.ended = true;
        self.lexer.rest_of_line()
    }

    /// Nothing may follow.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        self.maybe()?.map_or(Ok(()), |word| Err(word.unexpected("the end of the line")))
    }

    /// The first word of the next entry; `None` at the end of the text.
    pub(super) fn first(&mut self) -> Result<Option<Word<'a>>, Error> {
        loop {
            self.end = self.lexer.place();
            match self.lexer.next()? {
                Token::Word(word) => {
                    self.ended = false;
                    return Ok(Some(word));
                }
                Token::LineEnd => {}
                Token::End => return Ok(None),
            }
        }
    }
}
