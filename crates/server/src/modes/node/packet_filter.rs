//! Packet filter rules that exclude the cache's DNS traffic from connection tracking, set with nftables or iptables.

use std::io;
use std::process::{Command, Stdio};

use aws_lc_rs::rand;
use compat::node_cache::{Backend, Settings};
use linux::net::iptables::{Action, command};
use linux::net::nftables::{self, Table};
use linux::net::{Rule, Side, conntrack_bypass};

use super::netlink_socket::NetlinkSocket;

/// Name of the nftables table if it cannot have an owner, and name prefix if it can.
const TABLE: &str = "portolan_node";
/// Limit for deletions of one rule. Old versions of iptables allow duplicate rules.
const COPIES_MAX: usize = 64;
/// Exit code of iptables if another program holds its lock.
const LOCKED: i32 = 4;

/// Rules and the backend that sets them.
pub(super) struct PacketFilter {
    rules: Vec<Rule>,
    backend: Backend,
    stays: bool,
    table: Option<(NetlinkSocket, Table)>,
}

/// Error with the rules, by the error types of node-cache's metric and `nftables`. The reconciler
/// tries again.
#[derive(Debug, thiserror::Error)]
pub(super) enum PacketFilterError {
    /// The kernel rejected a netlink request.
    #[error("{}", host::errors::describe(.0))]
    Nftables(#[source] io::Error),
    /// iptables could not run or rejected a rule.
    #[error("{0}")]
    Iptables(String),
    /// Another program holds the lock of iptables.
    #[error("another program holds the lock of iptables")]
    IptablesLock,
}

impl PacketFilterError {
    /// Returns the error type in node-cache's metric.
    pub(super) const fn label(&self) -> &'static str {
        match self {
            PacketFilterError::Nftables(_) => "nftables",
            PacketFilterError::Iptables(_) => "iptables",
            PacketFilterError::IptablesLock => "iptables_lock",
        }
    }
}

impl PacketFilter {
    /// Returns the rules for the settings. Does not set them yet.
    pub(super) fn new(settings: &Settings) -> PacketFilter {
        let rules = conntrack_bypass(&settings.local, settings.port, settings.health_port);
        PacketFilter { rules, backend: settings.backend, stays: settings.skip_teardown, table: None }
    }

    /// Sets the rules that are missing. Returns true if there were any.
    pub(super) fn ensure(&mut self) -> Result<bool, PacketFilterError> {
        match self.backend {
            Backend::None => Ok(false),
            Backend::Nftables => self.ensure_table().map_err(PacketFilterError::Nftables),
            Backend::Iptables => self.ensure_iptables(),
            Backend::Auto => self.choose_backend(),
        }
    }

    /// Returns a description for the log.
    pub(super) fn describe(&self) -> String {
        match &self.table {
            Some((_, table)) if table.is_owned => {
                format!("Rules set in table inet {}, which the kernel removes when this process ends", table.name)
            }
            Some((_, table)) => format!("Rules set in table inet {}", table.name),
            None => "Rules set with iptables".to_owned(),
        }
    }

    /// Removes the rules for queries, which go to the cluster DNS then, and keeps those for answers. If an answer were
    /// tracked, the kernel would take later queries of its client for the other direction of that connection, and not
    /// send them to the cluster DNS.
    pub(super) fn stop_queries(&mut self) -> Result<(), PacketFilterError> {
        let (answers, queries): (Vec<Rule>, Vec<Rule>) =
            self.rules.iter().cloned().partition(|rule| rule.side == Side::Source);
        match self.table.take() {
            Some((socket, old)) if old.is_owned => {
                let new = Table { name: unique_name(), is_owned: true };
                let replaced = socket.execute(&nftables::create_table(&new, &answers));
                let replaced = replaced.and_then(|()| socket.execute(&nftables::delete_table(&old)));
                self.table = Some((socket, new));
                self.rules = answers;
                replaced.map_err(PacketFilterError::Nftables)
            }
            None if self.backend == Backend::Iptables && !self.stays => {
                self.rules = answers;
                delete_iptables(&queries)
            }
            table => {
                self.table = table;
                self.remove(false)
            }
        }
    }

    /// Removes the rules. If another instance serves, leaves those that both share.
    pub(super) fn remove(&mut self, others_serve: bool) -> Result<(), PacketFilterError> {
        if self.stays {
            return Ok(());
        }
        match self.table.take() {
            Some((socket, table)) if table.is_owned || !others_serve => {
                socket.execute(&nftables::delete_table(&table)).map_err(PacketFilterError::Nftables)
            }
            None if self.backend == Backend::Iptables && !others_serve => delete_iptables(&self.rules),
            _ => Ok(()),
        }
    }

    /// Sets the rules with nftables if the kernel supports it, else with iptables, and keeps that backend.
    fn choose_backend(&mut self) -> Result<bool, PacketFilterError> {
        match self.ensure_table() {
            Ok(is_new) => {
                self.backend = Backend::Nftables;
                Ok(is_new)
            }
            Err(error) if has_iptables() => {
                let reason = host::errors::describe(&error);
                tracing::info!(target: super::LOG, "nftables is not available ({reason}); using iptables");
                self.backend = Backend::Iptables;
                self.ensure_iptables()
            }
            Err(error) => Err(PacketFilterError::Nftables(error)),
        }
    }

    fn ensure_table(&mut self) -> io::Result<bool> {
        if let Some((socket, table)) = &self.table {
            let is_there = socket.execute(&nftables::get_table(table)).is_ok();
            if is_there && table.is_owned {
                // The kernel lets no other process change a table with an owner.
                return Ok(false);
            }
            socket.execute(&nftables::create_table(table, &self.rules))?;
            return Ok(!is_there);
        }
        let socket = NetlinkSocket::open(nftables::PROTOCOL)?;
        let owned = Table { name: unique_name(), is_owned: true };
        let shared = Table { name: TABLE.to_owned(), is_owned: false };
        let table = if !self.stays && socket.execute(&nftables::create_table(&owned, &self.rules)).is_ok() {
            owned
        } else {
            socket.execute(&nftables::create_table(&shared, &self.rules))?;
            shared
        };
        self.table = Some((socket, table));
        Ok(true)
    }

    fn ensure_iptables(&self) -> Result<bool, PacketFilterError> {
        let mut is_new = false;
        for rule in &self.rules {
            if !iptables(Action::Check, rule)? {
                is_new = true;
                if !iptables(Action::Insert, rule)? {
                    let (program, words) = command(Action::Insert, rule);
                    return Err(PacketFilterError::Iptables(format!("rule rejected: {program} {}", words.join(" "))));
                }
            }
        }
        Ok(is_new)
    }
}

/// Deletes rules of iptables, with their copies.
fn delete_iptables(rules: &[Rule]) -> Result<(), PacketFilterError> {
    for rule in rules {
        for _ in 0..COPIES_MAX {
            if !iptables(Action::Delete, rule)? {
                break;
            }
        }
    }
    Ok(())
}

/// Returns a random table name. Instances cannot share a table that has an owner.
fn unique_name() -> String {
    let mut bytes = [0; 4];
    // If the generator fails, the name may be taken. The caller then creates a table without an owner.
    let _ = rand::fill(&mut bytes);
    format!("{TABLE}_{:08x}", u32::from_ne_bytes(bytes))
}

fn has_iptables() -> bool {
    let mut version = Command::new("iptables");
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// Runs iptables. Returns true if it succeeded.
fn iptables(action: Action, rule: &Rule) -> Result<bool, PacketFilterError> {
    let (program, words) = command(action, rule);
    let status = Command::new(program).args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status
        .map_err(|error| PacketFilterError::Iptables(format!("{program}: {}", host::errors::describe(&error))))?;
    if status.code() == Some(LOCKED) {
        return Err(PacketFilterError::IptablesLock);
    }
    Ok(status.success())
}
