//! Server blocks: what a directive may know of its own, and the settings it may make for it.

use core::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use corefile::Span;
use wire::{Name, NameRef};

use engine::tls::ClientCertificates;
use engine::{EncryptionLimits, ListenerId, Listening, SiteId, Zones};

/// Server block that contains a directive.
#[derive(Clone, Debug, Default)]
pub struct BlockInfo {
    /// Zones of its keys, in order.
    pub zones: Vec<Name>,
    /// Sites: one for each combination of listener and zone.
    pub sites: Vec<SiteInfo>,
    /// All zones that clients of its addresses can reach: those of every block on the same addresses, and those that
    /// its own directives name.
    pub reachable: ReachableZones,
    /// Names of its directives, in the order of the chain. Metrics identify a step by its index here.
    pub directives: Vec<&'static str>,
    /// Names of those that handle queries, which are the plugins in the sense of CoreDNS.
    pub handlers: Vec<&'static str>,
    /// True if one of its directives handles queries of classes other than IN.
    pub any_class: bool,
    /// True if one of its directives applies UPDATE messages.
    pub takes_updates: bool,
    /// True if one of its directives configures TLS.
    pub encrypts: bool,
    /// Base directory of relative file names.
    pub root: PathBuf,
    /// Name of its view; empty without one. A view serves only the queries that match its filter.
    pub view: String,
    /// Settings of its listeners.
    pub listening: Listening,
    /// Encryption of its listeners; `None` if no directive configures it, or its lines have errors.
    pub encryption: Option<EncryptionPolicy>,
}

/// Zones that clients of a server block can reach. Blocks on the same address share the zones of that address, so that
/// many blocks do not each hold a copy of them.
#[derive(Clone, Debug, Default)]
pub struct ReachableZones(Vec<Arc<Zones>>);

impl ReachableZones {
    /// Joins sets of zones.
    #[must_use]
    pub fn new(parts: Vec<Arc<Zones>>) -> ReachableZones {
        ReachableZones(parts)
    }

    /// Returns the length in bytes of the longest zone that contains `name` (in lower case).
    #[must_use]
    pub fn longest(&self, name: NameRef<'_>) -> Option<usize> {
        self.0.iter().filter_map(|zones| Some(zones.names()[zones.find(name)?].as_bytes().len())).max()
    }

    /// Returns all zones; one that several sets have comes several times.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().flat_map(|zones| zones.names())
    }
}

/// Settings that directives make for their server block as a whole.
#[derive(Clone, Debug, Default)]
pub struct BlockSettings {
    /// Addresses and interfaces to listen on. Empty for all addresses of the machine.
    pub bind: Vec<BindTarget>,
    /// Addresses and interfaces to exclude.
    pub bind_except: Vec<BindTarget>,
    /// Base directory of relative file names.
    pub root: PathBuf,
    /// Name of the view; empty without one. Views let several blocks serve the same zones.
    pub view: String,
    /// Settings of the listeners.
    pub listening: Listening,
    /// Encryption of the listeners, if a directive configures it.
    pub encryption: Option<EncryptionPolicy>,
}

/// Encryption of listeners as the Corefile describes it, without the content of files. Server blocks that share a
/// listener must agree on it, because a handshake does not tell which block will answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionPolicy {
    /// Policy for client certificates.
    pub clients: ClientCertificates,
    /// True if a file has the certificate authorities for clients; false for those of the system.
    pub has_authorities: bool,
    /// Limits of handshakes.
    pub limits: EncryptionLimits,
    /// True if responses are padded.
    pub pads_responses: bool,
}

impl EncryptionPolicy {
    /// Returns the difference to the policy of another block, in the words of CoreDNS where it has them.
    pub(crate) fn difference(&self, other: &EncryptionPolicy) -> Option<&'static str> {
        let differences = [
            (self.clients != other.clients, "client authentication policies differ"),
            (self.has_authorities != other.has_authorities, "client CA pools differ"),
            (self.limits != other.limits, "values of `connection_rate` differ"),
            (self.pads_responses != other.pads_responses, "`pad_responses` is configured for only one server block"),
        ];
        differences.iter().find(|(differs, _)| *differs).map(|(_, reason)| *reason)
    }
}

/// Address or network interface, as written in the Corefile.
#[derive(Clone, Debug)]
pub struct BindTarget {
    /// Text.
    pub text: String,
    /// Position.
    pub span: Span,
}

/// One zone of a server block on one listener.
#[derive(Clone, Debug)]
pub struct SiteInfo {
    /// Id, as in [`Query::site`](engine::Query::site).
    pub id: SiteId,
    /// Listener.
    pub listener: ListenerId,
    /// Zone.
    pub origin: Name,
    /// Value of the metric label `server`: `dns://:53`.
    pub server: String,
    /// Value of the metric label `zone`.
    pub zone: String,
    /// Value of the metric label `view`; empty without one.
    pub view: String,
    /// Address of the listener; `None` for all addresses of the machine.
    pub ip: Option<IpAddr>,
    /// Port of the listener.
    pub port: u16,
}
