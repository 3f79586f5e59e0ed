//! DNS over gRPC in both directions: one server that accepts it, and others that forward queries to that server.

use std::ffi::OsStr;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::support::{Client, Folder, Server, certify, page, wait_until};
use wire::{Rcode, Type};

/// Starts a gRPC server with one host, and with `lines` in its server block.
fn upstream(folder: &Folder, lines: &str) -> Server {
    let hosts = "hosts /dev/null {\n192.0.2.1 www.example.org\n}";
    let corefile = format!("grpc://.:0 {{\nbind 127.0.0.1\nprometheus 127.0.0.1:0\n{lines}\n{hosts}\n}}\n");
    Server::start(&folder.write("upstream", &corefile))
}

/// Starts a server that forwards all queries to another one, and returns it with a client.
fn passing_on(folder: &Folder, name: &str, to: SocketAddr, options: &str) -> (Server, Client) {
    let mut server = Server::start(&write_passing_on(folder, name, to, options));
    let client = Client::new(server.address_of("dns://127.0.0.1:0"));
    (server, client)
}

fn write_passing_on(folder: &Folder, name: &str, to: SocketAddr, options: &str) -> PathBuf {
    folder.write(name, &format!(".:0 {{\nbind 127.0.0.1\ngrpc . {to} {{\n{options}\n}}\n}}\n"))
}

#[test]
fn forwards_queries_as_calls() {
    let folder = Folder::new("grpc");
    let mut upstream = upstream(&folder, "");
    let to = upstream.address_of("grpc://127.0.0.1:0");
    let (_server, mut client) = passing_on(&folder, "plain", to, "policy sequential");
    // The second query reuses the open connection.
    for _ in 0..2 {
        let answer = client.ask("www.example.org.", Type::A).expect("an answer");
        assert_eq!(answer.rcode(), Rcode::NOERROR);
        assert_eq!(answer.addresses(), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
    }
    assert_eq!(client.ask("www.example.org.", Type::AAAA).expect("an answer").rcode(), Rcode::NOERROR);
    upstream.signal("TERM");
    assert_eq!(upstream.wait(), Some(0), "a connection without a call does not delay shutdown");
    assert_eq!(client.ask("www.example.org.", Type::AAAA).expect("an answer").rcode(), Rcode::SERVFAIL);
}

/// Passes the bytes of each connection to a Unix socket on to `to`.
fn relay(path: &Path, to: SocketAddr) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(to).unwrap();
            let (mut from, mut into) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut into));
            let (mut from, mut into) = (server, client);
            std::thread::spawn(move || std::io::copy(&mut from, &mut into));
        }
    });
}

#[test]
fn forwards_queries_over_a_unix_socket() {
    let folder = Folder::new("grpc-unix");
    let mut upstream = upstream(&folder, "");
    let path = folder.path().join("grpc.sock");
    relay(&path, upstream.address_of("grpc://127.0.0.1:0"));
    let corefile = |path: &Path| format!(".:0 {{\nbind 127.0.0.1\ngrpc . unix://{}\n}}\n", path.display());
    for (name, path, rcode) in
        [("there", &path, Rcode::NOERROR), ("absent", &folder.path().join("absent.sock"), Rcode::SERVFAIL)]
    {
        let mut server = Server::start(&folder.write(name, &corefile(path)));
        let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
        assert_eq!(client.ask("www.example.org.", Type::A).expect("an answer").rcode(), rcode, "{name}");
    }
}

#[test]
fn forwards_queries_over_tls() {
    let folder = Folder::new("grpc-tls");
    certify(&folder, &["dns.example.org"]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut upstream = upstream(&folder, &format!("tls {} {}", path("cert.pem"), path("key.pem")));
    let to = upstream.address_of("grpc://127.0.0.1:0");
    let ca = path("ca.pem");
    for (name, options, rcode) in [
        ("by-name", format!("tls {ca}\ntls_servername dns.example.org"), Rcode::NOERROR),
        ("another-name", format!("tls {ca}\ntls_servername dns.example.net"), Rcode::SERVFAIL),
        ("in-the-clear", String::new(), Rcode::SERVFAIL),
    ] {
        let (_server, mut client) = passing_on(&folder, name, to, &options);
        let answer = client.ask("www.example.org.", Type::A).expect("an answer");
        assert_eq!(answer.rcode(), rcode, "{name}");
    }
}

/// Checks that a reload closes the old connection. The upstream accepts only one.
#[test]
fn reload_closes_connections_to_removed_upstreams() {
    let folder = Folder::new("grpc-reload");
    let names = ["one.example.org", "two.example.org"];
    certify(&folder, &names);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let lines = format!("tls {} {}\ngrpc_server {{\nmax_connections 1\n}}", path("cert.pem"), path("key.pem"));
    let mut upstream = upstream(&folder, &lines);
    let to = upstream.address_of("grpc://127.0.0.1:0");
    let [before, after] = names.map(|name| format!("tls {}\ntls_servername {name}", path("ca.pem")));
    let (mut server, mut client) = passing_on(&folder, "reloaded", to, &before);
    let mut rcode = || client.ask("www.example.org.", Type::A).expect("an answer").rcode();
    assert_eq!(rcode(), Rcode::NOERROR);
    write_passing_on(&folder, "reloaded", to, &after);
    server.signal("USR1");
    server.wait_for("Reloading complete");
    wait_until("the new connection is there", || rcode() == Rcode::NOERROR);
}

/// Checks that a plaintext connection stays open until no directive names its upstream. The upstream accepts only one.
#[test]
fn closes_a_connection_with_the_last_reference_to_its_upstream() {
    let folder = Folder::new("grpc-unwritten");
    let mut upstream = upstream(&folder, "grpc_server {\nmax_connections 1\n}");
    let to = upstream.address_of("grpc://127.0.0.1:0");
    let mut server = with_one_worker(&write_passing_on(&folder, "reloaded", to, ""));
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    let mut reload = |to: SocketAddr, options: &str| {
        write_passing_on(&folder, "reloaded", to, options);
        server.signal("USR1");
        server.wait_for("Reloading complete");
    };
    let mut rcode = || client.ask("www.example.org.", Type::A).expect("an answer").rcode();
    assert_eq!(rcode(), Rcode::NOERROR);
    reload(to, "policy sequential");
    assert_eq!(rcode(), Rcode::NOERROR, "the line has changed, its upstream has not");
    assert!(!is_taken(to), "the connection is there still");
    reload("192.0.2.1:53".parse().unwrap(), "");
    wait_until("there is room again", || is_taken(to));
}

/// Starts a server with one worker, because each worker has its own connections.
fn with_one_worker(corefile: &Path) -> Server {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let allowed =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("the allowed processors");
    let first = allowed.trim().split(['-', ',']).next().expect("a processor");
    let words = ["-c", first, env!("CARGO_BIN_EXE_portolan"), "-conf"].map(OsStr::new);
    Server::start_program(Path::new("taskset"), &[&words[..], &[corefile.as_os_str()]].concat())
}

/// Returns true if the server accepts a connection and does not close it immediately.
fn is_taken(to: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.read(&mut [0]).is_ok_and(|count| count > 0)
}

#[test]
fn closes_connections_beyond_the_limit() {
    let folder = Folder::new("grpc-bound");
    let mut upstream = upstream(&folder, "grpc_server {\nmax_connections 1\n}");
    let to = upstream.address_of("grpc://127.0.0.1:0");
    let metrics = upstream.address_of("127.0.0.1:0");
    let mut first = TcpStream::connect(to).expect("a connection");
    first.read_exact(&mut [0]).expect("its settings");
    let mut second = TcpStream::connect(to).expect("a connection");
    assert_eq!(second.read(&mut [0]).expect("its end"), 0);
    wait_until("the connection is counted", || {
        let (_, text) = page(metrics, "/metrics").expect("the page");
        text.contains("portolan_limit_hits_total{limit=\"calling_connections\"} 1")
    });
    drop(first);
    let (_server, mut client) = passing_on(&folder, "next", to, "");
    wait_until("there is room again", || {
        client.ask("www.example.org.", Type::A).expect("an answer").rcode() == Rcode::NOERROR
    });
}
