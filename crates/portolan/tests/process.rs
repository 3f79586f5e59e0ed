//! The process as a whole: startup, reload, shutdown and error messages.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Client, Folder, Server, encrypted, page, wait_until};
use wire::{Rcode, Type};

const HOSTS: &str = ".:0 {
    hosts /nonexistent {
        192.0.2.1 one.test
        192.0.2.2 two.test
    }
    health localhost:0
    ready localhost:0
    prometheus localhost:0
}
";

#[test]
fn answers_within_half_a_second_of_cpu_time_after_the_start() {
    let folder = Folder::new("first");
    let mut server = Server::start(&folder.write("Corefile", HOSTS));
    let mut client = Client::new(server.address_of("dns://:0"));
    let answer = client.ask("one.test.", Type::A).unwrap();
    // CPU time, not wall-clock time, because other tests run concurrently.
    let taken = server.processor_time();
    assert_eq!(answer.addresses(), ["192.0.2.1".parse::<std::net::IpAddr>().unwrap()]);
    assert!(taken < Duration::from_millis(500), "{taken:?}: unoptimised and beside other tests, ten times the goal");
    server.wait_for("Portolan-");
}

#[test]
fn serves_pages() {
    let folder = Folder::new("pages");
    let mut server = Server::start(&folder.write("Corefile", HOSTS));
    let address = server.address_of("localhost:0");
    assert_eq!(page(address, "/health"), Some((200, "OK".to_owned())));
    assert_eq!(page(address, "/ready"), Some((200, "OK".to_owned())));
    assert!(page(address, "/metrics").unwrap().1.contains("coredns_build_info{"));
    assert_eq!(page(address, "/other").unwrap().0, 404);
}

/// Sends queries without a pause until `stop` is set. Returns the number of answers, and panics if one is missing.
fn keep_asking(server: std::net::SocketAddr, stop: &Arc<AtomicBool>) -> thread::JoinHandle<u32> {
    let stop = Arc::clone(stop);
    let mut client = Client::new(server);
    thread::spawn(move || {
        let mut answered = 0;
        while !stop.load(Ordering::Relaxed) {
            let answer = client.ask("one.test.", Type::A);
            assert_eq!(answer.map(|answer| answer.rcode()), Some(Rcode::NOERROR), "after {answered} answers");
            answered += 1;
        }
        answered
    })
}

#[test]
fn reloads_lose_no_query() {
    let folder = Folder::new("reload");
    let path = folder.write("Corefile", HOSTS);
    let mut server = Server::start(&path);
    let address = server.address_of("dns://:0");
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..2).map(|_| keep_asking(address, &stop)).collect();
    for round in 0..20 {
        let name = format!("192.0.2.{} two.test", 100 + round);
        folder.write("Corefile", &HOSTS.replace("192.0.2.2 two.test", &name));
        server.signal("USR1");
        server.wait_for("Reloading complete");
    }
    let changed = Client::new(address).ask("two.test.", Type::A).unwrap();
    assert_eq!(changed.addresses(), ["192.0.2.119".parse::<std::net::IpAddr>().unwrap()]);
    stop.store(true, Ordering::Relaxed);
    let answered: u32 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert!(answered > 100, "{answered} answers");
}

#[test]
fn keeps_the_configuration_if_the_new_corefile_is_invalid() {
    let folder = Folder::new("bad");
    let path = folder.write("Corefile", HOSTS);
    let mut server = Server::start(&path);
    let mut client = Client::new(server.address_of("dns://:0"));
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy_page = HOSTS.replace("health localhost:0", &format!("health {}", busy.local_addr().unwrap()));
    for (bad, part) in [
        (HOSTS.replace("hosts /", "host /"), "unknown directive `host`"),
        (HOSTS.replace("ready localhost:0", "ready localhost"), "`localhost` is not an address"),
        (HOSTS.to_owned() + ".:0 {\n}\n", "already defined"),
        ("import nowhere\n".to_owned(), "nowhere"),
        (String::new(), "has no server block"),
        (" \n# Being replaced.\n".to_owned(), "has no server block"),
        ("(snippet) {\n    whoami\n}\n".to_owned(), "has no server block"),
        ("{$NOT_SET} {\n    whoami\n}\n".to_owned(), "has no server block"),
        (busy_page, "listen tcp"),
        // Cut while it was written: in the block of a directive, and in its name.
        (HOSTS[..HOSTS.find("two.test").unwrap() + 2].to_owned(), "never closed"),
        (HOSTS[..HOSTS.find("hosts /").unwrap() + 3].to_owned(), "unknown directive `hos`"),
    ] {
        folder.write("Corefile", &bad);
        server.signal("USR1");
        let line = server.wait_for("Restart failed");
        if !line.contains(part) {
            server.wait_for(part);
        }
        assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
    }
    // Some editors remove a file before they write it again.
    std::fs::remove_file(&path).unwrap();
    server.signal("USR1");
    let line = server.wait_for("Restart failed");
    assert!(line.contains("cannot open "), "{line}");
    assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
}

#[test]
fn reads_later_corefiles_after_one_without_server_blocks() {
    let folder = Folder::new("empty");
    let corefile = HOSTS.replace("health localhost:0", "reload 2s 0s");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let mut client = Client::new(server.address_of("dns://:0"));
    folder.write("Corefile", "");
    server.wait_for("has no server block");
    assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
    folder.write("Corefile", &corefile.replace("reload 2s 0s", "reload 3s 0s"));
    server.wait_for("Reloading complete");
    assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
}

#[test]
fn a_corefile_without_server_blocks_does_not_start() {
    let folder = Folder::new("nothing");
    let path = folder.write("Corefile", "# Nothing yet.\n");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_portolan")).arg("-conf").arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("has no server block"), "{said}");
}

#[test]
fn reports_a_rejected_corefile_once_until_it_changes() {
    let folder = Folder::new("refused");
    let corefile = HOSTS.replace("health localhost:0", "reload 2s 0s");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    server.wait_for("Portolan-");
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy_page = corefile.replace("ready localhost:0", &format!("ready {}", busy.local_addr().unwrap()));
    // One Corefile that cannot be read, and one that cannot be built.
    for bad in [corefile.replace("hosts /", "host /"), busy_page] {
        folder.write("Corefile", &bad);
        server.wait_for("Restart failed");
        let since = Instant::now();
        wait_until("two looks", || since.elapsed() > Duration::from_millis(4500));
        assert!(!server.lines().iter().any(|line| line.contains("Restart failed")), "{bad}");
    }
    folder.write("Corefile", &corefile.replace("two.test", "three.test"));
    server.wait_for("Reloading complete");
}

#[test]
fn shutdown_loses_no_query() {
    let folder = Folder::new("term");
    let corefile = HOSTS.replace("health localhost:0", "health localhost:0 {\n lameduck 1s\n}");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let address = server.address_of("dns://:0");
    let stop = Arc::new(AtomicBool::new(false));
    let client = keep_asking(address, &stop);
    let lame = Instant::now();
    server.signal("TERM");
    server.wait_for("Going into lameduck mode for 1s");
    // During lameduck, clients have time to switch to another server.
    wait_until("most of the time", || lame.elapsed() > Duration::from_millis(800));
    stop.store(true, Ordering::Relaxed);
    assert!(client.join().unwrap() > 10);
    assert_eq!(server.wait(), Some(0));
    assert!(lame.elapsed() >= Duration::from_millis(900));
}

#[test]
fn sigquit_and_a_second_sigint_skip_lameduck() {
    let folder = Folder::new("hurry");
    let path = folder.write("Corefile", &HOSTS.replace("health localhost:0", "health localhost:0 {\n lameduck 10m\n}"));
    let mut server = Server::start(&path);
    server.wait_for("Portolan-");
    server.signal("QUIT");
    server.wait_for("SIGQUIT: Quitting process immediately");
    assert_eq!(server.wait(), Some(0));
    let mut server = Server::start(&path);
    server.wait_for("Portolan-");
    server.signal("INT");
    server.wait_for("SIGINT: Shutting down");
    server.wait_for("Going into lameduck mode for 600s");
    server.signal("INT");
    server.wait_for("SIGINT: Force quit");
    assert_eq!(server.wait(), Some(2));
}

/// Tests an upgrade in which both processes share the port for a while, as Pods with `hostNetwork` do.
#[test]
fn upgrade_with_a_shared_port_loses_no_query() {
    let folder = Folder::new("generations");
    let corefile = HOSTS.replace("health localhost:0", "health localhost:0 {\n lameduck 1s\n}");
    let mut before = Server::start(&folder.write("before", &corefile));
    let address = before.address_of("dns://:0");
    let after = corefile.replace(".:0", &format!(".:{}", address.port()));
    let mut after = Server::start(&folder.write("after", &after));
    after.wait_for("Portolan-");
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4).map(|_| keep_coming(address, &stop)).collect();
    before.signal("TERM");
    assert_eq!(before.wait(), Some(0));
    let answered_by_both = Instant::now();
    wait_until("the second instance alone answers for a while", || {
        answered_by_both.elapsed() > Duration::from_millis(300)
    });
    stop.store(true, Ordering::Relaxed);
    let answered: u32 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert!(answered > 100, "{answered} answers");
}

/// Does the same as [`keep_asking`], but with a new source port for each query, so that both servers get queries.
fn keep_coming(server: std::net::SocketAddr, stop: &Arc<AtomicBool>) -> thread::JoinHandle<u32> {
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let mut answered = 0;
        while !stop.load(Ordering::Relaxed) {
            let answer = Client::new(server).ask("one.test.", Type::A);
            assert_eq!(answer.map(|answer| answer.rcode()), Some(Rcode::NOERROR), "after {answered} answers");
            answered += 1;
        }
        answered
    })
}

/// Simulates a container's CPU quota of 0.1 CPU, in time slices of 10 ms.
#[test]
fn answers_in_each_time_slice_while_throttled() {
    let folder = Folder::new("throttled");
    let mut server = Server::start(&folder.write("Corefile", HOSTS));
    let client = Client::new(server.address_of("dns://:0"));
    let health = server.address_of("localhost:0");
    let stop = Arc::new(AtomicBool::new(false));
    let (asking, answered) = ask_in_time(client, &stop);
    let (probing, probed) = probe(health, &stop);
    let (mut slices, mut times, mut probes) = (0, Vec::new(), 0);
    // On a busy machine, the server does not run in each of its time slices.
    wait_until("time slices with answers", || {
        server.signal("STOP");
        thread::sleep(Duration::from_millis(90));
        server.signal("CONT");
        thread::sleep(Duration::from_millis(10));
        times.extend(answered.try_iter());
        (slices, probes) = (slices + 1, probes + probed.try_iter().count());
        slices >= 30 && times.len() > 100 && probes > 3
    });
    stop.store(true, Ordering::Relaxed);
    asking.join().unwrap();
    probing.join().unwrap();
    // Most queries are answered in the next time slice: no backlog takes the time of later ones.
    let late = times.iter().filter(|time| **time > Duration::from_millis(300)).count();
    assert!(late * 2 < times.len(), "{late} of {}", times.len());
    let before = server.processor_time();
    thread::sleep(Duration::from_millis(500));
    assert!(server.processor_time() - before < Duration::from_millis(100), "it is idle again");
}

#[test]
fn a_blocked_file_read_does_not_delay_shutdown() {
    let folder = Folder::new("endless");
    folder.write("shop/web.yaml", "");
    // Reading a FIFO blocks, as does a network file system whose server is gone.
    let pipe = folder.path().join("shop/pipe.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    let shop = folder.path().join("shop").display().to_string();
    let kubernetes = format!("kubernetes cluster.local {{\nmanifests {shop}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &HOSTS.replace("health", &format!("{kubernetes}health"))));
    server.wait_for("Portolan-");
    // A non-blocking open for writing succeeds only when there is a reader. The open writer that sends nothing blocks
    // the read.
    let open = || OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&pipe);
    let mut writer = None;
    wait_until("it reads the pipe", || {
        writer = open().ok();
        writer.is_some()
    });
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn connections_without_a_query_do_not_delay_shutdown() {
    let folder = Folder::new("silent");
    let mut server = Server::start(&folder.write("Corefile", HOSTS));
    let address = server.address_of("dns://:0");
    server.wait_for("Portolan-");
    let descriptors = format!("/proc/{}/fd", server.id());
    let open = || std::fs::read_dir(&descriptors).unwrap().count();
    let before = open();
    let clients: Vec<_> = (0..8).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    wait_until("all connections are accepted", || open() >= before + clients.len());
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
}

/// Sends queries without a pause until `stop` is set. Reports the latency of each answer.
fn ask_in_time(mut client: Client, stop: &Arc<AtomicBool>) -> (thread::JoinHandle<()>, Receiver<Duration>) {
    let (stop, (sender, times)) = (Arc::clone(stop), channel());
    let asking = thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let asked = Instant::now();
            assert!(client.ask("one.test.", Type::A).is_some(), "an answer");
            let _ = sender.send(asked.elapsed());
        }
    });
    (asking, times)
}

/// Probes the health page until `stop` is set. Reports each probe, and panics if one fails.
fn probe(health: std::net::SocketAddr, stop: &Arc<AtomicBool>) -> (thread::JoinHandle<()>, Receiver<()>) {
    let (stop, (sender, probes)) = (Arc::clone(stop), channel());
    let probing = thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            assert_eq!(page(health, "/health"), Some((200, "OK".to_owned())));
            let _ = sender.send(());
        }
    });
    (probing, probes)
}

#[test]
fn handles_signals_like_coredns() {
    let folder = Folder::new("signals");
    let path = folder.write("Corefile", HOSTS);
    let pid = folder.path().join("pid");
    let mut server = Server::start_with(&[
        "-conf".as_ref(),
        path.as_os_str(),
        "-pidfile".as_ref(),
        pid.as_os_str(),
        "-quiet".as_ref(),
    ]);
    let mut client = Client::new(server.address_of("dns://:0"));
    wait_until("the file with the process id", || std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    server.signal("HUP");
    assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
    server.signal("INT");
    assert_eq!(server.wait(), Some(0));
    assert!(!pid.exists());
    assert!(server.lines().iter().all(|line| !line.contains("Portolan-")), "-quiet");
}

#[test]
fn serves_without_a_writable_pidfile() {
    let folder = Folder::new("pidfile");
    let path = folder.write("Corefile", HOSTS);
    let pid = folder.path().join("nowhere/pid");
    let arguments = ["-conf".as_ref(), path.as_os_str(), "-pidfile".as_ref(), pid.as_os_str()];
    let mut server = Server::start_with(&arguments);
    server.wait_for("Could not write pidfile ");
    let mut client = Client::new(server.address_of("dns://:0"));
    assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
}

#[test]
fn reports_why_it_cannot_start() {
    let folder = Folder::new("wrong");
    for (text, part) in [
        (".:0 {\n nonsense\n}\n", "unknown directive `nonsense`"),
        (".:0 {\n forward . /nonexistent/resolv.conf\n}\n", "/nonexistent/resolv.conf"),
        (".:0 {\n bind 192.0.2.77\n whoami\n}\n", "listen udp 192.0.2.77"),
    ] {
        let mut server = Server::start(&folder.write("Corefile", text));
        assert_eq!(server.wait(), Some(1), "{text}");
        server.wait_for(part);
    }
    let mut server = Server::start(&folder.path().join("no such file"));
    assert_eq!(server.wait(), Some(1));
    server.wait_for("no such file");
}

#[test]
fn names_a_port_in_use_and_how_to_find_its_user() {
    let folder = Folder::new("in-use");
    let holder = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let mut server = Server::start(&folder.write("Corefile", &format!(".:{port} {{\n bind 127.0.0.1\n whoami\n}}\n")));
    assert_eq!(server.wait(), Some(1));
    let line = server.wait_for(&format!("listen udp 127.0.0.1:{port}: address already in use"));
    assert!(line.contains(&format!("`ss -lunp 'sport = :{port}'`")), "{line}");
}

#[test]
fn warns_about_a_port_shared_with_another_process() {
    let folder = Folder::new("shared");
    let first = folder.write("Corefile", ".:0 {\n bind 127.0.0.1\n whoami\n}\n");
    // The port must be free at the second address, too, where a socket of another test may have it.
    let is_free_elsewhere = |port| {
        let address = ("127.0.0.2", port);
        std::net::UdpSocket::bind(address).is_ok() && std::net::TcpListener::bind(address).is_ok()
    };
    let start = || {
        let mut server = Server::start(&first);
        let port = server.address_of("dns://127.0.0.1:0").port();
        is_free_elsewhere(port).then_some((server, port))
    };
    let (_first, port) = std::iter::repeat_with(start).take(100).flatten().next().expect("a port");
    let corefile =
        format!(".:{port} {{\n bind 127.0.0.1\n whoami\n}}\nother.test:{port} {{\n bind 127.0.0.2\n whoami\n}}\n");
    let mut second = Server::start(&folder.write("Second", &corefile));
    second.wait_for(&format!("[WARNING] another process listens on dns://127.0.0.1:{port} too"));
    assert!(!second.lines().iter().any(|line| line.contains("127.0.0.2") && line.contains("another process")));
}

#[test]
fn names_a_page_of_several_server_blocks_once() {
    let folder = Folder::new("pages-shared");
    let corefile =
        ["a.test", "b.test"].map(|zone| format!("{zone}:0 {{\n    whoami\n    prometheus localhost:0\n}}\n"));
    let mut server = Server::start(&folder.write("Corefile", &corefile.concat()));
    server.wait_for(" for localhost:0 (/metrics)");
}

#[test]
fn answers_queries_while_the_page_port_is_in_use() {
    let folder = Folder::new("pages-taken");
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let pages = HOSTS.replace("localhost:0", &address.to_string());
    let mut server = Server::start(&folder.write("Corefile", &pages));
    server.wait_for(&format!("[ERROR] listen tcp {address}: address already in use"));
    let mut client = Client::new(server.address_of("dns://:0"));
    assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
    drop(holder);
    server.wait_for(&format!("listening on {address} for {address} (/health, /metrics, /ready)"));
    assert_eq!(page(address, "/health"), Some((200, "OK".to_owned())));
    assert!(page(address, "/metrics").unwrap().1.contains("coredns_build_info{"));
}

#[test]
fn logs_and_ignores_sigusr2() {
    let folder = Folder::new("usr2");
    let mut server = Server::start(&folder.write("Corefile", HOSTS));
    let mut client = Client::new(server.address_of("dns://:0"));
    server.signal("USR2");
    server.wait_for("[WARNING] SIGUSR2 is ignored");
    assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
}

#[test]
fn check_reports_errors_with_their_place() {
    let folder = Folder::new("check");
    let run = |text: &str| {
        let path = folder.write("Corefile", text);
        let output = Command::new(env!("CARGO_BIN_EXE_portolan")).arg("check").arg(path).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = run(HOSTS);
    assert_eq!((code, text.as_str()), (Some(0), ""));
    let (code, text) = run(".:53 {\n  cach 30\n  forward . 1.1.1.1 {\n    polcy random\n  }\n}\n.:53 {\n}\n");
    assert_eq!(code, Some(1));
    for part in [
        "unknown directive `cach`",
        "did you mean `cache`?",
        "Corefile:2:3",
        "unknown property `polcy`",
        "already defined",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // An invalid view still counts as a view.
    let (code, text) = run(".:53 {\n  view a {\n    expr (\n  }\n  whoami\n}\n.:53 {\n  whoami\n}\n");
    assert!(code == Some(1) && !text.contains("already defined"), "{text}");
}

#[test]
fn answers_malformed_queries_as_the_standards_require() {
    let folder = Folder::new("garbage");
    let mut server = Server::start(&folder.write("Corefile", HOSTS));
    let address = server.address_of("dns://:0");
    let client = Client::new(address);
    let header = |flags: u8, questions: u8| [0, 7, flags, 0, 0, questions, 0, 0, 0, 0, 0, 0];
    let question = b"\x03one\x04test\0\0\x01\0\x01";
    let cases: [(&str, Vec<u8>, Option<Rcode>); 9] = [
        ("shorter than a header", vec![1; 11], None),
        ("an answer", [&header(0x80, 1)[..], question].concat(), None),
        ("no question", header(0, 0).to_vec(), Some(Rcode::FORMERR)),
        ("two questions", [&header(0, 2)[..], question, question].concat(), Some(Rcode::FORMERR)),
        ("a question that is not there", header(0, 1).to_vec(), Some(Rcode::FORMERR)),
        ("a pointer to itself", [&header(0, 1)[..], b"\xc0\x0c\0\x01\0\x01"].concat(), Some(Rcode::FORMERR)),
        ("UPDATE", [&header(5 << 3, 1)[..], question].concat(), Some(Rcode::NOTIMP)),
        ("a label of 64 bytes", [&header(0, 1)[..], &[64; 70]].concat(), Some(Rcode::FORMERR)),
        ("four thousand bytes", [&header(0, 1)[..], &[1; 4000]].concat(), Some(Rcode::FORMERR)),
    ];
    for (what, bytes, rcode) in cases {
        client.send_bytes(&bytes);
        // Answers come in order, so the answer to the next query shows that no other one is missing.
        let mut prober = Client::new(address);
        let got = if rcode.is_some() { client.receive_any().map(|answer| answer.rcode()) } else { None };
        assert_eq!(got, rcode, "{what}");
        assert_eq!(prober.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR, "after {what}");
    }
}

#[test]
fn check_prints_the_permissions_a_corefile_needs() {
    let folder = Folder::new("rbac");
    let rights = |stanza: &str| {
        let corefile =
            folder.write("Corefile", &format!("cluster.local {{\n    kubernetes {{\n        {stanza}\n    }}\n}}\n"));
        let output = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(["check".as_ref(), "--rbac".as_ref(), corefile.as_os_str()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let everywhere = rights("pods verified");
    assert!(
        everywhere.contains("kind: ClusterRole\n") && everywhere.contains("resources: [namespaces, services, pods]\n")
    );
    assert!(everywhere.contains("[\"discovery.k8s.io\"]\n    resources: [endpointslices]\n    verbs: [list, watch]\n"));
    assert!(!rights("noendpoints").contains("endpointslices") && !rights("ttl 5").contains("pods"));
    let here_and_there = rights("namespaces shop bank");
    assert!(!here_and_there.contains("ClusterRole") && !here_and_there.contains("namespaces]"));
    for namespace in ["shop", "bank"] {
        assert!(
            here_and_there.contains(&format!("kind: Role\nmetadata:\n  name: portolan\n  namespace: {namespace}\n"))
        );
    }
    let selected = rights("namespace_labels dns=yes");
    let (of_namespaces, in_them) = selected.split_once("---\n").unwrap();
    assert!(of_namespaces.contains("name: portolan\n") && of_namespaces.contains("resources: [namespaces]\n"));
    assert!(!of_namespaces.contains("services") && in_them.starts_with("# Bind this role with a RoleBinding in each"));
    assert!(in_them.contains("name: portolan:namespace\n") && in_them.contains("resources: [services]\n"));
    assert!(in_them.contains("resources: [endpointslices]\n"));
    assert_eq!(rights(&format!("manifests {}", folder.path().display())), "");
}

/// Checks that a connection is closed after as many queries as its limit allows.
#[test]
fn closes_a_connection_after_its_maximum_of_queries() {
    let folder = Folder::new("queries");
    let corefile = ".:0 {\n timeouts {\n maxtcpqueries 2\n idle 1h\n }\n whoami\n}\n";
    let mut server = Server::start(&folder.write("Corefile", corefile));
    let mut stream = std::net::TcpStream::connect(server.address_of("dns://:0")).unwrap();
    let query = crate::support::query(7, "one.test.", Type::A);
    let framed = [&u16::try_from(query.len()).unwrap().to_be_bytes()[..], &query].concat();
    stream.write_all(&framed.repeat(3)).unwrap();
    let mut answers = Vec::new();
    // Unread queries make the kernel reset the connection, but only after the answers have arrived.
    let _ = stream.read_to_end(&mut answers);
    let length = usize::from(u16::from_be_bytes([answers[0], answers[1]])) + 2;
    assert_eq!(answers.len(), 2 * length);
}

/// Checks that programs run when a configuration is applied and when the process ends.
#[test]
fn runs_commands_at_startup_and_shutdown() {
    let folder = Folder::new("commands");
    let file = |name: &str| folder.path().join(name);
    let on = |when: &str| format!("on {when} touch {}\n", file(when).display());
    let corefile = format!(".:0 {{\n{}{}on startup false\nwhoami\n}}\n", on("startup"), on("shutdown"));
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    server.wait_for("plugin/on: false: exit status: 1");
    assert!(file("startup").exists() && !file("shutdown").exists());
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(file("shutdown").exists());
}

/// Checks that a trusted proxy sets the client address, and that the server does not serve an untrusted one.
#[test]
fn accepts_client_addresses_from_trusted_proxies_only() {
    let folder = Folder::new("proxies");
    let corefile = |policy: &str| format!(".:0 {{\n proxyproto {{\n default {policy}\n }}\n whoami\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile("use")));
    let address = server.address_of("dns://:0");
    let query = crate::support::query(7, "one.test.", Type::A);
    let header = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c\x0a\x01\x02\x03\xc0\0\x02\x01\x12\x34\0\x35";
    let mut client = Client::new(address);
    client.send_bytes(&[&header[..], &query].concat());
    let named = "10.1.2.3".parse::<std::net::IpAddr>().unwrap();
    assert_eq!(client.receive_any().unwrap().addresses(), [named]);
    assert_ne!(client.ask("one.test.", Type::A).unwrap().addresses(), [named]);

    let framed = [&u16::try_from(query.len()).unwrap().to_be_bytes()[..], &query].concat();
    let over_tcp = |address, start: &[u8]| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(&[start, &framed].concat()).unwrap();
        // The server may already have closed the connection of an untrusted proxy.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    let answer = over_tcp(address, b"PROXY TCP4 10.1.2.3 192.0.2.1 4660 53\r\n");
    assert!(answer.windows(4).any(|part| part == [10, 1, 2, 3]), "{answer:?}");
    assert!(!over_tcp(address, b"").is_empty());

    let mut server = Server::start(&folder.write("Corefile", &corefile("reject")));
    let address = server.address_of("dns://:0");
    assert!(over_tcp(address, header).is_empty());
    assert!(!over_tcp(address, b"").is_empty());
}

#[test]
fn tlvs_of_proxies_are_a_label() {
    let folder = Folder::new("proxy-tlvs");
    let corefile = |tlvs: &str| {
        let options = format!("proxyproto {{\n allow 127.0.0.1/32\n {tlvs}\n }}");
        format!(
            ".:0 {{\n metadata\n {options}\n whoami\n prometheus localhost:0\n \
             log . \"{{remote}} <{{/proxyproto/tlv}}>\"\n}}\n"
        )
    };
    let mut server = Server::start(&folder.write("Corefile", &corefile("tlv_metadata")));
    let (address, pages) = (server.address_of("dns://:0"), server.address_of("localhost:0"));
    let query = crate::support::query(7, "one.test.", Type::A);
    let header = |command: u8, tlvs: &[u8]| {
        let length = u16::try_from(12 + tlvs.len()).unwrap().to_be_bytes();
        let addresses = b"\x0a\x09\x08\x07\xc0\0\x02\x01\x12\x34\0\x35";
        [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[command, 0x12], &length, addresses, tlvs].concat()
    };
    let client = Client::new(address);
    let ask = |start: &[u8]| {
        client.send_bytes(&[start, &query].concat());
        client.receive_any().unwrap();
    };
    let hello = b"\xea\0\x05hello";
    ask(&header(0x21, hello));
    server.wait_for("10.9.8.7 <ea000568656c6c6f>");
    // The value of padding is left out.
    ask(&header(0x21, &[&b"\x04\0\x02ab"[..], hello].concat()));
    server.wait_for("10.9.8.7 <040000ea000568656c6c6f>");
    for without in [&b""[..], b"\xea\0\x06hello", b"\xea\0", &[&b"\xea\x02\0"[..], &[0; 512]].concat()] {
        ask(&header(0x21, without));
        server.wait_for("10.9.8.7 <->");
    }
    ask(&header(0x20, hello));
    server.wait_for("127.0.0.1 <->");
    let hits = "portolan_limit_hits_total{limit=\"proxy_tlvs\"} 1\n";
    assert!(page(pages, "/metrics").unwrap().1.contains(hits));

    // All queries of a connection have the TLVs of its header.
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let framed = [&u16::try_from(query.len()).unwrap().to_be_bytes()[..], &query].concat();
    stream.write_all(&[&header(0x21, b"\xe0\0\x01\x09"), &framed[..], &framed].concat()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    (0..2).for_each(|_| drop(server.wait_for("10.9.8.7 <e0000109>")));

    let mut server = Server::start(&folder.write("Corefile", &corefile("")));
    let client = Client::new(server.address_of("dns://:0"));
    client.send_bytes(&[&header(0x21, hello)[..], &query].concat());
    client.receive_any().unwrap();
    server.wait_for("10.9.8.7 <->");
}

/// The header precedes the handshake, and its TLVs belong to all queries of the connection.
#[test]
fn tlvs_of_proxies_are_a_label_over_encrypted_transports() {
    let folder = Folder::new("proxy-tlvs-encrypted");
    crate::support::certify(&folder, &["dns.example.org"]);
    let (path, ca) = (folder.path().display().to_string(), folder.path().join("ca.pem"));
    let block = |scheme: &str| {
        format!(
            "{scheme}://.:0 {{\n bind 127.0.0.1\n tls {path}/cert.pem {path}/key.pem\n metadata\n whoami\n \
             proxyproto {{\n allow 127.0.0.1/32\n tlv_metadata\n }}\n \
             log . \"{scheme} {{remote}} <{{/proxyproto/tlv}}>\"\n}}\n"
        )
    };
    let schemes = ["tls", "https", "grpc"];
    let mut server = Server::start(&folder.write("Corefile", &schemes.map(block).concat()));
    let addresses = schemes.map(|scheme| server.address_of(&format!("{scheme}://127.0.0.1:0")));
    // Version 2, PROXY, TCP over IPv4, and a TLV of type 234.
    let header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x14\x0a\x09\x08\x07\xc0\0\x02\x01\x12\x34\x03\x55\xea\0\x05hello";
    let ask = [encrypted::over_tls, encrypted::over_https, encrypted::over_grpc];
    for ((ask, scheme), address) in ask.into_iter().zip(schemes).zip(addresses) {
        let answer = ask(header, address, &ca, &crate::support::query(7, "one.test.", Type::A));
        assert_eq!(answer.rcode(), Rcode::NOERROR, "{scheme}");
        server.wait_for(&format!("{scheme} 10.9.8.7 <ea000568656c6c6f>"));
    }
}

#[test]
fn metrics_include_the_process_and_counters_at_zero() {
    let folder = Folder::new("metrics");
    let mut server = Server::start(&folder.write("Corefile", HOSTS));
    let address = server.address_of("localhost:0");
    let text = page(address, "/metrics").unwrap().1;
    let value = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.parse::<f64>().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    for name in ["open_fds", "max_fds", "virtual_memory_bytes", "virtual_memory_max_bytes", "resident_memory_bytes"] {
        assert!(value(&format!("process_{name}")) > 0.0, "{name}");
        assert!(text.contains(&format!("# TYPE process_{name} gauge\n")), "{name}");
    }
    for name in ["cpu_seconds_total", "network_receive_bytes_total", "network_transmit_bytes_total"] {
        assert!(value(&format!("process_{name}")) >= 0.0, "{name}");
        assert!(text.contains(&format!("# TYPE process_{name} counter\n")), "{name}");
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((now - value("process_start_time_seconds")).abs() < 60.0);
    for name in ["coredns_reload_failed_total", "portolan_log_lines_dropped_total"] {
        assert_eq!(value(name), 0.0, "{name}");
    }
    assert_eq!(value("portolan_limit_hits_total{limit=\"streams\"}"), 0.0);
    let build = text.lines().find(|line| line.starts_with("coredns_build_info{")).expect("the build");
    let version = Command::new(env!("CARGO_BIN_EXE_portolan")).arg("-version").output().expect("its version");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let commit = version.trim().rsplit(", ").next().expect("a commit");
    assert!(build.contains(&format!("revision=\"{commit}\"")), "{build} {version}");
}

#[test]
fn compresses_metrics_if_the_client_accepts_gzip() {
    let folder = Folder::new("gzip");
    let mut server = Server::start(&folder.write("Corefile", HOSTS));
    let address = server.address_of("localhost:0");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&answer[end..]).read_to_string(&mut text).unwrap();
    assert!(text.contains("process_open_fds ") && answer.len() < text.len() / 2);
}
