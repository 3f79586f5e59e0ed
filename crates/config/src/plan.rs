//! Planning: checks a parsed Corefile and derives its meaning, the [`Plan`].
//!
//! Planning does no I/O, so `portolan check` can run it anywhere. It reports all problems of a Corefile at once
//! instead of stopping at the first.
//!
//! 1. Parse the keys of each server block, and check the names of its directives.
//! 2. Let each directive parse its lines, in the order of the chain.
//! 3. Merge the addresses of all blocks into listeners, and report zones that conflict.
//! 4. If there are no errors so far, look for likely mistakes that span several directives (`advice`).

use core::net::IpAddr;

use corefile::{Corefile, Diagnostic, ServerBlock, Token, did_you_mean};

use crate::advice;
use crate::codes;
use crate::directive_print::DirectivePrint;
use crate::keys::{Key, doubt_key, read_key};
use crate::options::{Directive, DirectiveTraits, Effect, PlannedDirective};
use crate::planned::{Plan, PlannedBlock, PlannedListener};
use crate::setup::{BindTarget, BlockInfo, BlockSettings, SiteInfo};
use crate::shared_listeners;
use engine::{ListenerId, Scheme, SiteId};

/// Entry in the ordered list of directives.
#[derive(Clone, Copy)]
pub enum DirectiveEntry {
    /// Directive of this build.
    Available(&'static dyn Directive),
    /// Directive of CoreDNS that this build does not implement yet.
    Planned(&'static PlannedDirective),
    /// Directive that occurs in Corefiles, but is not part of CoreDNS. Its position in the list has no effect.
    Removed(&'static RemovedDirective),
}

/// Directive that is not part of CoreDNS: either an older version had it, or a custom build has it.
pub struct RemovedDirective {
    /// Name.
    pub name: &'static str,
    /// Version of CoreDNS that removed it; `None` if it was never part of CoreDNS.
    pub removed_in: Option<&'static str>,
    /// Advice for the user, as a sentence without a full stop; may be empty.
    pub instead: &'static str,
}

impl DirectiveEntry {
    /// Name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            DirectiveEntry::Available(directive) => directive.name(),
            DirectiveEntry::Planned(directive) => directive.usage.name(),
            DirectiveEntry::Removed(directive) => directive.name,
        }
    }

    /// Parser of the directive.
    fn directive(&self) -> Option<&'static dyn Directive> {
        match self {
            DirectiveEntry::Available(directive) => Some(*directive),
            DirectiveEntry::Planned(directive) => Some(*directive),
            DirectiveEntry::Removed(_) => None,
        }
    }
}

/// Input of planning besides the Corefile.
pub struct Planning<'a> {
    /// Directives, in the order of the chain.
    pub entries: &'a [DirectiveEntry],
    /// Default port of `dns://` keys.
    pub dns_port: u16,
    /// Addresses of a network interface; `None` if it does not exist.
    pub interface: &'a dyn Fn(&str) -> Option<Vec<IpAddr>>,
}

/// Derives the meaning of a Corefile. Returns `None` and adds to `problems` if it has errors or cannot be served.
pub fn plan(file: &Corefile, planning: &Planning<'_>, problems: &mut Vec<Diagnostic>) -> Option<Plan> {
    let before = problems.len();
    let keys: Vec<Vec<Key>> = file.blocks.iter().map(|block| read_keys(block, planning.dns_port, problems)).collect();
    check_directives(file, planning.entries, problems);
    let (mut blocks, mut places) = (Vec::new(), Vec::new());
    for (written, keys) in file.blocks.iter().zip(keys) {
        let (mut block, is_known) = plan_block(written, keys, planning.entries, problems);
        let settings = block.settings();
        let addresses = listen_addresses(&settings, planning, problems);
        places.push(Place { keys: block.keys.clone(), addresses, shares: !settings.view.is_empty() || !is_known });
        (block.info.root, block.info.view, block.info.listening) = (settings.root, settings.view, settings.listening);
        block.info.encryption = settings.encryption;
        blocks.push(block);
    }
    let listeners = plan_listeners(&places, problems);
    problems.extend(blocks_without_certificates(&blocks, &listeners));
    problems.extend(shared_listeners::conflicts(&blocks, &listeners));
    assign_sites(&mut blocks, &listeners);
    assign_reachable(&mut blocks, &listeners);
    if problems[before..].iter().any(codes::is_mistake) {
        return None;
    }
    problems.extend(advice::of(&blocks, &listeners));
    let is_served = !problems[before..].iter().any(Diagnostic::is_error);
    let words = || file.blocks.iter().flat_map(ServerBlock::words).map(|word| word.text.clone()).collect();
    is_served.then(|| Plan { blocks, listeners, words: words() })
}

fn read_keys(block: &ServerBlock, dns_port: u16, problems: &mut Vec<Diagnostic>) -> Vec<Key> {
    let mut keys = Vec::new();
    for token in &block.keys {
        match read_key(token, dns_port) {
            Ok(read) => {
                keys.extend(read);
                problems.extend(doubt_key(token));
            }
            Err(problem) => problems.push(*problem),
        }
    }
    keys
}

/// Warns of an encrypted scheme without certificates. CoreDNS serves it in plain text without a warning.
fn warn_of_clear_text(keys: &[Key], info: &BlockInfo, problems: &mut Vec<Diagnostic>) {
    let is_optional = |scheme| matches!(scheme, Scheme::Tls | Scheme::Https | Scheme::Grpc);
    if let Some(key) = keys.iter().find(|key| is_optional(key.scheme) && !info.encrypts) {
        let message = format!("`{key}` without `tls` is served without encryption");
        problems.push(Diagnostic::warning(codes::NO_CERTIFICATE, key.span, message));
    }
}

/// Returns an error for each listener over QUIC of which no server block has certificates. The texts are those of
/// CoreDNS.
fn blocks_without_certificates(blocks: &[PlannedBlock], listeners: &[PlannedListener]) -> Vec<Diagnostic> {
    let lacks = |listener: &&PlannedListener| {
        listener.scheme.is_quic() && !listener.zones.iter().any(|(_, block)| blocks[*block].info.encrypts)
    };
    let problem = |listener: &PlannedListener| {
        let block = listener.zones.first().map(|(_, block)| &blocks[*block])?;
        let key = block.keys.iter().find(|key| key.scheme == listener.scheme)?;
        let message = match listener.scheme {
            Scheme::Https3 => "DoH3 requires TLS, no TLS config found",
            _ => "quic: tls.Config not set",
        };
        let help = format!("add `tls CERT KEY` to the server block: `{}://` is always encrypted", key.scheme.name());
        Some(Diagnostic::error(codes::NO_ENCRYPTION, key.span, message).with_help(help))
    };
    listeners.iter().filter(lacks).filter_map(problem).collect()
}

fn check_directives(file: &Corefile, entries: &[DirectiveEntry], problems: &mut Vec<Diagnostic>) {
    for name in file.blocks.iter().flat_map(|block| &block.directives).map(|directive| &directive.name) {
        // The list of removed directives follows the available ones, so a name in both is available.
        match entries.iter().find(|entry| entry.name() == name.text) {
            Some(DirectiveEntry::Available(_) | DirectiveEntry::Planned(_)) => {}
            Some(DirectiveEntry::Removed(directive)) => problems.push(removed_directive(name, directive)),
            None => problems.push(unknown_directive(name, entries)),
        }
    }
}

fn removed_directive(name: &Token, directive: &RemovedDirective) -> Diagnostic {
    let (code, message) = match directive.removed_in {
        Some(version) => {
            (codes::DIRECTIVE_REMOVED, format!("CoreDNS {version} removed the directive `{}`", directive.name))
        }
        None => {
            let message = format!(
                "`{}` is not part of CoreDNS; only custom builds with additional plugins have it",
                directive.name
            );
            (codes::DIRECTIVE_FOREIGN, message)
        }
    };
    let problem = Diagnostic::error(code, name.span, message);
    if directive.instead.is_empty() { problem } else { problem.with_help(directive.instead) }
}

fn unknown_directive(name: &Token, entries: &[DirectiveEntry]) -> Diagnostic {
    let message = format!("unknown directive `{}`", name.text);
    let problem = Diagnostic::error(codes::DIRECTIVE_UNKNOWN, name.span, message);
    let known = entries.iter().filter(|entry| entry.directive().is_some());
    match did_you_mean(&name.text, known.map(DirectiveEntry::name)) {
        Some(near) => problem.with_help(format!("did you mean `{near}`?")),
        None => problem,
    }
}

/// Parses the directives of a block in the order of the chain, whatever their order in the file.
///
/// Also returns false if a directive with errors might have changed the settings of the whole block.
fn plan_block(
    written: &ServerBlock,
    keys: Vec<Key>,
    entries: &[DirectiveEntry],
    problems: &mut Vec<Diagnostic>,
) -> (PlannedBlock, bool) {
    let lines_of = |name: &str| written.directives.iter().filter(|line| line.name.text == name).collect::<Vec<_>>();
    let present: Vec<_> = entries
        .iter()
        .filter_map(DirectiveEntry::directive)
        .map(|directive| (directive, lines_of(directive.name())))
        .filter(|(_, lines)| !lines.is_empty())
        .collect();
    let has = |wanted: fn(DirectiveTraits) -> bool| present.iter().any(|(directive, _)| wanted(directive.traits()));
    let handlers = present.iter().filter(|(directive, _)| !directive.traits().has_no_handler);
    let info = BlockInfo {
        any_class: has(|traits| traits.any_class),
        encrypts: has(|traits| traits.encrypts),
        zones: keys.iter().map(|key| key.zone.clone()).collect(),
        directives: present.iter().map(|(directive, _)| directive.name()).collect(),
        handlers: handlers.map(|(directive, _)| directive.name()).collect(),
        ..BlockInfo::default()
    };
    warn_of_clear_text(&keys, &info, problems);
    let (mut directives, mut prints, mut is_known) = (Vec::new(), Vec::new(), true);
    for (directive, lines) in present {
        match directive.read(&lines, &info, problems) {
            Some(parsed) => {
                directives.push((directive.name(), lines[0].name.span, parsed));
                prints.push(DirectivePrint::new(&lines, directive.traits()));
            }
            None => is_known &= !directive.changes_block_settings(),
        }
    }
    (PlannedBlock { keys, info, directives, prints }, is_known)
}

/// Addresses that a block listens on; `None` is all addresses of the machine.
fn listen_addresses(
    settings: &BlockSettings,
    planning: &Planning<'_>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Option<IpAddr>> {
    if settings.bind.is_empty() {
        return vec![None];
    }
    let mut resolve = |targets: &[BindTarget]| -> Vec<IpAddr> {
        let resolved =
            targets.iter().map(|target| resolve(target, planning).map_err(|problem| problems.push(*problem)));
        resolved.flatten().flatten().collect()
    };
    let except = resolve(&settings.bind_except);
    let mut addresses = Vec::new();
    for ip in resolve(&settings.bind).into_iter().filter(|ip| !except.contains(ip)) {
        // In Go, the unspecified address of either family listens on all addresses of both.
        let address = (!ip.is_unspecified()).then_some(ip);
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

fn resolve(target: &BindTarget, planning: &Planning<'_>) -> Result<Vec<IpAddr>, Box<Diagnostic>> {
    let ip = target.text.split('%').next().and_then(|text| text.parse().ok());
    ip.map(|ip| vec![ip]).or_else(|| (planning.interface)(&target.text)).ok_or_else(|| {
        let message = format!("not a valid IP address or interface name: `{}`", target.text);
        Box::new(Diagnostic::error(codes::BIND_UNKNOWN, target.span, message))
    })
}

/// Keys of a server block, and the addresses it listens on.
struct Place {
    keys: Vec<Key>,
    addresses: Vec<Option<IpAddr>>,
    /// True if other blocks may serve the same zones: the block has a view, or errors hide whether it has one.
    shares: bool,
}

/// Merges the blocks into listeners, one for each address.
fn plan_listeners(places: &[Place], problems: &mut Vec<Diagnostic>) -> Vec<PlannedListener> {
    let mut listeners: Vec<PlannedListener> = Vec::new();
    for (block, place) in places.iter().enumerate() {
        let taken = |other: usize| other == block || !(place.shares || places[other].shares);
        for key in &place.keys {
            for ip in &place.addresses {
                if let Some(problem) = conflict(key, *ip, &listeners, taken) {
                    problems.push(problem);
                    continue;
                }
                let same =
                    |known: &&mut PlannedListener| (known.scheme, known.ip, known.port) == (key.scheme, *ip, key.port);
                match listeners.iter_mut().find(same) {
                    Some(listener) => listener.zones.push((key.zone.clone(), block)),
                    None => listeners.push(PlannedListener {
                        scheme: key.scheme,
                        ip: *ip,
                        port: key.port,
                        zones: vec![(key.zone.clone(), block)],
                    }),
                }
            }
        }
    }
    listeners.sort_by_key(|listener| (listener.scheme, listener.port, listener.ip));
    listeners
}

/// Returns the conflict between a key on an address and the existing listeners. `taken` returns true for a block that
/// does not share its zones.
fn conflict(
    key: &Key,
    ip: Option<IpAddr>,
    listeners: &[PlannedListener],
    taken: impl Fn(usize) -> bool,
) -> Option<Diagnostic> {
    let of_port = listeners.iter().filter(|known| known.scheme == key.scheme && known.port == key.port);
    let mut of_zone = of_port.filter(|known| known.zones.iter().any(|(zone, _)| *zone == key.zone));
    let is_taken = |known: &PlannedListener| known.zones.iter().any(|(zone, block)| *zone == key.zone && taken(*block));
    let message = of_zone.find_map(|known| match (known.ip, ip) {
        (before, now) if before == now => is_taken(known).then(|| {
            let on = now.map_or(String::new(), |ip| format!(" on {ip}"));
            format!("cannot serve {key}{on} - it is already defined")
        }),
        (None, Some(_)) | (Some(_), None) => {
            Some(format!("cannot serve {key} - zone overlap listener capacity with {}", known.label()))
        }
        _ => None,
    })?;
    Some(Diagnostic::error(codes::KEY_CONFLICT, key.span, message))
}

/// Assigns the sites to their server blocks.
fn assign_sites(blocks: &mut [PlannedBlock], listeners: &[PlannedListener]) {
    let mut sites = 0;
    for (number, block) in blocks.iter_mut().enumerate() {
        for (at, listener) in listeners.iter().enumerate() {
            for (origin, _) in listener.zones.iter().filter(|(_, block)| *block == number) {
                block.info.sites.push(SiteInfo {
                    id: SiteId(sites),
                    listener: ListenerId(at),
                    origin: origin.clone(),
                    server: listener.label(),
                    zone: origin.to_string(),
                    view: block.info.view.clone(),
                    ip: listener.ip,
                    port: listener.port,
                });
                sites += 1;
            }
        }
    }
}

/// Sets the zones that clients of each block can reach: those of all blocks on the same addresses, and those that its
/// directives name.
fn assign_reachable(blocks: &mut [PlannedBlock], listeners: &[PlannedListener]) {
    for (number, block) in blocks.iter_mut().enumerate() {
        let serve_it = |listener: &&PlannedListener| listener.zones.iter().any(|(_, block)| *block == number);
        let keys = listeners.iter().filter(serve_it).flat_map(|listener| &listener.zones).map(|(zone, _)| zone);
        let roles = block.directives.iter().flat_map(|(_, _, parsed)| parsed.roles());
        let named =
            roles.filter(|placed| placed.role.effect == Effect::AnswersAll).flat_map(|placed| &placed.role.zones);
        block.info.reachable = keys.chain(named).cloned().collect();
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
