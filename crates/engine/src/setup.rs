//! Building a plugin from its directive: what it may use of the process and of the plugins below, and what it may
//! request.
//!
//! The `build` function of a directive gets a [`Setup`] and returns a [`Part`]: the plugin, its hooks and its zones.
//! During the build it can
//!
//! - read files ([`Setup::files`]) and register metrics ([`Setup::registry`]),
//! - use interfaces that other code offers, found by type ([`Capabilities`]): those of the process, and those of the
//!   directives further down in the same server block, which are built first,
//! - request work from the host process ([`Needs`]): HTTP pages, background jobs, watched files, commands, TLS for a
//!   listener,
//! - take over state from the previous generation ([`Carried`]), so that a reload keeps caches and connections.
//!
//! If the build of any directive fails, the new generation is discarded and the running one continues.

use core::any::{Any, TypeId};
use core::fmt::Display;
use core::future::Future;
use core::net::IpAddr;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use corefile::{Diagnostic, Span};
use futures_channel::oneshot;
use wire::Name;

use crate::codes;
use crate::log::{Level, Notice};
use crate::metrics::Registry;
use crate::tls::TlsServer;
use crate::{Hooks, Labels, LocalFuture, Outside, Plugin, Query, Witnesses, Zones};

/// Result of building a directive: a plugin, and where it acts.
pub struct Part {
    /// Plugin.
    pub plugin: Box<dyn Plugin>,
    /// Hooks that the plugin implements.
    pub hooks: Hooks,
    /// Zones in which it acts; `None` for all zones of its block.
    pub zones: Option<Zones>,
    /// Zones in which a name that it denies continues with the next step (`fallthrough`).
    pub fallthrough: Zones,
    /// True if the plugin is authoritative for its zones.
    ///
    /// It matters only if the plugin is the last of its chain: queries for other names then get REFUSED. After any
    /// other plugin they get SERVFAIL, because the chain lacks a plugin that answers them.
    pub is_authority: bool,
}

impl Part {
    /// Returns a part that acts in all zones of its block, without `fallthrough`.
    #[must_use]
    pub fn new(plugin: impl Plugin + 'static, hooks: Hooks) -> Part {
        Part { plugin: Box::new(plugin), hooks, zones: None, fallthrough: Zones::default(), is_authority: false }
    }
}

/// Server block that contains a directive.
#[derive(Clone, Debug, Default)]
pub struct BlockInfo {
    /// Zones of its keys, in order.
    pub zones: Vec<Name>,
    /// Sites: one for each combination of listener and zone.
    pub sites: Vec<SiteInfo>,
    /// All zones that clients of its addresses can reach: those of every block on the same addresses, and those that
    /// its own directives name.
    pub reachable: Zones,
    /// Names of its directives, in the order of the chain. Metrics identify a step by its index here.
    pub directives: Vec<&'static str>,
    /// True if one of its directives handles queries of classes other than IN.
    pub any_class: bool,
    /// True if one of its directives configures TLS.
    pub encrypts: bool,
    /// Base directory of relative file names.
    pub root: PathBuf,
    /// Name of its view; empty without one. A view serves only the queries that match its filter.
    pub view: String,
    /// Settings of its listeners.
    pub listening: Listening,
}

/// Settings of a listener. If several blocks share it, the settings of the first block apply.
#[derive(Clone, Debug, Default)]
pub struct Listening {
    /// Timeouts of streams.
    pub timeouts: Timeouts,
    /// Policy for PROXY protocol headers; `None` disables the protocol.
    pub proxy: Option<ProxyPolicy>,
    /// Limits for gRPC.
    pub calls: CallLimits,
}

/// Limits for gRPC connections; 0 means no limit. The defaults are those of CoreDNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Maximum number of connections to a listener.
    pub connections_max: usize,
    /// Maximum number of concurrent calls on a connection.
    pub calls_max: u32,
}

impl Default for CallLimits {
    fn default() -> Self {
        CallLimits { connections_max: 200, calls_max: 256 }
    }
}

/// Handling of PROXY protocol headers, depending on the address of the proxy.
#[derive(Clone)]
pub struct ProxyPolicy(pub Arc<dyn Fn(IpAddr) -> ProxyHeader + Send + Sync>);

impl core::fmt::Debug for ProxyPolicy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ProxyPolicy")
    }
}

/// Handling of a PROXY protocol header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// Uses the client address in the header.
    Use,
    /// Parses and discards the header.
    Ignore,
    /// Closes the connection, or drops the datagram, if it starts with a header.
    Reject,
    /// Treats the data as DNS without looking for a header.
    Skip,
}

/// Timeouts and limits of streams; `None` keeps the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Time for the rest of a query to arrive after its first byte.
    pub read: Option<Duration>,
    /// Time for a response to be accepted by the client.
    pub write: Option<Duration>,
    /// Time that a connection may be idle.
    pub idle: Option<Duration>,
    /// Maximum number of queries on one connection.
    pub queries_max: Option<u32>,
}

/// Settings that directives make for their server block as a whole.
#[derive(Clone, Debug, Default)]
pub struct BlockSettings {
    /// Addresses and interfaces to listen on. Empty for all addresses of the machine.
    pub bind: Vec<BindTarget>,
    /// Addresses and interfaces to exclude.
    pub bind_except: Vec<BindTarget>,
    /// Base directory of relative file names.
    pub root: PathBuf,
    /// Name of the view; empty without one. Views let several blocks serve the same zones.
    pub view: String,
    /// Settings of the listeners.
    pub listening: Listening,
}

/// Address or network interface, as written in the Corefile.
#[derive(Clone, Debug)]
pub struct BindTarget {
    /// Text.
    pub text: String,
    /// Position.
    pub span: Span,
}

/// One zone of a server block on one listener.
#[derive(Clone, Debug)]
pub struct SiteInfo {
    /// Index, as in [`Query::site`](crate::Query::site).
    pub index: usize,
    /// Index of the listener.
    pub listener: usize,
    /// Zone.
    pub origin: Name,
    /// Value of the metric label `server`: `dns://:53`.
    pub server: String,
    /// Value of the metric label `zone`.
    pub zone: String,
    /// Value of the metric label `view`; empty without one.
    pub view: String,
    /// Address of the listener; `None` for all addresses of the machine.
    pub ip: Option<IpAddr>,
    /// Port of the listener.
    pub port: u16,
}

/// Reason why a directive could not be built, although its syntax is correct: for example, a file is missing.
#[derive(Clone, Debug)]
pub struct SetupError {
    /// Problem, in one line.
    pub message: String,
    /// Remedy.
    pub help: Option<String>,
    /// The directive whose absence is the cause. If that one failed itself, this error is not reported.
    pub(crate) missing: Option<&'static str>,
}

impl SetupError {
    /// Returns an error without a remedy.
    pub fn new(message: impl Into<String>) -> SetupError {
        SetupError { message: message.into(), help: None, missing: None }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> SetupError {
        SetupError { help: Some(help.into()), ..self }
    }

    /// Names the directive below whose absence is the cause.
    #[must_use]
    pub fn missing(self, directive: &'static str) -> SetupError {
        SetupError { missing: Some(directive), ..self }
    }
}

/// Context in which a directive is built.
///
/// Directives are built from the bottom of the chain to the top, so a directive finds what those below it offer.
pub struct Setup<'a> {
    /// Server block of the directive.
    pub block: &'a BlockInfo,
    /// Metrics of the process.
    pub registry: &'a Arc<Registry>,
    /// File system.
    pub files: &'a dyn Files,
    /// Interfaces that the process offers.
    pub process: &'a Capabilities,
    /// Interfaces that the directives further down the chain offer.
    pub below: &'a mut Capabilities,
    /// Requests to the host process.
    pub needs: &'a mut Needs,
    /// State that survives a reload.
    pub carried: &'a mut Carried,
    /// The line of the current directive that is being built, by its index among the directive's lines.
    pub(crate) line: usize,
    /// Warnings of the current directive, each with the index of its line.
    pub(crate) warned: Vec<(usize, String)>,
    /// Errors of the current directive, each with the index of its line.
    pub(crate) failed: Vec<(usize, SetupError)>,
}

impl Setup<'_> {
    /// Returns the zones that a directive names, or those of its block if it names no zones.
    #[must_use]
    pub fn zones_or_keys(&self, named: &[Name]) -> Zones {
        let zones = if named.is_empty() { &self.block.zones } else { named };
        zones.iter().cloned().collect()
    }

    /// Returns the metadata labels of this server block.
    #[must_use]
    pub fn labels(&mut self) -> Arc<Labels> {
        self.common()
    }

    /// Returns the observers of this server block's exchanges with upstreams.
    #[must_use]
    pub fn witnesses(&mut self) -> Arc<Witnesses> {
        self.common()
    }

    /// Returns an object that the directives of this server block share. The first call creates it.
    fn common<T: Any + Default>(&mut self) -> Arc<T> {
        let known = self.below.find();
        known.unwrap_or_else(|| {
            let thing = Arc::<T>::default();
            self.below.provide(Arc::clone(&thing));
            thing
        })
    }

    /// Records a warning about a problem that does not prevent the directive from working.
    pub fn warn(&mut self, message: impl Display) {
        self.warned.push((self.line, message.to_string()));
    }

    /// Builds the lines of a directive one by one. A line that fails does not keep the others from being built, so
    /// that a check can report every error; the configuration as a whole fails.
    pub fn for_each_line<C>(&mut self, lines: Vec<C>, mut build: impl FnMut(C, &mut Self) -> Result<(), SetupError>) {
        for (index, line) in lines.into_iter().enumerate() {
            self.line = index;
            if let Err(error) = build(line, self) {
                self.failed.push((index, error));
            }
        }
        self.line = 0;
    }

    /// Resolves a file name of the Corefile against `root`.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.block.root.join(name)
    }
}

/// File system, with blocking calls.
pub trait Files {
    /// Reads a file.
    ///
    /// # Errors
    /// The error of the system call.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns true if the path is a file.
    fn is_file(&self, path: &Path) -> bool;

    /// Returns metadata that changes when the contents of the file change.
    ///
    /// # Errors
    /// The error of the system call.
    fn stamp(&self, path: &Path) -> io::Result<Stamp>;

    /// Lists the files below a directory recursively, sorted, and at most [`LISTED_MAX`].
    ///
    /// # Errors
    /// The error of the system call, if the directory itself cannot be read.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Replaces a file atomically: a reader sees either the old contents or the new ones.
    ///
    /// # Errors
    /// The error of a system call or of `write`. The old file is then unchanged.
    fn replace(&self, path: &Path, write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()>;
}

/// Maximum number of files in a directory listing: the maximum number of zones of a server.
pub const LISTED_MAX: usize = 100_000;

/// File metadata that changes when the contents of the file change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Modification time, in nanoseconds since an arbitrary start.
    pub modified: u128,
    /// Length in bytes.
    pub len: u64,
}

/// Registry of interfaces by type, most of them `Arc<dyn Trait>`.
#[derive(Default)]
pub struct Capabilities {
    by_type: HashMap<TypeId, Box<dyn Any>>,
}

impl Capabilities {
    /// Registers a value, in place of another one of the same type.
    pub fn provide<T: Any>(&mut self, thing: T) {
        self.by_type.insert(TypeId::of::<T>(), Box::new(thing));
    }

    /// Removes and returns the value of this type.
    pub fn take<T: Any>(&mut self) -> Option<T> {
        self.by_type.remove(&TypeId::of::<T>())?.downcast().ok().map(|thing| *thing)
    }

    /// Returns a clone of the value of this type.
    #[must_use]
    pub fn find<T: Any + Clone>(&self) -> Option<T> {
        self.by_type.get(&TypeId::of::<T>())?.downcast_ref().cloned()
    }
}

/// Zones in which a directive further down answers every name from memory, so that caching its answers gains nothing.
#[derive(Clone, Debug, Default)]
pub struct LocalZones(pub Zones);

impl LocalZones {
    /// Adds `zones`, except for those that overlap with `fallthrough`.
    pub fn add(below: &mut Capabilities, zones: &Zones, fallthrough: &Zones) {
        let LocalZones(known) = below.find().unwrap_or_default();
        let overlaps =
            |one: &Name, other: &Name| one.as_ref().is_within(other.as_ref()) || other.as_ref().is_within(one.as_ref());
        let answers_all = |zone: &&Name| !fallthrough.names().iter().any(|name| overlaps(name, zone));
        let own = zones.names().iter().filter(answers_all);
        below.provide(LocalZones(known.names().iter().chain(own).cloned().collect()));
    }
}

/// Predicate for the queries that a directive further down answers from memory at this moment.
///
/// A cached answer to another query must not replace such an answer. A directive that finds a predicate from below
/// must include it in its own.
#[derive(Clone)]
pub struct LocalAnswers(pub Arc<dyn Fn(&Query) -> bool + Send + Sync>);

/// Wraps each plugin below the directive that offers it, for example to trace or measure the steps.
///
/// The function gets the name of a directive, its plugin and its hooks, and returns their replacement.
pub struct Around(pub Box<PutAround>);

type PutAround = dyn Fn(&'static str, Box<dyn Plugin>, Hooks) -> (Box<dyn Plugin>, Hooks);

/// Predicate for the queries that a server block accepts. Other queries go to another block with the same zone or a
/// parent zone.
#[derive(Clone)]
pub struct BlockFilter(pub Arc<dyn Fn(&Query) -> bool + Send + Sync>);

/// State that survives a reload.
///
/// Each object has a key that names everything it depends on. A directive whose settings have changed uses another key
/// and therefore starts with a new object.
#[derive(Default)]
pub struct Carried {
    before: HashMap<String, Arc<dyn Any + Send + Sync>>,
    now: HashMap<String, Arc<dyn Any + Send + Sync>>,
}

impl Carried {
    /// Returns the state for the next generation. It offers the objects of this generation, and drops those that no
    /// directive takes over.
    #[must_use]
    pub fn next(&self) -> Carried {
        Carried { before: self.now.clone(), now: HashMap::new() }
    }

    /// Returns the object with this key, from the previous generation or another directive of this one. Creates it
    /// with `make` if it does not exist or has another type.
    pub fn take_over<T: Any + Send + Sync>(&mut self, key: String, make: impl FnOnce() -> T) -> Arc<T> {
        let known = self.now.get(&key).or_else(|| self.before.get(&key)).cloned();
        let thing = known.and_then(|thing| thing.downcast().ok()).unwrap_or_else(|| Arc::new(make()));
        self.now.insert(key, Arc::clone(&thing) as Arc<dyn Any + Send + Sync>);
        thing
    }

    /// Drops the objects that no directive has taken over. Called when the generation has been built.
    pub(crate) fn forget_the_rest(&mut self) {
        self.before.clear();
    }
}

/// Requests of the directives of one generation to the host process.
#[derive(Default)]
pub struct Needs {
    /// HTTP pages to serve.
    pub pages: Vec<Page>,
    /// Files to watch.
    pub inspections: Vec<Inspection>,
    /// TLS configurations of listeners, by the listener's label.
    pub tls: Vec<(String, Arc<dyn TlsServer>)>,
    /// Jobs that run as long as the generation serves.
    pub jobs: Vec<Job>,
    /// Jobs that get a grace period when the generation ends.
    pub lasting_jobs: Vec<LastingJob>,
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
    pub warnings: Vec<Warned>,
    /// Conditions to wait for before this generation replaces the current one.
    pub awaited: Vec<Awaited>,
}

/// Warning of a directive, with its position in the Corefile.
pub struct Warned {
    /// Log event.
    pub notice: Notice,
    /// Position of the directive.
    pub span: Span,
}

impl Warned {
    /// Converts the warning to a diagnostic for `portolan check`.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let Notice { directive, message, .. } = &self.notice;
        Diagnostic::warning(codes::SETUP_WARNED, self.span, format!("plugin/{directive}: {message}"))
    }
}

/// Condition that the new generation needs to answer as well as the previous one, such as a synchronized cache.
pub struct Awaited {
    /// Name of the directive.
    pub directive: &'static str,
    /// Returns true once the condition holds.
    pub is_there: Box<dyn Fn() -> bool + Send>,
    /// Maximum time to wait.
    pub patience: Duration,
    /// Log message while waiting.
    pub waiting: &'static str,
    /// Log message if the time is up.
    pub missing: &'static str,
}

/// Command that runs on an event.
#[derive(Clone, Debug)]
pub struct Command {
    /// Event.
    pub when: When,
    /// Program.
    pub program: String,
    /// Arguments.
    pub arguments: Vec<String>,
    /// True if the process does not wait for the command to finish.
    pub in_background: bool,
}

/// Event in the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A configuration became active.
    Start,
    /// The process terminates.
    End,
    /// Certificates have been renewed.
    CertificatesRenewed,
}

/// HTTP page.
pub struct Page {
    /// Address of the HTTP server, as `[HOST]:PORT`.
    pub address: String,
    /// Path.
    pub path: Cow<'static, str>,
    /// TLS configuration. It applies to all pages of the address.
    pub tls: Option<Arc<dyn TlsServer>>,
    /// Handler. Its argument is the query string of the URL.
    pub make: Arc<MakePage>,
}

/// Handler of a page: takes the query string of the URL, returns the response.
pub type MakePage = dyn Fn(&str) -> LocalFuture<'static, PageContent> + Send + Sync;

impl Page {
    /// Returns a page that ignores the query string and is produced synchronously.
    pub fn new(
        address: String,
        path: impl Into<Cow<'static, str>>,
        make: impl Fn() -> PageContent + Send + Sync + 'static,
    ) -> Page {
        let make = Arc::new(move |_: &str| Box::pin(core::future::ready(make())) as LocalFuture<'static, PageContent>);
        Page { address, path: path.into(), tls: None, make }
    }
}

/// HTTP response.
pub struct PageContent {
    /// Status code.
    pub status: u16,
    /// Content type.
    pub content_type: &'static str,
    /// Body.
    pub body: Cow<'static, [u8]>,
}

impl PageContent {
    /// Returns a response of plain text.
    pub fn text(status: u16, body: impl Into<Cow<'static, str>>) -> PageContent {
        let body = match body.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        PageContent { status, content_type: "text/plain; charset=utf-8", body }
    }
}

/// Periodic check of files for changes.
pub struct Inspection {
    /// Interval; 0 disables the check.
    pub every: Duration,
    /// True to run the first check as soon as the generation serves, instead of one interval later.
    pub at_once: bool,
    /// Check. It may block, because it does not run on a worker thread.
    pub look: Look,
}

impl Inspection {
    /// Returns a check that first runs after one interval.
    pub fn new(every: Duration, look: impl FnMut(Looking<'_>) + Send + 'static) -> Inspection {
        Inspection { every, at_once: false, look: Box::new(look) }
    }

    /// Returns a check of one file, whose contents at build time are in `read`.
    ///
    /// `changed` runs if the contents differ from the last ones. It gets the new contents, or an error if the file
    /// cannot be read. Its error is logged as a warning of `directive`, so it has to name the position: `FILE:LINE:
    /// PROBLEM`.
    pub fn of_file(
        (directive, path): (&'static str, PathBuf),
        every: Duration,
        read: &io::Result<Vec<u8>>,
        mut changed: impl FnMut(&dyn Files, io::Result<Vec<u8>>) -> Result<(), String> + Send + 'static,
    ) -> Inspection {
        let seed = foldhash::quality::RandomState::default();
        // A hash identifies the contents, which may be large.
        let sign = move |read: &io::Result<Vec<u8>>| {
            read.as_ref().map(|octets| (octets.len(), seed.hash_one(octets))).map_err(io::Error::kind)
        };
        let mut seen = sign(read);
        let look = move |looking: Looking<'_>| {
            let read = looking.files.read(&path);
            let now = sign(&read);
            if now == seen {
                return;
            }
            seen = now;
            if let Err(what) = changed(looking.files, read) {
                looking.notices.push(Notice::new(Level::Warning, directive, what));
            }
        };
        Inspection::new(every, look)
    }
}

/// Function that checks files.
pub type Look = Box<dyn FnMut(Looking<'_>) + Send>;

/// Context of a file check.
pub struct Looking<'a> {
    /// File system.
    pub files: &'a dyn Files,
    /// Wall-clock time since the Unix epoch.
    pub since_1970: Duration,
    /// Collects log events.
    pub notices: &'a mut Vec<Notice>,
}

/// Background job. The host drops it when the generation ends.
pub type Job = Box<dyn FnOnce(Rc<dyn Outside>) -> LocalFuture<'static, ()> + Send>;

/// Background job with a grace period: the [`Ending`] completes when the generation ends, and the job may then run for
/// [`FAREWELL`] longer.
pub type LastingJob = Box<dyn FnOnce(Rc<dyn Outside>, Ending) -> LocalFuture<'static, ()> + Send>;

/// Grace period of a job after its generation has ended. It is enough to send remaining data to a server that
/// responds, and it bounds the delay of the termination.
pub const FAREWELL: Duration = Duration::from_secs(2);

/// Future that completes when a generation ends.
pub struct Ending(oneshot::Receiver<()>);

/// Triggers the [`Ending`] when it is dropped.
pub struct Ender {
    _sender: oneshot::Sender<()>,
}

impl Ending {
    /// Returns a connected pair.
    #[must_use]
    pub fn new() -> (Ender, Ending) {
        let (sender, receiver) = oneshot::channel();
        (Ender { _sender: sender }, Ending(receiver))
    }
}

impl Future for Ending {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(drop)
    }
}

/// Readiness of the plugins of a generation.
#[derive(Default)]
pub struct Readiness {
    members: Mutex<Vec<Member>>,
    ending: AtomicBool,
}

struct Member {
    name: &'static str,
    test: Box<dyn Fn() -> bool + Send + Sync>,
    was_ready: bool,
}

impl Readiness {
    /// Adds a readiness check.
    pub fn add(&self, name: &'static str, test: impl Fn() -> bool + Send + Sync + 'static) {
        self.lock().push(Member { name, test: Box::new(test), was_ready: false });
    }

    /// Returns the names of the plugins that are not ready, sorted and without duplicates.
    ///
    /// A plugin that was ready once counts as ready from then on, unless `again` is true.
    #[must_use]
    pub fn unready(&self, again: bool) -> Vec<&'static str> {
        let mut names = Vec::new();
        for member in &mut *self.lock() {
            if !member.was_ready || again {
                member.was_ready = (member.test)();
            }
            if !member.was_ready {
                names.push(member.name);
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Records that the process terminates.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Returns true if the process terminates.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
