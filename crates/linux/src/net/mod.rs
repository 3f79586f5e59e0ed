//! Network interfaces and packet filter rules of Linux, as bytes and arguments: netlink messages ([`netlink`]) for
//! interfaces and their addresses ([`link`]) and for nftables tables ([`nftables`]), and command lines of [`iptables`].
//!
//! [`conntrack_bypass`] lists the rules of a DNS cache on a node. Constants have the names of the kernel's headers.
//! This crate opens no socket and runs no program: other crates send the messages.

pub mod iptables;
pub mod link;
pub mod netlink;
pub mod nftables;
mod rules;
mod uapi;

pub use rules::{Hook, Protocol, Rule, Side, Verdict, conntrack_bypass};
