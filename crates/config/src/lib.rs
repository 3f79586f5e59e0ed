//! Corefile → running configuration: the syntax of directives, planning, advice, and the building of a generation.
//!
//! ```text
//!   corefile::Corefile ── plan ──► Plan (checked, without I/O) ── Plan::build ──► engine::Generation (running)
//! ```
//!
//! - [`options`]: how a directive declares its syntax, once, with a [`options::Manifest`].
//! - [`plan()`]: checks a Corefile against the manifests, and reports what is wrong or doubtful.
//! - [`setup`]: what a directive may use while it is built.

mod advice;
mod assemble;
mod block;
mod codes;
mod directive_print;
mod directives;
mod fingerprint;
mod keys;
pub mod options;
mod plan;
mod planned;
mod served;
pub mod setup;
mod shared_listeners;
mod zone_set;

pub use assemble::{BlockOutline, BuildContext, Built};
pub use codes::{
    CODES, SETUP_WARNED, ZONE_BELOW_DNAME, ZONE_CNAME, ZONE_CNAMES, ZONE_DNAMES, ZONE_GLUE, ZONE_NS_DNAME,
};
pub use directives::{DirectiveEntry, Directives, PlaceError, RemovedDirective};
pub use gotext::regexp::Budget as RegexpBudget;
pub use keys::Key;
pub use plan::{Planning, plan};
pub use planned::{Plan, PlannedListener};
pub use shared_listeners::conflict_text;
