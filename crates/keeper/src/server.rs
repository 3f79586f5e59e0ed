//! The child: one run of the server.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use host::invariant::{Expected as _, holds};
use rustix::process::{Pid, Signal, kill_process};

use crate::command_line::CommandLine;
use crate::held::{HELD_MAX, HeldSockets};
use crate::link::{Link, Received, VARIABLE};
use crate::policy::{Circumstances, Exit};
use crate::record::Record;
use crate::usage;
use crate::watchdog::{Beat, HUNG, Watchdog};

/// Time between SIGABRT and SIGKILL for a server that hangs.
const ABORT_LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of records that are read in one turn, so that a server that sends without end delays no signal.
const RECORDS_MAX: usize = 4096;

/// One run of the server.
#[derive(Debug)]
pub(crate) struct Server {
    pid: Pid,
    link: Option<Link>,
    /// Number of records sent so far; `None` when all are.
    next_to_send: Option<usize>,
    /// First records, before the sockets.
    exits: Record,
    watchdog: Watchdog,
    /// Time that the server had hung when the keeper sent SIGABRT, and the time of SIGKILL.
    hung: Option<(Duration, Instant)>,
    /// State for the decision after its exit.
    pub(crate) circumstances: Circumstances,
}

/// Changes outside of [`Server`] that its records request.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// True if the server writes JSON.
    pub(crate) is_json: Option<bool>,
    /// True if sockets did not fit.
    pub(crate) is_too_much: bool,
}

impl Server {
    /// Starts the server. `exits` is its first record.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub(crate) fn start(command: &CommandLine, exits: Record, has_served: bool) -> io::Result<Server> {
        holds(matches!(exits, Record::Exits { .. }), "the first record is about earlier exits");
        let (link, of_child) = Link::pair()?;
        let mut program = Command::new(&command.program);
        program.args(&command.arguments).env(VARIABLE, of_child.as_raw_fd().to_string());
        linux::signals::unblock_in(&mut program);
        // Its status comes with those of all other children, which the first process of a container adopts.
        let pid = program.spawn()?.id();
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Server {
            pid,
            link: Some(link),
            next_to_send: Some(0),
            exits,
            watchdog: Watchdog::new(),
            hung: None,
            circumstances: Circumstances { has_served, ..Circumstances::default() },
        })
    }

    /// Returns the process ID.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the connection to the server, and whether it waits for room to send.
    pub(crate) fn waits_for(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.link.as_ref().map(|link| (link.as_fd(), self.next_to_send.is_some()))
    }

    /// Passes a signal on.
    pub(crate) fn signal(&self, signal: Signal) {
        // A server that has ended meanwhile needs none.
        let _ = kill_process(self.pid, signal);
    }

    /// Sends the exits, the sockets and the end, as far as there is room.
    pub(crate) fn send(&mut self, held: &HeldSockets) {
        while let (Some(position), Some(link)) = (self.next_to_send, &self.link) {
            holds(position <= HELD_MAX + 1, "the sockets that are held are bounded");
            let (sent, is_last) = match position.checked_sub(1).map(|at| held.at(at)) {
                None => (link.send(&self.exits, &[]), false),
                Some(Some((text, sockets))) => (link.send(&Record::Sockets(text.to_owned()), &sockets), false),
                Some(None) => (link.send(&Record::End, &[]), true),
            };
            if sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                return;
            }
            // Other errors skip a record: the kernel limits the descriptors in flight. The server opens what it does
            // not get.
            self.next_to_send = (!is_last).then_some(position + 1);
        }
    }

    /// Handles the records that have arrived.
    pub(crate) fn receive(&mut self, held: &mut HeldSockets, now: Instant) -> Told {
        let mut told = Told::default();
        for _ in 0..RECORDS_MAX {
            let Some(link) = &self.link else { break };
            match link.receive() {
                Ok(Received::Record(record, sockets)) => self.handle(record, sockets, held, now, &mut told),
                Ok(Received::Unknown) => {}
                Ok(Received::Nothing) => break,
                Ok(Received::Closed) | Err(_) => self.link = None,
            }
        }
        told
    }

    fn handle(
        &mut self,
        record: Record,
        sockets: Vec<std::os::fd::OwnedFd>,
        held: &mut HeldSockets,
        now: Instant,
        told: &mut Told,
    ) {
        match record {
            Record::LogFormat { is_json } => told.is_json = Some(is_json),
            Record::Sockets(text) => told.is_too_much |= !held.add(text, sockets),
            Record::Closed(label) => held.close(&label),
            Record::Serving => {
                held.commit();
                self.circumstances.has_served = true;
            }
            Record::CrashesWanted(are_wanted) => self.circumstances.are_crashes_wanted = are_wanted,
            Record::Beat { sender, thread, stalled } => self.watchdog.beat(Beat { at: now, sender, thread, stalled }),
            Record::Ending => {
                held.clear();
                self.circumstances.is_ending = true;
                if let Some(link) = &self.link {
                    // The server waits for it a moment at most.
                    let _ = link.send(&Record::Released, &[]);
                }
            }
            Record::Exits { .. } | Record::End | Record::Released => {}
        }
    }

    /// Ends a server that hangs. Returns for how long it has hung, when this begins.
    pub(crate) fn watch(&mut self, now: Instant) -> Option<Duration> {
        if let Some((_, kill_at)) = self.hung {
            if now >= kill_at {
                self.signal(Signal::KILL);
            }
            return None;
        }
        if self.circumstances.are_crashes_wanted || self.circumstances.is_ending {
            // With *debug*, a debugger stops the server for as long as it likes. A shutdown may run slow programs.
            return None;
        }
        let pid = self.pid.as_raw_nonzero().get().unsigned_abs();
        let late = self.watchdog.check(now, |thread| usage::read(pid, thread))?;
        holds(late >= HUNG, "a server that hangs is late");
        self.hung = Some((late, now + ABORT_LIMIT));
        self.signal(Signal::ABORT);
        // A stopped process takes no other signal but SIGKILL.
        self.signal(Signal::CONT);
        Some(late)
    }

    /// Begins to watch again, after a time in which the keeper itself did not run.
    pub(crate) fn watch_again(&mut self, now: Instant) {
        self.watchdog.restart(now);
    }

    /// Returns true if the watchdog has to look soon.
    pub(crate) fn is_suspicious(&self) -> bool {
        self.hung.is_some() || self.watchdog.suspects()
    }

    /// Returns how the server ended, by its status.
    pub(crate) fn exit(&self, status: rustix::process::WaitStatus) -> Exit {
        let small = |number: i32| u8::try_from(number).ok().expected("a status of 8 bits").unwrap_or(u8::MAX);
        match (self.hung, status.terminating_signal()) {
            (Some((late, _)), Some(_)) => Exit::Hung(late),
            (_, Some(signal)) => Exit::Signal(small(signal)),
            (_, None) => {
                Exit::Code(status.exit_status().expected("the code of a process that exited").map_or(1, small))
            }
        }
    }
}
