//! The steps of one server block, in the order of the plugin list.

use wire::{Name, NameRef};

use crate::{Plugin, Zones};

/// Which hooks a plugin has: the others are not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Hooks {
    /// [`Plugin::on_query`].
    pub down: bool,
    /// [`Plugin::on_response`].
    pub up: bool,
}

impl Hooks {
    /// Acts on the way down only.
    pub const DOWN: Hooks = Hooks { down: true, up: false };
    /// Acts on the way up only.
    pub const UP: Hooks = Hooks { down: false, up: true };
    /// Acts on both ways.
    pub const BOTH: Hooks = Hooks { down: true, up: true };
}

/// One plugin in a chain.
pub struct Step {
    /// The directive.
    pub name: &'static str,
    /// Its place among the directives of its block: what metrics know it by.
    pub order: usize,
    /// The plugin.
    pub plugin: Box<dyn Plugin>,
    /// Its hooks.
    pub hooks: Hooks,
    /// The zones in which it acts; `None` for all.
    pub zones: Option<Zones>,
    /// The zones in which a name that it does not have goes on to the next step.
    pub fallthrough: Zones,
    /// Where it is the last step, what it passes is refused.
    pub is_authority: bool,
}

impl Step {
    /// The zone of this step in which a name (in lower case) lies: its index and the zone; `None` if it is not for it.
    pub(crate) fn zone_of(&self, key: NameRef<'_>) -> Option<(usize, Option<&Name>)> {
        match &self.zones {
            None => Some((0, None)),
            Some(zones) => zones.find(key).map(|index| (index, zones.names().get(index))),
        }
    }
}

/// The steps of one server block.
#[derive(Default)]
pub struct Chain {
    steps: Vec<Step>,
}

impl Chain {
    /// A chain of these steps, top first.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Chain {
        Chain { steps }
    }

    /// The steps, top first.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}
