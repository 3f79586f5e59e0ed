//! Directives that Corefiles contain but CoreDNS 1.14 does not have: removed ones, and external plugins that need a
//! custom build.

use config::RemovedDirective;

/// A plugin that CoreDNS removed in `version`.
const fn removed(name: &'static str, version: &'static str, instead: &'static str) -> RemovedDirective {
    RemovedDirective { name, removed_in: Some(version), instead }
}

/// An external plugin that was never part of CoreDNS.
const fn foreign(name: &'static str, instead: &'static str) -> RemovedDirective {
    RemovedDirective { name, removed_in: None, instead }
}

pub static PROXY: RemovedDirective = removed(
    "proxy",
    "1.5",
    "write `forward FROM TO...`: keep `except` and `policy`, remove `spray`, `fail_timeout` and `protocol`; \
     `tls://` before an address and `force_tcp` in the block replace `protocol`",
);
pub(crate) static FEDERATION: RemovedDirective = removed(
    "federation",
    "1.7",
    "remove it: Kubernetes no longer has federation v1; use `multicluster` in `kubernetes` for Services of several \
     clusters, or the directive `federations` if clients still use federated names",
);
pub static REVERSE: RemovedDirective =
    removed("reverse", "1.2", "write `template IN PTR` and `template IN A` for the zones");
pub(crate) static STARTUP: RemovedDirective = removed("startup", "1.1", "write `on startup COMMAND`");
pub(crate) static SHUTDOWN: RemovedDirective = removed("shutdown", "1.1", "write `on shutdown COMMAND`");
pub(crate) static HTTPPROXY: RemovedDirective =
    removed("httpproxy", "005", "write `forward . tls://ADDRESS` with `tls_servername`");

pub(crate) static ALTERNATE: RemovedDirective =
    foreign("alternate", "write two `forward` lines, the first with `next RCODE...`");
pub(crate) static FANOUT: RemovedDirective =
    foreign("fanout", "write `forward`, which tries the next upstream if one fails");
pub static UNBOUND: RemovedDirective = foreign("unbound", "write `forward` to a resolver");
pub(crate) static DNSREDIR: RemovedDirective =
    foreign("dnsredir", "write `forward` for each zone, or `forward` with `except`");
pub(crate) static KUBERNETAI: RemovedDirective =
    foreign("kubernetai", "write a server block with `kubernetes` for each cluster");
pub(crate) static K8S_GATEWAY: RemovedDirective =
    foreign("k8s_gateway", "use `k8s_external` for Services; Ingress and Gateway are not supported");
pub static RECORDS: RemovedDirective =
    foreign("records", "write `hosts` for addresses, `file` or `template` for other records");
pub(crate) static BLOCKER: RemovedDirective =
    foreign("blocker", "write `hosts` with the names, or `template` with `rcode NXDOMAIN`");
pub(crate) static ADS: RemovedDirective =
    foreign("ads", "write `hosts` with the names, or `template` with `rcode NXDOMAIN`");
pub(crate) static FINALIZE: RemovedDirective =
    foreign("finalize", "remove it: this server resolves the targets of CNAME records that it serves");
pub(crate) static REDISC: RemovedDirective = foreign("redisc", "write `cache`: its entries survive a reload");
pub(crate) static MDNS: RemovedDirective = foreign("mdns", "");
pub(crate) static OCP_DNSNAMERESOLVER: RemovedDirective = foreign("ocp_dnsnameresolver", "");
pub static MULTICLUSTER: RemovedDirective =
    foreign("multicluster", "write `multicluster` in the block of `kubernetes`");
pub(crate) static LIGHTHOUSE: RemovedDirective =
    foreign("lighthouse", "write `multicluster` in the block of `kubernetes`");
pub(crate) static REDIS: RemovedDirective = foreign("redis", "");
pub(crate) static NETBOX: RemovedDirective = foreign("netbox", "");
pub(crate) static DOCKER: RemovedDirective = foreign("docker", "");
pub(crate) static TAILSCALE: RemovedDirective = foreign("tailscale", "");
pub(crate) static KUADRANT: RemovedDirective = foreign("kuadrant", "");
pub(crate) static SQLITE: RemovedDirective = foreign("sqlite", "");
