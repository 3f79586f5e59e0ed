//! Reasons why replicas of a Service cannot be asked.

use std::fmt;
use std::time::Duration;

use control::text::harmless;

/// Service of the cluster DNS, unless the command line names another one.
pub(crate) const USUAL: &str = "kube-system/kube-dns";
/// Reason why a replica, or all of them, could not be asked. The user can do something about each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AllError {
    /// There is no `kubectl`.
    NoKubectl,
    /// `kubectl` failed, with this reason.
    Kubectl(String),
    /// The command in the Pod could not do its work, for this reason: it was refused an option, or found no server.
    InPod(String),
    /// The commands in the Pods of this number of replicas, which are all, could not do their work, for this reason.
    InAllPods(usize, String),
    /// `kubectl` took longer than this.
    Late(Duration),
    /// An output is longer than this number of bytes.
    TooLong(u64),
    /// The Service has no Pods.
    NoPods(String),
    /// The text is not `NAMESPACE/SERVICE`.
    NotAService(String),
    /// A socket is named beside this option, which asks all replicas.
    OneServer(&'static str),
    /// The command reads a file of this machine.
    OwnFile,
}

impl fmt::Display for AllError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllError::NoKubectl => out.write_str(
                "`--all` runs `kubectl`, which is not in the PATH here; without it, run the command in each Pod",
            ),
            AllError::Kubectl(reason) | AllError::InPod(reason) => out.write_str(&harmless(reason)),
            AllError::InAllPods(1, reason) => out.write_str(&harmless(reason)),
            AllError::InAllPods(replicas, reason) => write!(out, "{} (all {replicas} replicas)", harmless(reason)),
            AllError::Late(limit) => write!(out, "no answer within {} s", limit.as_secs()),
            AllError::TooLong(limit) => write!(out, "the output is longer than {} MiB", limit >> 20),
            AllError::NoPods(service) => {
                write!(out, "Service {service} has no Pods behind it; `--all=NAMESPACE/SERVICE` names another Service")
            }
            AllError::NotAService(text) => write!(out, "`{text}` is not NAMESPACE/SERVICE, such as {USUAL}"),
            AllError::OwnFile => {
                out.write_str("`--all` and `--conf` exclude each other: a replica has its own Corefile")
            }
            AllError::OneServer("all") => {
                out.write_str("`--all` and `--socket` exclude each other: a socket is that of one server")
            }
            AllError::OneServer(option) => write!(
                out,
                "`--{option}` and `--socket` exclude each other: a socket is that of one server, and `--{option}` asks \
                 all replicas"
            ),
        }
    }
}

impl core::error::Error for AllError {}
