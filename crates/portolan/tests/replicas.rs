//! Commands for all replicas of a Service: three servers on this machine, behind a program in place of `kubectl` that
//! knows their Pods.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;

use crate::support::control::{ControlSocket, Ran};
use crate::support::{Client, Folder, Server};
use serde_json::{Value, json};
use wire::Type;

/// Pods of the Service. The server of the last one never ran.
const PODS: [&str; 4] = ["dns-a", "dns-b", "dns-c", "dns-gone"];

/// Three servers and a `kubectl`.
struct Bed {
    folder: Folder,
    servers: Vec<(Server, SocketAddr)>,
}

impl Bed {
    fn start(pods: &[&str]) -> Bed {
        let folder = Folder::new("replicas");
        let servers: Vec<_> = PODS[..3].iter().map(|pod| server(&folder, pod)).collect();
        let endpoint = |pod: &&str| json!({ "addresses": ["192.0.2.1"], "targetRef": { "kind": "Pod", "name": pod } });
        let endpoints: Vec<Value> = pods.iter().map(endpoint).collect();
        let slices = json!({ "items": [{ "endpoints": endpoints }, { "endpoints": null }] });
        let slices = folder.write("slices.json", &slices.to_string());
        let sockets: String =
            servers.iter().zip(PODS).map(|((_, _, socket), pod)| format!("{pod}) socket={socket};;\n")).collect();
        let binary = env!("CARGO_BIN_EXE_portolan");
        let script = format!(
            "#!/bin/sh\necho \"$*\" >> {calls}\nif [ -e {denied} ]; then echo '{{\"items\":[]}}'; cat {denied} >&2; \
             exit 1; fi\ncase \"$*\" in *'get endpointslices -l kubernetes.io/service-name=kube-dns -o json') exec \
             cat {slices};; esac\nwhile [ \"$1\" != exec ]; do shift; done\ncase \"$2\" in {sockets}*) echo \"Error \
             from server (NotFound): pods \\\"$2\\\" not found\" >&2; exit 1;; esac\nshift 2; [ \"$1\" = -c ] && \
             shift 2; shift 2\ncase \"$*\" in *--\\ *) first=\"${{*%% -- *}}\"; rest=\"${{*#* -- }}\";; *) \
             first=\"$*\"; rest=;; esac\n{binary} $first --socket \"$socket\" ${{rest:+-- $rest}}\ncode=$?; [ $code = \
             0 ] || echo \"command terminated with exit code $code\" >&2\nexit $code\n",
            denied = folder.path().join("denied").display(),
            calls = folder.path().join("calls").display(),
            slices = slices.display(),
        );
        let kubectl = folder.write("bin/kubectl", &script);
        std::fs::set_permissions(kubectl, PermissionsExt::from_mode(0o755)).unwrap();
        symlink(binary, folder.path().join("bin/kubectl-portolan")).unwrap();
        let servers = servers.into_iter().map(|(server, address, _)| (server, address)).collect();
        Bed { folder, servers }
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:{}", self.folder.path().join("bin").display(), std::env::var("PATH").unwrap());
        command.args(words).env("PATH", path);
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        self.command(env!("CARGO_BIN_EXE_portolan"), words).output().unwrap().into()
    }

    fn plugin(&self, words: &[&str]) -> Ran {
        self.command(self.folder.path().join("bin/kubectl-portolan").to_str().unwrap(), words).output().unwrap().into()
    }

    fn ask(&self, at: usize, name: &str) {
        Client::new(self.servers[at].1).ask(name, Type::A);
    }
}

/// Starts the server of a Pod, which answers the names below `a.test` and refuses all others.
fn server(folder: &Folder, pod: &str) -> (Server, SocketAddr, String) {
    let socket = folder.path().join(format!("{pod}.sock")).display().to_string();
    let text = format!(
        ".:0 {{\n bind 127.0.0.1\n control {socket}\n prometheus 127.0.0.1:0\n template IN A a.test {{\n  \
         answer \"{{{{ .Name }}}} 60 IN A 192.0.2.7\"\n }}\n}}\n"
    );
    let mut server = Server::start(&folder.write(&format!("{pod}.corefile"), &text));
    let address = server.address_of("dns://127.0.0.1:0");
    let socket = ControlSocket::of(&mut server).0;
    (server, address, socket)
}

#[test]
fn shows_the_status_of_every_replica() {
    let bed = Bed::start(&PODS[..3]);
    let ran = bed.run(&["status", "--all"]);
    // Each has a socket of its own in its Corefile, so the configurations differ.
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("Service kube-system/kube-dns · 3 replicas\n"), "{}", ran.stdout);
    for pod in &PODS[..3] {
        let line =
            ran.stdout.lines().find(|line| line.contains(pod)).unwrap_or_else(|| panic!("{pod}: {}", ran.stdout));
        assert!(line.contains("✓ ready"), "{line}");
    }
    let last = ran.stdout.lines().last().unwrap();
    assert!(last.starts_with("✗ PD-C02  the replicas serve different configurations: sha "), "{}", ran.stdout);
    assert!(PODS[..3].iter().all(|pod| last.contains(&format!("… on {pod}"))), "{last}");
    let ran = bed.run(&["status", "--all=kube-system/kube-dns", "--context", "prod", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let names: Vec<&str> =
        document["replicas"].as_array().unwrap().iter().map(|one| one["replica"].as_str().unwrap()).collect();
    assert_eq!(names, PODS[..3]);
    assert_eq!(document["replicas"][1]["status"]["serving"], "ready");
    assert_eq!(document["problems"][0]["code"], "PD-C02", "{document}");
    let calls = std::fs::read_to_string(bed.folder.path().join("calls")).unwrap();
    assert!(calls.contains("--context prod -n kube-system exec dns-b -- /portolan status --json"), "{calls}");
}

#[test]
fn one_configuration_is_no_problem() {
    let bed = Bed::start(&PODS[..1]);
    let ran = bed.run(&["status", "--all"]);
    assert_eq!((ran.code, ran.stdout.contains("PD-C02")), (0, false), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn names_a_replica_that_cannot_be_reached() {
    let bed = Bed::start(&PODS);
    let missing = "✗ dns-gone: Error from server (NotFound): pods \"dns-gone\" not found\n";
    let ran = bed.run(&["status", "--all"]);
    assert!(ran.code == 3 && ran.stdout.contains(missing), "{} {}", ran.code, ran.stdout);
    assert!(ran.stdout.contains("dns-gone  no answer"), "{}", ran.stdout);
    let ran = bed.run(&["top", "--all"]);
    assert!(ran.code == 3 && ran.stdout.ends_with(missing), "{} {}", ran.code, ran.stdout);
    let ran = bed.run(&["tail", "--all", "--last", "5"]);
    assert!(ran.code == 3 && ran.stderr == missing, "{} {}", ran.code, ran.stderr);
    let ran = bed.run(&["status", "--all", "--json"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(ran.code == 3 && document["replicas"][3]["error"].as_str().unwrap().contains("NotFound"), "{document}");
}

#[test]
fn merges_the_groups_and_the_failures_of_all_replicas() {
    let bed = Bed::start(&PODS[..3]);
    (0..3).for_each(|_| bed.ask(1, "busy.a.test."));
    (0..2).for_each(|_| bed.ask(2, "usual.a.test."));
    bed.ask(2, "first.b.test.");
    bed.ask(0, "second.b.test.");
    bed.ask(2, "third.b.test.");
    let rows = || bed.run(&["top", "--all", "--by", "name"]).stdout;
    crate::support::wait_until("all queries are counted", || {
        ["busy", "usual", "first", "second", "third"].iter().all(|name| rows().contains(name))
    });
    let table = rows();
    let lines: Vec<&str> = table.lines().skip_while(|line| !line.starts_with(" REPLICA")).skip(1).collect();
    assert!(lines[0].starts_with(" dns-b    busy.a.test."), "{table}");
    assert!(lines[1].starts_with(" dns-c    usual.a.test.") && lines.len() == 5, "{table}");
    let ran = bed.run(&["tail", "--all", "--last", "9"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut words: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(words.is_sorted_by_key(|words| words[1]), "in the order of the queries: {}", ran.stdout);
    words.sort_by_key(|words| words[5]);
    let found: Vec<(&str, &str)> = words.iter().map(|words| (words[0], words[5])).collect();
    let expected = [("dns-c", "first.b.test."), ("dns-a", "second.b.test."), ("dns-c", "third.b.test.")];
    assert_eq!(found, expected, "{}", ran.stdout);
    let ran = bed.run(&["tail", "--all", "--last", "2", "--json"]);
    let last: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(last.len() == 2 && last.iter().all(|one| one["line"]["query"]["rcode"] == "SERVFAIL"), "{last:?}");
    assert!(last.iter().all(|one| PODS.iter().any(|pod| one["replica"] == *pod)), "{last:?}");
}

#[test]
fn follows_the_queries_of_all_replicas() {
    let bed = Bed::start(&PODS[..3]);
    let binary = env!("CARGO_BIN_EXE_portolan");
    let mut child = bed.command(binary, &["tail", "--all"]).stdout(Stdio::piped()).spawn().unwrap();
    let (lines, arrived) = std::sync::mpsc::channel();
    let stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
    });
    let mut seen: Vec<String> = Vec::new();
    crate::support::wait_until("a query of each replica is shown", || {
        // A stream begins some time after the start of the command.
        (0..3).for_each(|at| bed.ask(at, &format!("n{at}.a.test.")));
        seen.extend(arrived.try_iter());
        (0..3).all(|at| seen.iter().any(|line| line.starts_with(PODS[at]) && line.contains(&format!("n{at}.a.test."))))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    drop(arrived);
    drop(bed);
    let _ = reader.join();
}

/// Reads lines on a thread of its own.
fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (lines, arrived) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
    });
    arrived
}

#[test]
fn names_a_replica_that_is_lost_while_the_others_are_followed() {
    let mut bed = Bed::start(&PODS);
    let mut command = bed.command(env!("CARGO_BIN_EXE_portolan"), &["tail", "--all"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (lines, errors) = (lines_of(child.stdout.take().unwrap()), lines_of(child.stderr.take().unwrap()));
    let is_named = |pod: &str| errors.try_iter().any(|line| line.starts_with(&format!("✗ {pod}: ")));
    crate::support::wait_until("the missing replica is named", || is_named("dns-gone"));
    crate::support::wait_until("a query is shown", || {
        bed.ask(2, "lost.a.test.");
        lines.try_iter().any(|line| line.starts_with("dns-c") && line.contains("lost.a.test."))
    });
    drop(bed.servers.pop());
    crate::support::wait_until("the lost replica is named", || is_named("dns-c"));
    crate::support::wait_until("the others are followed", || {
        bed.ask(0, "still.a.test.");
        lines.try_iter().any(|line| line.starts_with("dns-a") && line.contains("still.a.test."))
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn is_a_plugin_of_kubectl() {
    let bed = Bed::start(&PODS[..3]);
    let ran = bed.plugin(&["status"]);
    assert!(ran.code == 1 && ran.stdout.contains("· 3 replicas"), "{} {}{}", ran.code, ran.stdout, ran.stderr);
    let ran = bed.plugin(&[]);
    assert!(
        ran.code == 2 && ran.stderr.contains("Usage: kubectl portolan"),
        "{} {}{}",
        ran.code,
        ran.stdout,
        ran.stderr
    );
    let help = bed.plugin(&["status", "--help"]).stdout;
    assert!(help.contains("Usage: kubectl portolan status"), "{help}");
    // These options of other commands have the same names.
    let socket = bed.folder.path().join("dns-a.sock").display().to_string();
    let ran = bed.plugin(&["cache", "flush", "--all", "--socket", &socket]);
    assert!(ran.stdout.starts_with("no server block has `cache`"), "{}{}", ran.stdout, ran.stderr);
    let ran = bed.run(&["doctor", "--context", "prod", "--kubeconfig", "/nowhere"]);
    assert!(ran.code == 2 && !ran.stderr.contains("no running server"), "{}{}", ran.stdout, ran.stderr);
    // A socket is that of one server.
    let ran = bed.plugin(&["status", "--socket", &socket]);
    assert!(ran.code == 0 && !ran.stdout.contains("replicas\n"), "{}{}", ran.stdout, ran.stderr);
    let ran = bed.run(&["status", "--all", "--socket", &socket]);
    assert!(ran.code == 2 && ran.stderr.contains("exclude each other"), "{}", ran.stderr);
}

#[test]
fn says_why_no_replica_can_be_asked() {
    let bed = Bed::start(&[]);
    let ran = bed.run(&["status", "--all"]);
    assert!(ran.code == 2 && ran.stderr.contains("Service kube-system/kube-dns has no Pods"), "{}", ran.stderr);
    let ran = bed.run(&["status", "--all=kube-dns"]);
    assert!(ran.code == 2 && ran.stderr.contains("`kube-dns` is not NAMESPACE/SERVICE"), "{}", ran.stderr);
    let ran = bed.run(&["status", "--all", "--wait", "1s"]);
    assert!(ran.code == 2 && ran.stderr.contains("leave out `--all`"), "{}", ran.stderr);
    let ran = bed.run(&["top", "--all=dns/other"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    let ran: Ran = command.args(["status", "--all"]).env("PATH", "/nowhere").output().unwrap().into();
    assert!(ran.code == 2 && ran.stderr.contains("`--all` runs `kubectl`"), "{}", ran.stderr);
}

#[test]
fn runs_other_commands_in_every_replica() {
    let bed = Bed::start(&PODS);
    let missing = "✗ dns-gone: Error from server (NotFound): pods \"dns-gone\" not found\n";
    let mut failed = Vec::new();
    for (words, expected) in [
        (&["explain", "web.a.test."][..], "web.a.test.  A"),
        (&["ready"], "ready"),
        (&["reload"], "✓ generation 2"),
        (&["requests"], "no query waits"),
        (&["loglevel", "errors=debug", "--for", "1m"], "debug"),
        (&["cache", "get", "web.a.test."], "no server block has `cache`"),
        (&["cache", "flush", "--all"], "no server block has `cache`"),
        (&["cache", "flush", "--below", "a.test."], "no server block has `cache`"),
    ] {
        let ran = bed.plugin(words);
        assert_eq!(ran.code, 3, "{words:?}: {} {}", ran.stdout, ran.stderr);
        assert!(ran.stdout.starts_with("── dns-a") && ran.stdout.ends_with(missing), "{words:?}: {}", ran.stdout);
        failed.extend((!ran.stdout.contains(expected)).then(|| format!("{words:?}: {}", ran.stdout)));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let ran = bed.run(&["explain", "web.a.test.", "--all", "--json"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let replicas = document["replicas"].as_array().unwrap();
    assert_eq!(replicas[1]["output"]["question"]["name"], "web.a.test.", "{document}");
    assert!(replicas[3]["error"].as_str().unwrap().contains("NotFound"), "{document}");
    let ran = bed.run(&["cache", "flush", "--all", "--replicas=dns/kube-dns", "--container", "dns", "--json"]);
    assert!(ran.code == 3 && serde_json::from_str::<Value>(&ran.stdout).is_ok(), "{} {}", ran.stdout, ran.stderr);
    let calls = std::fs::read_to_string(bed.folder.path().join("calls")).unwrap();
    assert!(calls.contains("-n dns exec dns-a -c dns -- /portolan cache flush --json --all"), "{calls}");
    assert!(calls.contains("/portolan cache get -- web.a.test."), "{calls}");
}

#[test]
fn explains_from_files_as_a_plugin_too() {
    let bed = Bed::start(&PODS[..3]);
    let corefile = bed.folder.path().join("dns-a.corefile").display().to_string();
    let ran = bed.plugin(&["explain", "web.a.test.", "--conf", &corefile]);
    assert!(ran.code == 0 && !ran.stdout.contains("──"), "{} {}", ran.stdout, ran.stderr);
    let ran = bed.run(&["explain", "web.a.test.", "--conf", &corefile, "--all"]);
    assert!(ran.code == 2 && ran.stderr.contains("`--all` and `--conf` exclude each other"), "{}", ran.stderr);
}

#[test]
fn writes_a_report_of_every_replica() {
    let bed = Bed::start(&PODS);
    let output = bed.folder.path().join("reports");
    std::fs::create_dir(&output).unwrap();
    let ran = bed.run(&["report", "--all", "--output", output.to_str().unwrap()]);
    assert_eq!(ran.code, 3, "{} {}", ran.stdout, ran.stderr);
    for pod in &PODS[..3] {
        let archive = std::fs::read(output.join(format!("portolan-report-{pod}.tar.gz"))).unwrap();
        assert_eq!(archive[..2], [0x1f, 0x8b], "{pod}: gzip");
    }
    assert_eq!(std::fs::read_dir(&output).unwrap().count(), 3);
    let ran = bed.run(&["report", "--all", "--output", output.join("x").to_str().unwrap()]);
    assert!(ran.code == 2 && ran.stderr.contains("is no directory"), "{}", ran.stderr);
}

/// kubectl prints an empty list beside its error, and the exit code of a command after what the command printed.
#[test]
fn names_the_cause_and_not_what_follows_from_it() {
    let bed = Bed::start(&PODS[..1]);
    let denied =
        "Error from server (Forbidden): endpointslices.discovery.k8s.io is forbidden: User \"jane\" cannot list\n";
    let path = bed.folder.write("denied", denied);
    for words in [&["status", "--all"][..], &["top", "--all"], &["tail", "--all"], &["reload", "--all"]] {
        let ran = bed.run(words);
        assert!(ran.code == 2 && ran.stderr.contains("(Forbidden)"), "{words:?}: {} {}", ran.code, ran.stderr);
        assert!(!ran.stderr.contains("no Pods"), "{words:?}: {}", ran.stderr);
    }
    std::fs::remove_file(path).unwrap();
    std::fs::remove_file(bed.folder.path().join("dns-a.sock")).unwrap();
    for words in [&["status", "--all"][..], &["reload", "--all"], &["explain", "a.test.", "--all"]] {
        let ran = bed.run(words);
        assert!(ran.code == 2 && ran.stderr.contains("dns-a.sock"), "{words:?}: {} {}", ran.code, ran.stderr);
    }
}

/// A request that every replica refuses is an error in the command line; no replica is unreachable.
#[test]
fn says_once_what_every_replica_refuses() {
    let bed = Bed::start(&PODS[..3]);
    for (words, reason) in [
        (&["explain", "a.test.", "--from", "nobody"][..], "`nobody` is not a client"),
        (&["explain", "a.test.", "NOTYPE"], "`NOTYPE` is not a record type"),
        (&["tail", "--type", "NOTYPE"], "NOTYPE"),
        (&["tail", "--client", "here"], "here"),
        (&["tail", "--last", "3", "--rcode", "NOCODE"], "NOCODE"),
        (&["loglevel", "nothing=debug"], "nothing"),
    ] {
        let ran = bed.run(&[words, &["--all"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{words:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(reason) && ran.stderr.ends_with("(all 3 replicas)\n"), "{words:?}: {}", ran.stderr);
    }
}
