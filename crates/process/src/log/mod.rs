//! The log: events of the whole process, written to standard output by one thread.
//!
//! Events come from workers and jobs through [`net::log_queue`], and from `tracing`, which the crates at the edge and
//! some libraries use. The writer renders them as text, as CoreDNS does, or as JSON, one object per line.

pub mod levels;
mod render;
mod repeats;
pub mod tail;
mod writer;

use std::fmt::{Arguments, Debug, Write as _};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use engine::log::{Level, Source};
use metrics::Registry;
use net::log_queue;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

pub use render::Format;
use render::Renderer;
use writer::Writer;

/// Prefixes of our own `tracing` targets. Events of libraries are logged only from warnings on.
const OURS: [&str; 2] = ["plugin", "portolan"];
/// Prefix of the targets of a library whose warnings any client can cause.
const OF_CLIENTS: &str = "quinn_proto";
/// Limit for writing the last lines at shutdown. A reader that does not take them in this time has stopped.
const FLUSH_LIMIT: Duration = Duration::from_millis(300);

/// Starts the writer and connects `tracing` to it. Only the first call in a process has an effect.
pub fn start(format: Format) {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        // Tests may have installed another subscriber.
        let _ = tracing_subscriber::registry().with(Bridge).try_init();
        let stdout = io::stdout();
        let renderer = Renderer { format, timestamps: stdout.is_terminal() };
        // Not `Stdout`, because a blocked write would hold its lock.
        let Ok(out) = stdout.as_fd().try_clone_to_owned().map(File::from) else { return };
        let run = move || Writer::new(renderer, out).run(log_queue());
        // Without the thread there is no log, but the server still answers queries.
        let _ = std::thread::Builder::new().name("log".to_owned()).spawn(run);
    });
}

/// Adds the metrics of the log to a registry.
pub fn publish(registry: &Registry) {
    log_queue().publish(registry);
}

/// Writes the last lines, as far as the reader takes them.
pub fn finish() {
    log_queue().flush(FLUSH_LIMIT);
}

/// Returns the text of an error that ends the process, as a record of level FATAL with [`Format::Json`]. It goes to
/// standard error: the log has ended.
pub fn fatal(format: Format, text: &str) -> String {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    render::fatal(format, time, text)
}

/// Reports an event.
pub fn report(level: Level, source: Source<'_>, message: Arguments<'_>) {
    log_queue().report(level, source, message);
}

/// Connects `tracing` to the queue.
struct Bridge;

impl<S: Subscriber> Layer<S> for Bridge {
    /// Spares libraries the events for each packet, which are never logged.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let is_ours = is_ours(metadata.target());
        match *metadata.level() {
            tracing::Level::TRACE => Interest::never(),
            tracing::Level::DEBUG if is_ours => Interest::sometimes(),
            tracing::Level::DEBUG => Interest::never(),
            _ => Interest::always(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= tracing::Level::INFO || is_ours(metadata.target()) && log_queue().takes(Level::Debug)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let target = event.metadata().target();
        let level = match *event.metadata().level() {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warning,
            tracing::Level::INFO => Level::Info,
            _ => Level::Debug,
        };
        if (!is_ours(target) && level > Level::Warning) || target.starts_with(OF_CLIENTS) {
            return;
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        let source = target.strip_prefix("plugin/").map_or(Source::Server, Source::Plugin);
        report(level, source, format_args!("{}", text.0));
    }
}

/// Returns true if a `tracing` target is one of our own.
fn is_ours(target: &str) -> bool {
    OURS.iter().any(|name| target.starts_with(name))
}

/// Text of an event: its message, then its other fields as `name=value`.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
