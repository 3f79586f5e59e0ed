//! Master files (RFC 1035 §5): a file and those that it includes become a zone.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use wire::{Class, Name, NameRef, Type};

use crate::generate;
use crate::text::{self, Entries, Entry, Error};
use crate::{Builder, Unfit, Zone};

/// Files that may include each other in a row: as deep as other servers go.
const DEPTH_MAX: usize = 7;
/// Octets of a line, for making room: most are shorter, but not the long ones.
const LINE_GUESS: usize = 40;
/// Files that one zone may include, so that few small files cannot become a very large zone.
const INCLUDES_MAX: usize = 4096;

/// Gives the contents of a file.
pub type Read<'f> = &'f mut dyn FnMut(&Path) -> io::Result<Vec<u8>>;

/// A zone that was read.
pub struct Loaded {
    /// The zone.
    pub zone: Zone,
    /// What is wrong with it, and where: at most one of each kind.
    pub remarks: Vec<LoadError>,
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
    /// No record is in the zone: the SOA record is of this name.
    OtherZone(Box<Name>),
    /// The only SOA record is of this name, and taken for the zone's.
    OtherSoa(Box<Name>),
    /// So many records are of other zones, or not of class IN; this is the first.
    Strangers(usize),
    /// An SOA record of the zone that another one comes after, which counts.
    EarlierSoa,
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
            Trouble::OtherZone(name) => write!(f, "the file is of another zone: its SOA record is that of {name}"),
            Trouble::OtherSoa(name) => {
                write!(f, "the SOA record of {name} is taken for that of the zone, which has none")
            }
            Trouble::Strangers(1) => f.write_str("a record is left out: it is not in the zone, or not of class IN"),
            Trouble::Strangers(count) => {
                write!(
                    f,
                    "{count} records are left out, of which this is the first: not in the zone, or not of class IN"
                )
            }
            Trouble::EarlierSoa => f.write_str("this SOA record is left out: another one comes after it, which counts"),
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
    let mut reading = Reading { builder: Builder::new(origin), seen: Seen::default(), includes: Vec::new(), read };
    reading.builder.reserve(text.len() / LINE_GUESS);
    reading.file(path, &mut Entries::new(&text, origin), 0)?;
    let Reading { mut builder, mut seen, includes, .. } = reading;
    let borrowed = seen.borrow_soa(&mut builder)?;
    let is_taken = borrowed.is_some() && seen.other_soa.as_ref().is_some_and(|soa| soa.is_stranger);
    let left_out = builder.strangers() - usize::from(is_taken);
    let remarks = borrowed.into_iter().chain(seen.into_remarks(left_out)).collect();
    let zone = builder.finish().map_err(|unfit| whole(Trouble::Unfit(unfit)))?;
    Ok(Loaded { zone, remarks, includes })
}

/// A line and a column of a file.
#[derive(Clone, PartialEq, Eq)]
struct Place {
    file: PathBuf,
    at: (u32, u32),
}

impl Place {
    fn error(self, trouble: Trouble) -> LoadError {
        LoadError { file: self.file, place: Some(self.at), trouble }
    }
}

/// A zone that is being read.
struct Reading<'f> {
    builder: Builder,
    seen: Seen,
    includes: Vec<PathBuf>,
    read: Read<'f>,
}

/// Where records stand that somebody may want to know of.
#[derive(Default)]
struct Seen {
    /// The SOA record of the zone.
    soa: Option<Place>,
    /// The first one that another one comes after.
    earlier_soa: Option<Place>,
    /// The last one of another name.
    other_soa: Option<OtherSoa>,
    /// The first two records of other zones: one of them may be the SOA record that is taken after all.
    strangers: Vec<Place>,
}

/// An SOA record that is not the zone's.
struct OtherSoa {
    place: Place,
    /// Whether its name is not in the zone at all, so that it is left out.
    is_stranger: bool,
    owner: Box<Name>,
    ttl: u32,
    rdata: Vec<u8>,
}

impl Seen {
    /// Where the zone has no SOA record, that of another name stands in for it, as in CoreDNS; says so.
    ///
    /// # Errors
    /// If nothing else is in the zone.
    fn borrow_soa(&mut self, builder: &mut Builder) -> Result<Option<LoadError>, LoadError> {
        let (None, Some(OtherSoa { place, owner, ttl, rdata, .. })) = (&self.soa, &self.other_soa) else {
            return Ok(None);
        };
        let error = |trouble| place.clone().error(trouble);
        if builder.is_empty() {
            return Err(error(Trouble::OtherZone(owner.clone())));
        }
        let origin = builder.origin().to_name();
        let added = builder.add(origin.as_ref(), (Type::SOA, Class::IN, *ttl), rdata);
        added.map_err(|unfit| error(Trouble::Unfit(unfit)))?;
        self.strangers.retain(|stranger| stranger != place);
        Ok(Some(error(Trouble::OtherSoa(owner.clone()))))
    }

    fn into_remarks(self, left_out: usize) -> impl Iterator<Item = LoadError> {
        let first = self.strangers.into_iter().next();
        let strangers = first.map(|place| place.error(Trouble::Strangers(left_out)));
        strangers.into_iter().chain(self.earlier_soa.map(|place| place.error(Trouble::EarlierSoa)))
    }
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
                    let added = self.add((path, place), entries.owner(), (rtype, class, ttl), entries.rdata());
                    added.map_err(|unfit| at(Trouble::Unfit(unfit)))?;
                }
                Entry::Directive(word) if word.raw.eq_ignore_ascii_case(b"$INCLUDE") => {
                    let (file, origin) = include(entries).map_err(wrong)?;
                    let file = path.parent().unwrap_or(Path::new("")).join(file);
                    self.include(file, origin.as_ref(), entries, depth, at)?;
                }
                Entry::Directive(word) if word.raw.eq_ignore_ascii_case(b"$GENERATE") => {
                    let mut unfit = None;
                    generate::records(entries, |owner, fixed, rdata| {
                        let added = self.add((path, place), owner, fixed, rdata);
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

    /// Takes a record that stands there.
    fn add(
        &mut self,
        (file, at): (&Path, (u32, u32)),
        owner: NameRef<'_>,
        fixed: (Type, Class, u32),
        rdata: &[u8],
    ) -> Result<(), Unfit> {
        let here = || Place { file: file.to_owned(), at };
        let before = self.builder.strangers();
        self.builder.add(owner, fixed, rdata)?;
        let is_stranger = self.builder.strangers() > before;
        if is_stranger && self.seen.strangers.len() < 2 {
            self.seen.strangers.push(here());
        }
        match fixed {
            (Type::SOA, Class::IN, ttl) if owner != self.builder.origin() => {
                let (owner, rdata) = (Box::new(owner.to_name()), rdata.to_vec());
                self.seen.other_soa = Some(OtherSoa { place: here(), is_stranger, owner, ttl, rdata });
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
