//! What a change did to the names of a mesh, for the log: in the words of Istio's old DNS plugin, which people look for.

use core::fmt;

use super::claim::Claim;
use super::read::{Fault, Host};

/// What a change did to the names of a mesh.
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

    /// Something is wrong with an object; the rest of it may hold.
    pub(crate) fn faulty(what: &'static str, (namespace, name): (&str, &str), fault: Fault, rest_holds: bool) -> Note {
        Note(What::Faulty { what, path: format!("{namespace}/{name}"), fault, rest_holds })
    }

    /// Whether it says that an object is not as it must be.
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

/// What a host stands for: addresses or else endpoints, by address and by name.
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
