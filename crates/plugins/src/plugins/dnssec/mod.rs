//! Signs responses on the fly (RFC 4035 §3.1) with keys from files.
//!
//! The plugin validates nothing and sees only the response. It denies a name without records by an NSEC record that is
//! made for this name alone.

mod denial;
mod sign;
mod store;

use core::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use config::options::{Args, Manifest, Problem, Property, Usage};
use config::setup::{Files, Part, Setup, SetupError};
use engine::{Failure, Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use metrics::{Counter, Kind, Metric};
use wire::{Class, EdeCode, Mark, Name, NameRef, Opcode, Rcode, Section, Type};

use crate::shared::signing::Key;
use common_plugins::shared::last_good;
use denial::Says;
use plugin::PerSite;
use sign::Signer;
use store::Store;

/// Original TTL of signed records in seconds. Records from caches below arrive with a smaller TTL each time, and must
/// not be signed again for that reason.
const ORIGINAL_TTL: u32 = 3600;
/// Default number of record sets whose signatures are cached.
const CAPACITY: usize = 10_000;

/// Configuration of a `dnssec` line.
pub struct Config {
    zones: Vec<Name>,
    files: Vec<String>,
    capacity: usize,
}

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "dnssec",
    "sign responses on the fly",
    || Config { zones: Vec::new(), files: Vec::new(), capacity: CAPACITY },
    build,
)
.arguments("dnssec [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("key file|aws_secretsmanager KEY..."),
        default: "",
        doc: "Keys to sign with, each a pair of files `KEY.key` and `KEY.private` as written by BIND's dnssec-keygen. \
              Keys in AWS Secrets Manager are not supported by this build.",
        set: set_keys,
    },
    Property {
        usage: Usage("cache_capacity CAPACITY"),
        default: "10000",
        doc: "Maximum number of record sets whose signatures are cached.",
        set: |config, args| {
            config.capacity = args.number(..)?;
            Ok(())
        },
    },
])
.metrics(&METRICS);

static ENTRIES: Metric = Metric {
    name: "coredns_dnssec_cache_entries",
    help: "The number of elements in the dnssec cache.",
    kind: Kind::Gauge,
    labels: &["server", "type"],
};
static HITS: Metric = Metric {
    name: "coredns_dnssec_cache_hits_total",
    help: "The count of cache hits.",
    kind: Kind::Counter,
    labels: &["server"],
};
static MISSES: Metric = Metric {
    name: "coredns_dnssec_cache_misses_total",
    help: "The count of cache misses.",
    kind: Kind::Counter,
    labels: &["server"],
};
static METRICS: [&Metric; 3] = [&ENTRIES, &HITS, &MISSES];

fn set_keys(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    if args.choice(&[("file", false), ("aws_secretsmanager", true)])? {
        let message = "keys in AWS Secrets Manager are not supported by this build";
        args.line_not_here(message, "store the keys in files and write `key file KEY`");
    }
    // At least one.
    config.files.push(args.word()?.text.clone());
    config.files.extend(args.take_rest().iter().map(|word| word.text.clone()));
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let keys = load(&config, setup)?;
    if keys.is_empty() {
        return Ok(None);
    }
    let zones = setup.zones_or_keys(&config.zones);
    let of_zones = assign(&keys, zones.names(), setup)?;
    let store = store(&config, &of_zones, setup);
    let hits = PerSite::new(setup.block, |site| {
        show_entries(&site.server, &store, setup);
        let labels: [&str; 1] = [&site.server];
        [setup.registry.counter(&HITS, &labels), setup.registry.counter(&MISSES, &labels)]
    });
    let plugin = Dnssec { zones: of_zones, store, hits };
    Ok(Some(Part { zones: Some(zones), ..Part::new(plugin, Hooks::BOTH) }))
}

fn load(config: &Config, setup: &mut Setup<'_>) -> Result<Vec<Arc<Key>>, SetupError> {
    let load = |name: &String| {
        let path = setup.path(name);
        let load = |files: &dyn Files| Key::load(files, &path).map_err(SetupError::from_error);
        last_good::load(format!("key/{}", path.display()), setup, load)
    };
    config.files.iter().map(load).collect()
}

/// Assigns keys to each zone: those of the longest key name that is the zone's name or an ancestor of it.
fn assign(keys: &[Arc<Key>], zones: &[Name], setup: &mut Setup<'_>) -> Result<Vec<Option<ZoneKeys>>, SetupError> {
    let fits = |key: &Key, zone: &Name| zone.as_ref().is_within(key.zone.as_ref());
    if let Some(key) = keys.iter().find(|key| !zones.iter().any(|zone| fits(key, zone))) {
        let (name, tag) = (&key.zone, key.tag);
        return Err(SetupError::new(format!("key {name} (keyid: {tag}) can not sign any of the zones")));
    }
    let of_zone = |zone: &Name| {
        let above = keys.iter().filter(|key| fits(key, zone));
        let owner = above.map(|key| &key.zone).max_by_key(|owner| owner.as_ref().len())?;
        Some(ZoneKeys::new(owner, keys.iter().filter(|key| key.zone == *owner)))
    };
    let of_zones: Vec<_> = zones.iter().map(of_zone).collect();
    for (zone, _) in zones.iter().zip(&of_zones).filter(|(_, keys)| keys.is_none()) {
        setup.warn(format_args!("zone {zone} is not signed: it has no key"));
    }
    Ok(of_zones)
}

/// Returns the signature cache. It survives a reload if the keys are the same.
fn store(config: &Config, of_zones: &[Option<ZoneKeys>], setup: &mut Setup<'_>) -> Arc<Store> {
    let keys: Vec<_> = of_zones.iter().flatten().flat_map(|zone| &zone.keys).map(|key| &key.rdata).collect();
    let on: Vec<_> = setup.block.sites.iter().map(|site| (&site.server, &site.zone, &site.view)).collect();
    let key = format!("dnssec {on:?} {} {:?} {keys:?}", config.capacity, config.zones);
    setup.reload_state.get_or_insert_with(key, || Store::new(config.capacity))
}

/// Signature caches of the blocks that serve the same address.
type Stores = Mutex<Vec<Weak<Store>>>;

/// Adds a cache to the metric of its server address.
fn show_entries(server: &str, store: &Arc<Store>, setup: &mut Setup<'_>) {
    let stores: Arc<Stores> =
        setup.reload_state.get_or_insert_with(format!("dnssec entries {server}"), Stores::default);
    let mut known = stores.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|other| other.strong_count() > 0 && !Weak::ptr_eq(other, &Arc::downgrade(store)));
    known.push(Arc::downgrade(store));
    drop(known);
    #[allow(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
    let read = move || {
        let known = stores.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter_map(Weak::upgrade).map(|store| store.len() as f64).reduce(|sum, more| sum + more)
    };
    setup.registry.gauge(&ENTRIES, &[server, "signature"], read);
}

/// Keys of a zone.
struct ZoneKeys {
    /// Name of the keys' zone, which may be an ancestor of the configured one.
    zone: Name,
    keys: Vec<Arc<Key>>,
    /// True if there are key-signing keys and zone-signing keys: the first sign only DNSKEY records, the others
    /// everything else.
    is_split: bool,
}

impl ZoneKeys {
    fn new<'k>(zone: &Name, keys: impl Iterator<Item = &'k Arc<Key>>) -> ZoneKeys {
        let keys: Vec<_> = keys.cloned().collect();
        let entry_points = keys.iter().filter(|key| key.is_entry_point).count();
        ZoneKeys { zone: zone.clone(), is_split: (1..keys.len()).contains(&entry_points), keys }
    }

    /// Returns the keys that sign records of a type.
    fn signers(&self, rtype: Type) -> impl Iterator<Item = &Key> {
        let signs = move |key: &&Key| !self.is_split || key.is_entry_point == (rtype == Type::DNSKEY);
        self.keys.iter().map(AsRef::as_ref).filter(signs)
    }
}

struct Dnssec {
    /// Keys of each zone, in the order of the step's zones.
    zones: Vec<Option<ZoneKeys>>,
    store: Arc<Store>,
    /// Cache hits and misses.
    hits: PerSite<[Counter; 2]>,
}

impl Plugin for Dnssec {
    /// Answers DNSKEY queries at the apex, whether the client wants signatures or not.
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if query.qtype != Type::DNSKEY || !is_question(query) {
            return Verdict::Pass;
        }
        let Some(keys) = self.keys(query).filter(|keys| keys.zone.as_ref() == query.key()) else {
            return Verdict::Pass;
        };
        let signer = self.signer(keys, worker);
        signer.push_keys(&mut response.message, query.dnssec_ok);
        self.count(query, &signer, worker);
        response.set_authoritative(true);
        response.set_local();
        Verdict::Done
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if !query.dnssec_ok || !is_question(query) || !is_good(response) {
            return Verdict::Pass;
        }
        let Some(keys) = self.keys(query) else { return Verdict::Pass };
        let says = Says::of(query, response, keys.zone.as_ref());
        match open_question(query, response, &says, keys.zone.as_ref()) {
            Some(ask) => Verdict::Subquery(Box::new(ask)),
            None => self.sign(keys, &says, query, response, worker),
        }
    }

    /// Handles the response to the subquery of [`open_question`].
    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Verdict {
        let Some(keys) = self.keys(query) else { return Verdict::Pass };
        if !is_good(sub) {
            return Verdict::Fail(Failure::servfail(EdeCode::OTHER, "cannot determine if a subzone is signed"));
        }
        let says = match Says::of(query, response, keys.zone.as_ref()) {
            Says::Nothing(name) if has(sub, Type::NS, &name) => Says::UnsignedCut(name),
            Says::UnsignedCut(cut) if has(sub, Type::DS, &cut) => Says::SignedCut(cut),
            says => says,
        };
        self.sign(keys, &says, query, response, worker)
    }
}

/// Returns the subquery that must be answered before signing. A denial of DS records needs to know if the name is a
/// subzone. A referral without DS records needs to know if the subzone has any. A mistake would declare a signed zone
/// unsigned, or an unsigned one signed.
fn open_question(query: &Query, response: &Response, says: &Says, zone: NameRef<'_>) -> Option<Subquery> {
    let (name, qtype) = match says {
        Says::Nothing(name) if query.qtype == Type::DS && response.rcode() == Rcode::NOERROR => (name, Type::NS),
        Says::UnsignedCut(cut) => (cut, Type::DS),
        _ => return None,
    };
    (name.as_ref() != zone).then(|| Subquery { name: name.clone(), qtype, target: SubqueryTarget::Below })
}

/// Returns true if an answer or a referral has records of this name and type.
fn has(response: &Response, rtype: Type, name: &Name) -> bool {
    let message = &response.message;
    let is_one = |mark: &Mark| {
        mark.section != Section::Additional
            && mark.rtype == rtype
            && message.owner(*mark).is_ok_and(|owner| owner == *name)
    };
    message.marks().iter().any(is_one)
}

impl Dnssec {
    fn keys(&self, query: &Query) -> Option<&ZoneKeys> {
        self.zones.get(query.zone_index())?.as_ref()
    }

    fn signer<'a>(&'a self, keys: &'a ZoneKeys, worker: &mut Worker) -> Signer<'a> {
        let (now, random) = (worker.since_1970().as_secs(), worker.random());
        Signer { keys, store: &self.store, now, random, hits: Cell::new(0), misses: Cell::new(0) }
    }

    fn sign(
        &self,
        keys: &ZoneKeys,
        says: &Says,
        query: &Query,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Verdict {
        let signer = self.signer(keys, worker);
        signer.sign(query, response, &mut worker.scratch, says);
        self.count(query, &signer, worker);
        Verdict::Pass
    }

    fn count(&self, query: &Query, signer: &Signer<'_>, worker: &Worker) {
        if let Some([hits, misses]) = self.hits.of(query) {
            worker.counters.add(*hits, signer.hits.get());
            worker.counters.add(*misses, signer.misses.get());
        }
    }
}

fn is_question(query: &Query) -> bool {
    query.flags().opcode() == Opcode::QUERY && query.qclass == Class::IN && !query.qtype.is_transfer()
}

/// Returns true if a response can be signed: no failure and not truncated.
fn is_good(response: &Response) -> bool {
    matches!(response.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN)
        && response.failure().is_none()
        && !response.message.is_truncated()
        && !response.is_dropped()
}
