//! From a Corefile to a generation that runs, in two strides: what it means ([`plan`], no input or output), and what
//! runs ([`Plan::build`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use corefile::{Corefile, Diagnostic, ServerBlock, Span, did_you_mean};

use crate::generation::{Block, Generation, Listener, Site};
use crate::keys::{Key, Scheme, read_key};
use crate::metrics::{Registry, ServerMetrics};
use crate::options::{Directive, Meant};
use crate::setup::{BlockInfo, Capabilities, Carried, Files, Needs, Setup, SiteInfo};
use crate::{Chain, STEPS_MAX, Step, Zones};

/// A place in the ordered list of directives.
#[derive(Clone, Copy)]
pub enum Slot {
    /// A directive of this build.
    Here(&'static dyn Directive),
    /// A directive of CoreDNS that this build does not have yet.
    Later(&'static str),
}

impl Slot {
    /// The directive.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Slot::Here(directive) => directive.name(),
            Slot::Later(name) => name,
        }
    }
}

/// What a Corefile means.
pub struct Plan {
    blocks: Vec<PlannedBlock>,
    listeners: Vec<PlannedListener>,
}

struct PlannedBlock {
    info: BlockInfo,
    /// What each directive means, in the order of the chain.
    directives: Vec<(&'static str, Span, Box<dyn Meant>)>,
}

/// An address to listen on, and what is served there.
#[derive(Clone, Debug)]
pub struct PlannedListener {
    /// The transport.
    pub scheme: Scheme,
    /// The port.
    pub port: u16,
    /// The zones served, with the index of their server block.
    pub zones: Vec<(wire::Name, usize)>,
}

impl PlannedListener {
    /// As metrics and logs write it: `dns://:53`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}://:{}", self.scheme.name(), self.port)
    }
}

/// Reads what a Corefile means; `None` if something in it is wrong, which `problems` then says.
pub fn plan(file: &Corefile, slots: &[Slot], dns_port: u16, problems: &mut Vec<Diagnostic>) -> Option<Plan> {
    let before = problems.len();
    let keys: Vec<Vec<Key>> = file.blocks.iter().map(|block| read_keys(block, dns_port, problems)).collect();
    check_directives(file, slots, problems);
    let listeners = plan_listeners(&keys, problems);
    let mut site = 0;
    let mut blocks = Vec::new();
    for (index, (written, keys)) in file.blocks.iter().zip(&keys).enumerate() {
        let mut info = BlockInfo { zones: keys.iter().map(|key| key.zone.clone()).collect(), ..BlockInfo::default() };
        for listener in &listeners {
            for (zone, _) in listener.zones.iter().filter(|(_, block)| *block == index) {
                info.sites.push(SiteInfo {
                    index: 0,
                    server: listener.label(),
                    zone: zone.to_string(),
                    port: listener.port,
                });
            }
        }
        for known in &mut info.sites {
            known.index = site;
            site += 1;
        }
        blocks.push(plan_block(written, info, slots, problems));
    }
    problems[before..].iter().all(|problem| !problem.is_error()).then_some(Plan { blocks, listeners })
}

fn read_keys(block: &ServerBlock, dns_port: u16, problems: &mut Vec<Diagnostic>) -> Vec<Key> {
    let mut keys = Vec::new();
    for token in &block.keys {
        match read_key(token, dns_port) {
            Ok(read) => keys.extend(read),
            Err(problem) => problems.push(*problem),
        }
    }
    if let Some(key) = keys.iter().find(|key| key.scheme != Scheme::Dns) {
        let message = format!("this build does not serve `{}://` yet, only `dns://`", key.scheme.name());
        problems.push(Diagnostic::error("keys/scheme-not-here", key.span, message));
    }
    keys
}

/// One address is listened on once, whatever the number of blocks that are served there.
fn plan_listeners(blocks: &[Vec<Key>], problems: &mut Vec<Diagnostic>) -> Vec<PlannedListener> {
    let mut by_address: BTreeMap<(Scheme, u16), PlannedListener> = BTreeMap::new();
    for (block, keys) in blocks.iter().enumerate() {
        for key in keys {
            let new = || PlannedListener { scheme: key.scheme, port: key.port, zones: Vec::new() };
            let listener = by_address.entry((key.scheme, key.port)).or_insert_with(new);
            if listener.zones.iter().any(|(zone, _)| *zone == key.zone) {
                let message = format!("cannot serve {key} - it is already defined");
                problems.push(Diagnostic::error("keys/conflict", key.span, message));
            } else {
                listener.zones.push((key.zone.clone(), block));
            }
        }
    }
    by_address.into_values().collect()
}

fn check_directives(file: &Corefile, slots: &[Slot], problems: &mut Vec<Diagnostic>) {
    for name in file.blocks.iter().flat_map(|block| &block.directives).map(|directive| &directive.name) {
        match slots.iter().find(|slot| slot.name() == name.text) {
            Some(Slot::Here(_)) => {}
            Some(Slot::Later(_)) => {
                let message = format!("this build does not have the directive `{}` of CoreDNS yet", name.text);
                problems.push(Diagnostic::error("corefile/directive-not-here", name.span, message));
            }
            None => {
                let problem = Diagnostic::error(
                    "corefile/unknown-directive",
                    name.span,
                    format!("unknown directive `{}`", name.text),
                );
                problems.push(match did_you_mean(&name.text, slots.iter().map(Slot::name)) {
                    Some(near) => problem.with_help(format!("did you mean `{near}`?")),
                    None => problem,
                });
            }
        }
    }
}

fn plan_block(
    written: &ServerBlock,
    mut info: BlockInfo,
    slots: &[Slot],
    problems: &mut Vec<Diagnostic>,
) -> PlannedBlock {
    let lines_of = |name: &str| written.directives.iter().filter(|line| line.name.text == name).collect::<Vec<_>>();
    let present: Vec<_> = slots
        .iter()
        .filter_map(|slot| match slot {
            Slot::Here(directive) => Some((*directive, lines_of(directive.name()))),
            Slot::Later(_) => None,
        })
        .filter(|(_, lines)| !lines.is_empty())
        .collect();
    info.directives = present.iter().map(|(directive, _)| directive.name()).collect();
    let mut directives = Vec::new();
    for (directive, lines) in present {
        if let Some(meant) = directive.read(&lines, &info, problems) {
            directives.push((directive.name(), lines[0].name.span, meant));
        }
    }
    PlannedBlock { info, directives }
}

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
    /// The addresses to listen on.
    #[must_use]
    pub fn listeners(&self) -> &[PlannedListener] {
        &self.listeners
    }

    /// Makes it run, or says where and why it cannot.
    ///
    /// # Errors
    /// The first thing of the world that is not as a directive needs it.
    pub fn build(self, surroundings: Surroundings<'_>) -> Result<Built, Box<Diagnostic>> {
        let Surroundings { registry, files, process, mut carried } = surroundings;
        let mut needs = Needs::default();
        let mut sites = Vec::new();
        let mut blocks = Vec::new();
        let mut any_class = vec![false; self.blocks.len()];
        for (index, block) in self.blocks.into_iter().enumerate() {
            any_class[index] = block.info.directives.iter().any(|name| matches!(*name, "chaos" | "forward"));
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
            };
            blocks.push(Block { chain: block.build(setup)? });
            sites.extend(info.sites.iter().map(|site| (index, site.clone())));
        }
        let (listeners, sites) = wire_up(&self.listeners, &sites, &any_class);
        let metrics = ServerMetrics::new(registry, listeners.iter().map(|listener| listener.label.as_str()));
        let generation = Generation { listeners, sites, blocks, metrics, ..Generation::default() };
        Ok(Built { generation, listeners: self.listeners, needs, carried })
    }
}

impl PlannedBlock {
    /// Makes the chain, from its bottom to its top.
    fn build(self, mut setup: Setup<'_>) -> Result<Chain, Box<Diagnostic>> {
        let mut steps = Vec::new();
        for (order, (name, span, meant)) in self.directives.into_iter().enumerate().rev() {
            let part = meant.build(&mut setup).map_err(|error| {
                let problem = Diagnostic::error("setup/failed", span, format!("plugin/{name}: {}", error.message));
                Box::new(match error.help {
                    Some(help) => problem.with_help(help),
                    None => problem,
                })
            })?;
            let Some(part) = part else { continue };
            let zones = part.zones.filter(|zones: &Zones| !zones.is_everything());
            let fallthrough = part.fallthrough;
            steps.push(Step { name, order, plugin: part.plugin, hooks: part.hooks, zones, fallthrough });
        }
        steps.reverse();
        steps.truncate(STEPS_MAX);
        Ok(Chain::new(steps))
    }
}

/// The routers of the listeners, and the sites that they name.
fn wire_up(planned: &[PlannedListener], known: &[(usize, SiteInfo)], any_class: &[bool]) -> (Vec<Listener>, Vec<Site>) {
    let mut listeners: Vec<Listener> = planned
        .iter()
        .map(|listener| Listener {
            label: listener.label(),
            any_class: listener.zones.iter().any(|(_, block)| any_class[*block]),
            ..Listener::default()
        })
        .collect();
    let mut sites = Vec::new();
    for (block, site) in known {
        let Some(listener) = listeners.iter().position(|listener| listener.label == site.server) else { continue };
        if let Ok(zone) = wire::Name::from_text(&site.zone) {
            listeners[listener].router.add(zone.as_ref(), site.index);
        }
        sites.push(Site { listener, block: *block, zone: site.zone.clone() });
    }
    (listeners, sites)
}
