//! Removes the records of some types from answers, as `--filter-A` and `--filter-AAAA` of dnsmasq do.

use engine::{Query, Response, Worker};
use wire::{EdeCode, Mark, MessageBuf, Section, Type};

/// Removes the records of these types from the answer section, and their signatures. Response code and aliases stay.
pub(super) fn remove(types: &[Type], query: &Query, response: &mut Response, worker: &mut Worker) {
    if !response.message.marks().iter().any(|mark| is_removed(types, *mark, &response.message)) {
        return;
    }
    // An answer with a malformed name is left as it is.
    let rewritten = response.rewrite(query, &mut worker.scratch, |message, old| {
        let kept = old.marks().iter().filter(|mark| !is_removed(types, **mark, old));
        kept.into_iter().try_for_each(|mark| message.push_record(mark.section, &old.record(*mark)).map(drop))
    });
    if rewritten.is_ok() {
        response.set_ede(EdeCode::FILTERED, "records of this type are removed");
    }
}

fn is_removed(types: &[Type], mark: Mark, message: &MessageBuf) -> bool {
    let covered = || message.bytes_at(mark.rdata_range()).first_chunk().map(|rtype| u16::from_be_bytes(*rtype));
    let of = if mark.rtype == Type::RRSIG { covered().map_or(mark.rtype, Type) } else { mark.rtype };
    mark.section == Section::Answer && types.contains(&of)
}
