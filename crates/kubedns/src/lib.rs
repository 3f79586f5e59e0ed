//! What the kube-dns pod is told, by the flags of its three containers, the arguments of dnsmasq and the ConfigMap
//! `kube-dns`, as a Corefile that does the same.
//!
//! [`Words`] are a command line, [`Settings`] what it says, [`Dynamic`] what the ConfigMap says, [`corefile()`] is the
//! text. Serving it, watching the ConfigMap and looking name servers up is done elsewhere; so are migrations, which want
//! the text alone. Nothing here reads files, asks the time or knows DNS messages.

mod config_map;
mod corefile;
mod dnsmasq;
mod flags;
mod name_server;
mod names;
mod probe;
mod settings;

pub use config_map::{Dynamic, Refused, Wrong};
pub use corefile::{Hosts, corefile, named_hosts, stub_blocks};
pub use dnsmasq::{Domain, Front, HostRecord, Record};
pub use flags::{Container, FLAGS, Flag, FlagError, Words};
pub use name_server::{DNS_PORT, NameServer};
pub use probe::Probe;
pub use settings::{Metrics, Program, Records, Settings, Side, Source};
