//! Background jobs of a generation.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::rc::Rc;

use futures_channel::oneshot;

use engine::{Io, LocalFuture};

/// Background job. The host drops it when the generation ends.
pub type Job = Box<dyn FnOnce(Rc<dyn Io>) -> LocalFuture<'static, ()> + Send>;

/// Background job with a grace period: the [`Shutdown`] completes when the generation ends, and the job may then run
/// for [`SHUTDOWN_GRACE`] longer.
pub type GracefulJob = Box<dyn FnOnce(Rc<dyn Io>, Shutdown) -> LocalFuture<'static, ()> + Send>;

/// Grace period of a job after its generation has ended. It is enough to send remaining data to a server that
/// responds, and it bounds the delay of the termination.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Future that completes when a generation ends.
pub struct Shutdown(oneshot::Receiver<()>);

/// Triggers the [`Shutdown`] when it is dropped.
pub struct ShutdownTrigger {
    _sender: oneshot::Sender<()>,
}

impl Shutdown {
    /// Returns a connected pair.
    #[must_use]
    pub fn new() -> (ShutdownTrigger, Shutdown) {
        let (sender, receiver) = oneshot::channel();
        (ShutdownTrigger { _sender: sender }, Shutdown(receiver))
    }
}

impl Future for Shutdown {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(drop)
    }
}
