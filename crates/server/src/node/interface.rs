//! The interface with the local addresses.
//!
//! A cache that dies must take its addresses with it, or the node would go on sending its questions to nobody. So the
//! interface is one that the kernel removes with the last process that holds it; where there can be none, it is a dummy
//! whose addresses expire within seconds unless they are renewed.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use node::{InterfaceKind, Settings, link};

use super::kernel::Kernel;

/// Seconds for which an address is leased: five times the interval in which it is renewed.
const LEASE_SECONDS: u32 = 5;
/// What is made where nothing can be held.
const DUMMY: &str = "dummy";

/// The interface.
pub(super) struct Interface {
    name: String,
    kind: InterfaceKind,
    addresses: Vec<IpAddr>,
    /// Whether it is to outlive this process.
    stays: bool,
    kernel: Kernel,
    /// What keeps it, if the kernel is to remove it with this process.
    held: Option<OwnedFd>,
}

/// What went wrong, by the names that node-cache's metric has for it.
pub(super) enum Trouble {
    /// It cannot be made.
    Add(io::Error),
    /// It cannot be looked at.
    Check(io::Error),
}

impl Interface {
    /// The interface of these settings, if they want one; it is not made yet.
    pub(super) fn new(settings: &Settings) -> io::Result<Option<Interface>> {
        let Some(name) = settings.interface.clone() else { return Ok(None) };
        let kind = match &settings.interface_kind {
            // One that ends with the process cannot stay.
            InterfaceKind::Auto if settings.stays => InterfaceKind::Leased(DUMMY.to_owned()),
            kind => kind.clone(),
        };
        Ok(Some(Interface {
            name,
            kind,
            addresses: settings.local.clone(),
            stays: settings.stays,
            kernel: Kernel::open(link::PROTOCOL)?,
            held: None,
        }))
    }

    /// Sees to it that it is there, is up, and has its addresses; whether it had to be made.
    pub(super) fn ensure(&mut self) -> Result<bool, Trouble> {
        let known = self.index().map_err(Trouble::Check)?;
        let is_new = known.is_none();
        if is_new {
            self.held = None;
            self.make().map_err(Trouble::Add)?;
        } else if self.held.is_none() && !matches!(self.kind, InterfaceKind::Leased(_)) {
            // Another instance may hold it too. If it is of another kind, its addresses are leased.
            self.held = net::hold_interface(&self.name).ok();
        }
        let index = known.map_or_else(|| self.index(), |index| Ok(Some(index))).map_err(Trouble::Check)?;
        let index = index.ok_or_else(|| Trouble::Add(io::ErrorKind::NotFound.into()))?;
        if is_new {
            // A kernel without IPv6 refuses, and then need not be told.
            let _ = self.kernel.order(&link::silence(index));
        }
        self.kernel.order(&link::up(index)).map_err(Trouble::Add)?;
        let seconds = (self.held.is_none() && !self.stays).then_some(LEASE_SECONDS);
        for ip in &self.addresses {
            self.kernel.order(&link::address(index, *ip, seconds)).map_err(Trouble::Add)?;
        }
        Ok(is_new)
    }

    /// How it is kept, for the log.
    pub(super) fn describe(&self) -> String {
        let how = if self.held.is_some() { "held by this process" } else { "with addresses that expire" };
        let how = if self.stays { "that stays" } else { how };
        format!("Interface {} {how}", self.name)
    }

    /// Gives it up. If others serve on its addresses, it is left to them.
    pub(super) fn give_up(mut self, others_serve: bool) -> io::Result<()> {
        let was_held = self.held.take().is_some();
        if was_held || others_serve || self.stays || self.index()?.is_none() {
            return Ok(());
        }
        self.kernel.order(&link::remove(&self.name))
    }

    fn make(&mut self) -> io::Result<()> {
        let kind = match &self.kind {
            InterfaceKind::Leased(kind) => kind.as_str(),
            InterfaceKind::Auto | InterfaceKind::Tun => match net::hold_interface(&self.name) {
                Ok(held) => {
                    self.held = Some(held);
                    return Ok(());
                }
                Err(error) if self.kind == InterfaceKind::Tun => return Err(error),
                Err(_) => DUMMY,
            },
        };
        self.kernel.order(&link::make(&self.name, kind))
    }

    fn index(&self) -> io::Result<Option<u32>> {
        match self.kernel.find(&link::look(&self.name), link::index) {
            Ok(index) => Ok(Some(index)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
