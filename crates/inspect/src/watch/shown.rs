//! Records as events for people, with the names that the configuration allows.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use config::setup::NamePrivacy;
use control::tail::Event;
use engine::tap::{Record, RecordFlags};
use engine::{Clock, Transport};
use transport::MonotonicClock;
use wire::{Name, NameRef};

use super::super::view::Loaded;
use super::identity::{Identities, Identity};
use host::time::rfc3339;

/// Number of bytes of a hashed name that are shown, as twice as many digits.
const HASH_SHOWN: usize = 4;
/// Number of labels that remain of a hidden name outside the zones of the server: those of most registered domains.
const LABELS_KEPT: usize = 2;

/// Turns records into events.
pub(super) struct Shower {
    /// Key for hashes of names, new in each process, so that nobody can compare them with hashes of guessed names.
    key: Option<hmac::Key>,
}

impl Shower {
    pub(super) fn new() -> Shower {
        Shower { key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok() }
    }

    /// Returns the event of a record.
    pub(super) fn event(&self, record: &Record, identities: &mut Identities, loaded: &Loaded) -> Event {
        let (address, port) = (record.client.ip(), record.client.port());
        let is_unread = record.flags.has(RecordFlags::UNREAD);
        Event {
            time: rfc3339(wall_clock(record)),
            client: match record.flags.has(RecordFlags::PROBE) {
                true => Identity::of_probe().client(address, port),
                false => identities.of(address, &loaded.inspection).client(address, port),
            },
            transport: transport_name(record.transport).to_owned(),
            name: if is_unread { String::new() } else { self.name(record, loaded.names) },
            qtype: (!is_unread).then(|| record.qtype.to_string()),
            rcode: (!record.flags.has(RecordFlags::DROPPED)).then(|| record.rcode.to_string()),
            plugin: Some(record.plugin().to_owned()).filter(|plugin| !plugin.is_empty()),
            zone: zone(record).map(|zone| zone.to_string()),
            answers: u64::from(record.answers),
            truncated: record.flags.has(RecordFlags::TRUNCATED),
            took_seconds: record.took.as_secs_f64(),
            ede: record.ede.map(|ede| u64::from(ede.0)),
            ede_text: Some(record.ede_text().to_owned()).filter(|text| !text.is_empty()),
            upstream: record.upstream.map(|upstream| upstream.to_string()),
            upstream_attempts: u64::from(record.attempts),
            rewritten: record.flags.has(RecordFlags::REWRITTEN),
        }
    }

    /// Returns the name in a record as the configuration allows it.
    pub(super) fn name(&self, record: &Record, privacy: NamePrivacy) -> String {
        let mut text = String::new();
        self.write_name(record, privacy, &mut text);
        text
    }

    /// Replaces `text` by the name in a record as the configuration allows it.
    pub(super) fn write_name(&self, record: &Record, privacy: NamePrivacy, text: &mut String) {
        let (name, is_cut) = name(record);
        text.clear();
        self.push_name(name.as_ref(), || zone(record), privacy, text);
        if is_cut && privacy == NamePrivacy::Shown {
            text.push('…');
        }
    }

    /// Appends a name as the configuration allows it. `zone` returns the zone of the plugin that answered, if it is
    /// known.
    pub(super) fn push_name(
        &self,
        name: NameRef<'_>,
        zone: impl FnOnce() -> Option<Name>,
        privacy: NamePrivacy,
        text: &mut String,
    ) {
        let kept = match privacy {
            NamePrivacy::Shown => name,
            NamePrivacy::Suffix | NamePrivacy::Hashed => kept_part(zone(), name),
        };
        if kept.len() < name.as_bytes().len() {
            match (privacy, &self.key) {
                (NamePrivacy::Hashed, Some(key)) => text.push_str(&hash(key, name.as_bytes())),
                _ => text.push('*'),
            }
            text.push('.');
            if kept.is_root() {
                return;
            }
        }
        // A string takes everything.
        let _ = write!(text, "{kept}");
    }
}

/// Wall-clock time of the arrival.
fn wall_clock(record: &Record) -> Duration {
    let age = MonotonicClock.now().since(record.received);
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(age)
}

/// Returns the name in a record, and true if its end is missing.
fn name(record: &Record) -> (Name, bool) {
    let bytes = record.name();
    if let Ok(name) = NameRef::from_bytes(bytes) {
        return (name.to_name(), false);
    }
    let (mut name, mut rest) = (Name::root(), bytes);
    while let Some((len, after)) = rest.split_first()
        && let Some(label) = after.get(..usize::from(*len))
        && name.push_label(label).is_ok()
    {
        rest = &after[label.len()..];
    }
    (name, true)
}

/// Returns the zone of the plugin that answered.
pub(super) fn zone(record: &Record) -> Option<Name> {
    let (name, len) = (record.name(), record.zone_len());
    match len {
        0 => None,
        1 => Some(Name::root()),
        _ if record.flags.has(RecordFlags::NAME_CUT) => None,
        _ => {
            let zone = name.len().checked_sub(len).and_then(|at| name.get(at..))?;
            Some(NameRef::from_bytes(zone).ok()?.to_name().into_lowercase())
        }
    }
}

/// Returns the end of a hidden name that is shown: the zone of the plugin, or the last labels.
fn kept_part(zone: Option<Name>, name: NameRef<'_>) -> NameRef<'_> {
    let by_zone = zone.filter(|zone| !zone.as_ref().is_root());
    if let Some(at) = by_zone.and_then(|zone| name.prefix_len(zone.as_ref())) {
        return NameRef::from_bytes(&name.as_bytes()[at..]).unwrap_or(NameRef::ROOT);
    }
    let labels = name.labels().count();
    name.ancestors().nth(labels.saturating_sub(LABELS_KEPT)).unwrap_or(NameRef::ROOT)
}

fn hash(key: &hmac::Key, name: &[u8]) -> String {
    let tag = hmac::sign(key, &name.to_ascii_lowercase());
    tag.as_ref().iter().take(HASH_SHOWN).map(|byte| format!("{byte:02x}")).collect()
}

const fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::Grpc => "grpc",
        Transport::Quic => "quic",
        Transport::Https => "https",
        Transport::Https3 => "https3",
    }
}
