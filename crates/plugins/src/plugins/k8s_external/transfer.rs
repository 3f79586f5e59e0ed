//! Zone transfer source for external forward zones.

use std::sync::Arc;

use cluster::{Service, ServiceKind};
use config::setup::Setup;
use engine::{ZoneSnapshot, ZoneSource, ZoneSources};
use wire::{Name, NameRef, Type};

use super::{Showing, distinct, host_of};
use common_plugins::shared::service_records::{PLAIN, Tree};
use common_plugins::shared::soa_record;
use common_plugins::shared::zone_records::{ZoneRecords, below, soa_data, sorted_services};

/// Offers the forward zones of a block to `transfer` and other plugins above.
pub(super) fn offer(showing: &Arc<Showing>, zones: Vec<Name>, setup: &mut Setup<'_>) {
    let mut sources = setup.below.find::<ZoneSources>().unwrap_or_default();
    sources.0.push(Arc::new(Source { showing: Arc::clone(showing), zones }));
    setup.below.provide(sources);
}

struct Source {
    showing: Arc<Showing>,
    zones: Vec<Name>,
}

impl ZoneSource for Source {
    fn zones(&self) -> Vec<Name> {
        self.zones.clone()
    }

    fn serial(&self, zone: NameRef<'_>) -> Option<u32> {
        let is_ours = self.zones.iter().any(|own| own.as_ref().same(zone));
        let index = &self.showing.exposed.index;
        (is_ours && index.knows(self.showing.requests())).then(|| index.serial())
    }

    /// Returns `None` until everything is listed: a secondary would take a partial zone for the whole.
    fn snapshot(&self, zone: NameRef<'_>) -> Option<Box<dyn ZoneSnapshot>> {
        let serial = self.serial(zone)?;
        let Showing { exposed, apex, ttl, .. } = &*self.showing;
        let name_server = below(zone, &[super::name::NAME_SERVER, apex])?;
        let mut records = ZoneRecords::new(*ttl);
        records.add(&zone.to_name(), Type::NS, name_server.as_bytes().to_vec());
        self.showing.addresses().into_iter().for_each(|ip| records.add_address(&name_server, ip));
        // The label of the name server hides a namespace of the same name.
        let is_shown = |service: &Service| {
            let namespace = service.namespace.as_bytes();
            *namespace != **apex && exposed.shows(namespace)
        };
        for service in sorted_services(&exposed.index, is_shown) {
            self.add_service(&mut records, zone, &service);
        }
        let mailbox = below(zone, &[super::zone::HOSTMASTER, apex])?;
        Some(records.under((*ttl, soa_data(&name_server, &mailbox, soa_record::numbers(serial, *ttl)))))
    }
}

impl Source {
    fn add_service(&self, records: &mut ZoneRecords, zone: NameRef<'_>, service: &Service) {
        let tree = Tree { branch: None, zone, form: &PLAIN };
        let Some(name) = tree.service_name(service) else { return };
        if service.external_ips().next().is_some() {
            records.add_own(&name, service, distinct(service));
        } else if let Some(host) = host_of(service) {
            records.add_alias(&name, host, &service.ports);
        } else if self.showing.headless && service.kind == ServiceKind::Headless {
            records.add_endpoints(&tree, &name, service);
        }
    }
}
