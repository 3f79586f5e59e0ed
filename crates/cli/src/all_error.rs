//! Reasons why replicas of a Service cannot be asked.

use std::time::Duration;

use control::text::harmless;

/// Service of the cluster DNS, unless the command line names another one.
pub(crate) const USUAL: &str = "kube-system/kube-dns";
/// Reason why a replica, or all of them, could not be asked. The user can do something about each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AllError {
    /// There is no `kubectl`.
    #[error("`--all` runs `kubectl`, which is not in the PATH here; without it, run the command in each Pod")]
    NoKubectl,
    /// `kubectl` failed, with this reason.
    #[error("{}", harmless(.0))]
    Kubectl(String),
    /// The command in the Pod could not do its work, for this reason: it was refused an option, or found no server.
    #[error("{}", harmless(.0))]
    InPod(String),
    /// The commands in the Pods of this number of replicas, which are all, could not do their work, for this reason.
    #[error("{}", in_all_pods(*.0, .1))]
    InAllPods(usize, String),
    /// `kubectl` took longer than this.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    /// An output is longer than this number of bytes.
    #[error("the output is longer than {} MiB", .0 >> 20)]
    TooLong(u64),
    /// The Service has no Pods.
    #[error("Service {0} has no Pods behind it; `--all=NAMESPACE/SERVICE` names another Service")]
    NoPods(String),
    /// The text is not `NAMESPACE/SERVICE`.
    #[error("`{}` is not NAMESPACE/SERVICE, such as {}", .0, USUAL)]
    NotAService(String),
    /// A socket is named beside this option, which asks all replicas.
    #[error("{}", beside_socket(.0))]
    OneServer(&'static str),
    /// The command reads a file of this machine.
    #[error("`--all` and `--conf` exclude each other: a replica has its own Corefile")]
    OwnFile,
}

fn in_all_pods(replicas: usize, reason: &str) -> String {
    match replicas {
        1 => harmless(reason),
        _ => format!("{} (all {replicas} replicas)", harmless(reason)),
    }
}

fn beside_socket(option: &str) -> String {
    let asks_all = if option == "all" { String::new() } else { format!(", and `--{option}` asks all replicas") };
    format!("`--{option}` and `--socket` exclude each other: a socket is that of one server{asks_all}")
}
