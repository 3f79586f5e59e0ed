//! What a directive may ask for while it is made to run: typed capabilities, and jobs that the edge does for it.

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

/// What a directive becomes in the chain.
pub struct Part {
    /// The plugin.
    pub plugin: Box<dyn Plugin>,
    /// Its hooks.
    pub hooks: Hooks,
    /// The zones in which it acts; `None` for all that its block serves.
    pub zones: Option<Zones>,
    /// The zones in which a name that it does not have goes on to the next step.
    pub fallthrough: Zones,
    /// It is an authority for its zones: where it is the last of its chain, other names are refused. After others they are a
    /// failure of this server, which was told to answer them and not how.
    pub is_authority: bool,
}

impl Part {
    /// A plugin that acts in all zones of its block and passes nothing on.
    #[must_use]
    pub fn new(plugin: impl Plugin + 'static, hooks: Hooks) -> Part {
        Part { plugin: Box::new(plugin), hooks, zones: None, fallthrough: Zones::default(), is_authority: false }
    }
}

/// The server block in which a directive stands.
#[derive(Clone, Debug, Default)]
pub struct BlockInfo {
    /// The zones of its keys, in order.
    pub zones: Vec<Name>,
    /// The addresses that it is served on with the zones there.
    pub sites: Vec<SiteInfo>,
    /// All zones that clients of its addresses find: those of every block there, and those that its own directives name.
    pub reachable: Zones,
    /// Its directives, in the order of the chain: a step is known by its place here.
    pub directives: Vec<&'static str>,
    /// A directive of it handles questions of classes other than IN.
    pub any_class: bool,
    /// A directive of it has certificates.
    pub encrypts: bool,
    /// Where relative file names start.
    pub root: PathBuf,
    /// Its name as a view: it serves only the queries that it wants; empty if it is none.
    pub view: String,
    /// What directives say of the addresses that it is served on.
    pub listening: Listening,
}

/// What directives say of how an address is served; one with several blocks has that of the first of them.
#[derive(Clone, Debug, Default)]
pub struct Listening {
    /// How long clients on streams may take.
    pub timeouts: Timeouts,
    /// What becomes of what proxies say; `None` if nobody looks for it.
    pub proxy: Option<ProxyPolicy>,
    /// How much clients may do that make calls.
    pub calls: CallLimits,
}

/// How much clients may do where each query is a call of its own within a connection (gRPC); 0 is any number. The numbers
/// are CoreDNS's where nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Connections open to an address.
    pub connections_max: usize,
    /// Calls open on one connection.
    pub calls_max: u32,
}

impl Default for CallLimits {
    fn default() -> Self {
        CallLimits { connections_max: 200, calls_max: 256 }
    }
}

/// What becomes of the header of a proxy (the PROXY protocol), by the proxy's address.
#[derive(Clone)]
pub struct ProxyPolicy(pub Arc<dyn Fn(IpAddr) -> ProxyHeader + Send + Sync>);

impl core::fmt::Debug for ProxyPolicy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ProxyPolicy")
    }
}

/// What becomes of the header of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// It is believed.
    Use,
    /// It is read and forgotten.
    Ignore,
    /// Who sends one is not served.
    Reject,
    /// Nobody looks for one.
    Skip,
}

/// How long clients on streams may take, and how much they may ask, where a directive says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// For a query to arrive once its first octet has.
    pub read: Option<Duration>,
    /// For an answer to be accepted.
    pub write: Option<Duration>,
    /// Without a query.
    pub idle: Option<Duration>,
    /// Queries on one connection.
    pub queries_max: Option<u32>,
}

/// What directives say about their server block as a whole.
#[derive(Clone, Debug, Default)]
pub struct BlockSettings {
    /// The addresses and interfaces to listen on; all of the machine if there is none.
    pub bind: Vec<BindTarget>,
    /// Those of them that are not listened on.
    pub bind_except: Vec<BindTarget>,
    /// Where relative file names start.
    pub root: PathBuf,
    /// Its name as a view: other blocks may serve the same zones; empty if it is none.
    pub view: String,
    /// How its addresses are served.
    pub listening: Listening,
}

/// An address or a network interface, as written.
#[derive(Clone, Debug)]
pub struct BindTarget {
    /// The word.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// One zone of a server block on one address.
#[derive(Clone, Debug)]
pub struct SiteInfo {
    /// Its index, as in [`Query::site`](crate::Query::site).
    pub index: usize,
    /// Index of its listener.
    pub listener: usize,
    /// The zone.
    pub origin: Name,
    /// The address, as metrics write it: `dns://:53`.
    pub server: String,
    /// The zone, as metrics write it.
    pub zone: String,
    /// The name of the view, as metrics write it; empty without one.
    pub view: String,
    /// The address that is listened on; `None` for all of the machine.
    pub ip: Option<IpAddr>,
    /// The port that is listened on.
    pub port: u16,
}

/// Why a directive cannot be made to run: something of the world is not as it must be.
#[derive(Clone, Debug)]
pub struct SetupError {
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The directive whose absence is the cause. If that one failed itself, this error is not reported.
    pub(crate) missing: Option<&'static str>,
}

impl SetupError {
    /// An error without a remedy to name.
    pub fn new(message: impl Into<String>) -> SetupError {
        SetupError { message: message.into(), help: None, missing: None }
    }

    /// Names the remedy.
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

/// What a directive may ask for while it is made to run.
///
/// Directives are made from the bottom of the chain to its top: what one needs of those below is there already.
pub struct Setup<'a> {
    /// The directive's server block.
    pub block: &'a BlockInfo,
    /// The series of the process.
    pub registry: &'a Arc<Registry>,
    /// Files, at this moment.
    pub files: &'a dyn Files,
    /// What the process offers.
    pub process: &'a Capabilities,
    /// What the directives below offer.
    pub below: &'a mut Capabilities,
    /// What the edge is to do.
    pub needs: &'a mut Needs,
    /// What outlives a reload.
    pub carried: &'a mut Carried,
    /// The line of the current directive that is being built, by its index among the directive's lines.
    pub(crate) line: usize,
    /// Warnings of the current directive, each with the index of its line.
    pub(crate) warned: Vec<(usize, String)>,
    /// Errors of the current directive, each with the index of its line.
    pub(crate) failed: Vec<(usize, SetupError)>,
}

impl Setup<'_> {
    /// The zones of a directive: those it names, or those of its block.
    #[must_use]
    pub fn zones_or_keys(&self, named: &[Name]) -> Zones {
        let zones = if named.is_empty() { &self.block.zones } else { named };
        zones.iter().cloned().collect()
    }

    /// The labels of this server block.
    #[must_use]
    pub fn labels(&mut self) -> Arc<Labels> {
        self.common()
    }

    /// Who hears of the exchanges with the upstreams of this server block.
    #[must_use]
    pub fn witnesses(&mut self) -> Arc<Witnesses> {
        self.common()
    }

    /// A thing that the directives of this server block have in common, whoever asks for it first.
    fn common<T: Any + Default>(&mut self) -> Arc<T> {
        let known = self.below.find();
        known.unwrap_or_else(|| {
            let thing = Arc::<T>::default();
            self.below.provide(Arc::clone(&thing));
            thing
        })
    }

    /// Says what is not as the directive needs it, though it goes on without.
    pub fn warn(&mut self, message: impl Display) {
        self.warned.push((self.line, message.to_string()));
    }

    /// Builds the lines of a directive one by one. A line that fails does not keep the others from being built, so that a check
    /// can report every error; the configuration as a whole fails.
    pub fn for_each_line<C>(&mut self, lines: Vec<C>, mut build: impl FnMut(C, &mut Self) -> Result<(), SetupError>) {
        for (index, line) in lines.into_iter().enumerate() {
            self.line = index;
            if let Err(error) = build(line, self) {
                self.failed.push((index, error));
            }
        }
        self.line = 0;
    }

    /// A file name of the Corefile, from `root` if it is relative.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.block.root.join(name)
    }
}

/// Files, read at once.
pub trait Files {
    /// The contents of a file.
    ///
    /// # Errors
    /// As the system says.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Whether there is a file of this name.
    fn is_file(&self, path: &Path) -> bool;

    /// What changes when the contents of a file do.
    ///
    /// # Errors
    /// As the system says.
    fn stamp(&self, path: &Path) -> io::Result<Stamp>;

    /// The files below a directory, at any depth, sorted; at most [`LISTED_MAX`].
    ///
    /// # Errors
    /// As the system says, if the directory itself cannot be read.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Puts a file in the place of one that may be there: others see the one or the other, and nothing between.
    ///
    /// # Errors
    /// As the system says, or as `write` does; what was there is there still.
    fn replace(&self, path: &Path, write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()>;
}

/// Files that one directory is taken to have: as many zones as a server may have.
pub const LISTED_MAX: usize = 100_000;

/// What changes when the contents of a file do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When it was written, in nanoseconds of whatever clock.
    pub modified: u128,
    /// Its octets.
    pub len: u64,
}

/// Things offered and required by their type: most of them traits, as `Arc<dyn Trait>`.
#[derive(Default)]
pub struct Capabilities {
    by_type: HashMap<TypeId, Box<dyn Any>>,
}

impl Capabilities {
    /// Offers a thing; one of the same type is replaced.
    pub fn provide<T: Any>(&mut self, thing: T) {
        self.by_type.insert(TypeId::of::<T>(), Box::new(thing));
    }

    /// Takes the thing of this type away, if it is offered.
    pub fn take<T: Any>(&mut self) -> Option<T> {
        self.by_type.remove(&TypeId::of::<T>())?.downcast().ok().map(|thing| *thing)
    }

    /// The thing of this type, if it is offered.
    #[must_use]
    pub fn find<T: Any + Clone>(&self) -> Option<T> {
        self.by_type.get(&TypeId::of::<T>())?.downcast_ref().cloned()
    }
}

/// The zones in which a directive below answers every name from memory: keeping its answers gains nothing.
#[derive(Clone, Debug, Default)]
pub struct LocalZones(pub Zones);

impl LocalZones {
    /// Says so of these zones, but for those of them in which names fall through.
    pub fn add(below: &mut Capabilities, zones: &Zones, fallthrough: &Zones) {
        let LocalZones(known) = below.find().unwrap_or_default();
        let overlaps =
            |one: &Name, other: &Name| one.as_ref().is_within(other.as_ref()) || other.as_ref().is_within(one.as_ref());
        let answers_all = |zone: &&Name| !fallthrough.names().iter().any(|name| overlaps(name, zone));
        let own = zones.names().iter().filter(answers_all);
        below.provide(LocalZones(known.names().iter().chain(own).cloned().collect()));
    }
}

/// Which queries a directive below answers from memory, by what it knows at that moment and who asks: what others have
/// answered before must not stand in for that. One that finds another below it asks that too.
#[derive(Clone)]
pub struct LocalAnswers(pub Arc<dyn Fn(&Query) -> bool + Send + Sync>);

/// Puts something around each plugin below the directive that offers it: what a step does, and when, is seen from there.
/// It is given the directive and its plugin with the hooks it has, and gives what takes its place.
pub struct Around(pub Box<PutAround>);

type PutAround = dyn Fn(&'static str, Box<dyn Plugin>, Hooks) -> (Box<dyn Plugin>, Hooks);

/// Which queries a server block wants: another one of the same zone, or of a shorter one, gets the others.
#[derive(Clone)]
pub struct BlockFilter(pub Arc<dyn Fn(&Query) -> bool + Send + Sync>);

/// What outlives a reload, by a key that says all that it depends on.
#[derive(Default)]
pub struct Carried {
    before: HashMap<String, Arc<dyn Any + Send + Sync>>,
    now: HashMap<String, Arc<dyn Any + Send + Sync>>,
}

impl Carried {
    /// For the next generation: what this one holds is there to be taken over, and is gone afterwards if it is not.
    #[must_use]
    pub fn next(&self) -> Carried {
        Carried { before: self.now.clone(), now: HashMap::new() }
    }

    /// The thing under `key` that the last generation had or another directive of this one has; else a new one.
    pub fn take_over<T: Any + Send + Sync>(&mut self, key: String, make: impl FnOnce() -> T) -> Arc<T> {
        let known = self.now.get(&key).or_else(|| self.before.get(&key)).cloned();
        let thing = known.and_then(|thing| thing.downcast().ok()).unwrap_or_else(|| Arc::new(make()));
        self.now.insert(key, Arc::clone(&thing) as Arc<dyn Any + Send + Sync>);
        thing
    }

    /// Forgets what nobody has taken over: the generation is built.
    pub(crate) fn forget_the_rest(&mut self) {
        self.before.clear();
    }
}

/// What the edge is to do for the directives of one generation.
#[derive(Default)]
pub struct Needs {
    /// Pages to serve.
    pub pages: Vec<Page>,
    /// Files to look at.
    pub inspections: Vec<Inspection>,
    /// TLS of listeners, by their labels.
    pub tls: Vec<(String, Arc<dyn TlsServer>)>,
    /// Jobs to run beside the queries, as long as the generation serves.
    pub jobs: Vec<Job>,
    /// Jobs that are told when the generation ends.
    pub lasting_jobs: Vec<LastingJob>,
    /// How long to go on serving after the order to end.
    pub lameduck: Duration,
    /// How often to look for a new Corefile, and how far apart replicas should do it.
    pub reload: Option<(Duration, Duration)>,
    /// Who can say whether it is ready.
    pub readiness: Arc<Readiness>,
    /// Programs to run.
    pub commands: Vec<Command>,
    /// A panic ends the process.
    pub panics_end: bool,
    /// What is not as directives need it, for the log: they go on without.
    pub warnings: Vec<Warned>,
    /// What is to be there before this generation takes the place of another.
    pub awaited: Vec<Awaited>,
}

/// A warning of a directive, with its place in the Corefile.
pub struct Warned {
    /// The event for the log.
    pub notice: Notice,
    /// The directive's place.
    pub span: Span,
}

impl Warned {
    /// The warning as a check shows it.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let Notice { directive, message, .. } = &self.notice;
        Diagnostic::warning(codes::SETUP_WARNED, self.span, format!("plugin/{directive}: {message}"))
    }
}

/// Something that a generation needs to answer as well as the one before it did.
pub struct Awaited {
    /// Who needs it.
    pub directive: &'static str,
    /// Whether it is there.
    pub is_there: Box<dyn Fn() -> bool + Send>,
    /// How long to wait for it.
    pub patience: Duration,
    /// For the log, while it is waited for.
    pub waiting: &'static str,
    /// For the log, when the patience is over.
    pub missing: &'static str,
}

/// A program that is run at some moment.
#[derive(Clone, Debug)]
pub struct Command {
    /// At which.
    pub when: When,
    /// Its name.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Nobody waits for it.
    pub in_background: bool,
}

/// A moment in the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A configuration has been taken up.
    Start,
    /// The process ends.
    End,
    /// Certificates have been renewed.
    CertificatesRenewed,
}

/// A page that is served over HTTP.
pub struct Page {
    /// Where, as `[HOST]:PORT`.
    pub address: String,
    /// Its path.
    pub path: Cow<'static, str>,
    /// Within TLS: for all pages of the address.
    pub tls: Option<Arc<dyn TlsServer>>,
    /// Makes it; what stands behind the `?` of the request is given.
    pub make: Arc<MakePage>,
}

/// Makes a page.
pub type MakePage = dyn Fn(&str) -> LocalFuture<'static, PageContent> + Send + Sync;

impl Page {
    /// A page that is made at once, whatever is asked of it.
    pub fn new(
        address: String,
        path: impl Into<Cow<'static, str>>,
        make: impl Fn() -> PageContent + Send + Sync + 'static,
    ) -> Page {
        let make = Arc::new(move |_: &str| Box::pin(core::future::ready(make())) as LocalFuture<'static, PageContent>);
        Page { address, path: path.into(), tls: None, make }
    }
}

/// What a page says.
pub struct PageContent {
    /// The HTTP status.
    pub status: u16,
    /// The content type.
    pub content_type: &'static str,
    /// The body.
    pub body: Cow<'static, [u8]>,
}

impl PageContent {
    /// Plain text.
    pub fn text(status: u16, body: impl Into<Cow<'static, str>>) -> PageContent {
        let body = match body.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        PageContent { status, content_type: "text/plain; charset=utf-8", body }
    }
}

/// Files that are looked at again and again.
pub struct Inspection {
    /// How often; 0 is never.
    pub every: Duration,
    /// For the first time as soon as the configuration serves, and not only when that time is over.
    pub at_once: bool,
    /// Looks. It may take its time: it is not called where queries are answered.
    pub look: Look,
}

impl Inspection {
    /// Looks when `every` is over, and again each time.
    pub fn new(every: Duration, look: impl FnMut(Looking<'_>) + Send + 'static) -> Inspection {
        Inspection { every, at_once: false, look: Box::new(look) }
    }

    /// Of one file, which has just been read: `changed` is told the contents when they are others than before, or that
    /// there are none; what it finds wrong is logged as of this directive, so it names the place: `FILE:LINE: WHAT`.
    pub fn of_file(
        (directive, path): (&'static str, PathBuf),
        every: Duration,
        read: &io::Result<Vec<u8>>,
        mut changed: impl FnMut(&dyn Files, io::Result<Vec<u8>>) -> Result<(), String> + Send + 'static,
    ) -> Inspection {
        let seed = foldhash::quality::RandomState::default();
        // The contents may be long, so they are remembered by their hash.
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

/// Looks at files.
pub type Look = Box<dyn FnMut(Looking<'_>) + Send>;

/// What is there when files are looked at.
pub struct Looking<'a> {
    /// The files.
    pub files: &'a dyn Files,
    /// The time since 1970 as the calendar has it.
    pub since_1970: Duration,
    /// Events for the log.
    pub notices: &'a mut Vec<Notice>,
}

/// A job beside the queries; it is dropped when the generation ends.
pub type Job = Box<dyn FnOnce(Rc<dyn Outside>) -> LocalFuture<'static, ()> + Send>;

/// A job that has something to bring to its end: it is told when the generation ends, and has [`FAREWELL`] from then on.
pub type LastingJob = Box<dyn FnOnce(Rc<dyn Outside>, Ending) -> LocalFuture<'static, ()> + Send>;

/// How long a job may go on when its generation has ended: to send what is left to somebody who listens takes less, and
/// the process waits so long for it.
pub const FAREWELL: Duration = Duration::from_secs(2);

/// Comes when a generation ends.
pub struct Ending(oneshot::Receiver<()>);

/// Ends a generation for the one who has the other half, when it is dropped.
pub struct Ender {
    _sender: oneshot::Sender<()>,
}

impl Ending {
    /// An end that has not come yet, and what brings it.
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

/// Who can say whether it is ready, and who has been.
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
    /// Adds one that can say whether it is ready.
    pub fn add(&self, name: &'static str, test: impl Fn() -> bool + Send + Sync + 'static) {
        self.lock().push(Member { name, test: Box::new(test), was_ready: false });
    }

    /// The names of those that are not ready, sorted; unless `again`, who was ready once is not asked any more.
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

    /// Says that the process ends.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Whether the process ends.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
