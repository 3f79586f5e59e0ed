//! Directives that Corefiles contain but CoreDNS 1.14 does not have: removed ones, and external plugins that need a
//! custom build.

use config::Gone;

/// A plugin that CoreDNS removed in `version`.
const fn removed(name: &'static str, version: &'static str, instead: &'static str) -> Gone {
    Gone { name, removed_in: Some(version), instead }
}

/// An external plugin that was never part of CoreDNS.
const fn foreign(name: &'static str, instead: &'static str) -> Gone {
    Gone { name, removed_in: None, instead }
}

pub static PROXY: Gone = removed(
    "proxy",
    "1.5",
    "write `forward FROM TO...`: keep `except` and `policy`, remove `spray`, `fail_timeout` and `protocol`; \
     `tls://` before an address and `force_tcp` in the block replace `protocol`",
);
pub static FEDERATION: Gone = removed(
    "federation",
    "1.7",
    "remove it: Kubernetes no longer has federation v1; use `multicluster` in `kubernetes` for Services of several \
     clusters, or the directive `federations` if clients still use federated names",
);
pub static REVERSE: Gone = removed("reverse", "1.2", "write `template IN PTR` and `template IN A` for the zones");
pub static STARTUP: Gone = removed("startup", "1.1", "write `on startup COMMAND`");
pub static SHUTDOWN: Gone = removed("shutdown", "1.1", "write `on shutdown COMMAND`");
pub static HTTPPROXY: Gone = removed("httpproxy", "005", "write `forward . tls://ADDRESS` with `tls_servername`");

pub static ALTERNATE: Gone = foreign("alternate", "write two `forward` lines, the first with `next RCODE...`");
pub static FANOUT: Gone = foreign("fanout", "write `forward`, which tries the next upstream if one fails");
pub static UNBOUND: Gone = foreign("unbound", "write `forward` to a resolver");
pub static DNSREDIR: Gone = foreign("dnsredir", "write `forward` for each zone, or `forward` with `except`");
pub static KUBERNETAI: Gone = foreign("kubernetai", "write a server block with `kubernetes` for each cluster");
pub static K8S_GATEWAY: Gone =
    foreign("k8s_gateway", "use `k8s_external` for Services; Ingress and Gateway are not supported");
pub static RECORDS: Gone = foreign("records", "write `hosts` for addresses, `file` or `template` for other records");
pub static BLOCKER: Gone = foreign("blocker", "write `hosts` with the names, or `template` with `rcode NXDOMAIN`");
pub static ADS: Gone = foreign("ads", "write `hosts` with the names, or `template` with `rcode NXDOMAIN`");
pub static FINALIZE: Gone =
    foreign("finalize", "remove it: this server resolves the targets of CNAME records that it serves");
pub static REDISC: Gone = foreign("redisc", "write `cache`: its entries survive a reload");
pub static RRL: Gone = foreign("rrl", "");
pub static MDNS: Gone = foreign("mdns", "");
pub static OCP_DNSNAMERESOLVER: Gone = foreign("ocp_dnsnameresolver", "");
pub static MULTICLUSTER: Gone = foreign("multicluster", "write `multicluster` in the block of `kubernetes`");
pub static LIGHTHOUSE: Gone = foreign("lighthouse", "write `multicluster` in the block of `kubernetes`");
pub static REDIS: Gone = foreign("redis", "");
pub static NETBOX: Gone = foreign("netbox", "");
pub static DOCKER: Gone = foreign("docker", "");
pub static TAILSCALE: Gone = foreign("tailscale", "");
pub static KUADRANT: Gone = foreign("kuadrant", "");
pub static SQLITE: Gone = foreign("sqlite", "");
