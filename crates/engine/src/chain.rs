//! Chain of the plugins of one server block, in the order of the plugin list.

use std::sync::Arc;

use host::invariant::holds;
use wire::{Name, NameRef};

use crate::plugin::Plugin;
use crate::trail::STEPS_MAX;
use crate::zones::Zones;

/// Hooks that a plugin implements. The engine does not call the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Hooks {
    /// [`Plugin::on_query`].
    pub down: bool,
    /// [`Plugin::on_response`].
    pub up: bool,
    /// True if both are also called for UPDATE messages (RFC 2136). A plugin that answers or changes queries must not
    /// be: it would confirm an update that nobody has applied.
    pub updates: bool,
}

impl Hooks {
    /// Way down only.
    pub const DOWN: Hooks = Hooks { down: true, up: false, updates: false };
    /// Way up only.
    pub const UP: Hooks = Hooks { down: false, up: true, updates: false };
    /// Both ways.
    pub const BOTH: Hooks = Hooks { down: true, up: true, updates: false };

    /// Returns these hooks, called for UPDATE messages as well.
    #[must_use]
    pub const fn with_updates(self) -> Hooks {
        Hooks { updates: true, ..self }
    }
}

/// A plugin in a chain.
pub struct Step {
    /// Name of the directive.
    pub name: &'static str,
    /// Index among the directives of the block. Metrics identify the step by it.
    pub order: usize,
    /// Plugin. A rehearsal shares it.
    pub plugin: Arc<dyn Plugin>,
    /// Hooks that it implements.
    pub hooks: Hooks,
    /// Zones in which it acts; `None` for all zones.
    pub zones: Option<Zones>,
    /// Zones in which a name that it denies continues with the next step.
    pub fallthrough: Zones,
    /// Queries that are refused when it is the last step.
    pub refuses: Refuses,
}

impl Step {
    /// Returns the zone of this step that contains `key` (in lower case), with its index. `None` if this step does not
    /// serve the name.
    pub(crate) fn zone_of(&self, key: NameRef<'_>) -> Option<(usize, Option<&Name>)> {
        match &self.zones {
            None => Some((0, None)),
            Some(zones) => zones.find(key).map(|index| (index, zones.names().get(index))),
        }
    }
}

/// Queries that are refused, not failed, if this is the last step of a chain and no step answers them. A query that is
/// not refused fails, because a plugin that answers is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refuses {
    /// None.
    #[default]
    Nothing,
    /// Queries for names outside of the zones of the step, for which it is authoritative.
    OtherZones,
    /// Queries for names within the zones of the step, parts of which it may not have.
    OwnZones,
}

/// Steps of a server block.
#[derive(Default)]
pub struct Chain {
    steps: Vec<Step>,
}

impl Chain {
    /// Builds a chain from steps in order, top first.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Chain {
        holds(steps.len() <= STEPS_MAX, "a mask has a bit for each step of a chain");
        Chain { steps }
    }

    /// Steps in order, top first.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}
