//! NodeLocal DNSCache without I/O: node-cache's flags ([`Settings`]), the Corefile from its template and the ConfigMap
//! of kube-dns ([`corefile()`]), the packets that bypass connection tracking ([`rules()`]), and the messages that
//! configure the interface, its addresses and the rules in the kernel ([`link`], [`nftables`], [`iptables`]).
//!
//! Other crates send these messages, watch files and serve. This crate opens nothing and reads no clock.

mod flags;
pub mod iptables;
pub mod link;
pub mod netlink;
pub mod nftables;
mod rules;
mod settings;
mod template;

pub use flags::FLAGS;
pub use rules::{Hook, Protocol, Rule, Side, Verdict, rules};
pub use settings::{Backend, InterfaceKind, Settings, service_variable};
pub use template::{Found, corefile};
