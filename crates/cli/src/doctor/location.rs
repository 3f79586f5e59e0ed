//! Location of this machine: in the network of the cluster, or outside of it.

use std::net::IpAddr;

use doctor::objects::Node;
use doctor::{Facts, Known, Unknown};

use process::local::is_pod;

/// Succeeds if packets from here take the way of packets in the cluster: in a Pod, on a node, and beside the server.
///
/// # Errors
/// This machine is another one, so that silence would say nothing about the cluster.
pub(super) fn check_inside(facts: &Facts, is_beside_server: bool) -> Known<()> {
    let own: Vec<IpAddr> =
        facts.interfaces.iter().flatten().flat_map(|interface| interface.addresses.clone()).collect();
    let nodes = facts.objects.nodes.iter().flat_map(|nodes| nodes.iter());
    let is_node = nodes.flat_map(Node::addresses).any(|address| own.contains(&address));
    if is_pod() || is_node || is_beside_server {
        return Ok(());
    }
    Err(Unknown::new("this machine is not in the network of the cluster; run this in a Pod: deploy/doctor.yaml"))
}
