//! Tries the client's search path on its behalf, as *autopath* does: subqueries to the steps below, one after the
//! other, until one is not denied.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use wire::{Name, NameRef, Owner, Rcode, Section, Type};

pub static MANIFEST: Manifest<Config> =
    Manifest::new("autopath", "walks the client's search path", Config::default, build).arguments(
        "autopath ZONES...",
        |config, args| {
            config.search = args.zones()?;
            config.search.push(Name::root());
            Ok(())
        },
    );

#[derive(Default)]
pub struct Config {
    search: Vec<Name>,
}

fn build(configs: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let search = configs.into_iter().flat_map(|config| config.search).collect();
    Ok(Some(Part::new(Autopath { search }, Hooks::DOWN)))
}

struct Autopath {
    search: Vec<Name>,
}

impl Plugin for Autopath {
    fn on_query(&self, query: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        query.set_note(0);
        self.try_next(query)
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        _: &mut Worker,
    ) -> Verdict {
        let tried = query.note();
        if sub.failure().is_none() && sub.rcode() != Rcode::NXDOMAIN {
            replace_response(query, sub, response);
            return Verdict::Done;
        }
        if tried == 0 {
            // If all subqueries are denied, the first denial is the answer.
            replace_response(query, sub, response);
        }
        query.set_note(tried + 1);
        match self.try_next(query) {
            Verdict::Pass => Verdict::Done,
            ask => ask,
        }
    }
}

impl Autopath {
    /// Queries the name with the next element of the search path in place of the first one.
    fn try_next(&self, query: &Query) -> Verdict {
        let next = usize::try_from(query.note()).ok().and_then(|at| self.search.get(at));
        let (Some(first), Some(next)) = (self.search.first(), next) else { return Verdict::Pass };
        match with_suffix(query.name(), first.as_ref(), next.as_ref()) {
            Some(name) => {
                Verdict::Subquery(Box::new(Subquery { name, qtype: query.qtype, target: SubqueryTarget::Below }))
            }
            None => Verdict::Pass,
        }
    }
}

/// Replaces the suffix `from` of `name` by `to`; `None` if it has no such suffix or becomes too long.
fn with_suffix(name: NameRef<'_>, from: NameRef<'_>, to: NameRef<'_>) -> Option<Name> {
    let labels = name.labels().count().checked_sub(from.labels().count()).filter(|_| name.is_within(from))?;
    let mut changed = Name::root();
    name.labels().take(labels).try_for_each(|label| changed.push_label(label)).ok()?;
    changed.append(to).ok()?;
    Some(changed)
}

/// Answers with the records found, after a CNAME if they have another name.
fn replace_response(query: &Query, sub: &Response, response: &mut Response) {
    response.begin(query);
    response.set_rcode(sub.rcode());
    response.set_authoritative(sub.message.flags().authoritative());
    let first = sub.message.section(Section::Answer).next();
    if let Some(mark) = first
        && let Ok(owner) = sub.message.owner(mark)
        && owner.as_ref() != query.name()
    {
        let ttl = sub.message.ttl(mark);
        response.message.push_name(Section::Answer, Owner::Question, (Type::CNAME, ttl), owner.as_ref());
    }
    for mark in sub.message.marks() {
        let _ = response.message.push_record(mark.section, &sub.message.record(*mark));
    }
}
