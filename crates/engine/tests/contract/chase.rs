//! Follows a CNAME whose target is not in the answer, as *kubernetes* does for Services of type `ExternalName`.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use wire::{Name, Section, Type};

/// Variant below the test cache, as *kubernetes* is below *cache*.
pub static CHASE: Manifest<()> = Manifest::new("chase", "follows CNAMEs", || (), build);
/// Variant above the test cache, as *dns64* and *rewrite* are above *cache*.
pub static CHASE_ABOVE: Manifest<()> = Manifest::new("chase_above", "follows CNAMEs", || (), build);

fn build(_: Vec<()>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(Some(Part::new(Chase, Hooks::UP)))
}

struct Chase;

impl Plugin for Chase {
    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        match open_end(query, response) {
            Some(name) => {
                Verdict::Subquery(Box::new(Subquery { name, qtype: query.qtype, target: SubqueryTarget::Top }))
            }
            None => Verdict::Pass,
        }
    }

    fn on_subresponse(&self, _: &mut Query, sub: &mut Response, response: &mut Response, _: &mut Worker) -> Verdict {
        match sub.failure() {
            Some(failure) => Verdict::Fail(failure.clone()),
            None => {
                response.set_rcode(sub.rcode());
                response.append_answers(sub);
                Verdict::Done
            }
        }
    }
}

/// Returns the target of the last answer record, if it is a CNAME that the query did not ask for.
fn open_end(query: &Query, response: &Response) -> Option<Name> {
    let last = response.message.section(Section::Answer).last()?;
    let open = last.rtype == Type::CNAME && query.qtype != Type::CNAME;
    response.message.name_in(last, 0).ok().filter(|_| open)
}
