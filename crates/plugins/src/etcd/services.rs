//! Records that name a target: SRV, MX, NS, and the addresses of the targets.

use engine::Response;
use skydns::{Host, Listed, Meaning, Record, Selection, name_of};
use wire::{Class, Name, NameRef, Owner, RdataWriter, Section, Type};

use super::walk::Walk;
use crate::seen::Seen;

/// Priorities among which the weights of one answer are shared out; of a record with yet another one the weight is a
/// hundred.
const PRIORITIES_MAX: usize = 32;
/// What all weights of one priority make together.
const WEIGHTS: u64 = 100;

/// Appends the records of this type that a name has, and what is known of the addresses of their targets.
pub(super) fn push(selection: &Selection<'_>, rtype: Type, walk: &mut Walk<'_>, response: &mut Response) {
    let services = || selection.records().filter(|listed| is_service(listed.record, rtype));
    let ttl = walk.ttl_min(selection, |record| is_service(record, rtype));
    let shares = Shares::of(selection.records());
    let mut seen = Seen::new(selection.len());
    for listed in services() {
        let Some(target) = target(listed) else { continue };
        let numbers = numbers(listed.record, rtype, &shares);
        if seen.is_new(&(numbers, target.octets()), || holds(response, rtype, numbers, target.as_ref())) {
            response.message.push(Section::Answer, Owner::Question, (rtype, Class::IN, ttl), |rdata| {
                write(rdata, rtype, numbers, target.as_ref());
            });
        }
    }
    for listed in services() {
        if response.message.is_truncated() {
            return;
        }
        push_addresses(listed, rtype, walk, response);
    }
}

/// Whether a record is one of this type.
fn is_service(record: &Record, rtype: Type) -> bool {
    let has_target = matches!(record.meaning(), Meaning::Address(_) | Meaning::Alias(_));
    has_target && (rtype != Type::MX || record.mail)
}

/// Where a record points to: to a name or, with its address, to the name of its own key. Either way it may be without
/// some labels.
fn target(listed: Listed<'_>) -> Option<Name> {
    let strip = usize::from(listed.record.target_strip);
    match listed.record.host.name() {
        Some(name) => name.ancestors().nth(strip).filter(|rest| !rest.is_root()).or(Some(name)).map(NameRef::to_name),
        None => name_of(listed.key, strip),
    }
}

/// The numbers before the target: priority, weight and port of SRV, the preference of MX, none of NS.
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
    // In SRV it is not compressed (RFC 2782).
    if rtype == Type::SRV { rdata.plain_name(target) } else { rdata.name(target) }
}

/// Whether the answer has such a record already.
fn holds(response: &Response, rtype: Type, numbers: Numbers, target: NameRef<'_>) -> bool {
    let message = &response.message;
    let numbers = || numbers.into_iter().flatten();
    let before = numbers().count() * 2;
    message.section(Section::Answer).filter(|mark| mark.rtype == rtype).any(|mark| {
        let rdata = message.octets_at(mark.rdata_range());
        rdata.iter().take(before).copied().eq(numbers().flat_map(u16::to_be_bytes))
            && message.name_in(mark, before).is_ok_and(|known| known.as_ref().same(target))
    })
}

/// Appends the addresses of a record's target. Those of a name server outside of the zone are not ours to say.
fn push_addresses(listed: Listed<'_>, rtype: Type, walk: &mut Walk<'_>, response: &mut Response) {
    let Some(target) = target(listed) else { return };
    let target = target.as_ref();
    match listed.record.meaning() {
        Meaning::Address(address) => {
            let ttl = walk.ttl(listed.record);
            walk.push_address((Owner::Name(target), target), ttl, address, response);
        }
        Meaning::Alias(_) if rtype != Type::NS || walk.is_within(target) => {
            walk.push_target(target, None, response);
        }
        Meaning::Alias(_) | Meaning::Text(_) | Meaning::Nothing => {}
    }
}

/// What the weights of each priority make together: of all records that point somewhere, also where a text hides that.
struct Shares([(u16, u64); PRIORITIES_MAX]);

impl Shares {
    fn of<'v>(records: impl Iterator<Item = Listed<'v>>) -> Shares {
        let mut sums = [(0, 0); PRIORITIES_MAX];
        for Listed { record, .. } in records.filter(|listed| listed.record.host != Host::None) {
            let place = sums.iter_mut().find(|(priority, sum)| *sum == 0 || *priority == record.priority);
            if let Some((priority, sum)) = place {
                *priority = record.priority;
                *sum += u64::from(record.weight);
            }
        }
        Shares(sums)
    }

    /// The share of a record in a hundred, rounded down, and at least one.
    fn weight(&self, record: &Record) -> u16 {
        let own = u64::from(record.weight);
        let sum = self.0.iter().find(|(priority, sum)| *sum > 0 && *priority == record.priority);
        let share = own * WEIGHTS / sum.map_or(own, |(_, sum)| *sum).max(1);
        u16::try_from(share.max(1)).unwrap_or(u16::MAX)
    }
}
