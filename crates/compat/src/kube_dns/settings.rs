//! Settings: parts of the pod that this process replaces, and the configuration of each.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use crate::kube_dns::Warning;
use crate::kube_dns::config_map::{federations, name_servers};
use crate::kube_dns::dnsmasq::Dnsmasq;
use crate::kube_dns::flags::{CommandLine, Container, FlagError};
use crate::kube_dns::name_server::{DNS_PORT, read_address};
use crate::kube_dns::names::is_domain;
use crate::kube_dns::probe::{Probe, ProbeError};

/// Program of the pod to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// All three in one process.
    Pod,
    /// `kube-dns`: serves the cluster records.
    KubeDns,
    /// `dnsmasq-nanny`: caching forwarder that clients query.
    Nanny,
    /// `sidecar`: exports probes and metrics.
    Sidecar,
}

/// Meaning of the command line. The default is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Cluster records, if this process serves them.
    pub kube_dns: Option<KubeDns>,
    /// dnsmasq, if this process replaces it.
    pub dnsmasq: Option<Dnsmasq>,
    /// Probes and metrics, if this process exports them.
    pub sidecar: Option<Sidecar>,
    /// Location of the ConfigMap.
    pub source: ConfigMapSource,
    /// Upstreams from the command line.
    pub upstreams: Vec<SocketAddr>,
    /// Federations from the command line.
    pub federations: Vec<(String, String)>,
    /// Server that resolves cluster names, or `None` for this server.
    pub cluster_server: Option<SocketAddr>,
}

/// Location of the ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConfigMapSource {
    /// No ConfigMap.
    #[default]
    None,
    /// Directory with one file per key.
    Directory {
        /// Path of the directory.
        path: String,
        /// Polling interval.
        every: Duration,
    },
    /// ConfigMap at the API server.
    ConfigMap {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
    },
}

/// Flags of `kube-dns`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeDns {
    /// Cluster domain without its final dot.
    pub domain: String,
    /// Listening address, or `None` for all.
    pub bind: Option<IpAddr>,
    /// Listening port.
    pub port: u16,
    /// Port of the HTTP endpoints.
    pub pages_port: u16,
    /// Kubeconfig file.
    pub kubeconfig: Option<String>,
    /// URL of the API server.
    pub api_server: Option<String>,
    /// Metrics of kube-dns, if enabled.
    pub metrics: Option<Metrics>,
    /// True if profiling is enabled.
    pub profiling: bool,
}

/// Settings from `PROMETHEUS_PORT` and related environment variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Port.
    pub port: u16,
    /// Path.
    pub path: String,
    /// Namespace, the first part of metric names.
    pub namespace: String,
    /// Subsystem, the second part of metric names.
    pub subsystem: String,
}

/// Flags of the sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sidecar {
    /// Probes.
    pub probes: Vec<Probe>,
    /// Address of the metrics and health checks.
    pub address: String,
    /// Path of the metrics.
    pub path: String,
    /// Prefix of the metric names.
    pub namespace: String,
    /// Server to query for cache statistics, or `None` for this server's own.
    pub dnsmasq: Option<SocketAddr>,
    /// Polling interval.
    pub poll: Duration,
}

/// Maximum polling interval of a directory, so that a change takes effect within a second.
const POLL_MAX: Duration = Duration::from_millis(250);
/// Default cache size in answers, the same as in *cache*.
const CACHE_SIZE: usize = 9984;

const KUBE_DNS_FLAGS: &[Container] = &[Container::KubeDns];
const ALL_FLAGS: &[Container] = &[Container::KubeDns, Container::Nanny, Container::Sidecar];

impl Program {
    /// Returns the program that is invoked by this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Program> {
        match name {
            "kube-dns" => Some(Program::KubeDns),
            "dnsmasq-nanny" => Some(Program::Nanny),
            "sidecar" => Some(Program::Sidecar),
            _ => None,
        }
    }

    /// Returns the containers whose flags the program takes.
    #[must_use]
    pub const fn flags(self) -> &'static [Container] {
        match self {
            Program::Pod => ALL_FLAGS,
            Program::KubeDns => KUBE_DNS_FLAGS,
            Program::Nanny => &[Container::Nanny],
            Program::Sidecar => &[Container::Sidecar],
        }
    }
}

impl Settings {
    /// Derives the settings of a program from its command line. Returns the warnings too. `variable` reads the
    /// environment.
    ///
    /// # Errors
    /// The first flag with an invalid value.
    pub fn read(
        program: Program,
        words: &CommandLine,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Settings, Vec<Warning>), FlagError> {
        let mut said = words.warnings();
        let is = |known: &[Program]| known.contains(&program);
        let kube_dns = is(&[Program::Pod, Program::KubeDns]).then(|| KubeDns::read(words, variable)).transpose()?;
        let mut dnsmasq = None;
        if is(&[Program::Pod, Program::Nanny]) {
            let port = kube_dns.as_ref().map_or(DNS_PORT, |kube_dns| kube_dns.port);
            dnsmasq = Some(read_dnsmasq(program, words, port, &mut said)?);
        }
        let sidecar =
            is(&[Program::Pod, Program::Sidecar]).then(|| Sidecar::read(program, words, &mut said)).transpose()?;
        let source = ConfigMapSource::read(program, words)?;
        let has_source = source != ConfigMapSource::None;
        let server =
            |text: &str| read_address(text, ':').ok_or_else(|| bad("kubednsServer", text, "an address with a port"));
        let settings = Settings {
            kube_dns,
            dnsmasq,
            sidecar,
            source,
            upstreams: of_list("nameservers", words, has_source, &mut said, name_servers)?,
            federations: of_list("federations", words, has_source, &mut said, federations)?,
            cluster_server: words.last("kubednsServer").map(server).transpose()?,
        };
        Ok((settings, said))
    }
}

fn bad(name: &'static str, value: &str, what: &'static str) -> FlagError {
    FlagError::Value(name, value.to_owned(), what)
}

/// Reads a flag that applies only without a ConfigMap.
fn of_list<T>(
    name: &'static str,
    words: &CommandLine,
    has_source: bool,
    said: &mut Vec<Warning>,
    read: impl Fn(&str) -> Result<Vec<T>, crate::kube_dns::config_map::ConfigMapValueError>,
) -> Result<Vec<T>, FlagError> {
    let Some(text) = words.last(name) else { return Ok(Vec::new()) };
    let list = read(text).map_err(|wrong| FlagError::Reason(name, wrong.to_string()))?;
    if has_source {
        said.push(Warning::IgnoredFlags(vec![name], "the ConfigMap takes precedence"));
        return Ok(Vec::new());
    }
    Ok(list)
}

/// Parses dnsmasq's arguments. Without arguments, the whole pod gets a cache of the default size.
fn read_dnsmasq(
    program: Program,
    words: &CommandLine,
    port: u16,
    said: &mut Vec<Warning>,
) -> Result<Dnsmasq, FlagError> {
    match (&words.after_dashes, program) {
        (None, Program::Pod) => Ok(Dnsmasq { port, cache_size: CACHE_SIZE, ..Dnsmasq::default() }),
        (behind, _) => {
            let (dnsmasq, more) = Dnsmasq::read(behind.as_deref().unwrap_or_default())?;
            said.extend(more);
            Ok(dnsmasq)
        }
    }
}

fn port(words: &CommandLine, name: &'static str, default: u16) -> Result<u16, FlagError> {
    words.last(name).map_or(Ok(default), |text| text.parse().map_err(|_| bad(name, text, "a port")))
}

impl ConfigMapSource {
    fn read(program: Program, words: &CommandLine) -> Result<ConfigMapSource, FlagError> {
        let directory = words.last("config-dir").or_else(|| words.last("configDir"));
        let directory = directory.or((program == Program::Nanny).then_some("/etc/k8s/dns/dnsmasq-nanny"));
        let every = words.last("config-period").map_or(Ok(POLL_MAX), |text| {
            duration(text).ok_or_else(|| bad("config-period", text, "a time such as 10s"))
        })?;
        match (directory, words.last("config-map")) {
            (Some(_), Some(_)) => Err(FlagError::Both("config-dir", "config-map")),
            (Some(path), None) => Ok(ConfigMapSource::Directory { path: path.to_owned(), every: every.min(POLL_MAX) }),
            (None, Some(name)) => {
                let namespace = words.last("config-map-namespace").unwrap_or("kube-system").to_owned();
                Ok(ConfigMapSource::ConfigMap { namespace, name: name.to_owned() })
            }
            (None, None) => Ok(ConfigMapSource::None),
        }
    }
}

impl KubeDns {
    fn read(words: &CommandLine, variable: &dyn Fn(&str) -> Option<String>) -> Result<KubeDns, FlagError> {
        let domain = words.last("domain").unwrap_or("cluster.local");
        if !is_domain(domain) {
            return Err(bad("domain", domain, "a domain in lower case"));
        }
        let bind = words
            .last("dns-bind-address")
            .map(|text| text.parse::<IpAddr>().map_err(|_| bad("dns-bind-address", text, "an address")));
        let api_server = words.last("kube-master-url").map(|text| {
            let url = expand(text, variable);
            let is_url = ["http://", "https://"].iter().any(|scheme| {
                url.strip_prefix(scheme).is_some_and(|host| !host.is_empty()) && !url.contains(char::is_whitespace)
            });
            if is_url { Ok(url) } else { Err(bad("kube-master-url", text, "a URL with scheme and host")) }
        });
        Ok(KubeDns {
            domain: domain.trim_end_matches('.').to_owned(),
            bind: bind.transpose()?.filter(|ip| !ip.is_unspecified()),
            port: port(words, "dns-port", DNS_PORT)?,
            pages_port: port(words, "healthz-port", 8081)?,
            kubeconfig: words.last("kubecfg-file").map(str::to_owned),
            api_server: api_server.transpose()?,
            metrics: Metrics::read(variable)?,
            profiling: words.is_on("profiling"),
        })
    }
}

impl Metrics {
    fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Metrics>, FlagError> {
        let value = |name: &str, default: &str| {
            variable(name).filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        let Some(port) = variable("PROMETHEUS_PORT").filter(|port| !port.is_empty()) else { return Ok(None) };
        let port = port.parse().map_err(|_| FlagError::Reason("", format!("PROMETHEUS_PORT: not a port: '{port}'")))?;
        let metrics = Metrics {
            port,
            path: value("PROMETHEUS_PATH", "/metrics"),
            namespace: value("PROMETHEUS_NAMESPACE", "skydns"),
            subsystem: value("PROMETHEUS_SUBSYSTEM", "skydns"),
        };
        check_path("PROMETHEUS_PATH", &metrics.path)?;
        check_prefix("PROMETHEUS_NAMESPACE", &metrics.namespace)?;
        check_prefix("PROMETHEUS_SUBSYSTEM", &metrics.subsystem)?;
        Ok(Some(metrics))
    }
}

fn check_path(name: &'static str, path: &str) -> Result<(), FlagError> {
    let is_path =
        path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte));
    if is_path { Ok(()) } else { Err(bad(name, path, "a path")) }
}

fn check_prefix(name: &'static str, prefix: &str) -> Result<(), FlagError> {
    let is_prefix = prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let begins = prefix.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if is_prefix && begins { Ok(()) } else { Err(bad(name, prefix, "letters, digits and _")) }
}

impl Sidecar {
    fn read(program: Program, words: &CommandLine, said: &mut Vec<Warning>) -> Result<Sidecar, FlagError> {
        let mut probes: Vec<Probe> = Vec::new();
        for text in words.all("probe") {
            let probe = Probe::read(text).map_err(FlagError::Probe)?;
            if probes.iter().any(|known| known.label == probe.label) {
                return Err(FlagError::Probe(ProbeError::Duplicate(probe.label)));
            }
            if probe.qtype == "ANY" {
                let label = &probe.label;
                let difference = "an empty answer is a success, because servers may refuse ANY (RFC 8482)";
                said.push(Warning::Differs(format!("--probe {label}"), difference));
            }
            probes.push(probe);
        }
        let ip = words.last("prometheus-addr").map_or(Ok(None), |text| {
            text.parse::<IpAddr>().map(Some).map_err(|_| bad("prometheus-addr", text, "an address"))
        })?;
        let port_number = port(words, "prometheus-port", 10054)?;
        let address = match ip.filter(|ip| !ip.is_unspecified()) {
            Some(ip) => SocketAddr::new(ip, port_number).to_string(),
            None => format!(":{port_number}"),
        };
        let path = words.last("prometheus-path").unwrap_or("/metrics").to_owned();
        let namespace = words.last("prometheus-namespace").unwrap_or("kubedns").to_owned();
        check_path("prometheus-path", &path)?;
        check_prefix("prometheus-namespace", &namespace)?;
        let poll = words.last("dnsmasq-poll-interval-ms").map_or(Ok(5000), |text| {
            text.parse()
                .ok()
                .filter(|ms| *ms > 0)
                .ok_or_else(|| bad("dnsmasq-poll-interval-ms", text, "a number of milliseconds"))
        })?;
        let dnsmasq = Sidecar::dnsmasq(program, words)?;
        Ok(Sidecar { probes, address, path, namespace, dnsmasq, poll: Duration::from_millis(poll) })
    }

    /// Returns the server to query for statistics: the given address, or 127.0.0.1 for a separate sidecar.
    fn dnsmasq(program: Program, words: &CommandLine) -> Result<Option<SocketAddr>, FlagError> {
        let address = words.last("dnsmasq-addr").or((program == Program::Sidecar).then_some("127.0.0.1"));
        let Some(text) = address else { return Ok(None) };
        let ip = text.parse::<IpAddr>().map_err(|_| bad("dnsmasq-addr", text, "an address"))?;
        Ok(Some(SocketAddr::new(ip, port(words, "dnsmasq-port", DNS_PORT)?)))
    }
}

/// Parses a Go duration of whole numbers: `10s`, `1m30s`, `500ms`.
fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].find(|letter: char| letter.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let millis = match &rest[digits..unit] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        total = total.checked_add(Duration::from_millis(number.checked_mul(millis)?))?;
        rest = &rest[unit..];
    }
    Some(total).filter(|total| !total.is_zero())
}

/// Replaces `$NAME` and `${NAME}` by environment variables.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut parts = text.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let braced = part.strip_prefix('{').and_then(|part| part.split_once('}'));
        let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(part.len());
        let (name, rest) = braced.unwrap_or_else(|| part.split_at(end));
        out.push_str(&variable(name).unwrap_or_default());
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
