//! Addresses of a cluster, and the network of its node: a namespace with one interface, whose other end is in a second
//! namespace. That one stands for the world outside: it routes to the pods and has the name server of the node.

use super::steps::{run, write};
use xtask::Failed;

/// Name of the node.
pub(crate) const NODE: &str = "node1";
/// Addresses of the node.
pub(crate) const NODE_V4: &str = "10.99.0.1";
pub(crate) const NODE_V6: &str = "fd00:99::1";
/// Addresses of the world outside. A name server listens on the first.
pub(crate) const OUTSIDE_V4: &str = "10.99.0.254";
const OUTSIDE_V6: &str = "fd00:99::fe";
/// Network namespace of the world outside, as `ip netns` knows it.
pub(crate) const OUTSIDE: &str = "outside";
/// Networks of the pods: those of the cluster, and the part of this node.
pub(crate) const PODS: [&str; 2] = ["10.244.0.0/16", "fd00:10:244::/56"];
pub(crate) const NODE_PODS: [&str; 2] = ["10.244.0.0/24", "fd00:10:244::/64"];
/// Networks of the Services.
pub(crate) const SERVICES: [&str; 2] = ["10.96.0.0/16", "fd00:10:96::/112"];
/// Address of the cluster DNS.
pub(crate) const DNS: &str = "10.96.0.10";
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
    NODE_V4,
    "127.0.0.1",
];

/// Creates the network. Runs in the network namespace of the node.
pub(crate) fn create() -> Result<(), Failed> {
    run("ip link set lo up")?;
    run(&format!("ip netns add {OUTSIDE}"))?;
    run(&format!("ip link add eth0 type veth peer name eth0 netns {OUTSIDE}"))?;
    run(&format!("ip addr add {NODE_V4}/24 dev eth0"))?;
    run(&format!("ip addr add {NODE_V6}/64 dev eth0 nodad"))?;
    run("ip link set eth0 up")?;
    let outside = |line: &str| run(&format!("ip -n {OUTSIDE} {line}"));
    outside("link set lo up")?;
    outside(&format!("addr add {OUTSIDE_V4}/24 dev eth0"))?;
    outside(&format!("addr add {OUTSIDE_V6}/64 dev eth0 nodad"))?;
    outside("link set eth0 up")?;
    outside(&format!("route add {} via {NODE_V4}", PODS[0]))?;
    outside(&format!("-6 route add {} via {NODE_V6}", PODS[1]))?;
    run(&format!("ip route add default via {OUTSIDE_V4}"))?;
    run(&format!("ip -6 route add default via {OUTSIDE_V6}"))?;
    write("/proc/sys/net/ipv4/ip_forward", "1")?;
    write("/proc/sys/net/ipv6/conf/all/forwarding", "1")?;
    for family in ["", "6"] {
        // Without them, answers between pods of this node bypass kube-proxy's rules.
        let path = format!("/proc/sys/net/bridge/bridge-nf-call-ip{family}tables");
        write(&path, "1").map_err(|error| format!("{error}; load the kernel module br_netfilter"))?;
    }
    Ok(())
}
