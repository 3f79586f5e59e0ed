//! The addresses of name servers that are named. kube-dns looked them up once; here they are looked up again and again, names
//! of the cluster by this server itself.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use kubedns::Settings;
use plugins::HostLookup;
use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;

use super::control::News;
use crate::lookup::Lookup;

/// How soon a name without an address is looked up again.
const AGAIN: Duration = Duration::from_secs(1);
/// How soon one with addresses is: a cluster IP does not change, and others have hardly shorter times to live.
const RENEW: Duration = Duration::from_secs(30);

/// Names with their addresses.
pub(super) type Known = BTreeMap<String, Vec<IpAddr>>;

/// The names that are wanted at present.
#[derive(Clone, Default)]
pub(super) struct Wanted {
    names: Rc<RefCell<BTreeSet<String>>>,
    changed: Rc<Notify>,
}

impl Wanted {
    /// Wants these names and no others.
    pub(super) fn set(&self, names: BTreeSet<String>) {
        if *self.names.borrow() != names {
            *self.names.borrow_mut() = names;
            self.changed.notify_one();
        }
    }
}

/// Looks names up for as long as it is polled.
pub(super) async fn follow(settings: Settings, wanted: Wanted, news: Sender<News>) {
    let mut known = Known::new();
    loop {
        let names = wanted.names.borrow().clone();
        let mut found = Known::new();
        for name in &names {
            let addresses = look_up(&settings, name).await;
            // What was known stays while nobody can say anything better.
            if let Some(addresses) = addresses.or_else(|| known.get(name).cloned()) {
                found.insert(name.clone(), addresses);
            }
        }
        let is_complete = found.len() == names.len();
        if found != known {
            known.clone_from(&found);
            if news.send(News::Hosts(found)).await.is_err() {
                return;
            }
        }
        let pause = match (names.is_empty(), is_complete) {
            (true, _) => Duration::MAX,
            (_, true) => RENEW,
            (_, false) => AGAIN,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = wanted.changed.notified() => {}
        }
    }
}

async fn look_up(settings: &Settings, name: &str) -> Option<Vec<IpAddr>> {
    let resolvers: Vec<SocketAddr> = resolver(settings, name).into_iter().collect();
    let host = name.to_owned();
    let found = tokio::task::spawn_blocking(move || Lookup.lookup(&host, &resolvers)).await.ok()?;
    let mut addresses = found.ok().filter(|addresses| !addresses.is_empty())?;
    // In one order, so that another one is no change.
    addresses.sort_unstable();
    addresses.dedup();
    Some(addresses)
}

/// Who knows a name: of the cluster, whoever has its records; `None` is the system.
fn resolver(settings: &Settings, name: &str) -> Option<SocketAddr> {
    const USUAL: &str = "cluster.local";
    let domain = settings.records.as_ref().map_or(USUAL, |records| &records.domain);
    let is_of = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if !is_of(domain) && !is_of(USUAL) {
        return None;
    }
    let own = settings
        .records
        .as_ref()
        .map(|records| SocketAddr::new(records.bind.unwrap_or(Ipv4Addr::LOCALHOST.into()), records.port));
    const KUBE_DNS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10053);
    Some(settings.cluster_server.or(own).unwrap_or(KUBE_DNS))
}
