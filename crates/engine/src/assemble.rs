//! From what a Corefile means to a generation that runs: from here on the world is asked for files and more.

use std::sync::Arc;

use corefile::{Diagnostic, Span};

use crate::codes;
use crate::generation::{Block, Generation, Listener, Site};
use crate::log::{Level, Notice};
use crate::metrics::{Registry, ServerMetrics};
use crate::planned::{Plan, PlannedBlock, PlannedListener};
use crate::setup::{Around, Capabilities, Carried, Files, Needs, Part, Setup, SetupError, SiteInfo, Warned};
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
    /// Every directive that fails to start, with its place.
    pub fn build(self, surroundings: Surroundings<'_>) -> Result<Built, Vec<Diagnostic>> {
        let Surroundings { registry, files, process, mut carried } = surroundings;
        let mut needs = Needs::default();
        let mut sites = Vec::new();
        let mut blocks = Vec::new();
        let mut problems = Vec::new();
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
                line: 0,
                warned: Vec::new(),
                failed: Vec::new(),
            };
            let chain = block.build(setup, &mut problems);
            blocks.push(Block { chain, filter: below.find() });
            sites.extend(info.sites.iter().map(|site| (index, site.clone())));
        }
        if !problems.is_empty() {
            return Err(problems);
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
    /// Makes the chain, from its bottom to its top. A directive that fails is added to `problems` and left out.
    fn build(self, mut setup: Setup<'_>, problems: &mut Vec<Diagnostic>) -> Chain {
        let mut steps: Vec<Step> = Vec::new();
        let mut failed: Vec<&str> = Vec::new();
        let first = self.directives.first().map(|(_, span, _)| *span);
        for (order, (name, span, meant)) in self.directives.into_iter().enumerate().rev() {
            let lines: Vec<Span> = meant.roles().iter().map(|role| role.name).collect();
            let line = |index: usize| lines.get(index).copied().unwrap_or(span);
            let built = meant.build(&mut setup);
            for (index, text) in setup.warned.drain(..) {
                let notice = Notice::new(Level::Warning, name, text);
                setup.needs.warnings.push(Warned { notice, span: line(index) });
            }
            let mut errors = core::mem::take(&mut setup.failed);
            let part = built.unwrap_or_else(|error| {
                errors.push((0, error));
                None
            });
            if !errors.is_empty() {
                errors.retain(|(_, error)| !error.missing.is_some_and(|missing| failed.contains(&missing)));
                problems.extend(errors.into_iter().map(|(index, error)| failure(name, line(index), error)));
                failed.push(name);
            }
            if let Some(around) = setup.below.take() {
                steps = steps.into_iter().map(|step| step.within(&around)).collect();
            }
            let Some(part) = part else { continue };
            let zones = part.zones.filter(|zones: &Zones| !zones.is_everything());
            let Part { plugin, hooks, fallthrough, is_authority, .. } = part;
            steps.push(Step { name, order, plugin, hooks, zones, fallthrough, is_authority });
        }
        steps.reverse();
        if let (Some(step), Some(span)) = (steps.get(STEPS_MAX), first) {
            problems.push(too_many(steps.len(), step.name, span));
            steps.clear();
        }
        Chain::new(steps)
    }
}

/// A directive that fails to start.
fn failure(name: &str, span: Span, error: SetupError) -> Diagnostic {
    let problem = Diagnostic::error(codes::SETUP_FAILED, span, format!("plugin/{name}: {}", error.message));
    match error.help {
        Some(help) => problem.with_help(help),
        None => problem,
    }
}

/// A server block with more plugins than a chain can have.
fn too_many(count: usize, name: &str, span: Span) -> Diagnostic {
    let message =
        format!("the server block has {count} plugins, the first too many is `{name}`; the maximum is {STEPS_MAX}");
    Diagnostic::error(codes::SETUP_FAILED, span, message)
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
