//! Entries of a zone file: records and directives (RFC 1035 §5.1, RFC 2308 §4).

use wire::{Class, Name, NameRef, Type};

use super::data;
use super::error::{ParseError, ParseErrorKind, Position};
use super::lex::Word;
use super::line::Line;
use super::special::seconds;

/// Entry of a zone file.
pub(crate) enum Entry<'a> {
    /// Record. Its owner and RDATA are in [`Entries`].
    Record { ttl: u32, class: Class, rtype: Type },
    /// Directive that [`Entries`] does not handle itself, such as `$INCLUDE`. The rest of its line has not been read
    /// yet.
    Directive(Word<'a>),
}

/// Iterator over entries. Holds the state that carries over from one entry to the next.
pub(crate) struct Entries<'a> {
    line: Line<'a>,
    began: Position,
    owner: Option<Name>,
    rdata: Vec<u8>,
    /// TTL of records that do not specify one: the value of `$TTL`, or otherwise the TTL of the previous record.
    pub(crate) default_ttl: Option<u32>,
    /// True after a `$TTL` directive: a TTL on a record then applies to that record only.
    ttl_directive: bool,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(text: &'a [u8], origin: NameRef<'_>) -> Entries<'a> {
        let line = Line::new(text, origin);
        let began = line.position();
        Entries { line, began, owner: None, rdata: Vec::new(), default_ttl: None, ttl_directive: false }
    }

    /// Returns the line and column at which the last entry starts.
    pub(crate) const fn began(&self) -> (u32, u32) {
        (self.began.line, self.began.column)
    }

    /// Returns the owner of the last record.
    pub(crate) fn owner(&self) -> NameRef<'_> {
        self.owner.as_ref().map_or(NameRef::ROOT, Name::as_ref)
    }

    /// Returns the RDATA of the last record.
    pub(crate) fn rdata(&self) -> &[u8] {
        &self.rdata
    }

    /// Returns the error for a text that ends where `what` is expected.
    pub(crate) const fn missing(&self, what: &'static str) -> ParseError {
        self.line.missing(what)
    }

    /// Returns the remaining words of a directive returned by [`Entries::next`].
    pub(crate) const fn line(&mut self) -> &mut Line<'a> {
        &mut self.line
    }

    /// Returns the origin of relative names.
    pub(crate) fn origin(&self) -> NameRef<'_> {
        self.line.origin.as_ref()
    }

    /// Takes over owner and default TTL from the text around an included file or a `$GENERATE` line.
    pub(crate) fn inherit(&mut self, other: &Entries<'_>) {
        self.owner.clone_from(&other.owner);
        self.default_ttl = other.default_ttl;
        self.ttl_directive = other.ttl_directive;
    }

    /// Returns the next entry, or `None` at the end of the text. Handles `$ORIGIN` and `$TTL` itself.
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'a>>, ParseError> {
        while let Some(first) = self.line.first()? {
            self.began = first.position;
            if first.raw.first() != Some(&b'$') || first.quoted {
                return self.record(first).map(Some);
            }
            if first.raw.eq_ignore_ascii_case(b"$ORIGIN") {
                let origin = self.line.word("an origin")?;
                let before = self.line.origin.clone();
                origin.name(before.as_ref(), &mut self.line.origin)?;
                self.line.end()?;
            } else if first.raw.eq_ignore_ascii_case(b"$TTL") {
                let word = self.line.word("a TTL")?;
                self.default_ttl = Some(seconds(&word).ok_or_else(|| word.unexpected("a TTL"))?);
                self.ttl_directive = true;
                self.line.end()?;
            } else {
                return Ok(Some(Entry::Directive(first)));
            }
        }
        Ok(None)
    }

    fn record(&mut self, first: Word<'a>) -> Result<Entry<'a>, ParseError> {
        let mut word = first;
        if first.position.column == 1 {
            let owner = self.owner.get_or_insert_with(Name::root);
            first.name(self.line.origin.as_ref(), owner)?;
            word = self.line.word("a type")?;
        } else if self.owner.is_none() {
            return Err(first.unexpected("an owner name (no previous record to inherit it from)"));
        }
        let (ttl, class, rtype) = self.fixed(word)?;
        self.rdata.clear();
        data::read(rtype, &mut self.line, &mut self.rdata)?;
        self.line.end()?;
        if self.rdata.len() > usize::from(u16::MAX) {
            return Err(first.position.error(ParseErrorKind::TooLong));
        }
        let ttl = self.ttl(ttl, rtype).ok_or_else(|| word.unexpected("a TTL (no `$TTL` before this record)"))?;
        Ok(Entry::Record { ttl, class, rtype })
    }

    /// Parses the optional TTL and class, in any order, and the type.
    fn fixed(&mut self, mut word: Word<'a>) -> Result<(Option<u32>, Class, Type), ParseError> {
        let (mut ttl, mut class) = (None, None);
        loop {
            // A TTL starts with a digit. No class or type does.
            if ttl.is_none() && word.raw.first().is_some_and(u8::is_ascii_digit) {
                ttl = Some(seconds(&word).ok_or_else(|| word.unexpected("a TTL"))?);
            } else if let Ok(rtype) = word.parse("a type") {
                return Ok((ttl, class.unwrap_or(Class::IN), rtype));
            } else if class.is_none()
                && let Ok(known) = word.parse("a class")
            {
                class = Some(known);
            } else {
                return Err(word.unexpected("a TTL, a class or a type"));
            }
            word = self.line.word("a type")?;
        }
    }

    /// Returns the TTL of a record: its own, the one of `$TTL`, or the one of the previous record (RFC 1035 §5.1). An
    /// SOA record without any of these uses its minimum field, as older files expect.
    fn ttl(&mut self, own: Option<u32>, rtype: Type) -> Option<u32> {
        let minimum = || self.rdata.last_chunk().filter(|_| rtype == Type::SOA).map(|bytes| u32::from_be_bytes(*bytes));
        let ttl = own.or(self.default_ttl).or_else(minimum)?;
        if !self.ttl_directive {
            self.default_ttl = Some(ttl);
        }
        Some(ttl)
    }
}
