//! RRsets in a message, and operations that reorder them.

use core::ops::Range;

use engine::{Query, Response, Worker};
use wire::{Mark, Type};

/// Maximum number of records to shuffle if the message must be rewritten. Larger RRsets keep their order.
const SET_MAX: usize = 64;

/// Range of consecutive records from `start` on with the same owner, type and section. `None` if there is no record.
pub(super) fn set_at(response: &Response, start: usize) -> Option<Range<usize>> {
    let message = &response.message;
    let marks = message.marks();
    let first = marks.get(start)?;
    let owner = |mark: &Mark| message.bytes_at(usize::from(mark.start)..usize::from(mark.rdata) - 10);
    // The first record may have its owner in full and the others a compression pointer to it.
    let same_owner = |mark: &Mark| owner(mark) == owner(first) || message.owner(*mark) == message.owner(*first);
    let same = |mark: &&Mark| mark.rtype == first.rtype && mark.section == first.section && same_owner(mark);
    Some(start..start + marks[start..].iter().take_while(same).count())
}

/// Shuffles the records of an RRset.
pub(super) fn shuffle(set: &Range<usize>, query: &Query, response: &mut Response, worker: &mut Worker) {
    if is_of_addresses(set, response) {
        for at in (1..set.len()).rev() {
            response.message.swap_rdata(set.start + at, set.start + worker.random_below(at + 1));
        }
        return;
    }
    let mut order = [0; SET_MAX];
    let Some(order) = order.get_mut(..set.len()) else { return };
    order.iter_mut().enumerate().for_each(|(at, place)| *place = at);
    for at in (1..order.len()).rev() {
        order.swap(at, worker.random_below(at + 1));
    }
    if set.len() > 1 {
        let from = |at: usize| if set.contains(&at) { set.start + order[at - set.start] } else { at };
        write_anew(from, query, response, worker);
    }
}

/// Swaps two address records of one section.
pub(super) fn swap(one: usize, other: usize, query: &Query, response: &mut Response, worker: &mut Worker) {
    let message = &response.message;
    let (Some(first), Some(second)) = (message.marks().get(one), message.marks().get(other)) else { return };
    if first.rtype == second.rtype && message.owner(*first) == message.owner(*second) {
        response.message.swap_rdata(one, other);
        return;
    }
    let from = |at| match at {
        _ if at == one => other,
        _ if at == other => one,
        _ => at,
    };
    write_anew(from, query, response, worker);
}

/// Returns true for an RRset of addresses. All have the same length, so their data can be swapped in place.
fn is_of_addresses(set: &Range<usize>, response: &Response) -> bool {
    response.message.marks().get(set.start).is_some_and(|mark| mark.rtype.is_address())
}

/// Rewrites the message with record `from(i)` at each position `i`. Keeps it if a name in it is malformed.
fn write_anew(from: impl Fn(usize) -> usize, query: &Query, response: &mut Response, worker: &mut Worker) {
    let _ = response.rewrite(query, &mut worker.scratch, |message, old| {
        let marks = old.marks();
        (0..marks.len()).try_for_each(|at| {
            let mark = marks[from(at)];
            message.push_record(mark.section, &old.record(mark)).map(drop)
        })
    });
}

/// Returns true for types whose order matters to clients.
pub(super) const fn is_shuffled(rtype: Type) -> bool {
    matches!(rtype, Type::A | Type::AAAA | Type::MX)
}
