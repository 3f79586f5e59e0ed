//! Plugins, one directory each in `plugins`, and their order. Code that several of them use is in `shared`.
//!
//! The order of the chain is behaviour that users rely on: it is that of CoreDNS, independent of the order in the
//! Corefile. The list below is the only registry. To add a plugin, add a directory and one
//! line.

mod planned_directives;
mod plugins;
mod removed_directives;
mod shared;

pub use plugins::forward::HostLookup;
pub use plugins::kubernetes::LocalAddresses;
pub use plugins::pprof::{CpuProfile, Frame, Profiler, Stack};
pub use plugins::reload::{FAILED as RELOAD_FAILED, VERSION as RELOAD_VERSION};
pub use shared::option_helpers::{HostName, metrics_page};

use config::Slot::{self, Gone, Here, Later};
use plugins::{
    acl, any, auto, autopath, bind, bufsize, cache, cancel, chaos, debug, dns64, dnssec, dnstap, erratic, errors, etcd,
    federations, file, forward, geoip, grpc, grpc_server, header, health, hosts, istio, k8s_external, kubedns,
    kubernetes, loadbalance, local, log, r#loop, metadata, minimal, multisocket, nsid, on, pprof, probe, prometheus,
    proxyproto, ready, reload, rewrite, root, secondary, shed, sign, template, timeouts, tls, trace, transfer, tsig,
    view, whoami,
};

/// All directives in the order of the chain, from top to bottom: CoreDNS's with ours in between, then the removed and
/// the external ones.
pub static DIRECTIVES: &[Slot] = &[
    Here(&root::MANIFEST),
    Here(&metadata::MANIFEST),
    Here(&geoip::MANIFEST),
    Here(&cancel::MANIFEST),
    Here(&proxyproto::MANIFEST),
    Later(&planned_directives::QUIC),
    Here(&grpc_server::MANIFEST),
    Later(&planned_directives::HTTPS),
    Later(&planned_directives::HTTPS3),
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
    Later(&planned_directives::ROUTE53),
    Later(&planned_directives::AZURE),
    Later(&planned_directives::CLOUDDNS),
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
    Later(&planned_directives::NOMAD),
    Gone(&removed_directives::PROXY),
    Gone(&removed_directives::FEDERATION),
    Gone(&removed_directives::REVERSE),
    Gone(&removed_directives::STARTUP),
    Gone(&removed_directives::SHUTDOWN),
    Gone(&removed_directives::HTTPPROXY),
    Gone(&removed_directives::ALTERNATE),
    Gone(&removed_directives::FANOUT),
    Gone(&removed_directives::UNBOUND),
    Gone(&removed_directives::DNSREDIR),
    Gone(&removed_directives::KUBERNETAI),
    Gone(&removed_directives::K8S_GATEWAY),
    Gone(&removed_directives::RECORDS),
    Gone(&removed_directives::BLOCKER),
    Gone(&removed_directives::ADS),
    Gone(&removed_directives::FINALIZE),
    Gone(&removed_directives::REDISC),
    Gone(&removed_directives::RRL),
    Gone(&removed_directives::MDNS),
    Gone(&removed_directives::OCP_DNSNAMERESOLVER),
    Gone(&removed_directives::MULTICLUSTER),
    Gone(&removed_directives::LIGHTHOUSE),
    Gone(&removed_directives::REDIS),
    Gone(&removed_directives::NETBOX),
    Gone(&removed_directives::DOCKER),
    Gone(&removed_directives::TAILSCALE),
    Gone(&removed_directives::KUADRANT),
    Gone(&removed_directives::SQLITE),
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
