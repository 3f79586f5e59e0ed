//! Clients that people use, over all encrypted transports: curl, dig, kdig, dnspython, dnsperf, h2load and h2spec. A
//! test prints a message and is skipped if its program is not installed.
//!
//! dnspython runs in the interpreter `PORTOLAN_PYTHON`, or else `python3`. To run its test, install it in a virtual
//! environment:
//!
//! ```sh
//! python3 -m venv venv && venv/bin/pip install 'dnspython[doh,doq]'
//! PORTOLAN_PYTHON=$PWD/venv/bin/python cargo test -p portolan --test real real_clients
//! ```

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Server, certify};

const SCHEMES: [&str; 4] = ["tls", "https", "https3", "quic"];
/// Query for the address of www.example.org.
const TARGET: &str = "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA29yZwAAAQAB";

/// Server on all encrypted transports.
struct Running {
    _server: Server,
    addresses: Vec<(&'static str, SocketAddr)>,
    page: SocketAddr,
    folder: Folder,
}

impl Running {
    fn start(name: &str) -> Running {
        let folder = Folder::new(name);
        certify(&folder, &["dns.example.org", "127.0.0.1"]);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let (certificate, key) = (path("cert.pem"), path("key.pem"));
        let keys = SCHEMES.map(|scheme| format!("{scheme}://.:0")).join(" ");
        let hosts = "hosts /dev/null {\n192.0.2.1 www.example.org\n127.0.0.1 page.example.org\n}";
        let text = format!("{keys} {{\nbind 127.0.0.1\ntls {certificate} {key}\nprometheus 127.0.0.1:0\n{hosts}\n}}\n");
        let mut server = Server::start(&folder.write("Corefile", &text));
        let addresses = SCHEMES.map(|scheme| (scheme, server.address_of(&format!("{scheme}://127.0.0.1:0")))).to_vec();
        let page = server.address_of("127.0.0.1:0");
        Running { _server: server, addresses, page, folder }
    }

    fn port(&self, scheme: &str) -> String {
        self.addresses.iter().find(|(known, _)| *known == scheme).unwrap().1.port().to_string()
    }

    fn ca(&self) -> String {
        self.folder.path().join("ca.pem").display().to_string()
    }
}

/// Prints why a test is skipped. Not with a macro, because the test harness captures the output of macros.
fn skip(program: &str, install: &str) {
    crate::support::skip(format_args!("`{program}` is missing; {install}"));
}

/// Runs a program, and returns its output with its errors. Prints a message and returns `None` if it is not installed.
fn run(program: &str, package: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()),
        Err(_) => {
            skip(program, &format!("install the Debian package `{package}`"));
            None
        }
    }
}

#[test]
fn curl_resolves_names_over_https() {
    let running = Running::start("clients-curl");
    let (port, ca) = (running.port("https"), running.ca());
    let doh = format!("https://dns.example.org:{port}/dns-query");
    let known = format!("dns.example.org:{port}:127.0.0.1");
    let url = format!("http://page.example.org:{}/metrics", running.page.port());
    let arguments = ["--silent", "--show-error", "--doh-url", &doh, "--resolve", &known, "--cacert", &ca, &url];
    if let Some(text) = run("curl", "curl", &arguments) {
        assert!(text.contains("coredns_dns_https_responses_total"), "{text}");
    }
}

#[test]
fn dig_and_kdig_get_answers() {
    let running = Running::start("clients-dig");
    let ca = format!("+tls-ca={}", running.ca());
    for (program, package, options, scheme) in [
        ("dig", "bind9-dnsutils", "+tls", "tls"),
        ("dig", "bind9-dnsutils", "+https", "https"),
        ("dig", "bind9-dnsutils", "+https-get", "https"),
        ("kdig", "knot-dnsutils", "+tls", "tls"),
        ("kdig", "knot-dnsutils", "+https", "https"),
    ] {
        let port = running.port(scheme);
        let arguments = [options, &ca, "+tls-hostname=dns.example.org", "@127.0.0.1", "-p", &port, "www.example.org"];
        if let Some(text) = run(program, package, &arguments) {
            assert!(text.contains("status: NOERROR") && text.contains("192.0.2.1"), "{program} {options}: {text}");
        }
    }
}

#[test]
fn dnspython_gets_answers_over_all_transports() {
    let running = Running::start("clients-dnspython");
    let python = std::env::var("PORTOLAN_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let imports = "import aioquic, dns.query, sys; sys.exit(not dns.query.have_doh)";
    let is_installed = Command::new(&python).args(["-c", imports]).output().is_ok_and(|run| run.status.success());
    if !is_installed {
        return skip("dnspython", "set PORTOLAN_PYTHON to a Python with `pip install 'dnspython[doh,doq]'`");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/dnspython_client.py");
    let ports = SCHEMES.map(|scheme| running.port(scheme));
    let output = Command::new(python).arg(script).args(ports).arg(running.ca()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = ["tls", "quic", "h1 post", "h1 get", "h2 post", "h2 get", "h3 post", "h3 get"];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{}", String::from_utf8_lossy(&output.stderr));
}

/// dnsperf 2.10 reads one answer over HTTPS at a time, and loses the others that have arrived with it.
#[test]
fn dnsperf_gets_all_answers() {
    let running = Running::start("clients-dnsperf");
    let queries = running.folder.write("queries", &"www.example.org A\npage.example.org A\n".repeat(500));
    let queries = queries.display().to_string();
    for (mode, scheme, asked, in_flight) in [("dot", "tls", "-n1", "50"), ("doh", "https", "-l1", "1")] {
        let port = running.port(scheme);
        let uri = format!("doh-uri=https://127.0.0.1:{port}/dns-query");
        let server = ["-m", mode, "-s", "127.0.0.1", "-p", &port, "-O", &uri];
        let load = ["-d", &queries, asked, "-q", in_flight, "-c", "1"];
        let Some(text) = run("dnsperf", "dnsperf", &[&server[..], &load].concat()) else { return };
        assert!(text.contains("(100.00%)") && text.contains("Queries lost:         0 (0.00%)"), "{mode}: {text}");
        assert!(mode != "dot" || text.contains("NOERROR 1000 (100.00%)"), "{text}");
    }
}

#[test]
fn h2load_gets_all_responses() {
    let running = Running::start("clients-h2load");
    let url = format!("https://127.0.0.1:{}{TARGET}", running.port("https"));
    // 300 streams are more than the server allows at once.
    for load in [&["-n", "1000", "-c", "4", "-m", "32"][..], &["-n", "1000", "-m", "300"], &["-n", "200", "--h1"]] {
        let Some(text) = run("h2load", "nghttp2-client", &[load, &[&url]].concat()) else { return };
        let count = load[1];
        assert!(text.contains(&format!("status codes: {count} 2xx, 0 3xx, 0 4xx, 0 5xx")), "{load:?}: {text}");
        assert!(text.contains(&format!("{count} succeeded, 0 failed, 0 errored, 0 timeout")), "{load:?}: {text}");
    }
}

/// Returns the cases that h2spec reports as failed, or `None` if it is not installed.
fn faults(port: &str) -> Option<Vec<String>> {
    let arguments = ["-h", "127.0.0.1", "-p", port, "-t", "-k", "-o", "5", "-P", TARGET];
    let output = Command::new("h2spec").args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("145 tests, ") && text.contains(" 0 skipped"), "{text}");
    let failed = text.lines().filter(|line| line.trim_start().starts_with('×'));
    Some(failed.map(|line| line.trim().to_owned()).collect())
}

/// On a busy machine, the response to a request can overtake the broken frame that h2spec sends after it, and h2spec
/// takes it for the reaction. A real fault is in every run.
#[test]
fn h2spec_finds_no_fault() {
    let running = Running::start("clients-h2spec");
    let port = running.port("https");
    let Some(mut failed) = faults(&port) else {
        return skip("h2spec", "`go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible` installs it");
    };
    for _ in 0..4 {
        if failed.is_empty() {
            return;
        }
        let again = faults(&port).expect("it ran before");
        failed.retain(|case| again.contains(case));
    }
    assert!(failed.is_empty(), "{failed:?}");
}
