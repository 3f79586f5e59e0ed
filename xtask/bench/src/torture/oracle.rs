//! Which answers are right at which moment.
//!
//! The history has each version of each object with the time of its write. An answer for a name of the cluster must be
//! that of the model for versions that could be served between the query and the response: none older than the last
//! state that must have arrived ([`Timeline::confirmed`]), none older than what an earlier answer has shown, and none
//! that was written later. Watches of different kinds are independent, and a list arrives object by object, so that the
//! versions of different objects are too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use specification::answer::{Answer, Authority, Rcode};
use specification::compare::differences;
use specification::message::Response;
use specification::record::{Data, Question, Type, is_within};
use specification::zone::{self as zone_model, Zone};
use specification::{cluster, extensions};

use super::cluster::{Key, Part, Place, model};
use super::questions::{Asked, Source};
use super::timeline::{Excuse, Timeline};
use super::zone;

/// Maximum number of combinations of versions that are compared with an answer.
const COMBINATIONS_MAX: usize = 5_000;
/// Maximum number of combinations from which an answer shows what has been served.
const SHOWING_MAX: usize = 64;

/// Version of an object.
#[derive(Debug)]
struct Version {
    /// Time right before it was written.
    before: Duration,
    /// Time right after it was written; `None` while it is written.
    after: Option<Duration>,
    part: Option<Arc<Part>>,
}

/// Version that was served, and since when that is known.
#[derive(Clone, Copy, Debug)]
struct Shown {
    version: usize,
    since: Duration,
}

/// The oracle.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) timeline: Timeline,
    history: BTreeMap<Key, Vec<Version>>,
    shown: BTreeMap<Key, Vec<Shown>>,
    zone: Zone,
    /// Number of right answers for names of the cluster when one state was permitted.
    pub(crate) exact: usize,
}

/// Verdict about an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    /// SERVFAIL that a fault excuses.
    Excused,
    Wrong(String),
    /// Too many combinations of versions are possible.
    Open,
}

impl Oracle {
    pub(crate) fn new() -> Oracle {
        let (timeline, history, shown) = Default::default();
        Oracle { timeline, history, shown, zone: zone::zone(), exact: 0 }
    }

    /// Notes that an object is about to be written; [`written`](Oracle::written) follows.
    pub(crate) fn write(&mut self, key: Key, part: Option<Part>, at: Duration) {
        let part = part.map(Arc::new);
        self.history.entry(key).or_default().push(Version { before: at, after: None, part });
    }

    /// Notes that the last version of an object has been written.
    pub(crate) fn written(&mut self, key: Key, at: Duration) {
        if let Some(last) = self.history.get_mut(&key).and_then(|versions| versions.last_mut()) {
            last.after = Some(at);
        }
    }

    /// Forgets what earlier answers have shown: the server lost it.
    pub(crate) fn forget_shown(&mut self) {
        self.shown.clear();
    }

    /// Judges an answer to a query that was sent and answered at these times.
    pub(crate) fn judge(&mut self, asked: &Asked, sent: Duration, answered: Duration, response: &Response) -> Verdict {
        match &asked.source {
            Source::Upstream => self.judge_upstream(&asked.question, sent, answered, response),
            Source::Cluster(places) => self.judge_cluster(&asked.question, places, (sent, answered), response),
        }
    }

    fn judge_upstream(&self, question: &Question, sent: Duration, answered: Duration, response: &Response) -> Verdict {
        if response.rcode == Rcode::ServFail && self.timeline.excuses(Excuse::Upstream, sent, answered) {
            return Verdict::Excused;
        }
        let (mut expected, _) = zone_model::answer(&self.zone, question);
        // A cache answers too, and what is in the other sections is that of the upstream.
        (expected.authoritative, expected.authority) = (None, Authority::Open);
        expected.glue.clear();
        verdict(&differences(&expected, response), question, response, || format!("{expected:?}"))
    }

    fn judge_cluster(
        &mut self,
        question: &Question,
        places: &[Place],
        (sent, answered): (Duration, Duration),
        response: &Response,
    ) -> Verdict {
        if response.rcode == Rcode::ServFail && self.timeline.is_unknown(sent, answered) {
            return Verdict::Excused;
        }
        let outside_may_fail = self.timeline.excuses(Excuse::Upstream, sent, answered);
        let mut keys: Vec<Key> = places.iter().copied().flat_map(Key::of).collect();
        keys.sort_unstable();
        keys.dedup();
        let ranges: Vec<(usize, usize)> = keys.iter().map(|key| self.range(*key, sent, answered)).collect();
        let count = ranges.iter().map(|(first, last)| last - first + 1).product::<usize>();
        let mut least: Option<Vec<usize>> = None;
        let mut nearest: Option<(Vec<String>, Answer)> = None;
        let mut is_excused = false;
        for number in 0..count.min(COMBINATIONS_MAX) {
            let versions = combination(number, &ranges);
            let object = |key: Key| {
                let at = keys.binary_search(&key).ok()?;
                self.version(key, versions[at])
            };
            let (expected, found, excused) = self.compare(question, places, object, outside_may_fail, response);
            if !found.is_empty() {
                if nearest.as_ref().is_none_or(|(least, _)| found.len() < least.len()) {
                    nearest = Some((found, expected));
                }
                continue;
            }
            is_excused |= excused;
            if count > SHOWING_MAX || excused {
                return if is_excused { Verdict::Excused } else { Verdict::Right };
            }
            least = Some(
                least.map_or(versions.clone(), |least| least.iter().zip(&versions).map(|(a, b)| *a.min(b)).collect()),
            );
        }
        if let Some(least) = least {
            self.show(&keys, &ranges, &least, answered);
            self.exact += usize::from(count == 1);
            return Verdict::Right;
        }
        if count > COMBINATIONS_MAX {
            return Verdict::Open;
        }
        let explain = || {
            let versions: Vec<String> =
                keys.iter().zip(&ranges).map(|(key, range)| self.describe(*key, *range)).collect();
            let confirmed = self.timeline.confirmed(sent);
            let expected = nearest.as_ref().map(|(_, expected)| expected);
            format!("{expected:?}\nconfirmed {confirmed:?}, {count} combinations:\n  {}", versions.join("\n  "))
        };
        let found = nearest.as_ref().map(|(found, _)| found.as_slice()).unwrap_or_default();
        verdict(found, question, response, explain)
    }

    /// Compares a response with the model. The result is true if it is right only because a fault excuses it.
    fn compare(
        &self,
        question: &Question,
        places: &[Place],
        object: impl Fn(Key) -> Option<Arc<Part>>,
        outside_may_fail: bool,
        response: &Response,
    ) -> (Answer, Vec<String>, bool) {
        let (cluster, orphans) = model(places, object);
        let (mut expected, _) = cluster::answer(&cluster, question);
        extensions::permit(&mut expected, question, &orphans, |asked| cluster::answer(&cluster, asked).0);
        let target = expected.required.iter().find_map(|record| match &record.data {
            Data::Cname(target) if is_within(target, zone::ORIGIN) => Some(target.clone()),
            _ => None,
        });
        if let Some(name) = target
            && question.qtype != Type::Cname
        {
            if response.rcode == Rcode::ServFail && outside_may_fail {
                return (expected, Vec::new(), true);
            }
            // The rest of the answer is that of the upstream.
            let (outside, _) = zone_model::answer(&self.zone, &Question { name, qtype: question.qtype });
            expected.rcodes = outside.rcodes;
            expected.required.extend(outside.required);
            expected.permitted.extend(outside.permitted);
            (expected.authoritative, expected.authority) = (None, Authority::Open);
        }
        let found = differences(&expected, response);
        (expected, found, false)
    }

    /// Returns the first and the last version of an object that may be served.
    fn range(&self, key: Key, sent: Duration, answered: Duration) -> (usize, usize) {
        // The version 0 is the object before its creation.
        let Some(versions) = self.history.get(&key) else { return (0, 0) };
        let confirmed = self.timeline.confirmed(sent);
        let has_arrived =
            |version: &&Version| version.after.zip(confirmed).is_some_and(|(after, confirmed)| after <= confirmed);
        let arrived = versions.iter().take_while(has_arrived).count();
        let shown = self.shown.get(&key).into_iter().flatten().filter(|shown| shown.since <= sent);
        let first = arrived.max(shown.map(|shown| shown.version).max().unwrap_or_default());
        let last = versions.iter().take_while(|version| version.before <= answered).count();
        (first.min(last), last)
    }

    fn version(&self, key: Key, version: usize) -> Option<Arc<Part>> {
        self.history.get(&key)?.get(version.checked_sub(1)?)?.part.clone()
    }

    /// Notes that these versions, or later ones, have been served. A later query gets no older ones.
    fn show(&mut self, keys: &[Key], ranges: &[(usize, usize)], least: &[usize], since: Duration) {
        for ((key, (first, _)), version) in keys.iter().zip(ranges).zip(least) {
            let shown = self.shown.entry(*key).or_default();
            if version > first && shown.last().is_none_or(|last| last.version < *version) {
                shown.push(Shown { version: *version, since });
            }
        }
    }

    fn describe(&self, key: Key, (first, last): (usize, usize)) -> String {
        let versions = (first..=last).map(|version| {
            let before = version.checked_sub(1).and_then(|at| Some(self.history.get(&key)?.get(at)?.before));
            format!("{version} of {before:?}: {:?}", self.version(key, version))
        });
        format!("{key:?}: {}", versions.collect::<Vec<_>>().join("; "))
    }
}

/// Returns the versions of a combination. The first one has the newest.
fn combination(mut number: usize, ranges: &[(usize, usize)]) -> Vec<usize> {
    let mut versions = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        let count = last - first + 1;
        versions.push(last - number % count);
        number /= count;
    }
    versions
}

fn verdict(found: &[String], question: &Question, response: &Response, explain: impl FnOnce() -> String) -> Verdict {
    if found.is_empty() {
        return Verdict::Right;
    }
    let Question { name, qtype } = question;
    Verdict::Wrong(format!("{name} {qtype}: {}\nresponse {response:?}\nexpected {}", found.join(", "), explain()))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use specification::cluster::Kind;
    use specification::record::Record;

    use super::*;

    const PLACE: Place = Place(0);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn cluster_ip(last: u8) -> Part {
        Part::Service(Kind::ClusterIp(vec![IpAddr::V4(Ipv4Addr::new(10, 96, 0, last))]))
    }

    /// Returns an oracle whose Service gets another address at 20 s, 40 s and so on.
    fn oracle() -> Oracle {
        let mut oracle = Oracle::new();
        let mut put = |key, part, at| {
            oracle.write(key, part, seconds(at));
            oracle.written(key, seconds(at));
        };
        put(Key::Namespace(0), Some(Part::Namespace), 0);
        for (last, at) in [(1, 0), (2, 20), (3, 40)] {
            put(Key::Service(PLACE), Some(cluster_ip(last)), at);
        }
        put(Key::Service(PLACE), None, 60);
        oracle
    }

    fn asked() -> Asked {
        let question = Question { name: PLACE.name(), qtype: Type::A };
        Asked { question, source: Source::Cluster(vec![PLACE]) }
    }

    fn response(rcode: Rcode, addresses: &[u8]) -> Response {
        let record = |last: &u8| Record::new(PLACE.name(), Data::A(Ipv4Addr::new(10, 96, 0, *last)));
        let authority = if addresses.is_empty() && rcode != Rcode::ServFail {
            vec![Record::new(cluster::ZONE, Data::Soa)]
        } else {
            Vec::new()
        };
        let sections = [addresses.iter().map(record).collect(), authority, Vec::new()];
        Response { rcode, authoritative: rcode != Rcode::ServFail, truncated: false, sections }
    }

    fn judge(oracle: &mut Oracle, at: u64, response: &Response) -> Verdict {
        oracle.judge(&asked(), seconds(at), seconds(at), response)
    }

    fn is_wrong(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Wrong(_))
    }

    #[test]
    fn an_answer_is_current_unless_a_fault_excuses_it() {
        let mut oracle = oracle();
        let [first, second] = [1, 2].map(|last| response(Rcode::NoError, &[last]));
        assert_eq!(judge(&mut oracle, 10, &first), Verdict::Right);
        assert!(is_wrong(&judge(&mut oracle, 10, &second)), "an answer before the change");
        assert_eq!(judge(&mut oracle, 21, &first), Verdict::Right, "the change may be on its way");
        assert!(is_wrong(&judge(&mut oracle, 26, &first)), "too late");
        oracle.timeline.add(Excuse::OldView, seconds(19), seconds(30));
        assert_eq!(judge(&mut oracle, 26, &first), Verdict::Right, "the API server is away");
        assert!(is_wrong(&judge(&mut oracle, 36, &first)), "it is back");
    }

    #[test]
    fn answers_do_not_go_back() {
        let mut oracle = oracle();
        oracle.timeline.begin(Excuse::OldView, seconds(10));
        let [first, second] = [1, 2].map(|last| response(Rcode::NoError, &[last]));
        assert_eq!(judge(&mut oracle, 21, &first), Verdict::Right);
        assert_eq!(judge(&mut oracle, 22, &second), Verdict::Right);
        assert!(is_wrong(&judge(&mut oracle, 23, &first)), "the change has been served");
        oracle.forget_shown();
        assert_eq!(judge(&mut oracle, 23, &first), Verdict::Right);
    }

    #[test]
    fn a_name_that_exists_is_neither_denied_nor_failed() {
        let mut oracle = oracle();
        let (denied, failed) = (response(Rcode::NxDomain, &[]), response(Rcode::ServFail, &[]));
        assert!(is_wrong(&judge(&mut oracle, 30, &denied)));
        assert!(is_wrong(&judge(&mut oracle, 30, &failed)));
        assert_eq!(judge(&mut oracle, 70, &denied), Verdict::Right, "it was deleted");
        oracle.timeline.begin(Excuse::UnknownCluster, seconds(29));
        assert_eq!(judge(&mut oracle, 30, &failed), Verdict::Excused);
        assert!(is_wrong(&judge(&mut oracle, 30, &denied)), "not even then");
    }

    #[test]
    fn an_upstream_fails_only_while_it_may() {
        let mut oracle = oracle();
        let asked = Asked { question: Question { name: zone::name(1), qtype: Type::A }, source: Source::Upstream };
        let mut right = response(Rcode::NoError, &[]);
        right.sections = [vec![Record::new(zone::name(1), Data::A(Ipv4Addr::new(192, 0, 2, 1)))], vec![], vec![]];
        let failed = response(Rcode::ServFail, &[]);
        oracle.timeline.add(Excuse::Upstream, seconds(5), seconds(6));
        assert_eq!(oracle.judge(&asked, seconds(1), seconds(2), &right), Verdict::Right);
        assert!(is_wrong(&oracle.judge(&asked, seconds(1), seconds(2), &failed)));
        assert_eq!(oracle.judge(&asked, seconds(4), seconds(5), &failed), Verdict::Excused);
        right.sections[0].clear();
        assert!(is_wrong(&oracle.judge(&asked, seconds(5), seconds(6), &right)));
    }

    #[test]
    fn combinations_begin_with_the_newest_versions_and_contain_all() {
        let ranges = [(1, 3), (0, 0), (4, 5)];
        let all: Vec<Vec<usize>> = (0..6).map(|number| combination(number, &ranges)).collect();
        assert_eq!(all[0], [3, 0, 5]);
        let mut sorted = all.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), 6);
    }
}
