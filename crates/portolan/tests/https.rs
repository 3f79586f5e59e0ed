//! DNS over HTTPS with HTTP/1.1 and HTTP/2: the whole server with its workers, hyper as the client, curl, kdig and dig.
//! A test prints a message and is skipped if its program is not installed.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use crate::support::http::{Http, HttpClient, get, post, request, server_name, tls_client};
use crate::support::{Answer, Folder, Server, certify, page, query, wait_until};
use wire::{Message, Rcode, Type};

const HOSTS: &str = "hosts /dev/null {\n192.0.2.1 www.example.org\n}";

/// Server for HTTPS, with a certificate and without.
struct Running {
    folder: Folder,
    server: Server,
    clear: SocketAddr,
    encrypted: SocketAddr,
}

impl Running {
    fn start(name: &str, lines: &str) -> Running {
        let folder = Folder::new(name);
        certify(&folder, &["dns.example.org", "127.0.0.1"]);
        let mut server = Server::start(&folder.write("Corefile", &corefile(&folder, lines)));
        let clear = server.address_of("https://127.0.0.1:0");
        let encrypted = server.address_of("https://127.0.0.2:0");
        Running { folder, server, clear, encrypted }
    }

    fn connect(&self, http: Http) -> HttpClient {
        let to = if http == Http::Clear { self.clear } else { self.encrypted };
        HttpClient::connect(to, http, &self.folder.path().join("ca.pem"))
    }
}

fn corefile(folder: &Folder, lines: &str) -> String {
    let path = |name: &str| folder.path().join(name).display().to_string();
    let tls = format!("tls {} {}", path("cert.pem"), path("key.pem"));
    format!("https://.:0 {{\nbind 127.0.0.1\n{lines}\n}}\nhttps://.:0 {{\nbind 127.0.0.2\n{tls}\n{lines}\n}}\n")
}

const ALL: [Http; 3] = [Http::Clear, Http::One, Http::Two];

#[test]
fn answers_get_and_post() {
    let running = Running::start("https", HOSTS);
    for http in ALL {
        let mut client = running.connect(http);
        for id in [0, 77] {
            let message = query(id, "www.example.org.", Type::A);
            for request in [get(&message), post(message.clone())] {
                let response = client.send(request).unwrap();
                assert_eq!(response.status(), 200, "{http:?}");
                let field = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
                assert_eq!(field("content-type"), "application/dns-message");
                assert_eq!(field("cache-control"), "max-age=3600");
                assert_eq!(field("content-length"), response.body().len().to_string());
                let answer = Answer(response.body().to_vec());
                assert_eq!(answer.header().id, id);
                assert_eq!(answer.addresses(), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
            }
        }
    }
}

#[test]
fn every_response_code_has_status_200() {
    let lines = "template ANY A denied.example.org {\nrcode NXDOMAIN\n}\nacl refused.example.org {\nblock\n}";
    let running = Running::start("https-rcodes", &format!("{lines}\n{HOSTS}"));
    for http in ALL {
        let mut client = running.connect(http);
        for (name, rcode) in [
            ("denied.example.org.", Rcode::NXDOMAIN),
            ("refused.example.org.", Rcode::REFUSED),
            ("example.net.", Rcode::SERVFAIL),
        ] {
            let response = client.send(post(query(1, name, Type::A))).unwrap();
            assert_eq!(response.status(), 200, "{http:?} {name}");
            assert_eq!(response.headers()["cache-control"], "max-age=5", "{http:?} {name}");
            assert_eq!(Answer(response.into_body().to_vec()).rcode(), rcode, "{http:?}");
        }
    }
}

/// Method, target, content type, length of the body, usual status, status with `strict`.
type Row = (&'static str, &'static str, &'static str, usize, u16, u16);

const QUERY: &str = "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA29yZwAAAQAB";

const ROWS: [Row; 13] = [
    ("GET", QUERY, "application/dns-message", 0, 200, 200),
    ("GET", QUERY, "text/plain", 0, 200, 200),
    ("GET", "/", "", 0, 404, 404),
    ("POST", "/dns-query/", "application/dns-message", 12, 404, 404),
    ("GET", "/dns-query?name=www.example.org", "", 0, 400, 400),
    ("GET", "/dns-query?dns=AAAA=", "", 0, 400, 400),
    ("GET", "/dns-query?dns=AAAA", "", 0, 400, 400),
    ("HEAD", QUERY, "", 0, 400, 405),
    ("PUT", "/dns-query", "application/dns-message", 12, 400, 405),
    ("POST", "/dns-query", "text/plain", 12, 200, 415),
    ("POST", "/dns-query", "application/dns-message", 11, 400, 400),
    ("POST", "/dns-query", "application/dns-message", 65_536, 400, 413),
    ("POST", "/dns-query", "application/dns-message", 200_000, 400, 413),
];

#[test]
fn refuses_requests_with_the_status_codes_of_coredns_or_strict_ones() {
    let usual = Running::start("https-usual", HOSTS);
    let strict = Running::start("https-strict", &format!("https {{\nstrict\n}}\n{HOSTS}"));
    for http in ALL {
        // One connection for all: a refused request does not end it.
        let (mut usual, mut strict) = (usual.connect(http), strict.connect(http));
        for (method, target, content_type, length, expected, expected_strict) in ROWS {
            for (client, expected) in [(&mut usual, expected), (&mut strict, expected_strict)] {
                let mut request = request(method, target, vec![0; length]);
                request.headers_mut().insert("content-type", content_type.parse().unwrap());
                let row = format!("{http:?} {method} {target} {content_type} {length}");
                let response = client.send(request).unwrap_or_else(|| panic!("the connection has ended: {row}"));
                assert_eq!(response.status(), expected, "{row}");
                assert_eq!(response.headers().contains_key("allow"), expected == 405, "{row}");
            }
        }
    }
}

#[test]
fn answers_are_never_truncated() {
    let folder = Folder::new("https-long");
    let records: String = (0..250).map(|number| format!("long IN TXT \"{number:0>220}\"\n")).collect();
    let zone = folder
        .write("zone", &format!("$ORIGIN example.org.\n$TTL 60\n@ IN SOA ns host 1 2 3 4 5\n@ IN NS ns\n{records}"));
    let running = Running::start("https-long-server", &format!("file {} example.org", zone.display()));
    for http in ALL {
        let answer = running.connect(http).ask("long.example.org.", Type::TXT).unwrap();
        let message = Message::parse(&answer.0).unwrap();
        assert_eq!((message.header().answers, message.header().flags.truncated()), (250, false), "{http:?}");
        assert!(answer.0.len() > 50_000);
    }
}

#[test]
fn forwards_queries_of_clients_over_https() {
    let folder = Folder::new("https-upstream");
    let text = format!(".:0 {{\nbind 127.0.0.1\n{HOSTS}\n}}\n");
    let mut upstream = Server::start(&folder.write("Corefile", &text));
    let to = upstream.address_of("dns://127.0.0.1:0");
    let running = Running::start("https-forward", &format!("forward . {to}"));
    for http in ALL {
        let requests = (0..50).map(|id| post(query(id, "www.example.org.", Type::A))).collect();
        for (id, response) in running.connect(http).send_all(requests).into_iter().enumerate() {
            let answer = Answer(response.unwrap().into_body().to_vec());
            assert_eq!((usize::from(answer.header().id), answer.addresses().len()), (id, 1), "{http:?}");
        }
    }
}

#[test]
fn a_query_without_an_answer_has_status_500() {
    let running = Running::start("https-drop", &format!("acl {{\ndrop\n}}\n{HOSTS}"));
    for http in ALL {
        let response = running.connect(http).send(post(query(1, "www.example.org.", Type::A))).unwrap();
        assert_eq!((response.status().as_u16(), &response.body()[..]), (500, &b"No response\n"[..]), "{http:?}");
    }
}

#[test]
fn counts_responses_like_coredns() {
    let mut running = Running::start("https-metrics", &format!("{HOSTS}\nprometheus 127.0.0.1:0\nlog"));
    let metrics = running.server.address_of("127.0.0.1:0");
    let mut client = running.connect(Http::Two);
    for _ in 0..3 {
        assert!(client.ask("www.example.org.", Type::A).is_some());
    }
    assert_eq!(client.send(request("GET", "/", Vec::new())).unwrap().status(), 404);
    running.server.wait_for("A IN www.example.org. tcp ");
    let text = page(metrics, "/metrics").unwrap().1;
    for line in [
        "coredns_dns_https_responses_total{server=\"https://127.0.0.2:0\",status=\"200\"} 3",
        "coredns_dns_https_responses_total{server=\"https://127.0.0.2:0\",status=\"404\"} 1",
        "coredns_dns_requests_total{server=\"https://127.0.0.2:0\",zone=\".\",view=\"\",proto=\"tcp\",family=\"1\",type=\"A\"} 3",
    ] {
        assert!(text.contains(line), "{line}");
    }
}

#[test]
fn announces_http3_only_if_configured() {
    for (lines, expected) in
        [("", None), ("https {\nalt_svc\n}", Some("h3=\":443\"")), ("https {\nalt_svc 8443\n}", Some("h3=\":8443\""))]
    {
        let running = Running::start("https-alt-svc", &format!("{lines}\n{HOSTS}"));
        for http in ALL {
            let mut client = running.connect(http);
            for request in [post(query(1, "www.example.org.", Type::A)), request("GET", "/", Vec::new())] {
                let response = client.send(request).unwrap();
                let announced = response.headers().get("alt-svc").map(|value| value.to_str().unwrap());
                assert_eq!(announced, expected, "{http:?}");
            }
        }
    }
}

#[test]
fn ignores_x_forwarded_for() {
    let running = Running::start("https-forwarded-for", "acl {\nblock net 10.0.0.0/8\n}\nwhoami");
    for http in ALL {
        let mut request = post(query(1, "www.example.org.", Type::A));
        for field in ["x-forwarded-for", "x-real-ip", "cf-connecting-ip", "true-client-ip"] {
            request.headers_mut().insert(field, "10.1.2.3".parse().unwrap());
        }
        request.headers_mut().insert("forwarded", "for=10.1.2.3".parse().unwrap());
        let answer = Answer(running.connect(http).send(request).unwrap().into_body().to_vec());
        let addresses = answer.addresses();
        assert!(addresses.len() == 1 && addresses[0].is_loopback(), "{http:?}: {addresses:?}");
    }
}

#[test]
fn an_idle_connection_does_not_delay_the_shutdown() {
    let mut running = Running::start("https-end", HOSTS);
    let mut clients = ALL.map(|http| running.connect(http));
    for client in &mut clients {
        assert!(client.ask("www.example.org.", Type::A).is_some());
    }
    running.server.signal("TERM");
    assert_eq!(running.server.wait(), Some(0));
    for client in &mut clients {
        assert!(client.ask("www.example.org.", Type::A).is_none());
    }
}

#[test]
fn closes_connections_beyond_the_limit() {
    let running = Running::start("https-bound", &format!("https {{\nmax_connections 1\n}}\n{HOSTS}"));
    let mut first = running.connect(Http::Clear);
    assert!(first.ask("www.example.org.", Type::A).is_some());
    let mut second = TcpStream::connect(running.clear).unwrap();
    assert_eq!(second.read(&mut [0]).unwrap(), 0);
    assert!(first.ask("www.example.org.", Type::A).is_some());
    drop(first);
    wait_until("there is room again", || running.connect(Http::Clear).ask("www.example.org.", Type::A).is_some());
}

#[test]
fn an_idle_connection_ends_after_the_idle_time() {
    let running = Running::start("https-idle", &format!("timeouts {{\nidle 1s\n}}\n{HOSTS}"));
    for http in ALL {
        let mut client = running.connect(http);
        assert!(client.ask("www.example.org.", Type::A).is_some());
        client.wait(Duration::from_millis(1500));
        assert!(client.ask("www.example.org.", Type::A).is_none(), "{http:?}");
    }
}

#[test]
fn http1_connections_continue_after_a_pause() {
    let running = Running::start("https-pause", HOSTS);
    for http in [Http::Clear, Http::One] {
        let mut client = running.connect(http);
        assert_eq!(client.send(request("PUT", "/dns-query", vec![0; 20])).unwrap().status(), 400, "{http:?}");
        assert!(client.ask("www.example.org.", Type::A).is_some(), "{http:?}");
        // The server frees the buffers of the connection meanwhile.
        client.wait(Duration::from_millis(2200));
        assert!(client.send(get(&query(1, "www.example.org.", Type::A))).is_some(), "{http:?}");
        assert!(client.ask("www.example.org.", Type::A).is_some(), "{http:?}");
    }
    // A request in pieces, after a pause.
    let first = format!("GET {QUERY} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut stream = TcpStream::connect(running.clear).unwrap();
    stream.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
    stream.write_all(first.as_bytes()).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    std::thread::sleep(Duration::from_millis(2200));
    let _ = stream.read(&mut [0; 1000]).unwrap();
    for piece in first.as_bytes().chunks(7) {
        stream.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    let _ = stream.read(&mut [0; 1000]).unwrap();
    // The idle time and the time limit of a request hold after a pause too.
    std::thread::sleep(Duration::from_millis(2200));
    let start = std::time::Instant::now();
    stream.write_all(&first.as_bytes()[..20]).unwrap();
    assert_eq!(stream.read(&mut [0; 1000]).unwrap_or(0), 0);
    assert!((Duration::from_secs(2)..crate::support::PATIENCE).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// Sends bytes over HTTP/1.1 without TLS, and returns all bytes until the server closes the connection.
fn raw(to: SocketAddr, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
    for piece in pieces {
        stream.write_all(piece).unwrap();
    }
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read);
    String::from_utf8_lossy(&read).into_owned()
}

#[test]
fn http1_answers_pipelined_and_chunked_requests_in_order() {
    let running = Running::start("https-raw", HOSTS);
    let message = query(7, "www.example.org.", Type::A);
    let chunked = [
        &b"POST /dns-query HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5\r\n"[..],
        &message[..5],
        format!("\r\n{:x}\r\n", message.len() - 5).as_bytes(),
        &message[5..],
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let first = format!("GET {QUERY} HTTP/1.1\r\nHost: x\r\n\r\n");
    let last = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let text = raw(running.clear, &[first.as_bytes(), &chunked, last]);
    let statuses: Vec<_> = text.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
    assert!(["200 200 404", "200 100 200 404"].contains(&statuses.join(" ").as_str()), "{text}");
}

#[test]
fn http1_refuses_long_headers() {
    let running = Running::start("https-headers", HOSTS);
    let field = format!("X: {}\r\n", "x".repeat(17 << 10));
    let text = raw(running.clear, &[b"GET / HTTP/1.1\r\n", field.as_bytes(), b"\r\n"]);
    assert!(text.starts_with("HTTP/1.1 431"), "{text}");
}

#[test]
fn clear_http2_is_not_served() {
    let running = Running::start("https-clear", HOSTS);
    let text = raw(running.clear, &[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]);
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
}

#[test]
fn tls_clients_choose_the_version_by_alpn() {
    let running = Running::start("https-alpn", HOSTS);
    let negotiated = |alpn: &[&str]| {
        let config = tls_client(&running.folder.path().join("ca.pem"), alpn);
        let mut tls = rustls::ClientConnection::new(config.into(), server_name()).unwrap();
        let mut stream = TcpStream::connect(running.encrypted).unwrap();
        tls.complete_io(&mut stream).map(|_| tls.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()))
    };
    assert_eq!(negotiated(&["http/1.1", "h2"]).unwrap().as_deref(), Some("h2"));
    assert_eq!(negotiated(&["http/1.1"]).unwrap().as_deref(), Some("http/1.1"));
    assert_eq!(negotiated(&[]).unwrap(), None);
    // The alert no_application_protocol (RFC 7301 §3.2).
    let error = negotiated(&["dot"]).unwrap_err();
    let alert = rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol);
    assert_eq!(error.get_ref().and_then(|error| error.downcast_ref()), Some(&alert), "{error}");
}

/// Runs a program and returns its output. Prints a message and returns `None` if it is not installed.
fn run(program: &str, package: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Err(error) => {
            crate::support::skip(format_args!("{program}: {error}; install the Debian package `{package}`"));
            None
        }
        Ok(output) => Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()),
    }
}

#[test]
fn kdig_and_dig_get_answers() {
    let running = Running::start("https-kdig", HOSTS);
    let ca = format!("+tls-ca={}", running.folder.path().join("ca.pem").display());
    let (at, port) = (format!("@{}", running.encrypted.ip()), running.encrypted.port().to_string());
    let name = "+tls-hostname=dns.example.org";
    for (program, package, option) in [
        ("kdig", "knot-dnsutils", "+https"),
        ("kdig", "knot-dnsutils", "+https-get"),
        ("dig", "bind9-dnsutils", "+https"),
        ("dig", "bind9-dnsutils", "+https-get"),
    ] {
        if let Some(text) = run(program, package, &[option, &ca, name, &at, "-p", &port, "www.example.org"]) {
            assert!(text.contains("status: NOERROR") && text.contains("192.0.2.1"), "{program} {option}: {text}");
        }
    }
}

#[test]
fn curl_gets_answers() {
    let running = Running::start("https-curl", HOSTS);
    let ca = running.folder.path().join("ca.pem").display().to_string();
    let port = running.encrypted.port();
    let resolve = format!("dns.example.org:{port}:{}", running.encrypted.ip());
    let url = format!("https://dns.example.org:{port}{QUERY}");
    for version in ["--http1.1", "--http2"] {
        let arguments = [version, "--silent", "--show-error", "--cacert", &ca, "--resolve", &resolve, "--output", "-"];
        let show = ["--write-out", "[%{http_version} %{http_code} %{content_type}]", &url];
        let Some(text) = run("curl", "curl", &[&arguments[..], &show].concat()) else { return };
        let expected = if version == "--http2" { "[2 200" } else { "[1.1 200" };
        assert!(text.contains(&format!("{expected} application/dns-message]")), "{text}");
    }
}

/// Number of tries, because a reset overtakes a response only now and then.
const TRIES: usize = 20;

#[test]
fn a_refusal_arrives_before_the_body_has_been_sent() {
    let running = Running::start("https-early", HOSTS);
    for http in ALL {
        for (method, path, status) in [("PUT", "/dns-query", 400), ("POST", "/other", 404), ("POST", "/dns-query", 400)]
        {
            for at in 0..TRIES {
                // A connection of its own, because a reset would end it.
                let mut client = running.connect(http);
                let response = client.send(request(method, path, vec![0; 70_000]));
                assert_eq!(response.map(|response| response.status().as_u16()), Some(status), "{http:?} {path} {at}");
            }
        }
    }
}

#[test]
fn curl_sees_the_status_of_a_refusal_with_a_body() {
    let running = Running::start("https-curl-early", HOSTS);
    let body = running.folder.write("body", &"x".repeat(70_000)).display().to_string();
    let url = format!("https://{}/dns-query", running.encrypted);
    for version in ["--http1.1", "--http2"] {
        for at in 0..TRIES {
            let arguments = [version, "--silent", "--show-error", "--insecure", "--request", "PUT", "--data-binary"];
            let file = format!("@{body}");
            let show = [file.as_str(), "--output", "/dev/null", "--write-out", "[%{http_code}]", &url];
            let Some(text) = run("curl", "curl", &[&arguments[..], &show].concat()) else { return };
            assert_eq!(text, "[400]", "{version} {at}");
        }
    }
}
