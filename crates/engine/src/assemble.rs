//! From what a Corefile means to a generation that runs: from here on the world is asked for files and more.

use std::sync::Arc;

use corefile::Diagnostic;

use crate::codes;
use crate::generation::{Block, Generation, Listener, Site};
use crate::log::{Level, Notice};
use crate::metrics::{Registry, ServerMetrics};
use crate::planned::{Plan, PlannedBlock, PlannedListener};
use crate::setup::{Around, Capabilities, Carried, Files, Needs, Part, Setup, SiteInfo, Warned};
use crate::{Chain, STEPS_MAX, Step, Zones};

/// What the building of a generation takes from the world.
pub struct Surroundings<'a> {
    /// The series of the process.
    pub registry: &'a Arc<Registry>,
    /// Files, at this moment.
    pub files: &'a dyn Files,
    /// What the process offers.
    pub process: &'a Capabilities,
    /// What the last generation leaves.
    pub carried: Carried,
}

/// A generation, and what the edge must do for it.
pub struct Built {
    /// The generation.
    pub generation: Generation,
    /// The addresses to listen on, as the generation's listeners.
    pub listeners: Vec<PlannedListener>,
    /// What the edge must do.
    pub needs: Needs,
    /// What outlives it.
    pub carried: Carried,
}

impl Plan {
    /// Makes it run, or says where and why it cannot.
    ///
    /// # Errors
    /// The first directive that fails to start, with its place.
    pub fn build(self, surroundings: Surroundings<'_>) -> Result<Built, Box<Diagnostic>> {
        let Surroundings { registry, files, process, mut carried } = surroundings;
        let mut needs = Needs::default();
        let mut sites = Vec::new();
        let mut blocks = Vec::new();
        let mut any_class = vec![false; self.blocks.len()];
        let listening: Vec<_> = self.blocks.iter().map(|block| block.info.listening.clone()).collect();
        for (index, block) in self.blocks.into_iter().enumerate() {
            any_class[index] = block.info.any_class;
            let info = block.info.clone();
            let mut below = Capabilities::default();
            let setup = Setup {
                block: &info,
                registry,
                files,
                process,
                below: &mut below,
                needs: &mut needs,
                carried: &mut carried,
                warned: Vec::new(),
            };
            let chain = block.build(setup)?;
            blocks.push(Block { chain, filter: below.find() });
            sites.extend(info.sites.iter().map(|site| (index, site.clone())));
        }
        let (mut listeners, sites) = wire_up(&self.listeners, &sites, &any_class);
        for (listener, planned) in listeners.iter_mut().zip(&self.listeners) {
            let first = planned.zones.first().and_then(|(_, block)| listening.get(*block));
            listener.listening = first.cloned().unwrap_or_default();
        }
        needs.give_tls(&mut listeners);
        carried.forget_the_rest();
        let metrics = ServerMetrics::new(registry, listeners.iter().map(|listener| listener.label.as_str()));
        let panics_end = needs.panics_end;
        let generation = Generation { listeners, sites, blocks, metrics, panics_end, ..Generation::default() };
        Ok(Built { generation, listeners: self.listeners, needs, carried })
    }
}

impl Needs {
    /// Gives the listeners their TLS, by their labels.
    fn give_tls(&mut self, listeners: &mut [Listener]) {
        for (label, tls) in self.tls.drain(..) {
            if let Some(listener) = listeners.iter_mut().find(|listener| listener.label == label) {
                listener.tls = Some(tls);
            }
        }
    }
}

impl PlannedBlock {
    /// Makes the chain, from its bottom to its top.
    fn build(self, mut setup: Setup<'_>) -> Result<Chain, Box<Diagnostic>> {
        let mut steps: Vec<Step> = Vec::new();
        let first = self.directives.first().map(|(_, span, _)| *span);
        for (order, (name, span, meant)) in self.directives.into_iter().enumerate().rev() {
            let part = meant.build(&mut setup).map_err(|error| {
                let problem = Diagnostic::error(codes::SETUP_FAILED, span, format!("plugin/{name}: {}", error.message));
                Box::new(match error.help {
                    Some(help) => problem.with_help(help),
                    None => problem,
                })
            })?;
            let warned = setup.warned.drain(..).map(|text| Notice::new(Level::Warning, name, text));
            let warned = warned.map(|notice| Warned { notice, span });
            setup.needs.warnings.extend(warned);
            if let Some(around) = setup.below.take() {
                steps = steps.into_iter().map(|step| step.within(&around)).collect();
            }
            let Some(part) = part else { continue };
            let zones = part.zones.filter(|zones: &Zones| !zones.is_everything());
            let Part { plugin, hooks, fallthrough, is_authority, .. } = part;
            steps.push(Step { name, order, plugin, hooks, zones, fallthrough, is_authority });
        }
        steps.reverse();
        match (steps.get(STEPS_MAX), first) {
            (Some(step), Some(span)) => {
                let message = format!(
                    "the server block has {} plugins, the first too many is `{}`; the maximum is {STEPS_MAX}",
                    steps.len(),
                    step.name
                );
                Err(Box::new(Diagnostic::error(codes::SETUP_FAILED, span, message)))
            }
            _ => Ok(Chain::new(steps)),
        }
    }
}

impl Step {
    /// The same step with something around its plugin.
    fn within(self, Around(around): &Around) -> Step {
        let (plugin, hooks) = around(self.name, self.plugin, self.hooks);
        Step { plugin, hooks, ..self }
    }
}

/// The routers of the listeners, and the sites that they name.
fn wire_up(planned: &[PlannedListener], known: &[(usize, SiteInfo)], any_class: &[bool]) -> (Vec<Listener>, Vec<Site>) {
    let mut listeners: Vec<Listener> = planned
        .iter()
        .map(|listener| Listener {
            label: listener.label(),
            scheme: listener.scheme,
            any_class: listener.zones.iter().any(|(_, block)| any_class[*block]),
            ..Listener::default()
        })
        .collect();
    let mut sites = Vec::new();
    for (block, site) in known {
        listeners[site.listener].router.add(site.origin.as_ref(), site.index);
        sites.push(Site { listener: site.listener, block: *block, zone: site.zone.clone() });
    }
    (listeners, sites)
}
