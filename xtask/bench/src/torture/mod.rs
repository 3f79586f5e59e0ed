//! The whole server under fault: `cargo xtask torture`.
//!
//! The server runs below its keeper as an operator runs it, between an API server (the project's fake one, or
//! kube-apiserver with etcd) and Knot DNS as its upstream, in namespaces of its own. Clients ask questions without a
//! pause, while a schedule of faults runs that a seed decides ([`schedule`]). The [`oracle`] knows for each moment
//! which answers are right.

mod api;
mod client;
mod cluster;
mod knot;
mod kubernetes;
mod link;
mod oracle;
mod questions;
mod report;
mod schedule;
mod server;
mod stage;
mod timeline;
mod zone;

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use self::api::Api;
use self::client::{Outcome, Transport, ask};
use self::cluster::Objects;
use self::knot::Knot;
use self::link::Link;
use self::oracle::{Oracle, Verdict};
use self::questions::{Asked, Source};
use self::report::{Fate, Report};
use self::schedule::{Track, track};
use self::server::{Log, Place, Server, lock, signal};
use self::stage::{Clock, Stage};
use self::timeline::Excuse;
use crate::random::Random;
use xtask::{Failed, server as build};

/// Transports of the clients.
const CLIENTS: [Transport; 8] = [
    Transport::Udp,
    Transport::Udp,
    Transport::Udp,
    Transport::Udp,
    Transport::Udp,
    Transport::Udp,
    Transport::Tcp,
    Transport::Tcp,
];
/// Longest pause of a client between two queries, in milliseconds.
const PAUSE_MAX: usize = 30;
/// Time after which an answer is late.
const LATE: Duration = Duration::from_secs(5);
/// Time until the server has listed the cluster.
const SYNC_TIMEOUT: Duration = Duration::from_secs(60);
/// Lengths of a run in seconds: a shorter one has hardly any faults.
const SECONDS: std::ops::RangeInclusive<u64> = 50..=86_400;
/// Time until all that the server wrote to its log has been read, after its end.
const LOG_TIMEOUT: Duration = Duration::from_secs(10);
/// Environment variable of the process in the namespaces: its folder.
const INSIDE: &str = "PORTOLAN_TORTURE_INSIDE";
/// Port at which nothing listens: discard (RFC 863).
const NO_PORT: u16 = 9;
/// Ports that a socket gets only if it asks for them. Each network namespace has its own.
const RESERVED_PORTS: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";
/// Size of the disk for the snapshot.
const DISK_SIZE: &str = "size=4m";
/// Libraries that change the wall clock of a program.
const CLOCKS: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"];

/// Returns the command line of `torture`.
pub(crate) fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("NUMBER")
            .default_value(default)
            .value_parser(value_parser!(u64))
            .help(help)
    };
    let seconds = number("seconds", "600", "Length of the run").value_parser(value_parser!(u64).range(SECONDS));
    Command::new("torture")
        .about("Run the whole server under faults; fails if an answer is wrong or a query is lost")
        .arg(seconds)
        .arg(number("seed", "1", "Seed of the faults and of the questions"))
        .arg(Arg::new("server").long("server").value_name("BINARY").help("Use this binary instead of a new build"))
        .arg(
            Arg::new("real")
                .long("real")
                .action(ArgAction::SetTrue)
                .help("Use kube-apiserver and etcd, which must be on the PATH, instead of the fake API server"),
        )
        .arg(
            Arg::new("planted")
                .long("planted")
                .action(ArgAction::SetTrue)
                .help("Withhold some deletions from the server, and fail unless its answers are found to be wrong"),
        )
        .arg(
            Arg::new("sanitized")
                .long("sanitized")
                .action(ArgAction::SetTrue)
                .help("Do without libfaketime: the server has a sanitizer, which replaces the same functions"),
        )
}

/// Options of a run.
#[derive(Clone, Copy)]
struct Run {
    length: Duration,
    seed: u64,
    /// True to use kube-apiserver and etcd.
    is_real: bool,
    /// True if some deletions do not reach the API server.
    is_planted: bool,
    /// True if the server has a sanitizer.
    is_sanitized: bool,
}

/// Runs the server under faults.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let number = |name: &str| options.get_one::<u64>(name).copied().unwrap_or_default();
    let binary = match options.get_one::<String>("server") {
        Some(path) => std::fs::canonicalize(path).map_err(|error| format!("{path}: {error}"))?,
        None => build::build("dev")?,
    };
    let run = Run {
        length: Duration::from_secs(number("seconds")),
        seed: number("seed"),
        is_real: options.get_flag("real"),
        is_planted: options.get_flag("planted"),
        is_sanitized: options.get_flag("sanitized"),
    };
    if let Some(folder) = std::env::var_os(INSIDE) {
        return torture(&binary, Path::new(&folder), run);
    }
    let folder = std::env::temp_dir().join(format!("portolan-torture-{}-{}", run.seed, std::process::id()));
    // A failed run of a process with the same number may have left it.
    let _ = std::fs::remove_dir_all(&folder);
    let outcome = run_inside(&binary, &folder, run).unwrap_or_else(|| torture(&binary, &folder, run));
    outcome.map_err(|error| format!("{error}; the files of the run are in {}", folder.display()))?;
    std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Runs this program again in namespaces of its own. Returns `None` if there can be none.
///
/// All processes in the namespaces, and the mounts, end with this process, however it ends.
fn run_inside(binary: &Path, folder: &Path, run: Run) -> Option<Result<(), Failed>> {
    const PROGRAM: &str = "setpriv";
    const FLAGS: [&str; 8] = ["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"];
    let is_possible = Process::new(PROGRAM).args(FLAGS).arg("true").status().is_ok_and(|status| status.success());
    if !is_possible {
        return None;
    }
    let own = std::env::current_exe().ok()?;
    let mut command = Process::new(PROGRAM);
    // The processes find themselves in a /proc of their namespace.
    command.args(FLAGS).arg("--mount-proc").arg(own).arg("torture").arg("--server").arg(binary).env(INSIDE, folder);
    command.args(["--seconds", &run.length.as_secs().to_string(), "--seed", &run.seed.to_string()]);
    command.args(run.is_real.then_some("--real"));
    command.args(run.is_planted.then_some("--planted")).args(run.is_sanitized.then_some("--sanitized"));
    Some(match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("the run failed".to_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    })
}

fn torture(binary: &Path, folder: &Path, run: Run) -> Result<(), Failed> {
    let Run { length, seed, is_planted, .. } = run;
    let (stage, objects) = set_up(binary, folder, run)?;
    let outcome = perform(&stage, objects, length, seed);
    let mut report = lock(&stage.report);
    if let Err(error) = outcome {
        report.fail(error);
    }
    // The last lines are there only when the pipes are empty.
    lock(&stage.server).kill_all();
    if !stage.log.wait_for_end(LOG_TIMEOUT) {
        report.fail("the log was not read to its end".to_owned());
    }
    for line in lock(&stage.log.bad).iter().take(20) {
        report.fail(format!("in the log: {line}"));
    }
    let _ = std::fs::write(folder.join("log.txt"), stage.log.last_lines().join("\n"));
    report.exact = lock(&stage.oracle).exact;
    report.finish(folder, length, seed, is_planted)
}

/// Starts all that runs, and waits until the server knows the cluster.
fn set_up(binary: &Path, folder: &Path, run: Run) -> Result<(Stage, Objects), Failed> {
    let version = Process::new(binary).arg("--version").output();
    let version = version.map_err(|error| format!("{}: {error}", binary.display()))?;
    println!("{}: {}", binary.display(), String::from_utf8_lossy(&version.stdout).trim().replace('\n', ", "));
    let disk = folder.join("disk");
    std::fs::create_dir_all(&disk).map_err(|error| format!("{}: {error}", disk.display()))?;
    let mut report = Report::default();
    report.is_real = run.is_real;
    report.not_tested(if run.is_real {
        "429, watches that are silent beside others that are not, and single connections that break: kube-apiserver is \
         killed or stopped, and so is etcd"
    } else {
        "kube-apiserver and etcd: the API server is the project's fake one, over TLS"
    });
    report
        .not_tested("netem: the links to the upstream are relays of this program, which lose, delay, reorder and cut");
    if !signal("0", std::process::id()) {
        return Err("`kill` cannot be run".to_owned());
    }
    if succeed(Process::new("prlimit").arg("--nofile").stdout(Stdio::null())).is_err() {
        report.not_tested("a limit of descriptors: `prlimit` cannot be run");
    }
    let is_inside = std::env::var_os(INSIDE).is_some();
    if is_inside {
        succeed(Process::new("ip").args(["link", "set", "lo", "up"]))?;
    } else {
        report.not_tested("namespaces: the system permits none, so all runs on the loopback interface of the host");
    }
    let mut mount = Process::new("mount");
    mount.args(["-t", "tmpfs", "-o", DISK_SIZE, "tmpfs"]).arg(&disk);
    let has_disk = is_inside && succeed(&mut mount).is_ok();
    if !has_disk {
        report.not_tested("a full disk");
    }
    let library = CLOCKS.iter().map(PathBuf::from).find(|path| path.exists());
    let clock = library.filter(|_| !run.is_sanitized).map(|library| (library, folder.join("clock")));
    match &clock {
        Some((_, file)) => std::fs::write(file, "+0\n").map_err(|error| format!("{}: {error}", file.display()))?,
        None if run.is_sanitized => report.not_tested("jumps of the wall clock: a sanitizer is there for libfaketime"),
        None => report.not_tested("jumps of the wall clock: libfaketime is not installed"),
    }
    let knot = Knot::start(folder)?;
    if knot.is_none() {
        report.not_tested("the upstream: `knotd` is not installed");
    }
    let upstream = knot.as_ref().map_or(NO_PORT, Knot::port);
    let links = [Link::start(upstream)?, Link::start(upstream)?];
    let api = Api::start(folder, run.is_real)?;
    let mut random = Random::new(run.seed);
    let place = Place {
        folder: folder.to_owned(),
        disk,
        api: api.url(),
        upstreams: [links[0].port, links[1].port],
        ports: Place::ports()?,
    };
    if is_inside {
        // A socket for a query must not get the port of a server that starts again.
        let ports = [&place.ports[..], &place.upstreams, &[upstream], &api.ports()].concat();
        let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        std::fs::write(RESERVED_PORTS, ports).map_err(|error| format!("{RESERVED_PORTS}: {error}"))?;
    }
    place.write_corefile(&place.corefile(&mut random))?;
    let log = Arc::new(Log::default());
    let server = Server::start(binary, &place, clock.clone(), &log)?;
    let stage = Stage {
        begin: Instant::now(),
        oracle: Mutex::new(Oracle::new()),
        report: Mutex::new(report),
        place,
        log,
        api,
        server: Mutex::new(server),
        knot: knot.map(Mutex::new),
        links,
        clock: clock.map(|(_, file)| Mutex::new(Clock::new(file))),
        has_disk,
        is_over: AtomicBool::new(false),
        deletions: AtomicUsize::new(0),
        is_planted: run.is_planted,
        outage: Mutex::new(None),
        last_fault: run.length.saturating_sub(schedule::CALM_END),
    };
    if stage.knot.is_none() {
        lock(&stage.oracle).timeline.begin(Excuse::Upstream, Duration::ZERO);
    }
    let mut objects = Objects::new();
    stage.change(&mut objects, cluster::creation(&mut random))?;
    Ok((stage, objects))
}

fn succeed(command: &mut Process) -> Result<(), Failed> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// Plays all tracks while the clients ask, and asks everything once more at the end.
fn perform(stage: &Stage, objects: Objects, length: Duration, seed: u64) -> Result<(), Failed> {
    wait_for_sync(stage)?;
    thread::scope(|scope| {
        for (number, transport) in CLIENTS.into_iter().enumerate() {
            scope.spawn(move || run_client(stage, transport, seed ^ (number as u64 + 1) << 32));
        }
        let mut objects = Some(objects);
        let all = [Track::Cluster, Track::Server, Track::Reload, Track::Api, Track::Upstream, Track::Host];
        let threads: Vec<_> = all
            .into_iter()
            .map(|one| {
                let (events, objects) = (track(one, seed, length), objects.take());
                scope.spawn(move || {
                    let outcome = stage.play(&events, objects);
                    stage.is_over.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    outcome
                })
            })
            .collect();
        let mut outcome = Ok(());
        for thread in threads {
            let done = thread.join().unwrap_or_else(|_| Err("a thread of the schedule panicked".to_owned()));
            stage.is_over.fetch_or(done.is_err(), Ordering::Relaxed);
            outcome = outcome.and(done);
        }
        if outcome.is_ok() {
            thread::sleep(length.saturating_sub(stage.now()).max(schedule::CALM_END));
        }
        stage.is_over.store(true, Ordering::Relaxed);
        outcome
    })?;
    for asked in questions::all_of_cluster() {
        query(stage, &asked, Transport::Udp, 1);
    }
    Ok(())
}

/// Waits until the server answers each question about the first objects.
fn wait_for_sync(stage: &Stage) -> Result<(), Failed> {
    let all = questions::all_of_cluster();
    let begin = Instant::now();
    for asked in &all {
        loop {
            let sent = stage.now();
            let outcome = ask(stage.place.address(), &asked.question, Transport::Udp, 1);
            let Some(Ok(response)) = outcome.response else { return Err("no answer at the start".to_owned()) };
            // Nothing is confirmed before calm, so the time of the question is a later one.
            let at = sent + timeline::CURRENT_AFTER * 2;
            let verdict = lock(&stage.oracle).judge(asked, at, at, &response);
            match verdict {
                Verdict::Right => break,
                Verdict::Wrong(text) if begin.elapsed() > SYNC_TIMEOUT => {
                    return Err(format!("at the start: {text}"));
                }
                _ => thread::sleep(Duration::from_millis(50)),
            }
        }
    }
    lock(&stage.oracle).forget_shown();
    Ok(())
}

fn run_client(stage: &Stage, transport: Transport, seed: u64) {
    let mut random = Random::new(seed);
    while !stage.is_over.load(Ordering::Relaxed) {
        let asked = questions::random(&mut random);
        let id = u16::try_from(random.below(65_536)).unwrap_or_default();
        if asked.source != Source::Upstream || stage.knot.is_some() {
            query(stage, &asked, transport, id);
        }
        thread::sleep(Duration::from_millis(u64::try_from(random.below(PAUSE_MAX)).unwrap_or_default()));
    }
}

/// Asks a question, and judges the answer.
fn query(stage: &Stage, asked: &Asked, transport: Transport, id: u16) {
    let sent = stage.now();
    let Outcome { attempts, response } = ask(stage.place.address(), &asked.question, transport, id);
    let answered = stage.now();
    let took = answered - sent;
    let mut oracle = lock(&stage.oracle);
    // The target of an alias may be a name of the upstream.
    let is_local = matches!(&asked.source, Source::Cluster(places) if places.len() == 1);
    let is_excused = |oracle: &Oracle, (begin, end): &(Instant, Instant)| {
        let [begin, end] = [begin, end].map(|at| at.saturating_duration_since(stage.begin));
        oracle.timeline.may_be_lost(is_local, transport == Transport::Tcp, begin, end)
    };
    let (fate, text) = match response {
        None if attempts.iter().all(|attempt| is_excused(&oracle, attempt)) => (Fate::LostInGap, String::new()),
        None => (Fate::Lost, format!("{asked:?} over {transport:?}: no answer")),
        Some(Err(error)) => (Fate::Wrong, format!("{asked:?}: {error}")),
        // The state at the first attempt is the oldest one that may be served.
        Some(Ok(response)) => match oracle.judge(asked, sent, answered, &response) {
            Verdict::Right => (Fate::Right, String::new()),
            Verdict::Excused => (Fate::Excused, String::new()),
            Verdict::Open => (Fate::Open, String::new()),
            Verdict::Wrong(text) => (Fate::Wrong, text),
        },
    };
    let is_in_gap = attempts.first().is_some_and(|first| is_excused(&oracle, first));
    drop(oracle);
    let mut report = lock(&stage.report);
    report.query(transport, fate, took, attempts.len());
    if attempts.len() > 1 && !is_in_gap {
        report.unanswered += 1;
        report.describe(format!("{sent:?}: no answer to the first attempt: {asked:?} over {transport:?}, {fate:?}"));
    }
    if took > LATE && !matches!(fate, Fate::Lost | Fate::LostInGap) {
        // SERVFAIL for a dead upstream comes after its timeout.
        let is_declared = is_in_gap || fate == Fate::Excused;
        report.late(is_declared);
        if !is_declared {
            report.describe(format!("{sent:?} to {answered:?}, late: {asked:?} over {transport:?}, {fate:?}"));
        }
    }
    if !text.is_empty() {
        report.describe(format!("{sent:?} to {answered:?}, {fate:?}: {text}"));
    }
}
