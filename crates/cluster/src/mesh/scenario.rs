//! Syntax of the scenario language for a mesh:
//!
//! ```text
//! entry shop/pay@1 at=2024-01-01T00:00:00Z hosts=pay.global,*.api.global addresses=10.0.0.1 resolution=STATIC
//!     endpoints=10.1.0.1,host.example allocated=240.240.0.1#pay.global,2001:2::1 selects=app:pay,tier:1 exports=.,shop
//!                            all on one line; `selects=` alone selects every workload
//! workload shop/vm@1 ip=10.9.0.1 labels=app:pay [unhealthy]
//! meshpod shop/pay-1@1 ip=10.1.0.5,fd00::5 labels=app:pay [unready|host|captured]
//! ? host a.global = 10.0.0.1 of shop/pay        best claim: addresses, or else endpoints, names, `itself`
//! ? hosts = 2     ? below global = true     ? client 10.1.0.5 = captured
//! ? seen a.global by 10.1.0.5 = shop/pay        best claim among those exported to a client
//! ```
#![allow(clippy::unwrap_used, reason = "for tests alone")]

use wire::Name;

use super::{Claim, Exports, Mesh};
use crate::object::mesh::{Allocated, Label, ServiceEntry, WorkloadEntry, WorkloadPod};
use crate::object::{Meta, Object};

/// Parses an object of a mesh.
pub(crate) fn object<'a>(kind: &str, meta: Meta<'a>, fields: &'a str) -> Option<Object<'a>> {
    let field = |key: &str| fields.split(' ').find_map(|field| field.strip_prefix(key)?.strip_prefix('='));
    let list = |key: &str| field(key).unwrap_or_default().split(',').filter(|text| !text.is_empty());
    let labels = |key: &str| -> Vec<Label<'a>> { list(key).filter_map(|label| label.split_once(':')).collect() };
    let says = |word: &str| fields.split(' ').any(|known| known == word);
    Some(match kind {
        "entry" => Object::ServiceEntry(ServiceEntry {
            meta,
            created: field("at").unwrap_or_default(),
            hosts: list("hosts").collect(),
            addresses: list("addresses").collect(),
            allocated: list("allocated").map(allocated).collect(),
            resolution: field("resolution").unwrap_or_default(),
            endpoints: list("endpoints").collect(),
            selector: field("selects").map(|_| labels("selects")),
            export_to: list("exports").collect(),
        }),
        "workload" => Object::WorkloadEntry(WorkloadEntry {
            meta,
            address: field("ip").unwrap_or_default(),
            labels: labels("labels"),
            unhealthy: says("unhealthy"),
        }),
        "meshpod" => Object::WorkloadPod(WorkloadPod {
            meta,
            addresses: list("ip").collect(),
            labels: labels("labels"),
            ready: !says("unready"),
            on_host_network: says("host"),
            captured: says("captured"),
        }),
        _ => return None,
    })
}

fn allocated(text: &str) -> Allocated<'_> {
    let (address, host) = text.split_once('#').unwrap_or((text, ""));
    Allocated { address, host }
}

/// Evaluates a check of a mesh.
pub(crate) fn ask(mesh: &Mesh, words: &[&str]) -> Option<String> {
    let name = |text: &str| Name::from_text(text).unwrap().into_lowercase();
    let found = |text, read: &dyn Fn(&[Claim]) -> Option<String>| {
        mesh.find(name(text).as_ref(), read).unwrap_or_else(|| "none".to_owned())
    };
    Some(match *words {
        ["host", host] => found(host, &|claims| claims.first().map(describe)),
        ["hosts"] => mesh.hosts().to_string(),
        ["below", above] => mesh.has_below(name(above).as_ref()).to_string(),
        ["client", ip] => match mesh.client(ip.parse().unwrap()) {
            None => "unknown".to_owned(),
            Some(client) => if client.is_captured { "captured" } else { "known" }.to_owned(),
        },
        ["seen", host, "by", ip] => {
            let client = mesh.client(ip.parse().unwrap());
            let is_seen = |claim: &&Claim| claim.entry.is_exported_to(client, &Exports::everywhere());
            found(host, &|claims| claims.iter().find(is_seen).map(path))
        }
        _ => return None,
    })
}

fn describe(claim: &Claim) -> String {
    let entry = &claim.entry;
    let ips = if claim.addresses.is_empty() { &*entry.endpoints } else { &*claim.addresses };
    let mut texts: Vec<String> = ips.iter().map(ToString::to_string).collect();
    if claim.addresses.is_empty() {
        texts.extend(entry.names().map(|name| name.to_string()));
        texts.extend(entry.resolves_itself.then(|| "itself".to_owned()));
    }
    let what = if texts.is_empty() { "nothing".to_owned() } else { texts.join(",") };
    format!("{what} of {}", path(claim))
}

fn path(claim: &Claim) -> String {
    format!("{}/{}", claim.age().namespace, claim.age().name)
}
