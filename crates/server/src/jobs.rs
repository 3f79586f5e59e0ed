//! Background jobs of one generation. Dropping [`Jobs`] aborts them, except for graceful jobs, which may finish their
//! work.

use std::rc::Rc;

use config::setup::{GracefulJob, HostRequests, SHUTDOWN_GRACE, Shutdown, ShutdownTrigger};
use engine::Io;
use host::boxed;
use tokio::task::{AbortHandle, JoinHandle};

use crate::own_queries::SelfClient;

/// Running jobs and file watches of a generation.
#[derive(Default)]
pub(crate) struct Jobs {
    handles: Vec<AbortHandle>,
    /// Jobs that finish their work on shutdown, each with the triggers of its shutdown.
    graceful: Vec<([ShutdownTrigger; 2], JoinHandle<()>)>,
}

impl Jobs {
    /// Starts the jobs on the current thread.
    pub(crate) fn start(requests: &mut HostRequests, io: &Rc<dyn Io>, own: &SelfClient) -> Jobs {
        let jobs = core::mem::take(&mut requests.jobs).into_iter();
        let jobs = jobs.map(|job| tokio::task::spawn_local(job(Rc::clone(io))).abort_handle());
        let query_jobs = core::mem::take(&mut requests.query_jobs).into_iter();
        let query_jobs =
            query_jobs.map(|job| tokio::task::spawn_local(job(Rc::clone(io), Rc::new(own.clone()))).abort_handle());
        let file_watches = core::mem::take(&mut requests.file_watches).into_iter();
        let file_watches = file_watches.map(|inspection| {
            tokio::task::spawn_local(boxed(process::files::inspect(inspection, Rc::clone(io)))).abort_handle()
        });
        let graceful = core::mem::take(&mut requests.graceful_jobs).into_iter();
        let graceful = graceful.map(|job| start_graceful(job, io)).collect();
        Jobs { handles: jobs.chain(query_jobs).chain(file_watches).collect(), graceful }
    }

    /// Aborts the jobs, and waits until the graceful ones have finished.
    pub(crate) async fn end(mut self) {
        let (triggers, tasks): (Vec<_>, Vec<JoinHandle<()>>) = core::mem::take(&mut self.graceful).into_iter().unzip();
        drop((self, triggers));
        for task in tasks {
            // A job that panicked has ended too.
            let _ = task.await;
        }
    }
}

/// Starts a job that may continue for [`SHUTDOWN_GRACE`] after its shutdown is triggered.
fn start_graceful(job: GracefulJob, io: &Rc<dyn Io>) -> ([ShutdownTrigger; 2], JoinHandle<()>) {
    let ((trigger, shutdown), (late_trigger, late)) = (Shutdown::new(), Shutdown::new());
    let job = job(Rc::clone(io), shutdown);
    let task = tokio::task::spawn_local(boxed(async {
        let too_late = async {
            late.await;
            tokio::time::sleep(SHUTDOWN_GRACE).await;
        };
        tokio::select! {
            () = job => {}
            () = too_late => {}
        }
    }));
    ([trigger, late_trigger], task)
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.handles.iter().for_each(AbortHandle::abort);
    }
}
