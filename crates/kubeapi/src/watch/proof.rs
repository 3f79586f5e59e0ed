//! Proof that a silent watch is current: a consistent read while nothing arrives.
//!
//! A quiet cluster sends a bookmark once a minute, so silence alone says nothing. A list without a resource version is
//! answered by the API server only when its view of this kind is as new as the storage (KEP-2340), and that view feeds
//! the watch. The list selects one object by its name, which the server looks up. A list that is limited to one object
//! would reach the storage before Kubernetes 1.34, and count all objects there.

use core::convert::Infallible;
use core::time::Duration;

use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::api::Api;
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
}

impl Prover<'_> {
    /// Asks each time that the last proof is too old, until dropped: when the watch has sent something.
    pub(super) async fn run(&self) -> Infallible {
        loop {
            let age = self.health.view_age().unwrap_or_default();
            sleep(self.timing.prove.saturating_sub(age)).await;
            let asked = self.health.now();
            match self.ask().await {
                Ok(()) => self.health.proved_at(asked),
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
            while response.body.next(FRESH_MAX).await?.is_some() {}
            Ok(())
        };
        timeout(FRESH_MAX, read).await.unwrap_or(Err(ApiError::Unanswered(FRESH_MAX)))
    }
}
