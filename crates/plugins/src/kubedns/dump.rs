//! The page with the records of the cluster, as a tree of labels: what `/cache` of kube-dns showed. It is for people who
//! look for what is known, and bounded.

use core::fmt::Write;
use core::net::IpAddr;
use std::collections::BTreeMap;

use cluster::{Service, ServiceKind};
use engine::setup::PageContent;

use crate::common::quote_json as quote;
use crate::exposed::Exposed;
use crate::service_records::ip_of;

/// Octets of the longest page: a cluster of a hundred thousand endpoints, written out.
const PAGE_MAX: usize = 16 << 20;

/// Makes the page.
pub(super) fn page(exposed: &Exposed) -> PageContent {
    let mut namespaces: BTreeMap<String, BTreeMap<String, Node>> = BTreeMap::new();
    let mut left = PAGE_MAX;
    exposed.index.for_each_service(|service| {
        if exposed.shows(service.namespace.as_bytes()) && left > 0 {
            let node = Node::of(service);
            left = left.saturating_sub(node.size());
            namespaces.entry(service.namespace.to_string()).or_default().insert(service.name.to_string(), node);
        }
    });
    PageContent {
        status: 200,
        content_type: "application/json",
        body: write(exposed, &namespaces, left == 0 || !exposed.index.is_synced()).into_bytes().into(),
    }
}

/// What is below one service.
#[derive(Default)]
struct Node {
    /// Records, by label.
    entries: Vec<(String, String)>,
    /// Records of its ports, by `_PORT._PROTOCOL`.
    ports: Vec<(String, String)>,
}

impl Node {
    fn of(service: &Service) -> Node {
        let mut node = Node::default();
        let address = |ip: IpAddr| record(&ip.to_string(), 0);
        match &service.kind {
            ServiceKind::ClusterIp(ips) => node.entries.extend(ips.iter().map(|ip| (ip.to_string(), address(*ip)))),
            ServiceKind::ExternalName(name) => node.entries.push((service.name.to_string(), record(name, 0))),
            ServiceKind::Headless => node.entries.extend(service.endpoints().filter_map(|endpoint| {
                let ip = ip_of(endpoint)?;
                let label = endpoint.own_label().map(String::from_utf8_lossy);
                Some((label.map_or_else(|| ip.to_string(), std::borrow::Cow::into_owned), address(ip)))
            })),
            ServiceKind::Undeclared => {}
        }
        for port in service.ports.iter().filter(|port| !port.name.is_empty()) {
            let name = format!("_{}._{}", port.name, port.protocol.to_ascii_lowercase());
            node.ports.push((name, record(&service.name, port.number.unwrap_or(0))));
        }
        node
    }

    fn size(&self) -> usize {
        const AROUND: usize = 64;
        let each = self.entries.iter().chain(&self.ports);
        each.map(|(label, record)| label.len() + record.len() + AROUND).sum::<usize>() + AROUND
    }
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

fn write(exposed: &Exposed, namespaces: &BTreeMap<String, BTreeMap<String, Node>>, is_cut: bool) -> String {
    let zones: Vec<String> = exposed.zones.names().iter().map(ToString::to_string).collect();
    let mut json = Json::default();
    json.object(|json| {
        json.member("Zone", |json| quote(&mut json.text, &zones.join(" ")));
        json.member("Complete", |json| json.text.push_str(if is_cut { "false" } else { "true" }));
        json.member("ChildNodes", |json| {
            json.object(|json| {
                for (namespace, services) in namespaces {
                    json.member(namespace, |json| {
                        json.object(|json| json.member("ChildNodes", |json| write_services(json, services)));
                    });
                }
            });
        });
    });
    json.text.push('\n');
    json.text
}

fn write_services(json: &mut Json, services: &BTreeMap<String, Node>) {
    json.object(|json| {
        for (name, node) in services {
            json.member(name, |json| {
                json.object(|json| {
                    for (kind, records) in [("Entries", &node.entries), ("ChildNodes", &node.ports)] {
                        json.member(kind, |json| {
                            json.object(|json| {
                                for (label, record) in records {
                                    json.member(label, |json| json.text.push_str(record));
                                }
                            });
                        });
                    }
                });
            });
        }
    });
}

/// JSON that is being written, indented.
#[derive(Default)]
struct Json {
    text: String,
    depth: usize,
    /// Whether the object that is open has a member already.
    has_members: bool,
}

impl Json {
    fn object(&mut self, members: impl FnOnce(&mut Json)) {
        self.text.push('{');
        self.depth += 1;
        self.has_members = false;
        members(self);
        self.depth -= 1;
        if self.has_members {
            self.new_line();
        }
        self.text.push('}');
        self.has_members = true;
    }

    fn member(&mut self, name: &str, value: impl FnOnce(&mut Json)) {
        if self.has_members {
            self.text.push(',');
        }
        self.new_line();
        quote(&mut self.text, name);
        self.text.push_str(": ");
        value(self);
        self.has_members = true;
    }

    fn new_line(&mut self) {
        self.text.push('\n');
        self.text.push_str(&"  ".repeat(self.depth));
    }
}
