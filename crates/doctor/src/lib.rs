//! Checks of `portolan doctor`: what is wrong with the DNS of a cluster, and what to do about it.
//!
//! ```text
//!   cli::doctor (I/O) ──► Facts ──► CHECKS, one row each ──► Report ──► text, JSON, SARIF
//! ```
//!
//! A [`Check`] is data plus a pure function of the [`Facts`]: code, area, title, severity, what it needs, meaning, fix.
//! The functions have no I/O and no clock, so that a test can give them a whole cluster as JSON. A fact that could not
//! be gathered is an [`Unknown`] with the reason, and the row of a check that needs it says so. The outcome of a check
//! has [`Evidence`], which cannot be empty, so that a check that looked at nothing is never fine.
//!
//! # Adding a check
//!
//! 1. An entry in the list of its area in `checks`, with its function and the text of the fix beside it.
//! 2. If it needs a new fact: a field of [`Facts`], gathered in `cli::doctor`.
//! 3. A seeded fault in `tests`, which makes exactly this row fail.
//! 4. `cargo xtask gen` writes `docs/doctor.md`.

mod check;
mod checks;
mod corefile_facts;
mod dns;
mod facts;
mod known;
pub mod objects;
mod probe;
mod report;
mod sarif;
mod text;

#[cfg(test)]
mod tests;

pub use check::{Area, Check, Evidence, Finding, Looked, Need, Outcome, Severity};
pub use checks::{SelectError, all, select};
pub use corefile_facts::{CorefileFacts, Encrypted, Forwarded, Problem};
pub use dns::{DNS_PORT, DnsService, Workload};
pub use facts::{
    Access, Certificate, Conntrack, Facts, Flow, Interface, Kubelet, Replica, SearchProbe, ServiceAnswers,
};
pub use known::{Gap, Known, Unknown};
pub use probe::{Attempt, EncryptedProbe, LargeAnswer, Probe, Probes, UpstreamProbe};
pub use report::{Mark, Report, Row};
