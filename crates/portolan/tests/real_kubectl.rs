//! Commands for all replicas with the `kubectl` of the `PATH`, 1.31 or newer, and an API server that knows what it asks
//! for: discovery, EndpointSlices, Pods, and `exec` over WebSocket (RFC 6455, subprotocol `v5.channel.k8s.io`). A
//! command in a Pod runs here. Skipped with a message without such a `kubectl`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::control::{ControlSocket, Ran};
use crate::support::{Folder, Server, skip};

/// Oldest minor version of `kubectl` that uses WebSockets without being told.
const MINOR_MIN: u32 = 31;
/// Part of the key of a WebSocket that all servers know (RFC 6455, section 1.3).
const WEBSOCKET: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Channels of the subprotocol.
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;

/// Pod of the API server.
#[derive(Clone)]
struct Pod {
    name: &'static str,
    state: State,
}

#[derive(Clone)]
enum State {
    /// A server with this control socket runs in it.
    Serves(String),
    /// Its slice is older than its end.
    Gone,
    /// The user may not run commands in it.
    Denied,
    /// The first container is another one. That of the server has this name and socket.
    Beside(&'static str, String),
    /// Commands begin and print nothing, as in a Pod that is stopped.
    Stuck,
}

/// Command that may run.
enum Allowed {
    /// With the control socket of its container, empty without a server there, and its words.
    Command(String, Vec<String>),
    /// Without an end.
    Endless,
}

/// Serves connections until the test ends.
fn serve_api(pods: Vec<Pod>, may_list: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, pods) = (stream.unwrap(), pods.clone());
            std::thread::spawn(move || serve(stream, &pods, may_list));
        }
    });
    port
}

/// Reads requests and answers them. A client that leaves ends the connection.
fn serve(stream: TcpStream, pods: &[Pod], may_list: bool) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let mut words = lines.first()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let header = |name: &str| {
            let lines = lines.iter().filter_map(|line| line.split_once(": "));
            lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
        };
        let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        reader.by_ref().take(length).read_to_end(&mut Vec::new()).ok()?;
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        if let (Some(key), Some(allowed)) = (header("sec-websocket-key"), allowed(pods, path, query)) {
            return run(stream, &key, &allowed);
        }
        let (status, body) = respond(pods, may_list, &method, path);
        let body = body.to_string();
        let head =
            format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        (&stream).write_all((head + &body).as_bytes()).ok()?;
    }
}

fn respond(pods: &[Pod], may_list: bool, method: &str, path: &str) -> (u16, Value) {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let resource = |name: &str, kind: &str| {
        json!({
            "name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get", "list"],
        })
    };
    let list = |version: &str, resource: Value| {
        json!({
            "kind": "APIResourceList", "groupVersion": version, "resources": [resource],
        })
    };
    let version = json!({ "groupVersion": "discovery.k8s.io/v1", "version": "v1" });
    match (method, &parts[..]) {
        (_, ["api"]) => (200, json!({ "kind": "APIVersions", "versions": ["v1"] })),
        (_, ["apis"]) => {
            let group = json!({ "name": "discovery.k8s.io", "versions": [version], "preferredVersion": version });
            (200, json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group] }))
        }
        (_, ["api", "v1"]) => (200, list("v1", resource("pods", "Pod"))),
        (_, ["apis", "discovery.k8s.io", "v1"]) => {
            (200, list("discovery.k8s.io/v1", resource("endpointslices", "EndpointSlice")))
        }
        (_, [.., "endpointslices"]) if !may_list => failure(
            403,
            "Forbidden",
            "endpointslices.discovery.k8s.io is forbidden: User \"jane\" cannot list resource",
        ),
        (_, [.., "endpointslices"]) => {
            let target =
                |pod: &Pod| json!({ "addresses": ["192.0.2.1"], "targetRef": { "kind": "Pod", "name": pod.name } });
            let endpoints: Vec<Value> = pods.iter().map(target).collect();
            let slice = json!({
                "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4",
                "metadata": { "name": "kube-dns-1", "namespace": "kube-system" }, "endpoints": endpoints,
            });
            (
                200,
                json!({
                    "kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "metadata": {}, "items": [slice],
                }),
            )
        }
        (_, [.., "pods", _, "exec"]) => {
            failure(403, "Forbidden", "pods \"x\" is forbidden: User \"jane\" cannot create pods/exec")
        }
        ("GET", [.., "pods", name]) => match pods.iter().find(|pod| pod.name == *name).map(|pod| &pod.state) {
            None | Some(State::Gone) => failure(404, "NotFound", &format!("pods \"{name}\" not found")),
            Some(State::Beside(own, _)) => (200, pod(name, &["proxy", own])),
            Some(_) => (200, pod(name, &["coredns"])),
        },
        _ => failure(404, "NotFound", "the server could not find the requested resource"),
    }
}

fn pod(name: &str, containers: &[&str]) -> Value {
    let containers: Vec<Value> = containers.iter().map(|name| json!({ "name": name })).collect();
    json!({
        "kind": "Pod", "apiVersion": "v1", "metadata": { "name": name, "namespace": "kube-system" },
        "spec": { "containers": containers }, "status": { "phase": "Running" },
    })
}

fn failure(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code,
    });
    (code, status)
}

/// Returns the command of a request, if it may run.
fn allowed(pods: &[Pod], path: &str, query: &str) -> Option<Allowed> {
    let name = path.strip_suffix("/exec")?.rsplit('/').next()?;
    let parameters = || query.split('&').filter_map(|pair| pair.split_once('='));
    let container = parameters().find(|(name, _)| *name == "container")?.1;
    let socket = match &pods.iter().find(|pod| pod.name == name)?.state {
        State::Serves(socket) => socket.clone(),
        State::Beside(own, socket) if *own == container => socket.clone(),
        State::Beside(..) => String::new(),
        State::Stuck => return Some(Allowed::Endless),
        State::Denied | State::Gone => return None,
    };
    let words = parameters().filter(|(name, _)| *name == "command");
    let words = words.map(|(_, word)| word.replace("%2F", "/").replace("%3D", "=")).collect();
    Some(Allowed::Command(socket, words))
}

/// Runs a command and sends its output over a WebSocket.
fn run(mut stream: TcpStream, key: &str, allowed: &Allowed) -> Option<()> {
    let digest =
        aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{WEBSOCKET}").as_bytes());
    let accept = STANDARD.encode(digest.as_ref());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-accept: {accept}\r\n\
         sec-websocket-protocol: v5.channel.k8s.io\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let Allowed::Command(socket, words) = allowed else {
        return stream.read_to_end(&mut Vec::new()).ok().map(drop);
    };
    let status = if socket.is_empty() {
        failure(500, "InternalError", "exec: \"/portolan\": stat /portolan: no such file or directory").1
    } else {
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command.args(&words[1..at]).args(["--socket", socket]).args(&words[at..]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        send(&mut stream, STDOUT, &output.stdout)?;
        send(&mut stream, STDERR, &output.stderr)?;
        match output.status.code().unwrap() {
            0 => json!({ "metadata": {}, "status": "Success" }),
            code => json!({
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": format!("command terminated with non-zero exit code: exit status {code}"),
                "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
            }),
        }
    };
    send(&mut stream, STATUS, status.to_string().as_bytes())?;
    // Close, with the code for an end without an error (section 7.4.1).
    stream.write_all(&[0x88, 2, 0x03, 0xe8]).ok()?;
    // The client closes first, so that it has read everything.
    stream.read_to_end(&mut Vec::new()).ok().map(drop)
}

/// Sends a binary frame of a channel.
fn send(stream: &mut TcpStream, channel: u8, bytes: &[u8]) -> Option<()> {
    let length = u64::try_from(bytes.len() + 1).unwrap();
    let mut frame = vec![0x82, 127];
    frame.extend(length.to_be_bytes());
    frame.push(channel);
    frame.extend(bytes);
    stream.write_all(&frame).ok()
}

/// Servers, the API server, and `kubectl-portolan`.
struct Bed {
    folder: Folder,
    _servers: Vec<Server>,
}

impl Bed {
    fn start(may_list: bool) -> Bed {
        Bed::with(may_list, |folder, [a, b]| {
            let pod = |name, state| Pod { name, state };
            vec![
                pod("dns-a", State::Serves(a)),
                pod("dns-b", State::Beside("dns", b)),
                pod("dns-denied", State::Denied),
                pod("dns-gone", State::Gone),
                pod("dns-lost", State::Serves(folder.path().join("lost.sock").display().to_string())),
            ]
        })
    }

    /// Starts two servers, and the API server with the Pods that `pods` makes of their control sockets.
    fn with(may_list: bool, pods: impl FnOnce(&Folder, [String; 2]) -> Vec<Pod>) -> Bed {
        let folder = Folder::new("kubectl");
        let (mut servers, mut sockets) = (Vec::new(), Vec::new());
        for name in ["a", "b"] {
            let socket = folder.path().join(format!("{name}.sock")).display().to_string();
            let text = format!(
                ".:0 {{\n bind 127.0.0.1\n control {socket}\n template IN A a.test {{\n  \
                 answer \"{{{{ .Name }}}} 60 IN A 192.0.2.7\"\n }}\n}}\n"
            );
            let mut server = Server::start(&folder.write(&format!("{name}.corefile"), &text));
            sockets.push(ControlSocket::of(&mut server).0);
            servers.push(server);
        }
        let pods = pods(&folder, <[String; 2]>::try_from(sockets).unwrap());
        let port = serve_api(pods, may_list);
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{ "name": "test", "cluster": { "server": format!("http://127.0.0.1:{port}") } }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "jane" } }],
            "users": [{ "name": "jane", "user": {} }],
        });
        folder.write("kubeconfig", &kubeconfig.to_string());
        folder.write("bin/README", "");
        symlink(env!("CARGO_BIN_EXE_portolan"), folder.path().join("bin/kubectl-portolan")).unwrap();
        Bed { folder, _servers: servers }
    }

    fn kubectl(&self, words: &[&str]) -> Ran {
        kubectl(&self.folder, words)
    }
}

/// Runs `kubectl` with the configuration and the plugin in a folder.
fn kubectl(folder: &Folder, words: &[&str]) -> Ran {
    let path = format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("kubectl");
    command.args(words).env("PATH", path).env("KUBECONFIG", folder.path().join("kubeconfig"));
    command.env("HOME", folder.path()).output().unwrap().into()
}

/// Returns true if there is a `kubectl` that is new enough.
fn has_kubectl() -> bool {
    let output = Command::new("kubectl").args(["version", "--client", "-o", "json"]).output();
    let version = output.ok().and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
    // `v1.37.2`, also from those who set no other field when they build it.
    let minor = version
        .and_then(|version| version["clientVersion"]["gitVersion"].as_str()?.split('.').nth(1)?.parse::<u32>().ok());
    let is_new = minor.is_some_and(|minor| minor >= MINOR_MIN);
    if !is_new {
        skip(format_args!("`kubectl` 1.{MINOR_MIN} or newer is missing; docs/real-cluster.md says how to build it"));
    }
    is_new
}

#[test]
fn kubectl_runs_commands_in_all_replicas() {
    if !has_kubectl() {
        return;
    }
    let bed = Bed::start(true);
    let ran = bed.kubectl(&["portolan", "status"]);
    let text = &ran.stdout;
    assert_eq!(ran.code, 3, "{text} {}", ran.stderr);
    assert!(text.contains("kube-system/kube-dns · 5 replicas") && text.contains(" dns-a       ✓ ready"), "{text}");
    assert!(text.contains("✗ dns-b: ") && text.contains("`--container` names that of the server"), "{text}");
    assert!(text.contains("✗ dns-denied: ") && text.contains("cannot create pods/exec"), "{text}");
    assert!(text.contains("✗ dns-gone: Error from server (NotFound)"), "{text}");
    assert!(text.contains("✗ dns-lost: ") && text.contains("lost.sock"), "{text}");
    let ran = bed.kubectl(&["portolan", "status", "--container", "dns"]);
    assert!(ran.stdout.contains(" dns-b       ✓ ready"), "{} {}", ran.stdout, ran.stderr);
    for (words, expected) in [
        (&["explain", "web.a.test."][..], "── dns-a\nweb.a.test.  A"),
        (&["reload"], "── dns-a\n✓ generation 2"),
        (&["top"], "dns-a  "),
        (&["tail", "--last", "5"], ""),
    ] {
        let ran = bed.kubectl(&[&["portolan"], words].concat());
        assert!(ran.code == 3 && ran.stdout.starts_with(expected), "{words:?}: {} {}", ran.stdout, ran.stderr);
        assert!((ran.stdout + &ran.stderr).contains("✗ dns-gone: "), "{words:?}");
    }
}

/// A Pod that accepts a command and never answers costs its own line, after 20 s, and not those of the others.
#[test]
fn kubectl_does_not_wait_for_a_stuck_pod() {
    if !has_kubectl() {
        return;
    }
    let bed = Bed::with(true, |_, [a, _]| {
        vec![Pod { name: "dns-a", state: State::Serves(a) }, Pod { name: "dns-stuck", state: State::Stuck }]
    });
    let commands = [&["status"][..], &["tail", "--last", "5"], &["explain", "web.a.test."], &["top"]];
    std::thread::scope(|scope| {
        let folder = &bed.folder;
        let ask =
            |words: &'static [&'static str]| scope.spawn(move || kubectl(folder, &[&["portolan"], words].concat()));
        for (words, asked) in commands.map(|words| (words, ask(words))) {
            let ran = asked.join().unwrap();
            let text = ran.stdout + &ran.stderr;
            assert_eq!(ran.code, 3, "{words:?}: {text}");
            assert!(text.contains("✗ dns-stuck: no answer within 20 s"), "{words:?}: {text}");
            assert!(!text.contains("✗ dns-a"), "{words:?}: {text}");
            assert!(words[0] == "tail" || text.contains("dns-a"), "{words:?}: {text}");
        }
    });
}

#[test]
fn kubectl_says_that_a_right_is_missing() {
    if !has_kubectl() {
        return;
    }
    let bed = Bed::start(false);
    let ran = bed.kubectl(&["portolan", "status"]);
    assert!(ran.code == 2 && ran.stderr.contains("cannot list resource"), "{} {}", ran.code, ran.stderr);
}
