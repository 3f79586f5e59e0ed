//! Foreign configuration → Corefile: the flags and ConfigMaps of the programs that this server replaces.
//!
//! - [`kube_dns`]: the flags of the kube-dns pod, the arguments of dnsmasq, and the ConfigMap `kube-dns`.
//! - [`node_cache`]: the flags and the template of NodeLocal DNSCache.
//! - [`coredns`]: the way back, words and arguments that a release of CoreDNS does not know.
//! - [`migrate`]: an older Corefile or a kube-dns pod, converted once, with a note on each change.
//!
//! This crate is pure: other crates read files, watch ConfigMaps and serve the Corefile.

pub mod coredns;
pub mod kube_dns;
pub mod migrate;
pub mod node_cache;
