//! Declaration of a directive's syntax, once, in the plugin's own directory.
//!
//! A [`Manifest`] holds the name of the directive, its arguments, its properties with defaults and documentation, and
//! its metrics. It yields the parser with its error messages, the syntax in the README, the man page, and `portolan
//! -plugins`.

mod args;
mod manifest;
mod planned;
mod role;
mod syntax;
mod usage;
mod values;

pub use args::{Args, Problem};
pub use gotext::parse_duration;
pub use manifest::{
    Build, Directive, DirectiveContext, DirectiveTraits, Manifest, ParsedDirective, Property, PropertyDoc, SetProperty,
};
pub use planned::PlannedDirective;
pub use role::{Effect, PlacedRole, QueriedUpstream, Role};
pub use syntax::RemovedProperty;
pub use usage::Usage;
pub use values::zone_names;
pub(crate) use values::{cidr_zones, zone_doubt};
