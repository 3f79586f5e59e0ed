//! Proof that a silent watch is current: a consistent read while nothing arrives.
//!
//! A quiet cluster sends a bookmark once a minute, so silence alone says nothing. A list without a resource version is
//! answered by the API server only when its view of this kind is as new as the storage (KEP-2340), and that view feeds
//! the watch. The list selects one object by its name, which the server looks up. A list that is limited to one object
//! would reach the storage before Kubernetes 1.34, and count all objects there.
//!
//! Its version also shows that the storage was restored from a backup between the last request and the watch: the API
//! server accepts such a watch, from a version that does not exist yet, and sends nothing.

use core::time::Duration;

use tokio::time::{sleep, timeout};
use tracing::debug;

use super::response::confirm;
use crate::api::Api;
use crate::decode::ListDecoder;
use crate::failure::ApiError;
use crate::health::WatchHealth;
use crate::target::Target;
use crate::{LOG, Timing};

/// Maximum time for an answer that proves something. If its view lags, an API server reads the storage after 3 s.
const FRESH_MAX: Duration = Duration::from_secs(2);

/// Asks the API server whether what a watch knows is current.
pub(super) struct Prover<'a> {
    pub(super) api: &'a Api,
    pub(super) target: &'a Target,
    /// Media types to accept.
    pub(super) accept: &'static str,
    pub(super) health: &'a WatchHealth,
    pub(super) timing: &'a Timing,
    /// Version up to which the watch knows everything.
    pub(super) position: &'a str,
}

impl Prover<'_> {
    /// Asks each time that the last proof is too old, until dropped: when the watch has sent something. Returns the
    /// error with which the watch ends, if the storage does not have its version any more.
    pub(super) async fn run(&self) -> ApiError {
        loop {
            let age = self.health.view_age().unwrap_or_default();
            sleep(self.timing.prove.saturating_sub(age)).await;
            let asked = self.health.now();
            match self.ask().await {
                Ok(()) => self.health.proved_at(asked),
                Err(error @ ApiError::Restored) => return error,
                Err(error) => {
                    debug!(target: LOG, "Unknown whether {} are current: {error}", self.target.describe());
                    // The watch itself finds out and reports what is wrong.
                    sleep(self.timing.watch_min).await;
                }
            }
        }
    }

    async fn ask(&self) -> Result<(), ApiError> {
        let read = async {
            let mut response = self.api.get(&self.target.url_of_one(&[]), self.accept).await?;
            let mut decoder = ListDecoder::new(response.encoding, self.target.kind);
            while let Some(bytes) = response.body.next(FRESH_MAX).await? {
                confirm(&mut decoder, self.position, &bytes)?;
            }
            Ok(())
        };
        timeout(FRESH_MAX, read).await.unwrap_or(Err(ApiError::Unanswered(FRESH_MAX)))
    }
}
