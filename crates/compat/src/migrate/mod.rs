//! Converts the DNS configuration of an existing cluster to a Corefile for this server, with a note on each change.
//!
//! [`corefile()`] takes an older Corefile and changes only what must change. Comments, blanks, imports and variables
//! stay as written. [`kube_dns`] takes the ConfigMap and the command lines of the kube-dns pod.

mod corefile;
mod draft;
mod edits;
mod kube_dns;
mod note;
mod rules;

pub use corefile::{Unreadable, corefile};
pub use kube_dns::{NotTranslated, kube_dns};
pub use note::{Note, What};

/// Result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The new text.
    pub text: String,
    /// Changes and losses, in the order of the original text.
    pub notes: Vec<Note>,
}
