//! Results of packets that were sent from here.

use core::net::{IpAddr, SocketAddr};

use crate::{Encrypted, Known};

/// Result of one query.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempt {
    /// Response after this time in seconds.
    Answered(f64),
    /// No response in time.
    Silent,
    /// Error of the operating system, such as `connection refused`.
    Failed(String),
    /// Not tried.
    NotTried,
}

impl Attempt {
    /// Returns true for a response.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        matches!(self, Attempt::Answered(_))
    }

    /// Returns true if the other side has refused it: the packet arrived, and no process listens.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Attempt::Failed(error) if error.contains("connection refused"))
    }

    /// Returns true if it was tried without a response.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        matches!(self, Attempt::Silent | Attempt::Failed(_))
    }
}

impl core::fmt::Display for Attempt {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Attempt::Answered(seconds) => write!(out, "answered after {}", control::text::duration(*seconds)),
            Attempt::Silent => out.write_str("no answer in time"),
            Attempt::Failed(error) => out.write_str(error),
            Attempt::NotTried => out.write_str("not tried"),
        }
    }
}

/// Probe of a DNS server.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Address.
    pub address: SocketAddr,
    /// Query over UDP.
    pub udp: Attempt,
    /// Query over TCP.
    pub tcp: Attempt,
    /// Query of 1,232 bytes over UDP that may not be fragmented. Not tried if one of 900 bytes has no answer either,
    /// because some servers ignore long queries.
    pub large: Attempt,
}

/// Probes of the servers of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probes {
    /// Addresses of the DNS Service.
    pub service: Vec<Probe>,
    /// Ready replicas.
    pub replicas: Vec<Probe>,
    /// Address of the node cache on this node, if it has one.
    pub node_cache: Vec<Probe>,
}

/// Probe of an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamProbe {
    /// Address.
    pub address: SocketAddr,
    /// Zone that is forwarded to it.
    pub zone: String,
    /// Queries over UDP.
    pub attempts: Vec<Attempt>,
    /// Number of responses with SERVFAIL.
    pub failures: usize,
    /// Query over TCP.
    pub tcp: Attempt,
    /// Query of 1,232 bytes over UDP that may not be fragmented.
    pub large: Attempt,
    /// Longest response that it gave over TCP and that EDNS allows over UDP too, above the limit of plain DNS; `None`
    /// if it gave none.
    pub large_answer: Option<LargeAnswer>,
    /// True if responses to queries with EDNS have EDNS; `None` without a response.
    pub edns: Option<bool>,
    /// True if a response has the name as it was written in the query; `None` without a response.
    pub keeps_case: Option<bool>,
    /// True if a query to it came back to the server that runs here.
    pub came_back: Known<bool>,
}

/// Response of 513 to 1,232 bytes that a server has.
#[derive(Clone, Debug, PartialEq)]
pub struct LargeAnswer {
    /// Length in bytes.
    pub bytes: usize,
    /// The same query over UDP.
    pub udp: Attempt,
}

/// Connection to an upstream over TLS, HTTPS or QUIC, which gets no query from here.
#[derive(Clone, Debug, PartialEq)]
pub struct EncryptedProbe {
    /// Upstream.
    pub upstream: Encrypted,
    /// TCP connection; not tried for QUIC, and without an address.
    pub connect: Attempt,
}

impl UpstreamProbe {
    /// Returns the number of responses over UDP.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.is_answered()).count()
    }

    /// Returns the median time to a response in seconds.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        let seconds = |attempt: &Attempt| if let Attempt::Answered(seconds) = attempt { Some(*seconds) } else { None };
        let mut times: Vec<f64> = self.attempts.iter().filter_map(seconds).collect();
        times.sort_unstable_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    }

    /// Returns true for an address that no other machine has.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let address: IpAddr = self.address.ip();
        address.is_loopback()
    }
}
