//! Service whose replicas a command asks, and its options.

use clap::{Arg, ArgMatches};

use crate::all_error::{AllError, USUAL};

/// Service whose replicas are asked, and how `kubectl` gets there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Context of the kubeconfig; `None` for the current one.
    pub(super) context: Option<String>,
}

/// Returns the options of a command that can ask all replicas.
pub(super) fn options() -> [Arg; 2] {
    let all = Arg::new("all")
        .long("all")
        .value_name("NAMESPACE/SERVICE")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value(USUAL)
        .help("Ask every Pod behind a Service with `kubectl exec` [default without a value: kube-system/kube-dns]");
    let context = Arg::new("context")
        .long("context")
        .value_name("NAME")
        .help("Context of the kubeconfig, for --all [default: its current context]");
    [all, context]
}

/// Returns the Service that a command line names. `is_plugin` is true below `kubectl`, where all replicas are asked
/// unless the command line names one server.
pub(super) fn service(matches: &ArgMatches, is_plugin: bool) -> Result<Option<Service>, AllError> {
    // Other commands have options of these names with another meaning: `cache flush --all`, `doctor --context`.
    if matches.try_get_one::<String>("all").is_err() {
        return Ok(None);
    }
    let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().cloned();
    let has_socket = text("socket").is_some();
    let wanted = match (text("all").or_else(|| text("context").map(|_| USUAL.to_owned())), has_socket) {
        (Some(_), true) => return Err(AllError::OneServer),
        (None, false) if is_plugin => USUAL.to_owned(),
        (Some(wanted), false) => wanted,
        (None, _) => return Ok(None),
    };
    let is_name = |part: &&str| !part.is_empty() && !part.starts_with('-') && !part.contains('/');
    let parts = wanted.split_once('/').filter(|(namespace, name)| is_name(namespace) && is_name(name));
    let Some((namespace, name)) = parts else { return Err(AllError::NotAService(wanted)) };
    Ok(Some(Service { namespace: namespace.to_owned(), name: name.to_owned(), context: text("context") }))
}
