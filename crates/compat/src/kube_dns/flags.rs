//! Flags of the three containers of the kube-dns pod, and a parser for their command lines.
//!
//! One table serves the parser, the help and the documentation. The syntax is that of Go's flag package: one or two
//! dashes before a name, and a value after `=` or as the next word. A boolean flag takes a value only after `=`. `_` is
//! equivalent to `-`. Words after `--` are arguments of dnsmasq.

use std::collections::BTreeMap;

use crate::kube_dns::Warning;
use crate::kube_dns::probe::ProbeError;

/// Container that a flag belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// `kubedns`.
    KubeDns,
    /// `dnsmasq`, which runs dnsmasq-nanny.
    Nanny,
    /// `sidecar`.
    Sidecar,
    /// Logging flags, which all three have.
    Log,
    /// Flags that only Portolan has.
    Own,
}

/// Command-line flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Name without dashes.
    pub name: &'static str,
    /// Placeholder of the value, or empty for a boolean flag.
    pub value: &'static str,
    /// Container.
    pub container: Container,
    /// Help text.
    pub help: &'static str,
    /// Reason or replacement, for a flag without effect.
    pub replacement: Option<&'static str>,
}

const fn supported(container: Container, name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, container, help, replacement: None }
}

const fn ignored(container: Container, name: &'static str, value: &'static str, replacement: &'static str) -> Flag {
    Flag { name, value, container, help: "Accepted", replacement: Some(replacement) }
}

use Container::{KubeDns, Log, Nanny, Own, Sidecar};

/// Values that Go's flag package accepts for true and false.
const ON: [&str; 6] = ["true", "t", "T", "TRUE", "True", "1"];
const OFF: [&str; 6] = ["false", "f", "F", "FALSE", "False", "0"];

/// Replacement of the flags for logging.
pub(crate) const LOGGED: &str = "the log is standard output, one event per line";

/// All flags.
pub static FLAGS: &[Flag] = &[
    supported(KubeDns, "domain", "ZONE", "Cluster domain (cluster.local)"),
    supported(KubeDns, "dns-bind-address", "IP", "Listening address (all)"),
    supported(KubeDns, "dns-port", "PORT", "Listening port (53)"),
    supported(KubeDns, "healthz-port", "PORT", "Port of /readiness and /cache (8081)"),
    supported(KubeDns, "kubecfg-file", "FILE", "Kubeconfig file (that of the service account)"),
    supported(
        KubeDns,
        "kube-master-url",
        "URL",
        "URL of the API server, without credentials; environment variables in it are expanded",
    ),
    supported(KubeDns, "config-dir", "DIR", "Directory with the keys of the ConfigMap as files"),
    supported(KubeDns, "config-map", "NAME", "Name of the ConfigMap, which is watched at the API server"),
    supported(KubeDns, "config-map-namespace", "NAMESPACE", "Namespace of the ConfigMap (kube-system)"),
    supported(KubeDns, "config-period", "DURATION", "Polling interval of the directory; at most 250ms"),
    supported(KubeDns, "federations", "NAME=DOMAIN,...", "Federations, used without a ConfigMap"),
    supported(
        KubeDns,
        "nameservers",
        "IP[:PORT],...",
        "Upstreams for outside names, used without a ConfigMap (those of /etc/resolv.conf)",
    ),
    ignored(
        KubeDns,
        "initial-sync-timeout",
        "DURATION",
        "the start does not wait: until the cluster data is loaded, its names get SERVFAIL and /readiness fails",
    ),
    supported(KubeDns, "profiling", "", "Serve profiles for pprof at localhost:6060/debug/pprof/"),
    supported(KubeDns, "version", "", "Print the version and exit"),
    supported(Nanny, "configDir", "DIR", "Directory with the keys of the ConfigMap as files; same as --config-dir"),
    supported(
        Nanny,
        "kubednsServer",
        "IP:PORT",
        "Server that resolves name servers given by a cluster name (this server)",
    ),
    ignored(Nanny, "dnsmasqExec", "FILE", "this server replaces dnsmasq"),
    ignored(
        Nanny,
        "restartDnsmasq",
        "",
        "changes of the ConfigMap always take effect, without a restart and without losing the cache",
    ),
    ignored(Nanny, "syncInterval", "DURATION", "the directory is polled four times a second"),
    ignored(Nanny, "logInterval", "DURATION", "see the metrics kubedns_dnsmasq_*"),
    supported(Sidecar, "probe", "LABEL,SERVER,NAME[,SECONDS[,TYPE]]", "Query a server periodically; may be repeated"),
    supported(Sidecar, "prometheus-addr", "IP", "Address of metrics and health checks (all)"),
    supported(Sidecar, "prometheus-port", "PORT", "Port of metrics and health checks (10054)"),
    supported(Sidecar, "prometheus-path", "PATH", "Path of the metrics (/metrics)"),
    supported(Sidecar, "prometheus-namespace", "PREFIX", "Prefix of the sidecar's metric names (kubedns)"),
    supported(Sidecar, "dnsmasq-addr", "IP", "Address of dnsmasq, if it is another process (this server)"),
    supported(Sidecar, "dnsmasq-port", "PORT", "Port of dnsmasq (53)"),
    supported(
        Sidecar,
        "dnsmasq-poll-interval-ms",
        "MILLISECONDS",
        "Interval at which dnsmasq is queried for statistics (5000)",
    ),
    ignored(Log, "v", "LEVEL", LOGGED),
    ignored(Log, "vmodule", "LEVELS", LOGGED),
    ignored(Log, "logtostderr", "", LOGGED),
    ignored(Log, "alsologtostderr", "", LOGGED),
    ignored(Log, "stderrthreshold", "LEVEL", LOGGED),
    ignored(Log, "log-dir", "DIR", LOGGED),
    ignored(Log, "log-file", "FILE", LOGGED),
    ignored(Log, "log-file-max-size", "MEGABYTES", LOGGED),
    ignored(Log, "log-backtrace-at", "PLACE", LOGGED),
    ignored(Log, "log-flush-frequency", "DURATION", LOGGED),
    ignored(Log, "add-dir-header", "", LOGGED),
    ignored(Log, "one-output", "", LOGGED),
    ignored(Log, "skip-headers", "", LOGGED),
    ignored(Log, "skip-log-headers", "", LOGGED),
    supported(Own, "log-format", "FORM", "Log format: text, as CoreDNS writes it, or json, one object per line (text)"),
    supported(Own, "print-corefile", "", "Print the Corefile that would be served and exit"),
];

/// Parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Known flags.
    table: &'static [Flag],
    /// Values of each flag, in order.
    values: BTreeMap<&'static str, Vec<String>>,
    /// Words after `--`, or `None` without `--`.
    pub after_dashes: Option<Vec<String>>,
}

/// Error in a command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// Unknown flag.
    #[error("unknown flag: {0}")]
    Unknown(String),
    /// Word that is not a flag.
    #[error("'{0}' is not a flag")]
    Stray(String),
    /// Flag without its value.
    #[error("--{0} needs a value")]
    NoValue(&'static str),
    /// Required flag that is not given.
    #[error("flag --{0} is missing")]
    Missing(&'static str),
    /// Flag with an invalid value: flag, value, expected value.
    #[error("--{0}: '{1}' is not {2}")]
    Value(&'static str, String, &'static str),
    /// Flag with an invalid value: flag, reason.
    #[error("{}{}", of_flag(.0), .1)]
    Reason(&'static str, String),
    /// Invalid value of `--probe`.
    #[error("--probe: {0}")]
    Probe(#[source] ProbeError),
    /// Flags that exclude each other.
    #[error("--{0} and --{1} cannot be used together")]
    Both(&'static str, &'static str),
}

/// Returns the beginning of an error about a flag; nothing without its name.
fn of_flag(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("--{name}: ") }
}

impl CommandLine {
    /// Parses a command line (without the program name) with the flags of these containers. The logging flags and
    /// Portolan's own are always known.
    ///
    /// # Errors
    /// The first word that is invalid.
    pub fn parse(words: impl IntoIterator<Item = String>, of: &[Container]) -> Result<CommandLine, FlagError> {
        CommandLine::parse_with(FLAGS, words, of)
    }

    /// Parses a command line with another flag table, for related programs.
    ///
    /// # Errors
    /// The first word that is invalid.
    pub fn parse_with(
        table: &'static [Flag],
        words: impl IntoIterator<Item = String>,
        of: &[Container],
    ) -> Result<CommandLine, FlagError> {
        let mut words = words.into_iter();
        let mut read = CommandLine { table, ..CommandLine::default() };
        while let Some(word) = words.next() {
            if word == "--" {
                read.after_dashes = Some(words.by_ref().collect());
                break;
            }
            let (flag, value) = flag_of(table, &word, of)?;
            let value = match value {
                Some(value) => value,
                None if flag.value.is_empty() => "true".to_owned(),
                None => words.next().ok_or(FlagError::NoValue(flag.name))?,
            };
            if flag.value.is_empty() && !ON.contains(&value.as_str()) && !OFF.contains(&value.as_str()) {
                return Err(FlagError::Value(flag.name, value, "`true` or `false`"));
            }
            read.values.entry(flag.name).or_default().push(value);
        }
        Ok(read)
    }

    /// Returns the last value of a flag.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns all values of a flag.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.values.get(name).into_iter().flatten().map(String::as_str)
    }

    /// Returns true if a boolean flag is on.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.last(name).is_some_and(|value| !OFF.contains(&value))
    }

    /// Returns a warning for each flag without effect. Logging flags share one warning.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let void = || self.table.iter().filter(|flag| self.values.contains_key(flag.name));
        let each = void().filter(|flag| flag.container != Container::Log);
        let mut warnings: Vec<Warning> =
            each.filter_map(|flag| Some(Warning::IgnoredFlags(vec![flag.name], flag.replacement?))).collect();
        let of_log: Vec<_> = void().filter(|flag| flag.container == Container::Log).map(|flag| flag.name).collect();
        if !of_log.is_empty() {
            warnings.push(Warning::IgnoredFlags(of_log, LOGGED));
        }
        warnings
    }
}

/// Looks up the flag of a word, and splits off the value after `=`.
fn flag_of(table: &'static [Flag], word: &str, of: &[Container]) -> Result<(&'static Flag, Option<String>), FlagError> {
    let bare = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|bare| !bare.is_empty());
    let bare = bare.ok_or_else(|| FlagError::Stray(word.to_owned()))?;
    let (name, value) = bare.split_once('=').map_or((bare, None), |(name, value)| (name, Some(value.to_owned())));
    let name = name.replace('_', "-");
    let is_meant = |flag: &&Flag| {
        flag.name == name && (of.contains(&flag.container) || matches!(flag.container, Container::Log | Container::Own))
    };
    let flag = table.iter().find(is_meant).ok_or_else(|| FlagError::Unknown(word.to_owned()))?;
    Ok((flag, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CommandLine, FlagError> {
        CommandLine::parse(text.split_whitespace().map(str::to_owned), &[KubeDns, Nanny, Sidecar])
    }

    #[test]
    fn parses_dashes_underscores_and_values_as_go_does() {
        for text in [
            "--dns-port=10053 --logtostderr --v 2",
            "-dns-port 10053 -logtostderr=true -v=2",
            "--dns_port=53 --dns_port=10053 --log_dir /tmp -v 2",
        ] {
            assert_eq!(read(text).unwrap().last("dns-port"), Some("10053"), "{text}");
        }
        let words = read("--probe=a,b,c --probe d,e,f -restartDnsmasq=false -- -k --cache-size=1000").unwrap();
        assert_eq!(words.all("probe").collect::<Vec<_>>(), ["a,b,c", "d,e,f"]);
        assert!(!words.is_on("restartDnsmasq") && read("--version").unwrap().is_on("version"));
        assert_eq!(words.after_dashes, Some(vec!["-k".to_owned(), "--cache-size=1000".to_owned()]));
    }

    #[test]
    fn warnings_name_the_replacement() {
        let words = read("--restartDnsmasq -v=2 --logtostderr --initial-sync-timeout=5s --domain=x").unwrap();
        let lines: Vec<String> = words.warnings().iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[2].starts_with("--v, --logtostderr does nothing here: the log"), "{lines:?}");
    }

    #[test]
    fn refuses_unknown_flags_and_stray_words() {
        for (text, said) in [
            ("--nothing=1", "unknown flag: --nothing=1"),
            ("stray", "'stray' is not a flag"),
            ("--dns-port", "--dns-port needs a value"),
            ("--version=maybe", "--version: 'maybe' is not `true` or `false`"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), said);
        }
        let only = |of| CommandLine::parse(["--domain=x".to_owned()], &[of]);
        assert!(only(KubeDns).is_ok() && only(Sidecar).is_err(), "each container has its own flags");
    }

    #[test]
    fn no_flag_occurs_twice() {
        for (at, flag) in FLAGS.iter().enumerate() {
            assert!(FLAGS[..at].iter().all(|other| other.name != flag.name), "{}", flag.name);
        }
    }
}
