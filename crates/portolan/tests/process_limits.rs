//! The server with few descriptors, threads and little stack, and with a bound for the size of files: it works, or says
//! which limit is too low.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use crate::support::control::ControlSocket;
use crate::support::{Client, Folder, PATIENCE, Server, page, query, wait_until};
use wire::Type;

/// Returns the command that runs the server under limits that prlimit(1) sets.
fn limited(limits: &[&str], folder: &Folder, corefile: &str) -> Command {
    let mut command = Command::new("prlimit");
    command.args(limits).arg(env!("CARGO_BIN_EXE_portolan")).arg("-conf").arg(folder.write("Corefile", corefile));
    command
}

#[test]
fn pages_and_the_control_socket_answer_when_the_descriptors_are_used_up() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let upstream = silent.local_addr().unwrap();
    let corefile = format!(
        ".:0 {{\nbind 127.0.0.1\nhealth localhost:0\nhosts /dev/null {{\n192.0.2.1 a.test\nfallthrough\n}}\nforward . {upstream}\n}}\n"
    );
    let folder = Folder::new("limit-descriptors");
    let mut server = Server::start_command(limited(&["--nofile=64"], &folder, &corefile));
    let (dns, health) = (server.address_of("dns://127.0.0.1:0"), server.address_of("localhost:0"));
    let socket = ControlSocket::of(&mut server);
    wait_until("the spare descriptors are open", || spare_of(&server) >= 4 + workers());
    let held = load(dns);
    for at in 0..5 {
        assert_eq!(page(health, "/health"), Some((200, "OK".to_owned())), "under load, {at}");
        assert_eq!(socket.request("GET", "/v1/ready", "").0, 200, "under load, {at}");
    }
    assert!(Client::new(dns).ask("a.test.", Type::A).is_some(), "a local name");
    drop(held);
    for at in 0..20 {
        assert_eq!(page(health, "/health"), Some((200, "OK".to_owned())), "after the load, {at}");
    }
}

#[test]
fn a_client_over_tcp_is_answered_when_pages_use_all_descriptors() {
    let corefile = ".:0 {\nbind 127.0.0.1\nprometheus 127.0.0.1:0\nwhoami\n}\n";
    let folder = Folder::new("limit-tcp");
    let mut server = Server::start_command(limited(&["--nofile=128"], &folder, corefile));
    let (dns, pages) = (server.address_of("dns://127.0.0.1:0"), server.address_of("127.0.0.1:0"));
    wait_until("the spare descriptors are open", || spare_of(&server) >= 4 + workers());
    let mut held = Vec::new();
    wait_until("pages use all descriptors", || {
        held.push(TcpStream::connect(pages).unwrap());
        std::thread::sleep(Duration::from_millis(5));
        descriptors_of(&server) >= 128
    });
    let mut client = TcpStream::connect(dns).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let message = query(1, "example.org.", Type::A);
    client.write_all(&[&u16::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()).unwrap();
    let mut length = [0; 2];
    client.read_exact(&mut length).expect("an answer");
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(32)
}

fn descriptors_of(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count()
}

/// Number of spare descriptors of a server.
fn spare_of(server: &Server) -> usize {
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().flatten();
    descriptors.filter(|one| std::fs::read_link(one.path()).is_ok_and(|to| to.as_os_str() == "/dev/null")).count()
}

/// Sends 500 queries to an upstream that does not answer, and opens 100 connections.
fn load(dns: SocketAddr) -> Vec<TcpStream> {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let connect = |_| TcpStream::connect_timeout(&dns, Duration::from_secs(1)).ok();
    let mut held = Vec::new();
    for at in 0..500u16 {
        client.send_to(&query(at, &format!("x{at}.other."), Type::A), dns).unwrap();
        held.extend((at % 5 == 0).then(|| connect(at)).flatten());
    }
    held
}

#[test]
fn says_how_many_descriptors_it_needs() {
    let folder = Folder::new("limit-few");
    let output = limited(&["--nofile=16"], &folder, ".:0 {\nbind 127.0.0.1\nwhoami\n}\n").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("the limit of open files is 16, and this server needs about "), "{text}");
}

#[test]
fn says_that_the_system_refuses_threads() {
    if net::own_user() != 0 {
        crate::support::skip("root is needed to run a program as a user without processes");
        return;
    }
    // Another user must be able to run the program and to read the Corefile.
    let folder = Folder::new("limit-threads");
    let program = folder.path().join("portolan");
    std::fs::copy(env!("CARGO_BIN_EXE_portolan"), &program).unwrap();
    let corefile = folder.write("Corefile", ".:0 {\nbind 127.0.0.1\nwhoami\n}\n");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for limit in 1..6 {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nproc={limit}")).args(["setpriv", "--reuid=61300", "--clear-groups"]);
        let output = command.arg(&program).arg("-conf").arg(&corefile).args(["-dns.port", "0"]);
        let output = match run_briefly(output) {
            Some(output) => output,
            // Enough for this machine.
            None => break,
        };
        assert!(!output.contains("panicked"), "{limit}: {output}");
        assert!(output.contains("the system refuses another thread"), "{limit}: {output}");
    }
}

/// Runs a server. Returns its standard error if it ends, or `None` once it serves.
fn run_briefly(command: &mut Command) -> Option<String> {
    let mut server = Server::start_command(std::mem::replace(command, Command::new("true")));
    let mut text = String::new();
    loop {
        match server.next_line() {
            Some(line) if line.contains("for control") => return None,
            Some(line) => text.push_str(&(line + "\n")),
            None => return Some(text),
        }
    }
}

#[test]
fn serves_with_little_stack_and_without_room_in_files() {
    let folder = Folder::new("limit-stack");
    let corefile = ".:0 {\nbind 127.0.0.1\nlog\nhosts /dev/null {\n192.0.2.1 a.test\n}\n}\n";
    let mut server = Server::start_command(limited(&["--stack=65536"], &folder, corefile));
    let dns = server.address_of("dns://127.0.0.1:0");
    assert!(Client::new(dns).ask("a.test.", Type::A).is_some());

    // Writing the file with the process ID exceeds the limit.
    let mut command = limited(&["--fsize=0"], &folder, corefile);
    let pid = folder.path().join("pid");
    command.arg("-pidfile").arg(&pid);
    let mut server = Server::start_command(command);
    let dns = server.address_of("dns://127.0.0.1:0");
    server.wait_for("for control");
    assert!(Client::new(dns).ask("a.test.", Type::A).is_some());
    assert_eq!(std::fs::read_to_string(&pid).unwrap(), "", "the write failed");
}
