//! The loop: waits for signals and for the records of the server.

use std::io;
use std::time::{Duration, Instant};

use linux::signals::SignalQueue;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitOptions, WaitStatus, wait};

use crate::command_line::CommandLine;
use crate::held::HeldSockets;
use crate::log::{self, Level};
use crate::policy::{Decision, EXITS_MAX, Exit, ExitHistory, WINDOW};
use crate::record::Record;
use crate::server::Server;
use crate::watchdog::BEAT;

/// Signals that go to the server.
const PASSED_ON: [Signal; 6] = [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::USR1, Signal::USR2];
/// Signals that end the server, which is not started again then.
const ENDING: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::QUIT];
/// Longest wait while a thread is suspicious.
const SUSPICIOUS_TICK: Duration = Duration::from_millis(100);
/// The keeper has not run itself if a wait took this much longer than it should.
const OVERSLEPT: Duration = Duration::from_millis(500);

// The loop waits for less than a second.
const _: () = assert!(BEAT.as_secs() == 0 && SUSPICIOUS_TICK.as_secs() == 0);

/// The keeper.
pub(crate) struct Keeper {
    command: CommandLine,
    signals: SignalQueue,
    held: HeldSockets,
    exits: ExitHistory,
    is_json: bool,
}

impl Keeper {
    /// Creates a keeper that handles signals from now on.
    ///
    /// # Errors
    /// Fails if the kernel refuses the descriptor for signals.
    pub(crate) fn new(command: CommandLine) -> io::Result<Keeper> {
        let numbers: Vec<i32> = PASSED_ON.iter().chain([&Signal::CHILD]).map(|signal| signal.as_raw()).collect();
        let signals = SignalQueue::new(&numbers)?;
        Ok(Keeper { command, signals, held: HeldSockets::default(), exits: ExitHistory::default(), is_json: false })
    }

    /// Runs the server until it is not to be started again. Returns its exit code.
    ///
    /// # Errors
    /// Fails if the server cannot be started, or if a system call fails.
    pub(crate) fn run(&mut self) -> io::Result<u8> {
        let mut has_served = false;
        loop {
            let mut server = self.start(has_served)?;
            let exit = self.run_until_exit(&mut server)?;
            has_served = server.circumstances.has_served;
            let decision = self.exits.decide(exit, server.circumstances, Instant::now());
            let pid = server.pid();
            match decision {
                Decision::End => return Ok(exit.code()),
                Decision::Restart(number) => self.log(
                    Level::Warning,
                    format_args!(
                        "the server (pid {pid}) {exit}; starting it again (exit {number} in {} s; after {EXITS_MAX}, \
                         the keeper ends too)",
                        WINDOW.as_secs()
                    ),
                ),
                Decision::GiveUp => {
                    self.log(
                        Level::Error,
                        format_args!(
                            "the server (pid {pid}) {exit}; it has ended {EXITS_MAX} times in {} s, so the keeper ends \
                             with code {}",
                            WINDOW.as_secs(),
                            exit.code()
                        ),
                    );
                    return Ok(exit.code());
                }
            }
        }
    }

    fn start(&mut self, has_served: bool) -> io::Result<Server> {
        let (total, in_last_hour) = self.exits.counts(Instant::now());
        let exits = Record::Exits { total, in_last_hour, reason: self.exits.reason() };
        self.held.begin();
        Server::start(&self.command, exits, has_served).map_err(|error| {
            let program = self.command.program.display();
            io::Error::new(error.kind(), format!("{program} cannot be started: {error}"))
        })
    }

    /// Handles signals and records until the server has ended.
    fn run_until_exit(&mut self, server: &mut Server) -> io::Result<Exit> {
        loop {
            self.wait_for_events(server)?;
            let is_child = self.pass_signals_on(server)?;
            self.receive(server);
            if is_child && let Some(status) = reap(server)? {
                // It may have sent more before its end.
                self.receive(server);
                return Ok(server.exit(status));
            }
            if let Some(late) = server.watch(Instant::now()) {
                let (pid, late) = (server.pid(), late.as_secs_f64());
                let text = format_args!("the server (pid {pid}) has not responded for {late:.1} s; ending it");
                self.log(Level::Warning, text);
            }
        }
    }

    fn wait_for_events(&self, server: &mut Server) -> io::Result<()> {
        server.send(&self.held);
        let mut events = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if let Some((link, is_sending)) = server.waits_for() {
            let room = if is_sending { PollFlags::OUT } else { PollFlags::empty() };
            events.push(PollFd::from_borrowed_fd(link, PollFlags::IN | room));
        }
        let (begin, limit) = (Instant::now(), if server.is_suspicious() { SUSPICIOUS_TICK } else { BEAT });
        let timeout = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
        match poll(&mut events, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let now = Instant::now();
        if now.duration_since(begin) > limit + OVERSLEPT {
            server.watch_again(now);
        }
        Ok(())
    }

    /// Passes the signals on. Returns true if the state of a child has changed.
    fn pass_signals_on(&self, server: &mut Server) -> io::Result<bool> {
        let mut is_child = false;
        while let Some(received) = self.signals.take()? {
            let Some(signal) = PASSED_ON.into_iter().find(|signal| signal.as_raw() == received.signal) else {
                is_child = true;
                continue;
            };
            server.circumstances.is_ending |= ENDING.contains(&signal);
            // A terminal has sent its signals to the server too.
            if !received.is_from_kernel {
                server.signal(signal);
            }
        }
        Ok(is_child)
    }

    fn receive(&mut self, server: &mut Server) {
        let told = server.receive(&mut self.held, Instant::now());
        self.is_json = told.is_json.unwrap_or(self.is_json);
        if told.is_too_much {
            let text = "the server serves more sockets than the keeper holds; the queries in some would be lost";
            self.log(Level::Warning, format_args!("{text} in a crash"));
        }
    }

    fn log(&self, level: Level, text: std::fmt::Arguments<'_>) {
        log::write(self.is_json, level, text);
    }
}

/// Takes the status of all children that have ended: the first process of a container adopts those of others. Returns
/// that of the server.
fn reap(server: &Server) -> io::Result<Option<WaitStatus>> {
    let mut own = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == server.pid() => own = Some(status),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(own),
            Err(error) => return Err(error.into()),
        }
    }
}
