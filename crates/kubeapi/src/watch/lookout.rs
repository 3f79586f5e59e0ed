//! Search for a relay while the API server is used: asks now and then whether a relay has the position of the watch,
//! and is current. A relay refuses a consistent list while its own view may be old.

use std::rc::Rc;
use std::time::Duration;

use cluster::Kind;
use listwatch::Order;
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::LOG;
use crate::api::{Api, Response};
use crate::decode::ListDecoder;
use crate::failure::ApiError;
use crate::target::Target;
use crate::watch::response::confirm;

/// Longest pause within the answer of a relay.
const SILENCE: Duration = Duration::from_secs(5);

/// Search for a relay.
pub(super) struct Lookout {
    relay: Rc<Api>,
    order: Order,
    random: StdRng,
    due: Instant,
    /// Task with the question, if one is asked. Dropping it ends the task.
    asking: JoinSet<Result<(), ApiError>>,
}

impl Lookout {
    pub(super) fn new(relay: &Rc<Api>, order: &Order, mut random: StdRng) -> Lookout {
        let (relay, order) = (Rc::clone(relay), order.clone());
        let due = Instant::now() + order.look(random.random());
        Lookout { relay, order, random, due, asking: JoinSet::new() }
    }

    /// Waits until the relay has the position of the watch. The question is a consistent list of at most one object.
    /// The search continues where it was if this is dropped and called again.
    pub(super) async fn found(&mut self, target: &Target, position: &str, accept: &'static str) {
        loop {
            if self.asking.is_empty() {
                sleep_until(self.due).await;
                // Another connection, which may lead to another relay behind the same address.
                self.relay.reconnect(Instant::now());
                let question = (target.url_of_one(&[]), accept, target.kind, position.to_owned());
                self.asking.spawn_local(ask(Rc::clone(&self.relay), question));
            }
            match self.asking.join_next().await {
                Some(Ok(Ok(()))) => return,
                Some(Ok(Err(error))) => debug!(target: LOG, "No relay yet ({}): {error}", self.relay.url()),
                // The task did not end: it is asked again.
                Some(Err(_)) | None => {}
            }
            self.due = Instant::now() + self.order.look(self.random.random());
        }
    }
}

/// URL, media types, kind of the objects, and the position.
type Question = (String, &'static str, Kind, String);

async fn ask(relay: Rc<Api>, (url, accept, kind, position): Question) -> Result<(), ApiError> {
    let Response { mut body, encoding, .. } = relay.get(&url, accept).await?;
    let mut decoder = ListDecoder::new(encoding, kind);
    while let Some(bytes) = body.next(SILENCE).await? {
        confirm(&mut decoder, &position, &bytes)?;
    }
    if decoder.is_complete() { Ok(()) } else { Err(ApiError::Cut) }
}
