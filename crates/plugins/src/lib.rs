//! Plugins, one directory each in `plugins`, and their order. Those that most clusters use are in `common_plugins`.
//!
//! The order of the chain is behaviour that users rely on: it is that of CoreDNS, independent of the order in the
//! Corefile. The list [`DIRECTIVES`] is the only registry. CONTRIBUTING.md lists the steps to add a plugin.
//!
//! # A plugin from start to end
//!
//! The directive `greet TEXT` answers TXT queries with a text, and passes all other queries on. A plugin of this crate
//! has the same parts in `plugins/NAME/mod.rs`: the options and how they are parsed, the declaration, the function that
//! builds the plugin, and its hooks. Its README and its scenarios are files of the same directory.
//!
//! ```
//! use config::DirectiveEntry::Available;
//! use config::Directives;
//! use config::options::{Args, Manifest, Problem};
//! use config::setup::{Part, Setup, SetupError};
//! use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
//! use wire::{Class, Owner, Section, Type};
//!
//! /// Options of the directive.
//! #[derive(Default)]
//! struct Greet {
//!     text: Vec<u8>,
//! }
//!
//! fn read(greet: &mut Greet, args: &mut Args<'_>) -> Result<(), Problem> {
//!     let word = args.word()?;
//!     // A string in a TXT record has at most 255 bytes (RFC 1035 §3.3).
//!     if word.text.len() > 255 {
//!         return Err(args.bad(word, "a text of at most 255 bytes"));
//!     }
//!     greet.text = word.text.clone().into_bytes();
//!     Ok(())
//! }
//!
//! static MANIFEST: Manifest<Greet> =
//!     Manifest::new("greet", "answer TXT queries", Greet::default, build).arguments("greet TEXT", read);
//!
//! /// Gets the options of each line; there is one, because the manifest does not allow more.
//! fn build(lines: Vec<Greet>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
//!     Ok(lines.into_iter().next().map(|greet| Part::new(greet, Hooks::DOWN)))
//! }
//!
//! impl Plugin for Greet {
//!     fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
//!         if query.qtype != Type::TXT {
//!             return Verdict::Pass;
//!         }
//!         response.set_authoritative(true);
//!         // The answer is in memory, so *cache* gains nothing from storing it.
//!         response.set_local();
//!         response.message.push(Section::Answer, Owner::Question, (Type::TXT, Class::IN, 60), |rdata| {
//!             rdata.character_string(&self.text);
//!         });
//!         Verdict::Done
//!     }
//! }
//!
//! let scenario = r#"
//! corefile
//!     . {
//!         greet hello
//!         records test {
//!             www.test. 60 IN A 192.0.2.1
//!         }
//!     }
//! ask www.test. TXT
//!     NOERROR aa rd
//!     www.test. 60 IN TXT hello
//! ask www.test. A
//!     NOERROR aa rd
//!     www.test. 60 IN A 192.0.2.1
//! "#;
//! static DIRECTIVES: Directives = Directives::new(&[Available(&MANIFEST), testkit::toys::RECORDS]);
//! let problems = testkit::run_text(scenario, DIRECTIVES, &[]);
//! assert!(problems.is_empty(), "{problems:?}");
//! ```

mod planned_directives;
mod plugins;
mod removed_directives;
mod shared;

pub use common_plugins::shared::option_helpers::{HostName, metrics_page};
pub use common_plugins::shared::record_text::record_text;
pub use common_plugins::{
    CACHE_MEMORY, ENABLED_METRICS, HostLookup, LocalAddresses, OVER_TCP, QueryFields, RELOAD_FAILED, RELOAD_VERSION,
    reason_codes,
};
pub use plugins::dynupdate::{FilePlace, OpenedZoneFile, ZoneFile, ZoneStorage};
pub use plugins::pprof::{CpuProfile, Module, ProfileError, Profiler, Stack};
pub use plugins::shadow::{FrameReader, Mirrored, StreamFrame, read_client_response};
pub use shared::frame_streams::FrameError;
pub use shared::zone_store::ZoneMemory;

use config::DirectiveEntry::{Available, Planned, Removed};
use config::Directives;

use plugins::{
    auto, cancel, chaos, control, ddr, dns64, dnssec, dnstap, dynupdate, erratic, etcd, federations, file, geoip, grpc,
    grpc_server, https, https3, istio, k8s_external, kubedns, metadata, multisocket, on, pprof, probe, proxyproto,
    quic, root, rrl, secondary, shadow, shed, sign, siit, timeouts, tls, trace, transfer, tsig, view, whoami,
};

/// All directives in the order of the chain, from top to bottom: CoreDNS's with ours in between, then the removed and
/// the external ones.
pub static DIRECTIVES: Directives = Directives::new(&[
    Available(&root::MANIFEST),
    Available(&metadata::MANIFEST),
    Available(&geoip::MANIFEST),
    Available(&cancel::MANIFEST),
    Available(&proxyproto::MANIFEST),
    Available(&quic::MANIFEST),
    Available(&grpc_server::MANIFEST),
    Available(&https::MANIFEST),
    Available(&https3::MANIFEST),
    Available(&timeouts::MANIFEST),
    Available(&multisocket::MANIFEST),
    common_plugins::RELOAD,
    common_plugins::NSID,
    common_plugins::BUFSIZE,
    common_plugins::BIND,
    common_plugins::DEBUG,
    Available(&trace::MANIFEST),
    common_plugins::READY,
    common_plugins::HEALTH,
    Available(&probe::MANIFEST),
    Available(&pprof::MANIFEST),
    Available(&control::MANIFEST),
    Available(&shed::MANIFEST),
    common_plugins::PROMETHEUS,
    Available(&kubedns::MANIFEST),
    common_plugins::ERRORS,
    common_plugins::LOG,
    Available(&dnstap::MANIFEST),
    Available(&shadow::MANIFEST),
    Available(&rrl::MANIFEST),
    common_plugins::LOCAL,
    Available(&ddr::MANIFEST),
    Available(&dns64::MANIFEST),
    Available(&siit::MANIFEST),
    common_plugins::ANY,
    Available(&chaos::MANIFEST),
    common_plugins::LOADBALANCE,
    Available(&tsig::MANIFEST),
    common_plugins::REWRITE,
    common_plugins::AUTOPATH,
    common_plugins::ACL,
    common_plugins::CACHE,
    common_plugins::HEADER,
    Available(&dnssec::MANIFEST),
    Available(&tls::MANIFEST),
    common_plugins::MINIMAL,
    common_plugins::TEMPLATE,
    Available(&transfer::MANIFEST),
    Available(&dynupdate::MANIFEST),
    common_plugins::HOSTS,
    Planned(&planned_directives::ROUTE53),
    Planned(&planned_directives::AZURE),
    Planned(&planned_directives::CLOUDDNS),
    Available(&federations::MANIFEST),
    Available(&k8s_external::MANIFEST),
    common_plugins::KUBERNETES,
    Available(&istio::MANIFEST),
    Available(&file::MANIFEST),
    Available(&auto::MANIFEST),
    Available(&secondary::MANIFEST),
    Available(&etcd::MANIFEST),
    common_plugins::LOOP,
    common_plugins::FORWARD,
    Available(&grpc::MANIFEST),
    Available(&erratic::MANIFEST),
    Available(&whoami::MANIFEST),
    Available(&on::MANIFEST),
    Available(&sign::MANIFEST),
    Available(&view::MANIFEST),
    Planned(&planned_directives::NOMAD),
    Removed(&removed_directives::PROXY),
    Removed(&removed_directives::FEDERATION),
    Removed(&removed_directives::REVERSE),
    Removed(&removed_directives::STARTUP),
    Removed(&removed_directives::SHUTDOWN),
    Removed(&removed_directives::HTTPPROXY),
    Removed(&removed_directives::ALTERNATE),
    Removed(&removed_directives::FANOUT),
    Removed(&removed_directives::UNBOUND),
    Removed(&removed_directives::DNSREDIR),
    Removed(&removed_directives::KUBERNETAI),
    Removed(&removed_directives::K8S_GATEWAY),
    Removed(&removed_directives::RECORDS),
    Removed(&removed_directives::BLOCKER),
    Removed(&removed_directives::ADS),
    Removed(&removed_directives::FINALIZE),
    Removed(&removed_directives::REDISC),
    Removed(&removed_directives::MDNS),
    Removed(&removed_directives::OCP_DNSNAMERESOLVER),
    Removed(&removed_directives::MULTICLUSTER),
    Removed(&removed_directives::LIGHTHOUSE),
    Removed(&removed_directives::REDIS),
    Removed(&removed_directives::NETBOX),
    Removed(&removed_directives::DOCKER),
    Removed(&removed_directives::TAILSCALE),
    Removed(&removed_directives::KUADRANT),
    Removed(&removed_directives::SQLITE),
]);

#[cfg(test)]
mod tests {
    use super::{DIRECTIVES, Removed};

    /// Order of CoreDNS 1.15.0.
    const ORDER: &str = "root metadata geoip cancel proxyproto quic grpc_server https https3 timeouts multisocket \
                         reload nsid bufsize bind debug trace ready health pprof shed prometheus errors log dnstap \
                         local dns64 siit any chaos loadbalance tsig rewrite autopath acl cache header dnssec tls \
                         minimal template transfer dynupdate hosts route53 azure clouddns k8s_external kubernetes \
                         file auto secondary etcd loop forward grpc erratic whoami on sign view nomad";

    /// Directives that CoreDNS does not have, each with the one that it directly follows.
    const OURS: &[(&str, &str)] = &[
        ("probe", "health"),
        ("kubedns", "prometheus"),
        ("ddr", "local"),
        ("control", "pprof"),
        ("shadow", "dnstap"),
        ("rrl", "shadow"),
        ("federations", "clouddns"),
        ("istio", "kubernetes"),
    ];

    #[test]
    fn follows_the_order_of_coredns() {
        let is_ours = |name: &&str| OURS.iter().any(|(ours, _)| ours == name);
        let names: Vec<_> = DIRECTIVES
            .entries()
            .iter()
            .filter(|entry| !matches!(entry, Removed(_)))
            .map(config::DirectiveEntry::name)
            .filter(|name| !is_ours(name))
            .collect();
        let order: Vec<_> = ORDER.split_whitespace().collect();
        let unknown: Vec<_> = names.iter().filter(|name| !order.contains(name)).collect();
        assert!(unknown.is_empty(), "not in CoreDNS: {unknown:?}; add each to OURS, with the directive before it");
        assert_eq!(names, order);
    }

    #[test]
    fn a_chain_of_all_plugins_fits_into_steps_max() {
        let makes_step = |entry: &&config::DirectiveEntry| match entry {
            config::DirectiveEntry::Available(directive) => !directive.traits().has_no_handler,
            _ => false,
        };
        let steps = DIRECTIVES.entries().iter().filter(makes_step).count();
        assert!(steps <= engine::STEPS_MAX, "{steps}: `Transaction::passed` needs a wider word");
    }

    #[test]
    fn directives_unknown_to_coredns_follow_their_neighbours() {
        let names: Vec<_> = DIRECTIVES.entries().iter().map(config::DirectiveEntry::name).collect();
        for (ours, before) in OURS {
            assert!(names.windows(2).any(|two| two == [*before, *ours]), "{ours} follows {before}");
        }
    }
}
