//! The plugins: a folder each, and their order.
//!
//! The order of a chain is behaviour that users rely on: it is CoreDNS's, whatever the order in the Corefile. The list
//! below is the only registry; adding a plugin is a folder and one line.

mod autopath;
mod bind;
mod cache;
mod classify;
mod common;
mod errors;
mod exposed;
mod forward;
mod health;
mod hosts;
mod k8s_external;
mod kubernetes;
mod loadbalance;
mod log;
mod r#loop;
mod prometheus;
mod ready;
mod reload;
mod service_records;
mod whoami;

pub use forward::HostLookup;
pub use hosts::FileTimes;
pub use kubernetes::LocalAddresses;
pub use reload::{FAILED as RELOAD_FAILED, VERSION as RELOAD_VERSION};

use common::{go_duration, listen_address, no_arguments};
use engine::Slot::{self, Here, Later};

/// All directives of CoreDNS, in the order of the chain from its top to its bottom.
pub static DIRECTIVES: &[Slot] = &[
    Later("root"),
    Later("metadata"),
    Later("geoip"),
    Later("cancel"),
    Later("proxyproto"),
    Later("quic"),
    Later("grpc_server"),
    Later("https"),
    Later("https3"),
    Later("timeouts"),
    Later("multisocket"),
    Here(&reload::MANIFEST),
    Later("nsid"),
    Later("bufsize"),
    Here(&bind::MANIFEST),
    Later("debug"),
    Later("trace"),
    Here(&ready::MANIFEST),
    Here(&health::MANIFEST),
    Later("pprof"),
    Later("shed"),
    Here(&prometheus::MANIFEST),
    Here(&errors::MANIFEST),
    Here(&log::MANIFEST),
    Later("dnstap"),
    Later("local"),
    Later("dns64"),
    Later("any"),
    Later("chaos"),
    Here(&loadbalance::MANIFEST),
    Later("tsig"),
    Later("rewrite"),
    Here(&autopath::MANIFEST),
    Later("acl"),
    Here(&cache::MANIFEST),
    Later("header"),
    Later("dnssec"),
    Later("tls"),
    Later("minimal"),
    Later("template"),
    Later("transfer"),
    Here(&hosts::MANIFEST),
    Later("route53"),
    Later("azure"),
    Later("clouddns"),
    Here(&k8s_external::MANIFEST),
    Here(&kubernetes::MANIFEST),
    Later("file"),
    Later("auto"),
    Later("secondary"),
    Later("etcd"),
    Here(&r#loop::MANIFEST),
    Here(&forward::MANIFEST),
    Later("grpc"),
    Later("erratic"),
    Here(&whoami::MANIFEST),
    Later("on"),
    Later("sign"),
    Later("view"),
    Later("nomad"),
];

#[cfg(test)]
mod tests {
    use super::DIRECTIVES;

    /// CoreDNS 1.14.7's order.
    const ORDER: &str = "root metadata geoip cancel proxyproto quic grpc_server https https3 timeouts multisocket reload \
        nsid bufsize bind debug trace ready health pprof shed prometheus errors log dnstap local dns64 any chaos \
        loadbalance tsig rewrite autopath acl cache header dnssec tls minimal template transfer hosts route53 azure \
        clouddns k8s_external kubernetes file auto secondary etcd loop forward grpc erratic whoami on sign view nomad";

    #[test]
    fn the_order_is_coredns_s() {
        let names: Vec<_> = DIRECTIVES.iter().map(engine::Slot::name).collect();
        assert_eq!(names, ORDER.split_whitespace().collect::<Vec<_>>());
    }
}
