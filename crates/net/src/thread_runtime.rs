//! Runtime for a thread of its own.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// Single-threaded runtime that is created before its thread, so that the caller sees if the system refuses it.
///
/// It may be dropped anywhere, also by an asynchronous caller after the system has refused the thread. A [`Runtime`]
/// panics there, because its end waits for blocking tasks.
pub struct ThreadRuntime(Option<Runtime>);

impl ThreadRuntime {
    /// Creates a runtime.
    ///
    /// # Errors
    /// The system refuses its descriptors.
    pub fn new() -> io::Result<ThreadRuntime> {
        Builder::new_current_thread().enable_all().build().map(|runtime| ThreadRuntime(Some(runtime)))
    }

    /// Runs a future to its end, with these local tasks.
    pub fn block_on(&self, tasks: &LocalSet, future: impl Future<Output = ()>) {
        if let Some(runtime) = &self.0 {
            tasks.block_on(runtime, future);
        }
    }
}

impl Drop for ThreadRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn may_be_dropped_by_an_asynchronous_caller() {
        drop(ThreadRuntime::new().unwrap());
    }
}
