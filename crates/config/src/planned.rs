//! Result of planning a Corefile: server blocks with parsed directives, and the addresses to listen on.

use core::net::IpAddr;

use corefile::Span;
use wire::Name;

use crate::directive_print::DirectivePrint;
use crate::keys::Key;
use crate::options::ParsedDirective;
use crate::setup::{BlockInfo, BlockSettings};
use engine::Scheme;

/// Meaning of a Corefile: checked, but not running.
pub struct Plan {
    pub(crate) blocks: Vec<PlannedBlock>,
    pub(crate) listeners: Vec<PlannedListener>,
    /// All words of the server blocks.
    pub(crate) words: Vec<String>,
}

impl Plan {
    /// Addresses to listen on.
    #[must_use]
    pub fn listeners(&self) -> &[PlannedListener] {
        &self.listeners
    }
}

/// Server block with parsed directives.
pub(crate) struct PlannedBlock {
    /// Keys. A CIDR prefix has been expanded to its zones.
    pub(crate) keys: Vec<Key>,
    pub(crate) info: BlockInfo,
    /// Name, position and meaning of each directive, in the order of the chain.
    pub(crate) directives: Vec<(&'static str, Span, Box<dyn ParsedDirective>)>,
    /// Written form of each directive, in the same order.
    pub(crate) prints: Vec<DirectivePrint>,
}

impl PlannedBlock {
    /// Settings of the block as a whole, merged from its directives.
    pub(crate) fn settings(&self) -> BlockSettings {
        let mut settings = BlockSettings::default();
        for (_, _, parsed) in &self.directives {
            parsed.settings(&mut settings);
        }
        settings
    }
}

/// Address to listen on, and the zones served there.
#[derive(Clone, Debug)]
pub struct PlannedListener {
    /// Transport.
    pub scheme: Scheme,
    /// Address; `None` for all addresses of this machine.
    pub ip: Option<IpAddr>,
    /// Port.
    pub port: u16,
    /// Zones, each with the index of its server block.
    pub zones: Vec<(Name, usize)>,
}

impl PlannedListener {
    /// Value of the metric label `server`, also used in logs: `dns://:53`, `dns://[::1]:53`.
    #[must_use]
    pub fn label(&self) -> String {
        let host = match self.ip {
            None => String::new(),
            Some(IpAddr::V4(v4)) => v4.to_string(),
            Some(IpAddr::V6(v6)) => format!("[{v6}]"),
        };
        format!("{}://{host}:{}", self.scheme.name(), self.port)
    }
}
