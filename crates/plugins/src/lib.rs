//! The plugins, one folder each, and their order.
//!
//! The order of the chain is behaviour that users rely on: it is that of CoreDNS, independent of the order in the
//! Corefile. The list below is the only registry. To add a plugin, add a folder and one line.

mod acl;
mod any;
mod asking;
mod authority;
mod auto;
mod autopath;
mod bind;
mod bufsize;
mod cache;
mod cached;
mod cancel;
mod certificates;
mod chaos;
mod classify;
mod common;
mod debug;
mod dns64;
mod dnssec;
mod dnstap;
mod erratic;
mod errors;
mod etcd;
mod exposed;
mod expression;
mod fallthrough;
mod federations;
mod file;
mod forward;
mod geoip;
mod gone;
mod goregexp;
mod gotemplate;
mod grpc;
mod grpc_server;
mod hashed;
mod header;
mod health;
mod hosts;
mod istio;
mod k8s_external;
mod kubedns;
mod kubernetes;
mod later;
mod loadbalance;
mod local;
mod log;
mod r#loop;
mod metadata;
mod minimal;
mod multisocket;
mod nsid;
mod on;
mod outlet;
mod placeholders;
mod pprof;
mod probe;
mod prometheus;
mod protobuf;
mod proxyproto;
mod ready;
mod reload;
mod rewrite;
mod root;
mod secondary;
mod seen;
mod service_records;
mod shed;
mod sign;
mod signing;
mod sites;
mod soa;
mod sources;
mod template;
mod timeouts;
mod tls;
mod trace;
mod transfer;
mod tsig;
mod value;
mod view;
mod whoami;
mod zone_records;

pub use common::{HostName, metrics_page};
pub use forward::HostLookup;
pub use kubernetes::LocalAddresses;
pub use pprof::{CpuProfile, Frame, Profiler, Stack};
pub use reload::{FAILED as RELOAD_FAILED, VERSION as RELOAD_VERSION};

use common::{expression_of, go_duration, listen_address, no_arguments, regular_expression};
use config::Slot::{self, Gone, Here, Later};

/// All directives in the order of the chain, from top to bottom: CoreDNS's with ours in between, then the removed and
/// the external ones.
pub static DIRECTIVES: &[Slot] = &[
    Here(&root::MANIFEST),
    Here(&metadata::MANIFEST),
    Here(&geoip::MANIFEST),
    Here(&cancel::MANIFEST),
    Here(&proxyproto::MANIFEST),
    Later(&later::QUIC),
    Here(&grpc_server::MANIFEST),
    Later(&later::HTTPS),
    Later(&later::HTTPS3),
    Here(&timeouts::MANIFEST),
    Here(&multisocket::MANIFEST),
    Here(&reload::MANIFEST),
    Here(&nsid::MANIFEST),
    Here(&bufsize::MANIFEST),
    Here(&bind::MANIFEST),
    Here(&debug::MANIFEST),
    Here(&trace::MANIFEST),
    Here(&ready::MANIFEST),
    Here(&health::MANIFEST),
    Here(&probe::MANIFEST),
    Here(&pprof::MANIFEST),
    Here(&shed::MANIFEST),
    Here(&prometheus::MANIFEST),
    Here(&kubedns::MANIFEST),
    Here(&errors::MANIFEST),
    Here(&log::MANIFEST),
    Here(&dnstap::MANIFEST),
    Here(&local::MANIFEST),
    Here(&dns64::MANIFEST),
    Here(&any::MANIFEST),
    Here(&chaos::MANIFEST),
    Here(&loadbalance::MANIFEST),
    Here(&tsig::MANIFEST),
    Here(&rewrite::MANIFEST),
    Here(&autopath::MANIFEST),
    Here(&acl::MANIFEST),
    Here(&cache::MANIFEST),
    Here(&header::MANIFEST),
    Here(&dnssec::MANIFEST),
    Here(&tls::MANIFEST),
    Here(&minimal::MANIFEST),
    Here(&template::MANIFEST),
    Here(&transfer::MANIFEST),
    Here(&hosts::MANIFEST),
    Later(&later::ROUTE53),
    Later(&later::AZURE),
    Later(&later::CLOUDDNS),
    Here(&federations::MANIFEST),
    Here(&k8s_external::MANIFEST),
    Here(&kubernetes::MANIFEST),
    Here(&istio::MANIFEST),
    Here(&file::MANIFEST),
    Here(&auto::MANIFEST),
    Here(&secondary::MANIFEST),
    Here(&etcd::MANIFEST),
    Here(&r#loop::MANIFEST),
    Here(&forward::MANIFEST),
    Here(&grpc::MANIFEST),
    Here(&erratic::MANIFEST),
    Here(&whoami::MANIFEST),
    Here(&on::MANIFEST),
    Here(&sign::MANIFEST),
    Here(&view::MANIFEST),
    Later(&later::NOMAD),
    Gone(&gone::PROXY),
    Gone(&gone::FEDERATION),
    Gone(&gone::REVERSE),
    Gone(&gone::STARTUP),
    Gone(&gone::SHUTDOWN),
    Gone(&gone::HTTPPROXY),
    Gone(&gone::ALTERNATE),
    Gone(&gone::FANOUT),
    Gone(&gone::UNBOUND),
    Gone(&gone::DNSREDIR),
    Gone(&gone::KUBERNETAI),
    Gone(&gone::K8S_GATEWAY),
    Gone(&gone::RECORDS),
    Gone(&gone::BLOCKER),
    Gone(&gone::ADS),
    Gone(&gone::FINALIZE),
    Gone(&gone::REDISC),
    Gone(&gone::RRL),
    Gone(&gone::MDNS),
    Gone(&gone::OCP_DNSNAMERESOLVER),
    Gone(&gone::MULTICLUSTER),
    Gone(&gone::LIGHTHOUSE),
    Gone(&gone::REDIS),
    Gone(&gone::NETBOX),
    Gone(&gone::DOCKER),
    Gone(&gone::TAILSCALE),
    Gone(&gone::KUADRANT),
    Gone(&gone::SQLITE),
];

#[cfg(test)]
mod tests {
    use super::{DIRECTIVES, Gone};

    /// Order of CoreDNS 1.14.7.
    const ORDER: &str = "root metadata geoip cancel proxyproto quic grpc_server https https3 timeouts multisocket reload \
        nsid bufsize bind debug trace ready health pprof shed prometheus errors log dnstap local dns64 any chaos \
        loadbalance tsig rewrite autopath acl cache header dnssec tls minimal template transfer hosts route53 azure \
        clouddns k8s_external kubernetes file auto secondary etcd loop forward grpc erratic whoami on sign view nomad";

    /// Directives that CoreDNS does not have, each with the one that it directly follows.
    const OURS: &[(&str, &str)] =
        &[("probe", "health"), ("kubedns", "prometheus"), ("federations", "clouddns"), ("istio", "kubernetes")];

    #[test]
    fn follows_the_order_of_coredns() {
        let is_ours = |name: &&str| OURS.iter().any(|(ours, _)| ours == name);
        let names: Vec<_> = DIRECTIVES
            .iter()
            .filter(|slot| !matches!(slot, Gone(_)))
            .map(config::Slot::name)
            .filter(|name| !is_ours(name))
            .collect();
        assert_eq!(names, ORDER.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn a_chain_of_all_plugins_fits_into_steps_max() {
        let served = DIRECTIVES.iter().filter(|slot| matches!(slot, config::Slot::Here(_))).count();
        assert!(served <= engine::STEPS_MAX, "{served}: `Walk::passed` needs a wider word");
    }

    #[test]
    fn directives_unknown_to_coredns_follow_their_neighbours() {
        let names: Vec<_> = DIRECTIVES.iter().map(config::Slot::name).collect();
        for (ours, before) in OURS {
            assert!(names.windows(2).any(|two| two == [*before, *ours]), "{ours} follows {before}");
        }
    }
}
