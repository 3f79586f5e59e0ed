//! The option `fallthrough`, written once: plugins that deny names may let them go on.

use engine::options::{Args, Problem, Property, Usage};
use wire::Name;

/// What goes on, for a plugin that answers all names of its zones.
pub(crate) const DENIED: &str =
    "Pass queries for names that do not exist to the next plugin: in all zones, or only in ZONES.";

/// A configuration that says which names go on.
pub(crate) trait FallsThrough {
    /// The zones of these names; none for no name at all.
    fn fallthrough(&mut self) -> &mut Vec<Name>;
}

/// `fallthrough`; `doc` says what goes on.
pub(crate) const fn fallthrough<C: FallsThrough>(doc: &'static str) -> Property<C> {
    Property { usage: Usage("fallthrough [ZONES...]"), default: "off", doc, set: set_fallthrough }
}

fn set_fallthrough<C: FallsThrough>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    *config.fallthrough() = args.zones_or_all()?;
    Ok(())
}
