//! Seeded faults: the code of the row that must fail, a name, and the change.

use serde_json::{Value, json};

use super::world::{World, encrypted};
use crate::{Attempt, LargeAnswer, Probes, Problem, SearchProbe};

pub(super) type Fault = (&'static str, &'static str, fn(&mut World));

/// Changes the fact of a probe, which is known.
macro_rules! known {
    ($fact:expr) => {
        $fact.as_mut().unwrap()
    };
}

pub(super) const FAULTS: &[Fault] = &[
    ("PD-C01", "a directive is not known", |world| {
        let problem = Problem {
            is_error: true,
            place: "/etc/coredns/Corefile:5".to_owned(),
            message: "unknown directive `redy` [directive/unknown]".to_owned(),
        };
        known!(known!(world.facts.corefile).problems).push(problem);
    }),
    ("PD-C01", "the server warned about a file when it loaded the Corefile", |world| {
        let server = &mut world.json["server"];
        server["files"] = json!([{ "name": "/etc/coredns/Corefile", "text": "" }]);
        server["status"]["corefile"]["first_warnings"] = json!(["/etc/coredns/Corefile:7: no such file"]);
    }),
    ("PD-C02", "a replica has an old Corefile", |world| known!(world.facts.replicas)[1].hash = Ok("aa01".to_owned())),
    ("PD-C03", "a reload failed", |world| {
        world.report_problem("PD-C03", "the last reload failed 4 m ago: unknown directive `redy`");
    }),
    ("PD-C04", "the tag is not a version", |world| {
        world.json["deployments"][0]["spec"]["template"]["spec"]["containers"][0]["image"] =
            "registry.example/dns/coredns:latest".into();
    }),
    ("PD-C04", "kubeadm has another repository", |world| {
        world.json["kubeadm"]["ClusterConfiguration"] = "dns: {}\nimageRepository: registry.k8s.io\n".into();
    }),
    ("PD-C05", "a second Deployment has the label", |world| {
        let metadata = json!({ "name": "portolan", "namespace": "kube-system", "labels": { "k8s-app": "kube-dns" } });
        world.add("deployments", json!({ "metadata": metadata, "spec": { "template": {} } }));
    }),
    ("PD-R01", "services may not be watched", |world| known!(world.facts.access)[2].allowed = false),
    ("PD-R01", "the server was refused a watch", |world| {
        world.facts.access = Err(crate::Unknown::new("the API server does not answer"));
        world.report_problem("PD-R01", "watch of services has been failing for 9 s: the API server says 403");
    }),
    ("PD-R02", "a watch fails", |world| {
        world.report_problem("PD-R02", "watch of services has been failing for 9 s: no connection to the API server");
    }),
    ("PD-R03", "Endpoints are not mirrored", |world| {
        world.json["slices"].as_array_mut().unwrap().retain(|slice| slice["metadata"]["name"] != "legacy-a");
    }),
    ("PD-K01", "kubelets name another address", |world| {
        let kubelet = &mut known!(world.facts.kubelets)[0];
        kubelet.cluster_dns = vec!["10.96.0.99".parse().unwrap()];
    }),
    ("PD-K02", "kubelets have another domain", |world| {
        known!(world.facts.kubelets)[0].cluster_domain = "k8s.corp".to_owned();
    }),
    ("PD-K03", "no endpoint is ready", |world| {
        for at in 0..2 {
            world.json["slices"][0]["endpoints"][at]["conditions"]["ready"] = false.into();
        }
    }),
    ("PD-K03", "the selector matches no Pod", |world| {
        world.json["slices"].as_array_mut().unwrap().remove(0);
        for at in 0..2 {
            world.json["pods"][at]["metadata"]["labels"] = json!({ "k8s-app": "coredns" });
        }
    }),
    ("PD-K03", "the port for TCP is missing", |world| {
        world.json["services"][0]["spec"]["ports"].as_array_mut().unwrap().pop();
    }),
    ("PD-K03", "the container has no such port", |world| {
        world.json["slices"][0]["ports"].as_array_mut().unwrap().pop();
    }),
    ("PD-K09", "a plugin is not ready", |world| world.report_problem("PD-K09", "not ready: kubernetes")),
    ("PD-K04", "all replicas are on one node", |world| {
        world.json["slices"][0]["endpoints"][1]["nodeName"] = "node-a".into();
    }),
    ("PD-K04", "all replicas are in one zone", |world| {
        world.json["slices"][0]["endpoints"][1]["zone"] = "zone-1".into();
    }),
    ("PD-K05", "there is no budget", |world| world.json["disruption_budgets"] = json!([])),
    ("PD-K05", "the budget blocks drains", |world| {
        world.json["disruption_budgets"][0]["status"] =
            json!({ "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2 });
    }),
    ("PD-K06", "memory is short", |world| world.report_problem("PD-K06", "memory is at 91 % of its limit")),
    ("PD-K07", "the probe asks the wrong path", |world| {
        container(world)["readinessProbe"]["httpGet"]["path"] = "/health".into();
    }),
    ("PD-K07", "there is no probe", |world| container(world)["readinessProbe"] = Value::Null),
    ("PD-K07", "the Corefile has no ready", |world| world.corefile = world.corefile.replace("    ready\n", "")),
    ("PD-K07", "the Corefile has no lameduck", |world| world.corefile = world.corefile.replace("lameduck 5s", "")),
    ("PD-K07", "lameduck is longer than the grace period", |world| {
        world.json["deployments"][0]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 5.into();
    }),
    ("PD-K08", "kube-proxy has no rules", |world| {
        let probes: &mut Probes = known!(world.facts.probes);
        (probes.service[0].udp, probes.service[0].tcp) = (Attempt::Silent, Attempt::Silent);
    }),
    ("PD-P01", "search paths cost most queries", |world| {
        world.json["server"]["status"]["answers"]["codes"] =
            json!([{ "code": "NXDOMAIN", "answers": 90_000 }, { "code": "NOERROR", "answers": 30_000 }]);
    }),
    ("PD-P02", "a Pod has many search domains", |world| {
        let searches: Vec<String> = (0..4).map(|at| format!("zone{at}.corp")).collect();
        world.json["pods"][3]["spec"]["dnsConfig"] = json!({ "searches": searches });
    }),
    ("PD-P02", "a Pod has many name servers", |world| {
        world.json["pods"][3]["spec"]["dnsConfig"] = json!({ "nameservers": ["10.0.0.2", "10.0.0.3", "10.0.0.4"] });
    }),
    ("PD-P02", "a kubelet cut the search domains", |world| {
        let object = json!({ "kind": "Pod", "namespace": "store-front", "name": "web-1" });
        let message = "Search Line limits were exceeded, some search paths have been omitted";
        world.add("events", json!({ "involvedObject": object, "message": message }));
    }),
    ("PD-P03", "an agent with hostNetwork uses a Service", |world| {
        world.json["pods"][4]["spec"]["containers"][0]["args"] = json!(["--server=http://web.store-front.svc:80/"]);
    }),
    ("PD-P04", "an image has an old musl", |world| {
        world.json["pods"][3]["spec"]["containers"][0]["image"] = "nginx:1.21-alpine3.14".into();
    }),
    ("PD-P05", "half of the queries are AAAA", |world| {
        world.json["server"]["queries_by_type"] = json!({ "A": 51_000, "AAAA": 49_000 });
    }),
    ("PD-N01", "connection tracking drops packets", |world| {
        known!(world.facts.conntrack).insert_failed = Some(5_417);
    }),
    ("PD-N02", "the connection tracking table is full", |world| {
        known!(world.facts.conntrack).entries = Some((250_000, 262_144));
    }),
    ("PD-N03", "a policy lets no DNS out", |world| {
        world.json["network_policies"][0]["spec"]["egress"] =
            json!([{ "to": [{ "ipBlock": { "cidr": "192.0.2.0/24" } }] }]);
    }),
    ("PD-N03", "a policy lets only UDP out", |world| {
        world.json["network_policies"][0]["spec"]["egress"][0]["ports"].as_array_mut().unwrap().pop();
    }),
    ("PD-N03", "a policy excludes the cluster DNS from a range", |world| {
        world.json["network_policies"][0]["spec"]["egress"] =
            json!([{ "to": [{ "ipBlock": { "cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "169.254.0.0/16"] } }] }]);
    }),
    ("PD-N03", "a policy lets only its own namespace in", |world| {
        world.json["network_policies"][1]["spec"]["ingress"][0]["from"] = json!([{ "podSelector": {} }]);
    }),
    ("PD-N03", "a replica does not answer from here", |world| {
        let replica = &mut known!(world.facts.probes).replicas[1];
        (replica.udp, replica.tcp, replica.large) = (Attempt::Silent, Attempt::Silent, Attempt::Silent);
    }),
    ("PD-N03", "no process listens in a replica", |world| {
        let replica = &mut known!(world.facts.probes).replicas[1];
        let refused = || Attempt::Failed("connection refused".to_owned());
        (replica.udp, replica.tcp, replica.large) = (refused(), refused(), refused());
    }),
    ("PD-N04", "TCP is blocked", |world| {
        known!(world.facts.probes).service[0].tcp = Attempt::Failed("connection refused".to_owned());
    }),
    ("PD-N05", "large packets are lost on the way to a replica", |world| {
        known!(world.facts.probes).replicas[1].large = Attempt::Silent;
    }),
    ("PD-N05", "large packets are lost on the way to an upstream", |world| {
        known!(world.facts.upstreams)[1].large = Attempt::Failed("message too long".to_owned());
    }),
    ("PD-N05", "large packets are lost on the way from an upstream", |world| {
        known!(world.facts.upstreams)[1].large_answer = Some(LargeAnswer { bytes: 811, udp: Attempt::Silent });
    }),
    ("PD-N06", "most queries come from nodes", |world| {
        world.json["daemon_sets"] = json!([]);
        world.json["server"]["clients"] = json!([
            { "client": "10.0.1.1", "queries": 900 },
            { "client": "10.244.3.0", "queries": 100 },
            { "client": "store-front/web-1", "queries": 600 },
        ]);
    }),
    ("PD-N07", "a client sends to a deleted replica", |world| {
        known!(world.facts.conntrack).flows.as_mut().unwrap()[0].replica = "10.244.9.9".parse().unwrap();
    }),
    ("PD-L01", "the interface lost an address", |world| known!(world.facts.interfaces)[0].addresses.truncate(1)),
    ("PD-L01", "the node cache does not answer", |world| {
        let cache = &mut known!(world.facts.probes).node_cache[0];
        (cache.udp, cache.tcp, cache.large) = (Attempt::Silent, Attempt::Silent, Attempt::NotTried);
    }),
    ("PD-L02", "kubelets name only the central Service", |world| {
        world.json["redirect_policies"] = json!([]);
        let arguments = json!(["-localip", "169.254.20.10"]);
        world.json["daemon_sets"][0]["spec"]["template"]["spec"]["containers"][0]["args"] = arguments;
    }),
    ("PD-L03", "an FQDN policy does not name the node cache", |world| {
        world.json["cilium_policies"][0]["spec"]["egress"][0]["toEndpoints"] =
            json!([{ "matchLabels": { "k8s-app": "kube-dns" } }]);
    }),
    ("PD-U01", "the upstream is the stub of systemd", |world| {
        world.json["server"]["status"]["upstreams"][0]["address"] = "127.0.0.53:53".into();
    }),
    ("PD-U01", "the upstream is an address of this machine", |world| {
        let problem = Problem {
            is_error: false,
            place: "/etc/coredns/Corefile:12".to_owned(),
            message: "what `forward` passes on comes back to this server block [chain/forward-loop]".to_owned(),
        };
        known!(known!(world.facts.corefile).problems).push(problem);
    }),
    ("PD-U01", "queries come back over two hops", |world| {
        known!(world.facts.upstreams)[0].came_back = Ok(true);
    }),
    ("PD-U01", "the server has found a loop", |world| {
        world.report_problem("PD-U01", "forwarding loop in zone . for 40 s: queries come back to this server");
    }),
    ("PD-N03", "a replica answers over TCP only", |world| {
        known!(world.facts.probes).replicas[0].udp = Attempt::Silent;
    }),
    ("PD-U01", "the upstream is the Service itself", |world| {
        world.json["daemon_sets"] = json!([]);
        world.json["server"]["status"]["upstreams"][0]["address"] = "10.96.0.10:53".into();
    }),
    ("PD-U02", "the server found an upstream down", |world| {
        world.report_problem("PD-U02", "upstream 10.0.0.3:53 has been down for 4 m: timeout");
    }),
    ("PD-U02", "an upstream loses queries", |world| {
        let attempts = &mut known!(world.facts.upstreams)[0].attempts;
        attempts[1] = Attempt::Silent;
        attempts[4] = Attempt::Silent;
    }),
    ("PD-U02", "an upstream over TLS refuses connections", |world| {
        world.facts.encrypted = vec![encrypted("127.0.0.1:1", Attempt::Failed("connection refused".to_owned()))];
    }),
    ("PD-U02", "an upstream fails", |world| known!(world.facts.upstreams)[1].failures = 5),
    ("PD-U02", "an upstream is slow", |world| {
        known!(world.facts.upstreams)[0].attempts = vec![Attempt::Answered(0.9); 5];
    }),
    ("PD-U03", "an upstream has no EDNS", |world| known!(world.facts.upstreams)[0].edns = Some(false)),
    ("PD-U03", "an upstream has no TCP", |world| known!(world.facts.upstreams)[0].tcp = Attempt::Silent),
    ("PD-U03", "an upstream changes names", |world| known!(world.facts.upstreams)[0].keeps_case = Some(false)),
    ("PD-U04", "the rate is near the limit of the cloud", |world| {
        world.json["server"]["status"]["upstreams"][0]["replies"] = 60_000.into();
    }),
    ("PD-U05", "a search domain has a wildcard", |world| {
        known!(world.facts.search).push(SearchProbe { domain: "wild.corp".to_owned(), answered: Some(true) });
    }),
    ("PD-U06", "replies match no query", |world| {
        world.report_problem("PD-U06", "upstream 10.0.0.2:53: 4,000 replies match no query");
    }),
    ("PD-S01", "a namespace is named after a top-level domain", |world| {
        let spec = json!({ "type": "ClusterIP", "clusterIP": "10.96.0.50" });
        world.add("services", json!({ "metadata": { "name": "web", "namespace": "dev" }, "spec": spec }));
    }),
    ("PD-S02", "an ExternalName is an address", |world| {
        world.json["services"][6]["spec"]["externalName"] = "192.0.2.25".into();
    }),
    ("PD-S02", "an ExternalName leads nowhere", |world| {
        world.json["services"][5]["spec"]["externalName"] = "gone.store-front.svc.cluster.local.".into();
    }),
    ("PD-S02", "two ExternalNames refer to each other", |world| {
        world.json["services"][5]["spec"]["externalName"] = "mail.store-front.svc.cluster.local".into();
        world.json["services"][6]["spec"]["externalName"] = "billing.store-front.svc.cluster.local".into();
    }),
    ("PD-S03", "no endpoint of a headless Service is ready", |world| {
        world.json["slices"][1]["endpoints"][0]["conditions"]["ready"] = false.into();
    }),
    ("PD-S03", "a headless Service is large", |world| {
        let endpoints: Vec<Value> = (0..150).map(|at| json!({ "addresses": [format!("10.245.0.{at}")] })).collect();
        world.json["slices"][1]["endpoints"] = endpoints.into();
    }),
    ("PD-S04", "two Services have the same address", |world| {
        world.json["services"][4]["spec"]["clusterIP"] = "10.96.0.11".into();
    }),
    ("PD-S05", "the selector of a Service matches no Pod", |world| {
        let service = json!({
            "metadata": { "namespace": "store-front", "name": "lost" },
            "spec": { "type": "ClusterIP", "clusterIP": "10.96.7.7", "selector": { "app": "lots" } },
        });
        world.json["services"].as_array_mut().unwrap().push(service);
    }),
    ("PD-S05", "no Pod of a Service is ready", |world| {
        world.json["slices"][4]["endpoints"][0]["conditions"]["ready"] = false.into();
    }),
    ("PD-T01", "the clock is wrong", |world| world.facts.api_clock_ahead = Ok(-7.0)),
    ("PD-T02", "a certificate expires soon", |world| {
        known!(world.facts.certificates)[0].expires_in = Ok(86_400.0);
    }),
    ("PD-T02", "a certificate cannot be read", |world| {
        known!(world.facts.certificates)[0].expires_in = Err(crate::Unknown::new("no such file"));
    }),
    ("PD-T03", "the kernel drops queries", |world| {
        world.json["server"]["status"]["answers"]["lost"] = 214.into();
    }),
    ("PD-T05", "a limit was reached", |world| {
        world.report_problem("PD-T05", "limit udp_waiting reached 12 times in 10 m");
    }),
    ("PD-T06", "many queries are refused", |world| {
        world.report_problem("PD-T06", "REFUSED is 34 % of 4,210 answers in 1 m");
    }),
    ("PD-T07", "the server crashed", |world| {
        world.report_problem("PD-T07", "the server was killed by signal 11 (SIGSEGV) and started again 5 m ago");
    }),
];

fn container(world: &mut World) -> &mut Value {
    &mut world.json["deployments"][0]["spec"]["template"]["spec"]["containers"][0]
}
