//! Flags of node-cache, and some of Portolan's own. One table serves the parser, the help and the documentation.

use kubedns::{Container, Flag};

const fn works(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, of: Container::Own, help, instead: None }
}

const fn void(name: &'static str, value: &'static str, instead: &'static str) -> Flag {
    Flag { name, value, of: Container::Own, help: "Accepted", instead: Some(instead) }
}

/// Reason why the two flags for the location of node-cache's Corefile have no effect.
const IN_MEMORY: &str = "the Corefile is made in memory from --basecorefile, and --print-corefile shows it";

/// All flags.
pub static FLAGS: &[Flag] = &[
    works("localip", "IP,...", "The addresses to serve on, all of one family; must be given"),
    works("basecorefile", "FILE", "The template of the Corefile (/etc/coredns/Corefile.base)"),
    works("kubednscm", "DIR", "The ConfigMap of kube-dns as a directory (/etc/kube-dns, if there is one)"),
    works("upstreamsvc", "SERVICE", "The Service that is asked about names of the cluster (kube-dns)"),
    works("setupinterface", "", "Make an interface with the addresses (true)"),
    works("interfacename", "NAME", "Its name (nodelocaldns)"),
    works("setupiptables", "", "Set rules that keep DNS on the node out of connection tracking (true)"),
    works("syncinterval", "DURATION", "How often interface and rules are looked at; never less often than each second"),
    works("metrics-listen-address", "ADDR:PORT", "Where the metrics of the node's set-up are (0.0.0.0:9353)"),
    works("health-port", "PORT", "The port of the health check, kept out of connection tracking too (8080)"),
    works("skipteardown", "", "Leave interface and rules at the end (false)"),
    works("dns.port", "PORT", "The port of DNS (53)"),
    works("pidfile", "FILE", "Write the process id to this file, and remove it at the end"),
    works("quiet", "", "Say nothing about zones and version at the start"),
    works("version", "", "Print the version and end"),
    works("domain", "ZONE", "What __PILLAR__DNS__DOMAIN__ stands for, where it still stands (cluster.local)"),
    works("interfacekind", "KIND", "tun, dummy, or auto: tun where that is possible (auto)"),
    works("rules", "KIND", "nftables, iptables, or auto: nftables where the kernel has it (auto)"),
    works("print-corefile", "", "Print the Corefile that would be served and end"),
    void("conf", "FILE", IN_MEMORY),
    void("corefile", "FILE", IN_MEMORY),
    void("reloadwithsignal", "", "what changes is taken up within a second, without a signal and with what is cached"),
    void("plugins", "", "`portolan -plugins` lists them"),
    void("v", "LEVEL", "the log is standard output, a line an event"),
    void("logtostderr", "", "the log is standard output, a line an event"),
];
