//! Counting of queries by their groups, and the rows of `top`.

use std::collections::HashMap;
use std::fmt::{Display, Write};
use std::time::Duration;

use control::top::{By, Counts, Row, Top, Window};
use engine::tap::{Record, RecordFlags};
use engine::{Clock, Instant};
use transport::MonotonicClock;
use wire::Rcode;

use super::super::view::Loaded;
use super::identity::{Identities, Identity};
use super::shown::{self, Shower};
use super::space_saving::Merge;
use super::windows::{self, CountedQuery, Dimension, Stats, Windows};

/// Group of queries without a response.
const DROPPED: &str = "DROPPED";
/// Group of queries that this server and `portolan doctor` send to see if it works.
const PROBES: &str = "(probes)";
/// Group of queries of clients without a known namespace.
const NO_NAMESPACE: &str = "(unknown)";
/// Group of queries that no plugin answered.
const NO_ZONE: &str = "(none)";

/// Counts of all groups.
pub(super) struct Groups {
    windows: Windows,
    lost: u64,
    texts: Texts,
}

/// Names of the groups of one query. Their memory is used again for the next one.
#[derive(Default)]
struct Texts {
    name: String,
    client: String,
    pair: String,
    zone: String,
    rcode: String,
    upstream: String,
}

/// Longest label before a top-level domain of a country that is taken for a part of it: `co.uk`, `com.br`. There is no
/// list of such domains here, because the list changes every week.
const SECOND_LEVEL_MAX: usize = 3;

/// Returns the domain of a name: its last two labels, or three below a domain such as `co.uk`.
fn domain_of(name: &str) -> &str {
    let text = name.strip_suffix('.').unwrap_or(name);
    let is_between = |(at, _): &(usize, &str)| !text[..*at].ends_with('\\');
    let mut dots = text.rmatch_indices('.').filter(is_between).map(|(at, _)| at);
    let (Some(last), second) = (dots.next(), dots.next()) else { return name };
    let Some(second) = second else { return name };
    let is_country = text.len() - last - 1 == 2;
    let at = if is_country && last - second - 1 <= SECOND_LEVEL_MAX { dots.next() } else { Some(second) };
    at.map_or(name, |at| &name[at + 1..])
}

/// Replaces a text.
fn set(text: &mut String, content: impl Display) {
    text.clear();
    // A string takes everything.
    let _ = write!(text, "{content}");
}

impl Groups {
    pub(super) fn new() -> Groups {
        Groups { windows: Windows::new(MonotonicClock.now()), lost: 0, texts: Texts::default() }
    }

    /// Counts a query of the sample, or a failure.
    pub(super) fn count(&mut self, record: &Record, shower: &Shower, identities: &mut Identities, loaded: &Loaded) {
        let is_dropped = record.flags.has(RecordFlags::DROPPED);
        let Texts { name, client, pair, zone, rcode, upstream } = &mut self.texts;
        if record.flags.has(RecordFlags::UNREAD) {
            set(name, "(unreadable)");
        } else {
            shower.write_name(record, loaded.names, name);
            name.make_ascii_lowercase();
        }
        let is_probe = record.flags.has(RecordFlags::PROBE);
        if is_probe {
            set(client, PROBES);
        } else {
            set(client, record.client.ip());
        }
        set(pair, format_args!("{client} {name}"));
        let namespace = match is_probe {
            true => Some(PROBES),
            false => identities.of(record.client.ip(), &loaded.inspection).namespace.as_deref(),
        };
        match shown::zone(record) {
            Some(known) => set(zone, known),
            None => set(zone, NO_ZONE),
        }
        if is_dropped {
            set(rcode, DROPPED);
        } else {
            set(rcode, record.rcode);
        }
        upstream.clear();
        if let Some(asked) = record.upstream {
            set(upstream, asked);
        }
        let groups = [
            (Dimension::Client, client.as_str()),
            (Dimension::Namespace, namespace.unwrap_or(NO_NAMESPACE)),
            (Dimension::Name, name.as_str()),
            (Dimension::Zone, zone.as_str()),
            (Dimension::Rcode, rcode.as_str()),
            (Dimension::Domain, domain_of(name)),
            (Dimension::Upstream, upstream.as_str()),
        ];
        // The last one only if an upstream was asked.
        let groups = &groups[..groups.len() - usize::from(upstream.is_empty())];
        self.windows.count(&CountedQuery {
            weight: record.weight,
            took: record.took,
            is_time_of_upstream: !record.flags.has(RecordFlags::OTHER_UPSTREAMS),
            pair,
            is_nxdomain: !is_dropped && record.rcode == Rcode::NXDOMAIN,
            is_servfail: !is_dropped && record.rcode == Rcode::SERVFAIL,
            is_useful: !is_dropped && record.rcode == Rcode::NOERROR && record.answers > 0,
            is_from_cache: record.plugin() == "cache",
            groups,
        });
    }

    /// Begins new periods, and counts queries that did not fit into the rings. `lost` is their number since the start.
    pub(super) fn advance(&mut self, lost: u64) {
        self.windows.count_lost(lost - self.lost);
        self.lost = lost;
        self.windows.advance(MonotonicClock.now());
    }

    /// Returns the largest groups.
    pub(super) fn top(
        &self,
        (by, window, rows_max): (By, Window, usize),
        identities: &mut Identities,
        loaded: &Loaded,
    ) -> Top {
        let now: Instant = MonotonicClock.now();
        let counts = self.windows.report(window, now);
        let dimension = match by {
            By::Pod | By::Waste => Dimension::Client,
            By::Ns => Dimension::Namespace,
            By::Name => Dimension::Name,
            By::Zone => Dimension::Zone,
            By::Rcode => Dimension::Rcode,
            By::Domain => Dimension::Domain,
            By::Upstream => Dimension::Upstream,
        };
        let mut groups = match dimension {
            Dimension::Client => clients(&counts, identities, loaded),
            _ => plain(&counts, dimension),
        };
        match by {
            By::Waste => host::sorting::sort_by_key(&mut groups, |group| std::cmp::Reverse(group.wasted())),
            _ => host::sorting::sort_by_key(&mut groups, |group| std::cmp::Reverse(group.queries)),
        }
        let total = numbers(counts.queries, &counts.stats, counts.covered);
        Top {
            host: process::local::host_name().0,
            by,
            window,
            covered_seconds: counts.covered.as_secs_f64(),
            sampled_one_of: counts.queries_per_record(),
            total,
            refused: counts
                .of(Dimension::Rcode)
                .iter()
                .find(|(rcode, _)| *rcode == "REFUSED")
                .map_or(0, |(_, one)| one.count.into()),
            from_cache: counts.from_cache,
            names: counts.names.estimate(),
            clients: counts.clients.estimate(),
            groups_max: dimension.groups_max() as u64,
            rows: groups.into_iter().take(rows_max).map(|group| group.row(counts.covered)).collect(),
        }
    }
}

/// Group while its row is made.
#[derive(Default)]
struct Group {
    key: String,
    clients: u64,
    /// Number of queries that are certain. The other numbers are about the same queries.
    queries: u64,
    /// Number of queries that it may have had in addition, before it had a counter.
    error: u64,
    stats: Stats,
    top_name: Option<(u32, String)>,
}

impl Group {
    /// Number of queries without a useful answer.
    fn wasted(&self) -> u64 {
        self.queries.saturating_sub(self.stats.useful.into())
    }

    fn row(self, covered: Duration) -> Row {
        let Group { key, clients, queries, error, stats, top_name } = self;
        let counts = numbers(queries, &stats, covered);
        Row { key, clients, counts, error, top_name: top_name.map(|(_, name)| name) }
    }
}

/// Returns the groups of a property that is shown as it is counted.
fn plain(counts: &windows::Counts, dimension: Dimension) -> Vec<Group> {
    let group = |(key, counter): (&str, &super::space_saving::Counter<Stats>)| Group {
        key: key.to_owned(),
        queries: counter.certain().into(),
        error: counter.error.into(),
        stats: counter.value.clone(),
        ..Group::default()
    };
    counts.of(dimension).iter().map(group).collect()
}

/// Returns the groups of clients. Clients whose pods have no known names are combined by their Service.
fn clients(counts: &windows::Counts, identities: &mut Identities, loaded: &Loaded) -> Vec<Group> {
    let mut top_names: HashMap<&str, (u32, &str)> = HashMap::new();
    for (pair, counter) in counts.pairs.iter() {
        let Some((client, name)) = pair.split_once(' ') else { continue };
        let best = top_names.entry(client).or_default();
        *best = (*best).max((counter.certain(), name));
    }
    let mut groups: HashMap<String, Group> = HashMap::new();
    for (client, counter) in counts.of(Dimension::Client).iter() {
        let key = match client.parse() {
            Ok(address) => label(identities.of(address, &loaded.inspection), client),
            Err(_) => client.to_owned(),
        };
        let group = groups.entry(key.clone()).or_insert_with(|| Group { key, ..Group::default() });
        group.clients += 1;
        group.queries += u64::from(counter.certain());
        group.error += u64::from(counter.error);
        group.stats.merge(&counter.value);
        let name = top_names.get(client).map(|(count, name)| (*count, (*name).to_owned()));
        group.top_name = group.top_name.take().max(name);
    }
    groups.into_values().collect()
}

/// Returns the name of the group that a client belongs to.
fn label(identity: &Identity, address: &str) -> String {
    match (&identity.namespace, &identity.pod, &identity.service) {
        (Some(namespace), Some(name), _) | (Some(namespace), None, Some(name)) => format!("{namespace}/{name}"),
        _ => identity.client_text(address),
    }
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn numbers(queries: u64, stats: &Stats, covered: Duration) -> Counts {
    let seconds = covered.as_secs_f64();
    Counts {
        queries,
        per_second: if seconds > 0.0 { queries as f64 / seconds } else { 0.0 },
        nxdomain: stats.nxdomain.into(),
        servfail: stats.servfail.into(),
        useful: stats.useful.into(),
        waste: (stats.useful > 0).then(|| queries as f64 / f64::from(stats.useful)),
        p99_seconds: stats.p99().map(|p99| p99.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::domain_of;

    #[test]
    fn groups_names_by_domain() {
        for (name, domain) in [
            ("www.example.org.", "example.org."),
            ("a.b.c.example.org.", "example.org."),
            ("example.org.", "example.org."),
            ("www.example.co.uk.", "example.co.uk."),
            ("example.com.br.", "example.com.br."),
            ("co.uk.", "co.uk."),
            ("www.example.de.", "example.de."),
            ("web.shop.svc.cluster.local.", "cluster.local."),
            ("org.", "org."),
            (".", "."),
            ("", ""),
            ("(unreadable)", "(unreadable)"),
            ("a\\.b.test.", "a\\.b.test."),
            ("x.a\\.b.test.", "a\\.b.test."),
        ] {
            assert_eq!(domain_of(name), domain, "{name}");
        }
    }
}
