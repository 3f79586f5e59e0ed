//! Search for events that the API server has left out: asks now and then how many objects it has at the version that
//! the watch has reached.
//!
//! The API server answers a list of one object with the number of those left (`remainingItemCount`), and as of a
//! version with `resourceVersionMatch=Exact`: from the storage, or since Kubernetes 1.34 from the snapshots of its
//! cache, which it compares with the storage itself. So the answer is about what the watch should know, whatever
//! happens meanwhile.

use std::rc::Rc;
use std::time::Duration;

use cluster::Kind;
use host::planted::{Bug, is_planted};
use listwatch::{Comparison, Tally};
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use crate::LOG;
use crate::api::{Api, Response};
use crate::decode::{ListCount, ListDecoder, ListItem};
use crate::failure::ApiError;
use crate::meter::{Counted, Meter};
use crate::target::Target;

/// Maximum time for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Comparison of the number of objects that a watch knows with that of the API server.
pub(super) struct Count {
    tally: Tally,
    interval: Duration,
    random: StdRng,
    due: Instant,
    /// Task with the question, if one is asked. Dropping it ends the task.
    asking: JoinSet<Result<Option<u64>, ApiError>>,
}

impl Count {
    pub(super) fn new(interval: Duration, random: StdRng) -> Count {
        let (tally, asking) = (Tally::default(), JoinSet::new());
        let mut count = Count { tally, interval, random, due: Instant::now(), asking };
        count.pause();
        count
    }

    /// Number of objects that the watch knows.
    pub(super) const fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Compares the numbers now and then. Returns the error with which the watch ends if events are missing. Nothing is
    /// lost if this is dropped and called again.
    pub(super) async fn differs(&mut self, collection: &Collection<'_>) -> ApiError {
        if is_planted(Bug::TrustsEvents) {
            return core::future::pending().await;
        }
        let Collection { api, target, accept, position, meter } = *collection;
        loop {
            if self.asking.is_empty() {
                sleep_until(self.due).await;
                self.tally.ask();
                let (api, url) = (Rc::clone(api), target.url_of_count(position));
                let question = ask(api, url, position.to_owned(), accept, target.kind);
                self.asking.spawn_local(async {
                    timeout(ANSWER_MAX, question).await.unwrap_or(Err(ApiError::Unanswered(ANSWER_MAX)))
                });
            }
            let answer = self.asking.join_next().await;
            let (result, difference) = self.answered(answer.and_then(Result::ok), &target.describe());
            meter.counted(target.resource, result);
            self.pause();
            if let Some(error) = difference {
                return error;
            }
        }
    }

    /// Handles an answer, or `None` if the task did not end.
    fn answered(&mut self, answer: Option<Result<Option<u64>, ApiError>>, what: &str) -> (Counted, Option<ApiError>) {
        match answer {
            Some(Ok(Some(counted))) => match self.tally.answer(counted) {
                Comparison::Equal => (Counted::Equal, None),
                Comparison::Different { known, counted } => {
                    (Counted::Different, Some(ApiError::Missed { known, counted }))
                }
                Comparison::Unknown => (Counted::Unknown, None),
            },
            Some(Ok(None)) | None => (Counted::Unknown, None),
            Some(Err(error)) => {
                debug!(target: LOG, "Unknown whether all {what} are known: {error}");
                (Counted::Unknown, None)
            }
        }
    }

    /// Chooses the time of the next question, at random so that replicas ask at different times.
    fn pause(&mut self) {
        self.due = Instant::now() + self.interval.mul_f64(0.5 + self.random.random::<f64>());
    }
}

/// Collection that a question is about.
pub(super) struct Collection<'a> {
    pub(super) api: &'a Rc<Api>,
    pub(super) target: &'a Target,
    /// Media types to accept.
    pub(super) accept: &'static str,
    /// Version up to which the watch knows everything.
    pub(super) position: &'a str,
    pub(super) meter: &'a Meter,
}

/// Returns the number of objects at a version, if the API server says it.
async fn ask(
    api: Rc<Api>,
    url: String,
    asked: String,
    accept: &'static str,
    kind: Kind,
) -> Result<Option<u64>, ApiError> {
    let Response { mut body, encoding, .. } = api.get(&url, accept).await?;
    let mut decoder = ListDecoder::new(encoding, kind);
    let mut count = ListCount::default();
    while let Some(bytes) = body.next(ANSWER_MAX).await? {
        decoder.feed(&bytes, &mut |item| match item {
            ListItem::Object(_) | ListItem::Unreadable(_) => count.item(),
            ListItem::Metadata { version, token, left } => count.metadata(version == asked, token, left),
        })?;
    }
    if decoder.is_complete() { Ok(count.total()) } else { Err(ApiError::Cut) }
}
