//! What the worlds around the server say, in scenarios: a statement each.

mod cluster;
mod collector;
mod etcd;
mod posted;

pub(crate) use cluster::Cluster;
pub(crate) use collector::Collectors;
pub(crate) use etcd::Etcd;
pub(crate) use posted::Posted;
