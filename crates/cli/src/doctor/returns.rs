//! Queries that come back: whether an upstream leads back to the server that runs here, over any number of hops.
//!
//! A query for a random name goes to the upstream. Nobody else asks for this name, so if the server waits for it while
//! the query is under way, the upstream has passed it on to the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use doctor::{Facts, Known, Unknown};
use futures_util::future::join_all;
use tokio::time::sleep;
use wire::{Name, Type};

use super::names::name;
use crate::dns_client::{Query, udp};

/// Number of queries with names of their own to an upstream. A Service sends each to one of its replicas.
const QUERIES: usize = 3;
/// Interval between questions to the server. A query that comes back waits for the timeout of *forward*, which is
/// longer than all of them together.
const INTERVAL: Duration = Duration::from_millis(250);
/// Number of questions to the server, so that a relay has about a second. The gatherer has two.
const ROUNDS: usize = 4;

/// Function that asks the server for the number of queries that wait for an upstream, for names below this one. It
/// blocks.
pub(crate) type AskWaiting = Arc<dyn Fn(&str) -> Known<u64> + Send + Sync>;

/// Server that sees queries come back.
pub(super) struct Returns(Known<AskWaiting>);

impl Returns {
    /// Returns the server that runs here, if it answers.
    pub(super) fn of(facts: &Facts, waiting: &AskWaiting) -> Returns {
        Returns(match &facts.server {
            Ok(_) => Ok(Arc::clone(waiting)),
            Err(reason) => Err(Unknown::new(format!("only the server sees if queries come back: {reason}"))),
        })
    }

    /// Sends queries through an upstream of a zone, and returns true if the server gets one of them.
    pub(super) async fn came_back(&self, upstream: SocketAddr, zone: &str) -> Known<bool> {
        let waiting = self.0.as_ref().map_err(Clone::clone)?;
        let parent = name(&format!("portolan-doctor-{:016x}.{zone}", rand::random::<u64>()))?;
        let queries: Vec<Query> = (0..QUERIES).map(|at| query(at, &parent)).collect::<Known<_>>()?;
        let asking = join_all(queries.iter().map(|query| udp(upstream, query)));
        let (answers, seen) = tokio::join!(asking, watch(waiting, &parent));
        // A query that is lost on the way proves nothing.
        let silent = || Unknown::new(format!("upstream {upstream} does not answer from here"));
        match seen? {
            true => Ok(true),
            false if answers.iter().any(Result::is_ok) => Ok(false),
            false => Err(silent()),
        }
    }
}

fn query(at: usize, parent: &Name) -> Known<Query> {
    Ok(Query::new(name(&format!("{at}.{parent}"))?, Type::HINFO))
}

/// Returns true once the server waits for a query below a name.
async fn watch(waiting: &AskWaiting, parent: &Name) -> Known<bool> {
    for _ in 0..ROUNDS {
        sleep(INTERVAL).await;
        if is_waiting(Arc::clone(waiting), parent.to_string()).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn is_waiting(waiting: AskWaiting, parent: String) -> Known<bool> {
    let answer = tokio::task::spawn_blocking(move || waiting(&parent)).await;
    Ok(answer.map_err(|error| Unknown::new(error.to_string()))?? > 0)
}
