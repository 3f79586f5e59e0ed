//! `portolan relay`: lists and watches of the API server for many nodes, from few servers.
//!
//! The crate `relay` decides; this mode moves the bytes. All of it runs on one thread.
//!
//! - `upstream`: the followers of the API server, one per kind.
//! - `earlier`: the changes before their first list, for nodes that continue after a restart of all relays.
//! - `hub`: the state, and the tasks that make ticks and close slow subscribers.
//! - `serve`: HTTPS for subscribers, with tokens that `keys` checks and a `certificate` that is read again.
#![allow(clippy::print_stderr, reason = "a command prints to its user")]

mod certificate;
mod earlier;
mod hub;
mod keys;
mod meter;
mod options;
mod serve;
mod upstream;
mod url;

use std::cell::Cell;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use config::setup::{Page, PageContent};
use kubeapi::RawClient;
use metrics::Registry;
use process::http_listener::Evictions;
use relay::token::Rules;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use crate::admin::{Admin, IfTaken, PageListenError, listen};
use crate::run::{ShutdownSignals, block_on};
use crate::serve_error::ServeError;
use crate::sockets::announce;
use certificate::Certificate;
use hub::Hub;
use keys::Checker;
use meter::Meter;
use serve::Server;
use upstream::Follower;

pub use meter::METRICS;
pub use options::{RelayOptions, command, options};

/// Log target.
const LOG: &str = "portolan";

/// Time that subscribers have to read their last bookmark.
const PARTING: Duration = Duration::from_secs(5);
/// Interval between looks at the readiness.
const LOOK: Duration = Duration::from_millis(100);

/// Serves as a relay until a signal ends the process.
#[must_use]
pub fn relay(options: RelayOptions) -> ExitCode {
    block_on(options.log_format, run(options))
}

async fn run(options: RelayOptions) -> Result<ExitCode, ServeError> {
    let mut signals = ShutdownSignals::new()?;
    let registry: Arc<Registry> = Registry::new();
    let meter = Meter::new(&registry, &options.kinds);
    let hub = Hub::new(&options.kinds, Rc::clone(&meter));
    let (certificate, identity) =
        Certificate::new(options.certificate, options.key).map_err(ServeError::Certificate)?;
    let certificate = Rc::new(certificate);
    let client = RawClient::new(&options.source, &registry).map_err(ServeError::ApiServer)?;
    let rules = Rules { issuer: options.issuer, audience: options.audience, subjects: options.subjects };
    let checker = Checker::new(rules, options.keys_file, options.source);
    let _pages = serve_pages(&options.pages, &registry, &meter)?;
    let listener = listen(&options.listen)
        .map_err(|error| ServeError::PageListen(PageListenError::new(options.listen.clone(), error)))?;
    announce(&format!("relay://{}", options.listen), listener.local_addr()?);

    let client = Rc::new(client);
    for kind in options.kinds {
        spawn_local(Follower::run(Rc::clone(&hub), Rc::clone(&client), kind));
    }
    spawn_local(Rc::clone(&hub).run());
    spawn_local(Rc::clone(&hub).wake_subscribers());
    spawn_local(Rc::clone(&hub).check());
    spawn_local(Rc::clone(&checker).run());
    spawn_local(Rc::clone(&certificate).follow(identity));
    spawn_local(show_readiness(Rc::clone(&hub), Rc::clone(&checker)));
    let server = Rc::new(Server { hub: Rc::clone(&hub), checker, certificate, refused_lists: Cell::new(0) });
    let evictions = Rc::new(Evictions::new(&registry, |limits| limits.pages));
    spawn_local(server.run(listener, evictions));

    if let Err(code) = signals.or_exit(std::future::pending::<()>()).await {
        end(&hub).await;
        return Ok(code);
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends in order: not ready, a last bookmark for everybody, and the end of all watches.
async fn end(hub: &Hub) {
    hub.meter.shared.is_ready.store(false, Ordering::Relaxed);
    hub.close();
    let deadline = Instant::now() + PARTING;
    while hub.subscribers() > 0 && Instant::now() < deadline {
        sleep(Duration::from_millis(20)).await;
    }
    // The connections need a moment to write the bytes that they have taken over.
    sleep(Duration::from_millis(100)).await;
}

/// Publishes whether the relay serves, until dropped.
async fn show_readiness(hub: Rc<Hub>, checker: Rc<Checker>) {
    loop {
        let is_ready = hub.is_ready() && checker.is_ready();
        if hub.meter.shared.is_ready.swap(is_ready, Ordering::Relaxed) != is_ready {
            hub.publish();
        }
        sleep(LOOK).await;
    }
}

fn serve_pages(address: &str, registry: &Arc<Registry>, meter: &Meter) -> Result<Admin, ServeError> {
    let ready = Arc::clone(&meter.shared);
    let pages = vec![
        plugins::metrics_page(registry, address.to_owned(), "/metrics".to_owned()),
        Page::new(address.to_owned(), "/ready", move || {
            if ready.is_ready.load(Ordering::Relaxed) {
                PageContent::text(200, "OK")
            } else {
                PageContent::text(503, "not all kinds are listed, or the keys of tokens are not known")
            }
        }),
        Page::new(address.to_owned(), "/healthz", || PageContent::text(200, "OK")),
    ];
    let mut admin = Admin::new(registry);
    let prepared = admin.prepare(&pages, IfTaken::TryAgain)?;
    admin.serve(prepared, pages);
    Ok(admin)
}
