//! Wraps the steps below and records their calls, as *trace* and *dnstap* do. Has a job with a grace period.

use std::cell::RefCell;
use std::sync::Arc;

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError, StepWrapper};
use engine::log::{Level, Source};
use engine::{Hooks, Io, LocalFuture, Plugin, Query, Resolved, Response, Verdict, Worker};

pub static MANIFEST: Manifest<()> = Manifest::new("observe", "logs the steps of a query", || (), build);

fn build(_: Vec<()>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    setup.below.provide(StepWrapper(Box::new(|name, plugin, hooks| {
        let observed: Arc<dyn Plugin> = Arc::new(Observed { name, plugin, hooks });
        (observed, Hooks::BOTH)
    })));
    setup.requests.graceful_jobs.push(Box::new(|io, ending| {
        Box::pin(async move {
            ending.await;
            io.sleep_until(io.now() + core::time::Duration::from_millis(10)).await;
            io.log(Level::Info, Source::Plugin("observe"), format_args!("goodbye"));
        })
    }));
    Ok(Some(Part::new(Observe, Hooks::BOTH)))
}

/// Steps that a query passed, on its way down and up.
#[derive(Default)]
struct Places(RefCell<String>);

impl Places {
    fn add(&self, direction: char, name: &str) {
        self.0.borrow_mut().extend([' ', direction].into_iter().chain(name.chars()));
    }
}

/// Records a step.
struct Observe;

impl Plugin for Observe {
    fn on_query(&self, query: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        query.keep(Places::default());
        Verdict::Pass
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let Some(Places(places)) = query.take_kept() else { return Verdict::Pass };
        let bytes = response.finish_copy(query, &mut worker.scratch).len();
        let places = places.borrow();
        worker.log_text(Level::Info, Source::Plugin("observe"), format_args!("{} {bytes} bytes", places.trim_start()));
        Verdict::Pass
    }
}

/// Wrapper around a plugin.
struct Observed {
    name: &'static str,
    plugin: Arc<dyn Plugin>,
    hooks: Hooks,
}

impl Plugin for Observed {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        query.kept_by_any::<Places>().inspect(|places| places.add('>', self.name));
        if self.hooks.down { self.plugin.on_query(query, response, worker) } else { Verdict::Pass }
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        query.kept_by_any::<Places>().inspect(|places| places.add('<', self.name));
        if self.hooks.up { self.plugin.on_response(query, response, worker) } else { Verdict::Pass }
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Verdict {
        self.plugin.on_subresponse(query, sub, response, worker)
    }

    fn on_resolved(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        self.plugin.on_resolved(query, response, worker)
    }

    fn resolve<'a>(&'a self, query: &'a Query, io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        query.kept_by_any::<Places>().inspect(|places| places.add('~', self.name));
        self.plugin.resolve(query, io)
    }
}
