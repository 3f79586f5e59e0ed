//! Keys of a server block that may update its dynamic zones.

use wire::Name;

/// Keys that the rules of *dynupdate* name, in lower case, for *tsig* to check that it has them.
#[derive(Clone)]
pub(crate) struct UpdateKeys(pub(crate) Vec<Name>);
