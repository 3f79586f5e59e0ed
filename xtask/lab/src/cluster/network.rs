//! Addresses of a cluster, and the network of its nodes: each a namespace with one interface, whose other end is in
//! another namespace. That one stands for the world outside: it routes between the nodes and to their pods, and has
//! their name server.

use super::steps::{run, write};
use xtask::Failed;

/// Node of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: &'static str,
    /// Addresses.
    pub(crate) v4: &'static str,
    pub(crate) v6: &'static str,
    /// Addresses of the world outside on the link to the node.
    router: [&'static str; 2],
    /// Interface of the world outside on this link.
    pub(crate) link: &'static str,
    /// Networks of its pods, which are those that the controller manager gives to the first and the second node.
    pub(crate) pods: [&'static str; 2],
    /// Start of the names of its files.
    prefix: &'static str,
}

impl Node {
    /// Returns the name of a file of the node.
    pub(crate) fn file(self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// Node with the control plane.
pub(crate) const FIRST: Node = Node {
    name: "node1",
    v4: "10.99.0.1",
    v6: "fd00:99::1",
    router: [OUTSIDE_V4, "fd00:99::fe"],
    link: "eth0",
    pods: ["10.244.0.0/24", "fd00:10:244::/64"],
    prefix: "",
};
/// Node of `--nodes 2`.
pub(crate) const SECOND: Node = Node {
    name: "node2",
    v4: "10.99.1.1",
    v6: "fd00:99:1::1",
    router: ["10.99.1.254", "fd00:99:1::fe"],
    link: "eth1",
    pods: ["10.244.1.0/24", "fd00:10:244:1::/64"],
    prefix: "node2/",
};
/// All nodes that a cluster can have.
pub(crate) const ALL: [Node; 2] = [FIRST, SECOND];
/// Address of the world outside that its name server listens on.
pub(crate) const OUTSIDE_V4: &str = "10.99.0.254";
/// Network namespace of the world outside, as `ip netns` knows it.
pub(crate) const OUTSIDE: &str = "outside";
/// Networks of the pods of the cluster.
pub(crate) const PODS: [&str; 2] = ["10.244.0.0/16", "fd00:10:244::/56"];
/// Networks of the Services.
pub(crate) const SERVICES: [&str; 2] = ["10.96.0.0/16", "fd00:10:96::/112"];
/// Address of the cluster DNS.
pub(crate) const DNS: &str = "10.96.0.10";
/// Port of the API server.
pub(crate) const API_PORT: u16 = 6443;
/// Domain of the cluster.
pub(crate) const DOMAIN: &str = "cluster.local";
/// Names and addresses in the certificate of the API server.
pub(crate) const API_NAMES: [&str; 9] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
    "10.96.0.1",
    "fd00:10:96::1",
    FIRST.v4,
    "127.0.0.1",
];

/// Creates the network of the first node and the world outside. Runs in the network namespace of the node.
pub(crate) fn create() -> Result<(), Failed> {
    run(&format!("ip netns add {OUTSIDE}"))?;
    run(&format!("ip -n {OUTSIDE} link set lo up"))?;
    for path in ["ipv4.ip_forward", "ipv6.conf.all.forwarding"] {
        run(&format!("ip netns exec {OUTSIDE} busybox sysctl -w net.{path}=1"))?;
    }
    join(FIRST)
}

/// Connects a node to the world outside. Runs in the network namespace of the node.
pub(crate) fn join(node: Node) -> Result<(), Failed> {
    let Node { v4, v6, router: [router_v4, router_v6], link, pods: [pods_v4, pods_v6], .. } = node;
    run("ip link set lo up")?;
    run(&format!("ip link add eth0 type veth peer name {link} netns {OUTSIDE}"))?;
    run(&format!("ip addr add {v4}/24 dev eth0"))?;
    run(&format!("ip addr add {v6}/64 dev eth0 nodad"))?;
    run("ip link set eth0 up")?;
    let outside = |line: &str| run(&format!("ip -n {OUTSIDE} {line}"));
    outside(&format!("addr add {router_v4}/24 dev {link}"))?;
    outside(&format!("addr add {router_v6}/64 dev {link} nodad"))?;
    outside(&format!("link set {link} up"))?;
    outside(&format!("route add {pods_v4} via {v4}"))?;
    outside(&format!("-6 route add {pods_v6} via {v6}"))?;
    run(&format!("ip route add default via {router_v4}"))?;
    run(&format!("ip -6 route add default via {router_v6}"))?;
    write("/proc/sys/net/ipv4/ip_forward", "1")?;
    write("/proc/sys/net/ipv6/conf/all/forwarding", "1")?;
    for family in ["", "6"] {
        // Without them, answers between pods of this node bypass kube-proxy's rules.
        let path = format!("/proc/sys/net/bridge/bridge-nf-call-ip{family}tables");
        write(&path, "1").map_err(|error| format!("{error}; load the kernel module br_netfilter"))?;
    }
    Ok(())
}
