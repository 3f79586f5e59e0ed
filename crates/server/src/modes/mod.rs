//! Modes: the server as a drop-in replacement for another program, with the flags and the configuration of that
//! program.
//!
//! A mode turns them into a Corefile (`generated_corefile`), adds what the program did beyond DNS, and serves like any
//! other Corefile. Modes do not use each other.
//!
//! [`relay`] serves no DNS: it passes the cluster on to many servers.

pub mod kube_dns;
pub mod node;
pub mod relay;
