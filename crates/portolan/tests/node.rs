//! `portolan node` on a node: each test has its own network namespace with interface, rules and addresses.
//!
//! Each test runs itself again in a new namespace. If it cannot create one, it prints a message and is skipped.

mod waiting;

use std::ffi::OsString;
use std::io::{Read, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as Name, UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::asker::Asker;
use crate::support::namespace::{enter, is_inside, run, say};
use crate::support::upstream::Upstream;
use crate::support::{Client, Folder, Server, page, query, skip, soon, wait_until};
use wire::{Rcode, Type};

const LINK: &str = "169.254.20.10";
const LINK_V6: &str = "fd00:169:254::10";
const SERVICE: &str = "10.96.0.10";
const INTERFACE: &str = "nodelocaldns";
/// Environment variable for the number of takeovers.
const TURNS: &str = "PORTOLAN_NODE_TURNS";
const TURNS_USUAL: usize = 20;
/// Limit for applying a configuration change.
const IN_EFFECT: Duration = Duration::from_secs(1);
/// Time after which a query counts as lost, because stub resolvers send it again (resolv.conf(5), `timeout`).
const RESOLVER_PATIENCE: Duration = Duration::from_secs(5);

const TEMPLATE: &str = "\
.:53 {
    errors
    cache {
        success 9984 30
        denial 9984 5
    }
    bind __PILLAR__LOCAL__DNS__ __PILLAR__DNS__SERVER__
    hosts /dev/null {
        192.0.2.7 web.example.org
        fallthrough
    }
    forward . __PILLAR__UPSTREAM__SERVERS__ {
        force_tcp
    }
    health __PILLAR__LOCAL__DNS__:8080
}
";

/// Runs the test of this name in its own network namespace.
fn in_namespace(test: &str, body: impl FnOnce()) {
    // The proof needs the capability outside of user namespaces, and Linux 5.11.
    let can_prove = || {
        let challenge = net::AdminChallenge::new("portolan-test")?;
        net::meet_challenge(challenge.as_fd().try_clone_to_owned()?, "portolan-test")
    };
    let is_possible = || {
        run("unshare", &["--net", "nft", "list", "ruleset"]).0
            && run("unshare", &["--net", "ip", "tuntap", "add", "mode", "tun", "name", "t"]).0
            && can_prove().is_ok()
    };
    if !is_inside() && !is_possible() {
        return skip(format_args!("{test}: no network namespace, TUN device, nft or proof of NET_ADMIN here"));
    }
    enter(module_path!(), test, &["--net"], body);
}

fn tables() -> usize {
    run("nft", &["list", "tables"]).1.lines().filter(|line| line.contains("portolan_node")).count()
}

fn has_interface() -> bool {
    run("ip", &["link", "show", INTERFACE]).0
}

fn has_address(ip: &str) -> bool {
    let shown = run("ip", &["-o", "addr", "show"]).1;
    ["32", "128"].iter().any(|bits| shown.contains(&format!(" {ip}/{bits} ")))
}

fn leaves_nothing() -> bool {
    tables() == 0 && !has_interface() && !has_address(LINK) && !has_address(SERVICE)
}

/// Files of a node that an instance reads.
struct Node(Folder);

impl Node {
    fn new() -> Node {
        let folder = Folder::new("node");
        folder.write("Corefile.base", TEMPLATE);
        std::fs::create_dir_all(folder.path().join("config")).unwrap();
        Node(folder)
    }

    fn words(&self, more: &[&str]) -> Vec<OsString> {
        let path = |name: &str| self.0.path().join(name).into_os_string();
        let mut words: Vec<OsString> =
            ["node", "-localip", "169.254.20.10,10.96.0.10", "-basecorefile"].map(Into::into).into();
        words.push(path("Corefile.base"));
        words.push("-kubednscm".into());
        words.push(path("config"));
        words.extend(more.iter().map(OsString::from));
        words
    }

    fn start(&self, more: &[&str]) -> Server {
        let words = self.words(more);
        let mut server = Server::start_with(&words.iter().map(OsString::as_os_str).collect::<Vec<_>>());
        server.wait_for("Portolan-");
        server
    }

    /// Starts an instance in a PID namespace of its own, as containers have. It shares the network of the node.
    fn start_pod(&self) -> Server {
        let mut server = Server::start_command(self.pod(&[]));
        server.wait_for("Portolan-");
        server
    }

    fn pod(&self, more: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child=KILL"]).arg(env!("CARGO_BIN_EXE_portolan"));
        command.args(self.words(more));
        command
    }
}

/// Returns the exit code of `portolan ready` in the PID namespace of an instance.
fn ready_code(pod: &Server) -> Option<i32> {
    let process = run("pgrep", &["-P", &pod.id().to_string()]).1;
    let mut command = Command::new("nsenter");
    command.args(["--pid", "--target", process.trim(), env!("CARGO_BIN_EXE_portolan"), "ready"]);
    command.output().unwrap().status.code()
}

/// Ends an instance in a PID namespace of its own. `unshare`, its parent, ends with it.
fn end_pod(mut pod: Server) {
    assert!(run("pkill", &["-TERM", "-P", &pod.id().to_string()]).0);
    assert_eq!(pod.wait(), Some(0));
}

fn client(ip: &str) -> Client {
    Client::at(ip.parse().unwrap(), SocketAddr::new(ip.parse().unwrap(), 53))
}

/// Returns the first address of a name, if the server answers.
fn address(client: &mut Client, name: &str) -> Option<IpAddr> {
    client.ask(name, Type::A)?.addresses().first().copied()
}

#[test]
fn sets_up_the_node_and_cleans_up_at_the_end() {
    in_namespace("sets_up_the_node_and_cleans_up_at_the_end", || {
        let node = Node::new();
        let local = [LINK, SERVICE, LINK_V6];
        let mut server = node.start(&["-conf", "/etc/Corefile", "-localip", &local.join(",")]);
        server.wait_for("-conf does nothing here");
        for ip in local {
            assert!(has_address(ip), "{ip}");
            assert_eq!(address(&mut client(ip), "web.example.org."), Some(IpAddr::from([192, 0, 2, 7])));
        }
        wait_until("the rules are there", || tables() == 1);
        let rules = run("nft", &["list", "ruleset"]).1;
        for rule in [
            "ip daddr 10.96.0.10 udp dport 53 notrack comment \"NodeLocal DNS Cache: skip conntrack\"",
            "ip saddr 169.254.20.10 tcp sport 8080 notrack",
            "ip6 daddr fd00:169:254::10 udp dport 53 notrack",
            "flags owner",
        ] {
            assert!(rules.contains(rule), "{rule} is not in\n{rules}");
        }
        assert_eq!(rules.matches(" notrack").count(), 24, "{rules}");
        let metrics = page("127.0.0.1:9353".parse().unwrap(), "/metrics").unwrap().1;
        for kind in ["iptables", "iptables_lock", "interface_add", "interface_check", "configmap", "nftables"] {
            let line = format!("coredns_nodecache_setup_errors_total{{errortype=\"{kind}\"}} 0");
            assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
        }
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0));
        assert!(leaves_nothing());
    });
}

/// Arguments of the official manifests. Those of Kubernetes 1.28 to 1.37 have no PID file.
const OFFICIAL: [&str; 2] = [
    "-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile -upstreamsvc kube-dns-upstream",
    "-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile -upstreamsvc kube-dns-upstream -pidfile /tmp/node-cache.pid",
];

/// Starts the binary as `node-cache`, with the paths that it has in a container of the official manifests. These mount
/// no TUN device. The binary is mounted before `/tmp` is covered, because the target folder may lie there.
const OFFICIAL_CONTAINER: &str = "
    mount -t tmpfs tmpfs /etc && echo nameserver 192.0.2.1 > /etc/resolv.conf && mkdir /etc/coredns && cp \"$1\" /etc/coredns/Corefile.base
    touch /etc/node-cache && mount --bind \"$2\" /etc/node-cache
    mount -t tmpfs tmpfs /tmp && mount -t tmpfs -o dev tmpfs /dev/net
    shift 2 && exec /etc/node-cache \"$@\"";

#[test]
fn serves_with_the_arguments_of_the_official_manifests() {
    in_namespace("serves_with_the_arguments_of_the_official_manifests", || {
        let template = TEMPLATE.replace("bind __PILLAR__LOCAL__DNS__", "loop\n    bind __PILLAR__LOCAL__DNS__");
        for arguments in OFFICIAL {
            let node = Node::new();
            let template = node.0.write("template", &template);
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-ec", OFFICIAL_CONTAINER, "sh"]).arg(&template);
            command.arg(env!("CARGO_BIN_EXE_portolan")).args(arguments.split(' '));
            let mut server = Server::start_command(command);
            server.wait_for("Created interface nodelocaldns (removed when this process ends)");
            server.wait_for("Portolan-");
            for ip in [LINK, SERVICE] {
                let answer = address(&mut client(ip), "web.example.org.");
                assert_eq!(answer, Some(IpAddr::from([192, 0, 2, 7])), "{arguments}");
            }
            server.signal("TERM");
            assert_eq!(server.wait(), Some(0), "{arguments}");
            assert!(leaves_nothing(), "{arguments}");
        }
    });
}

#[test]
fn a_pod_ends_if_it_is_older_than_the_upstream_service() {
    in_namespace("a_pod_ends_if_it_is_older_than_the_upstream_service", || {
        let node = Node::new();
        node.0.write("Corefile.base", &TEMPLATE.replace("__PILLAR__UPSTREAM__SERVERS__", "__PILLAR__CLUSTER__DNS__"));
        let start = |variables: &[(&str, &str)]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
            command.args(node.words(&["-upstreamsvc", "kube-dns-upstream"])).envs(variables.iter().copied());
            Server::start_command(command)
        };
        let pod = ("KUBERNETES_SERVICE_HOST", "10.96.0.1");
        let mut server = start(&[pod]);
        server.wait_for("Service kube-dns-upstream not found: environment variable KUBE_DNS_UPSTREAM_SERVICE_HOST");
        assert_eq!(server.wait(), Some(1));
        assert!(leaves_nothing(), "it must not take over addresses that others serve");
        start(&[pod, ("KUBE_DNS_UPSTREAM_SERVICE_HOST", "10.96.0.99")]).wait_for("Portolan-");
        // Outside of a pod, nothing starts the process again.
        start(&[]).wait_for("Portolan-");
    });
}

/// The kernel discards a signal for the first process of a container that does not handle it. The kubelet would then
/// wait for the whole grace period.
#[test]
fn a_pod_that_still_starts_ends_at_once() {
    in_namespace("a_pod_that_still_starts_ends_at_once", || {
        let node = Node::new();
        node.0.write("Corefile.base", &TEMPLATE.replace("__PILLAR__UPSTREAM__SERVERS__", "__PILLAR__CLUSTER__DNS__"));
        let mut command = node.pod(&["-upstreamsvc", "kube-dns-upstream"]);
        // Nothing accepts connections there, so the startup waits.
        command.env("KUBE_DNS_UPSTREAM_SERVICE_HOST", "10.96.0.99");
        let mut pod = Server::start_command(command);
        pod.wait_for("0.0.0.0:9353");
        end_pod(pod);
        assert!(leaves_nothing());
    });
}

#[test]
fn only_serves_if_the_setup_is_disabled() {
    in_namespace("only_serves_if_the_setup_is_disabled", || {
        for ip in [LINK, SERVICE] {
            assert!(run("ip", &["addr", "add", &format!("{ip}/32"), "dev", "lo"]).0);
        }
        let node = Node::new();
        let mut server = node.start(&["-setupinterface=false", "-setupiptables=false"]);
        assert!(address(&mut client(SERVICE), "web.example.org.").is_some());
        assert!(!has_interface() && tables() == 0);
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0));
        assert!(has_address(SERVICE), "this server must not remove the address");
    });
}

#[test]
fn restores_a_deleted_interface_and_rules() {
    in_namespace("restores_a_deleted_interface_and_rules", || {
        let node = Node::new();
        let _server = node.start(&[]);
        assert!(run("ip", &["addr", "del", "169.254.20.10/32", "dev", INTERFACE]).0);
        wait_until("the address is there again", || has_address(LINK));
        assert!(run("ip", &["link", "del", INTERFACE]).0);
        wait_until("the interface is there again", || has_address(LINK) && has_address(SERVICE));
        let mut client = client(LINK);
        wait_until("it answers again", || address(&mut client, "web.example.org.").is_some());
    });
}

#[test]
fn addresses_of_a_dummy_expire_after_a_crash() {
    in_namespace("addresses_of_a_dummy_expire_after_a_crash", || {
        let node = Node::new();
        // Any link kind that every kernel supports.
        let mut server = node.start(&["-interfacekind", "bridge"]);
        assert!(has_address(SERVICE));
        let begin = Instant::now();
        // Longer than the lifetime of an address.
        wait_until("leases are renewed", || {
            assert!(has_address(SERVICE) && has_address(LINK), "after {:?}", begin.elapsed());
            begin.elapsed() > Duration::from_secs(7)
        });
        server.signal("KILL");
        server.wait();
        wait_until("the addresses expire", || !has_address(SERVICE) && !has_address(LINK));
        assert_eq!(tables(), 0);
        let mut next = node.start(&["-interfacekind", "bridge"]);
        assert!(address(&mut client(SERVICE), "web.example.org.").is_some());
        next.signal("TERM");
        next.wait();
        assert!(leaves_nothing());
    });
}

fn turns() -> usize {
    std::env::var(TURNS).ok().and_then(|text| text.parse().ok()).unwrap_or(TURNS_USUAL)
}

fn ask_over_udp(ip: &'static str, name: &'static str) -> Box<dyn FnMut() -> bool + Send> {
    let mut client = client(ip).waiting(RESOLVER_PATIENCE);
    Box::new(move || {
        let answer = client.ask(name, Type::A);
        let is_well = answer.is_some_and(|answer| answer.rcode() == Rcode::NOERROR);
        if !is_well {
            say(&format!("over UDP to {ip}: no answer in {RESOLVER_PATIENCE:?}"));
        }
        is_well
    })
}

/// Returns a function that sends one query on a new connection.
fn ask_over_tcp() -> Box<dyn FnMut() -> bool + Send> {
    Box::new(|| {
        let ask = || -> std::io::Result<usize> {
            let mut stream = TcpStream::connect((LINK, 53))?;
            stream.set_read_timeout(Some(RESOLVER_PATIENCE))?;
            let query = query(7, "web.example.org.", Type::A);
            let length = u16::try_from(query.len()).unwrap().to_be_bytes();
            stream.write_all(&[&length, query.as_slice()].concat())?;
            let mut answer = [0; 14];
            stream.read_exact(&mut answer)?;
            Ok(answer.len())
        };
        let outcome = ask();
        if let Err(error) = &outcome {
            say(&format!("over TCP: {error}"));
        }
        outcome.is_ok()
    })
}

#[test]
fn takeover_loses_no_query() {
    in_namespace("takeover_loses_no_query", || {
        let turns = turns();
        let node = Node::new();
        let mut serving = node.start(&[]);
        let asker = Asker::start(vec![
            ask_over_udp(LINK, "web.example.org."),
            ask_over_udp(SERVICE, "web.example.org."),
            ask_over_tcp(),
        ]);
        for _ in 0..turns {
            let mut next = node.start(&[]);
            serving.signal("TERM");
            assert_eq!(serving.wait(), Some(0));
            assert!(has_address(SERVICE), "the interface belongs to the serving instance");
            wait_until("only its rules are left", || tables() == 1);
            next.wait_for("Taking over the sockets of 2 addresses");
            serving = next;
        }
        let (asked, missed) = asker.end();
        let line = format!("{turns} took over; {asked} questions, {missed} not answered");
        say(&line);
        assert_eq!(missed, 0, "{line}");
        assert!(asked > turns, "{line}");
        drop(serving);
        wait_until("everything of the dead instance is removed", leaves_nothing);
    });
}

#[test]
fn takeover_between_containers_loses_no_query() {
    in_namespace("takeover_between_containers_loses_no_query", || {
        let node = Node::new();
        let mut serving = node.start_pod();
        let asker = Asker::start(vec![ask_over_udp(LINK, "web.example.org."), ask_over_tcp()]);
        for _ in 0..turns() {
            let mut next = node.start_pod();
            next.wait_for("Taking over the sockets of 2 addresses");
            end_pod(serving);
            serving = next;
        }
        let (asked, missed) = asker.end();
        assert!(missed == 0 && asked > turns(), "{asked} questions, {missed} not answered");
        end_pod(serving);
        wait_until("everything is removed", leaves_nothing);
    });
}

/// Name at which the instances of a node meet.
fn meeting_name() -> Name {
    Name::from_abstract_name(format!("portolan-node/{INTERFACE}")).unwrap()
}

fn meeting_point() -> UnixListener {
    UnixListener::bind_addr(&meeting_name()).unwrap()
}

/// Exchanges proofs like an instance. `own` and `other` are `server` and `client`.
fn prove(stream: &mut UnixStream, own: &str, other: &str) -> std::io::Result<()> {
    let purpose = |side| format!("portolan-node/{INTERFACE}/{side}");
    let challenge = net::AdminChallenge::new(&purpose(other))?;
    net::send_sockets(&*stream, b"C", &[challenge.as_fd()])?;
    let (_, mut theirs) = net::receive_sockets(&*stream)?;
    let theirs = theirs.pop().ok_or(std::io::ErrorKind::UnexpectedEof)?;
    net::meet_challenge(theirs, &purpose(own))?;
    stream.write_all(b"M")?;
    let mut reply = [0];
    stream.read_exact(&mut reply)?;
    assert!(challenge.is_met()?);
    Ok(())
}

/// Accepts an instance, and receives its request. Returns `None` if it only announces itself.
fn accept_request(listener: &UnixListener) -> Option<UnixStream> {
    let (mut stream, _) = listener.accept().unwrap();
    prove(&mut stream, "server", "client").unwrap();
    let mut request = [0];
    stream.read_exact(&mut request).unwrap();
    (request == *b"S").then_some(stream)
}

/// Runs a closure on a thread of user 0 without capabilities, as most containers have none that matters here.
fn without_capabilities<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    std::thread::spawn(|| {
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none }).unwrap();
        act()
    })
}

/// Returns everything that arrives until the end of the connection: bytes, and the number of sockets.
fn receive_all(stream: &UnixStream) -> (Vec<u8>, usize) {
    let (mut bytes, mut count) = (Vec::new(), 0);
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    while let Ok((note, sockets)) = net::receive_sockets(stream)
        && !note.is_empty()
    {
        bytes.extend(note);
        count += sockets.len();
    }
    (bytes, count)
}

#[test]
fn a_thief_without_capabilities_gets_no_sockets() {
    in_namespace("a_thief_without_capabilities_gets_no_sockets", || {
        let node = Node::new();
        let mut server = node.start(&[]);
        let connect = || UnixStream::connect_addr(&meeting_name());
        wait_until("the instance has bound the name", || connect().is_ok());
        let thief = without_capabilities(move || {
            // Asks at once.
            let hasty = connect().unwrap();
            (&hasty).write_all(b"S").unwrap();
            let hasty = receive_all(&hasty);
            // Claims to have met the challenge.
            let mut liar = connect().unwrap();
            let own = net::AdminChallenge::new(&format!("portolan-node/{INTERFACE}/server")).unwrap();
            net::send_sockets(&liar, b"C", &[own.as_fd()]).unwrap();
            let (_, challenge) = net::receive_sockets(&liar).unwrap();
            liar.write_all(b"MS").unwrap();
            let liar = receive_all(&liar);
            // Passes the challenge on to the instance itself, over a second connection.
            let mut relay = (connect().unwrap(), connect().unwrap());
            net::send_sockets(&relay.0, b"C", &[own.as_fd()]).unwrap();
            let (_, set) = net::receive_sockets(&relay.0).unwrap();
            net::send_sockets(&relay.1, b"C", &[set[0].as_fd()]).unwrap();
            let (_, other) = net::receive_sockets(&relay.1).unwrap();
            assert_eq!((challenge.len(), set.len(), other.len()), (1, 1, 1));
            // The instance meets no challenge for the other side. It may have disconnected already.
            let _ = relay.1.write_all(b"M");
            receive_all(&relay.1);
            relay.0.write_all(b"MS").unwrap();
            let relayed = receive_all(&relay.0);
            (hasty, liar, relayed, prove(&mut connect().unwrap(), "client", "server").unwrap_err().kind())
        });
        let (hasty, liar, relayed, honest) = thief.join().unwrap();
        assert_eq!(hasty, (b"C".to_vec(), 1), "only a challenge");
        assert_eq!((liar, relayed), ((b"M".to_vec(), 0), (b"M".to_vec(), 0)));
        assert_eq!(honest, std::io::ErrorKind::PermissionDenied);
        let said = server.wait_for("Sharing no sockets with");
        assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
        assert_eq!(address(&mut client(LINK), "web.example.org."), Some("192.0.2.7".parse().unwrap()));
        // A real instance still takes over.
        Node::new().start(&[]).wait_for("Taking over the sockets of 2 addresses");
    });
}

#[test]
fn an_impostor_without_capabilities_is_no_instance() {
    in_namespace("an_impostor_without_capabilities_is_no_instance", || {
        let impostor = without_capabilities(|| {
            let listener = meeting_point();
            let accept = || {
                let mut stream = listener.accept().unwrap().0;
                let error = prove(&mut stream, "server", "client").unwrap_err();
                // Claims to have met the challenge.
                let _ = stream.write_all(b"M");
                (error.kind(), receive_all(&stream), stream)
            };
            (accept(), accept())
        });
        let is_bound = || std::fs::read_to_string("/proc/net/unix").unwrap().contains("@portolan-node");
        wait_until("the impostor has bound the name", is_bound);
        let node = Node::new();
        let mut server = Server::start_with(&node.words(&[]).iter().map(OsString::as_os_str).collect::<Vec<_>>());
        let said = server.wait_for("Taking over no sockets");
        assert!(said.contains("lacks the capability NET_ADMIN"), "{said}");
        server.wait_for("Portolan-");
        assert_eq!(address(&mut client(LINK), "web.example.org."), Some("192.0.2.7".parse().unwrap()));
        let (first, second) = impostor.join().unwrap();
        for (error, received, _) in [&first, &second] {
            assert_eq!((*error, received), (std::io::ErrorKind::PermissionDenied, &(b"M".to_vec(), 0)));
        }
        // The impostor is no other instance that would go on to serve: this one cleans up.
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0));
        assert!(leaves_nothing());
    });
}

#[test]
fn an_impostor_hands_over_no_sockets_of_its_own() {
    in_namespace("an_impostor_hands_over_no_sockets_of_its_own", || {
        assert!(run("ip", &["link", "set", "lo", "up"]).0);
        let listener = meeting_point();
        let impostor = std::thread::spawn(move || {
            let stream = accept_request(&listener).expect("a request for the sockets");
            let (udp, tcp) =
                (UdpSocket::bind("127.0.0.1:0").unwrap(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
            let line = |kind| format!("{kind} dns://{LINK}:53 {LINK}:53\n");
            let note = line("udp") + &line("tcp");
            net::send_sockets(&stream, note.as_bytes(), &[udp.as_fd(), tcp.as_fd()]).unwrap();
            let _ = net::send_sockets(&stream, b".", &[]);
            // The name stays in use until the instance has begun to serve.
            (listener, stream)
        });
        let node = Node::new();
        let mut server = Server::start_with(&node.words(&[]).iter().map(OsString::as_os_str).collect::<Vec<_>>());
        let said = server.wait_for("Taking over no sockets");
        assert!(
            said.contains(&format!("process {}", std::process::id())) && said.contains("bound to 127.0.0.1"),
            "{said}"
        );
        server.wait_for("Portolan-");
        assert_eq!(address(&mut client(LINK), "web.example.org."), Some("192.0.2.7".parse().unwrap()));
        drop(impostor.join());
    });
}

#[test]
fn a_process_that_holds_the_name_is_named_and_not_asked_all_the_time() {
    in_namespace("a_process_that_holds_the_name_is_named_and_not_asked_all_the_time", || {
        let listener = meeting_point();
        let (count, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, over) = (Arc::clone(&count), Arc::clone(&is_over));
        let squatter = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                drop(listener.accept().unwrap());
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let node = Node::new();
        let mut first = node.start(&[]);
        let said = first.wait_for("a new instance cannot take over the sockets");
        assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
        let begun = Instant::now();
        let before = count.load(Ordering::Relaxed);
        wait_until("the squatter is asked again", || count.load(Ordering::Relaxed) >= before + 4);
        assert!(begun.elapsed() >= Duration::from_millis(40 + 80 + 160), "attempts become rarer");
        is_over.store(true, Ordering::Relaxed);
        squatter.join().unwrap();
        // The instance binds the name now, so that the next one takes its sockets over.
        let is_bound = || std::fs::read_to_string("/proc/net/unix").unwrap().contains("@portolan-node");
        wait_until("the instance has bound the name", is_bound);
        Node::new().start(&[]).wait_for("Taking over the sockets");
    });
}

#[test]
fn readiness_is_that_of_one_container() {
    in_namespace("readiness_is_that_of_one_container", || {
        let node = Node::new();
        let pods = [node.start_pod(), node.start_pod(), node.start_pod()];
        pods.iter().for_each(|pod| assert_eq!(ready_code(pod), Some(0)));
        let hung = &pods[1];
        assert!(run("pkill", &["-STOP", "-P", &hung.id().to_string()]).0);
        assert_eq!(pods.each_ref().map(ready_code), [Some(0), Some(2), Some(0)]);
    });
}

#[test]
fn a_killed_instance_leaves_nothing_behind_and_another_continues() {
    in_namespace("a_killed_instance_leaves_nothing_behind_and_another_continues", || {
        let turns = turns();
        let node = Node::new();
        for turn in 0..turns {
            let mut first = node.start(&[]);
            if turn % 2 == 0 {
                first.signal("KILL");
                first.wait();
                assert!(leaves_nothing(), "after {turn}");
                continue;
            }
            // With a second instance, which has the same sockets and continues to answer.
            let mut second = node.start(&[]);
            first.signal("KILL");
            first.wait();
            let mut client = client(SERVICE);
            for _ in 0..20 {
                assert!(address(&mut client, "web.example.org.").is_some(), "after {turn}");
            }
            wait_until("only its rules are left", || tables() == 1);
            second.signal("KILL");
            second.wait();
            assert!(leaves_nothing(), "after {turn}");
        }
    });
}

#[test]
fn a_keeper_starts_a_killed_instance_again_with_its_sockets() {
    in_namespace("a_keeper_starts_a_killed_instance_again_with_its_sockets", || {
        let (node, mut other) = (Node::new(), None);
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan-keeper"));
        command.args(node.words(&[]));
        let mut keeper = Server::start_command(command);
        keeper.wait_for("Portolan-");
        for turn in ["alone", "beside another instance with the same sockets"] {
            assert!(run("pkill", &["-KILL", "-P", &keeper.id().to_string()]).0);
            keeper.wait_for("Portolan-");
            assert!(has_address(LINK) && address(&mut client(SERVICE), "web.example.org.").is_some(), "{turn}");
            other.get_or_insert_with(|| node.start(&[]));
        }
        keeper.signal("TERM");
        assert!(keeper.wait() == Some(0) && address(&mut client(SERVICE), "web.example.org.").is_some());
    });
}

#[test]
fn applies_a_config_map_within_a_second_and_keeps_the_cache() {
    in_namespace("applies_a_config_map_within_a_second_and_keeps_the_cache", || {
        let node = Node::new();
        let (io, corp) = (Upstream::start(1), Upstream::start(2));
        node.0.write("config/upstreamNameservers", &format!("[\"{}\"]", io.address));
        let _server = node.start(&[]);
        let mut client = client(LINK);
        assert_eq!(address(&mut client, "kept.example.net."), Some(io.own.into()));
        let asked = io.asked();
        let mut last = String::new();
        soon("a stub domain is in effect", IN_EFFECT, |round| {
            last = format!("corp{round}.example");
            node.0.write("config/stubDomains", &format!("{{\"{last}\": [\"{}\"]}}", corp.address));
            let (begin, mut number) = (Instant::now(), 0);
            wait_until("the stub domain is in effect", || {
                number += 1;
                address(&mut client, &format!("n{number}.{last}.")) == Some(corp.own.into())
            });
            begin.elapsed()
        });
        let before = io.asked();
        assert_eq!(address(&mut client, "kept.example.net."), Some(io.own.into()));
        assert_eq!(io.asked(), before, "the answer is still cached; the upstream had {asked} queries for it");
        node.0.write("config/stubDomains", "{nonsense");
        wait_until("the rejected configuration is counted", || {
            let (_, text) = page("127.0.0.1:9353".parse().unwrap(), "/metrics").unwrap();
            text.contains("coredns_nodecache_setup_errors_total{errortype=\"configmap\"} 1")
        });
        assert_eq!(
            address(&mut client, &format!("later.{last}.")),
            Some(corp.own.into()),
            "the previous configuration stays in effect"
        );
        node.0.write("Corefile.base", &TEMPLATE.replace("192.0.2.7", "192.0.2.8"));
        let changed = Some(IpAddr::from([192, 0, 2, 8]));
        wait_until("a changed template is in effect", || address(&mut client, "web.example.org.") == changed);
    });
}

#[test]
fn a_rejected_template_leaves_no_open_socket() {
    in_namespace("a_rejected_template_leaves_no_open_socket", || {
        let node = Node::new();
        let mut server = node.start(&[]);
        let nowhere = ".:5301 {\n    bind 127.0.0.1\n    prometheus 192.0.2.1:9999\n}\n";
        node.0.write("Corefile.base", &format!("{TEMPLATE}{nowhere}"));
        server.wait_for("Restart failed: listen tcp 192.0.2.1:9999");
        let outcome = TcpStream::connect(("127.0.0.1", 5301));
        assert!(outcome.is_err(), "no socket without a listener is open");
    });
}

#[test]
fn closes_inherited_sockets_that_it_does_not_serve() {
    in_namespace("closes_inherited_sockets_that_it_does_not_serve", || {
        let (before, after) = (Node::new(), Node::new());
        let local = ".:5301 {\n    bind 127.0.0.1\n    whoami\n}\n";
        before.0.write("Corefile.base", &format!("{TEMPLATE}{local}"));
        let is_open = || TcpStream::connect(("127.0.0.1", 5301)).is_ok();
        let mut first = before.start(&[]);
        assert!(is_open());
        let mut second = after.start(&[]);
        second.wait_for("Taking over the sockets of 3 addresses");
        first.signal("TERM");
        assert_eq!(first.wait(), Some(0));
        assert!(!is_open(), "no socket without a listener is open");
    });
}

/// Fake iptables, which keeps the rules in a file.
const IPTABLES: &str = r#"#!/bin/sh
case "$1" in --version) exit 0;; esac
rules="$RULES"; touch "$rules"
line=$(echo "$*" | sed 's/ -[CID] / /')
case "$*" in
*" -C "*) grep -qxF -- "$line" "$rules";;
*" -I "*) echo "$line" >> "$rules";;
*" -D "*) grep -qxF -- "$line" "$rules" || exit 1
    grep -vxF -- "$line" "$rules" > "$rules.new"; mv "$rules.new" "$rules";;
esac
"#;

#[test]
fn sets_the_rules_of_node_cache_with_iptables() {
    use std::os::unix::fs::PermissionsExt;
    in_namespace("sets_the_rules_of_node_cache_with_iptables", || {
        let node = Node::new();
        let program = node.0.write("iptables", IPTABLES);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let rules = node.0.path().join("rules");
        let read = || std::fs::read_to_string(&rules).unwrap_or_default();
        let words = node.words(&["-rules", "iptables"]);
        // Only this test runs in this process, so it may change the environment.
        let path = format!("{}:{}", node.0.path().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        let mut child = command.args(words).env("PATH", path).env("RULES", &rules).spawn().unwrap();
        wait_until("all rules are there", || read().lines().count() == 24);
        assert!(read().contains("NodeLocal DNS Cache: allow DNS traffic"), "{}", read());
        let (first, _) = read().split_once('\n').map(|(first, _)| (first.to_owned(), ())).unwrap();
        std::fs::write(&rules, read().replace(&first, "")).unwrap();
        wait_until("the missing rules are restored", || read().contains(&first));
        assert!(run("kill", &["-TERM", &child.id().to_string()]).0);
        assert!(child.wait().unwrap().success());
        assert_eq!(read().trim(), "", "none is left");
        assert!(!has_interface());
    });
}

#[test]
fn prints_the_corefile_on_any_machine() {
    let node = Node::new();
    node.0.write("config/upstreamNameservers", r#"["192.0.2.1"]"#);
    let show = |program: &Path, words: &[OsString]| {
        let output = Command::new(program).args(words).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let words = node.words(&["--print-corefile", "-conf", "/etc/Corefile"]);
    let (went_well, text) = show(Path::new(env!("CARGO_BIN_EXE_portolan")), &words);
    assert!(went_well && text.contains("forward . 192.0.2.1 {\n    }"), "{text}");
    assert!(text.contains("health 169.254.20.10:8080"), "{text}");
    let node_cache = node.0.path().join("node-cache");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_portolan"), &node_cache).unwrap();
    assert_eq!(show(&node_cache, &words[1..]), (true, text), "selected by the name of the executable");
}
