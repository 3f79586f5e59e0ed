//! Command line of `portolan relay`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use cluster::Source;
use host::invariant::Expected as _;
use process::log::Format;
use relay::Kind;

/// Subject that may use a relay unless the command line names others: the account of the DaemonSet.
const SUBJECT: &str = "system:serviceaccount:kube-system:portolan-every-node";

/// Settings of a relay.
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Address for subscribers.
    pub(super) listen: String,
    /// Address of the pages.
    pub(super) pages: String,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) source: Source,
    pub(super) kinds: Vec<Kind>,
    pub(super) subjects: Vec<String>,
    pub(super) audience: String,
    pub(super) issuer: String,
    pub(super) keys_file: Option<PathBuf>,
    pub(super) log_format: Format,
}

/// Returns the clap definition of the command.
pub fn command() -> clap::Command {
    let path = || value_parser!(PathBuf);
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    clap::Command::new("relay")
        .about("Serve the lists and watches of the API server to many nodes, stripped to what DNS needs")
        .long_about(
            "Follow the API server, and serve lists and watches of the same objects, with the same resource versions \
             and errors, to the Portolan of each node. The API server then has one watch per relay and kind, and not \
             one per node. Subscribers connect over TLS with a token of their ServiceAccount, which the relay checks \
             with the keys of the cluster. It serves nothing until all kinds are listed.",
        )
        .arg(
            option("certificate", "FILE", "Certificate of this relay, in PEM format; read again when it changes")
                .value_parser(path())
                .required(true),
        )
        .arg(option("key", "FILE", "Private key of the certificate").value_parser(path()).required(true))
        .arg(option("listen", "[HOST]:PORT", "Address for subscribers").default_value(":9443"))
        .arg(option("metrics", "[HOST]:PORT", "Address of /metrics, /ready and /healthz").default_value(":9154"))
        .arg(
            option(
                "kinds",
                "LIST",
                "Kinds to follow, in place of the default, separated by commas: `pods` and `nodes` too",
            )
            .value_delimiter(',')
            .value_parser(read_kind)
            .default_value("namespaces,services,endpointslices"),
        )
        .arg(
            option("allow", "SUBJECT", "Account that may subscribe, in place of the default; may be repeated")
                .action(ArgAction::Append)
                .default_value(SUBJECT),
        )
        .arg(option("audience", "NAME", "Audience that tokens must name").default_value("portolan-relay"))
        .arg(option("issuer", "URL", "Issuer of tokens [default: what the API server says]").default_value(""))
        .arg(
            option("keys-file", "FILE", "Keep the keys of tokens here, so that a restart needs no API server for them")
                .value_parser(path()),
        )
        .arg(
            option("kubeconfig", "FILE", "Connect to the API server of this file [default: that of the Pod's cluster]")
                .value_parser(path()),
        )
        .arg(option("context", "NAME", "Context of the kubeconfig").requires("kubeconfig"))
        .arg(
            option("api-server", "URL", "Connect to this API server without credentials, for tests")
                .conflicts_with("kubeconfig"),
        )
        .arg(option("log-format", "FORM", "Log format").value_parser(["text", "json"]).default_value("text"))
}

/// Kind that a relay does not know.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected one of {}", Kind::ALL.map(Kind::resource).join(", "))]
struct UnknownKind;

fn read_kind(text: &str) -> Result<Kind, UnknownKind> {
    Kind::by_resource(text).ok_or(UnknownKind)
}

/// Returns the settings of a command line that clap has accepted.
pub fn options(matches: &ArgMatches) -> RelayOptions {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let given = |name: &str| text(name).expected("an option with a default").unwrap_or_default();
    let file = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let source = match (file("kubeconfig"), text("api-server")) {
        (Some(file), _) => Source::Kubeconfig { file, context: text("context") },
        (None, Some(url)) => Source::Endpoint { url, tls: None },
        (None, None) => Source::InCluster,
    };
    let mut kinds: Vec<Kind> = matches.get_many("kinds").into_iter().flatten().copied().collect();
    kinds.sort_unstable();
    kinds.dedup();
    RelayOptions {
        listen: given("listen"),
        pages: given("metrics"),
        certificate: file("certificate").expected("an option that is required").unwrap_or_default(),
        key: file("key").expected("an option that is required").unwrap_or_default(),
        source,
        kinds,
        subjects: matches.get_many("allow").into_iter().flatten().cloned().collect(),
        audience: given("audience"),
        issuer: given("issuer"),
        keys_file: file("keys-file"),
        log_format: Format::by_name(&given("log-format")).expected("a log format").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_command_line() {
        let read = |words: &str| {
            let words = ["relay"].into_iter().chain(words.split(' '));
            command().try_get_matches_from(words).map(|matches| options(&matches))
        };
        let plain = read("--certificate a --key b").unwrap();
        assert_eq!(plain.kinds, [Kind::Namespace, Kind::Service, Kind::EndpointSlice]);
        assert_eq!((plain.subjects, plain.source), (vec![SUBJECT.to_owned()], Source::InCluster));
        let more = read("--certificate a --key b --kinds pods,services --allow x --allow y").unwrap();
        assert_eq!((more.kinds, more.subjects), (vec![Kind::Service, Kind::Pod], vec!["x".to_owned(), "y".to_owned()]));
        assert!(read("--key b").is_err() && read("--certificate a --key b --kinds secrets").is_err());
        command().debug_assert();
    }
}
