//! The keeper: whole processes on loopback, with real crashes.

use std::fs::read_to_string;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::support::{Client, Folder, PATIENCE, Server, wait_until};
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

/// Kills the server, and waits until its successor runs. Returns the keeper's line.
fn kill(keeper: &mut Server, name: &str) -> String {
    let child = child_of(keeper);
    signal(name, child);
    let line = keeper.wait_for("starting it again");
    assert!(line.contains(&format!("(pid {child})")), "{line}");
    wait_until("the next server", || child_of(keeper) != child);
    line
}

/// Sends queries at a steady rate, without waiting for answers. Returns the number that got no answer.
fn lost_of(server: SocketAddr, count: u16, pause: Duration) -> thread::JoinHandle<usize> {
    let client = Client::new(server).waiting(Duration::from_secs(10));
    let sender = client.twin();
    thread::spawn(move || {
        let sending = thread::spawn(move || {
            let mut sender = sender;
            for _ in 0..count {
                sender.send("one.test.", Type::A);
                thread::sleep(pause);
            }
        });
        let mut missing: std::collections::BTreeSet<u16> = (1..=count).collect();
        while !missing.is_empty() {
            let Some(answer) = client.receive_any() else { break };
            assert_eq!(answer.rcode(), Rcode::NOERROR);
            missing.remove(&answer.header().id);
        }
        sending.join().unwrap();
        missing.len()
    })
}

#[test]
fn a_killed_server_loses_at_most_the_query_in_hand() {
    const KILLS: usize = 3;
    let folder = Folder::new("keeper-kill");
    let mut keeper = start(&folder, HOSTS);
    let address = keeper.address_of(LABEL);
    assert_eq!(Client::new(address).waiting(PATIENCE).ask("one.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
    let clients: Vec<_> = (0..4).map(|_| lost_of(address, 1500, Duration::from_millis(4))).collect();
    for number in 1..=KILLS {
        thread::sleep(Duration::from_millis(700));
        let line = kill(&mut keeper, "KILL");
        assert!(
            line.contains("was killed by signal 9 (SIGKILL)") && line.contains(&format!("(exit {number} in")),
            "{line}"
        );
        assert_eq!(keeper.address_of(LABEL), address);
    }
    for client in clients {
        let lost = client.join().unwrap();
        assert!(lost <= KILLS, "{lost} of 1500 queries lost in {KILLS} crashes");
    }
}

#[test]
fn the_listener_of_tcp_survives_and_connections_wait_in_it() {
    let folder = Folder::new("keeper-tcp");
    let mut keeper = start(&folder, HOSTS);
    let address = keeper.address_of(LABEL);
    let exchange = |stream: &mut TcpStream| {
        let query = crate::support::query(7, "one.test.", Type::A);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&[&u16::try_from(query.len()).unwrap().to_be_bytes(), query.as_slice()].concat()).unwrap();
        let mut length = [0; 2];
        stream.read_exact(&mut length).map(|()| {
            let mut answer = vec![0; u16::from_be_bytes(length).into()];
            stream.read_exact(&mut answer).unwrap();
            crate::support::Answer(answer)
        })
    };
    let mut before = TcpStream::connect(address).unwrap();
    assert_eq!(exchange(&mut before).unwrap().rcode(), Rcode::NOERROR);
    // Stopped, the server accepts nothing until it is killed.
    let child = child_of(&keeper);
    signal("STOP", child);
    let mut waiting = TcpStream::connect(address).unwrap();
    kill(&mut keeper, "KILL");
    assert_eq!(exchange(&mut waiting).unwrap().rcode(), Rcode::NOERROR);
    assert_eq!(before.read(&mut [0]).unwrap_or(0), 0, "a connection ends with its server");
}
