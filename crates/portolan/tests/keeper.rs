//! The keeper: whole processes on loopback, with real crashes.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fakeapi::FakeApi;

use crate::support::control::ControlSocket;
use crate::support::{Client, Folder, PATIENCE, Server, exchange_framed, skip, wait_until};
use wire::{Rcode, Type};

/// The keeper's program.
const KEEPER: &str = env!("CARGO_BIN_EXE_portolan-keeper");

const HOSTS: &str = ".:0 {
    bind 127.0.0.1
    hosts /nonexistent {
        192.0.2.1 one.test
    }
}
";

/// Label of the listener of [`HOSTS`].
const LABEL: &str = "dns://127.0.0.1:0";

/// Starts a keeper with a Corefile.
fn start(folder: &Folder, corefile: &str) -> Server {
    let corefile = folder.write("Corefile", corefile);
    Server::start_program(KEEPER.as_ref(), &["-conf".as_ref(), corefile.as_os_str()])
}

/// Returns the process ID of the keeper's only child.
fn child_of(keeper: &Server) -> u32 {
    let file = format!("/proc/{0}/task/{0}/children", keeper.id());
    let mut child = None;
    wait_until("a child", || {
        child = read_to_string(&file).unwrap().split_whitespace().next().and_then(|id| id.parse().ok());
        child.is_some()
    });
    child.unwrap()
}

/// Sends a signal to a process.
fn signal(name: &str, process: u32) {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -{name} {process}");
}

/// Stops a process, and waits until each of its threads has stopped. Before, one may still take a connection or query.
fn stop(process: u32) {
    signal("STOP", process);
    let is_stopped = |stat: &str| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'));
    wait_until("all threads are stopped", || {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        tasks.flatten().all(|task| read_to_string(task.path().join("stat")).is_ok_and(|stat| is_stopped(&stat)))
    });
}

/// Kills the server, and waits until its successor runs. Returns the keeper's line.
fn kill(keeper: &mut Server, name: &str) -> String {
    let child = child_of(keeper);
    signal(name, child);
    let line = keeper.wait_for("starting it again");
    assert!(line.contains(&format!("(pid {child})")), "{line}");
    wait_until("the next server", || child_of(keeper) != child);
    line
}

/// Losses and times that a client with a steady rate saw.
struct Seen {
    /// Queries without an answer.
    lost: usize,
    /// Longest time until an answer.
    slowest: Duration,
}

/// Time after which a query without an answer is lost.
const LOST_AFTER: Duration = Duration::from_secs(10);

/// Sends queries at a steady rate, without waiting for answers.
fn ask_steadily(server: SocketAddr, count: u16, pause: Duration) -> thread::JoinHandle<Seen> {
    let client = Client::new(server).waiting(LOST_AFTER);
    let mut sender = client.twin();
    let sent = Arc::new(Mutex::new(BTreeMap::new()));
    let times = Arc::clone(&sent);
    thread::spawn(move || {
        let sending = thread::spawn(move || {
            for number in 1..=count {
                times.lock().unwrap().insert(number, Instant::now());
                assert_eq!(sender.send("one.test.", Type::A), number);
                thread::sleep(pause);
            }
        });
        let (mut missing, mut slowest) = (usize::from(count), Duration::ZERO);
        while missing > 0 {
            let Some(answer) = client.receive_any() else { break };
            assert_eq!(answer.rcode(), Rcode::NOERROR);
            let begin = sent.lock().unwrap().remove(&answer.header().id).expect("one answer per query");
            slowest = slowest.max(begin.elapsed());
            missing -= 1;
        }
        sending.join().unwrap();
        Seen { lost: missing, slowest }
    })
}

/// Kills the server of a keeper again and again, while each of four clients sends a number of queries per crash, with a
/// pause after each.
fn kill_under_load(keeper: &mut Server, kills: usize, queries_per_kill: usize, pause: Duration) -> Vec<Seen> {
    let address = keeper.address_of(LABEL);
    let mut client = Client::new(address).waiting(PATIENCE);
    assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
    let queries = u16::try_from(queries_per_kill * kills).unwrap();
    let clients: Vec<_> = (0..4).map(|_| ask_steadily(address, queries, pause)).collect();
    for number in 1..=kills {
        // So that each crash meets a server that answers at the rate, and has answered what waited for it.
        thread::sleep(Duration::from_millis(400));
        assert!(client.ask("one.test.", Type::A).is_some());
        let line = kill(keeper, "KILL");
        let reason = "was killed by signal 9 (SIGKILL)";
        assert!(line.contains(reason) && line.contains(&format!("(exit {number} in")), "{line}");
        assert_eq!(keeper.address_of(LABEL), address);
    }
    clients.into_iter().map(|client| client.join().unwrap()).collect()
}

#[test]
fn a_killed_server_loses_at_most_the_query_in_hand() {
    const KILLS: usize = 3;
    // 40 queries per second together: those of a restart on a busy machine fit in the receive queue, which takes about
    // 270.
    const PAUSE: Duration = Duration::from_millis(100);
    let folder = Folder::new("keeper-kill");
    let mut keeper = start(&folder, HOSTS);
    for Seen { lost, .. } in kill_under_load(&mut keeper, KILLS, 25, PAUSE) {
        assert!(lost <= KILLS, "{lost} queries of a client lost in {KILLS} crashes");
    }
}

/// Measures the static binary that `PORTOLAN_STATIC` names, and the keeper beside it. The figures belong in
/// `benches/results`: `cargo test -p portolan --test integration keeper::figures -- --nocapture`.
#[test]
fn figures_of_the_static_binary() {
    let Some(binary) = std::env::var_os("PORTOLAN_STATIC").map(PathBuf::from) else {
        return skip("figures of the keeper: set PORTOLAN_STATIC to what `cargo xtask binary` prints");
    };
    let program = binary.with_file_name("portolan-keeper");
    let folder = Folder::new("keeper-figures");
    let corefile = folder.write("Corefile", HOSTS);
    let start = || Server::start_program(&program, &["-conf".as_ref(), corefile.as_os_str()]);
    for _ in 0..5 {
        let mut keeper = start();
        let seen = kill_under_load(&mut keeper, 4, 500, Duration::from_millis(4));
        let lost: Vec<usize> = seen.iter().map(|seen| seen.lost).collect();
        let slowest = seen.iter().map(|seen| seen.slowest).max().unwrap_or_default();
        println!("4 crashes, 4 clients: {lost:?} of 2000 queries lost, slowest answer after {slowest:?}");
        println!("keeper: {} KiB resident, {} bytes", resident(keeper.id(), |_| true), size(&program));
    }
    let mut keeper = start();
    let mut client = Client::new(keeper.address_of(LABEL)).waiting(PATIENCE);
    let child = child_of(&keeper);
    wait_until("the thread that sends beats", || has_thread(child, "heartbeat"));
    thread::sleep(Duration::from_secs(1));
    stop(child);
    let begin = Instant::now();
    assert!(client.ask("one.test.", Type::A).is_some());
    println!("SIGSTOP: answered again after {:?}", begin.elapsed());
}

/// Returns the size of a file.
fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn the_listener_of_tcp_survives_and_connections_wait_in_it() {
    let folder = Folder::new("keeper-tcp");
    // The crash comes right after the first answer. A keeper that does not yet know by then that the server serves
    // would close the listener: that was so in one start of five.
    (0..8).for_each(|_| a_connection_survives_a_crash_after_the_first_answer(&folder));
}

fn a_connection_survives_a_crash_after_the_first_answer(folder: &Folder) {
    let mut keeper = start(folder, HOSTS);
    let address = keeper.address_of(LABEL);
    let exchange = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        exchange_framed(stream, &crate::support::query(7, "one.test.", Type::A))
    };
    let mut before = TcpStream::connect(address).unwrap();
    assert_eq!(exchange(&mut before).rcode(), Rcode::NOERROR);
    // Stopped, the server accepts nothing until it is killed.
    let child = child_of(&keeper);
    stop(child);
    let mut waiting = TcpStream::connect(address).unwrap();
    kill(&mut keeper, "KILL");
    assert_eq!(exchange(&mut waiting).rcode(), Rcode::NOERROR);
    assert_eq!(before.read(&mut [0]).unwrap_or(0), 0, "a connection ends with its server");
}

#[test]
fn a_stopped_server_is_replaced() {
    let folder = Folder::new("keeper-stop");
    let mut keeper = start(&folder, HOSTS);
    let address = keeper.address_of(LABEL);
    let mut client = Client::new(address).waiting(PATIENCE);
    assert!(client.ask("one.test.", Type::A).is_some());
    // Until it has sent a beat, nothing is missed.
    let child = child_of(&keeper);
    wait_until("the thread that sends beats", || has_thread(child, "heartbeat"));
    stop(child);
    // The query waits for the next server.
    assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
    assert!(keeper.wait_for("has not responded for").contains(&format!("(pid {child})")));
    keeper.wait_for("was ended because it did not respond for");
}

/// Returns true if a process has a thread with this name.
fn has_thread(process: u32, name: &str) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    tasks.flatten().any(|task| read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name))
}

#[test]
fn five_exits_in_a_minute_end_the_keeper_with_the_code_of_the_last() {
    let folder = Folder::new("keeper-five");
    let mut keeper = start(&folder, HOSTS);
    for _ in 0..4 {
        keeper.address_of(LABEL);
        kill(&mut keeper, "KILL");
    }
    keeper.address_of(LABEL);
    signal("ABRT", child_of(&keeper));
    keeper.wait_for("it has ended 5 times in 60 s, so the keeper ends with code 134");
    assert_eq!(keeper.wait(), Some(134));
}

#[test]
fn signals_reach_the_server_and_its_end_is_that_of_the_keeper() {
    let folder = Folder::new("keeper-signals");
    for (name, line, code) in [
        ("TERM", "SIGTERM: Shutting down servers then terminating", 0),
        ("INT", "SIGINT: Shutting down", 0),
        ("QUIT", "SIGQUIT: Quitting process immediately", 0),
    ] {
        let mut keeper = start(&folder, HOSTS);
        keeper.wait_for("Portolan-");
        keeper.signal("USR1");
        keeper.wait_for("SIGUSR1: Reloading");
        keeper.signal("USR2");
        keeper.wait_for("SIGUSR2 is ignored");
        keeper.signal(name);
        keeper.wait_for(line);
        assert_eq!(keeper.wait(), Some(code), "{name}");
        assert!(!keeper.lines().iter().any(|line| line.contains("keeper:")), "{:?}", keeper.lines());
    }
}

#[test]
fn a_server_that_dies_during_its_shutdown_is_not_started_again() {
    let folder = Folder::new("keeper-lame");
    let mut keeper = start(&folder, &HOSTS.replace("hosts /", "health 127.0.0.1:0 {\n lameduck 10m\n}\n hosts /"));
    keeper.wait_for("Portolan-");
    // The server itself gets the signal, and the keeper learns of it from the server.
    let child = child_of(&keeper);
    signal("TERM", child);
    keeper.wait_for("Going into lameduck mode for 600s");
    signal("KILL", child);
    assert_eq!(keeper.wait(), Some(137));
}

#[test]
fn a_server_that_cannot_start_ends_the_keeper_with_its_message_and_code() {
    let folder = Folder::new("keeper-invalid");
    let corefile = folder.write("Corefile", ".:0 {\n    nonsense\n}\n");
    let output = |program: &str| {
        let output = Command::new(program).arg("-conf").arg(&corefile).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = output(KEEPER);
    assert!(stderr.contains("unknown directive `nonsense`"), "{stderr}");
    assert_eq!((code, stdout, stderr), output(env!("CARGO_BIN_EXE_portolan")));
    // Commands pass through it too.
    let version = Command::new(KEEPER).arg("-version").output().unwrap();
    assert!(version.status.success() && String::from_utf8_lossy(&version.stdout).contains("Portolan-"));
    let missing = Command::new(KEEPER).arg("/nonexistent/program").output().unwrap();
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/nonexistent/program cannot be started"));
}

#[test]
fn without_a_keeper_there_is_one_process() {
    let folder = Folder::new("keeper-none");
    let corefile = folder.write("Corefile", HOSTS);
    let words = ["--no-keeper".as_ref(), "-conf".as_ref(), corefile.as_os_str()];
    let mut server = Server::start_program(KEEPER.as_ref(), &words);
    let address = server.address_of(LABEL);
    assert!(Client::new(address).waiting(PATIENCE).ask("one.test.", Type::A).is_some());
    let program = std::fs::read_link(format!("/proc/{}/exe", server.id())).unwrap();
    assert_eq!(program.file_name().unwrap(), "portolan");
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn with_debug_a_crash_ends_the_keeper() {
    let folder = Folder::new("keeper-debug");
    let mut keeper = start(&folder, &HOSTS.replace("hosts /", "debug\n    hosts /"));
    keeper.wait_for("Portolan-");
    signal("ABRT", child_of(&keeper));
    assert_eq!(keeper.wait(), Some(134));
}

#[test]
fn a_killed_keeper_leaves_no_server_behind() {
    let folder = Folder::new("keeper-killed");
    let mut keeper = start(&folder, HOSTS);
    keeper.wait_for("Portolan-");
    let child = child_of(&keeper);
    keeper.signal("KILL");
    keeper.wait();
    let stat = format!("/proc/{child}/stat");
    // Another process may have adopted it without taking its status.
    wait_until("its end", || read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
}

#[test]
fn another_corefile_at_the_restart_keeps_what_it_still_serves() {
    let folder = Folder::new("keeper-other");
    let second = HOSTS.replace("127.0.0.1", "127.0.0.2");
    let mut keeper = start(&folder, &format!("{HOSTS}{second}"));
    let (first, other) = (keeper.address_of(LABEL), keeper.address_of("dns://127.0.0.2:0"));
    keeper.wait_for("Portolan-");
    folder.write("Corefile", HOSTS);
    kill(&mut keeper, "KILL");
    assert_eq!(keeper.address_of(LABEL), first);
    keeper.wait_for("Portolan-");
    assert!(Client::new(first).waiting(PATIENCE).ask("one.test.", Type::A).is_some());
    // Nobody holds the sockets any more: the port is refused, and the kernel queues nothing.
    wait_until("its sockets are closed", || TcpStream::connect(other).is_err());
    // A reload that opens it again gives it to the keeper, and so does the next start.
    folder.write("Corefile", &format!("{HOSTS}{second}"));
    keeper.signal("USR1");
    let again = keeper.address_of("dns://127.0.0.2:0");
    keeper.wait_for("Reloading complete");
    kill(&mut keeper, "KILL");
    assert_eq!(keeper.address_of("dns://127.0.0.2:0"), again);
    assert!(Client::new(again).waiting(PATIENCE).ask("one.test.", Type::A).is_some());
}

#[test]
fn its_lines_have_the_format_of_the_server() {
    let folder = Folder::new("keeper-json");
    let corefile = folder.write("Corefile", HOSTS);
    let words = ["-log-format=json".as_ref(), "-conf".as_ref(), corefile.as_os_str()];
    let mut keeper = Server::start_program(KEEPER.as_ref(), &words);
    keeper.wait_for("Portolan-");
    let line = kill(&mut keeper, "KILL");
    let read: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(read["level"], "WARN");
    assert!(read["msg"].as_str().unwrap().starts_with("keeper: the server (pid "), "{line}");
}

#[test]
fn status_and_metrics_show_a_restart() {
    let folder = Folder::new("keeper-status");
    let mut keeper = start(&folder, &HOSTS.replace("hosts /", "prometheus 127.0.0.1:0\n    hosts /"));
    let metrics = |keeper: &mut Server| {
        let page = keeper.address_of("127.0.0.1:0");
        crate::support::page(page, "/metrics").unwrap().1
    };
    let before = metrics(&mut keeper);
    assert!(
        before.contains("\nportolan_keeper_restarts_total 0\n") && !before.contains("portolan_keeper_last_exit_info")
    );
    let status = ControlSocket::of(&mut keeper).status();
    assert_eq!(status["keeper"]["restarts"], 0);
    kill(&mut keeper, "KILL");
    let after = metrics(&mut keeper);
    let reason = "portolan_keeper_last_exit_info{reason=\"was killed by signal 9 (SIGKILL)\"} 1\n";
    assert!(after.contains("\nportolan_keeper_restarts_total 1\n") && after.contains(reason), "{after}");
    let control = ControlSocket::of(&mut keeper);
    let status = control.status();
    assert_eq!((&status["keeper"]["restarts"], &status["keeper"]["restarts_in_hour"]), (&1.into(), &1.into()));
    assert_eq!(status["problems"][0]["code"], "PD-T07");
    let text = control.run(&["status"]).stdout;
    assert!(text.contains("PD-T07  the server was killed by signal 9 (SIGKILL) and started again"), "{text}");
}

#[test]
fn takes_little_memory() {
    let folder = Folder::new("keeper-memory");
    let mut keeper = start(&folder, HOSTS);
    keeper.wait_for("Portolan-");
    kill(&mut keeper, "KILL");
    keeper.wait_for("Portolan-");
    // The binary that ships has no shared objects.
    let resident = resident(keeper.id(), |mapping| !mapping.contains(".so"));
    assert!((1..=2048).contains(&resident), "{resident} KiB");
}

/// Returns the resident memory of a process in KiB, of those mappings whose first line passes a filter.
fn resident(process: u32, filter: impl Fn(&str) -> bool) -> u32 {
    let maps = read_to_string(format!("/proc/{process}/smaps")).unwrap();
    let (mut sum, mut counts) = (0, true);
    for line in maps.lines() {
        match line.strip_prefix("Rss:") {
            Some(size) if counts => sum += size.trim().trim_end_matches(" kB").parse::<u32>().unwrap(),
            // The first line of a mapping begins with its addresses.
            None if line.split(' ').next().is_some_and(|word| word.contains('-')) => counts = filter(line),
            _ => {}
        }
    }
    sum
}

#[test]
fn a_snapshot_that_ended_two_servers_is_moved_aside() {
    let api = FakeApi::with_shop();
    let folder = Folder::new("keeper-poison");
    let (file, marker) = (folder.path().join("snapshot"), folder.path().join("snapshot.loading"));
    let block = format!("kubernetes cluster.local {{\n endpoint {}\n snapshot {}\n}}\n", api.url(), file.display());
    let mut keeper = start(&folder, &HOSTS.replace("hosts /", &format!("{block} hosts /")));
    keeper.wait_for("Portolan-");
    wait_until("the snapshot is written", || file.exists());
    assert!(!marker.exists());
    // What two crashes while it was loaded leave.
    std::fs::write(&marker, "2\n").unwrap();
    kill(&mut keeper, "KILL");
    let line = keeper.wait_for("has ended 2 processes that loaded it");
    assert!(line.contains("[WARNING] plugin/kubernetes: Snapshot ") && line.contains("snapshot.bad"), "{line}");
    assert!(folder.path().join("snapshot.bad").exists() && !marker.exists());
    wait_until("the next snapshot is written", || file.exists());
}
