//! From what a cluster's DNS is told today to a Corefile for this server, with each change and its reason.
//!
//! [`corefile()`] takes an older Corefile and changes only the words that must change: comments, blanks, imports and
//! variables stay as they were written. [`kube_dns`] takes the ConfigMap and the command lines of the kube-dns pod. Nothing
//! here reads files or asks anybody.

mod corefile;
mod draft;
mod edits;
mod kube_dns;
mod note;
mod rules;

pub use corefile::{Unreadable, corefile};
pub use kube_dns::{NotTranslated, kube_dns};
pub use note::{Note, What};

/// What came of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The new text.
    pub text: String,
    /// What was changed and what could not be kept, in the order of the old text.
    pub notes: Vec<Note>,
}
