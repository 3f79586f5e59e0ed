//! Configuration files of the components. All but containerd's are JSON, which is YAML too.

use serde_json::{Value, json};

use super::credentials::{AUTHORITY, Tokens};
use super::home::{CONTAINERD_SOCKET, Home, KUBECONFIG};
use super::network::{self, API_PORT, Node};
use super::{images, programs};
use xtask::Failed;

pub(crate) const KUBELET_KUBECONFIG: &str = "kubelet.kubeconfig";
pub(crate) const KUBELET: &str = "kubelet.json";
pub(crate) const PROXY: &str = "proxy.json";
pub(crate) const CONTAINERD: &str = "containerd.toml";
/// Policy of the API server's audit log.
pub(crate) const AUDIT: &str = "audit.json";
/// Corefile of the name server outside.
pub(crate) const OUTSIDE: &str = "outside/Corefile";
/// Resolver configuration of the node.
const RESOLV_CONF: &str = "resolv.conf";
/// Folder with the configuration of the network of pods.
const CNI: &str = "cni";

/// Writes all files.
pub(crate) fn write(home: &Home, tokens: &Tokens) -> Result<(), Failed> {
    let cni = programs::cni_folder().map_or_else(String::new, |folder| folder.display().to_string());
    home.write(RESOLV_CONF, format!("nameserver {}\nsearch lab.internal\n", network::OUTSIDE_V4))?;
    home.write(OUTSIDE, OUTSIDE_COREFILE)?;
    home.write(AUDIT, audit().to_string())?;
    for (node, token) in [network::FIRST, network::SECOND].into_iter().zip(&tokens.kubelets) {
        home.write(&node.file(KUBECONFIG), kubeconfig(home, &tokens.administrator, node))?;
        home.write(&node.file(KUBELET_KUBECONFIG), kubeconfig(home, token, node))?;
        home.write(&node.file(KUBELET), kubelet(home, node).to_string())?;
        home.write(&node.file(PROXY), proxy(home, node).to_string())?;
        home.write(&node.file(CONTAINERD), containerd(home, node, &cni))?;
        home.write(&node.file(&format!("{CNI}/10-bridge.conflist")), bridge(home, node).to_string())?;
    }
    Ok(())
}

fn kubeconfig(home: &Home, token: &str, node: Node) -> String {
    let address = if node == network::FIRST { "127.0.0.1" } else { network::FIRST.v4 };
    let server = format!("https://{address}:{API_PORT}");
    let cluster = json!({ "server": server, "certificate-authority": home.text(AUTHORITY) });
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "portolan", "cluster": cluster }],
        "users": [{ "name": "user", "user": { "token": token } }],
        "contexts": [{ "name": "portolan", "context": { "cluster": "portolan", "user": "user" } }],
        "current-context": "portolan",
    });
    config.to_string()
}

fn kubelet(home: &Home, node: Node) -> Value {
    let mut settings = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        // Its port is reachable in the network namespace of the node only.
        "authentication": { "anonymous": { "enabled": true }, "webhook": { "enabled": false } },
        "authorization": { "mode": "AlwaysAllow" },
        "cgroupDriver": "cgroupfs",
        "clusterDNS": [network::DNS],
        "clusterDomain": network::DOMAIN,
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "failCgroupV1": false,
        "failSwapOn": false,
        "resolvConf": home.text(RESOLV_CONF),
        "volumePluginDir": home.text("volume-plugins"),
        // The disk belongs to the machine. Images must stay even if it is almost full.
        "evictionHard": { "memory.available": "10Mi" },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "imageMinimumGCAge": "24h",
    });
    // A kubelet removes the control groups of pods that it does not know.
    if node != network::FIRST {
        settings["cgroupRoot"] = format!("/{}", node.name).into();
    }
    settings
}

fn proxy(home: &Home, node: Node) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": { "kubeconfig": home.text(&node.file(KUBECONFIG)) },
        "clusterCIDR": network::PODS.join(","),
        "hostnameOverride": node.name,
        "mode": "iptables",
        // These limits belong to the kernel of the machine, so kube-proxy must not set them.
        "conntrack": { "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s" },
    })
}

/// Records each list and watch of an account in kube-system once, with its URL: which server has asked for how much.
fn audit() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "Panic"],
        "rules": [
            { "level": "Metadata", "userGroups": ["system:serviceaccounts:kube-system"], "verbs": ["list", "watch"] },
            { "level": "None" },
        ],
    })
}

fn bridge(home: &Home, node: Node) -> Value {
    let ranges = node.pods.map(|subnet| json!([{ "subnet": subnet }]));
    let ipam = json!({
        "type": "host-local",
        "dataDir": home.text(&node.file("addresses")),
        "ranges": ranges,
        "routes": [{ "dst": "0.0.0.0/0" }, { "dst": "::/0" }],
    });
    let bridge = json!({ "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipam": ipam });
    let ports = json!({ "type": "portmap", "capabilities": { "portMappings": true } });
    json!({ "cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports] })
}

fn containerd(home: &Home, node: Node, cni: &str) -> String {
    let [root, plugins, config] = ["containerd", "opt", CNI].map(|name| home.text(&node.file(name)));
    let pause = images::PAUSE;
    format!(
        r#"version = 2
root = "{root}"
state = "/run/containerd"

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.internal.v1.opt"]
path = "{plugins}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
disable_apparmor = true
# A machine without CAP_SYS_RESOURCE cannot lower the score.
restrict_oom_score_adj = true
disable_hugetlb_controller = true
tolerate_missing_hugetlb_controller = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni}"
conf_dir = "{config}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"#
    )
}

/// Name server of the node: one domain of a company, and an address on the Internet that a spec of Kubernetes looks up.
const OUTSIDE_COREFILE: &str = "\
8.8.8.8.in-addr.arpa:53 {
    template IN PTR {
        answer \"{{ .Name }} 60 IN PTR dns.google.\"
    }
}
lab.internal:53 {
    template IN A {
        answer \"{{ .Name }} 60 IN A 192.0.2.80\"
    }
    template ANY ANY {
        rcode NOERROR
    }
}
.:53 {
    template ANY ANY {
        rcode NXDOMAIN
    }
}
";
