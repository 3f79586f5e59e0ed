//! Proxies in front of the server that pass on the address of the client: haproxy and dnsdist. A test prints a message
//! and is skipped if its program, or kdig, is not installed.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Folder, Server, certify, wait_until};
use testkit::ports::free_port;

/// Address from which kdig asks.
const CLIENT: &str = "127.0.0.9";

/// Server that answers with the address of the client, and takes it from the PROXY header.
struct Running {
    server: Server,
    folder: Folder,
}

impl Running {
    fn start(name: &str) -> Running {
        let folder = Folder::new(name);
        certify(&folder, &["dns.example.org"]);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let tls = format!("tls {} {}", path("cert.pem"), path("key.pem"));
        let common = "bind 127.0.0.1\nproxyproto {\nallow 127.0.0.1/32\n}\nwhoami";
        let clear = "bind 127.0.0.2\nproxyproto {\nallow 127.0.0.1/32\n}\nwhoami";
        let text = format!("dns://.:0 tls://.:0 https://.:0 {{\n{tls}\n{common}\n}}\nhttps://.:0 {{\n{clear}\n}}\n");
        let server = Server::start(&folder.write("Corefile", &text));
        Running { server, folder }
    }

    fn address_of(&mut self, label: &str) -> String {
        self.server.address_of(label).to_string()
    }

    /// Writes the certificate and its key to one file.
    fn both(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.folder.path().join(name)).unwrap();
        self.folder.write("both.pem", &(read("cert.pem") + &read("key.pem"))).display().to_string()
    }
}

/// Running proxy, which is killed on drop.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a proxy that Debian installs in `/usr/sbin`. Prints a message and returns `None` if it is missing.
fn start(program: &str, arguments: &[&str], file: &Path) -> Option<Proxy> {
    let mut command = Command::new(program);
    command.env("PATH", std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin");
    command.args(arguments).arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = command.spawn().ok();
    let has_client = Command::new("kdig").arg("-V").output().is_ok();
    if started.is_none() || !has_client {
        // Not with a macro, because the test harness captures the output of macros.
        crate::support::skip(format_args!("`{program}` or `kdig` is missing; install their Debian packages"));
    }
    started.map(Proxy).filter(|_| has_client)
}

/// Checks that the server sees the address of kdig.
fn expect_client_address(port: u16, ca: &Path, options: &[&str]) {
    let (port, ca) = (port.to_string(), format!("+tls-ca={}", ca.display()));
    let mut command = Command::new("kdig");
    command.args(["-b", CLIENT, "@127.0.0.1", "-p", &port, "+retry=0", "+timeout=1"]).args(options);
    if options.iter().any(|option| option.starts_with("+tls") || option.starts_with("+https")) {
        command.args([&ca, "+tls-hostname=dns.example.org"]);
    }
    command.args(["who.test", "A"]);
    let mut text = String::new();
    wait_until(&format!("an answer through the proxy to {options:?}"), || {
        text = String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned();
        text.contains("status: NOERROR")
    });
    assert!(text.contains(&format!("A\t{CLIENT}")), "{options:?}: {text}");
}

#[test]
fn haproxy_passes_on_the_address_of_the_client() {
    let mut running = Running::start("proxies-haproxy");
    let both = running.both();
    let mut text = "defaults\n timeout connect 5s\n timeout client 10s\n timeout server 10s\n".to_owned();
    let rows: [(&str, &str, &str, &[&str]); 4] = [
        ("dns://127.0.0.1:0", "send-proxy", "", &["+tcp"]),
        ("tls://127.0.0.1:0", "send-proxy-v2", "", &["+tls"]),
        ("https://127.0.0.1:0", "send-proxy-v2", "", &["+https"]),
        ("https://127.0.0.2:0", "send-proxy-v2", "ssl crt BOTH alpn h2,http/1.1", &["+https"]),
    ];
    let ports = rows.map(|(label, version, tls, _)| {
        let (port, to, tls) = (free_port(), running.address_of(label), tls.replace("BOTH", &both));
        let mode = if tls.is_empty() { "tcp" } else { "http" };
        text.push_str(&format!(
            "frontend f{port}\n mode {mode}\n bind 127.0.0.1:{port} {tls}\n default_backend b{port}\n\
             backend b{port}\n mode {mode}\n server s {to} {version}\n"
        ));
        port
    });
    let file = running.folder.write("haproxy.cfg", &text);
    let Some(_proxy) = start("haproxy", &["-db", "-f"], &file) else { return };
    for (port, (_, _, _, options)) in ports.into_iter().zip(rows) {
        expect_client_address(port, &running.folder.path().join("ca.pem"), options);
    }
}

#[test]
fn dnsdist_passes_on_the_address_of_the_client() {
    let mut running = Running::start("proxies-dnsdist");
    let to = running.address_of("dns://127.0.0.1:0");
    let [plain, tls, https] = [(); 3].map(|()| free_port());
    let home = running.folder.path().display();
    let text = format!(
        "setLocal('127.0.0.1:{plain}')\naddTLSLocal('127.0.0.1:{tls}', '{home}/cert.pem', '{home}/key.pem')\n\
         addDOHLocal('127.0.0.1:{https}', '{home}/cert.pem', '{home}/key.pem', '/dns-query')\nsetACL('127.0.0.0/8')\n\
         setSecurityPollSuffix('')\nnewServer({{address='{to}', useProxyProtocol=true, healthCheckMode='up'}})\n"
    );
    let file = running.folder.write("dnsdist.conf", &text);
    let Some(_proxy) = start("dnsdist", &["--supervised", "--disable-syslog", "-C"], &file) else { return };
    let rows: [(u16, &[&str]); 4] = [(plain, &[]), (plain, &["+tcp"]), (tls, &["+tls"]), (https, &["+https"])];
    for (port, options) in rows {
        expect_client_address(port, &running.folder.path().join("ca.pem"), options);
    }
}
