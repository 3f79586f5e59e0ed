//! The rules that keep DNS on the node out of connection tracking, set by nftables or by iptables.

use std::io;
use std::process::{Command, Stdio};

use aws_lc_rs::rand;
use node::iptables::{Action, command};
use node::nftables::{self, Table};
use node::{Backend, Rule, Settings, rules};

use super::kernel::Kernel;

/// The table where it cannot have an owner.
const TABLE: &str = "portolan_node";
/// How often one rule is deleted: old versions of iptables let it be there more than once.
const COPIES_MAX: usize = 64;
/// iptables ends with this when another program holds its lock.
const LOCKED: i32 = 4;

/// The rules.
pub(super) struct Packets {
    rules: Vec<Rule>,
    backend: Backend,
    stays: bool,
    table: Option<(Kernel, Table)>,
}

/// What went wrong, by the names of node-cache's metric, and one of our own.
pub(super) enum Trouble {
    /// nftables refuses.
    Nftables(io::Error),
    /// iptables refuses.
    Iptables(String),
    /// Another program holds the lock of iptables.
    IptablesLock,
}

impl Packets {
    /// The rules for these settings; they are not set yet.
    pub(super) fn new(settings: &Settings) -> Packets {
        Packets { rules: rules(settings), backend: settings.backend, stays: settings.stays, table: None }
    }

    /// Sees to it that they are set; whether something was missing.
    pub(super) fn ensure(&mut self) -> Result<bool, Trouble> {
        match self.backend {
            Backend::None => Ok(false),
            Backend::Nftables => self.ensure_table().map_err(Trouble::Nftables),
            Backend::Iptables => self.ensure_iptables(),
            Backend::Auto => self.choose(),
        }
    }

    /// By what they are set, for the log.
    pub(super) fn describe(&self) -> String {
        match &self.table {
            Some((_, table)) if table.is_owned => {
                format!("Rules in table inet {}, which ends with this process", table.name)
            }
            Some((_, table)) => format!("Rules in table inet {}", table.name),
            None => "Rules set by iptables".to_owned(),
        }
    }

    /// Takes them away; if others serve on the same addresses, those that are not this process's alone are left to them.
    pub(super) fn take_away(&mut self, others_serve: bool) -> Result<(), Trouble> {
        if self.stays {
            return Ok(());
        }
        match self.table.take() {
            Some((kernel, table)) if table.is_owned || !others_serve => {
                kernel.order(&nftables::remove(&table)).map_err(Trouble::Nftables)
            }
            None if self.backend == Backend::Iptables && !others_serve => self.delete_iptables(),
            _ => Ok(()),
        }
    }

    /// nftables if the kernel has it; or else iptables, and that from now on.
    fn choose(&mut self) -> Result<bool, Trouble> {
        match self.ensure_table() {
            Ok(is_new) => {
                self.backend = Backend::Nftables;
                Ok(is_new)
            }
            Err(error) if has_iptables() => {
                tracing::info!(target: super::LOG, "No nftables here ({error}): iptables is used");
                self.backend = Backend::Iptables;
                self.ensure_iptables()
            }
            Err(error) => Err(Trouble::Nftables(error)),
        }
    }

    fn ensure_table(&mut self) -> io::Result<bool> {
        if let Some((kernel, table)) = &self.table {
            let is_there = kernel.order(&nftables::look(table)).is_ok();
            if is_there && table.is_owned {
                // Nobody else can have changed it.
                return Ok(false);
            }
            kernel.order(&nftables::make(table, &self.rules))?;
            return Ok(!is_there);
        }
        let kernel = Kernel::open(nftables::PROTOCOL)?;
        let owned = Table { name: unique_name(), is_owned: true };
        let shared = Table { name: TABLE.to_owned(), is_owned: false };
        let table = if !self.stays && kernel.order(&nftables::make(&owned, &self.rules)).is_ok() {
            owned
        } else {
            kernel.order(&nftables::make(&shared, &self.rules))?;
            shared
        };
        self.table = Some((kernel, table));
        Ok(true)
    }

    fn ensure_iptables(&self) -> Result<bool, Trouble> {
        let mut is_new = false;
        for rule in &self.rules {
            if !iptables(Action::Check, rule)? {
                is_new = true;
                if !iptables(Action::Insert, rule)? {
                    let (program, words) = command(Action::Insert, rule);
                    return Err(Trouble::Iptables(format!("refused: {program} {}", words.join(" "))));
                }
            }
        }
        Ok(is_new)
    }

    fn delete_iptables(&self) -> Result<(), Trouble> {
        for rule in &self.rules {
            for _ in 0..COPIES_MAX {
                if !iptables(Action::Delete, rule)? {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// A name that no other instance has: a table with an owner is that one's alone.
fn unique_name() -> String {
    let mut octets = [0; 4];
    // Should chance fail, the name is taken at worst, and a table without an owner is made.
    let _ = rand::fill(&mut octets);
    format!("{TABLE}_{:08x}", u32::from_ne_bytes(octets))
}

fn has_iptables() -> bool {
    let mut version = Command::new("iptables");
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// Runs iptables; whether it did what it should.
fn iptables(action: Action, rule: &Rule) -> Result<bool, Trouble> {
    let (program, words) = command(action, rule);
    let status = Command::new(program).args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.map_err(|error| Trouble::Iptables(format!("{program}: {error}")))?;
    if status.code() == Some(LOCKED) {
        return Err(Trouble::IptablesLock);
    }
    Ok(status.success())
}
