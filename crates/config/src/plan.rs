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
use std::collections::HashMap;
use std::sync::Arc;

use corefile::{Corefile, Diagnostic, ServerBlock, Span, Token, did_you_mean};

use crate::advice;
use crate::codes;
use crate::directive_print::DirectivePrint;
use crate::directives::{DirectiveEntry, RemovedDirective};
use crate::keys::{Key, doubt_key, read_key};
use crate::options::{DirectiveTraits, Effect};
use crate::planned::{Plan, PlannedBlock, PlannedListener};
use crate::setup::{BindTarget, BlockInfo, BlockSettings, MemoryGrowth, MemoryGuard, ReachableZones, SiteInfo};
use crate::shared_listeners;
use engine::{ListenerId, Scheme, SiteId, Zones};
use wire::Name;

/// Input of planning besides the Corefile.
pub struct Planning<'a> {
    /// Directives, in the order of the chain.
    pub entries: &'a [DirectiveEntry],
    /// Default port of `dns://` keys.
    pub dns_port: u16,
    /// Addresses of a network interface; `None` if it does not exist.
    pub interface: &'a dyn Fn(&str) -> Option<Vec<IpAddr>>,
    /// Memory of the process that will serve the configuration, if it will.
    pub memory: Option<&'a MemoryGuard>,
}

/// Server blocks between two looks at the memory of the process. Each takes ten kilobytes and more.
pub(crate) const BLOCKS_BETWEEN_LOOKS: usize = 16;
/// Bytes that a word of a Corefile takes at least while its directive is parsed.
const WORD_BYTES: usize = 512;
/// Bytes that a zone on an address takes while it is planned and built: its labels, and a name in several sets.
const SITE_BYTES: usize = 3 << 10;

/// Returns the error that the memory for `more` bytes is missing from a server block on.
pub(crate) fn too_large(growth: &MemoryGrowth<'_>, more: usize, block: Option<Span>) -> Option<Diagnostic> {
    let message = format!("the configuration is too large from here on: {}", growth.refusal(more)?);
    let help = "raise the memory limit of the container, or serve fewer server blocks and zones";
    Some(Diagnostic::error(codes::TOO_LARGE, block?, message).with_help(help))
}

/// Derives the meaning of a Corefile. Returns `None` and adds to `problems` if it has errors or cannot be served.
pub fn plan(file: &Corefile, planning: &Planning<'_>, problems: &mut Vec<Diagnostic>) -> Option<Plan> {
    let before = problems.len();
    let growth = MemoryGrowth::begin(planning.memory);
    let first_key = |block: &ServerBlock| block.keys.first().map(|key| key.span);
    let words: usize = file.blocks.iter().map(|block| block.words().count()).sum();
    if let Some(problem) = too_large(&growth, words * WORD_BYTES, file.blocks.first().and_then(first_key)) {
        problems.push(problem);
        return None;
    }
    let keys: Vec<Vec<Key>> = file.blocks.iter().map(|block| read_keys(block, planning.dns_port, problems)).collect();
    check_directives(file, planning.entries, problems);
    let (mut blocks, mut places) = (Vec::new(), Vec::new());
    for (number, (written, keys)) in file.blocks.iter().zip(keys).enumerate() {
        if number % BLOCKS_BETWEEN_LOOKS == 0
            && let Some(problem) = too_large(&growth, 0, first_key(written))
        {
            problems.push(problem);
            return None;
        }
        let (mut block, is_known) = plan_block(written, keys, planning.entries, problems);
        let settings = block.settings();
        let addresses = listen_addresses(&settings, planning, problems);
        places.push(Place { keys: block.keys.clone(), addresses, shares: !settings.view.is_empty() || !is_known });
        (block.info.root, block.info.view, block.info.listening) = (settings.root, settings.view, settings.listening);
        block.info.encryption = settings.encryption;
        blocks.push(block);
    }
    let sites: usize = places.iter().map(|place| place.keys.len() * place.addresses.len()).sum();
    if let Some(problem) = too_large(&growth, sites * SITE_BYTES, file.blocks.last().and_then(first_key)) {
        problems.push(problem);
        return None;
    }
    let listeners = plan_listeners(&places, problems);
    problems.extend(blocks_without_certificates(&blocks, &listeners));
    problems.extend(shared_listeners::conflicts(&blocks, &listeners));
    problems.extend(shared_listeners::streams_conflicts(&blocks, &listeners));
    assign_sites(&mut blocks, &listeners);
    assign_reachable(&mut blocks, &listeners);
    if problems[before..].iter().any(codes::is_mistake) {
        return None;
    }
    // Advice compares all zones. Where the memory for that is missing, serving comes first.
    match growth.refusal(words * WORD_BYTES) {
        None => problems.extend(advice::of(&blocks, &listeners)),
        Some(reason) => problems.extend(file.blocks.first().and_then(first_key).map(|key| {
            let message = format!("likely mistakes in this configuration were not looked for: {reason}");
            Diagnostic::warning(codes::TOO_LARGE, key, message).with_help("run `portolan check` on another machine")
        })),
    }
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
        takes_updates: has(|traits| traits.takes_updates),
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
    let refused = problems.len();
    problems.extend(settings.bind.iter().filter_map(link_local_problem));
    if problems.len() > refused {
        return Vec::new();
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

/// Returns the error for a link-local IPv6 address. It exists once per interface (RFC 4007 §6), and a listener is
/// identified by its address and port alone; the system refuses such an address without its interface.
fn link_local_problem(target: &BindTarget) -> Option<Diagnostic> {
    let (address, interface) = target.text.split_once('%').unwrap_or((&target.text, ""));
    let ip: IpAddr = address.parse().ok()?;
    let is_link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    if !is_link_local && interface.is_empty() {
        return None;
    }
    let (message, help) = if is_link_local {
        let help = "use another address; a server block without `bind` receives queries to link-local addresses too";
        (format!("cannot listen on the link-local address `{}`", target.text), help)
    } else {
        let help = "write the address without its interface";
        (format!("not a valid IP address or interface name: `{}`", target.text), help)
    };
    Some(Diagnostic::error(codes::BIND_UNKNOWN, target.span, message).with_help(help))
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
    let mut by_address: HashMap<(Scheme, u16, Option<IpAddr>), usize> = HashMap::new();
    let mut claims: HashMap<(Scheme, u16, &[u8]), Vec<Claim>> = HashMap::new();
    for (block, place) in places.iter().enumerate() {
        for key in &place.keys {
            let of_zone = claims.entry((key.scheme, key.port, key.zone.as_bytes())).or_default();
            for ip in &place.addresses {
                if let Some(problem) = conflict(key, *ip, of_zone, (block, place.shares), &listeners) {
                    problems.push(problem);
                    continue;
                }
                let listener = *by_address.entry((key.scheme, key.port, *ip)).or_insert_with(|| {
                    listeners.push(PlannedListener { scheme: key.scheme, ip: *ip, port: key.port, zones: Vec::new() });
                    listeners.len() - 1
                });
                listeners[listener].zones.push((key.zone.clone(), block));
                Claim::note(of_zone, listener, (*ip, key.span), (block, place.shares));
            }
        }
    }
    listeners.sort_unstable_by_key(|listener| (listener.scheme, listener.port, listener.ip));
    listeners
}

/// Blocks that serve a zone on a listener.
struct Claim {
    /// Index of the listener in the order of the Corefile.
    listener: usize,
    ip: Option<IpAddr>,
    last_block: usize,
    /// True if one of them does not share its zones with other blocks.
    is_exclusive: bool,
    /// First key with the zone.
    first: Span,
}

impl Claim {
    /// Adds a block to the claims of a zone, which are in the order of the listeners.
    fn note(
        claims: &mut Vec<Claim>,
        listener: usize,
        (ip, first): (Option<IpAddr>, Span),
        (block, shares): (usize, bool),
    ) {
        match claims.binary_search_by_key(&listener, |claim| claim.listener) {
            Ok(at) => {
                claims[at].last_block = block;
                claims[at].is_exclusive |= !shares;
            }
            Err(at) => claims.insert(at, Claim { listener, ip, last_block: block, is_exclusive: !shares, first }),
        }
    }
}

/// Returns the conflict between a key on an address and the blocks that claim the zone already. `own` is the number of
/// the block, and whether it shares its zones.
fn conflict(
    key: &Key,
    ip: Option<IpAddr>,
    claims: &[Claim],
    own: (usize, bool),
    listeners: &[PlannedListener],
) -> Option<Diagnostic> {
    let (block, shares) = own;
    let is_taken = |claim: &Claim| claim.last_block == block || (!shares && claim.is_exclusive);
    let (message, first) = claims.iter().find_map(|claim| match (claim.ip, ip) {
        (before, now) if before == now => is_taken(claim).then(|| {
            let on = now.map_or(String::new(), |ip| format!(" on {ip}"));
            (format!("cannot serve {key}{on} - it is already defined"), claim.first)
        }),
        (None, Some(_)) | (Some(_), None) => {
            let label = listeners[claim.listener].label();
            Some((format!("cannot serve {key} - zone overlap listener capacity with {label}"), claim.first))
        }
        _ => None,
    })?;
    let problem = Diagnostic::error(codes::KEY_CONFLICT, key.span, message);
    // A snippet that is imported twice has the key at one place.
    Some(if first == key.span { problem } else { problem.with_other(first, "defined here first") })
}

/// Assigns the sites to their server blocks: numbers in the order of the blocks, and for each in that of the listeners.
fn assign_sites(blocks: &mut [PlannedBlock], listeners: &[PlannedListener]) {
    let mut served: Vec<Vec<(usize, &Name)>> = vec![Vec::new(); blocks.len()];
    for (at, listener) in listeners.iter().enumerate() {
        for (origin, block) in &listener.zones {
            served[*block].push((at, origin));
        }
    }
    let mut sites = 0;
    for (block, served) in blocks.iter_mut().zip(served) {
        for (at, origin) in served {
            let listener = &listeners[at];
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

/// Sets the zones that clients of each block can reach: those of all blocks on the same addresses, and those that its
/// directives name. Blocks share the zones of an address.
fn assign_reachable(blocks: &mut [PlannedBlock], listeners: &[PlannedListener]) {
    let zones_of = |listener: &PlannedListener| Arc::new(listener.zones.iter().map(|(zone, _)| zone.clone()).collect());
    let served: Vec<Arc<Zones>> = listeners.iter().map(zones_of).collect();
    for block in blocks {
        let mut own: Vec<usize> = block.info.sites.iter().map(|site| site.listener.0).collect();
        own.dedup();
        let roles = block.directives.iter().flat_map(|(_, _, parsed)| parsed.roles());
        let named =
            roles.filter(|placed| placed.role.effect == Effect::AnswersAll).flat_map(|placed| &placed.role.zones);
        let named: Zones = named.cloned().collect();
        let parts = own.into_iter().map(|listener| Arc::clone(&served[listener])).chain([Arc::new(named)]);
        block.info.reachable = ReachableZones::new(parts.filter(|zones| !zones.is_empty()).collect());
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
