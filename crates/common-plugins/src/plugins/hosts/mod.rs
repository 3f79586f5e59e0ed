//! The plugin *hosts*: answers queries from a hosts file and from records in the Corefile.
//!
//! The file is checked for changes periodically. A changed file is parsed into a new table, which replaces the old one
//! atomically.

mod table;

use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use config::SETUP_WARNED;
use config::options::{Args, DirectiveContext, Manifest, Problem, Property, Role, Usage};
use config::setup::{FileWatch, Files, Part, Setup, SetupError};
use engine::{Explanation, Hook, Hooks, Instant, Plugin, Query, ReasonCode, Response, Verdict, Worker, Zones};
use metrics::{Kind, Metric, Registry};
use wire::{EdeCode, Name, Owner, Rcode, Section, Type, address_of};

use table::{FILE_MAX, HostsFile, IgnoredLines, Selection, Table, address};

use crate::shared::file_problems::FileProblems;
use crate::shared::last_good::not_in_use;
use crate::shared::open_error::OpenError;
use plugin::fallthrough::{FallsThrough, fallthrough};

/// Parsed `hosts` line.
pub struct Config {
    file: Option<String>,
    zones: Vec<Name>,
    lines: Vec<Vec<String>>,
    ttl: u32,
    reverse: bool,
    reload: Duration,
    fallthrough: Vec<Name>,
    fallthrough_unsupported: bool,
    fallthrough_nodata: bool,
}

impl FallsThrough for Config {
    fn fallthrough(&mut self) -> &mut Vec<Name> {
        &mut self.fallthrough
    }
}

const FILE: &str = "/etc/hosts";
const TTL: u32 = 3600;
const TTL_MAX: u32 = 65_535;
const RELOAD: Duration = Duration::from_secs(5);

static ENTRIES: Metric = Metric {
    name: "coredns_hosts_entries",
    help: "The combined number of entries in hosts and Corefile.",
    kind: Kind::Gauge,
    labels: &["hostsfile"],
};

static RELOADED: Metric = Metric {
    name: "coredns_hosts_reload_timestamp_seconds",
    help: "The timestamp of the last reload of hosts file.",
    kind: Kind::Gauge,
    labels: &[],
};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "hosts",
    "serve records from a hosts file",
    || Config {
        file: None,
        zones: Vec::new(),
        lines: Vec::new(),
        ttl: TTL,
        reverse: true,
        reload: RELOAD,
        fallthrough: Vec::new(),
        fallthrough_unsupported: false,
        fallthrough_nodata: false,
    },
    build,
)
.arguments("hosts [FILE [ZONES...]]", |config, args| {
    let file = args.next_word();
    config.file = file.map(|word| word.text.clone());
    if let Some(word) = file.filter(|word| address(&word.text).is_some()) {
        let entry: Vec<&str> = args.rest().iter().map(|word| word.text.as_str()).collect();
        let message = format!(
            "`{0}` is read as the name of a file, not as an address; write the entry `{0} {1}` on a separate line in a \
             block `hosts {{ … }}`",
            word.text,
            if entry.is_empty() { "NAME".to_owned() } else { entry.join(" ") },
        );
        args.warn(word, message);
    }
    config.zones = args.zones()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("ttl SECONDS"),
        default: "3600",
        doc: "TTL of the records in seconds, 0–65535. CoreDNS refuses 0.",
        set: |config, args| {
            config.ttl = args.number(0..=TTL_MAX)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("no_reverse"),
        default: "off",
        doc: "Do not serve PTR records.",
        set: |config, _| {
            config.reverse = false;
            Ok(())
        },
    },
    Property {
        usage: Usage("reload DURATION"),
        default: "5s",
        doc: "Interval at which the file is checked for changes; `0s` disables checking.",
        set: |config, args| {
            config.reload = args.duration()?;
            Ok(())
        },
    },
    fallthrough("Pass queries for names without an entry to the next plugin: in all zones, or only in ZONES."),
    Property {
        usage: Usage("fallthrough_unsupported"),
        default: "off",
        doc: "Pass queries for types other than A, AAAA and PTR to the next plugin, even if the name has an entry. \
              Requires `fallthrough`.",
        set: |config, _| {
            config.fallthrough_unsupported = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("fallthrough_nodata"),
        default: "off",
        doc: "Pass queries to the next plugin if the name has an entry, but no address of the family or type. NXDOMAIN \
              from there becomes NODATA, because the name exists. Requires `fallthrough`. Not in CoreDNS.",
        set: |config, _| {
            config.fallthrough_nodata = true;
            Ok(())
        },
    },
])
.other_lines("ADDRESS [NAME...]", read_line)
.metrics(&[&ENTRIES, &RELOADED])
.check(check)
.role(|line| Role { except: reverse_zones(), ..Role::answers(&line.config.zones, &line.config.fallthrough) });

/// Returns the reverse zones. Queries for addresses without an entry always pass to the next plugin.
fn reverse_zones() -> Vec<Name> {
    ["in-addr.arpa.", "ip6.arpa."].into_iter().filter_map(|zone| Name::from_text(zone).ok()).collect()
}

/// Parses a line of the block as a record.
fn read_line(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    if !config.fallthrough.is_empty() {
        let message = format!("unknown property `{}`: records must precede `fallthrough`", args.name().text);
        return Err(args.problem(message));
    }
    if args.rest().is_empty() || address(&args.name().text).is_none() {
        let message = format!(
            "line ignored: `{}` does not start a record; expected an IP address and its names",
            args.name().text
        );
        args.warn(args.name(), message);
    }
    let names = args.take_rest().iter();
    config.lines.push(core::iter::once(args.name()).chain(names).map(|word| word.text.clone()).collect());
    Ok(())
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let config = context.config;
    if config.fallthrough_unsupported && config.fallthrough.is_empty() {
        return Err(context.problem_with("fallthrough_unsupported", "fallthrough_unsupported requires fallthrough"));
    }
    if config.fallthrough_nodata && config.fallthrough.is_empty() {
        return Err(context.problem_with("fallthrough_nodata", "fallthrough_nodata requires fallthrough"));
    }
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let name = config.file.clone().unwrap_or_else(|| FILE.to_owned());
    let path = setup.path(&name);
    let zones = setup.zones_or_keys(&config.zones);
    let (read, last) = read_first(&path, &zones, setup)?;
    let content = read.as_ref().map_or_else(|_| last.get(), |read| last.set(read));
    let inline = Inline { lines: config.lines, selection: Selection { zones: zones.clone(), reverse: config.reverse } };
    let (table, ignored) = inline.table(&content);
    let problems = Arc::<FileProblems>::default();
    let problem = match &read {
        Ok(_) => ignored.map(|ignored| ignored.to_string()),
        Err(error) => Some(format!("{}{}", host::errors::cannot_open(&path, error), last.kept())),
    };
    problem.iter().for_each(|problem| setup.warn_of_followed(SETUP_WARNED, problem));
    problems.set(problem);
    setup.follow_files(Arc::clone(&problems) as _);
    let hosts = Arc::new(ArcSwap::from_pointee(table));
    count_entries(setup.registry, &name, &hosts);
    let reloaded = Reloaded::new(setup, path.clone());
    reloaded.note(setup.files);
    let (current, file) = (Arc::clone(&hosts), path.clone());
    let source = move |files: &dyn Files| read_hosts(files, &path);
    let watch = FileWatch::of_content((MANIFEST.name, source), config.reload, &read, move |files, read| {
        // If the file cannot be read, the previous table keeps serving.
        let read = read.map_err(|error| OpenError::new(&file, error));
        problems.set(read.as_ref().err().map(|error| format!("{error}{}", last.kept())));
        let (table, ignored) = inline.table(&last.set(&read?));
        current.store(Arc::new(table));
        reloaded.note(files);
        problems.set(ignored.iter().map(ToString::to_string));
        ignored.map_or(Ok(()), |ignored| Err(ignored.into()))
    });
    setup.requests.file_watches.push(watch);
    let fallthrough: Zones = config.fallthrough.into_iter().collect();
    let unsupported = config.fallthrough_unsupported;
    let nodata = config.fallthrough_nodata;
    let plugin = Hosts { hosts, zones, ttl: config.ttl, fallthrough: fallthrough.clone(), unsupported, nodata };
    let hooks = if nodata { Hooks::BOTH } else { Hooks::DOWN };
    Ok(Some(Part { fallthrough, ..Part::new(plugin, hooks) }))
}

/// Reads the files of a line. A file that cannot be read is an error at a reload if it was not in use, and names of
/// the zones were served from other files. The default file may be missing.
fn read_first(path: &Path, zones: &Zones, setup: &mut Setup<'_>) -> Result<FirstRead, SetupError> {
    let read = read_hosts(setup.files, path);
    let key = format!("hosts/{}", path.display());
    let last = setup.reload_state.get_or_insert_with(key, LastRead::default);
    let takes_names = ServedHosts::add(zones, &last, setup);
    match &read {
        Err(error) if takes_names && path != Path::new(FILE) => Err(not_in_use(host::errors::cannot_open(path, error))),
        _ => Ok((read, last)),
    }
}

/// Content of the files of a line, and the place for what they last contained.
type FirstRead = (io::Result<Arc<Vec<HostsFile>>>, Arc<LastRead>);

/// Zones of each line of a generation, and what its files contained.
#[derive(Default)]
struct ServedHosts(Mutex<Vec<(Zones, Arc<LastRead>)>>);

impl ServedHosts {
    /// Adds a line to those of this generation. Returns true if its files were not in use before a reload, and names of
    /// its zones were served from others: without its files, it would take down these names.
    fn add(zones: &Zones, last: &Arc<LastRead>, setup: &mut Setup<'_>) -> bool {
        let (before, now) = setup.reload_state.successive::<ServedHosts>("served hosts".to_owned());
        now.lock().push((zones.clone(), Arc::clone(last)));
        before.is_some_and(|before| {
            let before = before.lock();
            let is_known = before.iter().any(|(_, known)| Arc::ptr_eq(known, last));
            !is_known && before.iter().any(|(served, known)| known.0.load().is_some() && overlap(served, zones))
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Zones, Arc<LastRead>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if a zone of one list is in a zone of the other.
fn overlap(one: &Zones, other: &Zones) -> bool {
    let is_within = |one: &Zones, other: &Zones| one.names().iter().any(|zone| other.contain(zone.as_ref()));
    is_within(one, other) || is_within(other, one)
}

/// Last content of the files of a line. It outlives a reload, in which the files may be away.
#[derive(Default)]
struct LastRead(ArcSwapOption<Vec<HostsFile>>);

impl LastRead {
    /// Returns the end of the message about a file that cannot be read.
    fn kept(&self) -> &'static str {
        if self.0.load().is_some() { "; its entries stay as they were" } else { "" }
    }

    /// Replaces the content and returns it.
    fn set(&self, read: &Arc<Vec<HostsFile>>) -> Arc<Vec<HostsFile>> {
        self.0.store(Some(Arc::clone(read)));
        Arc::clone(read)
    }

    /// Returns the content; empty if nothing was read.
    fn get(&self) -> Arc<Vec<HostsFile>> {
        self.0.load_full().unwrap_or_default()
    }
}

/// Reads a hosts file, or the hosts files in a directory, such as a mounted ConfigMap. As in dnsmasq, hidden files and
/// the copies of editors do not count.
///
/// Keeps one byte beyond [`FILE_MAX`], which shows that there is more.
fn read_hosts(files: &dyn Files, path: &Path) -> io::Result<Arc<Vec<HostsFile>>> {
    let mut left = FILE_MAX;
    let mut read = |path: &Path| {
        let mut bytes = files.read(path)?;
        bytes.truncate(left + 1);
        bytes.shrink_to_fit();
        left = left.saturating_sub(bytes.len());
        Ok(HostsFile { path: path.to_owned(), bytes })
    };
    let Ok(listed) = files.list(path) else { return Ok(Arc::new(vec![read(path)?])) };
    let is_hosts = |file: &PathBuf| {
        let name = file.strip_prefix(path).ok().and_then(Path::to_str).unwrap_or_default();
        !(name.contains('/') || name.starts_with('.') || name.ends_with('~') || name.starts_with('#'))
    };
    listed.iter().filter(|file| is_hosts(file)).map(|file| read(file)).collect::<io::Result<_>>().map(Arc::new)
}

fn count_entries(registry: &Registry, file: &str, hosts: &Arc<ArcSwap<Table>>) {
    let counted = Arc::downgrade(hosts);
    #[allow(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
    let entries = move || counted.upgrade().map(|hosts| hosts.load().len() as f64);
    registry.gauge(&ENTRIES, &[file], entries);
}

/// Modification time of the hosts file that the process has read most recently. All server blocks share the metric.
struct Reloaded {
    path: PathBuf,
    /// Unix time in seconds, as the bits of a float.
    last: Arc<AtomicU64>,
}

impl Reloaded {
    fn new(setup: &mut Setup<'_>, path: PathBuf) -> Reloaded {
        let last: Arc<AtomicU64> =
            setup.reload_state.get_or_insert_with("hosts reloaded".to_owned(), AtomicU64::default);
        let shown = Arc::downgrade(&last);
        let read = move || shown.upgrade().map(|last| f64::from_bits(last.load(Ordering::Relaxed)));
        setup.registry.gauge(&RELOADED, &[], read);
        Reloaded { path, last }
    }

    /// Records that the file has been read.
    #[allow(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
    fn note(&self, files: &dyn Files) {
        if let Ok(stamp) = files.stamp(&self.path) {
            self.last.store((stamp.modified as f64 / 1e9).to_bits(), Ordering::Relaxed);
        }
    }
}

/// Records of the block, in addition to those of the file.
struct Inline {
    lines: Vec<Vec<String>>,
    selection: Selection,
}

impl Inline {
    /// Returns the records of files and of the block, and the ignored lines of the files.
    fn table(&self, files: &[HostsFile]) -> (Table, Option<IgnoredLines>) {
        let mut table = Table::default();
        let ignored = table.read(files, &self.selection);
        for line in &self.lines {
            if let [address, names @ ..] = line.as_slice() {
                // Errors of the block have been reported when the Corefile was read.
                let _ = table.add(address, names.iter().map(String::as_str), &self.selection);
            }
        }
        (table, ignored)
    }
}

struct Hosts {
    hosts: Arc<ArcSwap<Table>>,
    zones: Zones,
    ttl: u32,
    fallthrough: Zones,
    /// Passes queries for types other than A, AAAA and PTR to the next plugin, even if the name has an entry.
    unsupported: bool,
    /// Passes queries to the next plugin if the name has an entry without an address of the family or type.
    nodata: bool,
}

impl Plugin for Hosts {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        let table = self.hosts.load();
        if query.qtype == Type::PTR
            && let Some(names) = address_of(query.key()).map(|address| table.names(address))
            && !names.is_empty()
        {
            self.begin(response);
            for name in names {
                response.message.push_name(Section::Answer, Owner::Question, (Type::PTR, self.ttl), name.as_ref());
            }
            return Verdict::Done;
        }
        if query.qtype == Type::PTR || !self.zones.contain(query.key()) {
            return Verdict::Pass;
        }
        let Some(addresses) = table.addresses(query.key()) else {
            response.set_local();
            response.set_rcode(Rcode::SERVFAIL);
            response.set_ede(EdeCode::OTHER, "the name is not in the hosts file");
            return Verdict::Missing;
        };
        if self.passes(query, addresses) && self.fallthrough.contain(query.key()) {
            return Verdict::Pass;
        }
        self.begin(response);
        for address in addresses.iter().filter(|address| address.is_ipv4() == (query.qtype == Type::A)) {
            if query.qtype.is_address() {
                response.message.push_address(Section::Answer, Owner::Question, self.ttl, *address);
            }
        }
        Verdict::Done
    }

    /// Replaces NXDOMAIN for a name with an entry. It would deny the entry, too (RFC 8020 §2).
    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        let is_denied = response.rcode() == Rcode::NXDOMAIN && self.zones.contain(query.key());
        if is_denied && self.hosts.load().addresses(query.key()).is_some() {
            response.set_rcode(Rcode::NOERROR);
        }
        Verdict::Pass
    }

    fn explain(&self, _: Hook, query: &Query, response: &Response, _: Instant) -> Option<Explanation> {
        let is_known = response.rcode() == Rcode::NOERROR;
        let text = if is_known { "in the hosts file" } else { "not in the hosts file" };
        let explanation = Explanation::new(text);
        let why = || format!("the hosts file has no entry for {} and no `fallthrough`", query.name());
        Some(if is_known { explanation } else { explanation.because(&NOT_LISTED, why()) })
    }
}

/// Codes of the reasons.
pub(crate) static REASONS: [&ReasonCode; 1] = [&NOT_LISTED];

static NOT_LISTED: ReasonCode = ReasonCode {
    code: "PE-H01",
    meaning: "The hosts file is responsible for the zone and has no entry for the name",
    advice: "Add the entry, or `fallthrough` to hosts",
};

impl Hosts {
    /// Returns true if the next plugin may have an answer for a name with an entry.
    fn passes(&self, query: &Query, addresses: &[IpAddr]) -> bool {
        match query.qtype.is_address() {
            true => self.nodata && !addresses.iter().any(|address| address.is_ipv4() == (query.qtype == Type::A)),
            // An answer of type ANY from below would lack the addresses of the entry.
            false => self.unsupported || (self.nodata && query.qtype != Type::ANY),
        }
    }

    fn begin(&self, response: &mut Response) {
        response.set_authoritative(true);
        response.set_local();
    }
}
