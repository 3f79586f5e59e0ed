//! Selection of the records of a name, with SkyDNS's rules.
//!
//! Records below a name hide the name's own. Text queries see more records than others ([`RecordFilter`]). If records
//! have different groups, those of one group are selected ([`GroupChoice`]); records without a group always are.

use rcu::{Entries, Pages};
use wire::NameRef;

use crate::key::{self, Key};
use crate::record::{Entry, Record, RecordFilter};

/// Maximum number of keys visited per answer, more records than fit into a message. Further keys are ignored.
pub(crate) const VISITED_MAX: usize = 8192;

/// Records of a name.
pub struct Selection<'v> {
    /// Entries, from the first key that may belong to the name.
    from: Entries<'v, Entry>,
    key: Key,
    keys: KeySet,
    filter: RecordFilter,
    /// Selected group. Records of other groups are skipped.
    group: Option<&'v str>,
    found: usize,
    unreadable: usize,
    is_cut: bool,
}

/// Set of keys that belong to a name.
#[derive(Clone, Copy)]
enum KeySet {
    /// No key.
    Nothing,
    /// The key of the name itself.
    Own,
    /// All keys below the name.
    Below,
    /// Keys that match a wildcard pattern. They share the first `n` bytes of the name's key literally.
    Like(usize),
}

/// Returns true if the name cannot have keys below it, judging from the entries at or after its key. This saves a
/// second search for most names.
fn is_alone(from: &Entries<'_, Entry>, whole: &[u8]) -> bool {
    let mut near = from.clone().map(|(key, _)| key).take_while(|key| key.starts_with(whole));
    near.next().is_none_or(|first| first == whole && near.next().is_none())
}

/// Rule that chooses a group among records visited in key order.
///
/// The first record's group is chosen, unless a record closer to the name has another. If two groups occur at the
/// same depth, none is chosen, and records of all groups are selected. A record without a group that is closer to the
/// name ends the search. This is what SkyDNS and CoreDNS do, intended or not.
#[derive(Clone, Copy)]
enum GroupChoice<'v> {
    /// No record visited yet.
    None,
    /// Current choice, if any, and the depth of its record.
    Of(Option<&'v str>, usize),
    /// Final choice, if any.
    Only(Option<&'v str>),
    /// Two groups conflict at this depth.
    Disagree(usize),
}

impl<'v> GroupChoice<'v> {
    fn see(&mut self, key: &[u8], group: Option<&'v str>) {
        let seen = key::depth(key);
        *self = match (*self, group) {
            (GroupChoice::None, _) => GroupChoice::Of(group, seen),
            (GroupChoice::Of(known, depth), None) if seen < depth => GroupChoice::Only(known),
            (GroupChoice::Disagree(depth), None) if seen < depth => GroupChoice::Only(None),
            (GroupChoice::Of(_, depth) | GroupChoice::Disagree(depth), Some(_)) if seen < depth => {
                GroupChoice::Of(group, seen)
            }
            (GroupChoice::Of(Some(known), depth), Some(other)) if seen == depth && known != other => {
                GroupChoice::Disagree(depth)
            }
            (known, _) => known,
        };
    }

    fn counts(self) -> Option<&'v str> {
        match self {
            GroupChoice::Of(group, _) | GroupChoice::Only(group) => group,
            GroupChoice::None | GroupChoice::Disagree(_) => None,
        }
    }
}

/// A record with its key.
#[derive(Clone, Copy, Debug)]
pub struct KeyedRecord<'v> {
    /// Key, without the path.
    pub key: &'v [u8],
    /// Record under the key.
    pub record: &'v Record,
}

impl<'v> Selection<'v> {
    pub(crate) fn of(
        pages: &'v Pages<Entry>,
        name: NameRef<'_>,
        before_zone: usize,
        filter: RecordFilter,
    ) -> Selection<'v> {
        let (key, keys) = match Key::of(name) {
            None => (Key::ROOT, KeySet::Nothing),
            Some(key) => {
                let zone_labels = name.ancestors().find(|zone| name.len() - zone.len() >= before_zone);
                let fixed = zone_labels.map_or(0, |zone| zone.labels().count());
                let pattern = key::wildcards_at(key.prefix(), fixed);
                (key, pattern.map_or(KeySet::Below, KeySet::Like))
            }
        };
        let from = match keys {
            KeySet::Nothing => pages.from(&[]),
            KeySet::Like(at) => pages.from(&key.prefix()[..at]),
            KeySet::Own | KeySet::Below => pages.from(key.whole()),
        };
        if matches!(keys, KeySet::Below) && !is_alone(&from, key.whole()) {
            let below = Selection::new(pages.from(key.prefix()), key, keys, filter);
            let is_empty = below.is_empty();
            return if is_empty { Selection::new(from, below.key, KeySet::Own, filter) } else { below };
        }
        let keys = if matches!(keys, KeySet::Below) { KeySet::Own } else { keys };
        Selection::new(from, key, keys, filter)
    }

    fn new(from: Entries<'v, Entry>, key: Key, keys: KeySet, filter: RecordFilter) -> Selection<'v> {
        let mut selection = Selection { from, key, keys, filter, group: None, found: 0, unreadable: 0, is_cut: false };
        selection.survey();
        selection
    }

    /// Counts the records and chooses the group.
    fn survey(&mut self) {
        let (mut found, mut unreadable, mut visited) = (0, 0, 0);
        let mut groups = GroupChoice::None;
        for (key, entry) in self.entries() {
            visited += 1;
            match entry.as_deref() {
                None => unreadable += 1,
                Some(record) => {
                    found += 1;
                    if self.filter.sees(record) {
                        groups.see(key, record.group.as_deref());
                    }
                }
            }
        }
        self.is_cut = visited == VISITED_MAX;
        self.group = groups.counts();
        (self.found, self.unreadable) = (found, unreadable);
    }

    /// Iterates over the entries that belong to the name, regardless of group.
    fn entries(&self) -> impl Iterator<Item = (&'v [u8], &'v Entry)> {
        let (prefix, whole) = (self.key.prefix(), self.key.whole());
        let like = |at: usize| prefix.split_at_checked(at).unwrap_or((prefix, &[]));
        let begins = move |key: &[u8]| match self.keys {
            KeySet::Nothing => false,
            KeySet::Own => key == whole,
            KeySet::Below => key.starts_with(prefix),
            KeySet::Like(at) => key.starts_with(like(at).0),
        };
        let is_like = move |key: &[u8]| match self.keys {
            KeySet::Like(at) => key::is_like(key.get(at..).unwrap_or_default(), like(at).1),
            _ => true,
        };
        let near = self.from.clone().take_while(move |(key, _)| begins(key)).take(VISITED_MAX);
        near.filter(move |(key, _)| is_like(key))
    }

    /// Iterates over the selected records, in key order.
    pub fn records(&self) -> impl Iterator<Item = KeyedRecord<'v>> {
        let records = self.entries().filter_map(|(key, entry)| Some(KeyedRecord { key, record: entry.as_deref()? }));
        let seen = records.filter(|listed| self.filter.sees(listed.record));
        seen.filter(|listed| match (self.group, listed.record.group.as_deref()) {
            (Some(counts), Some(own)) => counts == own,
            _ => true,
        })
    }

    /// Returns the number of records, selected or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.found
    }

    /// Returns true if the name does not exist.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found == 0 && self.unreadable == 0
    }

    /// Returns true if the name has values, but none of them is a valid record.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.found == 0 && self.unreadable > 0
    }

    /// Returns true if there may be more keys than were visited.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Script;
    use crate::{Request, Stores};
    use wire::Name;

    /// Selects `name` in `zone` from a store with these keys and returns the keys found. A key may be followed by a
    /// comma and its group, or by `!` to give it an invalid value.
    fn select(keys: &str, zone: &str, name: &str) -> String {
        let script = Script::default();
        for key in keys.split_whitespace() {
            let line = match (key.strip_suffix('!'), key.split_once(',')) {
                (Some(key), _) => format!("/{key} no record"),
                (None, Some((key, group))) => format!(r#"/{key} {{"host":"10.0.0.1","group":"{group}"}}"#),
                (None, None) => format!(r#"/{key} {{"host":"10.0.0.1"}}"#),
            };
            script.play(&[&line]);
        }
        let (zone, name) = (Name::from_text(zone).unwrap(), Name::from_text(name).unwrap());
        let request =
            Request { endpoints: vec![], path: "/".into(), zones: vec![zone.clone()], credentials: None, tls: None };
        let followed = script.follow(&request).unwrap();
        let view = followed.index().view();
        let before_zone = name.as_ref().prefix_len(zone.as_ref()).unwrap();
        let selection = view.select(name.as_ref(), before_zone, RecordFilter::Hosts);
        match (selection.is_empty(), selection.is_unreadable()) {
            (true, _) => "nothing".into(),
            (_, true) => "unreadable".into(),
            _ => {
                let keys = selection.records().map(|listed| String::from_utf8_lossy(listed.key));
                keys.collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn selects_records_below_a_name_or_else_its_own() {
        let keys = "test/a test/ab test/a-b test/b test/b/c test/b/d/e test/s/ test/bad! test/mix/x! test/mix/y";
        for (name, expected) in [
            ("a.test", "test/a"),
            ("ab.test", "test/ab"),
            ("b.test", "test/b/c test/b/d/e"),
            ("d.b.test", "test/b/d/e"),
            ("e.d.b.test", "test/b/d/e"),
            ("s.test", "test/s/"),
            ("x.test", "nothing"),
            ("x.a.test", "nothing"),
            ("bad.test", "unreadable"),
            ("mix.test", "test/mix/y"),
            ("a/b.test", "nothing"),
        ] {
            assert_eq!(select(keys, "test", name), expected, "{name}");
        }
        assert_eq!(select("org/x a", ".", "."), "a org/x");
        assert_eq!(select("test", "test", "test"), "test");
    }

    #[test]
    fn matches_wildcards_label_by_label() {
        let keys = "test/w/a/x test/w/b/x test/w/b/x/y test/w/c test/v";
        for (name, expected) in [
            ("*.w.test", "test/w/a/x test/w/b/x test/w/b/x/y test/w/c"),
            ("any.w.test", "test/w/a/x test/w/b/x test/w/b/x/y test/w/c"),
            ("x.*.w.test", "test/w/a/x test/w/b/x test/w/b/x/y"),
            ("y.x.*.w.test", "test/w/b/x/y"),
            ("*.*.w.test", "test/w/a/x test/w/b/x test/w/b/x/y"),
            ("*.*.*.*.w.test", "nothing"),
            ("b.any.test", "test/w/b/x test/w/b/x/y"),
            ("*.test", "test/v test/w/a/x test/w/b/x test/w/b/x/y test/w/c"),
        ] {
            let mut found: Vec<String> = select(keys, "test", name).split(' ').map(str::to_owned).collect();
            found.sort();
            assert_eq!(found.join(" "), expected, "{name}");
        }
        assert_eq!(select("any/a any/b x/a", "any", "a.any"), "any/a", "a label of the zone is no wildcard");
        assert_eq!(select("any/a any/b x/a", "any", "*.any"), "any/a any/b");
    }

    #[test]
    fn selects_the_group_closest_to_the_name() {
        for (keys, expected) in [
            ("t/a,g t/b,h t/c", "t/a t/b t/c"),
            ("t/a,g t/b,g t/s/c,h t/s/d", "t/a t/b t/s/d"),
            ("t/a/b,g t/c,h t/d/e", "t/c t/d/e"),
            ("t/a/b,g t/a/c,h t/d,h t/e/f,g", "t/a/c t/d"),
            ("t/a t/b,g t/s/c,h", "t/a t/b t/s/c"),
            ("t/a/b,g t/a/c,h t/d t/e,i", "t/a/b t/a/c t/d t/e"),
            ("t/a/b,g t/d t/e,i", "t/a/b t/d"),
        ] {
            assert_eq!(select(keys, "t", "t"), expected, "{keys}");
        }
    }

    #[test]
    fn ignores_records_of_the_other_kind() {
        let script = Script::default();
        script.play(&[r#"/t/a {"group":"g"}"#, r#"/t/b {"text":"b","group":"h"}"#, r#"/t/c {"host":"c","group":"i"}"#]);
        let zone = Name::from_text("t").unwrap();
        let request =
            Request { endpoints: vec![], path: "/".into(), zones: vec![zone.clone()], credentials: None, tls: None };
        let followed = script.follow(&request).unwrap();
        let view = followed.index().view();
        let seen = |name: &str, filter: RecordFilter| {
            let name = Name::from_text(name).unwrap();
            let selection = view.select(name.as_ref(), 0, filter);
            assert!(!selection.is_empty() && !selection.is_unreadable());
            selection.records().map(|listed| listed.key.to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(seen("t", RecordFilter::Hosts), [b"t/c"]);
        assert_eq!(seen("t", RecordFilter::Texts), [b"t/b", b"t/c"]);
        assert!(seen("a.t", RecordFilter::Texts).is_empty());
        assert!(seen("b.t", RecordFilter::Hosts).is_empty());
    }

    #[test]
    fn visits_a_bounded_number_of_keys() {
        let keys: Vec<String> = (0..=VISITED_MAX).map(|number| format!("t/{number:06}")).collect();
        assert_eq!(select(&keys.join(" "), "t", "t").split(' ').count(), VISITED_MAX);
    }
}
