//! Targets outside of the zones, which are resolved with subqueries to this server, one after the other.

use std::collections::VecDeque;

use engine::{Query, Response, Subquery, SubqueryTarget, Verdict};
use wire::{NameRef, Rcode, Section, Type};

use super::wanted::Wanted;
use common_plugins::shared::service_records::{append_glue, end_alias};

/// Maximum number of subqueries for one query. More would keep the client waiting.
const NAMES_MAX: usize = 8;

/// Pending subqueries, with the section for their answers.
#[derive(Default)]
pub(super) struct Outside {
    questions: VecDeque<(Box<Subquery>, Section)>,
}

impl Outside {
    /// Adds a target. Ignores a known one, and those beyond the limit.
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
            let ask = Subquery { name: target.to_name(), qtype, target: SubqueryTarget::Top };
            self.questions.push_back((Box::new(ask), wanted.section));
        }
    }

    /// Starts the next subquery, if any.
    pub(super) fn ask(mut self, query: &mut Query) -> Option<Verdict> {
        let (ask, section) = self.questions.pop_front()?;
        query.keep((self, section));
        Some(Verdict::Subquery(ask))
    }
}

/// Appends the answer of a subquery and starts the next one.
pub(super) fn on_subresponse(query: &mut Query, sub: &mut Response, response: &mut Response) -> Verdict {
    let Some((outside, section)) = query.take_kept::<(Outside, Section)>() else { return Verdict::Done };
    if section == Section::Additional {
        // Addresses of targets are optional. After one failure, stop: further ones would only delay the answer.
        if sub.rcode() == Rcode::SERVFAIL {
            return Verdict::Done;
        }
        append_glue(sub, response);
        return outside.ask(query).unwrap_or(Verdict::Done);
    }
    let before = response.message.section(Section::Answer).filter(|mark| mark.rtype == query.qtype).count();
    match end_alias(sub, response) {
        // A partial answer is better than a failure.
        Verdict::Fail(_) if before > 0 || !outside.questions.is_empty() => outside.ask(query).unwrap_or(Verdict::Done),
        Verdict::Done => outside.ask(query).unwrap_or(Verdict::Done),
        verdict => verdict,
    }
}
