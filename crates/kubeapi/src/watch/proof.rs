//! Proof that a silent watch is current: a consistent read while nothing arrives.
//!
//! A quiet cluster sends a bookmark once a minute, so silence alone says nothing. A list of one object without a
//! resource version is answered by the API server only when its view of this kind is as new as the storage (KEP-2340),
//! which is the view that feeds the watch. It costs the server no read of the storage.

use core::convert::Infallible;

use tokio::time::sleep;
use tracing::debug;

use crate::api::Api;
use crate::failure::ApiError;
use crate::health::WatchHealth;
use crate::target::Target;
use crate::watch::next;
use crate::{LOG, Timing};

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
        let mut response = self.api.get(&self.target.url(&[("limit", "1")]), self.accept).await?;
        while next(&mut response.body, self.timing.list_silence).await?.is_some() {}
        Ok(())
    }
}
