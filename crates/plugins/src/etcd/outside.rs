//! Names that are in no zone of the stanza: they are asked for as if a client did, one after the other.

use std::collections::VecDeque;

use engine::{Ask, Query, Response, Verdict, Whom};
use wire::{NameRef, Rcode, Section, Type};

use super::wanted::Wanted;
use crate::service_records::end_alias;

/// Names that are asked for on behalf of one question; more would keep the client waiting.
const NAMES_MAX: usize = 8;

/// What is still to be asked, and where its answer goes.
#[derive(Default)]
pub(super) struct Outside {
    questions: VecDeque<(Box<Ask>, Section)>,
}

impl Outside {
    /// Notes that a name is to be asked for.
    pub(super) fn add(&mut self, target: NameRef<'_>, wanted: Wanted) {
        let types: &[Type] = match &wanted.qtype {
            Some(qtype) => core::slice::from_ref(qtype),
            None => &[Type::A, Type::AAAA],
        };
        let is_known = self.questions.iter().any(|(ask, _)| ask.name.as_ref().same(target));
        if is_known || self.questions.len() + types.len() > NAMES_MAX {
            return;
        }
        for &qtype in types {
            let ask = Ask { name: target.to_name(), qtype, whom: Whom::Server };
            self.questions.push_back((Box::new(ask), wanted.section));
        }
    }

    /// Asks the next question, if there is one.
    pub(super) fn ask(mut self, query: &mut Query) -> Option<Verdict> {
        let (ask, section) = self.questions.pop_front()?;
        query.keep((self, section));
        Some(Verdict::Ask(ask))
    }
}

/// Takes an answer, and asks on.
pub(super) fn on_subanswer(query: &mut Query, sub: &mut Response, response: &mut Response) -> Verdict {
    let Some((outside, section)) = query.take_kept::<(Outside, Section)>() else { return Verdict::Done };
    if section == Section::Additional {
        // The client can do without; where one look-up fails, others take their time to fail as well.
        if sub.rcode() == Rcode::SERVFAIL {
            return Verdict::Done;
        }
        append_addresses(sub, response);
        return outside.ask(query).unwrap_or(Verdict::Done);
    }
    let before = response.message.section(Section::Answer).filter(|mark| mark.rtype == query.qtype).count();
    match end_alias(sub, response) {
        // What is known beside is worth more than a failure.
        Verdict::Fail(_) if before > 0 || !outside.questions.is_empty() => outside.ask(query).unwrap_or(Verdict::Done),
        Verdict::Done => outside.ask(query).unwrap_or(Verdict::Done),
        verdict => verdict,
    }
}

/// Appends the addresses of an answer, and the aliases that lead to them, as something that may help.
fn append_addresses(sub: &Response, response: &mut Response) {
    for mark in sub.message.section(Section::Answer) {
        if response.message.push_record(Section::Additional, &sub.message.record(mark)).is_err() {
            return;
        }
    }
}
