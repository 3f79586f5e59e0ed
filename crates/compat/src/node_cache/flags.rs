//! Flags of node-cache, and some of Portolan's own. One table serves the parser, the help and the documentation.

use crate::kube_dns::{Container, Flag, LOGGED};

const fn supported(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, container: Container::Own, help, replacement: None }
}

const fn ignored(name: &'static str, value: &'static str, replacement: &'static str) -> Flag {
    Flag { name, value, container: Container::Own, help: "Accepted", replacement: Some(replacement) }
}

/// Flag of glog, which images of node-cache before 1.23 have.
const fn log(name: &'static str, value: &'static str) -> Flag {
    Flag { container: Container::Log, ..ignored(name, value, LOGGED) }
}

/// Reason why the two flags for the location of node-cache's Corefile have no effect.
const IN_MEMORY: &str = "the Corefile is built in memory from --basecorefile; --print-corefile shows it";

/// All flags.
pub static FLAGS: &[Flag] = &[
    supported("localip", "IP,...", "Addresses to serve on, of both families; required"),
    supported("basecorefile", "FILE", "Template of the Corefile (/etc/coredns/Corefile.base)"),
    supported("kubednscm", "DIR", "Directory with the ConfigMap of kube-dns (/etc/kube-dns, if it exists)"),
    supported("upstreamsvc", "SERVICE", "Service that answers queries for cluster names (kube-dns)"),
    supported("setupinterface", "", "Create an interface with the addresses (true)"),
    supported("interfacename", "NAME", "Name of the interface (nodelocaldns)"),
    supported("setupiptables", "", "Set rules that exclude DNS on the node from connection tracking (true)"),
    supported("syncinterval", "DURATION", "Interval between checks of interface and rules; at most 1s"),
    supported("metrics-listen-address", "ADDR:PORT", "Address of the metrics about the node setup (0.0.0.0:9353)"),
    supported("health-port", "PORT", "Port of the health check, also excluded from connection tracking (8080)"),
    supported("skipteardown", "", "Keep interface and rules on exit (false)"),
    supported("dns.port", "PORT", "DNS port (53)"),
    supported("p", "PORT", "DNS port, if --dns.port is not set"),
    supported("pidfile", "FILE", "Write the process ID to this file, and remove the file on exit"),
    supported("quiet", "", "Do not print zones and version at startup"),
    supported("version", "", "Print the version and exit"),
    supported("domain", "ZONE", "Replacement for __PILLAR__DNS__DOMAIN__ in the template (cluster.local)"),
    supported("interfacekind", "KIND", "tun, dummy, or auto: tun if possible (auto)"),
    supported("rules", "KIND", "nftables, iptables, or auto: nftables if the kernel supports it (auto)"),
    supported("log-format", "FORM", "Log format: text, as CoreDNS writes it, or json, one object per line (text)"),
    supported("print-corefile", "", "Print the Corefile that would be served and exit"),
    ignored("conf", "FILE", IN_MEMORY),
    ignored("corefile", "FILE", IN_MEMORY),
    ignored(
        "reloadwithsignal",
        "",
        "changes take effect within a second, without a signal and without losing the cache",
    ),
    ignored("plugins", "", "`portolan -plugins` lists them"),
    ignored("initialdelay", "DURATION", "rules are set as soon as the cache serves"),
    ignored("setupebtables", "", "the rules match bridged packets too if the kernel passes them to its IP layer"),
    log("v", "LEVEL"),
    log("vmodule", "LEVELS"),
    log("logtostderr", ""),
    log("alsologtostderr", ""),
    log("stderrthreshold", "LEVEL"),
    log("log-dir", "DIR"),
    log("log-link", "DIR"),
    log("logbuflevel", "LEVEL"),
    log("log-backtrace-at", "FILE:LINE"),
];
