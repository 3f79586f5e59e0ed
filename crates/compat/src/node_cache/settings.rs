//! Settings from a command line of node-cache.

use core::net::IpAddr;
use core::time::Duration;

use crate::kube_dns::{CommandLine, ConfigMapSource, DNS_PORT, FlagError};

/// Maximum number of local addresses. Usually there are two: a link-local one and a cluster IP.
const ADDRESSES_MAX: usize = 16;
/// Maximum interval between checks of interface and rules.
const SYNC_MAX: Duration = Duration::from_secs(1);
/// Polling interval of the ConfigMap directory.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// Maximum length of an interface name: 16 bytes in the kernel, including the terminating zero.
const INTERFACE_NAME_MAX: usize = 15;

/// Kind of the interface to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceKind {
    /// TUN device if possible, otherwise a dummy interface.
    Auto,
    /// TUN device. It disappears with the last process that holds it.
    Tun,
    /// Interface of this kind. Its addresses expire unless they are renewed.
    Leased(String),
}

/// Program or API that sets the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// nftables if the kernel supports it, otherwise iptables.
    Auto,
    /// nftables table.
    Nftables,
    /// Programs `iptables` and `ip6tables`.
    Iptables,
    /// No rules.
    None,
}

/// Settings from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses to serve on.
    pub local: Vec<IpAddr>,
    /// Template file of the Corefile.
    pub template: String,
    /// Location of the kube-dns ConfigMap.
    pub source: ConfigMapSource,
    /// Service that answers queries for cluster names.
    pub upstream_service: String,
    /// Name of the interface to create, if any.
    pub interface: Option<String>,
    /// Kind of the interface.
    pub interface_kind: InterfaceKind,
    /// Backend for the rules.
    pub backend: Backend,
    /// Interval between checks of interface and rules.
    pub sync_interval: Duration,
    /// Address of the metrics about the node setup.
    pub metrics: String,
    /// Port of the health check.
    pub health_port: u16,
    /// True if interface and rules remain after the process has ended.
    pub skip_teardown: bool,
    /// DNS port.
    pub port: u16,
    /// PID file.
    pub pidfile: Option<String>,
    /// True if the startup messages are suppressed.
    pub is_quiet: bool,
    /// Cluster domain, for templates that do not contain it.
    pub domain: String,
}

impl Settings {
    /// Parses a command line. `has_directory` returns true if a directory exists.
    ///
    /// # Errors
    /// The first flag with an invalid value.
    pub fn read(words: &CommandLine, has_directory: &dyn Fn(&str) -> bool) -> Result<Settings, FlagError> {
        const CONFIG_DIR: &str = "/etc/kube-dns";
        let text = |name: &str, default: &str| words.last(name).unwrap_or(default).to_owned();
        let is_on = |name: &str| words.last(name).is_none() || words.is_on(name);
        let directory = words.last("kubednscm").or(Some(CONFIG_DIR).filter(|path| has_directory(path)));
        let source = directory.map_or(ConfigMapSource::None, |path| ConfigMapSource::Directory {
            path: path.to_owned(),
            every: POLL_EVERY,
        });
        Ok(Settings {
            local: local(words)?,
            template: text("basecorefile", "/etc/coredns/Corefile.base"),
            source,
            upstream_service: text("upstreamsvc", "kube-dns"),
            interface: is_on("setupinterface").then(|| interface_name(words)).transpose()?,
            interface_kind: match text("interfacekind", "auto").as_str() {
                "auto" => InterfaceKind::Auto,
                "tun" => InterfaceKind::Tun,
                kind => InterfaceKind::Leased(kind.to_owned()),
            },
            backend: if is_on("setupiptables") { backend(words)? } else { Backend::None },
            sync_interval: sync_interval(words)?,
            metrics: text("metrics-listen-address", "0.0.0.0:9353"),
            health_port: port(words, "health-port", 8080)?,
            skip_teardown: words.is_on("skipteardown"),
            port: port(words, "dns.port", port(words, "p", DNS_PORT)?)?,
            pidfile: words.last("pidfile").map(str::to_owned),
            is_quiet: words.is_on("quiet"),
            domain: text("domain", "cluster.local"),
        })
    }
}

/// Returns the environment variable in which Kubernetes passes the cluster IP of a Service of the same namespace.
#[must_use]
pub fn service_variable(service: &str) -> String {
    format!("{}_SERVICE_HOST", service.to_ascii_uppercase().replace('-', "_"))
}

fn local(words: &CommandLine) -> Result<Vec<IpAddr>, FlagError> {
    const NAME: &str = "localip";
    let written = words.last(NAME).ok_or(FlagError::Missing(NAME))?;
    let read: Result<Vec<IpAddr>, _> = written.split(',').map(|text| text.trim().parse()).collect();
    let wrong = |what| FlagError::Value(NAME, written.to_owned(), what);
    let addresses = read.map_err(|_| wrong("a list of addresses"))?;
    if addresses.len() > ADDRESSES_MAX {
        return Err(wrong("a list of at most 16 addresses"));
    }
    Ok(addresses)
}

fn interface_name(words: &CommandLine) -> Result<String, FlagError> {
    const NAME: &str = "interfacename";
    let name = words.last(NAME).unwrap_or("nodelocaldns");
    let is_fit = name.len() <= INTERFACE_NAME_MAX && !matches!(name, "." | "..");
    if is_fit && name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'%')) {
        return Ok(name.to_owned());
    }
    Err(FlagError::Value(NAME, name.to_owned(), "an interface name of at most 15 bytes"))
}

fn backend(words: &CommandLine) -> Result<Backend, FlagError> {
    match words.last("rules").unwrap_or("auto") {
        "auto" => Ok(Backend::Auto),
        "nftables" => Ok(Backend::Nftables),
        "iptables" => Ok(Backend::Iptables),
        other => Err(FlagError::Value("rules", other.to_owned(), "nftables, iptables or auto")),
    }
}

fn port(words: &CommandLine, name: &'static str, default: u16) -> Result<u16, FlagError> {
    let Some(written) = words.last(name) else { return Ok(default) };
    let port = written.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| FlagError::Value(name, written.to_owned(), "a port"))
}

/// Parses the sync interval. node-cache reads nanoseconds as seconds, so `60ns` is a minute. Other units have their
/// usual meaning.
fn sync_interval(words: &CommandLine) -> Result<Duration, FlagError> {
    const NAME: &str = "syncinterval";
    let Some(written) = words.last(NAME) else { return Ok(SYNC_MAX) };
    let digits = written.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = written.get(digits.len()..).unwrap_or_default();
    let number: Option<u64> = digits.parse().ok().filter(|number| *number > 0);
    let wrong = || FlagError::Value(NAME, written.to_owned(), "a duration");
    let number = number.ok_or_else(wrong)?;
    let interval = match unit {
        "" | "ns" | "s" => Duration::from_secs(number),
        "ms" => Duration::from_millis(number),
        "m" => Duration::from_secs(number.saturating_mul(60)),
        "h" => Duration::from_secs(number.saturating_mul(3600)),
        _ => return Err(wrong()),
    };
    Ok(interval.min(SYNC_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_cache::FLAGS;

    fn read(text: &str) -> Result<Settings, String> {
        let words = text.split_whitespace().map(str::to_owned);
        CommandLine::parse_with(FLAGS, words, &[])
            .and_then(|words| Settings::read(&words, &|_| false))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn reads_the_command_line_of_the_stock_manifest() {
        let text = "-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile -upstreamsvc kube-dns-upstream";
        let settings = read(text).unwrap();
        assert_eq!(settings.local.len(), 2);
        assert_eq!(settings.interface.as_deref(), Some("nodelocaldns"));
        assert_eq!((settings.backend, settings.port, settings.health_port), (Backend::Auto, 53, 8080));
        assert_eq!(settings.upstream_service, "kube-dns-upstream");
        assert_eq!(settings.source, ConfigMapSource::None);
        let words = CommandLine::parse_with(FLAGS, text.split(' ').map(str::to_owned), &[]).unwrap();
        assert_eq!(words.warnings().len(), 1, "-conf is said to do nothing");
        assert!(
            matches!(Settings::read(&words, &|_| true).unwrap().source, ConfigMapSource::Directory { path, .. } if path == "/etc/kube-dns")
        );
    }

    /// Arguments of the manifest `cluster/addons/dns/nodelocaldns/nodelocaldns.yaml` of Kubernetes, each with the
    /// versions of the image in it. Kubernetes 1.31.0 to 1.37.2 uses the first ones.
    const MANIFESTS: [(&str, &str); 2] = [
        ("1.22.28 to 1.26.8", "-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile -upstreamsvc kube-dns-upstream"),
        (
            "1.26.4 on a branch",
            "-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile -upstreamsvc kube-dns-upstream \
             -pidfile /tmp/node-cache.pid",
        ),
    ];

    /// Flags that some release of node-cache has had, each with a value.
    const ALL_FLAGS: &str = "-localip=169.254.20.10 -setupinterface=true -interfacename nodelocaldns -syncinterval 60 \
        -metrics-listen-address 0.0.0.0:9353 -setupiptables=1 -basecorefile /etc/coredns/Corefile.base \
        -corefile /etc/Corefile -kubednscm /etc/kube-dns -upstreamsvc kube-dns -health-port 8080 -skipteardown=true \
        -reloadwithsignal -initialdelay 10 -setupebtables=false -conf /etc/Corefile -dns.port 53 -p 53 \
        -pidfile /tmp/x -quiet -plugins=false -version=false -log_dir /tmp -log_link /tmp -logbuflevel 0 -v 2 \
        -vmodule a=1 -log_backtrace_at a:1 -logtostderr -alsologtostderr=true -stderrthreshold INFO";

    #[test]
    fn accepts_every_flag_of_node_cache() {
        let settings = read(ALL_FLAGS).unwrap();
        assert!(settings.skip_teardown && settings.is_quiet);
        for (images, text) in MANIFESTS {
            let settings = read(text).unwrap_or_else(|error| panic!("{images}: {error}"));
            assert_eq!((settings.local.len(), settings.upstream_service.as_str()), (2, "kube-dns-upstream"));
        }
        assert_eq!(read("-localip 1.1.1.1,fd00::1").unwrap().local.len(), 2);
        assert_eq!(read("-localip 1.1.1.1 -p 5353").unwrap().port, 5353);
        assert_eq!(read("-localip 1.1.1.1 -p 5353 -dns.port 5354").unwrap().port, 5354);
    }

    #[test]
    fn switches_off_interface_and_rules() {
        let settings =
            read("--localip=fd00::10 --setupinterface=false -setupiptables=false --skipteardown --dns.port=5353")
                .unwrap();
        assert_eq!((settings.interface, settings.backend), (None, Backend::None));
        assert!(settings.skip_teardown && settings.port == 5353);
    }

    #[test]
    fn parses_intervals_with_or_without_unit() {
        for (text, milliseconds) in [("60ns", 1000), ("60s", 1000), ("1m", 1000), ("200ms", 200), ("60", 1000)] {
            let settings = read(&format!("-localip 1.1.1.1 -syncinterval {text}")).unwrap();
            assert_eq!(settings.sync_interval, Duration::from_millis(milliseconds), "{text}");
        }
    }

    #[test]
    fn refuses_invalid_values() {
        for (text, said) in [
            ("", "flag --localip is missing"),
            ("-localip", "--localip needs a value"),
            ("-localip 1.1.1.1,x", "--localip: '1.1.1.1,x' is not a list of addresses"),
            (
                "-localip 1.1.1.1 -interfacename a/b",
                "--interfacename: 'a/b' is not an interface name of at most 15 bytes",
            ),
            ("-localip 1.1.1.1 -syncinterval 0", "--syncinterval: '0' is not a duration"),
            ("-localip 1.1.1.1 -rules ebpf", "--rules: 'ebpf' is not nftables, iptables or auto"),
            ("-localip 1.1.1.1 -health-port 0", "--health-port: '0' is not a port"),
            ("-nothing", "unknown flag: -nothing"),
        ] {
            assert_eq!(read(text).unwrap_err(), said, "{text}");
        }
    }

    #[test]
    fn builds_the_variable_of_a_service() {
        assert_eq!(service_variable("kube-dns-upstream"), "KUBE_DNS_UPSTREAM_SERVICE_HOST");
    }
}
