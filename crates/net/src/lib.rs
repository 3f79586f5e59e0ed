//! Sockets, and the worker threads that serve them.
//!
//! The server starts one worker thread per core, at most [`WORKERS_MAX`]. Each worker has its own runtime, buffers and
//! counters, and its own sockets on every address (`SO_REUSEPORT`). A worker reads a batch of datagrams, answers at
//! once what needs no upstream, and sends these answers with one system call. A query that must wait becomes a task on
//! the same thread.
//! This crate knows neither plugins nor the Corefile syntax.
#![allow(
    clippy::disallowed_methods,
    reason = "this room is the edge: it opens sockets, starts threads and asks the time"
)]

#[allow(unsafe_code, reason = "the socket option has no safe wrapper")]
mod admin_proof;
mod client;
mod connected;
mod connection_rates;
mod connections;
mod cpu_budget;
mod endpoint;
mod fair_queue;
mod grpc;
mod handover;
mod heartbeats;
mod http;
mod https;
mod io;
mod limits;
mod listen;
mod log;
mod over_quic;
mod proxy_policy;
mod responses;
mod shared;
mod streams;
mod tcp;
mod thread_runtime;
#[allow(unsafe_code, reason = "the system call that makes a TUN device has no safe wrapper")]
mod tun;
mod udp;
mod worker;

pub use admin_proof::{AdminChallenge, meet_challenge};
pub use connections::{Connection, ConnectionTable, TableLimits};
pub use cpu_budget::{CpuLimit, CurrentCpuLimit};
pub use handover::{SOCKETS_MAX, SocketKind, check_received, own_user, receive_sockets, send_sockets};
pub use heartbeats::Heartbeats;
pub use io::TokioIo;
pub use limits::{LIMIT_METRICS, Limits, StreamLimits, WorkerLimits, raise_descriptor_limit};
pub use listen::{Address, AddressKind, ListenError, Opened, complete, is_taken, open};
pub use log::{LOG_METRICS, LOG_QUEUE_MAX, LogQueue, Taken, log_queue};
pub use responses::RESPONSE_METRICS;
pub use shared::Live;
pub use thread_runtime::ThreadRuntime;
pub use tun::hold_interface;
pub use worker::{Probes, Taps, WORKERS_MAX, Workers, own_thread};
