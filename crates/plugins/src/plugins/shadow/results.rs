//! Results of the comparison: counts, and groups of differences with examples.

use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use config::setup::{InspectShadow, InspectedShadow, ShadowCounts, ShadowExample, ShadowGroup};
use engine::Zones;
use metrics::{Counter, Kind, Metric, Registry};
use wire::{Name, Rcode, Type};

use super::compare::{Answer, Part};
use super::known::Known;

/// Maximum number of groups: those of all types and response codes that occur, in some zones.
const GROUPS_MAX: usize = 256;
/// Number of examples of a group.
const EXAMPLES: usize = 3;

pub(super) static COMPARED: Metric = Metric {
    name: "portolan_shadow_compared_total",
    help: "Sampled queries by the result of the comparison with the other server: same, known, different, timeout, \
           error, dropped (queue full) or skipped (not comparable).",
    kind: Kind::Counter,
    labels: &["result"],
};

/// Counters of [`COMPARED`].
#[derive(Clone, Copy)]
pub(super) struct Outcomes {
    pub(super) same: Counter,
    pub(super) known: Counter,
    pub(super) different: Counter,
    pub(super) timeout: Counter,
    pub(super) error: Counter,
    pub(super) dropped: Counter,
    pub(super) skipped: Counter,
}

impl Outcomes {
    pub(super) fn new(registry: &Registry) -> Outcomes {
        let counter = |result| registry.counter(&COMPARED, &[result]);
        Outcomes {
            same: counter("same"),
            known: counter("known"),
            different: counter("different"),
            timeout: counter("timeout"),
            error: counter("error"),
            dropped: counter("dropped"),
            skipped: counter("skipped"),
        }
    }
}

/// Results of one `shadow` line. They survive a reload that does not change the line.
pub(super) struct Results {
    to: SocketAddr,
    block: String,
    zones: Zones,
    dropped: AtomicU64,
    skipped: AtomicU64,
    found: Mutex<JobResults>,
}

/// Part of the results that only the job changes.
#[derive(Default)]
struct JobResults {
    since_1970: Option<Duration>,
    counts: ShadowCounts,
    groups: HashMap<Key, Group>,
    ungrouped: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// Index of the zone.
    zone: Option<usize>,
    qtype: Type,
    theirs: Rcode,
    ours: Rcode,
    /// Code of a known difference.
    known: Option<&'static str>,
}

#[derive(Default)]
struct Group {
    section: Option<&'static str>,
    count: u64,
    examples: Vec<ShadowExample>,
}

/// Question of a difference.
pub(super) struct Asked<'a> {
    pub(super) name: &'a Name,
    pub(super) qtype: Type,
    pub(super) client: IpAddr,
    pub(super) since_1970: Duration,
}

/// Both answers, and where they differ.
pub(super) struct Difference<'a> {
    pub(super) theirs: &'a Answer,
    pub(super) ours: &'a Answer,
    pub(super) parts: &'a [Part],
    pub(super) known: Option<&'static Known>,
}

impl Difference<'_> {
    /// Returns the example that people see.
    pub(super) fn example(&self, asked: &Asked<'_>) -> ShadowExample {
        ShadowExample {
            since_1970: asked.since_1970,
            name: asked.name.to_string(),
            client: asked.client,
            differs: self.parts.iter().map(|part| part.name()).collect(),
            theirs: self.theirs.brief(),
            ours: self.ours.brief(),
        }
    }
}

impl Results {
    pub(super) fn new(to: SocketAddr, block: String, zones: Vec<Name>) -> Results {
        let zones = zones.into_iter().collect();
        Results { to, block, zones, dropped: AtomicU64::new(0), skipped: AtomicU64::new(0), found: Mutex::default() }
    }

    pub(super) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    pub(super) fn count_skipped(&self) {
        self.skipped.fetch_add(1, Relaxed);
    }

    /// Counts a result. `now` is the time since 1970.
    pub(super) fn count(&self, now: Duration, of: impl FnOnce(&mut ShadowCounts) -> &mut u64) {
        let mut found = self.lock();
        found.since_1970.get_or_insert(now);
        *of(&mut found.counts) += 1;
    }

    /// Adds a difference to its group.
    pub(super) fn add(&self, asked: &Asked<'_>, difference: &Difference<'_>) {
        let (theirs, ours, known) = (difference.theirs.rcode, difference.ours.rcode, difference.known);
        let zone = self.zones.find(asked.name.clone().into_lowercase().as_ref());
        let key = Key { zone, qtype: asked.qtype, theirs, ours, known: known.map(|known| known.code) };
        let mut found = self.lock();
        if found.groups.len() >= GROUPS_MAX && !found.groups.contains_key(&key) {
            found.ungrouped += 1;
            return;
        }
        let group = found.groups.entry(key).or_default();
        group.section = known.map(|known| known.section);
        group.count += 1;
        if group.examples.len() < EXAMPLES {
            group.examples.push(difference.example(asked));
        }
    }

    /// Returns the counts so far.
    pub(super) fn counts(&self) -> ShadowCounts {
        let (dropped, skipped) = (self.dropped.load(Relaxed), self.skipped.load(Relaxed));
        ShadowCounts { dropped, skipped, ..self.lock().counts }
    }

    /// Returns the name of the longest zone that contains a name.
    pub(super) fn zone_of(&self, name: &Name) -> String {
        self.zone_text(self.zones.find(name.clone().into_lowercase().as_ref()))
    }

    fn zone_text(&self, zone: Option<usize>) -> String {
        zone.and_then(|zone| self.zones.names().get(zone)).map_or_else(|| ".".to_owned(), Name::to_string)
    }

    fn lock(&self) -> MutexGuard<'_, JobResults> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InspectShadow for Results {
    fn results(&self) -> InspectedShadow {
        let counts = self.counts();
        let found = self.lock();
        let mut groups: Vec<ShadowGroup> = found.groups.iter().map(|(key, group)| self.shown(key, group)).collect();
        let order = |group: &ShadowGroup| (core::cmp::Reverse(group.count), group.zone.clone(), group.qtype);
        groups.sort_by_cached_key(order);
        let (since_1970, ungrouped) = (found.since_1970, found.ungrouped);
        InspectedShadow { to: self.to, block: self.block.clone(), since_1970, counts, groups, ungrouped }
    }
}

impl Results {
    fn shown(&self, key: &Key, group: &Group) -> ShadowGroup {
        ShadowGroup {
            zone: self.zone_text(key.zone),
            qtype: key.qtype,
            theirs: key.theirs,
            ours: key.ours,
            known: key.known.zip(group.section),
            count: group.count,
            examples: group.examples.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::super::compare::tests::answer;
    use super::*;
    use wire::Flags;

    #[test]
    fn groups_are_bounded_and_keep_three_examples() {
        let zones = vec![Name::root(), Name::from_text("test.").unwrap()];
        let results = Results::new(SocketAddr::from(([192, 0, 2, 1], 53)), String::new(), zones);
        let (theirs, ours) = (answer(Rcode::NXDOMAIN, Flags(0), &[]), answer(Rcode::NOERROR, Flags(0), &[]));
        let difference = Difference { theirs: &theirs, ours: &ours, parts: &[Part::Rcode], known: None };
        let name = Name::from_text("A.Test.").unwrap();
        for qtype in 1..=GROUPS_MAX + 10 {
            for seconds in 0..5 {
                let qtype = Type(u16::try_from(qtype).unwrap());
                let (client, since_1970) = (Ipv4Addr::LOCALHOST.into(), Duration::from_secs(seconds));
                results.add(&Asked { name: &name, qtype, client, since_1970 }, &difference);
            }
        }
        let shown = results.results();
        assert_eq!((shown.groups.len(), shown.ungrouped), (GROUPS_MAX, 50));
        let group = &shown.groups[0];
        assert_eq!((group.zone.as_str(), group.count, group.examples.len()), ("test.", 5, EXAMPLES));
        assert_eq!(group.examples[2].since_1970, Duration::from_secs(2));
    }
}
