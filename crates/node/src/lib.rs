//! NodeLocal DNSCache as values: what node-cache's flags say ([`Settings`]), the Corefile that its template and the ConfigMap
//! of kube-dns make ([`corefile()`]), which packets of the node are to be left alone ([`rules()`]), and the messages by which
//! the kernel is told of interface, addresses and rules ([`link`], [`nftables`], [`iptables`]).
//!
//! Sending these messages, watching files and serving is done elsewhere: nothing here opens anything or asks the time.

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
