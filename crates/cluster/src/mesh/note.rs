//! Log messages about changes to mesh names, in the words of Istio's retired CoreDNS plugin, which operators search
//! for.

use core::fmt;

use super::claim::Claim;
use super::read::{EntryError, Host};

/// Log message about a change to the names of a mesh.
#[derive(Clone, Debug)]
pub struct Note(NoteKind);

#[derive(Clone, Debug)]
enum NoteKind {
    Mapped(Host, Claim),
    Unmapped(Host),
    Invalid { object: &'static str, path: String, error: EntryError, is_partial: bool },
}

impl Note {
    pub(crate) fn mapped(host: Host, claim: Claim) -> Note {
        Note(NoteKind::Mapped(host, claim))
    }

    pub(crate) fn unmapped(host: Host) -> Note {
        Note(NoteKind::Unmapped(host))
    }

    /// Reports an error in an object. `is_partial` is true if the rest of the object is served.
    pub(crate) fn invalid(
        object: &'static str,
        (namespace, name): (&str, &str),
        error: EntryError,
        is_partial: bool,
    ) -> Note {
        Note(NoteKind::Invalid { object, path: format!("{namespace}/{name}"), error, is_partial })
    }

    /// Returns true if the note reports an invalid object.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        matches!(self.0, NoteKind::Invalid { .. })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            NoteKind::Mapped(host, claim) => write!(out, "adding DNS mapping: {host}->[{}]", Targets(claim)),
            NoteKind::Unmapped(host) => write!(out, "removing DNS mapping: {host}"),
            NoteKind::Invalid { object, path, error, is_partial: false } => {
                write!(out, "Ignoring invalid {object} entry: {path}: {error}")
            }
            NoteKind::Invalid { object, path, error, .. } => {
                write!(out, "Ignoring a part of {object} entry {path}: {error}")
            }
        }
    }
}

/// Targets of a host: its addresses or, if it has none, the addresses and names of its endpoints.
struct Targets<'a>(&'a Claim);

impl fmt::Display for Targets<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Claim { addresses, entry } = self.0;
        let ips = if addresses.is_empty() { &*entry.endpoints } else { addresses };
        let mut gap = "";
        for ip in ips {
            write!(out, "{gap}{ip}")?;
            gap = " ";
        }
        for name in entry.names().filter(|_| addresses.is_empty()) {
            write!(out, "{gap}{name}")?;
            gap = " ";
        }
        Ok(())
    }
}
