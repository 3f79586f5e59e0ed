//! Dashboards and rules of the Helm chart with a real Prometheus: each expression returns data for servers under
//! load, and each alert for its fault. If Prometheus is not installed, the tests print a message and are skipped.
//!
//! If the variable `PUBLIC_BOARDS` names a folder with dashboards of others, the test also prints which of their
//! expressions return no data.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::prometheus::{self, Prometheus, promtool, skipped};
use crate::support::served::Served;
use crate::support::upstream::Upstream;
use crate::support::{Client, Folder, wait_until};
use fakeapi::{FakeApi, slice};
use serde_json::Value;
use testkit::ports::free_address;
use wire::Type;

/// Time for all expressions to return data.
const DEADLINE: Duration = Duration::from_secs(120);
/// Connections to a page of the server: more than it allows from one address.
const TOO_MANY_CONNECTIONS: usize = 200;
/// Connections over gRPC: more than the Corefile allows.
const TOO_MANY_CALLERS: usize = 4;
/// Alerts whose fault a test cannot cause, with an expression that must return data instead.
const NOT_SEEDED: [(&str, &str); 3] = [
    ("PortolanPanic", "increase(coredns_panics_total[10s])"),
    ("PortolanInternalError", "sum by (job, instance) (portolan_internal_errors_total)"),
    // Only `portolan node` exports the metric; `promtool` tests the rule.
    ("PortolanNodeSetupErrors", "up"),
];
/// Metrics that exist only in a cgroup with limits.
const OF_CGROUP: [&str; 2] = ["portolan_memory_limit_bytes", "portolan_cpu_"];

#[test]
fn rules_pass_their_unit_tests() {
    if prometheus::is_installed() {
        promtool(&files(), &["check", "rules", "rules.yaml"]);
        promtool(&deploy().join("monitoring"), &["test", "rules", "rules-test.yaml"]);
    }
}

#[test]
fn expressions_of_boards_and_rules_return_data() {
    if !prometheus::is_installed() {
        return;
    }
    let (folder, mut site) = (Folder::new("monitoring"), Site::start());
    let rules = fs::read_to_string(files().join("rules.yaml")).unwrap();
    let prometheus = Prometheus::start(&folder, &hastened(&rules), &site.targets());
    let mut pending = expressions(&files());
    pending.extend(prometheus.rules());
    if !site.is_limited {
        pending.retain(|(_, expression)| !OF_CGROUP.iter().any(|metric| expression.contains(metric)));
    }
    let count = pending.len();
    assert!(count > 80, "{count} expressions");
    let public = std::env::var_os("PUBLIC_BOARDS").map_or(Vec::new(), |folder| expressions(Path::new(&folder)));
    let mut missing = public.clone();
    let end = Instant::now() + DEADLINE;
    while !pending.is_empty() && Instant::now() < end {
        site.load();
        pending.retain(|rule| !has_data(&prometheus, rule));
        missing.retain(|rule| !has_data(&prometheus, rule));
    }
    assert!(pending.is_empty(), "{} of {count} expressions return no data: {pending:#?}", pending.len());
    if !public.is_empty() {
        let text = format!("{} of {} public expressions return no data: {missing:#?}\n", missing.len(), public.len());
        fs::write(std::env::temp_dir().join("public-boards.txt"), text).unwrap();
    }
}

fn has_data(prometheus: &Prometheus, (name, expression): &(String, String)) -> bool {
    if let Some((_, instead)) = NOT_SEEDED.iter().find(|(alert, _)| alert == name) {
        return prometheus.has_data(instead, None);
    }
    // This alert is about an empty Prometheus, as it was before the test.
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - 3600;
    prometheus.has_data(expression, (name == "PortolanDown").then_some(before))
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// Returns the folder of the dashboards and rules.
fn files() -> PathBuf {
    deploy().join("helm/portolan/files")
}

/// Shortens the ranges of rules, and thresholds that are times, so that a fault of seconds is enough.
fn hastened(rules: &str) -> String {
    let short = ["[5m]", "[10m]", "[15m]"].iter().fold(rules.to_owned(), |text, range| text.replace(range, "[10s]"));
    short.replace(" > 4'", " > 0'").replace(" > 120'", " > 0'")
}

/// Returns the expressions of all dashboards in a folder, each with its panel.
fn expressions(folder: &Path) -> Vec<(String, String)> {
    let files = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let mut all = Vec::new();
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
        let board: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        collect(&board, file.file_stem().unwrap().to_str().unwrap(), &mut all);
    }
    all
}

/// Collects the expressions in a part of a dashboard, with the title of the innermost panel.
fn collect(part: &Value, title: &str, all: &mut Vec<(String, String)>) {
    match part {
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, title, all)),
        Value::Object(fields) => {
            let title = fields.get("title").and_then(Value::as_str).unwrap_or(title);
            if let Some(expression) = fields.get("expr").and_then(Value::as_str) {
                all.push((title.to_owned(), filled(expression)));
            }
            fields.values().for_each(|part| collect(part, title, all));
        }
        _ => {}
    }
}

/// Replaces the variables of a dashboard.
fn filled(expression: &str) -> String {
    let ranges = expression.replace("$__rate_interval", "10s").replace("[5m]", "[10s]").replace("$protocol", "udp");
    ["$job", "$instance", "$cluster"].iter().fold(ranges, |text, variable| text.replace(variable, ".*"))
}

/// Servers with faults, and what they depend on.
struct Site {
    api: FakeApi,
    _down: FakeApi,
    _upstream: Upstream,
    _silent: UdpSocket,
    cluster: Served,
    broken: Served,
    stalled: Stalled,
    absent: SocketAddr,
    /// Listener for gRPC that allows one connection.
    callers: SocketAddr,
    is_limited: bool,
    round: usize,
}

impl Site {
    fn start() -> Site {
        let (api, down, upstream) = (FakeApi::with_shop(), FakeApi::with_shop(), Upstream::start(1));
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let folder = Folder::new("broken");
        let callers = free_address();
        let corefile = broken(&folder, &down, silent.local_addr().unwrap()) + &one_caller(callers);
        write_snapshot(&folder, &down);
        down.down();
        let broken = Served::start_in(folder, &corefile);
        let cluster = Served::start("cluster", &cluster(&api, &upstream, broken.address));
        let mut stalled = Stalled::start();
        let is_limited = stalled.limit();
        let absent = free_address();
        Site {
            api,
            _down: down,
            _upstream: upstream,
            _silent: silent,
            cluster,
            broken,
            stalled,
            absent,
            callers,
            is_limited,
            round: 0,
        }
    }

    fn targets(&self) -> [(&'static str, SocketAddr); 4] {
        [
            ("dns", self.cluster.pages),
            ("dns", self.broken.pages),
            ("dns", self.absent),
            ("stalled", self.stalled.metrics),
        ]
    }

    /// Sends queries to all servers, changes the cluster, and repeats the faults.
    fn load(&mut self) {
        self.round += 1;
        let round = self.round;
        let names = [
            "web.shop.svc.cluster.local.".to_owned(),
            "missing.shop.svc.cluster.local.".to_owned(),
            "www.example.org.shop.svc.cluster.local.".to_owned(),
            "www.example.org.".to_owned(),
            format!("a{round}.example.org."),
            format!("a{round}.error.test."),
        ];
        names.iter().for_each(|name| drop(self.cluster.client.ask(name, Type::A)));
        let names = ["web.shop.svc.cluster.local.", "web.shop.svc.stale.local.", "a.loop.test."];
        names.iter().for_each(|name| drop(self.broken.client.ask(name, Type::A)));
        for number in 0..4 {
            self.broken.client.send(&format!("a{round}-{number}.silent.test."), Type::A);
            self.broken.client.ask(&format!("a{round}-{number}.example.org."), Type::A);
        }
        self.stalled.load();
        self.change_cluster();
        self.broken.reload(&format!(".:0 {{\n    nonsense{round}\n}}\n"));
        let connections = (0..TOO_MANY_CONNECTIONS).map(|_| TcpStream::connect(self.broken.pages));
        drop(connections.collect::<Vec<_>>());
        let callers = (0..TOO_MANY_CALLERS).map(|_| TcpStream::connect(self.callers));
        drop(callers.collect::<Vec<_>>());
    }

    fn change_cluster(&self) {
        let mut slice = slice("shop", "web", &[&format!("10.1.0.{}", self.round % 250 + 1)]);
        // A time in the future counts as a duration of 0, whatever the clock says.
        slice["metadata"]["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"] =
            "2999-01-01T00:00:00Z".into();
        self.api.put(slice);
        let nameless = r#"{"type":"MODIFIED","object":{"kind":"Service","apiVersion":"v1","spec":7}}"#;
        self.api.inject("services", nameless);
        if self.round.is_multiple_of(4) {
            self.api.drop_connections();
        }
    }
}

/// Returns the Corefile of a server with a cluster, an upstream, and an upstream that fails.
fn cluster(api: &FakeApi, upstream: &Upstream, failing: SocketAddr) -> String {
    format!(
        ".:0 {{
    bind 127.0.0.1
    prometheus localhost:0
    reload
    cache 30
    autopath @kubernetes {{
        clients any
    }}
    kubernetes cluster.local {{
        endpoint {}
        apiserver_qps 50
        snapshot /nonexistent/snapshot
    }}
    forward . {}
}}
error.test:0 {{
    bind 127.0.0.1
    prometheus localhost:0
    forward . {failing} {{
        force_tcp
    }}
}}
",
        api.url(),
        upstream.address
    )
}

/// Returns the Corefile of a server whose API server, upstreams and etcd do not answer, and which forwards to itself.
fn broken(folder: &Folder, down: &FakeApi, silent: SocketAddr) -> String {
    let (port, api) = (free_address().port(), down.url());
    let block = |zone: &str, rest: &str| {
        format!("{zone}:{port} {{\n    bind 127.0.0.1\n    prometheus localhost:0\n    {rest}\n}}\n")
    };
    [
        block(".", "errors\n    reload\n    forward . 127.0.0.1:9"),
        block(
            "cluster.local",
            &format!("kubernetes cluster.local {{\n        endpoint {api}\n        startup_timeout 0s\n    }}"),
        ),
        block("stale.local", &remembered(folder, down)),
        block("silent.test", &format!("forward . {silent} {{\n        max_concurrent 1\n    }}")),
        block("loop.test", &format!("loop\n    forward . 127.0.0.1:{port}")),
        block("etcd.test", "etcd {\n        endpoint http://127.0.0.1:9\n    }"),
    ]
    .concat()
}

/// Returns a server block for gRPC that allows one connection.
fn one_caller(address: SocketAddr) -> String {
    let (ip, port) = (address.ip(), address.port());
    format!(
        "grpc://grpc.test:{port} {{\n    bind {ip}\n    grpc_server {{\n        max_connections 1\n    }}\n    whoami\n}}\n"
    )
}

/// Returns a directive *kubernetes* with a snapshot.
fn remembered(folder: &Folder, api: &FakeApi) -> String {
    let file = folder.path().join("snapshot").display().to_string();
    format!("kubernetes stale.local {{\n        endpoint {}\n        snapshot {file}\n    }}", api.url())
}

/// Lets a server write its snapshot.
fn write_snapshot(folder: &Folder, api: &FakeApi) {
    let corefile = format!("stale.local:0 {{\n    {}\n    prometheus localhost:0\n}}\n", remembered(folder, api));
    let _server = Served::start("snapshot", &corefile);
    wait_until("the snapshot is written", || folder.path().join("snapshot").exists());
}

/// Server that answers NXDOMAIN, whose log nobody reads, and which has the limits of a small container.
struct Stalled {
    child: Child,
    _output: BufReader<ChildStdout>,
    _folder: Folder,
    client: Client,
    metrics: SocketAddr,
    cgroups: Vec<PathBuf>,
}

impl Stalled {
    fn start() -> Stalled {
        let folder = Folder::new("stalled");
        let names = "{name} ".repeat(16);
        let corefile = format!(
            ".:0 {{\n    bind 127.0.0.1\n    prometheus localhost:0\n    log . \"{names}\"\n    template ANY ANY {{\n        \
             rcode NXDOMAIN\n    }}\n}}\n"
        );
        let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .arg("-conf")
            .arg(folder.write("Corefile", &corefile))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (mut dns, mut metrics) = (None, None);
        while dns.is_none() || metrics.is_none() {
            let (address, label) = announced(&mut output);
            *if label.starts_with("dns://") { &mut dns } else { &mut metrics } = Some(address);
        }
        let (client, metrics) = (Client::new(dns.unwrap()), metrics.unwrap());
        Stalled { child, _output: output, _folder: folder, client, metrics, cgroups: Vec::new() }
    }

    fn load(&mut self) {
        let label = "a".repeat(60);
        let name = format!("{label}.{label}.{label}.{label}.");
        (0..200).for_each(|_| drop(self.client.ask(&name, Type::A)));
    }

    /// Moves the process to cgroups with a little more memory than it uses, and a tenth of a CPU. Returns false if this
    /// machine does not allow it.
    fn limit(&mut self) -> bool {
        let memory = resident(self.child.id()) / 94 * 100;
        let name = format!("portolan-test-{}", self.child.id());
        let one = |controller: &str, settings: &[(&str, String)]| {
            let own = Path::new("/sys/fs/cgroup").join(controller).join(&name);
            fs::create_dir(&own).ok()?;
            let all = settings.iter().map(|(file, value)| (*file, value.clone()));
            let mut all = all.chain([("cgroup.procs", self.child.id().to_string())]);
            all.all(|(file, value)| fs::write(own.join(file), value).is_ok()).then_some(own)
        };
        let memory = one("memory", &[("memory.limit_in_bytes", memory.to_string())]);
        let cpu = one("cpu", &[("cpu.cfs_period_us", "20000".to_owned()), ("cpu.cfs_quota_us", "2000".to_owned())]);
        let is_limited = memory.is_some() && cpu.is_some();
        self.cgroups.extend(memory.into_iter().chain(cpu));
        if !is_limited {
            skipped("this test may not create cgroups: rules about memory and CPU limits are not tried");
        }
        is_limited
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for cgroup in &self.cgroups {
            wait_until("the cgroup is empty", || fs::remove_dir(cgroup).is_ok());
        }
    }
}

/// Reads lines until one announces an address. Returns it with its label.
fn announced(output: &mut BufReader<ChildStdout>) -> (SocketAddr, String) {
    loop {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "it ended");
        let announcement = line.split_once("listening on ").and_then(|(_, rest)| rest.split_once(" for "));
        if let Some((address, label)) = announcement {
            return (address.parse().unwrap(), label.to_owned());
        }
    }
}

/// Returns the resident memory of a process in bytes.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
