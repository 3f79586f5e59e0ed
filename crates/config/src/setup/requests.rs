//! Requests of directives to the host process.

use core::time::Duration;
use std::sync::Arc;

use corefile::{Code, Diagnostic, Span};

use super::{ControlRequests, FileWatch, GracefulJob, Inspection, Job, Page, QueryJob, Readiness};
use engine::log::Notice;
use engine::tls::{TlsMaterial, TlsServer};

/// Requests of the directives of one generation to the host process.
#[derive(Default)]
pub struct HostRequests {
    /// HTTP pages to serve.
    pub pages: Vec<Page>,
    /// Files to watch.
    pub file_watches: Vec<FileWatch>,
    /// Encryption of listeners.
    pub tls: Vec<ListenerTls>,
    /// Jobs that run as long as the generation serves.
    pub jobs: Vec<Job>,
    /// Jobs that get a grace period when the generation ends.
    pub graceful_jobs: Vec<GracefulJob>,
    /// Jobs that ask this server, and run as long as the generation serves.
    pub query_jobs: Vec<QueryJob>,
    /// Time to continue serving after a termination signal.
    pub lameduck: Duration,
    /// Interval between checks of the Corefile, and its maximum random jitter, which spreads the reloads of replicas.
    pub reload: Option<(Duration, Duration)>,
    /// Readiness checks.
    pub readiness: Arc<Readiness>,
    /// Commands to run.
    pub commands: Vec<Command>,
    /// True if a panic terminates the process.
    pub panics_end: bool,
    /// Warnings for the log.
    pub warnings: Vec<SetupWarning>,
    /// Addresses of the control API.
    pub control: ControlRequests,
    /// Views into the plugins, for the control API.
    pub inspection: Inspection,
    /// Conditions to wait for before this generation replaces the current one.
    pub startup_gates: Vec<StartupGate>,
}

/// Encryption of a listener.
pub struct ListenerTls {
    /// Label of the listener.
    pub listener: String,
    /// Zone of the first server block on the listener.
    pub zone: String,
    /// TLS configuration.
    pub server: Arc<dyn TlsServer>,
    /// Content of its files, which must be the same in all server blocks on the listener.
    pub material: Arc<TlsMaterial>,
    /// True to pad responses if the query has the padding option (RFC 7830).
    pub pads_responses: bool,
}

/// Warning of a directive, with its position in the Corefile.
pub struct SetupWarning {
    /// Log event.
    pub notice: Notice,
    /// Kind of the problem.
    pub code: Code,
    /// Position of the directive.
    pub span: Span,
    /// True if the status gets this problem from the inspection of the directive, as long as it lasts.
    pub is_followed: bool,
}

impl SetupWarning {
    /// Converts the warning to a diagnostic for `portolan check`.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let Notice { directive, message, .. } = &self.notice;
        Diagnostic::warning(self.code, self.span, format!("plugin/{directive}: {message}"))
    }
}

/// Condition that the new generation needs to answer as well as the previous one, such as a synchronized cache.
pub struct StartupGate {
    /// Name of the directive.
    pub directive: &'static str,
    /// Returns true once the condition holds.
    pub is_there: Box<dyn Fn() -> bool + Send>,
    /// Maximum time to wait.
    pub timeout: Duration,
    /// Log message while waiting.
    pub waiting: &'static str,
    /// Log message if the time is up.
    pub missing: &'static str,
}

/// Command that runs on an event.
#[derive(Clone, Debug)]
pub struct Command {
    /// Event.
    pub when: LifecycleEvent,
    /// Program.
    pub program: String,
    /// Arguments.
    pub arguments: Vec<String>,
    /// True if the process does not wait for the command to finish.
    pub in_background: bool,
}

/// Event in the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleEvent {
    /// A configuration became active.
    Start,
    /// The process terminates.
    End,
    /// Certificates have been renewed.
    CertificatesRenewed,
}
