//! Zone file loader (RFC 1035 §5): reads a file and the files that it includes into a zone.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use wire::{Class, Name, NameRef, Type};

use crate::generate;
use crate::mistakes::Mistake;
use crate::text::{self, Entries, Entry, ParseError};
use crate::{Builder, Limits, Zone, ZoneError};

/// Maximum nesting depth of `$INCLUDE`, as in other servers.
const DEPTH_MAX: usize = 7;
/// Typical line length in bytes, for preallocation. Most lines are shorter, but large zones have long ones.
const LINE_LEN_TYPICAL: usize = 40;
/// Maximum number of included files in a zone, so that a few small files cannot expand to a huge zone.
const INCLUDES_MAX: usize = 4096;

/// Callback that returns the contents of a file.
pub type Read<'f> = &'f mut dyn FnMut(&Path) -> io::Result<Vec<u8>>;

/// Loaded zone.
pub struct Loaded {
    /// The zone.
    pub zone: Zone,
    /// Warnings with their positions, at most one of each kind.
    pub warnings: Vec<LoadError>,
    /// The included files.
    pub includes: Vec<PathBuf>,
}

/// Error or warning about a zone file, with its position.
#[derive(Debug)]
pub struct LoadError {
    /// File that contains the error.
    pub file: PathBuf,
    /// Line and column, starting at 1. `None` if the error concerns the file as a whole.
    pub position: Option<(u32, u32)>,
    /// Cause of the error.
    pub kind: LoadErrorKind,
}

/// Cause of an error in a zone file.
#[derive(Debug)]
pub enum LoadErrorKind {
    /// The file cannot be read.
    Io(io::Error),
    /// The text is not a valid zone file.
    Text(text::ParseErrorKind),
    /// The records do not form a valid zone.
    Invalid(ZoneError),
    /// An included file cannot be read.
    Include(PathBuf, io::Error),
    /// `$INCLUDE` is nested more than seven levels deep.
    TooDeep,
    /// The zone includes more than 4,096 files.
    TooManyIncludes,
    /// The file has no record of the zone. Its SOA record has this owner.
    OtherZone(Box<Name>),
    /// The zone has no SOA record at its apex. The one with this owner is used instead.
    OtherSoa(Box<Name>),
    /// Number of records ignored because their owner is outside the zone or their class is not IN. The position is that
    /// of the first one.
    Strangers(usize),
    /// An SOA record of the zone is ignored because a later one replaces it.
    EarlierSoa,
    /// The zone contradicts itself.
    Mistake(Box<Mistake>),
}

impl fmt::Display for LoadErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadErrorKind::Io(error) => error.fmt(f),
            LoadErrorKind::Text(kind) => kind.fmt(f),
            LoadErrorKind::Invalid(error) => error.fmt(f),
            LoadErrorKind::Include(path, error) => write!(f, "cannot read included file `{}`: {error}", path.display()),
            LoadErrorKind::TooDeep => write!(f, "`$INCLUDE` is nested more than {DEPTH_MAX} levels deep"),
            LoadErrorKind::TooManyIncludes => write!(f, "too many included files; the maximum is {INCLUDES_MAX}"),
            LoadErrorKind::OtherZone(name) => {
                write!(f, "the file is for another zone: its SOA record belongs to `{name}`")
            }
            LoadErrorKind::OtherSoa(name) => {
                write!(f, "the zone has no SOA record; using the one of `{name}`")
            }
            LoadErrorKind::Strangers(1) => {
                f.write_str("record ignored: its owner is outside the zone or its class is not IN")
            }
            LoadErrorKind::Strangers(count) => {
                write!(
                    f,
                    "{count} records ignored, starting here: their owner is outside the zone or their class is not IN"
                )
            }
            LoadErrorKind::EarlierSoa => f.write_str("SOA record ignored: a later one replaces it"),
            LoadErrorKind::Mistake(mistake) => mistake.fmt(f),
        }
    }
}

impl fmt::Display for LoadError {
    /// Writes `FILE:LINE:COLUMN: CAUSE`, or `cannot open FILE: CAUSE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let LoadErrorKind::Io(error) = &self.kind {
            return write!(f, "cannot open {}: {error}", self.file.display());
        }
        write!(f, "{}:", self.file.display())?;
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", self.kind)
    }
}

impl core::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            LoadErrorKind::Io(error) | LoadErrorKind::Include(_, error) => Some(error),
            LoadErrorKind::Invalid(error) => Some(error),
            _ => None,
        }
    }
}

/// Loads the zone `origin` from a file.
///
/// # Errors
/// The first error, with its position.
pub fn load(origin: NameRef<'_>, path: &Path, read: Read<'_>) -> Result<Loaded, LoadError> {
    load_within(origin, path, Limits::default(), read)
}

/// Loads the zone `origin` from a file, within limits.
///
/// # Errors
/// The first error, with its position.
pub fn load_within(origin: NameRef<'_>, path: &Path, limits: Limits, read: Read<'_>) -> Result<Loaded, LoadError> {
    let whole = |kind| LoadError { file: path.to_owned(), position: None, kind };
    let text = read(path).map_err(|error| whole(LoadErrorKind::Io(error)))?;
    let mut reading = Reading {
        builder: Builder::new(origin).within(limits),
        seen: WarningPositions::default(),
        includes: Vec::new(),
        read,
    };
    reading.builder.reserve(text.len() / LINE_LEN_TYPICAL);
    reading.file(path, &mut Entries::new(&text, origin), 0)?;
    let Reading { mut builder, mut seen, includes, .. } = reading;
    let borrowed = seen.borrow_soa(&mut builder)?;
    let is_taken = borrowed.is_some() && seen.other_soa.as_ref().is_some_and(|soa| soa.is_stranger);
    let left_out = builder.strangers() - usize::from(is_taken);
    let mut warnings: Vec<LoadError> = borrowed.into_iter().chain(seen.into_warnings(left_out)).collect();
    let zone = builder.finish().map_err(|error| whole(LoadErrorKind::Invalid(error)))?;
    for mistake in zone.mistakes() {
        let position = position_of(&mistake, &text, origin);
        let kind = LoadErrorKind::Mistake(Box::new(mistake));
        warnings.push(LoadError { file: path.to_owned(), position, kind });
    }
    Ok(Loaded { zone, warnings, includes })
}

/// Returns the position of the record that a mistake is about, unless it is in an included file. The text has been read
/// once, so it has no errors.
fn position_of(mistake: &Mistake, text: &[u8], origin: NameRef<'_>) -> Option<(u32, u32)> {
    let mut entries = Entries::new(text, origin);
    while let Ok(Some(entry)) = entries.next() {
        match entry {
            Entry::Record { rtype, .. } => {
                let is_type = mistake.rtype().is_none_or(|wanted| wanted == rtype);
                if is_type && entries.owner().same(mistake.name.as_ref()) {
                    return Some(entries.began());
                }
            }
            Entry::Directive(_) => {
                entries.line().rest();
            }
        }
    }
    None
}

/// Position in a file.
#[derive(Clone, PartialEq, Eq)]
struct FilePosition {
    file: PathBuf,
    at: (u32, u32),
}

impl FilePosition {
    fn error(self, kind: LoadErrorKind) -> LoadError {
        LoadError { file: self.file, position: Some(self.at), kind }
    }
}

/// State of the loader.
struct Reading<'f> {
    builder: Builder,
    seen: WarningPositions,
    includes: Vec<PathBuf>,
    read: Read<'f>,
}

/// Positions of records that cause a warning.
#[derive(Default)]
struct WarningPositions {
    /// The most recent SOA record at the apex.
    soa: Option<FilePosition>,
    /// The first SOA record that a later one replaced.
    earlier_soa: Option<FilePosition>,
    /// The last SOA record with another owner.
    other_soa: Option<OtherSoa>,
    /// The first two records outside the zone. Two are needed, because one of them may be the SOA record that is used
    /// after all.
    strangers: Vec<FilePosition>,
}

/// SOA record whose owner is not the apex.
struct OtherSoa {
    position: FilePosition,
    /// True if the owner is outside the zone, so that the builder has ignored the record.
    is_stranger: bool,
    owner: Box<Name>,
    ttl: u32,
    rdata: Vec<u8>,
}

impl WarningPositions {
    /// Uses an SOA record with another owner if the zone has none, as CoreDNS does. Returns a warning if so.
    ///
    /// # Errors
    /// The file has no other record of the zone.
    fn borrow_soa(&mut self, builder: &mut Builder) -> Result<Option<LoadError>, LoadError> {
        let (None, Some(OtherSoa { position, owner, ttl, rdata, .. })) = (&self.soa, &self.other_soa) else {
            return Ok(None);
        };
        let error = |kind| position.clone().error(kind);
        if builder.is_empty() {
            return Err(error(LoadErrorKind::OtherZone(owner.clone())));
        }
        let origin = builder.origin().to_name();
        let added = builder.add(origin.as_ref(), (Type::SOA, Class::IN, *ttl), rdata);
        added.map_err(|invalid| error(LoadErrorKind::Invalid(invalid)))?;
        self.strangers.retain(|stranger| stranger != position);
        Ok(Some(error(LoadErrorKind::OtherSoa(owner.clone()))))
    }

    fn into_warnings(self, left_out: usize) -> impl Iterator<Item = LoadError> {
        let first = self.strangers.into_iter().next();
        let strangers = first.map(|position| position.error(LoadErrorKind::Strangers(left_out)));
        strangers.into_iter().chain(self.earlier_soa.map(|position| position.error(LoadErrorKind::EarlierSoa)))
    }
}

impl Reading<'_> {
    fn file(&mut self, path: &Path, entries: &mut Entries<'_>, depth: usize) -> Result<(), LoadError> {
        let wrong = |error: ParseError| LoadError {
            file: path.to_owned(),
            position: Some((error.line, error.column)),
            kind: LoadErrorKind::Text(error.kind),
        };
        while let Some(entry) = entries.next().map_err(wrong)? {
            let position = entries.began();
            let at = |kind| LoadError { file: path.to_owned(), position: Some(position), kind };
            match entry {
                Entry::Record { ttl, class, rtype } => {
                    let added = self.add((path, position), entries.owner(), (rtype, class, ttl), entries.rdata());
                    added.map_err(|error| at(LoadErrorKind::Invalid(error)))?;
                }
                Entry::Directive(word) if word.raw.eq_ignore_ascii_case(b"$INCLUDE") => {
                    let (file, origin) = include(entries).map_err(wrong)?;
                    let file = path.parent().unwrap_or(Path::new("")).join(file);
                    self.include(file, origin.as_ref(), entries, depth, at)?;
                }
                Entry::Directive(word) if word.raw.eq_ignore_ascii_case(b"$GENERATE") => {
                    let mut error = None;
                    generate::records(entries, |owner, fixed, rdata| {
                        let added = self.add((path, position), owner, fixed, rdata);
                        error = error.or(added.err());
                    })
                    .map_err(wrong)?;
                    error.map_or(Ok(()), |error| Err(at(LoadErrorKind::Invalid(error))))?;
                }
                Entry::Directive(word) => {
                    return Err(wrong(word.unexpected("$ORIGIN, $TTL, $INCLUDE or $GENERATE")));
                }
            }
        }
        Ok(())
    }

    /// Adds a record and notes its position if it causes a warning.
    fn add(
        &mut self,
        (file, at): (&Path, (u32, u32)),
        owner: NameRef<'_>,
        fixed: (Type, Class, u32),
        rdata: &[u8],
    ) -> Result<(), ZoneError> {
        let here = || FilePosition { file: file.to_owned(), at };
        let before = self.builder.strangers();
        self.builder.add(owner, fixed, rdata)?;
        let is_stranger = self.builder.strangers() > before;
        if is_stranger && self.seen.strangers.len() < 2 {
            self.seen.strangers.push(here());
        }
        match fixed {
            (Type::SOA, Class::IN, ttl) if owner != self.builder.origin() => {
                let (owner, rdata) = (Box::new(owner.to_name()), rdata.to_vec());
                self.seen.other_soa = Some(OtherSoa { position: here(), is_stranger, owner, ttl, rdata });
            }
            (Type::SOA, Class::IN, _) => {
                let earlier = self.seen.soa.replace(here());
                self.seen.earlier_soa = self.seen.earlier_soa.take().or(earlier);
            }
            _ => {}
        }
        Ok(())
    }

    fn include(
        &mut self,
        file: PathBuf,
        origin: NameRef<'_>,
        above: &Entries<'_>,
        depth: usize,
        at: impl Fn(LoadErrorKind) -> LoadError,
    ) -> Result<(), LoadError> {
        if depth == DEPTH_MAX {
            return Err(at(LoadErrorKind::TooDeep));
        }
        if self.includes.len() == INCLUDES_MAX {
            return Err(at(LoadErrorKind::TooManyIncludes));
        }
        let text = match (self.read)(&file) {
            Ok(text) => text,
            Err(error) => return Err(at(LoadErrorKind::Include(file, error))),
        };
        self.includes.push(file.clone());
        let mut entries = Entries::new(&text, origin);
        entries.inherit(above);
        self.file(&file, &mut entries, depth + 1)
    }
}

/// Parses `$INCLUDE FILE [ORIGIN]`. Returns the file name and the origin of its relative names.
fn include(entries: &mut Entries<'_>) -> Result<(String, Name), ParseError> {
    let mut origin = entries.origin().to_name();
    let line = entries.line();
    let file = line.word("a file name")?;
    let mut name = Vec::new();
    file.unescaped(|byte| name.push(byte))?;
    if let Some(word) = line.maybe()? {
        let before = origin.clone();
        word.name(before.as_ref(), &mut origin)?;
        line.end()?;
    }
    let name = String::from_utf8(name).map_err(|_| file.unexpected("a file name in UTF-8"))?;
    Ok((name, origin))
}

#[cfg(test)]
#[path = "master_tests.rs"]
mod tests;
