//! Cached responses: look them up, remove them.

use config::setup::{CacheScope, CachedEntry};
use control::cache::{Cached, Entry, FlushRequest, Flushed, Scope};
use control::query::Parameters;
use engine::Clock;
use transport::MonotonicClock;
use wire::{Name, Type};

use super::super::context::{Access, Context};
use super::super::refusal::Refusal;

/// Maximum number of entries in a response.
const ENTRIES_MAX: usize = 200;

/// Returns the cached responses for a name.
pub(super) fn get(context: &Context, parameters: &Parameters) -> Result<Cached, Refusal> {
    let name = name_of(parameters.get("name").unwrap_or_default())?;
    let qtype = parameters.get("type").map(type_of).transpose()?;
    let (loaded, now) = (context.view.loaded(), MonotonicClock.now());
    let caches = &loaded.inspection.caches;
    let mut entries: Vec<Entry> = Vec::new();
    for cache in caches {
        let found = cache.find(name.as_ref(), qtype, now);
        entries.extend(found.into_iter().map(|entry| shown(cache.block(), entry)));
    }
    host::sorting::sort_by(&mut entries, |one, other| (&one.qtype, &one.block).cmp(&(&other.qtype, &other.block)));
    let truncated = entries.len() > ENTRIES_MAX;
    entries.truncate(ENTRIES_MAX);
    Ok(Cached { name: name.to_string(), caches: caches.len() as u64, entries, truncated })
}

fn shown(block: &str, entry: CachedEntry) -> Entry {
    let age = entry.age.as_secs_f64();
    Entry {
        block: block.to_owned(),
        qtype: entry.qtype.to_string(),
        rcode: entry.rcode.to_string(),
        denial: entry.denial,
        dnssec_ok: entry.dnssec_ok,
        checking_disabled: entry.checking_disabled,
        ttl: entry.ttl,
        age_seconds: age,
        expired: age >= f64::from(entry.ttl),
        bytes: entry.bytes as u64,
        records: entry.records,
    }
}

/// Removes cached responses.
pub(super) fn flush(context: &Context, access: Access, request: &FlushRequest) -> Result<Flushed, Refusal> {
    let name = request.name.as_deref().map(name_of).transpose()?;
    let scope = match (request.scope, name) {
        (Scope::Name, Some(name)) => CacheScope::Name(name),
        (Scope::Below, Some(name)) => CacheScope::Below(name),
        (Scope::All, None) => CacheScope::All,
        (Scope::All, Some(_)) => return Err(Refusal::invalid("the scope `all` takes no name")),
        (_, None) => return Err(Refusal::invalid("`name` is missing; it is optional only with the scope `all`")),
    };
    let loaded = context.view.loaded();
    let removed: usize = loaded.inspection.caches.iter().map(|cache| cache.flush(&scope)).sum();
    tracing::info!(
        target: "plugin/cache",
        "{removed} entries removed by a request of {access} over the control socket"
    );
    Ok(Flushed { removed: removed as u64, caches: loaded.inspection.caches.len() as u64 })
}

pub(super) fn name_of(text: &str) -> Result<Name, Refusal> {
    let invalid = |error: &dyn std::fmt::Display| Refusal::invalid(format!("`{text}` is not a domain name: {error}"));
    if text.is_empty() {
        return Err(Refusal::invalid("`name` is missing"));
    }
    Name::from_text(text).map(Name::into_lowercase).map_err(|error| invalid(&error))
}

fn type_of(text: &str) -> Result<Type, Refusal> {
    let upper = text.to_ascii_uppercase();
    upper.parse().map_err(|_| Refusal::invalid(format!("`{text}` is not a record type; expected one such as AAAA")))
}
