//! What the worlds around the server say, in scenarios: a statement each.

mod cluster;
mod etcd;

pub(crate) use cluster::Cluster;
pub(crate) use etcd::Etcd;
