//! Checks and operations of an update, in the order of RFC 2136 §3: prerequisites, permissions, the prescan of the
//! update section, and its operations.

use std::collections::BTreeMap;

use wire::{Class, NameRef, Type};

use super::draft::{Applied, Draft, Trial, UpdateLimits};
use super::error::UpdateError;
use super::request::{UpdateRecord, UpdateRequest};
use super::types::{is_known, is_query_only, is_unsupported};
use crate::store::{Soa, serial_is_newer};

const TTL: UpdateError = UpdateError::Form("the TTL of a prerequisite or deletion must be 0");
const DATA: UpdateError = UpdateError::Form("the class of a record does not allow RDATA");
const CLASS: UpdateError = UpdateError::Form("the class of a record is not IN, ANY or NONE");
const TYPE: UpdateError = UpdateError::Form("the type of a record is unknown, or not allowed here");
const SOA: UpdateError = UpdateError::Form("an SOA record must be at the apex and have a serial other than 0");

/// Result of the operations of an update.
pub(super) struct Outcome {
    /// True if an operation had an effect, even if a later one reverted it.
    pub(super) is_changed: bool,
    /// True if an SOA record of the update gave the new serial.
    pub(super) has_serial: bool,
}

impl Draft {
    /// Applies a request completely or not at all (RFC 2136 §3). `allows` judges each record of the update section,
    /// after the prerequisites and before the records are checked.
    ///
    /// # Errors
    /// The response to the client. The draft is unchanged.
    pub fn apply(
        &mut self,
        request: &UpdateRequest,
        allows: impl Fn(NameRef<'_>, Type) -> bool,
        limits: UpdateLimits,
    ) -> Result<Applied, UpdateError> {
        let mut trial = Trial { draft: self, names: BTreeMap::new() };
        check_prerequisites(&mut trial, &request.prerequisites)?;
        check_updates(trial.origin(), &request.updates, allows)?;
        let outcome = apply_all(&mut trial, &request.updates);
        if !outcome.is_changed {
            return Ok(Applied::Unchanged);
        }
        if !outcome.has_serial {
            trial.bump_serial();
        }
        let names = trial.names;
        let change = self.take(names, limits)?;
        Ok(Applied::Changed(change))
    }
}

/// Evaluates the prerequisite section (RFC 2136 §3.2).
pub(super) fn check_prerequisites(trial: &mut Trial<'_>, records: &[UpdateRecord]) -> Result<(), UpdateError> {
    // RRsets that must have exactly these records, in the order of their names.
    let mut wanted: BTreeMap<(Vec<u8>, Type), Vec<&UpdateRecord>> = BTreeMap::new();
    for record in records {
        check_prerequisite_form(trial.origin(), record)?;
        let (owner, rtype) = (record.owner.as_ref(), record.rtype);
        if record.class == Class::IN {
            let key = (owner.as_bytes().to_ascii_lowercase(), rtype);
            wanted.entry(key).or_default().push(record);
            continue;
        }
        let name = trial.name(owner);
        let exists = if rtype == Type::ANY { name.exists() } else { name.set(rtype).is_some() };
        let owner = || Box::new(record.owner.clone());
        match (record.class == Class::ANY, exists, rtype == Type::ANY) {
            (true, false, true) => return Err(UpdateError::NoName(owner())),
            (true, false, false) => return Err(UpdateError::NoSet(owner(), rtype)),
            (false, true, true) => return Err(UpdateError::NameExists(owner())),
            (false, true, false) => return Err(UpdateError::SetExists(owner(), rtype)),
            (true, true, _) | (false, false, _) => {}
        }
    }
    for ((_, rtype), records) in wanted {
        let data: Vec<&[u8]> = records.iter().map(|record| &*record.rdata).collect();
        let Some(first) = records.first() else { continue };
        let is_same = trial.name(first.owner.as_ref()).set(rtype).is_some_and(|set| set.is_same(&data));
        if !is_same {
            return Err(UpdateError::NoSet(Box::new(first.owner.clone()), rtype));
        }
    }
    Ok(())
}

fn check_prerequisite_form(origin: NameRef<'_>, record: &UpdateRecord) -> Result<(), UpdateError> {
    let UpdateRecord { owner, rtype, class, raw_ttl, rdata } = record;
    if *raw_ttl != 0 {
        return Err(TTL);
    }
    if !owner.as_ref().is_within(origin) {
        return Err(UpdateError::NotZone(Box::new(owner.clone())));
    }
    if is_unsupported(*rtype) {
        return Err(UpdateError::NotImplemented(*rtype));
    }
    let is_presence = matches!(*class, Class::ANY | Class::NONE);
    if !is_presence && *class != Class::IN {
        return Err(CLASS);
    }
    if is_presence && !rdata.is_empty() {
        return Err(DATA);
    }
    let allows_type = is_known(*rtype) && (!is_query_only(*rtype) || is_presence && *rtype == Type::ANY);
    if allows_type { Ok(()) } else { Err(TYPE) }
}

/// Checks permissions, then the form of all update records (RFC 2136 §3.4.1).
pub(super) fn check_updates(
    origin: NameRef<'_>,
    records: &[UpdateRecord],
    allows: impl Fn(NameRef<'_>, Type) -> bool,
) -> Result<(), UpdateError> {
    if let Some(record) = records.iter().find(|record| !allows(record.owner.as_ref(), record.rtype)) {
        return Err(UpdateError::NotAllowed(Box::new(record.owner.clone()), record.rtype));
    }
    records.iter().try_for_each(|record| check_update_form(origin, record))
}

fn check_update_form(origin: NameRef<'_>, record: &UpdateRecord) -> Result<(), UpdateError> {
    let UpdateRecord { owner, rtype, class, raw_ttl, rdata } = record;
    if !owner.as_ref().is_within(origin) {
        return Err(UpdateError::NotZone(Box::new(owner.clone())));
    }
    if !is_known(*rtype) {
        return Err(TYPE);
    }
    let is_deletion = matches!(*class, Class::ANY | Class::NONE);
    if is_deletion && *raw_ttl != 0 {
        return Err(TTL);
    }
    match *class {
        Class::IN if is_query_only(*rtype) => return Err(TYPE),
        Class::IN if *rtype == Type::SOA => {
            let serial = Soa::read(rdata).map_or(0, |soa| soa.serial);
            if !owner.as_ref().same(origin) || serial == 0 {
                return Err(SOA);
            }
        }
        Class::IN => {}
        Class::ANY if !rdata.is_empty() => return Err(DATA),
        Class::ANY if is_query_only(*rtype) && *rtype != Type::ANY => return Err(TYPE),
        Class::ANY => {}
        Class::NONE if is_query_only(*rtype) => return Err(TYPE),
        Class::NONE => {}
        _ => return Err(CLASS),
    }
    if is_unsupported(*rtype) { Err(UpdateError::NotImplemented(*rtype)) } else { Ok(()) }
}

/// Performs the operations of the update section in order (RFC 2136 §3.4.2).
pub(super) fn apply_all(trial: &mut Trial<'_>, records: &[UpdateRecord]) -> Outcome {
    let mut outcome = Outcome { is_changed: false, has_serial: false };
    for record in records {
        let changed = match record.class {
            Class::IN => add(trial, record),
            Class::ANY => delete_sets(trial, record),
            _ => delete_record(trial, record),
        };
        outcome.is_changed |= changed;
        outcome.has_serial |= changed && record.class == Class::IN && record.rtype == Type::SOA;
    }
    outcome
}

/// Adds a record. Returns true if that changed the zone.
fn add(trial: &mut Trial<'_>, record: &UpdateRecord) -> bool {
    let (rtype, ttl, rdata) = (record.rtype, record.ttl(), &record.rdata);
    let name = trial.name(record.owner.as_ref());
    match rtype {
        Type::SOA => {
            let serial = Soa::read(rdata).map(|soa| soa.serial);
            let is_newer = name.soa().zip(serial).is_some_and(|(ours, theirs)| serial_is_newer(ours.serial, theirs));
            if !is_newer {
                return false;
            }
        }
        // An alias has no other data (RFC 1034 §3.6.2).
        Type::CNAME if name.sets().iter().any(|set| set.rtype != Type::CNAME) => return false,
        Type::CNAME => {}
        _ if name.set(Type::CNAME).is_some() => return false,
        _ => {}
    }
    let set = name.set_or_new(rtype, ttl);
    let is_known = set.find(rdata).is_some();
    if is_known && set.ttl == ttl {
        return false;
    }
    set.ttl = ttl;
    if matches!(rtype, Type::SOA | Type::CNAME) {
        set.records.clear();
    }
    if !is_known || set.records.is_empty() {
        set.records.push(rdata.clone());
    }
    true
}

/// Deletes an RRset, or all of a name. SOA and NS of the apex stay.
fn delete_sets(trial: &mut Trial<'_>, record: &UpdateRecord) -> bool {
    let is_apex = record.owner.as_ref().same(trial.origin());
    let is_kept = |rtype: Type| is_apex && matches!(rtype, Type::SOA | Type::NS);
    let is_meant = |rtype: Type| record.rtype == Type::ANY || record.rtype == rtype;
    trial.name(record.owner.as_ref()).retain_sets(|rtype| is_kept(rtype) || !is_meant(rtype))
}

/// Deletes a record. SOA and the last NS of the apex stay.
fn delete_record(trial: &mut Trial<'_>, record: &UpdateRecord) -> bool {
    let is_apex = record.owner.as_ref().same(trial.origin());
    let name = trial.name(record.owner.as_ref());
    let Some(set) = name.set_mut(record.rtype) else { return false };
    let is_last_server = record.rtype == Type::NS && set.records.len() == 1;
    if is_apex && (record.rtype == Type::SOA || is_last_server) {
        return false;
    }
    let Some(at) = set.find(&record.rdata) else { return false };
    set.records.remove(at);
    name.drop_empty();
    true
}
