//! Times of the faults, and the deviations that each fault permits.

use std::time::Duration;

/// Uninterrupted time after which the view of the cluster is current.
pub(crate) const CURRENT_AFTER: Duration = Duration::from_secs(5);

/// Time after which a query for a name of the cluster must have been answered.
const IN_HAND_MAX: Duration = Duration::from_secs(1);

/// Deviation that a fault permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Excuse {
    /// Changes of the cluster do not arrive, so answers may be old.
    OldView,
    /// Names of the cluster may fail: nothing is known about it.
    UnknownCluster,
    /// Names of the upstream may fail.
    Upstream,
    /// Queries may be lost.
    Gap,
    /// Connections may break.
    Connections,
    /// The snapshot does not get the changes.
    Snapshot,
}

/// Number of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(usize);

/// All faults so far. Times count from the start of the run.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    spans: Vec<(Excuse, Duration, Option<Duration>)>,
    /// Time since which the disk of the snapshot has room again, until a process starts.
    free_since: Option<Duration>,
}

impl Timeline {
    /// Begins a fault.
    pub(crate) fn begin(&mut self, excuse: Excuse, at: Duration) -> Span {
        self.spans.push((excuse, at, None));
        Span(self.spans.len() - 1)
    }

    /// Ends a fault. Its consequences may last until a later time.
    pub(crate) fn end(&mut self, span: Span, at: Duration) {
        self.spans[span.0].2 = Some(at);
    }

    /// Adds a fault that has ended.
    pub(crate) fn add(&mut self, excuse: Excuse, from: Duration, until: Duration) {
        self.spans.push((excuse, from, Some(until)));
    }

    /// Returns true if a fault excuses anything between two times.
    pub(crate) fn excuses(&self, excuse: Excuse, from: Duration, until: Duration) -> bool {
        self.of(excuse).any(|(begin, end)| begin <= until && end.is_none_or(|end| end >= from))
    }

    /// Returns true if a query without a response may be lost that was sent over a stream or in a datagram, and was
    /// given up at `end`.
    ///
    /// The server answers names of the cluster at once, so that a later fault excuses nothing then. A query for another
    /// name may wait for an upstream when the server is killed.
    pub(crate) fn may_be_lost(&self, is_local: bool, is_stream: bool, sent: Duration, end: Duration) -> bool {
        let end = if is_local { end.min(sent + IN_HAND_MAX) } else { end };
        self.excuses(Excuse::Gap, sent, end) || is_stream && self.excuses(Excuse::Connections, sent, end)
    }

    /// Returns the time from which the snapshot may lack changes, if it may do so at `at`.
    pub(crate) fn snapshot_broken_since(&self, at: Duration) -> Option<Duration> {
        let open = self.of(Excuse::Snapshot).filter(|(begin, end)| *begin <= at && end.is_none_or(|end| end >= at));
        open.map(|(begin, _)| begin).min()
    }

    /// Notes that the disk of the snapshot has room again. The next process that starts uses it.
    pub(crate) fn disk_is_free(&mut self, at: Duration) {
        self.free_since = Some(at);
    }

    /// Notes that a process has started. It writes its snapshot if the disk has room.
    pub(crate) fn end_broken_snapshot(&mut self, at: Duration) {
        let Some(free) = self.free_since.take_if(|free| *free <= at) else { return };
        let open = |(excuse, begin, end): &&mut (Excuse, Duration, Option<Duration>)| {
            *excuse == Excuse::Snapshot && end.is_none() && *begin <= free
        };
        self.spans.iter_mut().filter(open).for_each(|(.., end)| *end = Some(at));
    }

    /// Returns true if a query may fail because the cluster is not known again since a process started without its
    /// snapshot.
    pub(crate) fn is_unknown(&self, sent: Duration, answered: Duration) -> bool {
        let confirmed = self.confirmed(sent);
        let mut starts = self.of(Excuse::UnknownCluster).map(|(begin, _)| begin);
        starts.any(|begin| begin <= answered && confirmed.is_none_or(|confirmed| confirmed < begin))
    }

    /// Returns the latest time whose state of the cluster must have arrived at `at`: the end of the last
    /// [`CURRENT_AFTER`] without a fault is that much later. Returns `None` if there is no such time.
    pub(crate) fn confirmed(&self, at: Duration) -> Option<Duration> {
        let mut spans: Vec<_> = self.of(Excuse::OldView).filter(|(begin, _)| *begin <= at).collect();
        spans.sort_unstable();
        let (mut calm_since, mut confirmed) = (Some(Duration::ZERO), None);
        for (begin, end) in spans {
            confirmed = latest(confirmed, calm_since, begin);
            calm_since = calm_since.zip(end).map(|(since, end)| since.max(end));
        }
        latest(confirmed, calm_since, at)
    }

    fn of(&self, excuse: Excuse) -> impl Iterator<Item = (Duration, Option<Duration>)> {
        self.spans.iter().filter(move |(kind, ..)| *kind == excuse).map(|(_, begin, end)| (*begin, *end))
    }
}

fn latest(confirmed: Option<Duration>, calm_since: Option<Duration>, until: Duration) -> Option<Duration> {
    let begin = until.checked_sub(CURRENT_AFTER);
    begin.filter(|begin| calm_since.is_some_and(|since| since <= *begin)).or(confirmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_view_is_confirmed_by_calm_alone() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.confirmed(seconds(3)), None);
        assert_eq!(timeline.confirmed(seconds(20)), Some(seconds(15)));
        let span = timeline.begin(Excuse::OldView, seconds(20));
        assert_eq!(timeline.confirmed(seconds(60)), Some(seconds(15)), "a fault that goes on");
        timeline.end(span, seconds(30));
        assert_eq!(timeline.confirmed(seconds(34)), Some(seconds(15)));
        assert_eq!(timeline.confirmed(seconds(36)), Some(seconds(31)));
        timeline.add(Excuse::OldView, seconds(25), seconds(33));
        assert_eq!(timeline.confirmed(seconds(36)), Some(seconds(15)), "an overlapping fault");
        timeline.add(Excuse::Gap, seconds(37), seconds(38));
        assert_eq!(timeline.confirmed(seconds(40)), Some(seconds(35)), "a fault of another kind");
    }

    #[test]
    fn calm_between_faults_confirms_only_if_it_is_long_enough() {
        let mut timeline = Timeline::default();
        timeline.add(Excuse::OldView, seconds(10), seconds(11));
        timeline.add(Excuse::OldView, seconds(14), seconds(15));
        timeline.add(Excuse::OldView, seconds(21), seconds(22));
        assert_eq!(timeline.confirmed(seconds(19)), Some(seconds(5)));
        assert_eq!(timeline.confirmed(seconds(23)), Some(seconds(16)));
    }

    #[test]
    fn a_fault_excuses_what_it_touches() {
        let mut timeline = Timeline::default();
        let span = timeline.begin(Excuse::Gap, seconds(5));
        assert!(timeline.excuses(Excuse::Gap, seconds(1), seconds(5)));
        assert!(timeline.excuses(Excuse::Gap, seconds(9), seconds(10)));
        timeline.end(span, seconds(6));
        assert!(!timeline.excuses(Excuse::Gap, seconds(7), seconds(10)));
        assert!(!timeline.excuses(Excuse::Upstream, seconds(5), seconds(6)));
    }

    #[test]
    fn a_query_for_a_name_of_the_cluster_is_not_excused_by_a_later_gap() {
        let mut timeline = Timeline::default();
        timeline.add(Excuse::Gap, seconds(10), seconds(11));
        timeline.add(Excuse::Connections, seconds(20), seconds(21));
        let [sent, end] = [7, 12].map(seconds);
        assert!(timeline.may_be_lost(false, false, sent, end), "it may wait for an upstream");
        assert!(!timeline.may_be_lost(true, false, sent, end));
        assert!(timeline.may_be_lost(true, false, seconds(11), seconds(16)));
        assert!(timeline.may_be_lost(true, true, seconds(20), seconds(25)));
        assert!(!timeline.may_be_lost(true, false, seconds(20), seconds(25)), "datagrams need no connection");
    }

    #[test]
    fn a_full_disk_matters_until_a_process_starts_after_it() {
        let mut timeline = Timeline::default();
        timeline.begin(Excuse::Snapshot, seconds(10));
        assert_eq!(timeline.snapshot_broken_since(seconds(5)), None);
        timeline.end_broken_snapshot(seconds(12));
        assert_eq!(timeline.snapshot_broken_since(seconds(15)), Some(seconds(10)), "it is full");
        timeline.disk_is_free(seconds(20));
        assert_eq!(timeline.snapshot_broken_since(seconds(25)), Some(seconds(10)), "the process writes no snapshot");
        timeline.end_broken_snapshot(seconds(30));
        assert_eq!(timeline.snapshot_broken_since(seconds(31)), None);
    }

    #[test]
    fn the_cluster_is_unknown_until_calm_after_the_start() {
        let mut timeline = Timeline::default();
        timeline.begin(Excuse::UnknownCluster, seconds(10));
        assert!(!timeline.is_unknown(seconds(8), seconds(9)));
        assert!(timeline.is_unknown(seconds(12), seconds(12)));
        timeline.add(Excuse::OldView, seconds(9), seconds(20));
        assert!(timeline.is_unknown(seconds(24), seconds(24)));
        assert!(!timeline.is_unknown(seconds(26), seconds(26)));
    }
}
