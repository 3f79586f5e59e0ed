//! Reload of the Corefile.

use std::time::Instant;

use control::reload::Reloaded;
use hyper::StatusCode;
use tokio::sync::oneshot;

use super::super::ControlCommand;
use super::super::context::{Access, Context};
use super::super::refusal::Refusal;

/// Reloads the Corefile, like SIGUSR1, and waits for the outcome.
pub(super) async fn reload(context: &Context, access: Access) -> Result<Reloaded, Refusal> {
    let busy = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is busy with other reloads, or shuts down");
    tracing::info!(target: "portolan", "{access} requests a reload over the control socket");
    let start = Instant::now();
    let (sender, outcome) = oneshot::channel();
    context.commands.try_send(ControlCommand::Reload(sender)).map_err(|_| busy())?;
    let error = outcome.await.map_err(|_| busy())?;
    let loaded = context.view.loaded();
    Ok(Reloaded {
        applied: error.is_none(),
        generation: loaded.generation,
        hash: loaded.hash.clone(),
        took_seconds: start.elapsed().as_secs_f64(),
        error,
    })
}
