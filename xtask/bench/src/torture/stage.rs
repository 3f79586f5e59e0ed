//! All that runs, and the actions of the schedule.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::api::Api;
use super::cluster::{self, Change, Objects};
use super::knot::Knot;
use super::link::{Link, LinkFault};
use super::oracle::Oracle;
use super::report::Report;
use super::schedule::{Action, Event};
use super::server::{Log, Place, Server, lock, signal};
use super::timeline::{Excuse, Span};
use crate::random::Random;
use xtask::Failed;

/// Time after the restart of a server until its watches continue.
const RESTART_ALLOWANCE: Duration = Duration::from_secs(3);
/// Time after a fault of the upstream in which its failures are cached, and its health is unknown.
const UPSTREAM_ALLOWANCE: Duration = Duration::from_secs(7);
/// Least time after a fault of the API server until the server asks again.
const API_ALLOWANCE: Duration = Duration::from_secs(3);
/// Time without a failure after which the next one begins an outage. The server waits up to an eighth of an outage.
const OUTAGE_GAP: Duration = Duration::from_secs(10);
/// Around a kill, a query may be in hand.
const IN_HAND: Duration = Duration::from_millis(50);
/// With planted mistakes, one of this many deletions is withheld from the server.
const WITHHELD: usize = 5;

/// All that runs.
pub(crate) struct Stage {
    pub(crate) begin: Instant,
    pub(crate) oracle: Mutex<Oracle>,
    pub(crate) report: Mutex<Report>,
    pub(crate) place: Place,
    pub(crate) log: Arc<Log>,
    pub(crate) api: Api,
    pub(crate) server: Mutex<Server>,
    pub(crate) knot: Option<Mutex<Knot>>,
    pub(crate) links: [Link; 2],
    /// File with the offset of the wall clock, if it can be changed.
    pub(crate) clock: Option<Mutex<Clock>>,
    /// True if the folder of the snapshot is a small disk of its own.
    pub(crate) has_disk: bool,
    pub(crate) is_over: AtomicBool,
    /// Number of objects that were deleted.
    pub(crate) deletions: AtomicUsize,
    /// True if each [`WITHHELD`]th deletion does not reach the API server.
    pub(crate) is_planted: bool,
    /// Begin of the last outage of the API server, and its end.
    pub(crate) outage: Mutex<Option<(Duration, Duration)>>,
    /// Time of the last fault: the rest of the run is calm.
    pub(crate) last_fault: Duration,
}

/// Wall clock of the server.
pub(crate) struct Clock {
    /// File with its offset.
    file: PathBuf,
    offset: &'static str,
}

impl Clock {
    pub(crate) const fn new(file: PathBuf) -> Clock {
        Clock { file, offset: "+0" }
    }
}

impl Stage {
    /// Returns the time since the begin.
    pub(crate) fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn begin_fault(&self, excuse: Excuse) -> Span {
        lock(&self.oracle).timeline.begin(excuse, self.now())
    }

    fn end_fault(&self, span: Span, allowance: Duration) {
        lock(&self.oracle).timeline.end(span, self.now() + allowance);
    }

    /// Runs the events of a track. `objects` are those of the cluster, for the track that changes them.
    pub(crate) fn play(&self, events: &[Event], mut objects: Option<Objects>) -> Result<(), Failed> {
        for event in events {
            thread::sleep(event.at.saturating_sub(self.now()));
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            let begin = self.now();
            // The fault before may have taken longer.
            if begin > self.last_fault || !event.fits(begin, self.api.restart_allowance()) {
                continue;
            }
            let mut random = Random::new(event.detail);
            let is_done = match (event.action, &mut objects) {
                (Action::ChangeCluster, Some(objects)) => {
                    let changes = cluster::next(objects, &mut random);
                    self.change(objects, changes)?;
                    true
                }
                (action, _) => self.act(action, event.lasts, &mut random)?,
            };
            if is_done {
                lock(&self.report).count(event.action, begin, self.now());
            }
        }
        Ok(())
    }

    /// Writes objects to the API server.
    pub(crate) fn change(&self, objects: &mut Objects, changes: Vec<Change>) -> Result<(), Failed> {
        for (key, part) in changes {
            if part.is_none() && !objects.contains_key(&key) {
                continue;
            }
            lock(&self.oracle).write(key, part.clone(), self.now());
            let is_withheld = self.is_planted
                && part.is_none()
                && self.deletions.fetch_add(1, Ordering::Relaxed) % WITHHELD == WITHHELD - 1;
            if !is_withheld {
                self.api.write(key, part.as_ref())?;
            }
            lock(&self.oracle).written(key, self.now());
            match part {
                Some(part) => drop(objects.insert(key, part)),
                None => drop(objects.remove(&key)),
            }
        }
        Ok(())
    }

    /// Does what an event says. Returns false if it cannot be done here.
    fn act(&self, action: Action, lasts: Duration, random: &mut Random) -> Result<bool, Failed> {
        match action {
            Action::ChangeCluster => {}
            Action::KillServer => self.kill_server()?,
            Action::KillKeeper => self.kill_keeper()?,
            Action::StopServer => self.stop_server(lasts)?,
            Action::Reload => self.reload(random)?,
            Action::BrokenReload => self.broken_reload(random)?,
            Action::ApiDown
            | Action::ApiStalled
            | Action::ApiSilent
            | Action::ApiStatus
            | Action::ApiSlow
            | Action::ApiCompacted
            | Action::ApiConnectionsCut => return self.fail_api(action, lasts, random),
            Action::KnotStopped | Action::KnotKilled => return self.fail_knot(action, lasts),
            Action::LinkCut => self.fail_links(&self.links, LinkFault::Cut, lasts),
            Action::LinkLossy => self.fail_links(&self.links, LinkFault::Lossy, lasts),
            Action::LinkSlow => self.fail_links(&self.links, LinkFault::Slow, lasts),
            Action::OneLinkCut => {
                let link = &self.links[random.below(self.links.len())];
                link.set(LinkFault::Cut);
                thread::sleep(lasts);
                link.set(LinkFault::None);
            }
            Action::LogStalled => {
                self.log.stall(true);
                thread::sleep(lasts);
                self.log.stall(false);
            }
            Action::DiskFull => return Ok(self.has_disk && self.fill_disk(lasts)),
            Action::FewDescriptors => return Ok(self.take_descriptors(lasts)),
            Action::ClockJump => return Ok(self.jump(random)),
        }
        Ok(true)
    }

    fn kill_server(&self) -> Result<(), Failed> {
        let mut server = lock(&self.server);
        let Some(worker) = server.worker() else { return server.wait() };
        let (view, connections) = (self.begin_fault(Excuse::OldView), self.begin_fault(Excuse::Connections));
        let at = self.now();
        lock(&self.oracle).timeline.add(Excuse::Gap, at.saturating_sub(IN_HAND), at + IN_HAND);
        signal("KILL", worker);
        server.wait_for_successor(worker)?;
        server.wait()?;
        self.has_restarted(at, view, connections);
        Ok(())
    }

    fn kill_keeper(&self) -> Result<(), Failed> {
        let mut server = lock(&self.server);
        let (view, connections) = (self.begin_fault(Excuse::OldView), self.begin_fault(Excuse::Connections));
        let gap = self.begin_fault(Excuse::Gap);
        let at = self.now();
        server.kill_all();
        server.start_again()?;
        self.end_fault(gap, Duration::ZERO);
        self.has_restarted(at, view, connections);
        Ok(())
    }

    /// Notes that a server that was killed answers again.
    fn has_restarted(&self, at: Duration, view: Span, connections: Span) {
        let now = self.now();
        lock(&self.report).restarts.push(now - at);
        self.end_fault(view, RESTART_ALLOWANCE);
        self.end_fault(connections, Duration::ZERO);
        let mut oracle = lock(&self.oracle);
        if let Some(since) = oracle.timeline.snapshot_broken_since(at) {
            // What was not written is lost, and without any snapshot nothing is known.
            oracle.timeline.add(Excuse::OldView, since, now + RESTART_ALLOWANCE);
            oracle.timeline.begin(Excuse::UnknownCluster, at);
            oracle.forget_shown();
            oracle.timeline.end_broken_snapshot(now + RESTART_ALLOWANCE);
        }
    }

    fn stop_server(&self, lasts: Duration) -> Result<(), Failed> {
        let server = lock(&self.server);
        let Some(worker) = server.worker() else { return server.wait() };
        let (view, connections) = (self.begin_fault(Excuse::OldView), self.begin_fault(Excuse::Connections));
        let gap = self.begin_fault(Excuse::Gap);
        let at = self.now();
        signal("STOP", worker);
        thread::sleep(lasts);
        // The keeper has ended it meanwhile if it was stopped for more than three seconds.
        signal("CONT", worker);
        server.wait()?;
        self.end_fault(gap, Duration::ZERO);
        if server.worker() == Some(worker) {
            self.end_fault(view, RESTART_ALLOWANCE);
            self.end_fault(connections, Duration::ZERO);
        } else {
            self.has_restarted(at, view, connections);
        }
        Ok(())
    }

    fn reload(&self, random: &mut Random) -> Result<(), Failed> {
        self.place.write_corefile(&self.place.corefile(random))?;
        signal("USR1", lock(&self.server).keeper());
        Ok(())
    }

    /// Reloads a Corefile with an error. No process starts meanwhile, which would refuse it.
    fn broken_reload(&self, random: &mut Random) -> Result<(), Failed> {
        let server = lock(&self.server);
        let good = self.place.corefile(random);
        self.place.write_corefile(&good.replacen("loadbalance", "loadbalance no_such_policy", 1))?;
        signal("USR1", server.keeper());
        thread::sleep(Duration::from_secs(1));
        self.place.write_corefile(&good)
    }

    fn fail_api(&self, action: Action, lasts: Duration, random: &mut Random) -> Result<bool, Failed> {
        if !self.api.can_fail(action) {
            return Ok(false);
        }
        let view = self.begin_fault(Excuse::OldView);
        let from = self.begin_outage();
        self.api.fail(action, lasts, random)?;
        let until = self.now();
        *lock(&self.outage) = Some((from, until));
        self.end_fault(view, API_ALLOWANCE + (until - from) / 6);
        Ok(true)
    }

    /// Returns the begin of the outage of the API server, which may be that of an earlier fault.
    fn begin_outage(&self) -> Duration {
        let now = self.now();
        match *lock(&self.outage) {
            Some((from, until)) if until + OUTAGE_GAP > now => from,
            _ => now,
        }
    }

    fn fail_knot(&self, action: Action, lasts: Duration) -> Result<bool, Failed> {
        let Some(knot) = &self.knot else { return Ok(false) };
        let mut knot = lock(knot);
        let span = self.begin_fault(Excuse::Upstream);
        if action == Action::KnotKilled {
            knot.restart()?;
        } else {
            signal("STOP", knot.id());
            thread::sleep(lasts);
            signal("CONT", knot.id());
        }
        self.end_fault(span, UPSTREAM_ALLOWANCE);
        Ok(true)
    }

    fn fail_links(&self, links: &[Link], fault: LinkFault, lasts: Duration) {
        let span = self.begin_fault(Excuse::Upstream);
        links.iter().for_each(|link| link.set(fault));
        thread::sleep(lasts);
        links.iter().for_each(|link| link.set(LinkFault::None));
        self.end_fault(span, UPSTREAM_ALLOWANCE);
    }

    fn fill_disk(&self, lasts: Duration) -> bool {
        let path = self.place.disk.join("filler");
        let Ok(mut filler) = std::fs::File::create(&path) else { return false };
        // The next exit of the server ends this.
        self.begin_fault(Excuse::Snapshot);
        while filler.write_all(&[0; 4096]).is_ok() {}
        thread::sleep(lasts);
        let _ = std::fs::remove_file(&path);
        lock(&self.oracle).timeline.disk_is_free(self.now());
        true
    }

    fn take_descriptors(&self, lasts: Duration) -> bool {
        let Some(worker) = lock(&self.server).worker() else { return false };
        let spans = [Excuse::Upstream, Excuse::Connections, Excuse::OldView].map(|excuse| self.begin_fault(excuse));
        let from = self.begin_outage();
        let limit = |limit: &str| {
            let status =
                Command::new("prlimit").args(["--pid", &worker.to_string(), limit]).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        let is_set = limit("--nofile=64:");
        thread::sleep(lasts);
        // The process may have been killed.
        limit("--nofile=1024:");
        let until = self.now();
        *lock(&self.outage) = Some((from, until));
        spans.into_iter().for_each(|span| self.end_fault(span, UPSTREAM_ALLOWANCE.max((until - from) / 6)));
        is_set
    }

    fn jump(&self, random: &mut Random) -> bool {
        let Some(clock) = &self.clock else { return false };
        let mut clock = lock(clock);
        let offset = random.pick(&["+0", "+3600", "-3600", "+30d", "-30d", "+5", "-5"]);
        let is_another = offset != clock.offset;
        clock.offset = offset;
        is_another && std::fs::write(&clock.file, format!("{offset}\n")).is_ok()
    }
}
