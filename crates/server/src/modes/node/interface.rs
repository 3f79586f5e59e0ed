//! Network interface with the local addresses of the cache.
//!
//! If the cache crashes, its addresses must disappear, or the node would keep sending its queries to an address where
//! no server listens. The interface is therefore a TUN device, which the kernel removes with the last process that
//! holds it open. If the kernel does not allow that, the interface is a dummy whose addresses expire within seconds
//! unless they are renewed.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use compat::node_cache::{InterfaceKind, Settings};
use linux::net::link;

use super::netlink_socket::NetlinkSocket;

/// Lifetime of an address in seconds: five times the renewal interval.
const LEASE_SECONDS: u32 = 5;
/// Link kind to create if a TUN device is not available.
const DUMMY: &str = "dummy";

/// Network interface with the local addresses.
pub(super) struct Interface {
    name: String,
    kind: InterfaceKind,
    addresses: Vec<IpAddr>,
    /// True if the interface must outlive this process.
    stays: bool,
    socket: NetlinkSocket,
    /// Descriptor of the TUN device. The kernel removes the interface when the last one is closed.
    tun: Option<OwnedFd>,
}

/// Error with the interface, by the error types of node-cache's metric. The reconciler tries again.
#[derive(Debug, thiserror::Error)]
pub(super) enum InterfaceError {
    /// The interface or its addresses could not be created.
    #[error("{}", host::errors::describe(.0))]
    Add(#[source] io::Error),
    /// The interface could not be read.
    #[error("{}", host::errors::describe(.0))]
    Check(#[source] io::Error),
}

impl InterfaceError {
    /// Returns the error type in node-cache's metric.
    pub(super) const fn label(&self) -> &'static str {
        match self {
            InterfaceError::Add(_) => "interface_add",
            InterfaceError::Check(_) => "interface_check",
        }
    }
}

impl Interface {
    /// Returns the interface of the settings, if they have one. Does not create it yet.
    pub(super) fn new(settings: &Settings) -> io::Result<Option<Interface>> {
        let Some(name) = settings.interface.clone() else { return Ok(None) };
        let kind = match &settings.interface_kind {
            // A TUN device cannot outlive the process.
            InterfaceKind::Auto if settings.skip_teardown => InterfaceKind::Leased(DUMMY.to_owned()),
            kind => kind.clone(),
        };
        Ok(Some(Interface {
            name,
            kind,
            addresses: settings.local.clone(),
            stays: settings.skip_teardown,
            socket: NetlinkSocket::open(link::PROTOCOL)?,
            tun: None,
        }))
    }

    /// Creates the interface if it is missing, brings it up and adds or renews its addresses. Returns true if it was
    /// missing.
    pub(super) fn ensure(&mut self) -> Result<bool, InterfaceError> {
        let known = self.index().map_err(InterfaceError::Check)?;
        let is_new = known.is_none();
        if is_new {
            self.tun = None;
            self.create().map_err(InterfaceError::Add)?;
        } else if self.tun.is_none() && !matches!(self.kind, InterfaceKind::Leased(_)) {
            // Another instance may have created it. If it is no TUN device, its addresses get a lifetime.
            self.tun = net::hold_interface(&self.name).ok();
        }
        let index = known.map_or_else(|| self.index(), |index| Ok(Some(index))).map_err(InterfaceError::Check)?;
        let index = index.ok_or_else(|| InterfaceError::Add(io::ErrorKind::NotFound.into()))?;
        if is_new {
            // A kernel without IPv6 rejects this, but does not need it either.
            let _ = self.socket.execute(&link::disable_ipv6_link_local(index));
        }
        self.socket.execute(&link::set_up(index)).map_err(InterfaceError::Add)?;
        let seconds = (self.tun.is_none() && !self.stays).then_some(LEASE_SECONDS);
        for ip in &self.addresses {
            self.socket.execute(&link::add_address(index, *ip, seconds)).map_err(InterfaceError::Add)?;
        }
        Ok(is_new)
    }

    /// Returns a description for the log.
    pub(super) fn describe(&self) -> String {
        let how = if self.tun.is_some() { "removed when this process ends" } else { "addresses expire unless renewed" };
        let how = if self.stays { "permanent" } else { how };
        format!("Created interface {} ({how})", self.name)
    }

    /// Releases the interface. Does not remove it if another instance serves on its addresses.
    pub(super) fn release(mut self, others_serve: bool) -> io::Result<()> {
        let was_tun = self.tun.take().is_some();
        if was_tun || others_serve || self.stays || self.index()?.is_none() {
            return Ok(());
        }
        self.socket.execute(&link::delete(&self.name))
    }

    fn create(&mut self) -> io::Result<()> {
        let kind = match &self.kind {
            InterfaceKind::Leased(kind) => kind.as_str(),
            InterfaceKind::Auto | InterfaceKind::Tun => match net::hold_interface(&self.name) {
                Ok(tun) => {
                    self.tun = Some(tun);
                    return Ok(());
                }
                Err(error) if self.kind == InterfaceKind::Tun => return Err(error),
                Err(_) => DUMMY,
            },
        };
        self.socket.execute(&link::create(&self.name, kind))
    }

    fn index(&self) -> io::Result<Option<u32>> {
        match self.socket.query(&link::get(&self.name), link::index) {
            Ok(index) => Ok(Some(index)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
