//! Resolver settings of this machine: `/etc/resolv.conf`.

use std::net::{IpAddr, SocketAddr};

use upstream::ScopedAddress;

/// File with name servers and search list, resolv.conf(5).
const FILE: &str = "/etc/resolv.conf";
/// Maximum number of bytes that are read of a file of this form.
const FILE_MAX: u64 = 64 << 10;
/// First label of a search domain that kubelets add for Services.
const SERVICES: &str = "svc.";

/// Resolver settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResolvConf {
    pub(super) servers: Vec<SocketAddr>,
    /// Search domains, without the final dot.
    pub(super) search: Vec<String>,
}

impl ResolvConf {
    /// Reads the settings of this machine; empty if there are none.
    pub(super) fn read() -> ResolvConf {
        ResolvConf::parse(&text_of(FILE))
    }

    fn parse(text: &str) -> ResolvConf {
        let plain = |name: wire::Name| name.to_string().trim_end_matches('.').to_owned();
        ResolvConf {
            servers: upstream::nameservers(text).flatten().map(|server| with_interface(&server)).collect(),
            search: upstream::search_list(text.as_bytes()).into_iter().map(plain).collect(),
        }
    }

    /// Returns the cluster domain, if a kubelet wrote the settings for a Pod that asks the cluster DNS.
    pub(super) fn cluster_domain(&self) -> Option<&str> {
        self.search.iter().find_map(|domain| domain.strip_prefix(SERVICES))
    }

    /// Returns the search domains that are not those of the cluster.
    pub(super) fn foreign_search(&self) -> Vec<&String> {
        let cluster = self.cluster_domain();
        let is_of = |domain: &str, zone: &str| {
            domain.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.search.iter().filter(|domain| cluster.is_none_or(|zone| !is_of(domain, zone))).collect()
    }
}

/// Returns the name servers in a file of this form.
pub(super) fn name_servers(file: &str) -> Vec<IpAddr> {
    upstream::nameservers(&text_of(file)).flatten().map(|server| server.address.ip()).collect()
}

/// Returns the address of a server with the number of its interface, if this machine has that.
fn with_interface(server: &ScopedAddress) -> SocketAddr {
    server.resolve(|file| transport::files::read_file(file, FILE_MAX).ok()).unwrap_or(server.address)
}

fn text_of(file: &str) -> String {
    // A file that cannot be read has no settings.
    let bytes = transport::files::read_file(file, FILE_MAX).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_search_domains_of_the_cluster_from_those_of_the_node() {
        let text = "search shop.svc.k8s.corp svc.k8s.corp k8s.corp corp\nnameserver 10.96.0.10\nnameserver what\n";
        let settings = ResolvConf::parse(text);
        assert_eq!(settings.servers, ["10.96.0.10:53".parse().unwrap()]);
        assert_eq!(
            (settings.cluster_domain(), settings.foreign_search()),
            (Some("k8s.corp"), vec![&"corp".to_owned()])
        );
        let node = ResolvConf::parse("search corp\n");
        assert_eq!((node.cluster_domain(), node.foreign_search().len()), (None, 1));
    }
}
