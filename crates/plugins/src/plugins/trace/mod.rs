//! Sends traces of queries to a collector, in Zipkin's or OpenTelemetry's format.
//!
//! A wrapper around each plugin below this one records when a query arrives and when its response leaves. Without the
//! directive there are no wrappers, so tracing costs nothing.

mod export;
mod manifest;
mod spans;

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use config::setup::{Part, Setup, SetupError, StepWrapper};
use engine::tls::{ClientTls, TlsMaker};
use engine::{
    ExchangeObserver, Explanation, Failure, Hook, Hooks, Instant, Io, LocalFuture, ObservedExchange, Plugin, Query,
    Resolved, Response, Share, Verdict, Worker,
};
use metrics::{Kind, Metric};

pub(crate) use manifest::MANIFEST;

use crate::shared::record_queue::Outlet;
use export::Exporter;
use manifest::{Config, Form};
use spans::Trace;

static LOST: Metric = Metric {
    name: "portolan_trace_lost_queries_total",
    help: "Traced queries whose spans were lost because too many were waiting or the collector did not accept them.",
    kind: Kind::Counter,
    labels: &[],
};

/// Estimated size of a span in bytes, larger than most.
const BYTES_PER_SPAN: usize = 512;

fn build(mut configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    // As in CoreDNS, the last line wins.
    let Some(config) = configs.pop() else { return Ok(None) };
    if config.every == 0 {
        return Ok(None);
    }
    let outlet = Arc::new(Outlet::new(config.backlog * BYTES_PER_SPAN, config.batch * BYTES_PER_SPAN));
    let tls = config.endpoint.encrypted.then(|| {
        let wanted = ClientTls { server_name: Some(config.endpoint.host().to_owned()), ..ClientTls::default() };
        let maker: Option<Arc<dyn TlsMaker>> = setup.process.find();
        let maker = maker.ok_or_else(|| SetupError::new("this process has no TLS"))?;
        maker.client(&wanted).map_err(|error| SetupError::new(format!("tls: {error}")))
    });
    let tls = tls.transpose()?;
    let lost = setup.registry.counter(&LOST, &[]);
    let exporter = Exporter::new(&config, Arc::clone(&outlet), tls, lost);
    setup.requests.graceful_jobs.push(Box::new(move |io, ending| Box::pin(exporter.run(io, ending))));
    setup.labels().publish("trace/traceid", |query| Some(query.kept_by_any::<Trace>()?.id()));
    setup.observers().add(Asking).map_err(SetupError::from_error)?;
    setup.below.provide(StepWrapper(Box::new(|name, plugin, hooks| {
        (Arc::new(Traced { name, plugin, hooks }), Hooks { down: true, up: true, ..hooks })
    })));
    let Config { every, form, service, .. } = config;
    let tracing = Tracing { every, form, service, outlet, seen: AtomicU64::new(0) };
    Ok(Some(Part::new(tracing, Hooks::BOTH.with_updates())))
}

/// Plugin that starts and ends the trace of a query.
struct Tracing {
    every: u64,
    form: Form,
    service: String,
    outlet: Arc<Outlet>,
    /// Number of queries so far.
    seen: AtomicU64,
}

impl Plugin for Tracing {
    fn on_query(&self, query: &mut Query, _: &mut Response, worker: &mut Worker) -> Verdict {
        // Subqueries of plugins are not counted and not traced separately.
        let number = if query.is_own() { 1 } else { self.seen.fetch_add(1, Ordering::Relaxed) + 1 };
        if !query.is_own() && number.is_multiple_of(self.every) {
            let upper = if self.form == Form::Otlp { worker.random() } else { 0 };
            let (id, now) = ((upper, worker.random()), worker.now());
            query.keep(Trace::new(id, now, worker.since_1970()));
        }
        Verdict::Pass
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if let Some(trace) = query.take_kept::<Trace>() {
            let mut text = String::new();
            trace.write(self.form, &self.service, (query, response), worker.now(), &mut text);
            self.outlet.put(|bytes| bytes.extend_from_slice(text.as_bytes()));
        }
        Verdict::Pass
    }

    fn rehearse_query(&self, _: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Verdict::Pass
    }
}

/// Wrapper around a plugin that records spans of traced queries.
struct Traced {
    name: &'static str,
    plugin: Arc<dyn Plugin>,
    /// Hooks of the plugin.
    hooks: Hooks,
}

impl Plugin for Traced {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if let Some(trace) = query.kept_by_any::<Trace>() {
            trace.enter(self.name, worker.now());
        }
        if self.hooks.down { self.plugin.on_query(query, response, worker) } else { Verdict::Pass }
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if let Some(trace) = query.kept_by_any::<Trace>() {
            trace.come_up_to(self.name, worker.now());
        }
        let verdict = if self.hooks.up { self.plugin.on_response(query, response, worker) } else { Verdict::Pass };
        if let Some(trace) = query.kept_by_any::<Trace>() {
            trace.leave(self.name, worker.now());
        }
        verdict
    }

    // A rehearsal has no trace.
    fn rehearse_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if self.hooks.down { self.plugin.rehearse_query(query, response, worker) } else { Verdict::Pass }
    }

    fn rehearse_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if self.hooks.up { self.plugin.rehearse_response(query, response, worker) } else { Verdict::Pass }
    }

    fn explain(&self, hook: Hook, query: &Query, response: &Response, now: Instant) -> Option<Explanation> {
        self.plugin.explain(hook, query, response, now)
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

    fn destination(&self, query: &Query) -> usize {
        self.plugin.destination(query)
    }

    fn acquire_permit(&self, query: &Query, io: &dyn Io) -> Result<Option<Share>, Failure> {
        self.plugin.acquire_permit(query, io)
    }

    fn resolve<'a>(&'a self, query: &'a Query, io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        self.plugin.resolve(query, io)
    }
}

/// Observer that records exchanges with upstreams.
struct Asking;

impl ExchangeObserver for Asking {
    fn on_exchange(&self, query: &Query, exchange: &ObservedExchange<'_>) {
        if let Some(trace) = query.kept_by_any::<Trace>() {
            trace.ask(exchange.to, exchange.sent, exchange.took);
        }
    }
}
