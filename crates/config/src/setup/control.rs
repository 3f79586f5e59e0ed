//! Addresses of the control API.

use core::fmt;
use core::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use engine::tls::TlsServer;

/// Requests of the directive *control*.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlRequests {
    /// True if the default socket is switched off.
    pub no_default: bool,
    /// Addresses in addition to the default socket, or in its place.
    pub addresses: Vec<ControlAddress>,
    /// How names that clients ask for are shown.
    pub names: NamePrivacy,
}

/// How names that clients ask for are shown to people who watch queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamePrivacy {
    /// Shows whole names.
    #[default]
    Shown,
    /// Shows a hash in place of the labels below the zone.
    Hashed,
    /// Leaves out the labels below the zone.
    Suffix,
}

impl ControlRequests {
    /// Returns the addresses to listen on. The default socket is one of them unless it is switched off or another Unix
    /// socket is named.
    #[must_use]
    pub fn addresses(&self) -> Vec<ControlAddress> {
        let has_default = !self.no_default && self.addresses.iter().all(|one| matches!(one, ControlAddress::Tcp(_)));
        let default = has_default.then_some(ControlAddress::Default);
        default.into_iter().chain(self.addresses.iter().cloned()).collect()
    }
}

/// Address of the control API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAddress {
    /// Default Unix socket, which depends on the machine.
    Default,
    /// Unix socket with an abstract name, here without the leading `@`.
    Abstract(String),
    /// Unix socket with a path.
    Path(PathBuf),
    /// Read-only TCP listener.
    Tcp(ControlListener),
}

/// Read-only TCP listener. Two with the same address are equal: a new one replaces the certificates of the old one.
#[derive(Clone)]
pub struct ControlListener {
    /// Address.
    pub address: SocketAddr,
    /// TLS, which requires client certificates; `None` on loopback addresses only.
    pub tls: Option<Arc<dyn TlsServer>>,
}

impl fmt::Debug for ControlListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl PartialEq for ControlListener {
    fn eq(&self, other: &ControlListener) -> bool {
        self.address == other.address
    }
}

impl Eq for ControlListener {}

impl fmt::Display for ControlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlAddress::Default => f.write_str("the default socket"),
            ControlAddress::Abstract(name) => write!(f, "@{name}"),
            ControlAddress::Path(path) => path.display().fmt(f),
            ControlAddress::Tcp(listener) => listener.address.fmt(f),
        }
    }
}
