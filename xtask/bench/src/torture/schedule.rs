//! Schedule of the faults and changes, derived from a seed.
//!
//! Each track has its faults one after the other, and the tracks are independent, so that faults of different tracks
//! meet.

use std::time::Duration;

use crate::random::Random;

/// Time without faults at the start.
const CALM_BEGIN: Duration = Duration::from_secs(8);
/// Time without new faults at the end.
pub(crate) const CALM_END: Duration = Duration::from_secs(25);
/// The faults that excuse an old view of the cluster come in rounds of this length.
const ROUND: u64 = 60_000;
/// Time at the end of a round without such faults, in which the view must become current.
const CALM_ROUND: u64 = 14_000;
/// Time in a round at which the calm begins.
const CALM_BEGIN_OF_ROUND: Duration = Duration::from_millis(ROUND - CALM_ROUND);
/// Mean time between two reloads.
const RELOADS: Duration = Duration::from_secs(6);
/// Mean time between two kills, outside of the calm.
const KILLS: Duration = Duration::from_millis(3_700);

/// Part of the system that a fault affects. Faults of one track never overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Track {
    /// Objects of the cluster.
    Cluster,
    /// Processes of the server.
    Server,
    /// Corefile.
    Reload,
    Api,
    Upstream,
    /// Descriptors, disk, clock and log reader.
    Host,
}

/// Fault, or a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    ChangeCluster,
    KillServer,
    KillKeeper,
    StopServer,
    Reload,
    BrokenReload,
    ApiDown,
    ApiStalled,
    ApiSilent,
    ApiStatus,
    ApiSlow,
    ApiCompacted,
    ApiConnectionsCut,
    KnotStopped,
    KnotKilled,
    LinkCut,
    LinkLossy,
    LinkSlow,
    OneLinkCut,
    LogStalled,
    DiskFull,
    FewDescriptors,
    ClockJump,
}

impl Action {
    /// Returns true if it is a fault of the API server.
    const fn is_of_api(self) -> bool {
        matches!(
            self,
            Action::ApiDown
                | Action::ApiStalled
                | Action::ApiSilent
                | Action::ApiStatus
                | Action::ApiSlow
                | Action::ApiCompacted
                | Action::ApiConnectionsCut
        )
    }

    /// Returns true if it excuses an old view of the cluster, so that it keeps out of the calm of each round.
    fn waits_for_rounds(self) -> bool {
        let of_server = matches!(self, Action::KillServer | Action::KillKeeper | Action::StopServer);
        self.is_of_api() || of_server || HOST.contains(&self)
    }

    /// Returns the words of the report. A real API server fails in other ways than the fake one.
    pub(crate) const fn words(self, is_real: bool) -> &'static str {
        match self {
            Action::ApiDown if is_real => "kill −9 of kube-apiserver",
            Action::ApiStalled if is_real => "SIGSTOP of kube-apiserver",
            Action::ApiSilent if is_real => "SIGSTOP of etcd",
            Action::ApiStatus if is_real => "kill −9 of etcd",
            Action::ApiSlow if is_real => "kube-apiserver stands still for nine tenths of the time",
            Action::ApiCompacted if is_real => "kill −9 of kube-apiserver, and etcd compacted",
            Action::ChangeCluster => "changes of the cluster",
            Action::KillServer => "kill −9 of the server below its keeper",
            Action::KillKeeper => "kill −9 of the keeper",
            Action::StopServer => "SIGSTOP of the server",
            Action::Reload => "reloads",
            Action::BrokenReload => "reloads of a Corefile with an error",
            Action::ApiDown => "API server restarted",
            Action::ApiStalled => "API server accepts requests and answers none; watches are silent",
            Action::ApiSilent => "API server silent on watches",
            Action::ApiStatus => "API server answers 429, 500 or 503, after its connections broke",
            Action::ApiSlow => "API server slow",
            Action::ApiCompacted => "history of the API server compacted, connections cut",
            Action::ApiConnectionsCut => "connections to the API server cut",
            Action::KnotStopped => "SIGSTOP of Knot",
            Action::KnotKilled => "kill −9 of Knot",
            Action::LinkCut => "both links to the upstream cut",
            Action::LinkLossy => "both links lose a third of the datagrams",
            Action::LinkSlow => "both links delay and reorder",
            Action::OneLinkCut => "one of two links cut",
            Action::LogStalled => "log not read",
            Action::DiskFull => "disk of the snapshot full",
            Action::FewDescriptors => "descriptor limit of 64",
            Action::ClockJump => "jumps of the wall clock",
        }
    }
}

/// Entry of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    /// Time that the fault lasts; zero for something that happens at once.
    pub(crate) lasts: Duration,
    pub(crate) action: Action,
    /// Random number for the details.
    pub(crate) detail: u64,
}

impl Event {
    /// Returns true if the fault may begin at `now`, and end somewhat later than planned: not in the calm of a round.
    pub(crate) fn fits(&self, now: Duration, later: Duration) -> bool {
        let end = now + self.lasts + if self.action.is_of_api() { later } else { Duration::ZERO };
        !self.action.waits_for_rounds() || end < begin_of_round(now) + CALM_BEGIN_OF_ROUND
    }
}

const API: [Action; 9] = [
    Action::ApiDown,
    Action::ApiDown,
    Action::ApiStalled,
    Action::ApiSilent,
    Action::ApiStatus,
    Action::ApiSlow,
    Action::ApiCompacted,
    Action::ApiConnectionsCut,
    Action::ApiConnectionsCut,
];
const UPSTREAM: [Action; 7] = [
    Action::KnotStopped,
    Action::KnotKilled,
    Action::LinkCut,
    Action::LinkLossy,
    Action::LinkSlow,
    Action::OneLinkCut,
    Action::OneLinkCut,
];
const HOST: [Action; 5] =
    [Action::LogStalled, Action::LogStalled, Action::DiskFull, Action::FewDescriptors, Action::ClockJump];

/// Returns the events of a track for a run of this length.
pub(crate) fn track(track: Track, seed: u64, length: Duration) -> Vec<Event> {
    let mut random = Random::new(seed ^ (track as u64 + 1) << 48);
    let end = length.saturating_sub(CALM_END);
    let mut events = Vec::new();
    let mut at = CALM_BEGIN + millis(&mut random, 0, 2_000);
    let mut number = 0;
    loop {
        let (action, lasts, pause) = next(track, number, &mut random);
        if matches!(track, Track::Server | Track::Api | Track::Host) {
            at = after_calm(at, lasts, &mut random);
        }
        if at >= end {
            break;
        }
        events.push(Event { at, lasts, action, detail: random.next() });
        at += lasts + pause;
        number += 1;
    }
    events
}

/// Returns the time itself, or one in the next round if a fault would last into the calm.
fn after_calm(at: Duration, lasts: Duration, random: &mut Random) -> Duration {
    let begin = begin_of_round(at);
    if at + lasts < begin + CALM_BEGIN_OF_ROUND {
        return at;
    }
    begin + Duration::from_millis(ROUND) + millis(random, 0, 2_000)
}

/// Returns the begin of the round of this time.
fn begin_of_round(at: Duration) -> Duration {
    let round = Duration::from_millis(ROUND);
    round * u32::try_from(at.as_millis() / round.as_millis()).unwrap_or_default()
}

/// Returns an action, the time that it lasts, and the pause after it.
fn next(track: Track, number: usize, random: &mut Random) -> (Action, Duration, Duration) {
    let about = |mean: Duration, random: &mut Random, least: u64| {
        millis(random, least, u64::try_from(mean.as_millis()).unwrap_or_default() * 2 * 9 / 10 - least)
    };
    match track {
        Track::Cluster => (Action::ChangeCluster, Duration::ZERO, millis(random, 50, 450)),
        Track::Reload => {
            let action = if random.percent(10) { Action::BrokenReload } else { Action::Reload };
            (action, Duration::ZERO, about(RELOADS, random, 200))
        }
        // After five exits in a minute, the keeper ends itself. A new one counts from zero.
        Track::Server => match number % 9 {
            3 | 7 => (Action::KillKeeper, Duration::ZERO, about(KILLS, random, 500)),
            8 => (Action::StopServer, millis(random, 300, 5_000), millis(random, 500, 1_000)),
            _ => (Action::KillServer, Duration::ZERO, about(KILLS, random, 500)),
        },
        Track::Api => lasting(&API, number, random),
        Track::Upstream => lasting(&UPSTREAM, number, random),
        Track::Host => lasting(&HOST, number, random),
    }
}

/// Returns each action in turn, in an order of its own in each round.
fn lasting(all: &[Action], number: usize, random: &mut Random) -> (Action, Duration, Duration) {
    let action = if number < all.len() { all[number] } else { random.pick(all) };
    let lasts = match action {
        Action::ApiCompacted | Action::ApiConnectionsCut | Action::ClockJump | Action::KnotKilled => Duration::ZERO,
        _ if random.percent(15) => millis(random, 8_000, 12_000),
        _ => millis(random, 300, 5_000),
    };
    (action, lasts, millis(random, 2_000, 14_000))
}

fn millis(random: &mut Random, least: u64, more: u64) -> Duration {
    Duration::from_millis(least + random.next() % more.max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const ALL: [Track; 6] = [Track::Cluster, Track::Server, Track::Reload, Track::Api, Track::Upstream, Track::Host];
    const LENGTH: Duration = Duration::from_secs(600);

    fn counts<'e>(events: impl Iterator<Item = &'e Event>) -> BTreeMap<Action, usize> {
        let mut counts = BTreeMap::new();
        events.for_each(|event| *counts.entry(event.action).or_default() += 1);
        counts
    }

    #[test]
    fn a_seed_decides_everything() {
        for one in ALL {
            assert_eq!(track(one, 7, LENGTH), track(one, 7, LENGTH));
            assert_ne!(track(one, 7, LENGTH), track(one, 8, LENGTH));
        }
    }

    #[test]
    fn faults_of_a_track_do_not_overlap_and_the_end_is_calm() {
        for events in ALL.map(|one| track(one, 3, LENGTH)) {
            assert!(events.windows(2).all(|pair| pair[0].at + pair[0].lasts < pair[1].at));
            assert!(events.iter().all(|event| event.at >= CALM_BEGIN && event.at < LENGTH - CALM_END));
        }
    }

    #[test]
    fn each_round_ends_with_calm() {
        let calm = |at: Duration| at.as_millis() % u128::from(ROUND) >= u128::from(ROUND - CALM_ROUND);
        for seed in 1..20 {
            for events in [Track::Server, Track::Api, Track::Host].map(|one| track(one, seed, LENGTH)) {
                assert!(events.iter().all(|event| !calm(event.at) && !calm(event.at + event.lasts)));
            }
        }
    }

    #[test]
    fn a_late_fault_keeps_out_of_the_calm() {
        let of = |action, lasts| Event { at: Duration::ZERO, lasts: Duration::from_secs(lasts), action, detail: 0 };
        let [begin, late] = [40, 8].map(Duration::from_secs);
        let fits = |event: Event| event.fits(Duration::from_millis(ROUND) + begin, late);
        assert!(fits(of(Action::KillServer, 5)));
        assert!(!fits(of(Action::StopServer, 6)));
        assert!(!fits(of(Action::ApiDown, 1)), "the API server takes time to start");
        assert!(fits(of(Action::LinkCut, 20)), "the view does not depend on the upstream");
    }

    #[test]
    fn ten_minutes_have_about_a_hundred_kills_and_reloads_and_each_fault() {
        for seed in 1..20 {
            let events: Vec<Event> = ALL.iter().flat_map(|one| track(*one, seed, LENGTH)).collect();
            let counts = counts(events.iter());
            let all = [Action::ChangeCluster, Action::KillServer, Action::KillKeeper, Action::StopServer];
            let all = all.iter().chain(&API).chain(&UPSTREAM).chain(&HOST);
            all.for_each(|action| assert!(counts.contains_key(action), "{action:?} with seed {seed}"));
            let kills = counts[&Action::KillServer] + counts[&Action::KillKeeper];
            let reloads = counts[&Action::Reload] + counts.get(&Action::BrokenReload).copied().unwrap_or_default();
            assert!((80..150).contains(&kills), "{kills} kills");
            assert!((80..150).contains(&reloads), "{reloads} reloads");
        }
    }
}
