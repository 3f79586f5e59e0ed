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
    /// Container of the server in each Pod; `None` for the default one of `kubectl`.
    pub(super) container: Option<String>,
}

/// Identifier of the option that names a Service, in all commands.
const SERVICE: &str = "service";

/// Returns the options of a command that can ask all replicas.
pub(super) fn options() -> [Arg; 3] {
    options_named("all")
}

/// Returns the same options for a command that has an `--all` with another meaning: `cache flush`.
pub(super) fn options_beside_all() -> [Arg; 3] {
    options_named("replicas")
}

fn options_named(name: &'static str) -> [Arg; 3] {
    let all = Arg::new(SERVICE)
        .long(name)
        .value_name("NAMESPACE/SERVICE")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value(USUAL)
        .help("Ask every Pod behind a Service with `kubectl exec` [default without a value: kube-system/kube-dns]");
    // The name that all commands know.
    let all = if name == "replicas" { all } else { all.alias("replicas") };
    let about_all =
        |id: &'static str, value: &'static str, help: String| Arg::new(id).long(id).value_name(value).help(help);
    let context = format!("Context of the kubeconfig, for --{name} [default: its current context]");
    let container = format!("Container of the server in each Pod, for --{name} [default: that of `kubectl exec`]");
    [all, about_all("context", "NAME", context), about_all("container", "NAME", container)]
}

/// Returns the Service that a command line names. `is_plugin` is true below `kubectl`, where all replicas are asked
/// unless the command line names one server.
pub(super) fn service(matches: &ArgMatches, is_plugin: bool) -> Result<Option<Service>, AllError> {
    // Other commands have options with the names of the others: `doctor --context`.
    if matches.try_get_one::<String>(SERVICE).is_err() {
        return Ok(None);
    }
    let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().cloned();
    // The Corefile of `explain --conf` is a file here.
    let is_here = matches.try_contains_id("conf").unwrap_or(false);
    let has_socket = text("socket").is_some();
    let about_all = ["context", "container"].into_iter().find(|option| text(option).is_some());
    let wanted = match (text(SERVICE).or_else(|| about_all.map(|_| USUAL.to_owned())), has_socket || is_here) {
        (Some(_), true) if is_here => return Err(AllError::OwnFile),
        (Some(_), true) => {
            return Err(AllError::OneServer(about_all.filter(|_| text(SERVICE).is_none()).unwrap_or("all")));
        }
        (None, false) if is_plugin => USUAL.to_owned(),
        (Some(wanted), false) => wanted,
        (None, _) => return Ok(None),
    };
    let is_name = |part: &&str| !part.is_empty() && !part.starts_with('-') && !part.contains('/');
    let parts = wanted.split_once('/').filter(|(namespace, name)| is_name(namespace) && is_name(name));
    let Some((namespace, name)) = parts else { return Err(AllError::NotAService(wanted)) };
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Ok(Some(Service { namespace, name, context: text("context"), container: text("container") }))
}
