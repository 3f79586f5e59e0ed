//! Agreement of server blocks that share an encrypted listener. The handshake happens before the name of a query is
//! known, so certificates and rules for clients belong to the listener. The texts are those of CoreDNS.

use std::collections::HashSet;

use corefile::{Diagnostic, Span};
use engine::Scheme;

use crate::codes;
use crate::planned::{PlannedBlock, PlannedListener};

/// Returns an error for each server block whose `tls` settings conflict with those of the first block on a listener.
/// Compares what the Corefile says; the content of files is compared when they are read ([`conflict_text`]).
pub(crate) fn conflicts(blocks: &[PlannedBlock], listeners: &[PlannedListener]) -> Vec<Diagnostic> {
    let mut reported: HashSet<(usize, usize)> = HashSet::new();
    let mut problems = Vec::new();
    for listener in listeners.iter().filter(|listener| listener.scheme != Scheme::Dns) {
        let Some((first_zone, first)) = listener.zones.first() else { continue };
        for (zone, other) in &listener.zones {
            let Some(reason) = difference(&blocks[*first], &blocks[*other]) else { continue };
            if !reported.insert((*first, *other)) {
                continue;
            }
            let zones = [first_zone.to_string(), zone.to_string()];
            let message = conflict_text(&listener.label(), [&zones[0], &zones[1]], reason);
            let [before, now] = [*first, *other].map(|block| place(&blocks[block], listener.scheme));
            let (Some(before), Some(now)) = (before, now) else { continue };
            problems.push(
                Diagnostic::error(codes::TLS_CONFLICT, now, message)
                    .with_other(before, "the first server block on this listener")
                    .with_help("write the same `tls` stanza in both server blocks, or let them listen on other ports"),
            );
        }
    }
    problems
}

/// Returns an error for each server block whose `max_streams` in *https* conflicts with that of another block on a
/// listener. Blocks that do not set it agree with all others.
pub(crate) fn streams_conflicts(blocks: &[PlannedBlock], listeners: &[PlannedListener]) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for listener in listeners.iter().filter(|listener| listener.scheme == Scheme::Https) {
        let mut first: Option<(usize, u32)> = None;
        for (_, other) in &listener.zones {
            let Some(streams) = blocks[*other].info.listening.https.streams_max else { continue };
            let (before, known) = *first.get_or_insert((*other, streams));
            if known == streams {
                continue;
            }
            let message = format!(
                "conflicting max_streams values for shared HTTPS listener {}: {known} and {streams}",
                listener.label()
            );
            let place = |block: usize| directive(&blocks[block], "https");
            let (Some(before), Some(now)) = (place(before), place(*other)) else { continue };
            problems.push(
                Diagnostic::error(codes::STREAMS_CONFLICT, now, message)
                    .with_other(before, "another server block on this listener")
                    .with_help("set `max_streams` in one of the blocks, or to the same number in all"),
            );
            break;
        }
    }
    problems
}

/// Returns the text of a conflict between the zones of two server blocks on a listener.
#[must_use]
pub fn conflict_text(listener: &str, zones: [&str; 2], reason: &str) -> String {
    let [first, other] = zones;
    format!(
        "conflicting TLS configuration for shared listener {listener} \
         between zones \"{first}\" and \"{other}\": {reason}"
    )
}

fn difference(first: &PlannedBlock, other: &PlannedBlock) -> Option<&'static str> {
    if first.info.encrypts != other.info.encrypts {
        return Some("TLS is configured for only one server block");
    }
    first.info.encryption.as_ref()?.difference(other.info.encryption.as_ref()?)
}

/// Returns the position of the directive for the encryption of a block, or of its key on the listener.
fn place(block: &PlannedBlock, scheme: Scheme) -> Option<Span> {
    let key = || block.keys.iter().find(|key| key.scheme == scheme).map(|key| key.span);
    directive(block, "tls").or_else(key)
}

/// Returns the position of the first directive of a block with this name.
fn directive(block: &PlannedBlock, wanted: &str) -> Option<Span> {
    block.directives.iter().find(|(name, ..)| *name == wanted).map(|(_, span, _)| *span)
}
