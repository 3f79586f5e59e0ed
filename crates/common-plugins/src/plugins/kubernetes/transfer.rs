//! Zone transfer source for the forward zones of a cluster and for `multicluster` zones.
//!
//! Pod names are left out: they exist for any address or change too fast. Endpoint names of Services with a cluster IP
//! are left out too: a zone transfer is not used to look for them.

use std::sync::Arc;

use cluster::{Index, Kinds, Service, ServiceKind};
use config::setup::Setup;
use engine::{ZoneSnapshot, ZoneSource, ZoneSources};
use wire::{Name, NameRef, Type};

use super::zone::{SOA_TTL_MAX, SPECIFICATION, name_servers};
use super::{COMMON, Kubernetes, LOCAL, is_hidden};
use crate::shared::cluster_view::Exposed;
use crate::shared::service_records::Tree;
use crate::shared::soa_record;
use crate::shared::zone_records::{ZoneRecords, below, soa_data, sorted_services};

/// Offers the zones of a block to `transfer` and other plugins above: those of this cluster, and the `common` ones.
pub(super) fn offer(
    exposed: &Arc<Exposed>,
    common: Vec<Name>,
    (ttl, ignore_empty): (u32, bool),
    setup: &mut Setup<'_>,
) {
    let mut sources = setup.below.find::<ZoneSources>().unwrap_or_default();
    sources.0.push(Arc::new(Source { exposed: Arc::clone(exposed), common, ttl, ignore_empty }));
    setup.below.provide(sources);
}

struct Source {
    exposed: Arc<Exposed>,
    common: Vec<Name>,
    ttl: u32,
    ignore_empty: bool,
}

impl Source {
    /// Index with the Services of a zone, and the kinds that must be listed.
    fn services_of(&self, zone: NameRef<'_>) -> Option<(&Arc<Index>, Kinds)> {
        let is_among = |zones: &[Name]| zones.iter().any(|own| own.as_ref().same(zone));
        if is_among(self.exposed.zones.names()) {
            return Some((&self.exposed.index, LOCAL.endpoints));
        }
        let common = self.exposed.index.clusterset().filter(|_| is_among(&self.common))?;
        Some((common, COMMON.endpoints))
    }
}

impl ZoneSource for Source {
    fn zones(&self) -> Vec<Name> {
        self.exposed.zones.names().iter().chain(&self.common).cloned().collect()
    }

    fn serial(&self, zone: NameRef<'_>) -> Option<u32> {
        let (index, required) = self.services_of(zone)?;
        self.exposed.index.knows(required).then(|| index.serial())
    }

    /// Returns `None` until everything is listed: a secondary would take a partial zone for the whole.
    fn snapshot(&self, zone: NameRef<'_>) -> Option<Box<dyn ZoneSnapshot>> {
        let serial = self.serial(zone)?;
        let (index, _) = self.services_of(zone)?;
        let is_shown = |service: &Service| {
            self.exposed.shows(service.namespace.as_bytes()) && !is_hidden(self.ignore_empty, service)
        };
        let mut records = ZoneRecords::new(self.ttl);
        add_zone(&mut records, zone, &self.exposed);
        sorted_services(index, is_shown).iter().for_each(|service| add_service(&mut records, zone, service));
        let (name_server, mailbox) = (below(zone, &[b"ns", b"dns"])?, below(zone, &[b"hostmaster"])?);
        let soa = soa_data(&name_server, &mailbox, soa_record::numbers(serial, self.ttl));
        Some(records.under((self.ttl.min(SOA_TTL_MAX), soa)))
    }
}

/// Adds the name servers of the zone and the version of the specification.
fn add_zone(records: &mut ZoneRecords, zone: NameRef<'_>, exposed: &Exposed) {
    let servers = name_servers(exposed, zone);
    let apex = zone.to_name();
    servers.iter().for_each(|(name, _)| records.add(&apex, Type::NS, name.as_bytes().to_vec()));
    servers.iter().for_each(|(name, ip)| records.add_address(name, *ip));
    let (version, ttl) = SPECIFICATION;
    if let Some(owner) = below(zone, &[b"dns-version"]) {
        let length = u8::try_from(version.len()).unwrap_or(u8::MAX);
        records.add_with_ttl(&owner, (Type::TXT, ttl), [&[length][..], version].concat());
    }
}

fn add_service(records: &mut ZoneRecords, zone: NameRef<'_>, service: &Service) {
    let tree: Tree<'_> = Kubernetes::tree(zone);
    let Some(name) = tree.service_name(service) else { return };
    match &service.kind {
        ServiceKind::ClusterIp(ips) => records.add_own(&name, service, ips.iter().copied()),
        ServiceKind::Headless => records.add_endpoints(&tree, &name, service),
        ServiceKind::ExternalName(target) => records.add_alias(&name, target, &[]),
        ServiceKind::Undeclared => {}
    }
}
