//! What runs beside the queries of one generation; dropping it ends all of it.

use std::rc::Rc;

use engine::Outside;
use engine::setup::{Ender, Ending, FAREWELL, LastingJob, Needs};
use tokio::task::{AbortHandle, JoinHandle};

/// The running jobs and inspections of a generation.
#[derive(Default)]
pub(crate) struct Jobs {
    handles: Vec<AbortHandle>,
    /// Those that bring something to its end, and what tells them to.
    lasting: Vec<([Ender; 2], JoinHandle<()>)>,
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
        let lasting = core::mem::take(&mut needs.lasting_jobs).into_iter();
        let lasting = lasting.map(|job| start_lasting(job, outside)).collect();
        Jobs { handles: jobs.chain(inspections).collect(), lasting }
    }

    /// Ends all, and waits for those that bring something to its end.
    pub(crate) async fn end(mut self) {
        let (enders, tasks): (Vec<_>, Vec<JoinHandle<()>>) = core::mem::take(&mut self.lasting).into_iter().unzip();
        drop((self, enders));
        for task in tasks {
            // A panic in one of them is its end.
            let _ = task.await;
        }
    }
}

/// Starts a job that goes on for a moment when it is told to end.
fn start_lasting(job: LastingJob, outside: &Rc<dyn Outside>) -> ([Ender; 2], JoinHandle<()>) {
    let ((ender, ending), (late_ender, late)) = (Ending::new(), Ending::new());
    let job = job(Rc::clone(outside), ending);
    let task = tokio::task::spawn_local(async {
        let too_late = async {
            late.await;
            tokio::time::sleep(FAREWELL).await;
        };
        tokio::select! {
            () = job => {}
            () = too_late => {}
        }
    });
    ([ender, late_ender], task)
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.handles.iter().for_each(AbortHandle::abort);
    }
}
