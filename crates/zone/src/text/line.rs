//! Word reader for one entry at a time. Each field parser takes its words from here.

use wire::{Name, NameRef};

use super::error::{ParseError, ParseErrorKind, Position};
use super::lex::{Lexer, Token, Word};

/// Words of the current entry.
pub(crate) struct Line<'a> {
    lexer: Lexer<'a>,
    pub(crate) origin: Name,
    /// True at the end of the entry.
    ended: bool,
    end: Position,
}

impl<'a> Line<'a> {
    /// Creates a reader that is positioned before the first entry of a text.
    pub(super) fn new(text: &'a [u8], origin: NameRef<'_>) -> Line<'a> {
        let lexer = Lexer::new(text);
        let end = lexer.position();
        Line { lexer, origin: origin.to_name(), ended: true, end }
    }

    /// Returns the position of the most recent token.
    pub(super) const fn position(&self) -> Position {
        self.end
    }

    /// Returns the next word of the entry, or `None` at its end.
    pub(crate) fn maybe(&mut self) -> Result<Option<Word<'a>>, ParseError> {
        if self.ended {
            return Ok(None);
        }
        self.end = self.lexer.position();
        match self.lexer.next()? {
            Token::Word(word) => Ok(Some(word)),
            Token::LineEnd | Token::End => {
                self.ended = true;
                Ok(None)
            }
        }
    }

    /// Returns the next word. `what` describes it in the error if the entry has no more words.
    pub(crate) fn word(&mut self, what: &'static str) -> Result<Word<'a>, ParseError> {
        self.maybe()?.ok_or_else(|| self.missing(what))
    }

    /// Passes `first` and then each remaining word of the entry to `take`.
    pub(super) fn each_from(
        &mut self,
        first: &Word<'a>,
        mut take: impl FnMut(&Word<'a>) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        take(first)?;
        while let Some(word) = self.maybe()? {
            take(&word)?;
        }
        Ok(())
    }

    /// Returns the error for an entry that ends where `what` is expected.
    pub(crate) const fn missing(&self, what: &'static str) -> ParseError {
        self.end.error(ParseErrorKind::Missing(what))
    }

    /// Returns the rest of the line unparsed, without a comment.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.ended = true;
        self.lexer.rest_of_line()
    }

    /// Checks that the entry has no more words.
    pub(crate) fn end(&mut self) -> Result<(), ParseError> {
        self.maybe()?.map_or(Ok(()), |word| Err(word.unexpected("the end of the line")))
    }

    /// Skips to the next entry and returns its first word, or `None` at the end of the text.
    pub(super) fn first(&mut self) -> Result<Option<Word<'a>>, ParseError> {
        loop {
            self.end = self.lexer.position();
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
