//! `portolan relay` in front of a fake API server: a Portolan that subscribes to it, and curl as a foreign client.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fakeapi::{FakeApi, Fault, service};
use serde_json::{Value, json};
use wire::Type;

use crate::support::kubernetes::are_in_path;
use crate::support::{Client, Folder, PATIENCE, Server, certify, packages, page, wait_until};

const SUBJECT: &str = "system:serviceaccount:kube-system:portolan-every-node";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const WEB: &str = "web.shop.svc.cluster.local.";

/// Issuer of tokens, as an API server is one.
struct Issuer(EcdsaKeyPair);

impl Issuer {
    fn new() -> Issuer {
        Issuer(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    /// Publishes keys and issuer at an API server.
    fn publish(&self, api: &FakeApi) {
        let point = self.0.public_key().as_ref();
        let [x, y] = [&point[1..33], &point[33..]].map(|half| URL_SAFE_NO_PAD.encode(half));
        let key = json!({ "kty": "EC", "crv": "P-256", "kid": "a", "x": x, "y": y, "use": "sig", "alg": "ES256" });
        api.put_document("/openid/v1/jwks", json!({ "keys": [key] }));
        api.put_document("/.well-known/openid-configuration", json!({ "issuer": ISSUER }));
    }

    /// Returns a token that is valid for this many seconds from now.
    fn token(&self, audience: &str, seconds: i64) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed();
        let claims = json!({ "iss": ISSUER, "aud": [audience], "exp": now + seconds, "sub": SUBJECT });
        let [header, claims] = [json!({ "alg": "ES256", "kid": "a" }), claims].map(|part| part.to_string());
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Running relay with its API server.
struct Relay {
    api: FakeApi,
    issuer: Issuer,
    folder: Folder,
    server: Server,
    address: SocketAddr,
    pages: SocketAddr,
}

impl Relay {
    fn start() -> Relay {
        let api = FakeApi::with_shop();
        let (issuer, folder) = (Issuer::new(), Folder::new("relay"));
        issuer.publish(&api);
        certify(&folder, &["127.0.0.1"]);
        let mut relay = Relay::with(api, issuer, folder);
        relay.wait_ready();
        relay
    }

    fn with(api: FakeApi, issuer: Issuer, folder: Folder) -> Relay {
        let (server, pages, address) = start(&api, &folder);
        Relay { api, issuer, folder, server, address, pages }
    }

    fn wait_ready(&mut self) {
        let pages = self.pages;
        wait_until("the relay is ready", || page(pages, "/ready").is_some_and(|(status, _)| status == 200));
    }

    fn token(&self) -> String {
        self.issuer.token("portolan-relay", 600)
    }

    /// Writes a kubeconfig with the URL of this relay, its authority and a token, and returns its path.
    fn kubeconfig(&self) -> PathBuf {
        let (ca, token) = (self.folder.path().join("ca.pem"), self.folder.write("token", &self.token()));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "relay",
            "clusters": [{ "name": "relay", "cluster": {
                "server": format!("https://{}", self.address), "certificate-authority": ca,
            } }],
            "users": [{ "name": "node", "user": { "tokenFile": token } }],
            "contexts": [{ "name": "relay", "context": { "cluster": "relay", "user": "node" } }],
        });
        self.folder.write("kubeconfig", &config.to_string())
    }

    /// Starts a server that reads the cluster from this relay, with its DNS at `dns://127.0.0.1:0`.
    fn node(&self) -> Server {
        let corefile = format!(
            "dns://.:0 {{\n bind 127.0.0.1\n kubernetes cluster.local {{\n  kubeconfig {}\n ttl 0\n }}\n}}\n",
            self.kubeconfig().display()
        );
        Server::start(&self.folder.write("Corefile", &corefile))
    }

    /// Returns curl for a path, with the CA and this token.
    fn curl(&self, token: &str, path: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("curl");
        let ca = self.folder.path().join("ca.pem");
        command.args(["--silent", "--show-error", "--no-buffer", "--cacert"]).arg(ca);
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
        command.args(arguments).arg(format!("https://{}{path}", self.address));
        command.stdout(Stdio::piped());
        command
    }

    /// Requests a path. Returns the status and the JSON body.
    fn get(&self, token: &str, path: &str, arguments: &[&str]) -> (u16, Value) {
        let arguments = [&["--write-out", "\n%{http_code}"], arguments].concat();
        let output = self.curl(token, path, &arguments).output().expect("curl runs");
        let text = String::from_utf8(output.stdout).unwrap();
        let (body, status) = text.rsplit_once('\n').expect("a status");
        (status.parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
    }

    fn metric(&self, line: &str) -> bool {
        page(self.pages, "/metrics").is_some_and(|(_, text)| text.lines().any(|known| known == line))
    }
}

/// Starts a relay with the certificate of a folder. Returns it with the addresses of its pages and for subscribers.
fn start(api: &FakeApi, folder: &Folder) -> (Server, SocketAddr, SocketAddr) {
    start_from(["--api-server".into(), api.url().into()], folder, "keys.json")
}

/// Starts a relay with the options that name its API server.
fn start_from(source: [OsString; 2], folder: &Folder, keys: &str) -> (Server, SocketAddr, SocketAddr) {
    let file = |name: &str| folder.path().join(name).into_os_string();
    let mut words: Vec<OsString> = vec!["relay".into()];
    words.extend(source);
    for (option, value) in
        [("--certificate", file("cert.pem")), ("--key", file("key.pem")), ("--keys-file", file(keys))]
    {
        words.extend([option.into(), value]);
    }
    words.extend(["--listen", "127.0.0.1:0", "--metrics", "localhost:0"].map(OsString::from));
    let mut server = Server::start_with(&words.iter().map(OsString::as_os_str).collect::<Vec<_>>());
    let pages = server.address_of("localhost:0");
    let address = server.address_of("relay://127.0.0.1:0");
    (server, pages, address)
}

/// Watch by curl.
struct Watch {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Watch {
    fn start(relay: &Relay, path: &str, arguments: &[&str]) -> Watch {
        let mut child = relay.curl(&relay.token(), path, arguments).spawn().expect("curl runs");
        let (sender, lines) = std::sync::mpsc::channel();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Watch { child, lines }
    }

    /// Returns the next event that is no bookmark, or the end: type, name and version.
    fn next(&self) -> Option<(String, String, u64)> {
        loop {
            let (what, name, version) = self.next_of_any()?;
            if what != "BOOKMARK" {
                return Some((what, name, version));
            }
        }
    }

    fn next_of_any(&self) -> Option<(String, String, u64)> {
        let line = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(error) => panic!("{error}: a watch is silent"),
        };
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let metadata = &event["object"]["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some((text(&event["type"]), text(&metadata["name"]), text(&metadata["resourceVersion"]).parse().unwrap_or(0)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_reads_the_cluster_from_a_relay() {
    let mut relay = Relay::start();
    let mut node = relay.node();
    let mut client = Client::new(node.address_of("dns://127.0.0.1:0"));
    let mut address = |name: &str| client.ask(name, Type::A).and_then(|answer| answer.addresses().first().copied());
    wait_until("the Service is there", || address(WEB) == Some(Ipv4Addr::new(10, 96, 0, 11).into()));
    relay.api.put(service("shop", "new", "10.96.0.12"));
    wait_until("a new Service is there", || {
        address("new.shop.svc.cluster.local.") == Some(Ipv4Addr::new(10, 96, 0, 12).into())
    });
    let lists = || relay.api.seen().iter().filter(|seen| seen.is_streaming_list()).count();
    assert_eq!(lists(), 3, "only the relay lists at the API server");

    // Without the API server, what is known stays, also for a relay that forgets nothing.
    relay.api.down();
    assert_eq!(address(WEB), Some(Ipv4Addr::new(10, 96, 0, 11).into()));
    relay.api.up();
    relay.api.put(service("shop", "later", "10.96.0.13"));
    wait_until("the relay follows again", || {
        address("later.shop.svc.cluster.local.") == Some(Ipv4Addr::new(10, 96, 0, 13).into())
    });
    relay.server.signal("TERM");
    assert_eq!(relay.server.wait(), Some(0));
    assert_eq!(address(WEB), Some(Ipv4Addr::new(10, 96, 0, 11).into()));
}

/// The storage may be restored while no connection breaks: the API server then sends nothing to the watches, whose
/// versions it does not have yet.
#[test]
fn a_relay_detects_that_the_storage_was_restored() {
    let relay = Relay::start();
    relay.api.put(service("shop", "lost", "10.96.0.50"));
    let mut node = relay.node();
    let mut client = Client::new(node.address_of("dns://127.0.0.1:0"));
    let mut address = |name: &str| client.ask(name, Type::A).and_then(|answer| answer.addresses().first().copied());
    let lost = "lost.shop.svc.cluster.local.";
    wait_until("the Service is there", || address(lost) == Some(Ipv4Addr::new(10, 96, 0, 50).into()));
    relay.api.fault("services", Fault::Silence);
    relay.api.delete("services", "shop", "lost");
    relay.api.put_back(1);
    relay.api.heal("services");
    wait_until("the Service is gone", || address(lost).is_none());
    let is_check = |seen: &&fakeapi::ReceivedRequest| {
        seen.parameter("limit") == "1" && seen.parameter("resourceVersionMatch") == "NotOlderThan"
    };
    let checks = relay.api.seen().iter().filter(is_check).count();
    assert_eq!(checks, 0, "the proof shows it, and not the check after a long silence");
    relay.api.put(service("shop", "next", "10.96.0.51"));
    wait_until("the next Service is there", || {
        address("next.shop.svc.cluster.local.") == Some(Ipv4Addr::new(10, 96, 0, 51).into())
    });
}

/// A relay compares the number of objects each 10 to 30 s.
#[test]
fn a_relay_finds_what_the_api_server_has_left_out() {
    let relay = Relay::start();
    let mut node = relay.node();
    let mut client = Client::new(node.address_of("dns://127.0.0.1:0"));
    let mut address = |name: &str| client.ask(name, Type::A).and_then(|answer| answer.addresses().first().copied());
    wait_until("the Service is there", || address(WEB) == Some(Ipv4Addr::new(10, 96, 0, 11).into()));
    relay.api.put_unseen(service("shop", "new", "10.96.0.12"));
    relay.api.bookmark();
    wait_until("the Service that was left out is there", || {
        address("new.shop.svc.cluster.local.") == Some(Ipv4Addr::new(10, 96, 0, 12).into())
    });
}

#[test]
fn a_relay_follows_another_one() {
    if !are_in_path(&["curl"]) {
        return;
    }
    let mut relay = Relay::start();
    let kubeconfig = relay.kubeconfig();
    let (server, pages, address) =
        start_from(["--kubeconfig".into(), kubeconfig.into_os_string()], &relay.folder, "keys-of-second.json");
    wait_until("it is ready", || page(pages, "/ready").is_some_and(|(status, _)| status == 200));
    // The requests of the other functions go to the second one now.
    let first = std::mem::replace(&mut relay.server, server);
    (relay.address, relay.pages) = (address, pages);
    let (status, list) = relay.get(&relay.token(), "/api/v1/services", &[]);
    assert_eq!((status, &list["items"][0]["metadata"]["name"]), (200, &json!("web")));
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = Watch::start(&relay, &format!("/api/v1/services?watch=1&resourceVersion={version}"), &[]);
    let version = relay.api.put(service("shop", "new", "10.96.0.12"));
    assert_eq!(watch.next(), Some(("ADDED".to_owned(), "new".to_owned(), version)));
    drop(first);
    assert_eq!(relay.get(&relay.token(), "/api/v1/services?resourceVersion=0", &[]).0, 200, "without the first one");
}

#[test]
fn a_server_with_two_relays_survives_the_end_of_either_and_of_the_api_server() {
    let one = Relay::start();
    let (other, pages, address) = start(&one.api, &one.folder);
    wait_until("the other relay is ready", || page(pages, "/ready").is_some_and(|(status, _)| status == 200));
    let token = one.folder.write("token", &one.token());
    let folder = one.folder.path().display();
    let relays = format!("relays https://{} https://{address}", one.address);
    let corefile = format!(
        "dns://.:0 {{
    bind 127.0.0.1
    prometheus localhost:0
    kubernetes cluster.local {{
        {relays}
        relay_tls {folder}/ca.pem
        relay_token {}
        relay_only
        ttl 0
    }}
}}
",
        token.display()
    );
    let mut node = Server::start(&one.folder.write("Corefile", &corefile));
    let metrics = node.address_of("localhost:0");
    let mut client = Client::new(node.address_of("dns://127.0.0.1:0"));
    let mut address = |name: &str| client.ask(name, Type::A).and_then(|answer| answer.addresses().first().copied());
    wait_until("the Service is there", || address(WEB) == Some(Ipv4Addr::new(10, 96, 0, 11).into()));
    let put = |name: &str, number: u8, address: &mut dyn FnMut(&str) -> Option<IpAddr>| {
        one.api.put(service("shop", name, &format!("10.96.0.{number}")));
        let (name, expected) = (format!("{name}.shop.svc.cluster.local."), Ipv4Addr::new(10, 96, 0, number));
        wait_until("a new Service is there", || address(&name) == Some(expected.into()));
    };
    put("first", 21, &mut address);

    // The relay that is in use is not known, so that both end in turn. The node continues without a list.
    let Relay { api: _, server, pages: pages_of_one, .. } = &one;
    let is_used = |pages| {
        let of_services = "portolan_relay_subscribers{resource=\"services\"} 1";
        page(pages, "/metrics").is_some_and(|(_, text)| text.lines().any(|line| line == of_services))
    };
    wait_until("a relay is in use", || is_used(*pages_of_one) || is_used(pages));
    let (used, unused) = if is_used(*pages_of_one) { (server, pages) } else { (&other, *pages_of_one) };
    let lists = || {
        let text = page(metrics, "/metrics").unwrap_or_default().1;
        text.lines()
            .filter(|line| line.starts_with("portolan_kubernetes_lists_total"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let before = lists();
    assert!(!before.is_empty());
    used.signal("KILL");
    put("second", 22, &mut address);
    wait_until("the other relay is in use", || is_used(unused));
    assert_eq!(lists(), before, "the node continues where it was");
    let text = page(metrics, "/metrics").unwrap().1;
    assert!(text.contains("portolan_kubernetes_watches{server=\"relay\"} 3"), "{text}");

    one.api.down();
    assert_eq!(address(WEB), Some(Ipv4Addr::new(10, 96, 0, 11).into()));
}

#[test]
fn curl_lists_and_watches_also_compressed() {
    if !are_in_path(&["curl"]) {
        return;
    }
    let mut relay = Relay::start();
    let (status, list) = relay.get(&relay.token(), "/api/v1/services", &[]);
    assert_eq!(
        (status, &list["kind"], &list["items"][0]["spec"]["clusterIP"]),
        (200, &json!("ServiceList"), &json!("10.96.0.11"))
    );
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("/api/v1/services?watch=1&allowWatchBookmarks=true&resourceVersion={version}");
    let stream =
        "/api/v1/services?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let watches = [
        Watch::start(&relay, &path, &["--http1.1"]),
        Watch::start(&relay, &path, &["--compressed", "--http1.1"]),
        Watch::start(&relay, &path, &["--compressed", "--http2"]),
        Watch::start(&relay, stream, &["--compressed"]),
    ];
    assert_eq!(watches[3].next().map(|(what, name, _)| (what, name)), Some(("ADDED".to_owned(), "web".to_owned())));
    for number in 0..3 {
        let name = format!("s{number}");
        let version = relay.api.put(service("shop", &name, &format!("10.96.1.{number}")));
        for watch in &watches {
            assert_eq!(watch.next(), Some(("ADDED".to_owned(), name.clone(), version)));
        }
    }
    let subscribers = "portolan_relay_subscribers{resource=\"services\"} 4";
    wait_until("they are counted", || relay.metric(subscribers));
    relay.server.signal("TERM");
    for watch in &watches {
        let events: Vec<_> = std::iter::from_fn(|| watch.next_of_any()).collect();
        assert_eq!(events.last().map(|(what, ..)| what.as_str()), Some("BOOKMARK"));
    }
    for mut watch in watches {
        assert!(watch.child.wait().unwrap().success(), "the body ends as it should");
    }
    assert_eq!(relay.server.wait(), Some(0));
}

#[test]
fn a_watch_continues_from_before_the_start_of_the_relay() {
    if !are_in_path(&["curl"]) {
        return;
    }
    let relay = Relay::start();
    let (_, list) = relay.get(&relay.token(), "/api/v1/services", &[]);
    let web: u64 = list["items"][0]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let watch = Watch::start(&relay, &format!("/api/v1/services?watch=1&resourceVersion={}", web - 1), &[]);
    assert_eq!(watch.next(), Some(("ADDED".to_owned(), "web".to_owned(), web)));
    let version = relay.api.put(service("shop", "new", "10.96.0.12"));
    assert_eq!(watch.next(), Some(("ADDED".to_owned(), "new".to_owned(), version)));
    let is_earlier =
        |seen: &&fakeapi::ReceivedRequest| seen.resource == "services" && seen.parameter("timeoutSeconds") == "3";
    assert_eq!(relay.api.seen().iter().filter(is_earlier).count(), 1, "watches from a version before the list");
}

#[test]
fn refuses_as_the_api_server_does() {
    if !are_in_path(&["curl"]) {
        return;
    }
    let relay = Relay::start();
    let token = relay.token();
    let version = relay.api.put(service("shop", "b", "10.96.0.12"));
    let get = |path: &str| {
        let (status, body) = relay.get(&token, path, &[]);
        assert_eq!(body["code"], json!(status), "{path}: {body}");
        (status, body["message"].as_str().unwrap().to_owned())
    };
    let ahead = version + 100;
    assert_eq!(get(&format!("/api/v1/services?resourceVersion={ahead}")).0, 504);
    assert!(get(&format!("/api/v1/services?watch=1&resourceVersion={ahead}")).1.contains("Too large resource version"));
    assert_eq!(get("/api/v1/services?continue=x").0, 410);
    assert_eq!(get("/api/v1/services?fieldSelector=spec.clusterIP%3Dx").0, 400);
    assert_eq!(get("/api/v1/secrets").0, 404);
    relay.api.compact();
    let old = Watch::start(&relay, "/api/v1/services?watch=1&resourceVersion=1", &[]);
    assert_eq!(old.next().map(|(what, ..)| what), Some("ERROR".to_owned()));
    let stranger = Issuer::new();
    for (token, what) in [
        (String::new(), "none"),
        (relay.issuer.token("other", 600), "audience"),
        (relay.issuer.token("portolan-relay", -61), "expired"),
        (stranger.token("portolan-relay", 600), "signature"),
    ] {
        assert_eq!(relay.get(&token, "/api/v1/services", &[]).0, 401, "{what}");
    }
    wait_until("they are counted", || relay.metric("portolan_relay_refusals_total{reason=\"unauthorized\"} 4"));
}

#[test]
fn serves_nothing_before_the_api_server_has_answered_and_knows_tokens_from_its_file() {
    if !are_in_path(&["curl"]) {
        return;
    }
    let Relay { api, issuer, folder, server, .. } = Relay::start();
    wait_until("the keys are kept", || folder.path().join("keys.json").exists());
    drop(server);
    api.down();
    let mut relay = Relay::with(api, issuer, folder);
    assert_eq!(page(relay.pages, "/ready").map(|(status, _)| status), Some(503));
    assert_eq!(page(relay.pages, "/healthz").map(|(status, _)| status), Some(200));
    // The token is accepted; what is missing are the objects.
    assert_eq!(relay.get(&relay.token(), "/api/v1/services", &[]).0, 503);
    assert_eq!(relay.get("x", "/api/v1/services", &[]).0, 401);
    relay.api.up();
    relay.wait_ready();
    assert_eq!(relay.get(&relay.token(), "/api/v1/services", &[]).0, 200);
}

#[test]
fn uses_a_new_certificate() {
    if !are_in_path(&["curl"]) {
        return;
    }
    let mut relay = Relay::start();
    assert_eq!(relay.get(&relay.token(), "/api/v1/services", &[]).0, 200);
    certify(&relay.folder, &["127.0.0.1"]);
    relay.server.wait_for("The certificate has changed and is in use");
    assert_eq!(relay.get(&relay.token(), "/api/v1/services", &[]).0, 200, "with the new authority");
}

#[test]
fn the_commands_of_the_documentation_make_a_certificate() {
    if !are_in_path(&["curl", "openssl"]) {
        return;
    }
    let text = std::fs::read_to_string(packages::repository().join("docs/relay.md")).unwrap();
    let commands = text.split("```sh\n").find(|block| block.starts_with("openssl")).unwrap();
    let commands = commands.split("```").next().unwrap();
    let (api, issuer, folder) = (FakeApi::with_shop(), Issuer::new(), Folder::new("relay-openssl"));
    issuer.publish(&api);
    let output = Command::new("sh").args(["-ec", commands]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (from, to) in [("ca.crt", "ca.pem"), ("relay.crt", "cert.pem"), ("relay.key", "key.pem")] {
        std::fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
    }
    let mut relay = Relay::with(api, issuer, folder);
    relay.wait_ready();
    assert_eq!(relay.get(&relay.token(), "/api/v1/services", &[]).0, 200);
}

#[test]
fn kubectl_reads_raw_lists() {
    if !are_in_path(&["kubectl"]) {
        return;
    }
    let relay = Relay::start();
    let output = kubectl(&relay, &["get", "--raw", "/api/v1/namespaces/shop/services"]).output().unwrap();
    let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!("{}", String::from_utf8_lossy(&output.stderr));
    });
    assert_eq!(list["items"][0]["metadata"]["name"], "web");
}

#[test]
fn kubectl_lists_and_watches_resources_that_it_discovers() {
    if !are_in_path(&["kubectl"]) {
        return;
    }
    let relay = Relay::start();
    for (words, expected) in [
        ("get svc --all-namespaces -o name", "service/web"),
        ("get endpointslices -n shop -o name", "endpointslice.discovery.k8s.io/web-1"),
        ("get namespaces -o name", "namespace/shop"),
    ] {
        let output = kubectl(&relay, &words.split(' ').collect::<Vec<_>>()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.lines().any(|line| line == expected), "{words}: {text} {output:?}");
    }
    let mut watch = kubectl(&relay, &["get", "services", "-n", "shop", "-w", "-o", "name"]).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("service/web"));
    relay.api.put(service("shop", "new", "10.96.0.12"));
    assert_eq!(lines.next().as_deref(), Some("service/new"));
    let _ = watch.kill();
    let _ = watch.wait();
}

/// Returns kubectl with the address, the authority and a token of a relay.
fn kubectl(relay: &Relay, words: &[&str]) -> Command {
    let (ca, server) = (relay.folder.path().join("ca.pem"), format!("https://{}", relay.address));
    let mut command = Command::new("kubectl");
    command.args(["--kubeconfig=/dev/null", "--server", &server, "--token", &relay.token()]);
    command.arg("--cache-dir").arg(relay.folder.path().join("cache")).arg("--certificate-authority").arg(ca);
    command.args(words).stdout(Stdio::piped());
    command
}

#[test]
fn closes_a_connection_without_a_token() {
    if !are_in_path(&["openssl"]) {
        return;
    }
    let relay = Relay::start();
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-alpn", "h2", "-connect", &relay.address.to_string()]);
    let mut silent = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("it is open", || relay.metric("portolan_relay_connections 1"));
    wait_until("it is closed", || relay.metric("portolan_relay_connections 0"));
    let _ = silent.kill();
    let _ = silent.wait();
}

#[test]
fn lists_the_latest_state_also_by_pages() {
    let (api, issuer, folder) = (FakeApi::with_shop(), Issuer::new(), Folder::new("relay-pages"));
    issuer.publish(&api);
    certify(&folder, &["127.0.0.1"]);
    for resource in ["namespaces", "services", "endpointslices"] {
        api.fault(resource, Fault::NoStreamingLists);
    }
    let mut relay = Relay::with(api, issuer, folder);
    relay.wait_ready();
    let is_page = |seen: &fakeapi::ReceivedRequest| !seen.is_watch() && seen.parameter("limit") == "500";
    let pages = relay.api.seen().into_iter().filter(is_page);
    let versions: Vec<_> = pages.map(|seen| seen.parameter("resourceVersion").to_owned()).collect();
    assert_eq!(versions, ["", "", ""]);
}
