//! Facts that checks read. `cli::doctor` gathers them; tests write them.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use control::doctor::ServerFacts;

use crate::objects::Objects;
use crate::{CorefileFacts, DnsService, EncryptedProbe, Known, Probes, Unknown, UpstreamProbe};

/// Everything that the checks may read.
pub struct Facts {
    /// Facts that the running server reports over its control socket.
    pub server: Known<ServerFacts>,
    /// Corefile.
    pub corefile: Known<CorefileFacts>,
    /// Objects of the cluster.
    pub objects: Objects,
    /// Namespace and name of the DNS Service, if the command line has one.
    pub service: Option<(String, String)>,
    /// Permissions that the server needs.
    pub access: Known<Vec<Access>>,
    /// Time of the API server minus the time of this machine in seconds.
    pub api_clock_ahead: Known<f64>,
    /// Resolver settings that kubelets give to Pods.
    pub kubelets: Known<Vec<Kubelet>>,
    /// Replicas of the server that were asked for their metrics.
    pub replicas: Known<Vec<Replica>>,
    /// Probes of the DNS Service, its replicas and the node cache.
    pub probes: Known<Probes>,
    /// Answers of the DNS Service, by the server that gave them. Asked only of a Service that prefers the own node.
    pub answers: Known<Vec<ServiceAnswers>>,
    /// Version of the API server, such as `v1.36.2`.
    pub api_version: Known<String>,
    /// True if the user asks for the mode `every-node`, which the cluster may not have yet.
    pub plans_every_node: bool,
    /// Probes of upstreams.
    pub upstreams: Known<Vec<UpstreamProbe>>,
    /// Upstreams that are not plain DNS; empty without them.
    pub encrypted: Vec<EncryptedProbe>,
    /// Random names below the search domains of this machine.
    pub search: Known<Vec<SearchProbe>>,
    /// Connection tracking of this network namespace.
    pub conntrack: Known<Conntrack>,
    /// Network interfaces of this network namespace.
    pub interfaces: Known<Vec<Interface>>,
    /// Certificates in the files that the Corefile names.
    pub certificates: Known<Vec<Certificate>>,
}

impl Facts {
    /// Returns facts that nobody gathered, for this reason.
    #[must_use]
    pub fn unknown(reason: &str) -> Facts {
        let unknown = Unknown::new(reason);
        Facts {
            server: Err(unknown.clone()),
            corefile: Err(unknown.clone()),
            objects: Objects::unknown(&unknown),
            service: None,
            access: Err(unknown.clone()),
            api_clock_ahead: Err(unknown.clone()),
            kubelets: Err(unknown.clone()),
            replicas: Err(unknown.clone()),
            probes: Err(unknown.clone()),
            answers: Err(unknown.clone()),
            api_version: Err(unknown.clone()),
            plans_every_node: false,
            upstreams: Err(unknown.clone()),
            encrypted: Vec::new(),
            search: Err(unknown.clone()),
            conntrack: Err(unknown.clone()),
            interfaces: Err(unknown.clone()),
            certificates: Err(unknown),
        }
    }

    /// Returns the DNS Service of the cluster.
    ///
    /// # Errors
    /// The Services are not known, or none of them is the DNS Service.
    pub fn dns(&self) -> Known<DnsService<'_>> {
        DnsService::find(&self.objects, self.service.as_ref())
    }

    /// Returns the name of the node that this process runs on, by an address of this network namespace.
    ///
    /// # Errors
    /// The interfaces are not known, or no Pod, endpoint or Node has one of their addresses.
    pub fn own_node(&self) -> Known<&str> {
        crate::known::known(&self.interfaces)?;
        let is_own = |address| self.has_address(address);
        let nodes = self.own_nodes();
        let pods = self.objects.pods.iter().flat_map(|pods| pods.iter());
        let pods = pods.filter(|pod| pod.addresses().any(is_own)).map(|pod| pod.spec.node_name.as_str());
        let slices = self.objects.slices.iter().flat_map(|slices| slices.iter());
        let endpoints = slices.flat_map(|slice| &slice.endpoints);
        let has = |addresses: &[String]| addresses.iter().filter_map(|text| text.parse().ok()).any(is_own);
        let endpoints = endpoints.filter(|one| has(&one.addresses)).map(|one| one.node_name.as_str());
        let mut named = nodes.chain(pods).chain(endpoints).filter(|name| !name.is_empty());
        let missing = || Unknown::new("the node of this process is not known: no Pod has an address from here");
        named.next().ok_or_else(missing)
    }

    /// Returns true if this process has the network of a node.
    #[must_use]
    pub fn is_on_node_network(&self) -> bool {
        self.own_nodes().next().is_some()
    }

    /// Returns the names of the nodes with an address of this network namespace.
    fn own_nodes(&self) -> impl Iterator<Item = &str> {
        let nodes = self.objects.nodes.iter().flat_map(|nodes| nodes.iter());
        let own = nodes.filter(|node| node.addresses().any(|address| self.has_address(address)));
        own.map(|node| node.metadata.name.as_str())
    }

    /// Returns true if an interface of this network namespace has the address.
    fn has_address(&self, address: IpAddr) -> bool {
        self.interfaces.iter().flatten().any(|interface| interface.addresses.contains(&address))
    }
}

/// Permission that the server needs, and the answer of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// User that was asked about, such as `system:serviceaccount:kube-system:coredns`.
    pub user: String,
    /// Verb, such as `list`.
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource, such as `services`.
    pub resource: String,
    /// Namespace; empty for all.
    pub namespace: String,
    /// True if the API server allows it.
    pub allowed: bool,
}

/// Resolver settings that a kubelet gives to Pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubelet {
    /// Source of the settings, such as `ConfigMap kube-system/kubelet-config`.
    pub source: String,
    /// Name servers.
    pub cluster_dns: Vec<IpAddr>,
    /// Cluster domain, without the final dot; empty if not known.
    pub cluster_domain: String,
}

/// Answers of an address of the DNS Service to queries from new ports, by the name of the server (NSID, RFC 5001).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceAnswers {
    /// Address that was asked.
    pub address: Option<SocketAddr>,
    /// Number of answers of each server.
    pub named: BTreeMap<String, u64>,
    /// Number of answers without a name.
    pub unnamed: u64,
    /// Number of queries without an answer.
    pub lost: u64,
}

/// Replica of the server that was asked for its metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Name of the Pod, or its address.
    pub name: String,
    /// Hash of its Corefile (`coredns_reload_version_info`), or why it is not known.
    pub hash: Known<String>,
}

/// Random name below a search domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchProbe {
    /// Search domain.
    pub domain: String,
    /// True if the name has addresses; `None` without an answer.
    pub answered: Option<bool>,
}

/// Connection tracking of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conntrack {
    /// Number of entries, and their maximum; `None` if the kernel does not show them here.
    pub entries: Option<(u64, u64)>,
    /// Packets since boot that were dropped because two of them created the same entry.
    pub insert_failed: Option<u64>,
    /// Entries of queries over UDP; `None` if the kernel does not list them here.
    pub flows: Option<Vec<Flow>>,
}

/// Entry of connection tracking for queries over UDP from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Address of the client.
    pub client: IpAddr,
    /// Address that it sends to.
    pub target: IpAddr,
    /// Address that the packets go to: another one than `target` if it is the address of a Service.
    pub replica: IpAddr,
}

/// Certificate in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// Path of the file.
    pub file: String,
    /// Time until it expires in seconds; negative if it has expired. `Err` if the file cannot be read.
    pub expires_in: Known<f64>,
}

/// Network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Addresses.
    pub addresses: Vec<IpAddr>,
}
