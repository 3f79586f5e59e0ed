//! The entries of a master file, one after the other: records and directives (RFC 1035 §5.1, RFC 2308 §4).

use wire::{Class, Name, NameRef, Type};

use super::data;
use super::error::{Error, Fault, Place};
use super::lex::Word;
use super::line::Line;
use super::special::seconds;

/// An entry that is not blank.
pub(crate) enum Entry<'a> {
    /// A record; its owner and data stand in the [`Entries`].
    Record { ttl: u32, class: Class, rtype: Type },
    /// What is no directive of [`Entries`] itself, such as `$INCLUDE`: the word that names it. The rest of its line has
    /// not been read yet.
    Directive(Word<'a>),
}

/// Reads entries; what holds from one to the next is kept here.
pub(crate) struct Entries<'a> {
    line: Line<'a>,
    began: Place,
    owner: Option<Name>,
    rdata: Vec<u8>,
    /// The time to live of records without one: that of `$TTL`, else that of the record before.
    pub(crate) default_ttl: Option<u32>,
    /// `$TTL` has been given: times on records hold for them alone.
    ttl_directive: bool,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(text: &'a [u8], origin: NameRef<'_>) -> Entries<'a> {
        let line = Line::new(text, origin);
        let began = line.place();
        Entries { line, began, owner: None, rdata: Vec::new(), default_ttl: None, ttl_directive: false }
    }

    /// Line and column at which the last entry began.
    pub(crate) const fn began(&self) -> (u32, u32) {
        (self.began.line, self.began.column)
    }

    /// The owner of the last record.
    pub(crate) fn owner(&self) -> NameRef<'_> {
        self.owner.as_ref().map_or(NameRef::ROOT, Name::as_ref)
    }

    /// The data of the last record.
    pub(crate) fn rdata(&self) -> &[u8] {
        &self.rdata
    }

    /// The text ends where `what` should stand.
    pub(crate) const fn missing(&self, what: &'static str) -> Error {
        self.line.missing(what)
    }

    /// The words of a directive that [`Entries::next`] has given.
    pub(crate) const fn line(&mut self) -> &mut Line<'a> {
        &mut self.line
    }

    /// What relative names end in.
    pub(crate) fn origin(&self) -> NameRef<'_> {
        self.line.origin.as_ref()
    }

    /// Takes over what holds from another text on: the owner, and the time to live.
    pub(crate) fn inherit(&mut self, other: &Entries<'_>) {
        self.owner.clone_from(&other.owner);
        self.default_ttl = other.default_ttl;
        self.ttl_directive = other.ttl_directive;
    }

    /// The next entry that is not blank; `None` at the end of the text.
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'a>>, Error> {
        while let Some(first) = self.line.first()? {
            self.began = first.place;
            if first.raw.first() != Some(&b'$') || first.quoted {
                return self.record(first).map(Some);
            }
            if first.raw.eq_ignore_ascii_case(b"$ORIGIN") {
                let origin = self.line.word("an origin")?;
                let before = self.line.origin.clone();
                origin.name(before.as_ref(), &mut self.line.origin)?;
                self.line.end()?;
            } else if first.raw.eq_ignore_ascii_case(b"$TTL") {
                let word = self.line.word("a time to live")?;
                self.default_ttl = Some(seconds(&word).ok_or_else(|| word.unexpected("a time to live"))?);
                self.ttl_directive = true;
                self.line.end()?;
            } else {
                return Ok(Some(Entry::Directive(first)));
            }
        }
        Ok(None)
    }

    fn record(&mut self, first: Word<'a>) -> Result<Entry<'a>, Error> {
        let mut word = first;
        if first.place.column == 1 {
            let owner = self.owner.get_or_insert_with(Name::root);
            first.name(self.line.origin.as_ref(), owner)?;
            word = self.line.word("a type")?;
        } else if self.owner.is_none() {
            return Err(first.unexpected("an owner, since no record stands before"));
        }
        let (ttl, class, rtype) = self.fixed(word)?;
        self.rdata.clear();
        data::read(rtype, &mut self.line, &mut self.rdata)?;
        self.line.end()?;
        if self.rdata.len() > usize::from(u16::MAX) {
            return Err(first.place.error(Fault::TooLong));
        }
        let ttl =
            self.ttl(ttl, rtype).ok_or_else(|| word.unexpected("a time to live, since no `$TTL` stands before"))?;
        Ok(Entry::Record { ttl, class, rtype })
    }

    /// Time to live and class in any order, or without one or both of them, and the type.
    fn fixed(&mut self, mut word: Word<'a>) -> Result<(Option<u32>, Class, Type), Error> {
        let (mut ttl, mut class) = (None, None);
        loop {
            // A time begins with a digit, and no class or type does.
            if ttl.is_none() && word.raw.first().is_some_and(u8::is_ascii_digit) {
                ttl = Some(seconds(&word).ok_or_else(|| word.unexpected("a time to live"))?);
            } else if let Ok(rtype) = word.parse("a type") {
                return Ok((ttl, class.unwrap_or(Class::IN), rtype));
            } else if class.is_none()
                && let Ok(known) = word.parse("a class")
            {
                class = Some(known);
            } else {
                return Err(word.unexpected("a time to live, a class or a type"));
            }
            word = self.line.word("a type")?;
        }
    }

    /// The time to live of a record: its own, that of `$TTL`, that of the record before (RFC 1035 §5.1), or for an SOA
    /// record with none of them its minimum, as older files have it.
    fn ttl(&mut self, own: Option<u32>, rtype: Type) -> Option<u32> {
        let minimum =
            || self.rdata.last_chunk().filter(|_| rtype == Type::SOA).map(|octets| u32::from_be_bytes(*octets));
        let ttl = own.or(self.default_ttl).or_else(minimum)?;
        if !self.ttl_directive {
            self.default_ttl = Some(ttl);
        }
        Some(ttl)
    }
}
