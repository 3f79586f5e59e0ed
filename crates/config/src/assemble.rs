//! Builds a running generation from a plan. Unlike planning, building reads files and uses the capabilities of the
//! process.

use std::collections::HashMap;
use std::sync::Arc;

use corefile::{Diagnostic, Span};

use crate::codes;
use crate::fingerprint::{Outline, RecordedFiles};
use crate::plan::{BLOCKS_BETWEEN_LOOKS, too_large};
use crate::planned::{Plan, PlannedBlock, PlannedListener};
use crate::setup::{
    Capabilities, Files, HostRequests, MemoryGrowth, MemoryGuard, Part, ReloadState, Setup, SetupError, SetupWarning,
    SiteInfo, StepWrapper, Warned,
};
use engine::log::{Level, Notice};
use engine::{Block, BlockId, Chain, Generation, Listener, STEPS_MAX, Scheme, ServerMetrics, Site, Step, Zones};
use metrics::Registry;

/// Environment in which a generation is built.
pub struct BuildContext<'a> {
    /// Metrics of the process.
    pub registry: &'a Arc<Registry>,
    /// File system.
    pub files: &'a dyn Files,
    /// Capabilities that the process offers to plugins.
    pub process: &'a Capabilities,
    /// State kept from the previous generation.
    pub reload_state: ReloadState,
}

/// Generation, with everything that the process has to do for it.
pub struct Built {
    /// Generation.
    pub generation: Generation,
    /// Addresses to listen on, in the order of the generation's listeners.
    pub listeners: Vec<PlannedListener>,
    /// Requests to the process, such as jobs and pages.
    pub requests: HostRequests,
    /// State to keep for the next generation.
    pub reload_state: ReloadState,
    /// Positions of the server blocks in the Corefile, in the order of the generation's blocks.
    pub outlines: Vec<BlockOutline>,
}

/// Positions of a server block in the Corefile.
#[derive(Clone, Debug, Default)]
pub struct BlockOutline {
    /// Its keys. One key may stand for several zones.
    pub keys: Vec<Span>,
    /// Its directives, in the order of [`Step::order`].
    pub directives: Vec<Span>,
    /// Values of the metric labels `server`, `zone` and `view`, one set per zone and listener.
    pub sites: Vec<[String; 3]>,
}

impl BlockOutline {
    fn of(block: &PlannedBlock) -> BlockOutline {
        let mut keys: Vec<Span> = block.keys.iter().map(|key| key.span).collect();
        keys.dedup();
        let labels = |site: &SiteInfo| [site.server.clone(), site.zone.clone(), site.view.clone()];
        BlockOutline {
            keys,
            directives: block.directives.iter().map(|(_, span, _)| *span).collect(),
            sites: block.info.sites.iter().map(labels).collect(),
        }
    }
}

impl Plan {
    /// Builds the generation.
    ///
    /// # Errors
    /// Returns a diagnostic for each directive that cannot be built.
    pub fn build(self, context: BuildContext<'_>) -> Result<Built, Vec<Diagnostic>> {
        let BuildContext { registry, files, process, mut reload_state } = context;
        let mut requests = HostRequests::default();
        let mut sites = Vec::new();
        let mut blocks = Vec::new();
        let mut problems = Vec::new();
        let mut outline = Outline::new(&self.blocks, &self.listeners);
        let files = RecordedFiles::new(files);
        let traits: Vec<_> = self.blocks.iter().map(|block| (block.info.any_class, block.info.takes_updates)).collect();
        let outlines = self.blocks.iter().map(BlockOutline::of).collect();
        let listening: Vec<_> = self.blocks.iter().map(|block| block.info.listening.clone()).collect();
        let memory: Option<MemoryGuard> = process.find();
        let growth = MemoryGrowth::begin(memory.as_ref());
        for (index, block) in self.blocks.into_iter().enumerate() {
            if index % BLOCKS_BETWEEN_LOOKS == 0
                && let Some(problem) = too_large(&growth, 0, block.keys.first().map(|key| key.span))
            {
                return Err(vec![problem]);
            }
            let info = block.info.clone();
            let mut below = Capabilities::default();
            let setup = Setup {
                block: &info,
                registry,
                files: &files,
                process,
                words: &self.words,
                below: &mut below,
                requests: &mut requests,
                reload_state: &mut reload_state,
                place: (index, 0),
                line: 0,
                warned: Vec::new(),
                followed: Vec::new(),
                failed: Vec::new(),
            };
            let chain =
                block.build(setup, &mut problems, |directive| outline.note_files(index, directive, files.take()));
            blocks.push(Block { chain, filter: below.find(), takes_updates: info.takes_updates });
            sites.extend(info.sites.iter().map(|site| (BlockId(index), site.clone())));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let (mut listeners, sites) = wire_up(&self.listeners, &sites, &traits);
        for (listener, planned) in listeners.iter_mut().zip(&self.listeners) {
            let mut settings = planned.zones.iter().filter_map(|(_, block)| listening.get(*block));
            listener.listening = settings.next().cloned().unwrap_or_default();
            let streams_max = &mut listener.listening.https.streams_max;
            *streams_max = streams_max.or_else(|| settings.find_map(|later| later.https.streams_max));
        }
        requests.give_tls(&mut listeners);
        let fingerprints = outline.finish();
        reload_state.settle(|block, directive| fingerprints.of(block, directive));
        let metrics = ServerMetrics::new(registry, listeners.iter().map(|listener| listener.label.as_str()));
        let mut generation = Generation::new(listeners, sites, blocks, metrics);
        generation.panics_end = requests.panics_end;
        Ok(Built { generation, listeners: self.listeners, requests, reload_state, outlines })
    }
}

impl HostRequests {
    /// Sets the encryption of the listeners, by label.
    fn give_tls(&mut self, listeners: &mut [Listener]) {
        let labels = listeners.iter().enumerate().map(|(at, listener)| (listener.label.clone(), at));
        let by_label: HashMap<String, usize> = labels.collect();
        for tls in self.tls.drain(..) {
            if let Some(at) = by_label.get(&tls.listener) {
                let listener = &mut listeners[*at];
                (listener.tls, listener.pads_responses) = (Some(tls.server), tls.pads_responses);
            }
        }
    }
}

impl PlannedBlock {
    /// Builds the chain from its bottom to its top. Omits directives that fail, and adds them to `problems`.
    /// `done` runs after each directive, with its number.
    fn build(self, mut setup: Setup<'_>, problems: &mut Vec<Diagnostic>, mut done: impl FnMut(usize)) -> Chain {
        let mut steps: Vec<Step> = Vec::new();
        let mut failed: Vec<&str> = Vec::new();
        let first = self.directives.first().map(|(_, span, _)| *span);
        for (order, (name, span, parsed)) in self.directives.into_iter().enumerate().rev() {
            let lines: Vec<Span> = parsed.roles().iter().map(|role| role.name).collect();
            let line = |index: usize| lines.get(index).copied().unwrap_or(span);
            setup.place.1 = order;
            let built = parsed.build(&mut setup);
            done(order);
            for Warned { line: index, code, text, is_followed } in setup.warned.drain(..) {
                let notice = Notice::new(Level::Warning, name, text);
                setup.requests.warnings.push(SetupWarning { notice, code, span: line(index), is_followed });
            }
            let followed = setup.followed.drain(..).map(|(index, files)| (line(index), files));
            setup.requests.inspection.files.extend(followed);
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
            if let Some(wrapper) = setup.below.take() {
                steps = steps.into_iter().map(|step| wrap(step, &wrapper)).collect();
            }
            let Some(part) = part else { continue };
            let zones = part.zones.filter(|zones: &Zones| !zones.is_everything());
            let Part { plugin, hooks, fallthrough, refuses, .. } = part;
            steps.push(Step { name, order, plugin: plugin.into(), hooks, zones, fallthrough, refuses });
        }
        steps.reverse();
        if let (Some(step), Some(span)) = (steps.get(STEPS_MAX), first) {
            problems.push(too_many(steps.len(), step.name, span));
            steps.clear();
        }
        Chain::new(steps)
    }
}

/// Returns the diagnostic for a directive that cannot be built.
fn failure(name: &str, span: Span, error: SetupError) -> Diagnostic {
    let problem = Diagnostic::error(codes::SETUP_FAILED, span, format!("plugin/{name}: {}", error.message));
    match error.help {
        Some(help) => problem.with_help(help),
        None => problem,
    }
}

/// Returns the diagnostic for a server block with more plugins than a chain can have.
fn too_many(count: usize, name: &str, span: Span) -> Diagnostic {
    let message = format!(
        "a server block can have at most {STEPS_MAX} plugins that answer queries; this one has {count} (`{name}` is \
         the first over the limit)"
    );
    Diagnostic::error(codes::SETUP_FAILED, span, message)
}

/// Replaces the plugin of a step by a wrapper around it.
fn wrap(step: Step, StepWrapper(wrapper): &StepWrapper) -> Step {
    let (plugin, hooks) = wrapper(step.name, step.plugin, step.hooks);
    Step { plugin, hooks, ..step }
}

/// Builds the listeners with their routers, and the sites that the routers refer to. `traits` are those of the blocks:
/// whether classes other than IN, and whether UPDATE messages reach their chains.
fn wire_up(
    planned: &[PlannedListener],
    known: &[(BlockId, SiteInfo)],
    traits: &[(bool, bool)],
) -> (Vec<Listener>, Vec<Site>) {
    let mut listeners: Vec<Listener> = planned
        .iter()
        .map(|listener| Listener {
            label: listener.label(),
            scheme: listener.scheme,
            any_class: listener.zones.iter().any(|(_, block)| traits[*block].0),
            // Other transports answer to UPDATE as a server without dynamic zones, as in CoreDNS.
            takes_updates: matches!(listener.scheme, Scheme::Dns | Scheme::Tls)
                && listener.zones.iter().any(|(_, block)| traits[*block].1),
            ..Listener::default()
        })
        .collect();
    let mut sites = Vec::new();
    for (block, site) in known {
        listeners[site.listener.0].router.add(site.origin.as_ref(), site.id);
        sites.push(Site { listener: site.listener, block: *block, zone: site.zone.clone() });
    }
    (listeners, sites)
}
