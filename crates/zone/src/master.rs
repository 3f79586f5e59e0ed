//! Master files (RFC 1035 §5): a file and those that it includes become a zone.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use wire::{Name, NameRef};

use crate::generate;
use crate::text::{self, Entries, Entry, Error};
use crate::{Builder, Unfit, Zone};

/// Files that may include each other in a row: as deep as other servers go.
const DEPTH_MAX: usize = 7;
/// Files that one zone may include, so that few small files cannot become a very large zone.
const INCLUDES_MAX: usize = 4096;

/// Gives the contents of a file.
pub type Read<'f> = &'f mut dyn FnMut(&Path) -> io::Result<Vec<u8>>;

/// A zone that was read.
pub struct Loaded {
    /// The zone.
    pub zone: Zone,
    /// How many records were left out since they are not in the zone.
    pub strangers: usize,
    /// The other files that it includes.
    pub includes: Vec<PathBuf>,
}

/// Why a file is no zone.
#[derive(Debug)]
pub struct LoadError {
    /// The file in which it is wrong.
    pub file: PathBuf,
    /// The line and column, from 1; `None` if it is the file as a whole.
    pub place: Option<(u32, u32)>,
    /// What is wrong.
    pub trouble: Trouble,
}

/// What is wrong with a zone file.
#[derive(Debug)]
pub enum Trouble {
    /// It cannot be read.
    Io(io::Error),
    /// It is no master file.
    Text(text::Fault),
    /// Its records are no zone.
    Unfit(Unfit),
    /// A file that it includes cannot be read.
    Include(PathBuf, io::Error),
    /// Files include each other more than seven deep.
    TooDeep,
    /// More than 4,096 files are included.
    TooManyIncludes,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Io(error) => error.fmt(f),
            Trouble::Text(fault) => fault.fmt(f),
            Trouble::Unfit(unfit) => unfit.fmt(f),
            Trouble::Include(path, error) => write!(f, "cannot include {}: {error}", path.display()),
            Trouble::TooDeep => write!(f, "files include each other more than {DEPTH_MAX} deep"),
            Trouble::TooManyIncludes => write!(f, "more than {INCLUDES_MAX} files are included"),
        }
    }
}

impl fmt::Display for LoadError {
    /// `FILE:LINE:COLUMN: WHAT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some((line, column)) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", self.trouble)
    }
}

impl core::error::Error for LoadError {}

/// Reads the zone `origin` from a file.
///
/// # Errors
/// What is wrong, and where.
pub fn load(origin: NameRef<'_>, path: &Path, read: Read<'_>) -> Result<Loaded, LoadError> {
    let whole = |trouble| LoadError { file: path.to_owned(), place: None, trouble };
    let text = read(path).map_err(|error| whole(Trouble::Io(error)))?;
    let mut reading = Reading { builder: Builder::new(origin), includes: Vec::new(), read };
    reading.file(path, &mut Entries::new(&text, origin), 0)?;
    let Reading { builder, includes, .. } = reading;
    let strangers = builder.strangers();
    let zone = builder.finish().map_err(|unfit| whole(Trouble::Unfit(unfit)))?;
    Ok(Loaded { zone, strangers, includes })
}

/// A zone that is being read.
struct Reading<'f> {
    builder: Builder,
    includes: Vec<PathBuf>,
    read: Read<'f>,
}

impl Reading<'_> {
    fn file(&mut self, path: &Path, entries: &mut Entries<'_>, depth: usize) -> Result<(), LoadError> {
        let wrong = |error: Error| LoadError {
            file: path.to_owned(),
            place: Some((error.line, error.column)),
            trouble: Trouble::Text(error.fault),
        };
        while let Some(entry) = entries.next().map_err(wrong)? {
            let place = entries.began();
            let at = |trouble| LoadError { file: path.to_owned(), place: Some(place), trouble };
            match entry {
                Entry::Record { ttl, class, rtype } => {
                    let added = self.builder.add(entries.owner(), (rtype, class, ttl), entries.rdata());
                    added.map_err(|unfit| at(Trouble::Unfit(unfit)))?;
                }
                Entry::Directive(word) if word.raw.eq_ignore_ascii_case(b"$INCLUDE") => {
                    let (file, origin) = include(entries).map_err(wrong)?;
                    let file = path.parent().unwrap_or(Path::new("")).join(file);
                    self.include(file, origin.as_ref(), entries, depth, at)?;
                }
                Entry::Directive(word) if word.raw.eq_ignore_ascii_case(b"$GENERATE") => {
                    let mut unfit = None;
                    let builder = &mut self.builder;
                    generate::records(entries, |owner, fixed, rdata| {
                        let added = builder.add(owner, fixed, rdata);
                        unfit = unfit.or(added.err());
                    })
                    .map_err(wrong)?;
                    unfit.map_or(Ok(()), |unfit| Err(at(Trouble::Unfit(unfit))))?;
                }
                Entry::Directive(word) => {
                    return Err(wrong(word.unexpected("$ORIGIN, $TTL, $INCLUDE or $GENERATE")));
                }
            }
        }
        Ok(())
    }

    fn include(
        &mut self,
        file: PathBuf,
        origin: NameRef<'_>,
        above: &Entries<'_>,
        depth: usize,
        at: impl Fn(Trouble) -> LoadError,
    ) -> Result<(), LoadError> {
        if depth == DEPTH_MAX {
            return Err(at(Trouble::TooDeep));
        }
        if self.includes.len() == INCLUDES_MAX {
            return Err(at(Trouble::TooManyIncludes));
        }
        let text = match (self.read)(&file) {
            Ok(text) => text,
            Err(error) => return Err(at(Trouble::Include(file, error))),
        };
        self.includes.push(file.clone());
        let mut entries = Entries::new(&text, origin);
        entries.inherit(above);
        self.file(&file, &mut entries, depth + 1)
    }
}

/// `$INCLUDE FILE [ORIGIN]`: the file, and what its relative names end in.
fn include(entries: &mut Entries<'_>) -> Result<(String, Name), Error> {
    let mut origin = entries.origin().to_name();
    let line = entries.line();
    let file = line.word("a file")?;
    let mut name = Vec::new();
    file.unescaped(|octet| name.push(octet))?;
    if let Some(word) = line.maybe()? {
        let before = origin.clone();
        word.name(before.as_ref(), &mut origin)?;
        line.end()?;
    }
    let name = String::from_utf8(name).map_err(|_| file.unexpected("the name of a file"))?;
    Ok((name, origin))
}

#[cfg(test)]
#[path = "master_tests.rs"]
mod tests;
