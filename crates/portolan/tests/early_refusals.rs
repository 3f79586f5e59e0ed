//! Responses to requests that are refused before their body has been read: the client sees the status, from every HTTP
//! server of the process. Those for DNS over HTTPS are in `https.rs`.

use std::io::Write;
use std::net::TcpStream;
use std::process::Command;

use crate::support::control::{ControlSocket, response};
use crate::support::{Folder, Server, certify, page, wait_until};

/// Number of tries, because a reset overtakes a response only now and then.
const TRIES: usize = 20;
/// Size of the bodies: more than the buffers of a connection take, and less than a server discards.
const BODY: usize = 250_000;

/// Sends a request with a body over a stream, and returns the status of the response.
fn status_of(mut stream: impl std::io::Read + Write, method: &str, path: &str) -> u16 {
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {BODY}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("a request leaves");
    stream.write_all(&vec![b'x'; BODY]).expect("the body leaves");
    response(stream).0
}

#[test]
fn pages_and_the_control_socket_respond_after_the_body() {
    let folder = Folder::new("early-pages");
    let corefile = ".:0 {\nbind 127.0.0.1\nhealth localhost:0\nwhoami\n}\n";
    let mut server = Server::start(&folder.write("Corefile", corefile));
    let (health, socket) = (server.address_of("localhost:0"), ControlSocket::of(&mut server));
    for at in 0..TRIES {
        let to_page = |method, path| status_of(TcpStream::connect(health).unwrap(), method, path);
        assert_eq!((to_page("POST", "/health"), to_page("PUT", "/other")), (405, 404), "{at}");
        let to_control = |method, path| status_of(socket.connect(), method, path);
        assert_eq!((to_control("PUT", "/v1/status"), to_control("GET", "/other")), (405, 404), "{at}");
    }
}

#[test]
fn counts_bodies_that_are_too_long() {
    let folder = Folder::new("early-long");
    let corefile = ".:0 {\nbind 127.0.0.1\nprometheus 127.0.0.1:0\nwhoami\n}\n";
    let mut server = Server::start(&folder.write("Corefile", corefile));
    let (pages, socket) = (server.address_of("127.0.0.1:0"), ControlSocket::of(&mut server));
    for mut stream in [Box::new(TcpStream::connect(pages).unwrap()) as Box<dyn Write>, Box::new(socket.connect())] {
        let head = "POST /other HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        // The server may close the connection before it has got all.
        let _ = stream.write_all(&vec![b'x'; 1_000_000]);
    }
    let hits = "portolan_limit_hits_total{limit=\"request_bodies\"} 2";
    wait_until("the bodies are counted", || page(pages, "/metrics").is_some_and(|(_, metrics)| metrics.contains(hits)));
}

#[test]
fn a_grpc_refusal_arrives_before_the_body_has_been_sent() {
    let folder = Folder::new("early-grpc");
    certify(&folder, &["dns.example.org", "127.0.0.1"]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let tls = format!("tls {} {}", path("cert.pem"), path("key.pem"));
    let corefile = format!("grpc://.:0 {{\nbind 127.0.0.1\n{tls}\nwhoami\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let address = server.address_of("grpc://127.0.0.1:0");
    let body = folder.write("body", &"x".repeat(BODY));
    for at in 0..TRIES {
        let mut curl = Command::new("curl");
        curl.args(["--http2", "--silent", "--insecure", "--write-out", "[%{http_code}]", "--output", "/dev/null"]);
        curl.arg("--data-binary").arg(format!("@{}", body.display())).arg(format!("https://{address}/other"));
        let Ok(output) = curl.output() else { return crate::support::skip("install the Debian package `curl`") };
        assert_eq!(String::from_utf8_lossy(&output.stdout), "[415]", "{at}");
    }
}
