//! Explanations: why a name has the answer that it has.

mod mermaid;
mod reason;
mod text;

use core::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use mermaid::Mermaid;
pub use reason::Code;

/// Answer to a query, and how it came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explained {
    /// Question as it was typed.
    pub question: Question,
    /// Client.
    pub from: Option<Client>,
    /// Listener that the queries arrive at.
    #[serde(default)]
    pub listener: Option<Listener>,
    /// Search path of the client; `null` without a client in a known namespace.
    pub search: Option<Search>,
    /// Names that the client asks for, in order, up to the one that is answered.
    pub steps: Vec<Step>,
    /// Address that `portolan explain --fresh` asked from, if it is not that of the client. Plugins that look at the
    /// client, such as *acl* and *view*, may answer the client differently.
    #[serde(default)]
    pub asked_from: Option<String>,
    /// Index of the step whose answer the client uses; `null` if none has records.
    pub answered: Option<usize>,
    /// Number of queries that the client sends for this, for A and AAAA together.
    pub queries: u64,
    /// Reason.
    pub why: Why,
    /// Advice; `null` if nothing is wrong.
    #[serde(rename = "do")]
    pub advice: Option<String>,
    /// Rules that look at the address of the client, which is not known. They may change the answer.
    #[serde(default)]
    pub unjudged: Vec<Rule>,
    /// Other addresses of the client whose queries have other results.
    #[serde(default)]
    pub differing: Vec<Differing>,
}

impl Explained {
    /// Returns true if everything that decides about the answer could be looked at.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unjudged.is_empty()
            && self.differing.is_empty()
            && !self.search.as_ref().is_some_and(Search::asks_elsewhere)
    }
}

/// Rule of the Corefile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rule {
    /// Plugin.
    pub plugin: String,
    /// Position of its directive.
    #[serde(rename = "where")]
    pub place: Place,
}

/// Results for another address of the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Differing {
    /// Address.
    pub address: String,
    /// Result of the first name that has another one.
    pub result: String,
    /// That name.
    pub name: String,
}

/// Question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Question {
    /// Name. A final dot means that the search path is not used.
    pub name: String,
    /// Record type.
    pub qtype: String,
}

/// Client of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Client {
    /// Namespace, if it is known.
    pub namespace: Option<String>,
    /// Pod, if it is known.
    pub pod: Option<String>,
    /// Address, if it is known. Without it, the answer is that for a client with the address `0.0.0.0`.
    pub address: Option<String>,
    /// Its other addresses.
    #[serde(default)]
    pub other_addresses: Vec<String>,
    /// Reason why the address, or the Pod with the address, is not known, if there is more to say than that the view of
    /// the cluster does not have it.
    #[serde(default)]
    pub unknown: Option<String>,
    /// True if all pods with addresses are known and none has this name.
    #[serde(default)]
    pub missing: bool,
}

/// Listener of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Listener {
    /// Name, such as `dns://:53`.
    pub name: String,
    /// Address and port that its sockets are bound to; `null` without a running server.
    pub address: Option<String>,
}

/// Search path of a pod: that of `dnsPolicy: ClusterFirst` on a kubelet whose `clusterDomain` is the first zone of
/// *kubernetes*, unless the Pod and its kubelet could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Search {
    /// Domains, in order.
    pub domains: Vec<String>,
    /// Number of dots from which a name is first asked for as it is.
    pub ndots: u64,
    /// `dnsPolicy` that takes effect, if the Pod could be read.
    #[serde(default)]
    pub policy: Option<DnsPolicy>,
    /// Nameservers of the Pod's `dnsConfig`.
    #[serde(default)]
    pub nameservers: Vec<String>,
    /// True if the cluster domain of the Pod's kubelet is not known, and assumed.
    #[serde(default)]
    pub assumed: bool,
    /// Reason why the search path or, if the Pod could be read, the cluster domain is assumed.
    #[serde(default)]
    pub unknown: Option<String>,
    /// True if `dnsPolicy: ClusterFirst` has the effect of `Default`, because the Pod is on the network of its node.
    #[serde(default)]
    pub host_network: bool,
    /// Addresses of the cluster DNS, as far as they are known.
    #[serde(default)]
    pub cluster_dns: Vec<String>,
}

/// Number of nameservers that a resolver uses (`MAXNS` of resolv.conf(5)); kubelet leaves the others out.
const NAMESERVERS_MAX: usize = 3;

impl Search {
    /// Returns true if the Pod does not ask the cluster DNS first, or it is not known if it does.
    #[must_use]
    pub fn asks_elsewhere(&self) -> bool {
        match self.policy {
            None | Some(DnsPolicy::ClusterFirst) => false,
            Some(DnsPolicy::None) => self.rank_of_cluster_dns() != Some(0),
            // The nameservers of the node come first.
            Some(DnsPolicy::Default) => true,
        }
    }

    /// Returns the position of the cluster DNS among the nameservers of the Pod's `dnsConfig`.
    fn rank_of_cluster_dns(&self) -> Option<usize> {
        let address = |text: &String| text.parse::<IpAddr>().ok();
        let known: Vec<IpAddr> = self.cluster_dns.iter().filter_map(address).collect();
        let is_known = |text: &String| address(text).is_some_and(|address| known.contains(&address));
        self.nameservers.iter().take(NAMESERVERS_MAX).position(is_known)
    }
}

/// `dnsPolicy` of a Pod that takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DnsPolicy {
    /// The Pod asks the cluster DNS.
    ClusterFirst,
    /// The Pod asks the nameservers of its node.
    Default,
    /// The Pod asks the nameservers of its `dnsConfig` only.
    None,
}

impl DnsPolicy {
    /// Returns the name in the Pod.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DnsPolicy::ClusterFirst => "ClusterFirst",
            DnsPolicy::Default => "Default",
            DnsPolicy::None => "None",
        }
    }
}

/// One query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Name.
    pub name: String,
    /// Response code; `null` if the query would wait for an upstream, or gets no response.
    pub rcode: Option<String>,
    /// True if the client gets no response.
    pub dropped: bool,
    /// True if the response does not fit into a datagram and the client has to ask again over TCP.
    pub truncated: bool,
    /// Code of the Extended DNS Error (RFC 8914).
    pub ede: Option<u16>,
    /// Records of the answer section, in presentation format.
    pub records: Vec<String>,
    /// Records of the authority section.
    pub authority: Vec<String>,
    /// Records of the additional section, without OPT.
    pub additional: Vec<String>,
    /// Server block: its keys and its position. `null` if none serves the name.
    pub block: Option<Block>,
    /// Plugin that decided.
    pub plugin: Option<String>,
    /// Position of its directive.
    #[serde(rename = "where")]
    pub place: Option<Place>,
    /// Data that the answer comes from.
    pub text: String,
    /// Object of the cluster.
    pub object: Option<Object>,
    /// Age of a cached answer.
    pub cache: Option<Cached>,
    /// Upstreams that the query would go to.
    pub upstreams: Vec<Upstream>,
    /// Endpoints that are not in the answer because they are not ready; `null` if they are not the reason.
    #[serde(default)]
    pub not_ready: Option<NotReady>,
    /// Answer of the server to `portolan explain --fresh`, if no cache keeps it.
    #[serde(default)]
    pub asked: Option<Asked>,
    /// Plugins that changed the question, asked another question first, passed a denial on or failed, in order.
    pub trail: Vec<Passage>,
    /// Reason for this step, if there is more to say than that the data exists.
    pub why: Option<Why>,
    /// Advice about the reason; `null` if there is nothing to do.
    #[serde(rename = "do")]
    pub advice: Option<String>,
}

/// Server block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Block {
    /// Keys, as written.
    pub keys: String,
    /// Position.
    #[serde(rename = "where")]
    pub place: Place,
}

/// Position in the Corefile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
}

/// Object of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Object {
    /// Kind.
    pub kind: String,
    /// Namespace; empty for an object without one.
    #[serde(rename = "ns")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Resource version of the last event with it, as `kubectl` shows it; `null` if it is not known.
    #[serde(rename = "rv", default)]
    pub version: Option<String>,
}

/// Answer of the server to a query that `portolan explain --fresh` sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asked {
    /// Response code; `null` without a response.
    pub rcode: Option<String>,
    /// Records of the answer section, in presentation format.
    pub records: Vec<String>,
    /// Code of the Extended DNS Error (RFC 8914).
    pub ede: Option<u16>,
    /// Its text, or else its meaning.
    pub ede_text: Option<String>,
    /// Time until the response in seconds.
    pub seconds: f64,
    /// Reason why there is no response.
    pub error: Option<String>,
}

impl Asked {
    /// Returns true without an answer, or if the answer is a failure.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        !matches!(self.rcode.as_deref(), Some("NOERROR" | "NXDOMAIN"))
    }
}

/// Endpoints that are not ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotReady {
    /// Number of all of them.
    pub count: u64,
    /// The first ones.
    pub endpoints: Vec<NotReadyEndpoint>,
}

/// Endpoint that is not ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotReadyEndpoint {
    /// Name of its pod, or else its hostname; `null` if the EndpointSlice has neither.
    pub pod: Option<String>,
    /// Address.
    pub address: String,
}

/// Age of a cached answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cached {
    /// True for a denial or a failure.
    pub denial: bool,
    /// Time since it was stored in seconds.
    pub age_seconds: f64,
    /// TTL when it was stored in seconds.
    pub ttl_seconds: f64,
    /// Time after its expiry for which it is still served, in seconds.
    pub stale_seconds: f64,
}

/// Upstream and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Upstream {
    /// Address.
    pub address: String,
    /// Transport: `udp`, `tcp`, `tls`, `https` or `quic`.
    pub transport: String,
    /// State: `up`, `suspected` or `down`.
    pub state: String,
    /// Time since it went down in seconds.
    pub down_seconds: Option<f64>,
    /// Error of its last health check.
    pub error: Option<String>,
    /// Time since the last exchange that failed in seconds.
    #[serde(default)]
    pub failed_seconds: Option<f64>,
    /// Error of that exchange.
    #[serde(default)]
    pub failure: Option<String>,
}

/// Effect of a plugin that did not answer itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Passage {
    /// Plugin.
    pub plugin: String,
    /// Position of its directive.
    #[serde(rename = "where")]
    pub place: Place,
    /// Effect: a change of the question, another question asked first, a denial passed on, or a failure.
    pub did: String,
}

/// Reason with its stable code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Why {
    /// Code. `docs/explain.md` lists all codes.
    pub code: String,
    /// Text.
    pub text: String,
}
