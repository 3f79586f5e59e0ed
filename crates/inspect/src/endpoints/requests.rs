//! Queries that wait for an upstream.

use control::requests::{Exchange, Requests, SLOW_SECONDS};
use engine::Clock;
use transport::MonotonicClock;
use wire::Name;

use super::super::context::Context;

/// Maximum number of exchanges in a response: more than fit on a screen, and few enough to copy while workers wait for
/// the table.
const SHOWN_MAX: usize = 100;

/// Returns the exchanges in flight for a name and all below; for all names without one.
pub(super) fn requests(context: &Context, zone: Option<Name>) -> Requests {
    let now = MonotonicClock.now();
    let generation = context.view.live.load();
    let zone = zone.unwrap_or_default().into_lowercase();
    let in_flight = generation.exchanges_in_flight(zone.as_ref(), SHOWN_MAX);
    let is_slow = |since: engine::Instant| now.since(since).as_secs_f64() > SLOW_SECONDS;
    let privacy = context.view.loaded().names;
    let oldest = in_flight.oldest.into_iter().map(|exchange| Exchange {
        name: context.watch.shown_name(exchange.name.as_ref(), privacy),
        qtype: exchange.qtype.to_string(),
        plugin: exchange.plugin.to_owned(),
        age_seconds: now.since(exchange.since).as_secs_f64(),
        slow: is_slow(exchange.since),
        client: exchange.client.to_string(),
        upstream: exchange.upstream.map(|upstream| upstream.to_string()),
        waiting: exchange.queries as u64,
    });
    Requests {
        exchanges: in_flight.started.len() as u64,
        slow: in_flight.started.iter().filter(|since| is_slow(**since)).count() as u64,
        oldest: oldest.collect(),
    }
}
