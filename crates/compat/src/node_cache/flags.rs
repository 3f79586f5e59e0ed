//! Flags of node-cache, and some of Portolan's own. One table serves the parser, the help and the documentation.

use crate::kube_dns::{Container, Flag};

const fn works(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, of: Container::Own, help, instead: None }
}

const fn void(name: &'static str, value: &'static str, instead: &'static str) -> Flag {
    Flag { name, value, of: Container::Own, help: "Accepted", instead: Some(instead) }
}

/// Reason why the two flags for the location of node-cache's Corefile have no effect.
const IN_MEMORY: &str = "the Corefile is built in memory from --basecorefile; --print-corefile shows it";

/// All flags.
pub static FLAGS: &[Flag] = &[
    works("localip", "IP,...", "Addresses to serve on, all of one family; required"),
    works("basecorefile", "FILE", "Template of the Corefile (/etc/coredns/Corefile.base)"),
    works("kubednscm", "DIR", "Directory with the ConfigMap of kube-dns (/etc/kube-dns, if it exists)"),
    works("upstreamsvc", "SERVICE", "Service that answers queries for cluster names (kube-dns)"),
    works("setupinterface", "", "Create an interface with the addresses (true)"),
    works("interfacename", "NAME", "Name of the interface (nodelocaldns)"),
    works("setupiptables", "", "Set rules that exclude DNS on the node from connection tracking (true)"),
    works("syncinterval", "DURATION", "Interval between checks of interface and rules; at most 1s"),
    works("metrics-listen-address", "ADDR:PORT", "Address of the metrics about the node setup (0.0.0.0:9353)"),
    works("health-port", "PORT", "Port of the health check, also excluded from connection tracking (8080)"),
    works("skipteardown", "", "Keep interface and rules on exit (false)"),
    works("dns.port", "PORT", "DNS port (53)"),
    works("pidfile", "FILE", "Write the process ID to this file, and remove the file on exit"),
    works("quiet", "", "Do not print zones and version at startup"),
    works("version", "", "Print the version and exit"),
    works("domain", "ZONE", "Replacement for __PILLAR__DNS__DOMAIN__ in the template (cluster.local)"),
    works("interfacekind", "KIND", "tun, dummy, or auto: tun if possible (auto)"),
    works("rules", "KIND", "nftables, iptables, or auto: nftables if the kernel supports it (auto)"),
    works("log-format", "FORM", "Log format: text, as CoreDNS writes it, or json, one object per line (text)"),
    works("print-corefile", "", "Print the Corefile that would be served and exit"),
    void("conf", "FILE", IN_MEMORY),
    void("corefile", "FILE", IN_MEMORY),
    void("reloadwithsignal", "", "changes take effect within a second, without a signal and without losing the cache"),
    void("plugins", "", "`portolan -plugins` lists them"),
    void("v", "LEVEL", "the log is standard output, one event per line"),
    void("logtostderr", "", "the log is standard output, one event per line"),
];
