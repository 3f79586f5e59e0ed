//! The log: one line an event, `[LEVEL] text`, on standard output, as CoreDNS writes it.

use std::fmt::{Debug, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Targets whose events are ours; what libraries say is shown from warnings on.
const OURS: [&str; 2] = ["plugin", "portolan"];

/// Begins to write events.
pub(crate) fn start() {
    // A second start, in tests, finds the first one's subscriber in place.
    let _ = tracing_subscriber::registry().with(Lines).try_init();
}

struct Lines;

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        let ours = OURS.iter().any(|name| target.starts_with(name));
        if level > Level::INFO || (!ours && level > Level::WARN) {
            return;
        }
        let name = match level {
            Level::ERROR => "ERROR",
            Level::WARN => "WARNING",
            _ => "INFO",
        };
        let mut line = Line(format!("[{name}] "));
        // `plugin/kubernetes` is what its lines begin with; `plugin` alone is of those that say it themselves.
        if target.starts_with("plugin/") {
            let _ = write!(line.0, "{target}: ");
        }
        event.record(&mut line);
        line.0.push('\n');
        // A log that cannot be written must not stop the answers.
        let _ = std::io::stdout().lock().write_all(line.0.as_bytes());
    }
}

/// The text of an event, its other fields behind it.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
