//! Addresses of name servers that are configured by host name.
//!
//! kube-dns resolved these names once. This module resolves them periodically, and resolves names of the cluster with
//! this server itself.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use plugins::HostLookup;
use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;

use super::{CorefileGenerator, HostAddresses, InputChange};
use process::lookup::Lookup;

/// Interval between lookups while a name has no address.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// Interval between lookups when all names have addresses. A cluster IP does not change, and the TTLs of other names
/// are rarely shorter.
const RENEW_EVERY: Duration = Duration::from_secs(30);

/// Names to resolve, shared between the control task and the lookup task.
#[derive(Clone, Default)]
pub(super) struct WantedHosts {
    names: Rc<RefCell<BTreeSet<String>>>,
    changed: Rc<Notify>,
}

impl WantedHosts {
    /// Replaces the names, and wakes the lookup task if they changed.
    pub(super) fn set(&self, names: BTreeSet<String>) {
        if *self.names.borrow() != names {
            *self.names.borrow_mut() = names;
            self.changed.notify_one();
        }
    }
}

/// Resolves the wanted names periodically and sends the addresses when they change. Returns if the receiver is gone.
pub(super) async fn follow(generator: Rc<dyn CorefileGenerator>, wanted: WantedHosts, changes: Sender<InputChange>) {
    let mut known = HostAddresses::new();
    loop {
        let names = wanted.names.borrow().clone();
        let mut found = HostAddresses::new();
        for name in &names {
            let addresses = look_up(generator.resolver(name), name).await;
            // A failed lookup keeps the last known addresses.
            if let Some(addresses) = addresses.or_else(|| known.get(name).cloned()) {
                found.insert(name.clone(), addresses);
            }
        }
        let is_complete = found.len() == names.len();
        if found != known {
            known.clone_from(&found);
            if changes.send(InputChange::HostAddresses(found)).await.is_err() {
                return;
            }
        }
        let pause = match (names.is_empty(), is_complete) {
            (true, _) => Duration::MAX,
            (_, true) => RENEW_EVERY,
            (_, false) => RETRY_EVERY,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = wanted.changed.notified() => {}
        }
    }
}

async fn look_up(resolver: Option<SocketAddr>, name: &str) -> Option<Vec<IpAddr>> {
    let resolvers: Vec<SocketAddr> = resolver.into_iter().collect();
    let host = name.to_owned();
    let found = tokio::task::spawn_blocking(move || Lookup.lookup(&host, &resolvers)).await.ok()?;
    let mut addresses = found.ok().filter(|addresses| !addresses.is_empty())?;
    // Sorted, so that a different order in the response does not count as a change.
    addresses.sort_unstable();
    addresses.dedup();
    Some(addresses)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use compat::kube_dns::{ConfigMapSettings, ConfigMapSource, HostNames};
    use tokio::sync::mpsc::channel;
    use wire::{Class, Flags, Header, MessageBuf, Owner, Request, Section, Type};

    use super::*;

    /// Starts a name server that has no records for the first name that is looked up, then one address for every name.
    fn server() -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            for asked in 0.. {
                let Ok((length, peer)) = socket.recv_from(&mut buffer) else { return };
                let mut request = Request::default();
                let header = Header::read(&buffer[..length]).unwrap();
                request.read(header, &buffer[..length]).unwrap();
                let mut message = MessageBuf::new();
                let header = Header { flags: Flags::default().with_response(true), ..header };
                let header = Header { id: header.id, flags: header.flags, ..Header::default() };
                message.start(header, Some((request.name.as_ref(), request.qtype, Class::IN)));
                // The first two queries are A and AAAA of the first lookup.
                if request.qtype == Type::A && asked >= 2 {
                    message.push_a(Section::Answer, Owner::Question, 5, Ipv4Addr::new(192, 0, 2, 7));
                }
                let _ = socket.send_to(message.finish(None, std::iter::empty()), peer);
            }
        });
        address
    }

    /// Inputs whose host names resolve at a server.
    struct ResolvedAt(SocketAddr);

    impl CorefileGenerator for ResolvedAt {
        fn name(&self) -> &'static str {
            "test"
        }

        fn source(&self) -> &ConfigMapSource {
            &ConfigMapSource::None
        }

        fn cluster(&self) -> cluster::Source {
            cluster::Source::InCluster
        }

        fn named_hosts(&self, _: &ConfigMapSettings) -> BTreeSet<String> {
            BTreeSet::new()
        }

        fn resolver(&self, _: &str) -> Option<SocketAddr> {
            Some(self.0)
        }

        fn corefile(&self, _: &ConfigMapSettings, _: HostNames<'_>) -> String {
            String::new()
        }
    }

    #[test]
    fn retries_cluster_names_until_they_resolve() {
        let (sender, mut changes) = channel(1);
        let wanted = WantedHosts::default();
        wanted.set(BTreeSet::from(["ns.prod.svc.cluster.local".to_owned()]));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let change = runtime.block_on(async {
            tokio::select! {
                () = follow(Rc::new(ResolvedAt(server())), wanted, sender) => None,
                change = changes.recv() => change,
            }
        });
        let Some(InputChange::HostAddresses(known)) = change else { panic!("no news") };
        assert_eq!(known["ns.prod.svc.cluster.local"], [IpAddr::from([192, 0, 2, 7])]);
    }
}
