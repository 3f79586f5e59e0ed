//! Records with a target (SRV, MX, NS), and the addresses of the targets.

use engine::Response;
use skydns::{Host, KeyedRecord, Record, RecordFilter, RecordRole, Selection, name_of};
use wire::{Class, Name, NameRef, Owner, RdataWriter, Section, Type};

use super::walk::Walk;
use common_plugins::shared::seen_records::Seen;

/// Maximum number of priorities in one answer for which the sum of weights is computed. Records of further priorities
/// have the weight 100.
const PRIORITIES_MAX: usize = 32;
/// Sum to which the weights of one priority are normalised.
const WEIGHTS: u64 = 100;

/// Appends the records of this type that a name has, and the known addresses of their targets.
pub(super) fn push(selection: &Selection<'_>, rtype: Type, walk: &mut Walk<'_>, response: &mut Response) {
    let services = || selection.records().filter(|keyed| is_service(keyed.record, rtype));
    let ttl = walk.ttl_min(selection, |record| is_service(record, rtype));
    let shares = Shares::of(selection.records());
    let mut seen = Seen::new(selection.len());
    for keyed in services() {
        let Some(target) = target(keyed) else { continue };
        let numbers = numbers(keyed.record, rtype, &shares);
        if seen.is_new(&(numbers, target.as_bytes()), || holds(response, rtype, numbers, target.as_ref())) {
            response.message.push(Section::Answer, Owner::Question, (rtype, Class::IN, ttl), |rdata| {
                write(rdata, rtype, numbers, target.as_ref());
            });
        }
    }
    for keyed in services() {
        if response.message.is_truncated() {
            return;
        }
        push_addresses(keyed, rtype, walk, response);
    }
}

/// Returns true if a record yields records of this type.
fn is_service(record: &Record, rtype: Type) -> bool {
    record.host != Host::None && (rtype != Type::MX || record.mail)
}

/// Returns the target of a record: its host name or, if the host is an address, the name of its key. `targetstrip`
/// removes labels from the start.
fn target(keyed: KeyedRecord<'_>) -> Option<Name> {
    let strip = usize::from(keyed.record.target_strip);
    match keyed.record.host.name() {
        Some(name) => name.ancestors().nth(strip).filter(|rest| !rest.is_root()).or(Some(name)).map(NameRef::to_name),
        None => name_of(keyed.key, strip),
    }
}

/// Numbers before the target: priority, weight and port of SRV, the preference of MX, nothing for NS.
type Numbers = [Option<u16>; 3];

fn numbers(record: &Record, rtype: Type, shares: &Shares) -> Numbers {
    match rtype {
        Type::SRV => [Some(record.priority), Some(shares.weight(record)), Some(record.port)],
        Type::MX => [Some(record.priority), None, None],
        _ => [None; 3],
    }
}

fn write(rdata: &mut RdataWriter<'_>, rtype: Type, numbers: Numbers, target: NameRef<'_>) {
    numbers.into_iter().flatten().for_each(|number| rdata.u16(number));
    // The target of SRV is not compressed (RFC 2782).
    if rtype == Type::SRV { rdata.plain_name(target) } else { rdata.name(target) }
}

/// Returns true if the answer already has this record.
fn holds(response: &Response, rtype: Type, numbers: Numbers, target: NameRef<'_>) -> bool {
    let message = &response.message;
    let numbers = || numbers.into_iter().flatten();
    let before = numbers().count() * 2;
    message.section(Section::Answer).filter(|mark| mark.rtype == rtype).any(|mark| {
        let rdata = message.bytes_at(mark.rdata_range());
        rdata.iter().take(before).copied().eq(numbers().flat_map(u16::to_be_bytes))
            && message.name_in(mark, before).is_ok_and(|known| known.as_ref().same(target))
    })
}

/// Appends the addresses of a record's target. Omits those of name servers outside of the zone, because the zone is not
/// authoritative for them.
fn push_addresses(keyed: KeyedRecord<'_>, rtype: Type, walk: &mut Walk<'_>, response: &mut Response) {
    let Some(target) = target(keyed) else { return };
    let target = target.as_ref();
    match keyed.record.role(RecordFilter::Hosts) {
        RecordRole::Address(address) => {
            let ttl = walk.ttl(keyed.record);
            walk.push_address((Owner::Name(target), target), ttl, address, response);
        }
        RecordRole::Alias(_) if rtype != Type::NS || walk.is_within(target) => {
            walk.push_target(target, None, response);
        }
        RecordRole::Alias(_) | RecordRole::Text(_) | RecordRole::Nothing => {}
    }
}

/// Sum of weights by priority.
struct Shares([(u16, u64); PRIORITIES_MAX]);

impl Shares {
    fn of<'v>(records: impl Iterator<Item = KeyedRecord<'v>>) -> Shares {
        let mut sums = [(0, 0); PRIORITIES_MAX];
        for KeyedRecord { record, .. } in records.filter(|keyed| keyed.record.host != Host::None) {
            let place = sums.iter_mut().find(|(priority, sum)| *sum == 0 || *priority == record.priority);
            if let Some((priority, sum)) = place {
                *priority = record.priority;
                *sum += u64::from(record.weight);
            }
        }
        Shares(sums)
    }

    /// Returns the weight of a record in percent of the sum, rounded down, and at least 1.
    fn weight(&self, record: &Record) -> u16 {
        let own = u64::from(record.weight);
        let sum = self.0.iter().find(|(priority, sum)| *sum > 0 && *priority == record.priority);
        let share = own * WEIGHTS / sum.map_or(own, |(_, sum)| *sum).max(1);
        u16::try_from(share.max(1)).unwrap_or(u16::MAX)
    }
}
