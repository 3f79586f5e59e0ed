//! Decides what happens when the server has ended.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use host::invariant::{Expected as _, holds};

/// Number of exits within [`WINDOW`] that end the keeper, so that the policy of the container's manager applies.
pub(crate) const EXITS_MAX: usize = 5;
/// Time in which exits count.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
/// Time in which exits are reported to the server.
const HOUR: Duration = Duration::from_secs(3600);
/// Maximum number of exits that are remembered. One per second for an hour would be more, but the policy prevents that.
const REMEMBERED_MAX: usize = 512;
/// Exit code of a Rust program whose main thread panicked.
const PANICKED: u8 = 101;
/// Added to the number of a signal for an exit code, as shells do.
const SIGNAL_BASE: u8 = 128;

const _: () = assert!(EXITS_MAX < REMEMBERED_MAX);
const _: () = assert!(WINDOW.as_secs() < HOUR.as_secs());

/// End of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Exited with this code.
    Code(u8),
    /// Killed by this signal.
    Signal(u8),
    /// Killed by the keeper, because a thread did not respond for this time.
    Hung(Duration),
}

impl Exit {
    /// Returns the exit code for the keeper.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => SIGNAL_BASE.wrapping_add(signal),
            Exit::Hung(_) => SIGNAL_BASE + 6,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(out, "exited with code {code}"),
            Exit::Signal(signal) => match name(*signal) {
                Some(name) => write!(out, "was killed by signal {signal} ({name})"),
                None => write!(out, "was killed by signal {signal}"),
            },
            Exit::Hung(time) => {
                write!(out, "was ended because it did not respond for {:.1} s", time.as_secs_f64())
            }
        }
    }
}

/// Returns the name of a signal that ends processes.
fn name(signal: u8) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// State of a server at its exit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Circumstances {
    /// The server began its shutdown, or received a signal to end.
    pub(crate) is_ending: bool,
    /// The operator wants crashes to end the process.
    pub(crate) are_crashes_wanted: bool,
    /// This server or an earlier one has served.
    pub(crate) has_served: bool,
}

/// Decision after an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// End with the server's code: the server was meant to end, or cannot start.
    End,
    /// Start the server again. This was the given number of exits within [`WINDOW`].
    Restart(usize),
    /// End, because there were [`EXITS_MAX`] exits within [`WINDOW`].
    GiveUp,
}

/// Exits of the server so far.
#[derive(Debug, Default)]
pub(crate) struct ExitHistory {
    times: VecDeque<Instant>,
    total: u32,
    last: Option<Exit>,
}

impl ExitHistory {
    /// Decides what to do after an exit.
    pub(crate) fn decide(&mut self, exit: Exit, server: Circumstances, now: Instant) -> Decision {
        let is_refusal = matches!(exit, Exit::Code(code) if code != PANICKED) && !server.has_served;
        if server.is_ending || server.are_crashes_wanted || exit == Exit::Code(0) || is_refusal {
            return Decision::End;
        }
        holds(self.times.back().is_none_or(|last| *last <= now), "time does not go backwards");
        if self.times.len() >= REMEMBERED_MAX {
            self.times.pop_front();
        }
        self.times.push_back(now);
        self.total = self.total.saturating_add(1);
        self.last = Some(exit);
        let recent = self.within(WINDOW, now);
        holds(recent <= self.within(HOUR, now), "a recent exit is one of the last hour");
        holds((1..=self.times.len()).contains(&recent), "the exit that was just recorded is a recent one");
        holds(self.times.len() <= REMEMBERED_MAX, "the number of exits that are remembered is bounded");
        holds(self.total as usize >= self.times.len(), "each exit was counted");
        if recent >= EXITS_MAX { Decision::GiveUp } else { Decision::Restart(recent) }
    }

    fn within(&self, window: Duration, now: Instant) -> usize {
        self.times.iter().filter(|time| now.duration_since(**time) < window).count()
    }

    /// Returns the number of exits that were followed by a restart: in all, and in the last hour.
    pub(crate) fn counts(&self, now: Instant) -> (u32, u32) {
        let in_last_hour = u32::try_from(self.within(HOUR, now)).ok().expected("a bounded number of exits");
        holds(in_last_hour.is_none_or(|exits| exits <= self.total), "the exits of an hour are a part of all");
        (self.total, in_last_hour.unwrap_or(u32::MAX))
    }

    /// Returns how the last server ended, in words.
    pub(crate) fn reason(&self) -> String {
        self.last.map_or_else(String::new, |exit| exit.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVED: Circumstances = Circumstances { is_ending: false, are_crashes_wanted: false, has_served: true };

    #[test]
    fn restarts_at_once_and_gives_up_after_five_exits_in_a_minute() {
        let (mut exits, begin) = (ExitHistory::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        for number in 1..EXITS_MAX {
            assert_eq!(exits.decide(Exit::Signal(9), SERVED, at(10 * number as u64)), Decision::Restart(number));
        }
        // The first one is a minute ago.
        assert_eq!(exits.decide(Exit::Code(1), SERVED, at(70)), Decision::Restart(4));
        assert_eq!(exits.decide(Exit::Signal(11), SERVED, at(71)), Decision::GiveUp);
        assert_eq!(exits.counts(at(71)), (6, 6));
        assert_eq!(exits.counts(at(3661)), (6, 2));
        assert_eq!(exits.reason(), "was killed by signal 11 (SIGSEGV)");
    }

    #[test]
    fn a_server_that_ends_as_it_should_or_cannot_start_is_not_started_again() {
        let first = Circumstances::default();
        let decide = |exit, server| ExitHistory::default().decide(exit, server, Instant::now());
        assert_eq!(decide(Exit::Code(0), SERVED), Decision::End);
        assert_eq!(decide(Exit::Code(1), first), Decision::End, "an invalid Corefile");
        assert_eq!(decide(Exit::Signal(9), Circumstances { is_ending: true, ..SERVED }), Decision::End);
        assert_eq!(decide(Exit::Signal(6), Circumstances { are_crashes_wanted: true, ..SERVED }), Decision::End);
        assert_eq!(decide(Exit::Code(1), SERVED), Decision::Restart(1));
        assert_eq!(decide(Exit::Signal(6), first), Decision::Restart(1), "a crash at the first start");
        assert_eq!(decide(Exit::Code(PANICKED), first), Decision::Restart(1));
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!([Exit::Code(3), Exit::Signal(9), Exit::Hung(WINDOW)].map(Exit::code), [3, 137, 134]);
    }
}
