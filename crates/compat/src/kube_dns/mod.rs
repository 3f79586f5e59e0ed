//! Converts the configuration of a kube-dns pod to an equivalent Corefile: the flags of its three containers, the
//! arguments of dnsmasq, and the ConfigMap `kube-dns`.
//!
//! [`CommandLine`] is a parsed command line, [`Settings`] its meaning, [`ConfigMapSettings`] the content of the
//! ConfigMap, and [`corefile()`] writes the text. Other crates serve the Corefile, watch the ConfigMap and resolve the
//! names of name servers. Migrations use only the text.

mod config_map;
mod corefile;
mod dnsmasq;
mod flags;
mod name_server;
mod names;
mod probe;
mod settings;
mod warning;

pub use config_map::{ConfigMapError, ConfigMapSettings, ConfigMapValueError};
pub(crate) use corefile::stub_blocks;
pub use corefile::{HostNames, corefile, named_hosts};
pub use dnsmasq::{Dnsmasq, Domain, HostRecord, Record};
pub(crate) use flags::LOGGED;
pub use flags::{CommandLine, Container, FLAGS, Flag, FlagError};
pub use name_server::{DNS_PORT, NameServer};
pub use probe::{Probe, ProbeError};
pub use settings::{ConfigMapSource, KubeDns, Metrics, Program, Settings, Sidecar};
pub use warning::Warning;
