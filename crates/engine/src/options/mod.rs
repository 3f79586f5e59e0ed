//! How a plugin says what may be written for it: once, in its own folder.
//!
//! A [`Manifest`] holds the directive's name, its arguments and properties with defaults and explanations, and its
//! metrics. From it come the parser, its error messages with place and usage, the Syntax blocks in the READMEs, the man
//! pages and `portolan -plugins`.

mod args;
mod manifest;
mod usage;
mod values;

pub use args::{Args, Problem};
pub use manifest::{Build, Directive, Listed, Manifest, Meant, Property, Set, Writing};
pub use usage::Usage;
pub(crate) use values::cidr_zones;
pub use values::{DurationError, duration, zone_names};
