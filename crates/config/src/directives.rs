//! The directives of a program, in the order of the chain.

use core::error::Error;
use core::fmt;

use crate::options::{Directive, PlannedDirective};

/// Entry in the ordered list of directives.
#[derive(Clone, Copy)]
pub enum DirectiveEntry {
    /// Directive of this build.
    Available(&'static dyn Directive),
    /// Directive of CoreDNS that this build does not implement yet.
    Planned(&'static PlannedDirective),
    /// Directive that occurs in Corefiles, but is not part of CoreDNS. Its position in the list has no effect.
    Removed(&'static RemovedDirective),
}

/// Directive that is not part of CoreDNS: either an older version had it, or a custom build has it.
pub struct RemovedDirective {
    /// Name.
    pub name: &'static str,
    /// Version of CoreDNS that removed it; `None` if it was never part of CoreDNS.
    pub removed_in: Option<&'static str>,
    /// Advice for the user, as a sentence without a full stop; may be empty.
    pub instead: &'static str,
}

impl DirectiveEntry {
    /// Name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            DirectiveEntry::Available(directive) => directive.name(),
            DirectiveEntry::Planned(directive) => directive.usage.name(),
            DirectiveEntry::Removed(directive) => directive.name,
        }
    }

    /// Parser of the directive.
    pub(crate) fn directive(&self) -> Option<&'static dyn Directive> {
        match self {
            DirectiveEntry::Available(directive) => Some(*directive),
            DirectiveEntry::Planned(directive) => Some(*directive),
            DirectiveEntry::Removed(_) => None,
        }
    }
}

/// All directives of a program, in the order of the chain. The order in a Corefile has no effect. A capability that the
/// process offers.
#[derive(Clone, Copy)]
pub struct Directives(&'static [DirectiveEntry]);

impl Directives {
    /// Lists directives, from the top of the chain to its bottom.
    #[must_use]
    pub const fn new(entries: &'static [DirectiveEntry]) -> Directives {
        Directives(entries)
    }

    /// Returns all entries, with those that this program does not have.
    #[must_use]
    pub const fn entries(self) -> &'static [DirectiveEntry] {
        self.0
    }

    /// Returns the names of the directives that this program has, sorted.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let mut names: Vec<_> = self.available().map(Directive::name).collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// Returns the directives that this program has.
    pub fn available(self) -> impl Iterator<Item = &'static dyn Directive> {
        self.0.iter().filter_map(|entry| match entry {
            DirectiveEntry::Available(directive) => Some(*directive),
            DirectiveEntry::Planned(_) | DirectiveEntry::Removed(_) => None,
        })
    }

    /// Adds a directive that directly follows `above` in the chain. The list lives as long as the process, so a
    /// program calls this at its start.
    ///
    /// # Errors
    /// There is no directive `above`, or already one with the name of the new one.
    pub fn with(self, directive: &'static dyn Directive, above: &str) -> Result<Directives, PlaceError> {
        let at = |name: &str| self.0.iter().position(|entry| entry.name() == name);
        let Some(place) = at(above) else { return Err(PlaceError::NoNeighbour(above.to_owned())) };
        if at(directive.name()).is_some() {
            return Err(PlaceError::Twice(directive.name()));
        }
        let mut entries = self.0.to_vec();
        entries.insert(place + 1, DirectiveEntry::Available(directive));
        Ok(Directives(entries.leak()))
    }
}

impl fmt::Debug for Directives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(DirectiveEntry::name)).finish()
    }
}

/// Reason why a directive cannot be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// The directive that it shall follow does not exist.
    NoNeighbour(String),
    /// There is a directive with its name.
    Twice(&'static str),
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::NoNeighbour(name) => write!(f, "there is no directive `{name}` that a new one could follow"),
            PlaceError::Twice(name) => write!(f, "there is already a directive `{name}`"),
        }
    }
}

impl Error for PlaceError {}
