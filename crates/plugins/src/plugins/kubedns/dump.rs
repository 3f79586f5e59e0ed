//! Page `/cache`: the cluster's records as the tree of labels that kube-dns served, with the top-level domain at the
//! root.
//!
//! A node has `ChildNodes`, by label, and `Entries`, by the label that kube-dns computed for a record. The page serves
//! debugging and has a size limit. The root also has `Complete`, which kube-dns did not have.

use core::fmt::Write;
use core::net::IpAddr;
use std::borrow::Cow;
use std::collections::BTreeMap;

use cluster::{Service, ServiceKind};
use config::setup::PageContent;

use common_plugins::shared::cluster_view::Exposed;
use common_plugins::shared::endpoint_hash::{KUBE_DNS, address_label};
use common_plugins::shared::option_helpers::quote_json as quote;
use common_plugins::shared::service_records::ip_of;

/// Approximate size limit of the page in bytes: a cluster of 100,000 endpoints.
const PAGE_MAX: usize = 16 << 20;
/// Estimated bytes of an entry without its strings.
const ENTRY_LEN: usize = 160;
/// Suffix of reverse zones, which kube-dns did not serve here.
const REVERSE: &str = ".arpa.";

/// Renders the page.
pub(super) fn page(exposed: &Exposed) -> PageContent {
    let zones = exposed.zones.names().iter().map(ToString::to_string);
    let zone = zones.into_iter().find(|zone| !zone.ends_with(REVERSE)).unwrap_or_default();
    let mut services = Tree::default();
    let mut left = PAGE_MAX;
    exposed.index.for_each_service(|service| {
        if exposed.shows(service.namespace.as_bytes()) && left > 0 {
            let namespace = services.below(&service.namespace);
            left = left.saturating_sub(namespace.add(service, &zone));
        }
    });
    let mut root = Tree::default();
    let labels = zone.trim_end_matches('.').rsplit('.').chain(["svc"]);
    *labels.filter(|label| !label.is_empty()).fold(&mut root, Tree::below) = services;
    let is_complete = left > 0 && exposed.index.is_synced();
    let mut text = String::new();
    root.write(&mut text, 0, Some(is_complete));
    text.push('\n');
    PageContent { status: 200, content_type: "application/json", body: text.into_bytes().into() }
}

/// Node of the tree.
#[derive(Default)]
struct Tree {
    children: BTreeMap<String, Tree>,
    /// Records as JSON, by label.
    entries: BTreeMap<String, String>,
}

impl Tree {
    fn below(&mut self, label: &str) -> &mut Tree {
        self.children.entry(label.to_owned()).or_default()
    }

    fn set(&mut self, label: &str, host: &str, port: u16) -> usize {
        self.entries.insert(label.to_owned(), record(host, port));
        label.len() + host.len() + ENTRY_LEN
    }

    /// Adds a Service to its namespace. Returns its approximate size in bytes.
    fn add(&mut self, service: &Service, zone: &str) -> usize {
        let host = format!("{}.{}.svc.{zone}", service.name, service.namespace);
        let mut len = ENTRY_LEN;
        match &service.kind {
            // kube-dns stored an alias in its namespace, not in a node of its own.
            ServiceKind::ExternalName(target) => len += self.set(&service.name, target, 0),
            ServiceKind::ClusterIp(ips) => {
                let node = self.below(&service.name);
                let mut buffer = [0; 63];
                for ip in ips {
                    let label = String::from_utf8_lossy(address_label(*ip, &mut buffer)).into_owned();
                    len += node.set(&label, &ip.to_string(), 0);
                    for port in service.ports.iter().filter(|port| !port.name.is_empty()) {
                        len += node.port(&port.protocol, &port.name).set(&label, &host, port.number.unwrap_or(0));
                    }
                }
            }
            ServiceKind::Headless => len += self.below(&service.name).add_endpoints(service, &host),
            ServiceKind::Undeclared => {}
        }
        len
    }

    fn add_endpoints(&mut self, service: &Service, host: &str) -> usize {
        let (mut len, mut buffer) = (0, [0; 63]);
        for slice in service.slices.iter() {
            for endpoint in slice.endpoints() {
                let Some(ip) = ip_of(endpoint) else { continue };
                let label: Cow<'_, str> = String::from_utf8_lossy((KUBE_DNS.label)(endpoint, &mut buffer));
                len += self.add_address(&label, ip);
                for port in slice.ports.iter().filter(|port| !port.name.is_empty()) {
                    let target = format!("{label}.{host}");
                    len += self.port(&port.protocol, &port.name).set(&label, &target, port.number.unwrap_or(0));
                }
            }
        }
        len
    }

    /// Adds an address of an endpoint. A further address with the same host name, such as one of the other family, gets
    /// the label that it would have without a host name, because labels are unique.
    fn add_address(&mut self, label: &str, ip: IpAddr) -> usize {
        let host = ip.to_string();
        if self.entries.get(label).is_none_or(|known| *known == record(&host, 0)) {
            return self.set(label, &host, 0);
        }
        let mut buffer = [0; 63];
        let own = String::from_utf8_lossy(address_label(ip, &mut buffer));
        self.set(&own, &host, 0)
    }

    fn port(&mut self, protocol: &str, name: &str) -> &mut Tree {
        self.below(&format!("_{}", protocol.to_ascii_lowercase())).below(&format!("_{name}"))
    }

    /// Writes the node like Go's `MarshalIndent` with tabs.
    fn write(&self, text: &mut String, depth: usize, is_complete: Option<bool>) {
        text.push('{');
        object(text, depth + 1, "ChildNodes", self.children.iter(), |text, child| child.write(text, depth + 2, None));
        text.push(',');
        object(text, depth + 1, "Entries", self.entries.iter(), |text, entry| text.push_str(entry));
        if let Some(is_complete) = is_complete {
            let _ = write!(text, ",\n\t\"Complete\": {is_complete}");
        }
        new_line(text, depth);
        text.push('}');
    }
}

/// Writes a member whose value is an object.
fn object<'a, T: 'a>(
    text: &mut String,
    depth: usize,
    name: &str,
    members: impl ExactSizeIterator<Item = (&'a String, &'a T)>,
    write: impl Fn(&mut String, &T),
) {
    new_line(text, depth);
    quote(text, name);
    text.push_str(": {");
    let is_empty = members.len() == 0;
    for (at, (name, value)) in members.enumerate() {
        if at > 0 {
            text.push(',');
        }
        new_line(text, depth + 1);
        quote(text, name);
        text.push_str(": ");
        write(text, value);
    }
    if !is_empty {
        new_line(text, depth);
    }
    text.push('}');
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(core::iter::repeat_n('\t', depth));
}

fn record(host: &str, port: u16) -> String {
    let mut text = String::from("{\"host\": ");
    quote(&mut text, host);
    if port > 0 {
        let _ = write!(text, ", \"port\": {port}");
    }
    text.push_str(", \"priority\": 10, \"weight\": 10, \"ttl\": 30}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_all_addresses_of_a_host_name() {
        let mut node = Tree::default();
        for ip in ["10.1.0.9", "fd00::9", "10.1.0.9"] {
            node.add_address("d-0", ip.parse().unwrap());
        }
        let shown: Vec<_> = node.entries.iter().map(|(label, entry)| (label.as_str(), entry.as_str())).collect();
        let of = |host| record(host, 0);
        assert_eq!(shown, [("3137383735666165", of("fd00::9").as_str()), ("d-0", of("10.1.0.9").as_str())]);
    }
}
