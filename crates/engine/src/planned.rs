//! What planning a Corefile comes to: server blocks with the meaning of their directives, and the addresses to listen on.

use core::net::IpAddr;

use corefile::Span;
use wire::Name;

use crate::keys::{Key, Scheme};
use crate::options::Meant;
use crate::setup::{BlockInfo, BlockSettings};

/// What a Corefile means.
pub struct Plan {
    pub(crate) blocks: Vec<PlannedBlock>,
    pub(crate) listeners: Vec<PlannedListener>,
}

impl Plan {
    /// The addresses to listen on.
    #[must_use]
    pub fn listeners(&self) -> &[PlannedListener] {
        &self.listeners
    }
}

/// A server block, and what its directives mean.
pub(crate) struct PlannedBlock {
    /// Its keys; those of a CIDR prefix one by one.
    pub(crate) keys: Vec<Key>,
    pub(crate) info: BlockInfo,
    /// What each directive means, in the order of the chain.
    pub(crate) directives: Vec<(&'static str, Span, Box<dyn Meant>)>,
}

impl PlannedBlock {
    /// What its directives say about it as a whole.
    pub(crate) fn settings(&self) -> BlockSettings {
        let mut settings = BlockSettings::default();
        for (_, _, meant) in &self.directives {
            meant.settings(&mut settings);
        }
        settings
    }
}

/// An address to listen on, and what is served there.
#[derive(Clone, Debug)]
pub struct PlannedListener {
    /// The transport.
    pub scheme: Scheme,
    /// The address; `None` for all of this machine.
    pub ip: Option<IpAddr>,
    /// The port.
    pub port: u16,
    /// The zones served, with the index of their server block.
    pub zones: Vec<(Name, usize)>,
}

impl PlannedListener {
    /// As metrics and logs write it: `dns://:53`, `dns://[::1]:53`.
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
