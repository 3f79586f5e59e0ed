//! The option `fallthrough`, shared by the plugins that can pass queries for names they do not have to the next plugin.

use config::options::{Args, Problem, Property, Usage};
use wire::Name;

/// Documentation of `fallthrough` for a plugin that is authoritative for all names of its zones.
pub const DENIED: &str = "Pass queries for names that do not exist to the next plugin: in all zones, or only in ZONES.";

/// A configuration with a `fallthrough` option.
pub trait FallsThrough {
    /// Returns the zones in which queries may fall through. An empty list turns fallthrough off.
    fn fallthrough(&mut self) -> &mut Vec<Name>;
}

/// Returns the property `fallthrough`. `doc` says which queries it passes on.
pub const fn fallthrough<C: FallsThrough>(doc: &'static str) -> Property<C> {
    Property { usage: Usage("fallthrough [ZONES...]"), default: "off", doc, set: set_fallthrough }
}

fn set_fallthrough<C: FallsThrough>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    *config.fallthrough() = args.zones_or_all()?;
    Ok(())
}
