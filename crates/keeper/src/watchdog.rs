//! Tells a server that hangs from one that gets no CPU.
//!
//! The server sends a beat every [`BEAT`], with its thread that has not responded for the longest time. When a thread
//! is [`HUNG`] late, the watchdog compares what the kernel says about it with a sample from the moment at which it
//! became suspicious. A thread that waited for a CPU, or whose control group was throttled, is not hung: a starved node
//! must not lose its DNS to a watchdog. When the beats stop, the suspicious thread is the one that sends them, not the
//! one that the last beat named.

use std::time::{Duration, Instant};

use host::invariant::holds;

/// Interval of the server's beats.
pub const BEAT: Duration = Duration::from_millis(500);
/// Time without a beat after which a thread is suspicious.
pub(crate) const SUSPICIOUS: Duration = Duration::from_millis(1000);
/// Time without a beat after which a thread hangs, unless it got no CPU.
pub(crate) const HUNG: Duration = Duration::from_secs(3);
/// Shortest time that a judgement may rest on.
const OBSERVED_MIN: Duration = Duration::from_millis(1500);
/// CPU time with which a thread would have responded: it loops.
const LOOPED: Duration = Duration::from_secs(1);

const _: () = assert!(BEAT.as_millis() < SUSPICIOUS.as_millis());
// A thread that becomes suspicious in time is observed for long enough.
const _: () = assert!(SUSPICIOUS.as_millis() + OBSERVED_MIN.as_millis() < HUNG.as_millis());

/// State of a thread and its control group according to the kernel. All times only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time of the thread.
    pub(crate) ran: Duration,
    /// Time that the thread has waited for a CPU.
    pub(crate) waited: Duration,
    /// Time in which the control group was throttled.
    pub(crate) throttled: Duration,
    /// Current activity of the thread.
    pub(crate) state: State,
}

/// Activity of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Waits for an event.
    #[default]
    Waiting,
    /// Runs, or waits for a CPU.
    Runnable,
    /// A signal has stopped it.
    Stopped,
    /// A debugger has stopped it.
    Traced,
}

/// Beat of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beat {
    /// Arrival.
    pub(crate) at: Instant,
    /// Thread that sends the beats.
    pub(crate) sender: u32,
    /// Thread that has not responded for the longest time.
    pub(crate) thread: u32,
    /// Time for which it had not responded.
    pub(crate) stalled: Duration,
}

impl Beat {
    /// Returns the thread to judge, and how late it is.
    fn latest(&self, now: Instant) -> (u32, Duration) {
        holds(self.at <= now, "a beat comes before it is checked");
        let missing = now.duration_since(self.at);
        // Without beats, nobody knows whether the named thread has responded meanwhile.
        if missing >= SUSPICIOUS { (self.sender, missing) } else { (self.thread, self.stalled + missing) }
    }
}

/// Time that a thread is under suspicion.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    thread: u32,
    /// CPU time of the thread when the suspicion began.
    ran_at_first: Duration,
    /// Begin of the current observation. A starved thread gets a new one.
    begin: Instant,
    usage: Usage,
}

/// Watchdog of one server.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Last beat.
    beat: Option<Beat>,
    suspicion: Option<Suspicion>,
}

impl Watchdog {
    /// Creates a watchdog that waits for the first beat.
    pub(crate) fn new() -> Watchdog {
        Watchdog { beat: None, suspicion: None }
    }

    /// Records a beat.
    pub(crate) fn beat(&mut self, beat: Beat) {
        holds(self.beat.is_none_or(|last| last.at <= beat.at), "time does not go backwards");
        self.beat = Some(beat);
    }

    /// Forgets what was observed: the keeper itself got no CPU, or was stopped, and has not seen the beats.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.suspicion = None;
        holds(self.beat.is_none_or(|last| last.at <= now), "time does not go backwards");
        self.beat = self.beat.map(|beat| Beat { at: now, stalled: Duration::ZERO, ..beat });
    }

    /// Returns true while a thread is suspicious.
    pub(crate) fn suspects(&self) -> bool {
        self.suspicion.is_some()
    }

    /// Returns for how long a thread has hung, if one hangs. `usage` reads what the kernel says about a thread; `None`
    /// if it no longer exists.
    pub(crate) fn check(&mut self, now: Instant, usage: impl Fn(u32) -> Option<Usage>) -> Option<Duration> {
        let (thread, late) = self.beat?.latest(now);
        if late < SUSPICIOUS {
            self.suspicion = None;
            return None;
        }
        let Some(usage) = usage(thread) else { return (late >= HUNG).then_some(late) };
        let known = self.suspicion.filter(|known| known.thread == thread);
        let begin = Suspicion { thread, ran_at_first: usage.ran, begin: now, usage };
        let suspicion = self.suspicion.insert(known.unwrap_or(begin));
        let observed = now.duration_since(suspicion.begin);
        holds(suspicion.begin <= now, "time does not go backwards");
        holds(suspicion.thread == thread, "the suspicion is about the thread that is late");
        if late < HUNG || observed < OBSERVED_MIN {
            return None;
        }
        if is_starved(suspicion, usage, observed) {
            *suspicion = Suspicion { begin: now, usage, ..*suspicion };
            return None;
        }
        Some(late)
    }
}

/// Returns true if the thread has not responded for lack of CPU.
fn is_starved(since: &Suspicion, now: Usage, observed: Duration) -> bool {
    if now.ran.saturating_sub(since.ran_at_first) >= LOOPED {
        return false;
    }
    match now.state {
        State::Stopped => false,
        // The kernel adds the time that a thread waits for a CPU only when it gets one. And whoever debugs the server
        // may take the time to look.
        State::Runnable | State::Traced => true,
        State::Waiting => {
            now.waited.saturating_sub(since.usage.waited) >= observed / 4
                || now.throttled.saturating_sub(since.usage.throttled) >= observed / 4
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLIS: Duration = Duration::from_millis(1);

    /// Returns a beat from thread 7.
    fn beat(at: Instant, thread: u32, stalled: Duration) -> Beat {
        Beat { at, sender: 7, thread, stalled }
    }

    /// Runs a watchdog in steps of 100 ms after the last beat, with the usage of its thread at each millisecond.
    /// Returns the time of the verdict.
    fn verdict(usage: impl Fn(u32) -> Option<Usage>, limit: u32) -> Option<u32> {
        let (mut dog, begin) = (Watchdog::new(), Instant::now());
        dog.beat(beat(begin, 7, Duration::ZERO));
        (0..limit).step_by(100).find(|at| {
            let verdict = dog.check(begin + *at * MILLIS, |thread| {
                assert_eq!(thread, 7);
                usage(*at)
            });
            verdict.inspect(|late| assert_eq!(*late, *at * MILLIS)).is_some()
        })
    }

    #[test]
    fn a_blocked_stopped_or_ended_thread_hangs_after_three_seconds() {
        assert_eq!(verdict(|_| Some(Usage::default()), 10_000), Some(3000));
        assert_eq!(verdict(|_| None, 10_000), Some(3000));
        let stopped = |at: u32| Some(Usage { throttled: at * MILLIS, state: State::Stopped, ..Usage::default() });
        assert_eq!(verdict(stopped, 10_000), Some(3000));
        assert_eq!(verdict(|_| Some(Usage { state: State::Traced, ..Usage::default() }), 600_000), None);
    }

    #[test]
    fn a_thread_that_computes_for_a_second_without_a_beat_loops() {
        let looping = |at: u32| Some(Usage { ran: at * MILLIS, state: State::Runnable, ..Usage::default() });
        assert_eq!(verdict(looping, 10_000), Some(3000));
        // On a busy node, with a tenth of a CPU.
        let slow = |at: u32| {
            Some(Usage {
                ran: at / 10 * MILLIS,
                waited: at * 9 / 10 * MILLIS,
                state: State::Runnable,
                ..Usage::default()
            })
        };
        assert_eq!(verdict(slow, 60_000), Some(12_000));
    }

    #[test]
    fn a_starved_thread_does_not_hang() {
        let queued = |_| Some(Usage { state: State::Runnable, ..Usage::default() });
        let waiting = |at: u32| Some(Usage { waited: at / 2 * MILLIS, ..Usage::default() });
        let throttled = |at: u32| Some(Usage { throttled: at / 2 * MILLIS, ..Usage::default() });
        assert_eq!(verdict(queued, 600_000), None);
        assert_eq!(verdict(waiting, 600_000), None);
        assert_eq!(verdict(throttled, 600_000), None);
        // Starved for five seconds, then blocked.
        let both = |at: u32| Some(Usage { waited: at.min(5000) * MILLIS, ..Usage::default() });
        let late = verdict(both, 600_000).unwrap();
        assert!((6000..9000).contains(&late), "{late}");
    }

    #[test]
    fn beats_end_a_suspicion() {
        let (mut dog, begin) = (Watchdog::new(), Instant::now());
        let usage = |_| Some(Usage::default());
        assert_eq!(dog.check(begin + 60_000 * MILLIS, usage), None, "no beat yet");
        for at in (0..60_000).step_by(500) {
            // A thread that is late now and then.
            let stalled = if at % 7 == 0 { 2000 * MILLIS } else { Duration::ZERO };
            dog.beat(beat(begin + at * MILLIS, at % 3, stalled));
            assert_eq!(dog.check(begin + at * MILLIS, usage), None);
        }
    }

    #[test]
    fn a_thread_that_the_beats_name_hangs() {
        let (mut dog, begin) = (Watchdog::new(), Instant::now());
        let usage = |_| Some(Usage::default());
        let hung = (0..10_000).step_by(500).find(|at| {
            dog.beat(beat(begin + *at * MILLIS, 9, *at * MILLIS));
            dog.check(begin + *at * MILLIS, usage).is_some()
        });
        assert_eq!(hung, Some(3000));
    }

    #[test]
    fn without_beats_the_sender_is_judged_and_not_the_thread_that_the_last_beat_named() {
        let verdict = |of_sender: fn(u32) -> Usage, limit: u32| {
            let (mut dog, begin) = (Watchdog::new(), Instant::now());
            dog.beat(beat(begin, 8, 500 * MILLIS));
            (0..limit).step_by(100).find(|at| {
                // The worker has responded meanwhile, and waits for queries.
                let usage = |thread| Some(if thread == 7 { of_sender(*at) } else { Usage::default() });
                dog.check(begin + *at * MILLIS, usage).is_some()
            })
        };
        assert_eq!(verdict(|_| Usage { state: State::Runnable, ..Usage::default() }, 60_000), None);
        assert_eq!(verdict(|at| Usage { waited: at / 2 * MILLIS, ..Usage::default() }, 60_000), None);
        assert_eq!(verdict(|_| Usage::default(), 60_000), Some(3000));
        // CPU time of the sender from before its beats stopped does not make it loop.
        let ran = |at: u32| Usage { ran: (at * 2).min(2000) * MILLIS, waited: at / 2 * MILLIS, ..Usage::default() };
        assert_eq!(verdict(ran, 60_000), None);
    }

    #[test]
    fn a_keeper_that_was_stopped_itself_begins_again() {
        let (mut dog, begin) = (Watchdog::new(), Instant::now());
        dog.beat(beat(begin, 1, Duration::ZERO));
        let later = begin + 60_000 * MILLIS;
        dog.restart(later);
        assert_eq!(dog.check(later + 100 * MILLIS, |_| Some(Usage::default())), None);
        assert!(!dog.suspects());
    }
}
