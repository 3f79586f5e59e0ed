//! Access to the control API: users, TCP, hostile clients, and the places of the socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::control::{ControlSocket, Ran, response};
use crate::support::{Client, Folder, PATIENCE, Server, certify_all, page, wait_until};
use wire::Type;

/// User of the image.
const IMAGE_USER: u32 = 65532;
/// Another user.
const STRANGER: u32 = 61234;

const COREFILE: &str = ".:0 {\n    bind 127.0.0.1\n    whoami\n}\n";

/// Returns true if this test runs as root; otherwise says that it is skipped.
fn is_root(test: &str) -> bool {
    let is_root = net::own_user() == 0;
    if !is_root {
        // Not a macro, because the test harness captures the output of macros.
        crate::support::skip(format_args!("{test} needs root to run programs as other users"));
    }
    is_root
}

fn start(corefile: &str) -> (Server, ControlSocket, Folder) {
    let folder = Folder::new("control-access");
    let mut server = Server::start(&folder.write("Corefile", corefile));
    let socket = ControlSocket::of(&mut server);
    (server, socket, folder)
}

#[test]
fn serves_its_own_user_and_root_only() {
    if !is_root("serves_its_own_user_and_root_only") {
        return;
    }
    let folder = Folder::new("control-users");
    // The program of the image runs in a read-only root file system, without any directory that it may write to.
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.arg("-conf").arg(folder.write("Corefile", COREFILE));
    let mut server = Server::start_as(IMAGE_USER, command);
    let socket = ControlSocket::of(&mut server);
    assert!(socket.0.starts_with("@portolan-control"), "{}", socket.0);
    for user in [IMAGE_USER, 0] {
        let status = socket.run_as(user, &["status"]);
        assert_eq!(status.code, 0, "{user}: {}", status.stderr);
    }
    let refused = socket.run_as(STRANGER, &["status"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    let expected = format!("user {STRANGER} may not use the control socket of user {IMAGE_USER}");
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    assert_eq!(socket.run_as(STRANGER, &["cache", "flush", "--all"]).code, 2);
}

#[test]
fn root_does_not_open_its_socket_to_others() {
    if !is_root("root_does_not_open_its_socket_to_others") {
        return;
    }
    let (_server, socket, _folder) = start(COREFILE);
    assert_eq!(socket.run_as(0, &["status"]).code, 0);
    let refused = socket.run_as(IMAGE_USER, &["reload"]);
    assert!(refused.code == 2 && refused.stderr.contains("may not use"), "{}", refused.stderr);
    // The report says so too, and not that this machine is outside of the cluster.
    let report = socket.run_as(IMAGE_USER, &["doctor", "--only", "upstream"]);
    let reason = format!("  – user {IMAGE_USER} may not use the control socket of user 0; ");
    assert!(report.code == 2 && report.stderr.starts_with("--socket: user "), "{}", report.stderr);
    assert!(report.stdout.contains(&reason) && !report.stdout.contains("not in the network"), "{}", report.stdout);
}

/// Starts a server with a Unix socket and a listener over TCP.
fn start_with_tcp(folder: &Folder) -> (Server, ControlSocket, SocketAddr) {
    let corefile = COREFILE.replace("whoami", "whoami\n    control 127.0.0.1:0 {\n read-only\n }");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let mut listening = [server.wait_for(" for control"), server.wait_for(" for control")];
    listening.sort_by_key(|line| line.contains('@'));
    let [tcp, unix] = listening.map(|line| line.split(' ').nth(3).unwrap().to_owned());
    (server, ControlSocket(unix), tcp.parse().unwrap())
}

/// Requests a stream, and returns the status of the response.
fn open_stream<S: Read + Write>(mut stream: S) -> (u16, S) {
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    (String::from_utf8_lossy(&head[9..]).parse().unwrap(), stream)
}

#[test]
fn streams_over_tcp_leave_room_for_the_unix_socket() {
    let folder = Folder::new("control-streams");
    let (_server, socket, address) = start_with_tcp(&folder);
    let remote = [(); 3].map(|()| open_stream(TcpStream::connect(address).unwrap()));
    assert_eq!(remote.each_ref().map(|(status, _)| *status), [200, 200, 503]);
    let local = [(); 3].map(|()| open_stream(socket.connect()));
    assert_eq!(local.each_ref().map(|(status, _)| *status), [200, 200, 503]);
    let refused = ControlSocket(format!("http://{address}")).run(&["tail"]);
    let expected = "2 streams over TCP are open, the maximum; end one, or use `tail --last 20`";
    assert!(refused.code == 2 && refused.stderr.contains(expected), "{}", refused.stderr);
}

#[test]
fn tcp_is_read_only_and_for_this_machine() {
    let folder = Folder::new("control-tcp");
    let (_server, unix, address) = start_with_tcp(&folder);
    let ask = |head: &str| {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        (&stream).write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
        response(stream)
    };
    let (status, body) = ask("GET /v1/status HTTP/1.1\r\nHost: localhost:9154\r\n");
    assert!(status == 200 && body.contains("\"serving\":\"ready\""), "{status} {body}");
    for (head, refused) in [
        ("GET /v1/status HTTP/1.1\r\nHost: evil.example\r\n", 421),
        ("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403),
        ("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n", 403),
        ("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", 400),
        ("GET /v1/cache?name=a&name=b HTTP/1.1\r\nHost: localhost\r\n", 400),
        ("GET /v1/cache?name=%zz HTTP/1.1\r\nHost: localhost\r\n", 400),
        ("POST /v1/reload HTTP/1.1\r\nHost: localhost\r\n", 405),
        ("POST /v1/cache/flush HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n", 405),
        ("OPTIONS /v1/status HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n", 405),
    ] {
        let (status, body) = ask(head);
        assert_eq!(status, refused, "{head}: {body}");
    }
    for (request, allow) in [
        ("POST /v1/status", Some("GET, HEAD")),
        ("DELETE /v1/log", Some("GET, HEAD")),
        ("POST /v1/reload", Some("")),
        ("GET /v1/reload", Some("")),
        ("GET /v1/nothing", None),
    ] {
        assert_eq!(allow_of(TcpStream::connect(address).unwrap(), request).as_deref(), allow, "{request}");
    }
    for (request, allow) in
        [("POST /v1/status", "GET, HEAD"), ("DELETE /v1/log", "GET, HEAD, POST"), ("GET /v1/reload", "POST")]
    {
        assert_eq!(allow_of(unix.connect(), request).as_deref(), Some(allow), "{request}");
    }
}

/// Sends a request, and returns the header `Allow` of the response.
fn allow_of(mut stream: impl Read + Write, request: &str) -> Option<String> {
    write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.lines().find_map(|line| line.strip_prefix("allow:")).map(|value| value.trim().to_owned())
}

/// Writes the certificates of a server, of an operator and of a stranger, and a Corefile with a TLS listener.
fn with_certificates(folder: &Folder) -> PathBuf {
    certify_all(
        folder,
        "ca",
        &[
            ("cert", "key", &["127.0.0.1", "localhost"]),
            ("operator", "operator-key", &["operator"]),
            ("expired", "expired-key", &["operator"]),
            ("mixed", "other-key", &["operator"]),
        ],
    );
    std::fs::copy(folder.path().join("operator-key.pem"), folder.path().join("mixed-key.pem")).unwrap();
    certify_all(folder, "other", &[("stranger", "stranger-key", &["stranger"])]);
    let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|name| folder.path().join(name).display().to_string());
    let control = format!("whoami\n    control 0.0.0.0:0 {{\n read-only\n tls {cert} {key} {ca}\n }}");
    folder.write("Corefile", &COREFILE.replace("whoami", &control))
}

/// Listener with TLS, and the files of its clients.
struct Encrypted<'a> {
    folder: &'a Folder,
    port: u16,
}

impl Encrypted<'_> {
    /// Runs a command with the certificate of somebody and the CA certificates of a file.
    fn run(&self, words: &[&str], client: Option<&str>, ca: &str) -> Ran {
        let file = |name: &str| self.folder.path().join(format!("{name}.pem")).display().to_string();
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["--ca".to_owned(), file(ca)]);
        if let Some(name) = client {
            words.extend(["--cert".to_owned(), file(name), "--key".to_owned(), file(&format!("{name}-key"))]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        ControlSocket(format!("https://localhost:{}", self.port)).run(&words)
    }
}

#[test]
fn tls_serves_only_clients_with_a_certificate_of_the_ca() {
    let folder = Folder::new("control-tls");
    let mut server = Server::start(&with_certificates(&folder));
    let mut listening = [server.wait_for(" for control"), server.wait_for(" for control")];
    listening.sort_by_key(|line| line.contains('@'));
    let port = listening[0].split(' ').nth(3).unwrap().parse::<SocketAddr>().unwrap().port();
    let unix = ControlSocket(listening[1].split(' ').nth(3).unwrap().to_owned());
    let encrypted = Encrypted { folder: &folder, port };
    // They say nothing, and keep nobody out.
    let silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();

    let status = encrypted.run(&["status"], Some("operator"), "ca");
    assert!(status.code == 0 && status.stdout.contains("✓ serving"), "{}{}", status.stdout, status.stderr);
    let tail = encrypted.run(&["tail", "--last", "5"], Some("operator"), "ca");
    assert_eq!(tail.code, 0, "{}", tail.stderr);
    for (words, client, ca, message) in [
        (&["status"][..], None, "ca", "it serves only clients with a certificate of its CA: `--cert FILE --key FILE`"),
        (&["status"], Some("stranger"), "ca", "it serves only clients with a certificate of its CA"),
        (&["tail", "--last", "1"], None, "ca", "it serves only clients with a certificate of its CA"),
        (&["status"], Some("operator"), "other", "tls: failed to verify certificate: signed by an unknown authority"),
        (&["cache", "flush", "--all"], Some("operator"), "ca", "this listener is read-only"),
        (&["status"], Some("nobody"), "ca", "`--cert`: cannot open "),
        (&["status"], Some("operator"), "nobody", "`--ca`: cannot open "),
        (&["status"], Some("operator"), "key", "key.pem: the file contains no certificate"),
        (&["status"], Some("mixed"), "ca", "mixed-key.pem does not belong to the certificate "),
        (&["status"], Some("expired"), "ca", "the certificate of `--cert` has expired; renew it"),
        (&["status"], Some("stranger"), "ca", "(it does not know the CA of the certificate of `--cert`)"),
        (&["status"], None, "ca", "(you sent no certificate)"),
    ] {
        let ran = encrypted.run(words, client, ca);
        assert!(
            ran.code == 2 && ran.stderr.contains(message),
            "{words:?} {client:?} {ca}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
    for (name, message) in [
        (format!("http://127.0.0.1:{port}"), format!("a listener with `tls` needs `https://127.0.0.1:{port}`")),
        (format!("127.0.0.1:{port}"), format!("an address over TCP is `http://127.0.0.1:{port}` or `https://")),
    ] {
        let clear = ControlSocket(name).run(&["status"]);
        assert!(clear.code == 2 && clear.stderr.contains(&message), "{}", clear.stderr);
    }

    // A reload takes over the certificates of another CA, on the same port.
    let old = folder.path().join("ca.pem");
    std::fs::rename(&old, folder.path().join("old.pem")).unwrap();
    with_certificates(&folder);
    folder
        .write("Corefile", &format!("{}# changed\n", std::fs::read_to_string(folder.path().join("Corefile")).unwrap()));
    let reloaded = unix.run(&["reload"]);
    assert_eq!(reloaded.code, 0, "{}{}", reloaded.stdout, reloaded.stderr);
    wait_until("the new certificates are used", || encrypted.run(&["status"], Some("operator"), "ca").code == 0);
    let outdated = encrypted.run(&["status"], Some("operator"), "old");
    assert!(outdated.code == 2 && outdated.stderr.contains("failed to verify certificate"), "{}", outdated.stderr);
    drop(silent);
}

#[test]
fn reports_a_certificate_that_has_expired() {
    let folder = Folder::new("control-expired");
    certify_all(&folder, "ca", &[("expired", "key", &["localhost"])]);
    let [cert, key, ca] =
        ["expired.pem", "key.pem", "ca.pem"].map(|name| folder.path().join(name).display().to_string());
    let control = format!("whoami\n    control 127.0.0.1:0 {{\n read-only\n tls {cert} {key} {ca}\n }}");
    let mut server = Server::start(&folder.write("Corefile", &COREFILE.replace("whoami", &control)));
    let mut listening = [server.wait_for(" for control"), server.wait_for(" for control")];
    listening.sort_by_key(|line| line.contains('@'));
    let unix = ControlSocket(listening[1].split(' ').nth(3).unwrap().to_owned());
    let expected = format!("{cert} expired on 2020-01-02; clients refuse it. Replace the file");
    wait_until("the status has the problem", || {
        let problem = unix.status()["problems"][0].clone();
        problem["code"] == "PD-T02" && problem["text"] == expected.as_str()
    });
    server.wait_for(&expected);
}

#[test]
fn slow_and_stuck_clients_do_not_keep_others_out() {
    let corefile = COREFILE.replace("whoami", "whoami\n    prometheus localhost:0");
    let (mut server, socket, _folder) = start(&corefile);
    let pages = server.address_of("localhost:0");
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    // Ten send half a request, ten ask without ever reading the answer.
    let mut clients: Vec<UnixStream> = Vec::new();
    for number in 0..20 {
        let stream = socket.connect();
        let request: &[u8] = match number % 2 {
            0 => b"GET /v1/sta",
            _ => &b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100),
        };
        stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
        let _ = (&stream).write_all(request);
        clients.push(stream);
    }
    for _ in 0..20 {
        let asked = Instant::now();
        assert!(client.ask("a.test.", Type::A).is_some());
        // Well before the deadline of five seconds that ends a half request.
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
        assert_eq!(socket.run(&["status"]).code, 0);
    }
    let (_, metrics) = page(pages, "/metrics").unwrap();
    let evicted = metrics.lines().find(|line| line.contains("limit=\"control_connections\"")).unwrap();
    assert!(!evicted.ends_with(" 0"), "{evicted}");
    // The deadline for a request head ends those that sent half of one.
    for stream in clients.iter_mut().step_by(2) {
        assert_eq!(stream.read(&mut [0; 64]).unwrap(), 0);
    }
}

#[test]
fn an_endless_head_or_body_is_cut_off() {
    let (_server, socket, _folder) = start(COREFILE);
    let stream = socket.connect();
    let _ = (&stream).write_all(&[b"GET /v1/status HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; 1 << 20]].concat());
    assert!(matches!(response(stream).0, 431 | 400 | 0));
    let stream = socket.connect();
    let _ = (&stream).write_all(b"POST /v1/log HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = [b"1000\r\n".to_vec(), vec![b'x'; 4096], b"\r\n".to_vec()].concat();
    (0..100).for_each(|_| drop((&stream).write_all(&chunk)));
    assert!(matches!(response(stream).0, 413 | 0));
    assert_eq!(socket.run(&["status"]).code, 0);
}

#[test]
fn replaces_a_socket_that_nobody_listens_on_and_waits_for_one_in_use() {
    let folder = Folder::new("control-path");
    let path = folder.path().join("control.sock");
    let other = UnixListener::bind(&path).unwrap();
    let corefile = COREFILE.replace("whoami", &format!("whoami\n    control {}", path.display()));
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let refused = server.wait_for("control: cannot listen on");
    assert!(refused.contains("address already in use. End the process that uses it"), "{refused}");
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    assert!(client.ask("a.test.", Type::A).is_some());
    // The file stays behind, like that of a process that was killed.
    drop(other);
    let socket = ControlSocket::of(&mut server);
    assert_eq!((socket.0.as_str(), socket.run(&["status"]).code), (path.to_str().unwrap(), 0));
}

#[test]
fn keeps_a_file_that_is_not_a_socket() {
    let folder = Folder::new("control-file");
    let file = folder.write("Corefile.old", "do not delete\n");
    let link = folder.path().join("link.sock");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [file.as_path(), &link, folder.path()] {
        let corefile = COREFILE.replace("whoami", &format!("whoami\n    control {}", path.display()));
        let mut server = Server::start(&folder.write("Corefile", &corefile));
        let refused = server.wait_for("control: cannot listen on");
        let expected = format!("`{}` exists and is not a socket; remove it, or name another path", path.display());
        assert!(refused.contains(&expected), "{refused}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "do not delete\n");
        assert!(link.is_symlink() && folder.path().is_dir());
    }
}

#[test]
fn names_the_sockets_if_several_servers_run() {
    let (_one, first, _folder) = start(COREFILE);
    let (two, second, other_folder) = start(COREFILE);
    assert_ne!(first.0, second.0);
    let output = Command::new(env!("CARGO_BIN_EXE_portolan")).arg("status").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("choose one with `--socket`") && text.contains(&second.0), "{text}");
    let corefile = other_folder.path().join("Corefile");
    let described = format!("{} (process {}, Corefile {})", second.0, two.id(), corefile.display());
    assert!(text.contains(&described), "{described}: {text}");
}

#[test]
fn says_how_to_find_a_server_if_none_runs() {
    let missing = ControlSocket("/nonexistent/control.sock".to_owned()).run(&["status"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (2, ""));
    assert!(missing.stderr.contains("/nonexistent/control.sock: no such file or directory"), "{}", missing.stderr);
    for (name, expected) in [
        ("", "`--socket` is empty; expected a path, `@NAME`, `http://` or `https://`\n"),
        ("@nope", "no server listens on `@nope`; without `--socket`, the server that runs here is found\n"),
    ] {
        let ran = ControlSocket(name.to_owned()).run(&["status"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (2, expected));
    }
    let (_server, socket, _folder) = start(COREFILE);
    let ran = socket.run(&["cache", "flush", "--below", ""]);
    assert_eq!((ran.code, ran.stderr.as_str()), (2, "`--below` needs a domain name\n"));
}

#[test]
fn says_what_listens_instead_of_a_control_listener() {
    let folder = Folder::new("control-others");
    let (mut server, socket, address) = start_with_tcp(&folder);
    let ran = ControlSocket(format!("https://{address}")).run(&["status"]);
    let expected = format!("https://{address}: this listener has no TLS; use `http://{address}`\n");
    assert_eq!((ran.code, ran.stderr), (2, expected));

    let (mut other, _other_socket, _other_folder) = start(&COREFILE.replace("whoami", "prometheus localhost:0"));
    let pages = other.address_of("localhost:0");
    let ran = ControlSocket(format!("http://{pages}")).run(&["status"]);
    let expected = format!("http://{pages} is not a control listener: it responds with HTTP status 404 Not Found\n");
    assert_eq!((ran.code, ran.stderr), (2, expected));

    // The server ends while a client reads a stream.
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    let mut tail = socket.spawn(&["tail"]);
    let mut stdout = tail.stdout.take().unwrap();
    // Somebody reads to the end: a command that waits for its reader does not see that the server ends.
    let (first, is_open) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let read = stdout.read(&mut [0; 4096]).unwrap();
        first.send(read).unwrap();
        std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    });
    wait_until("the stream is open", || client.ask("a.test.", Type::A).is_some() && is_open.try_recv().is_ok());
    server.signal("KILL");
    let ran: Ran = tail.wait_with_output().unwrap().into();
    assert!(
        ran.code == 2 && ran.stderr == "the server shut down while responding; run the command again\n",
        "{} {}",
        ran.code,
        ran.stderr
    );
}

#[test]
fn says_who_may_use_a_socket_with_a_path() {
    if !is_root("says_who_may_use_a_socket_with_a_path") {
        return;
    }
    let folder = Folder::new("control-permission");
    let path = folder.path().join("control.sock");
    let corefile = COREFILE.replace("whoami", &format!("whoami\n    control {}", path.display()));
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let refused = ControlSocket::of(&mut server).run_as(STRANGER, &["status"]);
    let expected = format!("user {STRANGER} may not use the control socket of user 0; run the command as user 0");
    assert!(refused.code == 2 && refused.stderr.contains(&expected), "{}", refused.stderr);
}
