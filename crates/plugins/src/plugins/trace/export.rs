//! Exporter job: takes spans from the buffer and posts them to the collector.

use core::pin::pin;
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use config::setup::Shutdown;
use engine::log::{Level, Source};
use engine::tls::TlsClient;
use engine::{Fetch, FetchError, Io};
use metrics::Counter;

use super::manifest::{Config, Endpoint, Form};
use crate::shared::record_queue::{First, Outlet, first};
use common_plugins::shared::option_helpers::quote_json;

/// Timeout of an HTTP request to the collector.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Job that posts spans to a collector.
pub(super) struct Exporter {
    outlet: Arc<Outlet>,
    endpoint: Endpoint,
    tls: Option<TlsClient>,
    interval: Duration,
    /// Text before and after the spans in a request body.
    around: (String, &'static str),
    lost: Counter,
}

impl Exporter {
    pub(super) fn new(config: &Config, outlet: Arc<Outlet>, tls: Option<TlsClient>, lost: Counter) -> Exporter {
        let around = match config.form {
            Form::Zipkin => ("[".to_owned(), "]"),
            Form::Otlp => (otlp_start(&config.service), "]}]}]}"),
        };
        let (endpoint, interval) = (config.endpoint.clone(), config.interval);
        Exporter { outlet, endpoint, tls, interval, around, lost }
    }

    /// Posts spans periodically until shutdown, then posts the remaining ones.
    pub(super) async fn run(self, io: Rc<dyn Io>, mut ending: Shutdown) {
        let mut spans = Vec::new();
        let mut was_reached = true;
        loop {
            let mut enough = pin!(self.outlet.has_enough());
            let mut pause = io.sleep_until(io.now() + self.interval);
            let ended = match first(&mut ending, &mut pin!(first(&mut enough, &mut pause))).await {
                First::One(()) => true,
                First::Other(_) => false,
            };
            let drained = self.outlet.drain(&mut spans);
            let mut lost = drained.lost;
            if let Err(error) = self.post(&spans, &*io).await {
                lost += drained.records;
                // Logs the first failure only, until a request succeeds again.
                if core::mem::take(&mut was_reached) {
                    io.log(Level::Warning, Source::Plugin("trace"), format_args!("{}: {error}", self.endpoint));
                }
            } else if !spans.is_empty() {
                was_reached = true;
            }
            io.counters().add(self.lost, lost);
            if ended {
                return;
            }
        }
    }

    /// Posts spans. Each one has a trailing comma.
    async fn post(&self, spans: &[u8], io: &dyn Io) -> Result<(), ExportError> {
        let [spans @ .., b','] = spans else { return Ok(()) };
        let (start, end) = &self.around;
        let body = [start.as_bytes(), spans, end.as_bytes()].concat();
        let Endpoint { address, path, .. } = &self.endpoint;
        let (tls, post) = (self.tls.as_ref(), Some(("application/json", body.as_slice())));
        let status = io.fetch(Fetch { address, tls, path, post, until: io.now() + TIMEOUT }).await;
        let status = status.map_err(ExportError::Fetch)?;
        if (200..300).contains(&status) { Ok(()) } else { Err(ExportError::Status(status)) }
    }
}

/// Reason why spans were not exported. They are lost.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    /// The request failed.
    #[error("{0}")]
    Fetch(#[source] FetchError),
    /// The collector answered with this HTTP status.
    #[error("HTTP status {0}")]
    Status(u16),
}

/// Start of an OTLP request: the resource that the spans belong to.
fn otlp_start(service: &str) -> String {
    let mut start =
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":"
            .to_owned();
    quote_json(&mut start, service);
    start.push_str("}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"portolan\"},\"spans\":[");
    start
}
