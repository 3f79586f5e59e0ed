//! Log messages about changes to mesh names, in the words of Istio's retired CoreDNS plugin, which operators search
//! for.

use core::fmt;

use super::claim::Claim;
use super::read::{Fault, Host};

/// Log message about a change to the names of a mesh.
#[derive(Clone, Debug)]
pub struct Note(What);

#[derive(Clone, Debug)]
enum What {
    Mapped(Host, Claim),
    Unmapped(Host),
    Faulty { what: &'static str, path: String, fault: Fault, rest_holds: bool },
}

impl Note {
    pub(crate) fn mapped(host: Host, claim: Claim) -> Note {
        Note(What::Mapped(host, claim))
    }

    pub(crate) fn unmapped(host: Host) -> Note {
        Note(What::Unmapped(host))
    }

    /// Reports a fault in an object. `rest_holds` is true if the rest of the object is served.
    pub(crate) fn faulty(what: &'static str, (namespace, name): (&str, &str), fault: Fault, rest_holds: bool) -> Note {
        Note(What::Faulty { what, path: format!("{namespace}/{name}"), fault, rest_holds })
    }

    /// Returns true if the note reports a faulty object.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        matches!(self.0, What::Faulty { .. })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            What::Mapped(host, claim) => write!(out, "adding DNS mapping: {host}->[{}]", Targets(claim)),
            What::Unmapped(host) => write!(out, "removing DNS mapping: {host}"),
            What::Faulty { what, path, fault, rest_holds: false } => {
                write!(out, "Ignoring invalid {what} entry: {path}: {fault}")
            }
            What::Faulty { what, path, fault, .. } => write!(out, "Ignoring a part of {what} entry {path}: {fault}"),
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
