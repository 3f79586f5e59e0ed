//! What runs beside the queries of one generation; dropping it ends all of it.

use std::rc::Rc;

use engine::Outside;
use engine::setup::Needs;
use tokio::task::AbortHandle;

/// The running jobs and inspections of a generation.
#[derive(Default)]
pub(crate) struct Jobs {
    handles: Vec<AbortHandle>,
}

impl Jobs {
    /// Starts them on the present thread.
    pub(crate) fn start(needs: &mut Needs, outside: &Rc<dyn Outside>) -> Jobs {
        let jobs = core::mem::take(&mut needs.jobs).into_iter();
        let jobs = jobs.map(|job| tokio::task::spawn_local(job(Rc::clone(outside))).abort_handle());
        let inspections = core::mem::take(&mut needs.inspections).into_iter();
        let inspections = inspections.map(|inspection| {
            tokio::task::spawn_local(crate::files::inspect(inspection, Rc::clone(outside))).abort_handle()
        });
        Jobs { handles: jobs.chain(inspections).collect() }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.handles.iter().for_each(AbortHandle::abort);
    }
}
