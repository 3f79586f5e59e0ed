//! [`CorefileGenerator`] of the kube-dns pod: its flags, and the resolver for name servers that its ConfigMap names.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use compat::kube_dns::{ConfigMapSettings, ConfigMapSource, HostNames, Settings};

use crate::generated_corefile::{CLUSTER_DOMAIN, CorefileGenerator, RESOLV_CONF, is_cluster_name};

/// Address at which the kube-dns container serves the other containers of its pod.
const KUBE_DNS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10053);

impl CorefileGenerator for Settings {
    fn name(&self) -> &'static str {
        "kube-dns"
    }

    fn source(&self) -> &ConfigMapSource {
        &self.source
    }

    fn cluster(&self) -> cluster::Source {
        let kubeconfig = self.kube_dns.as_ref().and_then(|kube_dns| kube_dns.kubeconfig.as_ref());
        match (kubeconfig, self.kube_dns.as_ref().and_then(|kube_dns| kube_dns.api_server.as_ref())) {
            (Some(file), _) => cluster::Source::Kubeconfig { file: file.into(), context: None },
            (None, Some(url)) => cluster::Source::Endpoint { url: url.clone(), tls: None },
            (None, None) => cluster::Source::InCluster,
        }
    }

    fn named_hosts(&self, config_map: &ConfigMapSettings) -> BTreeSet<String> {
        compat::kube_dns::named_hosts(self, config_map)
    }

    fn resolver(&self, name: &str) -> Option<SocketAddr> {
        let domain = self.kube_dns.as_ref().map_or(CLUSTER_DOMAIN, |kube_dns| &kube_dns.domain);
        if !is_cluster_name(name, domain) {
            return None;
        }
        let own = self
            .kube_dns
            .as_ref()
            .map(|kube_dns| SocketAddr::new(kube_dns.bind.unwrap_or(Ipv4Addr::LOCALHOST.into()), kube_dns.port));
        Some(self.cluster_server.or(own).unwrap_or(KUBE_DNS))
    }

    fn resolv_conf(&self) -> Option<PathBuf> {
        match &self.dnsmasq {
            Some(dnsmasq) => dnsmasq.resolv_conf.as_ref().map(PathBuf::from),
            None => self.kube_dns.is_some().then(|| RESOLV_CONF.into()),
        }
    }

    fn corefile(&self, config_map: &ConfigMapSettings, hosts: HostNames<'_>) -> String {
        compat::kube_dns::corefile(self, config_map, hosts)
    }
}

#[cfg(test)]
mod tests {
    use compat::kube_dns::{CommandLine, Program};

    use super::*;

    /// Returns the settings of the pod with these flags.
    fn settings(flags: &str) -> Settings {
        let words = CommandLine::parse(flags.split(' ').map(str::to_owned), Program::Pod.flags()).unwrap();
        Settings::read(Program::Pod, &words, &|_| None).unwrap().0
    }

    #[test]
    fn resolves_cluster_names_itself_and_others_with_the_system_resolver() {
        let settings = settings("--domain=k8s.example --dns-port=5300");
        let own = Some(SocketAddr::from(([127, 0, 0, 1], 5300)));
        assert_eq!(settings.resolver("ns.prod.svc.k8s.example"), own);
        // dnsmasq-nanny resolved `cluster.local` with kube-dns, whatever the domain was.
        assert_eq!(settings.resolver("ns.prod.svc.cluster.local"), own);
        assert_eq!(settings.resolver("ns.notk8s.example"), None);
        assert_eq!(settings.resolver("ns.example.org"), None);
    }
}
