//! Dynamic zones: applies signed UPDATE messages (RFC 2136) and answers from the result.
//!
//! `rules.rs` has the permissions, `zone.rs` the queue of updates and the commit, `storage.rs` what the process
//! provides. The state machine of an update and the format of the journal are in the crate `zone`.

mod limit;
mod metrics;
mod options;
mod rules;
mod storage;
mod transfer;
mod zone;

use std::path::Path;
use std::sync::Arc;

use ::zone::update::{UpdateLimits, check_seed};
use ::zone::{Limits, LoadError, LoadErrorKind, Zone, ZoneError, load_within};
use arc_swap::ArcSwap;
use config::options::{Manifest, Role};
use config::setup::{FileStamp, LocalZones, Part, Setup, SetupError};
use engine::{
    Failure, Hooks, Io, LocalFuture, Plugin, Query, Refuses, Resolved, Response, Verdict, Worker, ZoneSources, Zones,
};
use futures_channel::oneshot;
use wire::{Class, EdeCode, Flags, Header, MessageBuf, Name, Opcode, Opt, OptionCode, Rcode, Reply, Type};

use crate::shared::update_keys::UpdateKeys;
use crate::shared::zone_store::{Authority, ZONE_KEPT, ZoneMemory, code_of, directory};
use limit::Limit;
use metrics::{METRICS, ZoneCounters};
use options::{Config, PROPERTIES, check, read_zone};
use rules::Rules;
use storage::NoStorage;
pub use storage::{FilePlace, OpenedZoneFile, ZoneFile, ZoneStorage};
use transfer::DynamicSource;
use zone::{DynamicZone, Pending, UpdateOutcome};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "dynupdate",
    "serve zones that clients update with signed messages (RFC 2136)",
    Config::default,
    build,
)
.repeated()
.takes_updates()
.arguments("dynupdate [ZONE]", read_zone)
.properties(PROPERTIES)
.metrics(&METRICS)
.check(check)
.asks_server()
.role(|line| {
    let zone = line.config.zone(&line.block.zones).cloned();
    Role { longest_zone: true, ..Role::answers(zone.as_slice(), &[]) }
});

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let mut served: Vec<Served> = Vec::new();
    setup.for_each_line(configs, |config, setup| {
        let opened = open(config, setup)?;
        if served.iter().any(|other| other.rules.zone == opened.rules.zone) {
            return Err(SetupError::new(format!("a line can only be used once for the zone {}", opened.rules.zone)));
        }
        served.push(opened);
        Ok(())
    });
    let zones: Zones = served.iter().map(|served| served.rules.zone.clone()).collect();
    LocalZones::add(setup.below, &zones, &Zones::default());
    let mut sources = setup.below.find::<ZoneSources>().unwrap_or_default();
    sources.0.push(Arc::new(DynamicSource(served.iter().map(|served| Arc::clone(&served.zone)).collect())));
    setup.below.provide(sources);
    let keys = served.iter().flat_map(|served| &served.rules.rules).map(|rule| rule.key().clone());
    setup.below.provide(UpdateKeys(keys.collect()));
    let held = directory(served.iter().map(|served| Arc::clone(&served.zone.held)));
    let authority = Authority::new(MANIFEST.name, Arc::new(ArcSwap::from_pointee(held)), setup);
    let plugin = DynUpdate { authority, served };
    Ok(Some(Part { zones: Some(zones), refuses: Refuses::OtherZones, ..Part::new(plugin, Hooks::DOWN.with_updates()) }))
}

/// Loads a zone: from its database if it exists, and otherwise from its seed. A zone that was loaded before a reload
/// is kept.
fn open(config: Config, setup: &mut Setup<'_>) -> Result<Served, SetupError> {
    let Some(origin) = config.zone(&setup.block.zones).cloned() else {
        return Err(SetupError::new("zone is required when the server block does not define exactly one zone"));
    };
    let host = setup.process.find::<Arc<dyn ZoneStorage>>().unwrap_or_else(|| Arc::new(NoStorage));
    let memory: ZoneMemory = setup.process.find().unwrap_or_default();
    let seed = setup.path(config.seed.as_deref().unwrap_or_default());
    let path = config.database.as_deref().map(|path| setup.path(path));
    if path.as_ref().is_some_and(|path| host.is_same_file(path, &seed)) {
        return Err(SetupError::new("database and seed must be different files"));
    }
    let limits = config.limits();
    let new = |path| DynamicZone::new(&origin, path, host.clone(), memory);
    let zone = match path {
        Some(path) => {
            let key = format!("dynupdate/{}", path.display());
            let zone = setup.reload_state.get_or_insert_with(key, || new(Some(path)));
            if zone.held.origin != origin {
                return Err(SetupError::new(format!("database belongs to a different zone: {}", zone.held.origin)));
            }
            if zone.held.known().is_none() && !zone.load(limits).map_err(SetupError::from_error)? {
                zone.start_with(load_seed(&origin, &seed, limits, setup)?);
            }
            zone
        }
        None => without_database((&origin, &seed), limits, || new(None), setup)?,
    };
    zone.check(limits).map_err(SetupError::from_error)?;
    setup.requests.inspection.zones.push(Arc::clone(&zone) as _);
    let begun = Arc::clone(&zone);
    setup.requests.jobs.push(Box::new(move |_| {
        host.run(Box::new(move || begun.create_journal()));
        Box::pin(core::future::ready(()))
    }));
    let counters = ZoneCounters::new(&zone, setup);
    let update_records = config.update_records();
    let rules = Arc::new(Rules { zone: origin, rules: config.rules, limits, update_records });
    Ok(Served { zone, rules, counters })
}

/// A zone without a database, which a new seed replaces, and the version of its seed.
struct Seeded(Arc<DynamicZone>, Option<FileStamp>);

/// Returns a zone without a database: the one from before a reload, or a new one if it has a new seed. A seed that
/// cannot be read does not replace it.
fn without_database(
    (origin, seed): (&Name, &Path),
    limits: UpdateLimits,
    new: impl FnOnce() -> DynamicZone,
    setup: &mut Setup<'_>,
) -> Result<Arc<DynamicZone>, SetupError> {
    let key = format!("dynupdate/{origin}/{}", seed.display());
    let stamp = setup.files.stamp(seed).ok();
    let known = setup.reload_state.known::<Seeded>(&key);
    if let Some(known) = known.as_ref().filter(|known| stamp.is_some() && known.1 == stamp) {
        setup.reload_state.renew(key, known);
        return Ok(Arc::clone(&known.0));
    }
    let seeded = match (load_seed(origin, seed, limits, setup), known) {
        (Ok(content), _) => {
            let zone = new();
            zone.start_with(content);
            Arc::new(Seeded(Arc::new(zone), stamp))
        }
        (Err(error), Some(known)) => {
            setup.warn(format_args!("{error}{ZONE_KEPT}"));
            known
        }
        (Err(error), None) => return Err(error),
    };
    setup.reload_state.renew(key, &seeded);
    Ok(Arc::clone(&seeded.0))
}

/// Loads the seed of a zone. Unlike other zone files, it must not have anything that is ignored.
fn load_seed(origin: &Name, path: &Path, limits: UpdateLimits, setup: &mut Setup<'_>) -> Result<Zone, SetupError> {
    let within = Limits { records: limits.records, bytes: limits.bytes, ..Limits::default() };
    let loaded = load_within(origin.as_ref(), path, within, &mut |path| setup.files.read(path));
    let loaded = loaded.map_err(|error| match &error.kind {
        LoadErrorKind::Invalid(ZoneError::ManyRecords(_) | ZoneError::ManyBytes(_)) => {
            SetupError::new(format!("zone file {:?} exceeds configured limits", path.display()))
        }
        _ => SetupError::new(format!("zone {origin}: {error}")),
    })?;
    // CoreDNS takes a seed with most mistakes of its content. `check_seed` refuses those that it refuses.
    let is_mistake = |warning: &&LoadError| matches!(warning.kind, LoadErrorKind::Mistake(_));
    let (mistakes, ignored): (Vec<_>, Vec<_>) = loaded.warnings.iter().partition(is_mistake);
    mistakes.iter().for_each(|mistake| setup.warn_as(code_of(&mistake.kind), format!("zone {origin}: {mistake}")));
    if let Some(warning) = ignored.first() {
        return Err(SetupError::new(match &warning.kind {
            LoadErrorKind::EarlierSoa => format!("zone \"{origin}\" contains more than one SOA: {warning}"),
            _ => format!("invalid zone \"{origin}\": {warning}"),
        }));
    }
    check_seed(&loaded.zone).map_err(|error| SetupError::new(format!("invalid zone \"{origin}\": {error}")))?;
    Ok(loaded.zone)
}

/// A zone, and what this generation allows for it.
struct Served {
    zone: Arc<DynamicZone>,
    rules: Arc<Rules>,
    counters: ZoneCounters,
}

struct DynUpdate {
    authority: Authority,
    served: Vec<Served>,
}

impl Plugin for DynUpdate {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if !query.is_update() {
            return self.authority.on_query(query, response, worker);
        }
        let refusal = match self.find(query) {
            Ok((served, key)) => match served.admit(query, key) {
                Ok(()) => return Verdict::Wait,
                Err(refusal) => {
                    served.counters.count(&worker.counters, refusal.rcode, refusal.limit);
                    refusal
                }
            },
            Err(refusal) => refusal,
        };
        response.set_authoritative(true);
        response.set_rcode(refusal.rcode);
        if refusal.audience == Audience::Client {
            response.set_ede(EdeCode::PROHIBITED, refusal.reason);
        }
        response.set_failure(Failure { rcode: refusal.rcode, ..Failure::refused(EdeCode::PROHIBITED, refusal.reason) });
        Verdict::Done
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Verdict {
        self.authority.on_subresponse(query, sub, response, worker)
    }

    fn resolve<'a>(&'a self, query: &'a Query, io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        Box::pin(self.update(query, io))
    }
}

/// Refusal of an update before it is read. The log always has the reason.
struct Refusal {
    rcode: Rcode,
    reason: &'static str,
    audience: Audience,
    limit: Option<Limit>,
}

/// Reader of the reason of a refusal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// The operator only, because the client is not authenticated.
    Operator,
    /// The client as well.
    Client,
}

impl Refusal {
    const fn new(rcode: Rcode, reason: &'static str) -> Refusal {
        Refusal { rcode, reason, audience: Audience::Operator, limit: None }
    }

    /// Refusal with a reason that the client gets too.
    const fn of_client(reason: &'static str) -> Refusal {
        Refusal { audience: Audience::Client, ..Refusal::new(Rcode::REFUSED, reason) }
    }
}

const NO_ZONE: &str = "the server block has no dynamic zone with this name";

impl DynUpdate {
    /// Returns the zone of an update.
    fn find<'q>(&self, query: &'q Query) -> Result<(&Served, Option<&'q Name>), Refusal> {
        if query.qtype != Type::SOA || query.qclass != Class::IN {
            return Err(Refusal::new(Rcode::FORMERR, "the zone section must have the type SOA and the class IN"));
        }
        // A name below a zone is not a zone.
        let served = self.served.iter().find(|served| served.rules.zone.as_ref() == query.key());
        served.map(|served| (served, query.signer())).ok_or(Refusal::new(Rcode::NOTAUTH, NO_ZONE))
    }

    /// Applies an update, and returns its response.
    async fn update(&self, query: &Query, io: &dyn Io) -> Resolved {
        let Ok((served, Some(key))) = self.find(query) else { return reply(query, &UpdateOutcome::lost()) };
        let (done, outcome) = oneshot::channel();
        let (rules, client) = (Arc::clone(&served.rules), query.peer.address.ip().to_canonical());
        let pending = Pending { packet: query.packet.clone(), key: key.clone(), client, rules, done };
        let outcome = match served.zone.submit(pending) {
            true => outcome.await.unwrap_or_else(|_| UpdateOutcome::lost()),
            false => UpdateOutcome::busy(),
        };
        served.counters.count(io.counters(), outcome.rcode, outcome.limit);
        if let Some(nanos) = outcome.commit {
            served.counters.observe(io.counters(), nanos);
        }
        reply(query, &outcome)
    }
}

impl Served {
    /// Checks what needs no look at the records.
    fn admit(&self, query: &Query, key: Option<&Name>) -> Result<(), Refusal> {
        let Some(key) = key else {
            return Err(Refusal::new(Rcode::REFUSED, "*tsig* of the server block has verified no key"));
        };
        if !self.rules.knows(key) {
            return Err(Refusal::of_client("no allow rule has this key"));
        }
        let Header { answers, authorities, .. } = query.header();
        if usize::from(answers) + usize::from(authorities) > self.rules.update_records {
            let refusal = Refusal::of_client("the update has more records than max_update_records");
            return Err(Refusal { limit: Some(Limit::UpdateRecords), ..refusal });
        }
        Ok(())
    }
}

/// Response to an update: a header, the zone section and, for clients that use EDNS, the reason.
fn reply(query: &Query, outcome: &UpdateOutcome) -> Resolved {
    let flags = Flags::default().with_response(true).with_opcode(Opcode::UPDATE).with_authoritative(true);
    let header = Header { id: query.header().id, flags: flags.with_rcode(outcome.rcode), ..Header::default() };
    let mut message = MessageBuf::new();
    message.start(header, Some((query.name(), query.qtype, query.qclass)));
    let ede = [&outcome.ede.0.to_be_bytes()[..], outcome.text.as_bytes()].concat();
    let ede = (outcome.rcode != Rcode::NOERROR).then_some((OptionCode::EXTENDED_ERROR, ede.as_slice()));
    let opt = Opt { udp_size: engine::UDP_SIZE, extended_rcode: 0, version: 0, dnssec_ok: false };
    let bytes = message.finish(Some(opt), ede.into_iter()).to_vec();
    Reply::parse(bytes).map_or_else(|_| Resolved::Pass, Resolved::Reply)
}
