//! How a plugin says what may be written for it: once, in its own folder.
//!
//! A [`Manifest`] holds the directive's name, its arguments and properties with defaults and explanations, and its
//! metrics. From it come the parser, its error messages with place and usage, the Syntax blocks in the READMEs, the man
//! pages and `portolan -plugins`.

mod args;
mod later;
mod manifest;
mod role;
mod usage;
mod values;

pub use args::{Args, Problem};
pub use later::Later;
pub use manifest::{Build, Directive, Listed, Manifest, Meant, Old, Property, Set, Traits, Writing};
pub use role::{Acts, Asked, PlacedRole, Role};
pub use usage::Usage;
pub use values::{DurationError, duration, zone_names};
pub(crate) use values::{cidr_zones, zone_doubt};
