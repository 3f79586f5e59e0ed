//! Converts the DNS configuration of an existing cluster to a Corefile for this server, with a note on each change.
//!
//! [`migrate_corefile`] takes an older Corefile and changes only what must change. Comments, blanks, imports and
//! variables stay as written. [`migrate_pod`] takes the ConfigMap and the command lines of the kube-dns pod.

mod corefile;
mod draft;
mod edits;
mod note;
mod pod;
mod rules;

pub use corefile::{CorefileError, migrate_corefile};
pub use note::{Note, NoteKind};
pub use pod::{PodError, migrate_pod};

/// Result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The new text.
    pub text: String,
    /// Changes and losses, in the order of the original text.
    pub notes: Vec<Note>,
}
