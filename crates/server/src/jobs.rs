//! What runs beside the queries of one generation; dropping it ends all of it.

use std::rc::Rc;

use engine::Outside;
use engine::setup::{FileWatch, Job};
use tokio::task::AbortHandle;

/// The running jobs and watches of a generation.
#[derive(Default)]
pub(crate) struct Jobs {
    handles: Vec<AbortHandle>,
}

impl Jobs {
    /// Starts them on the present thread.
    pub(crate) fn start(jobs: Vec<Job>, watches: Vec<FileWatch>, outside: &Rc<dyn Outside>) -> Jobs {
        let jobs = jobs.into_iter().map(|job| tokio::task::spawn_local(job(Rc::clone(outside))).abort_handle());
        let watches =
            watches.into_iter().map(|watch| tokio::task::spawn_local(crate::files::watch(watch)).abort_handle());
        Jobs { handles: jobs.chain(watches).collect() }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.handles.iter().for_each(AbortHandle::abort);
    }
}
