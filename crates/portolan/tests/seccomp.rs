//! The seccomp profile of `deploy/seccomp.json`. Every other test of this program runs its servers under it too
//! ([`crate::support::seccomp`]).

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use fakeapi::FakeApi;
use serde_json::{Value, json};

use crate::support::control::ControlSocket;
use crate::support::encrypted::over_tls;
use crate::support::upstream::Upstream;
use crate::support::{Client, Folder, PATIENCE, Server, certify, exchange_framed, query, seccomp, wait_until};
use wire::{Rcode, Type};

/// Calls that lead out of a container, or into the kernel's less tested parts.
const DANGEROUS: [&str; 24] = [
    "add_key",
    "bpf",
    "chroot",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "init_module",
    "io_uring_setup",
    "kexec_load",
    "keyctl",
    "memfd_create",
    "mount",
    "move_mount",
    "open_by_handle_at",
    "perf_event_open",
    "pivot_root",
    "process_vm_writev",
    "ptrace",
    "reboot",
    "setns",
    "setuid",
    "unshare",
    "userfaultfd",
    "vmsplice",
];

fn names(profile: &Value) -> Vec<&str> {
    let rules = profile["syscalls"].as_array().unwrap().iter();
    rules.flat_map(|rule| rule["names"].as_array().unwrap()).map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn the_profile_allows_known_calls_and_no_dangerous_one() {
    let profile = seccomp::profile();
    let all = names(&profile);
    for name in &all {
        let is_known = cfg!(not(target_arch = "x86_64")) || seccomp::number_of(name).is_some();
        assert!(is_known, "unknown call `{name}`: the runtimes would ignore it");
    }
    let first: Vec<&str> = profile["syscalls"][0]["names"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    assert!(first.is_sorted(), "sort the names of the first rule");
    let once: BTreeSet<&str> = all.iter().copied().filter(|name| *name != "socket").collect();
    assert_eq!(once.len(), all.iter().filter(|name| **name != "socket").count(), "a call has two rules");
    for name in DANGEROUS {
        assert!(!all.contains(&name), "{name}");
        assert!(cfg!(not(target_arch = "x86_64")) || seccomp::number_of(name).is_some(), "{name}");
    }
}

/// Runs a program under a profile. Returns its exit code and the refused calls.
fn run(profile: &Value, program: &str, words: &[&str]) -> Option<(Option<i32>, Vec<String>)> {
    let mut command = Command::new(program);
    command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
    match seccomp::confined(&mut command, profile) {
        Ok((mut child, refused)) => {
            let code = child.wait().unwrap().code();
            Some((code, refused.calls()))
        }
        Err(error) => {
            crate::support::skip(format_args!("a program under a seccomp profile: {error}"));
            None
        }
    }
}

#[test]
fn a_refused_call_is_named_with_its_thread() {
    let Some((code, calls)) = run(&seccomp::profile(), "chroot", &["/", "true"]) else { return };
    assert_ne!(code, Some(0));
    assert!(calls.iter().any(|call| call.starts_with("chroot(") && call.ends_with(" by chroot")), "{calls:?}");
    // A server whose profile lacks a call that it needs.
    let mut less = seccomp::profile();
    less["syscalls"][0]["names"].as_array_mut().unwrap().retain(|name| name != "epoll_create1");
    let folder = Folder::new("seccomp-less");
    let corefile = folder.write("Corefile", ".:0 {\nbind 127.0.0.1\nwhoami\n}\n");
    let words = ["-conf", corefile.to_str().unwrap()];
    let (code, calls) = run(&less, env!("CARGO_BIN_EXE_portolan"), &words).unwrap();
    assert!(code != Some(0) && calls.iter().any(|call| call.starts_with("epoll_create1(")), "{code:?} {calls:?}");
}

#[test]
fn arguments_decide_about_sockets_and_namespaces() {
    // Families of sockets: Unix, IPv4, IPv6, netlink, packets, the kernel's cryptography, and virtual machines.
    let clone_newuser = 0x1000_0000;
    for (call, argument, error, is_refused) in [
        ("socket", 1, libc::ESOCKTNOSUPPORT, false),
        ("socket", 2, libc::ESOCKTNOSUPPORT, false),
        ("socket", 10, libc::ESOCKTNOSUPPORT, false),
        ("socket", 16, libc::ESOCKTNOSUPPORT, false),
        ("socket", 17, libc::EPERM, true),
        ("socket", 38, libc::EPERM, true),
        ("socket", 40, libc::EPERM, true),
        ("socket", 1 << 32 | 2, libc::EPERM, true),
        ("clone", clone_newuser | i64::from(libc::SIGCHLD), libc::EPERM, true),
        // The C library uses clone in place of a call that the kernel does not have.
        ("clone3", 0, libc::ENOSYS, false),
    ] {
        let Ok((found, refused)) = seccomp::under(&seccomp::profile(), || seccomp::try_call(call, argument)) else {
            return crate::support::skip("a thread under a seccomp profile");
        };
        assert_eq!(found, error, "{call} {argument:#x}: {:?}", refused.calls());
        let expected = format!("{call}({argument:#x},");
        assert_eq!(refused.calls().iter().any(|call| call.starts_with(&expected)), is_refused, "{call} {argument:#x}");
    }
    let profile = seccomp::profile();
    let (sum, _) = seccomp::under(&profile, || std::thread::spawn(|| 1 + 1).join().unwrap()).unwrap();
    assert_eq!(sum, 2);
}

fn corefile(folder: &Path, api: &FakeApi, upstream: &Upstream, text: &str) -> String {
    let folder = folder.display();
    format!(
        "(common) {{
    bind 127.0.0.1
    errors
    log
    hosts /dev/null {{
        192.0.2.1 {text}.test
        fallthrough
    }}
    kubernetes cluster.local {{
        endpoint {}
        snapshot {folder}/snapshot
    }}
    forward . {}
    cache
    reload
}}
.:0 {{
    import common
    control {folder}/control.sock
    prometheus localhost:0
    pprof localhost:0
}}
tls://.:0 {{
    tls {folder}/cert.pem {folder}/key.pem
    import common
}}
",
        api.url(),
        upstream.address
    )
}

/// The main jobs one after the other, in one keeper and its servers.
#[test]
fn a_server_does_its_jobs_under_the_profile() {
    let (api, upstream) = (FakeApi::with_shop(), Upstream::start(7));
    let folder = Folder::new("seccomp");
    certify(&folder, &["dns.example.org"]);
    let file = folder.write("Corefile", &corefile(folder.path(), &api, &upstream, "one"));
    let words = ["-conf".as_ref(), file.as_os_str()];
    let mut keeper = Server::start_program(env!("CARGO_BIN_EXE_portolan-keeper").as_ref(), &words);
    let (plain, encrypted) = (keeper.address_of("dns://127.0.0.1:0"), keeper.address_of("tls://127.0.0.1:0"));
    let mut control = ControlSocket::of(&mut keeper);
    keeper.wait_for("Portolan-");
    let mut client = Client::new(plain).waiting(PATIENCE);
    let mut answers_all = |known: &str| {
        assert_eq!(client.ask(known, Type::A).unwrap().addresses(), ["192.0.2.1".parse::<std::net::IpAddr>().unwrap()]);
        assert_eq!(client.ask("www.example.org.", Type::A).unwrap().addresses(), [upstream.own]);
        let mut stream = TcpStream::connect(plain).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(exchange_framed(&mut stream, &query(7, known, Type::A)).rcode(), Rcode::NOERROR);
        let ca = folder.path().join("ca.pem");
        assert_eq!(over_tls(&[], encrypted, &ca, &query(8, known, Type::A)).rcode(), Rcode::NOERROR);
    };
    answers_all("one.test.");
    assert_eq!(control.run(&["status", "--wait", "60s"]).code, 0);
    wait_until("the snapshot is written", || folder.path().join("snapshot").exists());

    folder.write("Corefile", &corefile(folder.path(), &api, &upstream, "two"));
    keeper.signal("USR1");
    keeper.wait_for("SIGUSR1: Reloading");
    keeper.wait_for("Reloading complete");
    answers_all("two.test.");

    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", keeper.id())).unwrap();
    let child = children.split_whitespace().next().unwrap();
    assert!(Command::new("kill").args(["-KILL", child]).status().unwrap().success());
    keeper.wait_for("starting it again");
    control = ControlSocket::of(&mut keeper);
    answers_all("two.test.");
    assert_eq!(control.status()["keeper"]["restarts"], 1);

    keeper.signal("TERM");
    keeper.wait_for("SIGTERM: Shutting down");
    assert_eq!(keeper.wait(), Some(0));
    assert_eq!(keeper.refused().calls(), <[&str; 0]>::default());
}

/// Folders of this machine that the container shares: the programs of this build need its shared objects.
const SHARED: [&str; 3] = ["/lib", "/lib64", "/usr"];

/// Returns the configuration of a container whose pod would have the security context of `deploy`.
fn container(folder: &Folder, words: &[&str], profile: Option<Value>) -> Value {
    let file = folder.path().join("config.json");
    // runc replaces no file.
    let _ = std::fs::remove_file(&file);
    let spec = Command::new("runc").arg("spec").current_dir(folder.path()).output().unwrap();
    assert!(spec.status.success(), "{}", String::from_utf8_lossy(&spec.stderr));
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let process = &mut config["process"];
    process["args"] = words.into();
    process["terminal"] = false.into();
    process["user"] = json!({ "uid": 65532, "gid": 65532 });
    process["noNewPrivileges"] = true.into();
    let capabilities =
        ["bounding", "effective", "permitted"].map(|set| (set.to_owned(), json!(["CAP_NET_BIND_SERVICE"])));
    process["capabilities"] = Value::Object(capabilities.into_iter().collect());
    let programs = Path::new(env!("CARGO_BIN_EXE_portolan")).parent().unwrap();
    let own = [("/programs", programs.to_path_buf()), ("/conf", folder.path().join("conf"))];
    let shared = SHARED.map(|path| (path, path.into())).into_iter().chain(own);
    for (destination, source) in shared.filter(|(_, source)| source.exists()) {
        std::fs::create_dir_all(folder.path().join("rootfs").join(&destination[1..])).unwrap();
        let mount = json!({ "destination": destination, "source": source, "type": "bind", "options": ["rbind", "ro"] });
        config["mounts"].as_array_mut().unwrap().push(mount);
    }
    // The container has the network of this machine.
    config["linux"]["namespaces"].as_array_mut().unwrap().retain(|namespace| namespace["type"] != "network");
    config["linux"]["seccomp"] = profile.unwrap_or_default();
    std::fs::write(&file, config.to_string()).unwrap();
    config
}

/// The runtime of containerd and Docker reads the profile, and starts the server with it.
#[test]
fn runc_starts_a_server_with_the_profile() {
    let folder = Folder::new("seccomp-runc");
    folder.write("conf/Corefile", ".:0 {\nbind 127.0.0.1\nhosts /dev/null {\n192.0.2.1 one.test\n}\n}\n");
    if Command::new("runc").arg("--version").output().is_err() {
        return crate::support::skip("`runc` is not installed: the seccomp profile in a container");
    }
    let name = format!("portolan-seccomp-{}", std::process::id());
    let runc = |words: &[&str]| {
        let mut command = Command::new("runc");
        command.args(words).arg(&name).current_dir(folder.path());
        command
    };
    container(&folder, &["/programs/portolan", "-version"], None);
    let without = runc(&["run"]).output().unwrap();
    if !without.status.success() {
        let error = String::from_utf8_lossy(&without.stderr).into_owned();
        return crate::support::skip(format_args!(
            "the seccomp profile in a container, which cannot run here: {error}"
        ));
    }
    let words = ["/programs/portolan-keeper", "/programs/portolan", "-conf", "/conf/Corefile"];
    container(&folder, &words, Some(seccomp::profile()));
    let mut server = Server::start_command(runc(&["run"]));
    let address = server.address_of("dns://127.0.0.1:0");
    let mut client = Client::new(address).waiting(PATIENCE);
    assert_eq!(client.ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(exchange_framed(&mut stream, &query(7, "one.test.", Type::A)).rcode(), Rcode::NOERROR);
    assert!(Command::new("runc").args(["kill", &name, "TERM"]).status().unwrap().success());
    server.wait_for("SIGTERM: Shutting down");
    assert_eq!(server.wait(), Some(0));
}
