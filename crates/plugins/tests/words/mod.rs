//! Scenario statements about the systems around the server, one per module.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

mod cluster;
mod collector;
mod database;
mod etcd;
mod posted;
mod views;

pub(crate) use cluster::Cluster;
pub(crate) use collector::Collectors;
pub(crate) use database::Database;
pub(crate) use etcd::Etcd;
pub(crate) use posted::Posted;
pub(crate) use views::Views;
