//! A new instance waits for one that serves the addresses, but does not hand its sockets over yet.

use std::ffi::OsString;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use super::{INTERFACE, LINK, Node, SERVICE, accept_request, in_namespace, meeting_point};
use crate::support::namespace::run;
use crate::support::{Server, wait_until};

/// Starts a server on a bridge whose addresses the test itself serves, as another instance does.
fn start_beside(node: &Node) -> (Server, [UdpSocket; 2]) {
    assert!(run("ip", &["link", "add", INTERFACE, "type", "bridge"]).0);
    assert!(run("ip", &["link", "set", INTERFACE, "up"]).0);
    let local = [LINK, SERVICE];
    assert!(local.iter().all(|ip| run("ip", &["addr", "add", &format!("{ip}/32"), "dev", INTERFACE]).0));
    let held = local.map(|ip| UdpSocket::bind((ip, 53)).unwrap());
    let words = node.words(&["-interfacekind", "bridge"]);
    let mut server = Server::start_with(&words.iter().map(OsString::as_os_str).collect::<Vec<_>>());
    server.wait_for("0.0.0.0:9353");
    (server, held)
}

/// A busy instance that has just become the only one binds the name late. Until then it answers all queries.
#[test]
fn waits_for_an_instance_that_serves_the_addresses() {
    in_namespace("waiting::waits_for_an_instance_that_serves_the_addresses", || {
        let node = Node::new();
        let (mut server, held) = start_beside(&node);
        let begin = Instant::now();
        wait_until("longer than after the end of an instance", || begin.elapsed() > Duration::from_secs(2));
        let listener = meeting_point();
        assert!(accept_request(&listener).is_some(), "it requests the sockets");
        drop((listener, held));
        server.wait_for("Portolan-");
    });
}

/// An instance that is too busy to prove in time what it is, or that breaks off, still answers all queries.
#[test]
fn waits_for_an_instance_that_does_not_respond_in_time() {
    in_namespace("waiting::waits_for_an_instance_that_does_not_respond_in_time", || {
        let listener = meeting_point();
        let node = Node::new();
        let (mut server, held) = start_beside(&node);
        let begin = Instant::now();
        // The first connection gets no proof, and the next ones break off.
        let silent = listener.accept().unwrap();
        while begin.elapsed() < Duration::from_secs(3) {
            drop(listener.accept().unwrap());
        }
        drop(silent);
        assert!(accept_request(&listener).is_some(), "it requests the sockets");
        drop((listener, held));
        server.wait_for("Portolan-");
    });
}
