//! Gathers the facts for `portolan doctor`: from the running server, the Kubernetes API, packets and this machine.
//!
//! ```text
//!   round 1: control socket, lists of the API, files of this machine      all at once, 2 s
//!   round 2: Corefile, kubelets, rights, replicas, probes, certificates   all at once, 2 s
//! ```
//!
//! The second round needs the addresses and names of the first. A fact that cannot be gathered in its time is an
//! [`Unknown`](doctor::Unknown) with the reason, so that no check passes without having looked. Everything that is read
//! has a maximum size, and lists a maximum length.

mod api;
mod certificates;
mod corefile;
mod deadline;
mod gather;
mod host;
mod kubelets;
mod location;
mod names;
mod objects;
mod probes;
mod replicas;
mod resolv_conf;
mod returns;
mod rights;

pub(crate) use gather::{Gathered, Options, Server, gather};
pub(crate) use returns::AskWaiting;
